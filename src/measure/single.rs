//! The depth-one loop: stamp, hand over, look until the completion is there, stamp.

use super::{
    Control,
    pace::{AtOnce, Pace, Timetable},
};
use crate::{
    engine::{Engine, Fault, One},
    timing::{Counter, PacedSample, PhasedSample, Sample, Stamps},
};

/// A sample that knows how to take itself; one compiled loop for each kind.
pub trait Stamped: Stamps {
    /// The stamps of a command in flight.
    type Open: Copy + Default;
    /// When its commands are due.
    type Pace: Pace;

    /// Hands a command over that was due at `intended`.
    ///
    /// # Errors
    /// The engine's [`Fault`]; the command is not in flight then.
    fn open<E: Engine, C: Counter>(engine: &mut E, slot: u32, intended: u64) -> Result<Self::Open, Fault>;

    /// Makes it a sample, its completion having been seen at `stop`.
    fn close(open: Self::Open, stop: u64) -> Self;
}

impl Stamped for Sample {
    type Open = u64;
    type Pace = AtOnce;

    #[inline(always)]
    fn open<E: Engine, C: Counter>(engine: &mut E, slot: u32, _intended: u64) -> Result<u64, Fault> {
        let start = C::start();
        engine.submit(slot)?;
        Ok(start)
    }

    #[inline(always)]
    fn close(start: u64, stop: u64) -> Self {
        Self { start, stop }
    }
}

impl Stamped for PhasedSample {
    type Open = (u64, u64);
    type Pace = AtOnce;

    #[inline(always)]
    fn open<E: Engine, C: Counter>(engine: &mut E, slot: u32, _intended: u64) -> Result<(u64, u64), Fault> {
        let start = C::start();
        engine.submit(slot)?;
        Ok((start, C::start()))
    }

    #[inline(always)]
    fn close((start, submitted): (u64, u64), stop: u64) -> Self {
        Self { start, submitted, stop }
    }
}

impl Stamped for PacedSample {
    type Open = (u64, u64, u64);
    type Pace = Timetable;

    #[inline(always)]
    fn open<E: Engine, C: Counter>(engine: &mut E, slot: u32, intended: u64) -> Result<(u64, u64, u64), Fault> {
        let start = C::start();
        engine.submit(slot)?;
        Ok((intended, start, C::start()))
    }

    #[inline(always)]
    fn close((intended, start, submitted): (u64, u64, u64), stop: u64) -> Self {
        Self { intended, start, submitted, stop }
    }
}

/// Issues one command and stamps it.
#[inline(always)]
fn take<E: Engine, C: Counter, S: Stamped>(engine: &mut E, control: &Control) -> Result<S, Fault> {
    let open = S::open::<E, C>(engine, 0, 0)?;
    wait(engine, control)?;
    let stop = C::stop();
    Ok(S::close(open, stop))
}

/// Looks for the completion. Only a look that found nothing goes on to ask whether the wait was given up.
#[inline(always)]
fn wait<E: Engine>(engine: &mut E, control: &Control) -> Result<(), Fault> {
    let mut done = One::default();
    loop {
        engine.poll(&mut done)?;
        if let Some(outcome) = done.outcome() {
            return outcome;
        }
        if control.abandoned() {
            return Err(Fault::Abandoned);
        }
    }
}

/// Issues one command in the first slot of an engine that has nothing in flight, without a stamp.
///
/// # Errors
/// Why it failed.
pub fn last<E: Engine>(engine: &mut E, control: &Control) -> Result<(), Fault> {
    engine.prepare(0)?;
    engine.conclude(0);
    engine.submit(0)?;
    wait(engine, control)
}

/// Fills `samples` from the front, one command each. Returns how many were taken, and the fault that ended it early.
#[inline(never)]
pub fn single<E: Engine, C: Counter, S: Stamped>(
    engine: &mut E,
    samples: &mut [S],
    control: &Control,
) -> (usize, Option<Fault>) {
    for (index, sample) in samples.iter_mut().enumerate() {
        if let Err(fault) = engine.prepare(0) {
            return (index, Some(fault));
        }
        match take::<E, C, S>(engine, control) {
            Ok(taken) => *sample = taken,
            Err(fault) => return (index, Some(fault)),
        }
    }
    (samples.len(), None)
}
