//! `--verify`: an engine whose data is checked, outside the stamps.
//!
//! Reads are compared with the pattern before the next command, into a buffer that was wiped before. Writes carry the
//! pattern of their place. Both touch the buffer between commands, so the processor's caches differ from a plain run.

use super::{Block, data, pattern, pattern::Mismatch};
use crate::engine::{Done, Engine, Fault};

/// An engine with its reads compared, or its writes filled.
pub struct Checked<E: Block> {
    engine: E,
    seed: u64,
    writes: bool,
    /// Whether a command has completed whose data was not looked at.
    pending: bool,
    mismatch: Option<Mismatch>,
}

impl<E: Block> Checked<E> {
    /// Checks what `engine` moves against the pattern of `seed`.
    pub fn new(engine: E, writes: bool, seed: u64) -> Self {
        Self { engine, seed, writes, pending: false, mismatch: None }
    }

    /// Looks at the data of the last command.
    ///
    /// # Errors
    /// [`Fault::Data`]; [`Checked::mismatch`] has the place.
    pub fn check(&mut self) -> Result<(), Fault> {
        if !std::mem::take(&mut self.pending) || self.writes {
            return Ok(());
        }
        let Some((region, bytes)) = self.engine.buffer().map(data) else { return Ok(()) };
        let checked = pattern::check(region, bytes, self.engine.offset(), self.seed);
        checked.map_err(|mismatch| {
            self.mismatch = Some(mismatch);
            Fault::Data
        })
    }

    /// What was wrong with the data.
    pub fn mismatch(&self) -> Option<Mismatch> {
        self.mismatch
    }

    /// The engine within.
    pub fn engine(&self) -> &E {
        &self.engine
    }
}

impl<E: Block> Engine for Checked<E> {
    fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
        self.check()?;
        self.engine.prepare(slot)?;
        if let Some((region, bytes)) = self.engine.buffer().map(data) {
            if self.writes {
                pattern::fill(region, bytes, self.engine.offset(), self.seed);
            } else {
                pattern::wipe(region, bytes);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, slot: u32) -> Result<(), Fault> {
        self.engine.submit(slot)
    }

    #[inline(always)]
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
        self.engine.poll(done)?;
        self.pending = done.any();
        Ok(())
    }

    fn explain(&self, fault: Fault) -> String {
        match self.mismatch {
            Some(mismatch) if fault == Fault::Data => mismatch.to_string(),
            _ => self.engine.explain(fault),
        }
    }

    fn fault_name(&self, fault: Fault) -> String {
        self.engine.fault_name(fault)
    }
}
