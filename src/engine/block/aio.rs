//! `libaio`: io_submit, and completions from the ring in user space or by io_getevents.

use super::{Block, Subject, completed, offsets::Offsets};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{aio::Queue, memory::Buffer},
};

/// How completions are reaped.
pub trait Reap {
    /// One look, or one wait: tells slots and results, `most` at most.
    ///
    /// # Errors
    /// The errno of the call.
    fn reap(queue: &mut Queue, most: u32, told: impl FnMut(u32, i64)) -> Result<(), i32>;
}

/// From the ring that the kernel maps into the process.
#[derive(Debug)]
pub struct InRing;
/// By io_getevents without waiting, where the ring has an unknown layout.
#[derive(Debug)]
pub struct ByLook;
/// By io_getevents, sleeping.
#[derive(Debug)]
pub struct BySleep;

impl Reap for InRing {
    #[inline(always)]
    fn reap(queue: &mut Queue, most: u32, mut told: impl FnMut(u32, i64)) -> Result<(), i32> {
        for _ in 0..most {
            let Some((slot, result)) = queue.reap_ring() else { break };
            told(slot, result);
        }
        Ok(())
    }
}

impl Reap for ByLook {
    #[inline(always)]
    fn reap(queue: &mut Queue, most: u32, told: impl FnMut(u32, i64)) -> Result<(), i32> {
        queue.look(most, told)
    }
}

impl Reap for BySleep {
    #[inline(always)]
    fn reap(queue: &mut Queue, most: u32, told: impl FnMut(u32, i64)) -> Result<(), i32> {
        queue.wait(most, told)
    }
}

/// Reads and writes by AIO.
#[derive(Debug)]
pub struct Aio<R: Reap> {
    queue: Queue,
    offsets: Offsets,
    /// Where the command of each slot goes.
    offset: Box<[u64]>,
    bytes: u32,
    subject: Subject,
    reap: std::marker::PhantomData<R>,
}

impl<R: Reap> Aio<R> {
    /// The engine on a context that is set up.
    pub fn new(queue: Queue, offsets: Offsets, subject: Subject) -> Self {
        let bytes = queue.buffer().bytes();
        let offset = vec![0; queue.buffer().pieces() as usize].into_boxed_slice();
        Self { queue, offsets, offset, bytes, subject, reap: std::marker::PhantomData }
    }
}

impl<R: Reap> Engine for Aio<R> {
    #[inline(always)]
    fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
        let offset = self.offsets.draw();
        self.offset[slot as usize] = offset;
        self.queue.set(slot, offset);
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.queue.submit().map_err(Fault::Submit)
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        let bytes = self.bytes;
        let told = |slot, result| done.complete(slot, completed(result, bytes));
        R::reap(&mut self.queue, D::MOST, told).map_err(Fault::Poll)
    }

    fn slot_bytes(&self) -> usize {
        size_of::<u64>() + self.queue.slot_bytes(self.queue.buffer().pieces())
    }

    fn explain(&self, slot: u32, fault: Fault) -> String {
        self.subject.explain(self.offset[slot as usize], fault)
    }
}

impl<R: Reap> Block for Aio<R> {
    fn buffer(&self) -> Option<&Buffer> {
        Some(self.queue.buffer())
    }
    fn offset(&self, slot: u32) -> u64 {
        self.offset[slot as usize]
    }
}
