//! The initiator's data path for READ, WRITE, SEND and atomics: post requests, look for their completions.
//!
//! A provider copies a request when it is posted, so that one, built before, serves all slots: a slot has a number and a
//! place in the buffer.

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

/// A compare and swap that always succeeds: from n to n + 1, so that the counter tells how many were carried out. Requests of
/// a queue pair are carried out in the order in which they were posted, so that it holds at any depth.
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

/// Commands whose completion at the initiator is timed.
pub struct Requester<W, V> {
    request: SendRequest,
    wait: W,
    vary: V,
    first: usize,
    stride: usize,
    queue_pair: Arc<QueuePair>,
    // The request points into it.
    memory: Arc<MemoryRegion>,
}

impl<W: Wait, V: Vary> Requester<W, V> {
    /// Issues `endpoint`'s commands, awaiting completions of its send queue by `wait`.
    pub fn new(endpoint: &Endpoint, request: SendRequest, wait: W, vary: V) -> Self {
        let (queue_pair, memory) = (Arc::clone(&endpoint.queue_pair), Arc::clone(&endpoint.memory));
        let (first, stride) = (endpoint.layout.send, endpoint.layout.stride);
        Self { request, wait, vary, first, stride, queue_pair, memory }
    }
}

impl<W: Wait, V: Vary> Engine for Requester<W, V> {
    #[inline(always)]
    fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
        self.request.set_slot(slot, &self.memory, self.first + self.stride * slot as usize);
        self.vary.vary(&mut self.request);
        self.wait.arm()
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.queue_pair.post_send(&mut self.request).map_err(Fault::Submit)
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        self.wait.reap(done)
    }

    fn explain(&self, _slot: u32, fault: Fault) -> String {
        explain(fault)
    }
}

/// A requester of which only every so many commands report their completion (`--signal-every`). Requests of a queue pair
/// complete in order, so that one that reports tells of all before it: that is when they were *seen* to be complete.
///
/// Slots must be used in their order, as they are freed.
pub struct Moderated<W, V> {
    requester: Requester<W, V>,
    every: u32,
    depth: u32,
    /// The slot of the oldest command that was not told of.
    oldest: u32,
    /// Commands that were not told of.
    outstanding: u32,
    /// Slots that are known to be complete, but were not told yet.
    known: u32,
    /// Why the command after them failed.
    failed: Option<Fault>,
}

impl<W: Wait, V: Vary> Moderated<W, V> {
    /// Lets every `every`th command of `depth` report.
    pub fn new(requester: Requester<W, V>, every: u32, depth: u32) -> Self {
        Self { requester, every, depth, oldest: 0, outstanding: 0, known: 0, failed: None }
    }

    /// Tells of what is known, as far as there is room.
    #[inline(always)]
    fn tell<D: Done>(&mut self, done: &mut D) {
        for _ in 0..D::MOST {
            let outcome = match (self.known, self.failed) {
                (0, None) => return,
                (0, Some(fault)) => Err(fault),
                _ => Ok(()),
            };
            done.complete(self.oldest, outcome);
            self.oldest = if self.oldest + 1 == self.depth { 0 } else { self.oldest + 1 };
            self.known = self.known.saturating_sub(1);
            self.outstanding = self.outstanding.saturating_sub(1);
            if outcome.is_err() {
                self.failed = None;
            }
        }
    }
}

impl<W: Wait, V: Vary> Engine for Moderated<W, V> {
    #[inline(always)]
    fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
        if self.outstanding == 0 {
            self.oldest = slot;
        }
        // The last slot always reports, so that a round never waits for the next one.
        self.requester.request.set_signalled((slot + 1).is_multiple_of(self.every) || slot + 1 == self.depth);
        self.requester.prepare(slot)
    }

    #[inline(always)]
    fn submit(&mut self, slot: u32) -> Result<(), Fault> {
        self.requester.submit(slot)?;
        self.outstanding += 1;
        Ok(())
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        if self.known == 0 && self.failed.is_none() {
            let mut reported = Reported::default();
            self.requester.poll(&mut reported)?;
            let Some((slot, outcome)) = reported.0 else { return Ok(()) };
            let before = if slot >= self.oldest { slot - self.oldest } else { slot + self.depth - self.oldest };
            // A failure reports itself, whether or not it was to report.
            (self.known, self.failed) = (before + u32::from(outcome.is_ok()), outcome.err());
        }
        self.tell(done);
        Ok(())
    }

    #[inline(always)]
    fn conclude(&mut self, _slot: u32) {
        self.requester.request.set_signalled(true);
    }

    fn explain(&self, slot: u32, fault: Fault) -> String {
        self.requester.explain(slot, fault)
    }
}

/// Room for the one completion that tells of others.
#[derive(Default)]
struct Reported(Option<(u32, Result<(), Fault>)>);

impl Done for Reported {
    const MOST: u32 = 1;

    #[inline(always)]
    fn complete(&mut self, slot: u32, outcome: Result<(), Fault>) {
        self.0 = Some((slot, outcome));
    }
}
