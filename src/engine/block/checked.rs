//! `--verify`: an engine whose data is checked, outside the stamps.
//!
//! Reads are compared with the pattern before the next command, into a buffer that was wiped before. Writes carry the
//! pattern of their place. Both touch the buffer between commands, so the processor's caches differ from a plain run.

use super::{Block, pattern, pattern::Mismatch};
use crate::{
    engine::{Done, Engine, Fault},
    sys::memory::Buffer,
};

/// Passes completions on, and remembers whose data there is to look at.
struct Noted<'a, D> {
    done: &'a mut D,
    pending: &'a mut [bool],
}

impl<D: Done> Done for Noted<'_, D> {
    const MOST: u32 = D::MOST;

    #[inline(always)]
    fn complete(&mut self, slot: u32, outcome: Result<(), Fault>) {
        self.pending[slot as usize] = outcome.is_ok();
        self.done.complete(slot, outcome);
    }
}

/// An engine with its reads compared, or its writes filled.
pub struct Checked<E: Block> {
    engine: E,
    seed: u64,
    writes: bool,
    /// Whether a slot's command has completed and its data was not looked at.
    pending: Box<[bool]>,
    mismatch: Option<Mismatch>,
}

impl<E: Block> Checked<E> {
    /// Checks what `engine` moves against the pattern of `seed`.
    pub fn new(engine: E, writes: bool, seed: u64) -> Self {
        let pending = vec![false; engine.buffer().map_or(1, Buffer::pieces) as usize].into_boxed_slice();
        Self { engine, seed, writes, pending, mismatch: None }
    }

    /// Looks at the data of the last commands.
    ///
    /// # Errors
    /// [`Fault::Data`]; [`Checked::mismatch`] has the place.
    pub fn check(&mut self) -> Result<(), Fault> {
        (0..self.pending.len() as u32).try_for_each(|slot| self.check_slot(slot))
    }

    fn check_slot(&mut self, slot: u32) -> Result<(), Fault> {
        if !std::mem::take(&mut self.pending[slot as usize]) || self.writes {
            return Ok(());
        }
        let Some(buffer) = self.engine.buffer() else { return Ok(()) };
        let (region, place, bytes) = (buffer.region(), buffer.place(slot), buffer.bytes() as usize);
        let checked = pattern::check(region, place, bytes, self.engine.offset(slot), self.seed);
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
        self.check_slot(slot)?;
        self.engine.prepare(slot)?;
        if let Some(buffer) = self.engine.buffer() {
            let (region, place, bytes) = (buffer.region(), buffer.place(slot), buffer.bytes() as usize);
            if self.writes {
                pattern::fill(region, place, bytes, self.engine.offset(slot), self.seed);
            } else {
                pattern::wipe(region, place, bytes);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, slot: u32) -> Result<(), Fault> {
        self.engine.submit(slot)
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        self.engine.poll(&mut Noted { done, pending: &mut self.pending })
    }

    fn conclude(&mut self, slot: u32) {
        self.engine.conclude(slot);
    }

    fn slot_bytes(&self) -> usize {
        self.engine.slot_bytes()
    }

    fn explain(&self, slot: u32, fault: Fault) -> String {
        match self.mismatch {
            Some(mismatch) if fault == Fault::Data => mismatch.to_string(),
            _ => self.engine.explain(slot, fault),
        }
    }

    fn fault_name(&self, fault: Fault) -> String {
        self.engine.fault_name(fault)
    }
}
