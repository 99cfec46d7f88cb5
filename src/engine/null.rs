//! The engine that does nothing: what the loop still costs is the instrument's floor.

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
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
        done.complete();
        Ok(())
    }
}
