//! `io-uring`, and the ways to hand over and to wait that `nvme-cmd` shares with it.

use std::marker::PhantomData;

use io_uring::{cqueue, squeue};

use super::{Block, Subject, completed, offsets::Offsets};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{
        memory::Buffer,
        uring::{PlainRing, Request, Ring},
    },
};

/// How a request reaches the kernel.
pub trait HandOver {
    /// Hands one request over.
    ///
    /// # Errors
    /// The errno.
    fn submit<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        ring: &mut Ring<S, C>,
        request: &Request<S>,
    ) -> Result<(), i32>;
}

/// By `io_uring_enter`.
#[derive(Debug)]
pub struct ByCall;
/// By the kernel's submission thread.
#[derive(Debug)]
pub struct ByThread;

impl HandOver for ByCall {
    #[inline(always)]
    fn submit<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        ring: &mut Ring<S, C>,
        request: &Request<S>,
    ) -> Result<(), i32> {
        ring.enter(request)
    }
}

impl HandOver for ByThread {
    #[inline(always)]
    fn submit<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        ring: &mut Ring<S, C>,
        request: &Request<S>,
    ) -> Result<(), i32> {
        ring.publish(request)
    }
}

/// How a completion is awaited.
pub trait Await {
    /// One look, or one wait and a look: tells slots and completions, `most` at most.
    ///
    /// # Errors
    /// The errno.
    fn reap<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        ring: &mut Ring<S, C>,
        most: u32,
        told: impl FnMut(u32, C),
    ) -> Result<(), i32>;
}

/// By looking at the completion ring.
#[derive(Debug)]
pub struct InRing;
/// By `io_uring_enter`: it sleeps, or polls the device on a ring with IOPOLL.
#[derive(Debug)]
pub struct InKernel;

impl Await for InRing {
    #[inline(always)]
    fn reap<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        ring: &mut Ring<S, C>,
        most: u32,
        told: impl FnMut(u32, C),
    ) -> Result<(), i32> {
        ring.reap(most, told);
        Ok(())
    }
}

impl Await for InKernel {
    #[inline(always)]
    fn reap<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        ring: &mut Ring<S, C>,
        most: u32,
        mut told: impl FnMut(u32, C),
    ) -> Result<(), i32> {
        // What completed while it was handed over needs no call.
        if !ring.reap(most, &mut told) {
            ring.wait()?;
            ring.reap(most, told);
        }
        Ok(())
    }
}

/// Reads and writes through a ring.
pub struct Uring<H: HandOver, A: Await> {
    ring: PlainRing,
    write: bool,
    force_async: bool,
    request: Request<squeue::Entry>,
    offsets: Offsets,
    /// Where the command of each slot goes.
    offset: Box<[u64]>,
    bytes: u32,
    subject: Subject,
    ways: PhantomData<(H, A)>,
}

impl<H: HandOver, A: Await> Uring<H, A> {
    /// The engine on a ring that is set up.
    pub fn new(ring: PlainRing, write: bool, force_async: bool, offsets: Offsets, subject: Subject) -> Self {
        let request = ring.transfer(write, force_async, 0, 0);
        let bytes = ring.buffer().map_or(0, Buffer::bytes);
        let offset = vec![0; ring.depth() as usize].into_boxed_slice();
        Self { ring, write, force_async, request, offsets, offset, bytes, subject, ways: PhantomData }
    }
}

impl<H: HandOver, A: Await> Engine for Uring<H, A> {
    #[inline(always)]
    fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
        let offset = self.offsets.draw();
        self.offset[slot as usize] = offset;
        self.request = self.ring.transfer(self.write, self.force_async, offset, slot);
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        H::submit(&mut self.ring, &self.request).map_err(Fault::Submit)
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        let bytes = self.bytes;
        let told = |slot, completion: cqueue::Entry| {
            done.complete(slot, completed(i64::from(completion.result()), bytes));
        };
        A::reap(&mut self.ring, D::MOST, told).map_err(Fault::Poll)
    }

    fn slot_bytes(&self) -> usize {
        size_of::<u64>() + self.ring.slot_bytes()
    }

    fn explain(&self, slot: u32, fault: Fault) -> String {
        self.subject.explain(self.offset[slot as usize], fault)
    }
}

impl<H: HandOver, A: Await> Block for Uring<H, A> {
    fn buffer(&self) -> Option<&Buffer> {
        self.ring.buffer()
    }
    fn offset(&self, slot: u32) -> u64 {
        self.offset[slot as usize]
    }
}
