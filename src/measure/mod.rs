//! The measuring loops, and the order in which they are run: warm-up, then chunks until a limit is reached.
//!
//! Callers must not assume that anything but the command happens between two stamps, nor that anything else may: time
//! limits, signals and progress are looked at between chunks of about 20 ms.

mod control;
mod depths;
mod noise;
mod pace;
mod record;
mod single;
#[cfg(test)]
mod tests;
mod window;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use nix::sched::sched_getcpu;

pub use control::{Control, Stop};
pub use depths::{BatchClass, DepthClass, Depths};
pub use noise::{Noise, listen};
pub use pace::{AtOnce, Pace, Timetable};
pub use record::Record;
pub use single::{Stamped, last, single};
pub use window::Window;

use crate::{
    engine::{Engine, Fault},
    timing::Counter,
};

/// Time that a chunk should take: short against a person's patience, long against what happens between chunks.
const CHUNK: Duration = Duration::from_millis(20);

/// When to stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Commands to issue and discard first.
    pub warmup: u64,
    /// Time to go on with that at least.
    pub warmup_time: Option<Duration>,
    /// Most commands to measure; none is no limit but the room for samples.
    pub count: Option<u64>,
    /// Longest time of the measured part; none is no limit.
    pub duration: Option<Duration>,
    /// Whether a failed command is counted, and the run goes on.
    pub continue_on_error: bool,
    /// The processor that the thread is pinned to, if it must stay there.
    pub cpu: Option<usize>,
}

/// How many commands are in flight.
pub enum Way<S: Stamped> {
    /// One: the next is issued after the one before has completed.
    Single,
    /// As many as the window has slots for.
    Window(Box<Window<S>>),
}

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Samples taken; every one is one completed command.
    pub samples: u64,
    /// What ended it.
    pub end: End,
    /// Commands that failed while the run went on, those of the warm-up included, by [`Engine::fault_name`].
    pub failed: BTreeMap<String, u64>,
    /// How deep the window was; of no meaning at depth one.
    pub depths: Depths,
    /// Commands that the timetable wanted and that were never handed over, since the run ended before.
    pub overdue: u64,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// All samples were taken.
    #[default]
    Count,
    /// The time limit was reached.
    Duration,
    /// The run was told to stop.
    Stopped(Stop),
    /// The thread was moved to another processor, so that stamps may be of two counters.
    Migrated {
        /// Where it began.
        from: usize,
        /// Where it was found.
        to: usize,
    },
    /// This command failed; the index counts from 0 in the phase.
    Fault {
        /// Whether it was a warm-up command.
        warmup: bool,
        /// Commands of its phase that had completed before.
        index: u64,
        /// Its slot.
        slot: u32,
        /// Why it failed.
        fault: Fault,
    },
}

/// Runs the warm-up and discards it, then fills `record` until a limit is reached.
///
/// Commands that fail take the place of samples, so that never more commands are issued than were asked for.
pub fn run<E, C, S>(
    engine: &mut E,
    way: &mut Way<S>,
    record: &mut dyn Record<S>,
    limits: Limits,
    control: &Control,
) -> Taken
where
    E: Engine,
    C: Counter,
    S: Stamped,
{
    let mut course = Course { engine, way, limits, control, failed: BTreeMap::new(), samples: 0, faults: 0 };
    let end = match course.warm_up::<C>() {
        Ok(()) => course.fill::<C>(record),
        Err(end) => end,
    };
    let (depths, overdue) = match &course.way {
        Way::Single => (Depths::default(), 0),
        Way::Window(window) => (window.depths().clone(), window.overdue(C::now())),
    };
    Taken { samples: course.samples, end, failed: course.failed, depths, overdue }
}

/// A run on its way.
struct Course<'a, E, S: Stamped> {
    engine: &'a mut E,
    way: &'a mut Way<S>,
    limits: Limits,
    control: &'a Control,
    failed: BTreeMap<String, u64>,
    /// Samples taken.
    samples: u64,
    /// Measured commands that failed while the run went on.
    faults: u64,
}

/// What became of a part of a run.
struct Part {
    issued: u64,
    taken: usize,
    discarded: u64,
    fault: Option<(u32, Fault)>,
    /// Whether the fault takes the place of a sample: not if its command was of the warm-up.
    counts: bool,
}

