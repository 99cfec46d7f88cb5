//! The initiator's data path for READ, WRITE, SEND and atomics: post one request, look for its completion.

use std::sync::Arc;

use super::{endpoint::Endpoint, explain, wait::Wait};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{queue_pair::QueuePair, request::SendRequest, verbs::MemoryRegion},
};

/// What changes in a request from one command to the next.
pub trait Vary {
    /// Untimed, before each command.
    fn vary(&mut self, request: &mut SendRequest);
}

/// Nothing changes.
#[derive(Debug)]
pub struct Fixed;

/// A compare and swap that always succeeds: from n to n + 1, so that the counter tells how many were carried out.
#[derive(Debug, Default)]
pub struct Counting {
    next: u64,
}

impl Vary for Fixed {
    #[inline(always)]
    fn vary(&mut self, _request: &mut SendRequest) {}
}

impl Vary for Counting {
    #[inline(always)]
    fn vary(&mut self, request: &mut SendRequest) {
        request.set_compare_swap(self.next, self.next + 1);
        self.next += 1;
    }
}

/// A command whose completion at the initiator is timed.
pub struct Requester<W, V> {
    request: SendRequest,
    wait: W,
    vary: V,
    queue_pair: Arc<QueuePair>,
    // The request points into it.
    _memory: Arc<MemoryRegion>,
}

impl<W: Wait, V: Vary> Requester<W, V> {
    /// Issues `endpoint`'s commands, awaiting completions of its send queue by `wait`.
    pub fn new(endpoint: &Endpoint, request: SendRequest, wait: W, vary: V) -> Self {
        let (queue_pair, memory) = (Arc::clone(&endpoint.queue_pair), Arc::clone(&endpoint.memory));
        Self { request, wait, vary, queue_pair, _memory: memory }
    }
}

impl<W: Wait, V: Vary> Engine for Requester<W, V> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.vary.vary(&mut self.request);
        self.wait.arm()
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.queue_pair.post_send(&mut self.request).map_err(Fault::Submit)
    }

    #[inline(always)]
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
        if self.wait.look()? {
            done.complete();
        }
        Ok(())
    }

    fn explain(&self, fault: Fault) -> String {
        explain(fault)
    }
}
