//! A busy wait of a known time: the truth that the instrument is checked against.

use std::{marker::PhantomData, time::Duration};

use super::{Done, Engine, Fault};
use crate::timing::Counter;

/// A command that completes as soon as the clock in use has advanced by the delay.
#[derive(Debug)]
pub struct Spin<C> {
    delay_ticks: u64,
    due: u64,
    counter: PhantomData<C>,
}

impl<C: Counter> Spin<C> {
    /// A wait of `delay`, rounded to whole ticks of a clock that runs at `ticks_per_ns`.
    pub fn new(delay: Duration, ticks_per_ns: f64) -> Self {
        Self { delay_ticks: (delay.as_nanos() as f64 * ticks_per_ns).round() as u64, due: 0, counter: PhantomData }
    }
}

impl<C: Counter> Engine for Spin<C> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.due = C::now().wrapping_add(self.delay_ticks);
        Ok(())
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        // The difference is read as signed, so that it stays right where the counter wraps.
        if C::now().wrapping_sub(self.due) as i64 >= 0 {
            done.complete(0, Ok(()));
        }
        Ok(())
    }
}
