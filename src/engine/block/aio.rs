//! `libaio`: io_submit, and completions from the ring in user space or by io_getevents.

use super::{Block, Subject, completed, offsets::Offsets};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{aio::Queue, memory::Buffer},
};

/// How completions are reaped.
pub trait Reap {
    /// One look, or one wait.
    ///
    /// # Errors
    /// The errno of the call.
    fn reap(queue: &mut Queue) -> Result<Option<i64>, i32>;
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
    fn reap(queue: &mut Queue) -> Result<Option<i64>, i32> {
        Ok(queue.reap_ring())
    }
}

impl Reap for ByLook {
    #[inline(always)]
    fn reap(queue: &mut Queue) -> Result<Option<i64>, i32> {
        queue.look()
    }
}

impl Reap for BySleep {
    #[inline(always)]
    fn reap(queue: &mut Queue) -> Result<Option<i64>, i32> {
        queue.wait()
    }
}

/// One AIO request at a time.
#[derive(Debug)]
pub struct Aio<R: Reap> {
    queue: Queue,
    offsets: Offsets,
    offset: u64,
    bytes: u32,
    subject: Subject,
    reap: std::marker::PhantomData<R>,
}

impl<R: Reap> Aio<R> {
    /// The engine on a context that is set up.
    pub fn new(queue: Queue, offsets: Offsets, subject: Subject) -> Self {
        let bytes = queue.buffer().bytes();
        Self { queue, offsets, offset: 0, bytes, subject, reap: std::marker::PhantomData }
    }
}

impl<R: Reap> Engine for Aio<R> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.offset = self.offsets.draw();
        self.queue.set_offset(self.offset);
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.queue.submit().map_err(Fault::Submit)
    }

    #[inline(always)]
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
        if let Some(result) = R::reap(&mut self.queue).map_err(Fault::Poll)? {
            completed(result, self.bytes)?;
            done.complete();
        }
        Ok(())
    }

    fn explain(&self, fault: Fault) -> String {
        self.subject.explain(self.offset, fault)
    }
}

impl<R: Reap> Block for Aio<R> {
    fn buffer(&self) -> Option<&Buffer> {
        Some(self.queue.buffer())
    }
    fn offset(&self) -> u64 {
        self.offset
    }
}