impl<E: Engine, S: Stamped> Course<'_, E, S> {
    /// Issues `issue` commands, and takes the samples of those that complete meanwhile.
    fn part<C: Counter>(&mut self, samples: &mut [S], issue: usize) -> Part {
        let part = match self.way {
            Way::Single => {
                let (taken, fault) = single::<E, C, S>(self.engine, &mut samples[..issue], self.control);
                let issued = (taken + usize::from(fault.is_some())) as u64;
                Part { issued, taken, discarded: 0, fault: fault.map(|fault| (0, fault)), counts: true }
            }
            Way::Window(window) => {
                let advance = window.advance::<E, C>(self.engine, samples, issue, self.control);
                let window::Advance { issued, taken, discarded, fault, of_warmup } = advance;
                Part { issued: issued as u64, taken, discarded: discarded as u64, fault, counts: !of_warmup }
            }
        };
        self.control.advance(part.taken as u64 + part.discarded + u64::from(part.fault.is_some()));
        part
    }

    /// Issues the commands of the warm-up. A window is full after it, unless there is a timetable to begin.
    ///
    /// # Errors
    /// What ended the run in it.
    fn warm_up<C: Counter>(&mut self) -> Result<(), End> {
        let started = Instant::now();
        let mut scratch = [S::FILL; 64];
        let (mut issued, mut completed) = (0, 0);
        let mut batch = 1;
        while issued < self.limits.warmup || self.limits.warmup_time.is_some_and(|time| started.elapsed() < time) {
            let size = self.limits.warmup.saturating_sub(issued).clamp(1, batch) as usize;
            batch = (batch * 2).min(scratch.len() as u64); // One at first: a slow command shows progress, too.
            let part = self.part::<C>(&mut scratch[..size], size);
            issued += part.issued;
            completed += part.taken as u64 + part.discarded;
            if let Some((slot, fault)) = part.fault {
                self.tolerate(fault).map_err(|fault| self.fault_end(true, completed, slot, fault))?;
            }
            if let Some(stop) = self.control.stop() {
                return Err(End::Stopped(stop));
            }
        }
        if S::Pace::OPEN_LOOP {
            self.drain::<C>(&mut []).map_err(|(slot, fault)| self.fault_end(true, completed, slot, fault))?;
        }
        if let Way::Window(window) = self.way {
            window.measure_from::<C>();
        }
        Ok(())
    }

    fn fill<C: Counter>(&mut self, record: &mut dyn Record<S>) -> End {
        let started = Instant::now();
        let mut issued = 0; // Measured commands.
        let mut chunk = 1; // At first: a slow command shows progress, too.
        let end = loop {
            if let Some(stop) = self.control.stop() {
                break End::Stopped(stop);
            }
            // Between chunks, so a thread that was moved away and back within one is not found.
            if let (Some(from), Ok(to)) = (self.limits.cpu, sched_getcpu())
                && from != to
            {
                return End::Migrated { from, to };
            }
            let in_flight = issued - self.samples - self.faults;
            let room = (record.room().len() as u64).saturating_sub(in_flight);
            let left = self.limits.count.map_or(room, |count| count.saturating_sub(issued).min(room));
            if left == 0 {
                break End::Count;
            }
            let elapsed = started.elapsed();
            if self.limits.duration.is_some_and(|limit| elapsed >= limit) {
                break End::Duration;
            }
            let size = (chunk as u64).min(left) as usize;
            let part = self.part::<C>(record.room(), size);
            issued += part.issued;
            self.samples += part.taken as u64;
            record.taken(part.taken);
            if let Some((slot, fault)) = part.fault {
                if let Err(fault) = self.tolerate(fault) {
                    return self.fault_end(false, self.samples, slot, fault);
                }
                self.faults += u64::from(part.counts);
            }
            let left = self.limits.duration.map(|limit| limit.saturating_sub(elapsed));
            // The pace is that of the commands issued: a fault cuts a chunk short.
            chunk = next_chunk(part.issued as usize, started.elapsed() - elapsed, left);
        };
        match self.drain_into::<C>(record) {
            Ok(()) => end,
            Err((slot, fault)) => self.fault_end(false, self.samples, slot, fault),
        }
    }

    /// Waits for what is in flight, and takes its samples.
    fn drain_into<C: Counter>(&mut self, record: &mut dyn Record<S>) -> Result<(), (u32, Fault)> {
        let Way::Window(_) = self.way else { return Ok(()) };
        let before = self.samples;
        let drained = self.drain::<C>(record.room());
        record.taken((self.samples - before) as usize);
        drained
    }

    fn drain<C: Counter>(&mut self, mut samples: &mut [S]) -> Result<(), (u32, Fault)> {
        while let Way::Window(window) = &self.way
            && window.outstanding() > 0
        {
            let part = self.part::<C>(samples, 0);
            samples = &mut samples[part.taken..];
            self.samples += part.taken as u64;
            if let Some((slot, fault)) = part.fault {
                self.tolerate(fault).map_err(|fault| (slot, fault))?;
                self.faults += u64::from(part.counts);
            }
        }
        Ok(())
    }

    /// Counts a fault if the run may go on after it. Data that is wrong ends it always, and so does a fault after which nobody
    /// knows what is still in flight: a wait that was given up, a queue that did not take the command or could not be asked.
    fn tolerate(&mut self, fault: Fault) -> Result<(), Fault> {
        let bearable = matches!(fault, Fault::Failed(_) | Fault::Completion { .. } | Fault::Short(_));
        if !self.limits.continue_on_error || !bearable {
            return Err(fault);
        }
        *self.failed.entry(self.engine.fault_name(fault)).or_default() += 1;
        Ok(())
    }

    /// A wait that was given up because the run was told to stop is that stop, not a failed command.
    fn fault_end(&self, warmup: bool, index: u64, slot: u32, fault: Fault) -> End {
        match (fault, self.control.stop()) {
            (Fault::Abandoned, Some(stop)) => End::Stopped(stop),
            _ => End::Fault { warmup, index, slot, fault },
        }
    }
}

/// Sizes the next chunk by the pace of the last one, growing at most eightfold; never longer than the time that is left.
fn next_chunk(size: usize, took: Duration, left: Option<Duration>) -> usize {
    let aim = left.map_or(CHUNK, |left| left.min(CHUNK));
    let per_command_ns = (took.as_nanos() / size.max(1) as u128).max(1);
    let wanted = usize::try_from(aim.as_nanos() / per_command_ns).unwrap_or(usize::MAX);
    wanted.clamp(1, size.max(1).saturating_mul(8))
}
