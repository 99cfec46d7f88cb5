//! The engines that do nothing: what the loop still costs is the instrument's floor.

use super::{Done, Engine, Fault};

/// A command that completes at once.
#[derive(Debug, Default)]
pub struct Null;

impl Engine for Null {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        done.complete(0, Ok(()));
        Ok(())
    }
}

/// The same at any depth: commands complete in the order in which they were handed over, as soon as somebody looks.
#[derive(Debug, Default)]
pub struct NullQueue {
    depth: u32,
    oldest: u32,
    outstanding: u32,
}

impl NullQueue {
    /// A queue of `depth` slots.
    pub fn new(depth: u32) -> Self {
        Self { depth, ..Self::default() }
    }
}

impl Engine for NullQueue {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.outstanding += 1;
        Ok(())
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        for _ in 0..self.outstanding.min(D::MOST) {
            done.complete(self.oldest, Ok(()));
            self.oldest = if self.oldest + 1 == self.depth { 0 } else { self.oldest + 1 };
            self.outstanding -= 1;
        }
        Ok(())
    }
}
