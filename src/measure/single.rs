//! The depth-one loop: stamp, hand over, look until the completion is there, stamp.

use super::Control;
use crate::{
    engine::{Done, Engine, Fault},
    timing::{Counter, PhasedSample, Sample, Stamps},
};

/// A sample that knows how to take itself; one compiled loop for each kind.
pub trait Stamped: Stamps {
    /// Issues one command and stamps it.
    ///
    /// # Errors
    /// The engine's [`Fault`]; there is no sample then.
    fn take<E: Engine, C: Counter>(engine: &mut E, control: &Control) -> Result<Self, Fault>;
}

impl Stamped for Sample {
    #[inline(always)]
    fn take<E: Engine, C: Counter>(engine: &mut E, control: &Control) -> Result<Self, Fault> {
        let start = C::start();
        engine.submit(0)?;
        wait(engine, control)?;
        let stop = C::stop();
        Ok(Self { start, stop })
    }
}

impl Stamped for PhasedSample {
    #[inline(always)]
    fn take<E: Engine, C: Counter>(engine: &mut E, control: &Control) -> Result<Self, Fault> {
        let start = C::start();
        engine.submit(0)?;
        let submitted = C::start();
        wait(engine, control)?;
        let stop = C::stop();
        Ok(Self { start, submitted, stop })
    }
}

/// Looks for the completion. Only a look that found nothing goes on to ask whether the wait was given up.
#[inline(always)]
fn wait<E: Engine>(engine: &mut E, control: &Control) -> Result<(), Fault> {
    let mut done = Done::default();
    loop {
        engine.poll(&mut done)?;
        if done.any() {
            return Ok(());
        }
        if control.abandoned() {
            return Err(Fault::Abandoned);
        }
    }
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
        match S::take::<E, C>(engine, control) {
            Ok(taken) => *sample = taken,
            Err(fault) => return (index, Some(fault)),
        }
    }
    (samples.len(), None)
}
