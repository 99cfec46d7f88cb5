//! The measuring loops, and the order in which they are run: warm-up, then chunks until a limit is reached.
//!
//! Callers must not assume that anything but the command happens between two stamps, nor that anything else may: time
//! limits, signals and progress are looked at between chunks of about 20 ms.

mod control;
mod noise;
mod single;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use nix::sched::sched_getcpu;

pub use control::{Control, Stop};
pub use noise::{Noise, listen};
pub use single::{Stamped, single};

use crate::{
    engine::{Engine, Fault},
    timing::{Counter, Sample},
};

/// Time that a chunk should take: short against a person's patience, long against what happens between chunks.
const CHUNK: Duration = Duration::from_millis(20);

/// When to stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Commands to issue and discard first.
    pub warmup: u64,
    /// Longest time of the measured part; none is no limit.
    pub duration: Option<Duration>,
    /// Whether a failed command is counted, and the run goes on.
    pub continue_on_error: bool,
    /// The processor that the thread is pinned to, if it must stay there.
    pub cpu: Option<usize>,
}

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    /// How many samples are valid, from the front; every one is one completed command.
    pub samples: usize,
    /// What ended it.
    pub end: End,
    /// Commands that failed while the run went on, those of the warm-up included, by [`Engine::fault_name`].
    pub failed: BTreeMap<String, u64>,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All samples were taken.
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
        /// Index of the command in its phase.
        index: u64,
        /// Why it failed.
        fault: Fault,
    },
}

/// Runs `limits.warmup` commands and discards them, then fills `samples` from the front.
///
/// Commands that fail take the place of samples, so that never more commands are issued than were asked for.
pub fn run<E, C, S>(engine: &mut E, samples: &mut [S], limits: Limits, control: &Control) -> Taken
where
    E: Engine,
    C: Counter,
    S: Stamped,
{
    let mut failed = BTreeMap::new();
    let (samples, end) = match warm_up::<E, C>(engine, &mut failed, limits, control) {
        Ok(()) => fill::<E, C, S>(engine, samples, &mut failed, limits, control),
        Err(end) => (0, end),
    };
    Taken { samples, end, failed }
}

/// Issues the commands of the warm-up.
///
/// # Errors
/// What ended the run in it.
fn warm_up<E, C>(
    engine: &mut E,
    failed: &mut BTreeMap<String, u64>,
    limits: Limits,
    control: &Control,
) -> Result<(), End>
where
    E: Engine,
    C: Counter,
{
    let mut scratch = [Sample { start: 0, stop: 0 }; 64];
    let mut left = limits.warmup;
    let mut batch = 1;
    while left > 0 {
        let size = left.min(batch) as usize;
        batch = (batch * 2).min(scratch.len() as u64); // One at first: a slow command shows progress, too.
        let (done, fault) = single::<E, C, _>(engine, &mut scratch[..size], control);
        left -= done as u64;
        control.advance(done as u64);
        if let Some(fault) = fault {
            tolerate(engine, fault, limits, failed)
                .map_err(|fault| fault_end(control, true, limits.warmup - left, fault))?;
            left -= 1;
            control.advance(1);
        }
        if let Some(stop) = control.stop() {
            return Err(End::Stopped(stop));
        }
    }
    Ok(())
}

fn fill<E, C, S>(
    engine: &mut E,
    mut samples: &mut [S],
    failed: &mut BTreeMap<String, u64>,
    limits: Limits,
    control: &Control,
) -> (usize, End)
where
    E: Engine,
    C: Counter,
    S: Stamped,
{
    let started = Instant::now();
    let mut done = 0;
    let mut chunk = 1; // At first: a slow command shows progress, too.
    loop {
        if let Some(stop) = control.stop() {
            return (done, End::Stopped(stop));
        }
        // Between chunks, so a thread that was moved away and back within one is not found.
        if let (Some(from), Ok(to)) = (limits.cpu, sched_getcpu())
            && from != to
        {
            return (done, End::Migrated { from, to });
        }
        if done == samples.len() {
            return (done, End::Count);
        }
        let elapsed = started.elapsed();
        if limits.duration.is_some_and(|limit| elapsed >= limit) {
            return (done, End::Duration);
        }
        let size = chunk.min(samples.len() - done);
        let (taken, fault) = single::<E, C, S>(engine, &mut samples[done..done + size], control);
        done += taken;
        control.advance(taken as u64);
        if let Some(fault) = fault {
            if let Err(fault) = tolerate(engine, fault, limits, failed) {
                return (done, fault_end(control, false, done as u64, fault));
            }
            control.advance(1);
            let room = samples.len() - 1;
            samples = &mut samples[..room];
        }
        let left = limits.duration.map(|limit| limit.saturating_sub(elapsed));
        // The pace is that of the commands issued: a fault cuts a chunk short.
        let issued = taken + usize::from(fault.is_some());
        chunk = next_chunk(issued, started.elapsed() - elapsed, left);
    }
}

/// Counts a fault if the run may go on after it. Data that is wrong ends it always, and so does a fault after which nobody
/// knows what is still in flight: a wait that was given up, a queue that did not take the command or could not be asked.
fn tolerate<E: Engine>(
    engine: &E,
    fault: Fault,
    limits: Limits,
    failed: &mut BTreeMap<String, u64>,
) -> Result<(), Fault> {
    if !limits.continue_on_error || !matches!(fault, Fault::Failed(_) | Fault::Completion { .. } | Fault::Short(_)) {
        return Err(fault);
    }
    *failed.entry(engine.fault_name(fault)).or_default() += 1;
    Ok(())
}

/// Sizes the next chunk by the pace of the last one, growing at most eightfold; never longer than the time that is left.
fn next_chunk(size: usize, took: Duration, left: Option<Duration>) -> usize {
    let aim = left.map_or(CHUNK, |left| left.min(CHUNK));
    let per_command_ns = (took.as_nanos() / size.max(1) as u128).max(1);
    let wanted = usize::try_from(aim.as_nanos() / per_command_ns).unwrap_or(usize::MAX);
    wanted.clamp(1, size.saturating_mul(8))
}

/// A wait that was given up because the run was told to stop is that stop, not a failed command.
fn fault_end(control: &Control, warmup: bool, index: u64, fault: Fault) -> End {
    match (fault, control.stop()) {
        (Fault::Abandoned, Some(stop)) => End::Stopped(stop),
        _ => End::Fault { warmup, index, fault },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::{Done, Null},
        timing::{MonotonicRaw, Stamps, filled},
    };

    /// Fails at one command, or never completes it.
    struct Broken {
        at: u64,
        issued: u64,
        hangs: bool,
    }

    impl Engine for Broken {
        fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
            Ok(())
        }
        fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
            self.issued += 1;
            if self.issued - 1 == self.at && !self.hangs { Err(Fault::Failed(5)) } else { Ok(()) }
        }
        fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
            if self.issued - 1 != self.at {
                done.complete();
            }
            Ok(())
        }
    }

    #[test]
    fn exactly_the_count_is_measured_and_exactly_the_warmup_is_discarded() {
        let control = Control::default();
        let mut engine = Broken { at: u64::MAX, issued: 0, hangs: false };
        let mut samples = filled::<Sample>(1234);
        let limits = Limits { warmup: 77, ..Limits::default() };
        let taken = run::<_, MonotonicRaw, _>(&mut engine, &mut samples, limits, &control);
        assert_eq!((taken.samples, taken.end, engine.issued), (1234, End::Count, 1234 + 77));
        assert!(samples.iter().all(|sample| sample.start() <= sample.stop()));
        assert!(samples.windows(2).all(|pair| pair[0].stop() <= pair[1].start()));
    }

    #[test]
    fn a_fault_keeps_the_samples_before_it_and_names_its_command() {
        let mut engine = Broken { at: 100, issued: 0, hangs: false };
        let mut samples = filled::<Sample>(200);
        let taken = run::<_, MonotonicRaw, _>(&mut engine, &mut samples, Limits::default(), &Control::default());
        assert_eq!(taken.samples, 100);
        assert_eq!(taken.end, End::Fault { warmup: false, index: 100, fault: Fault::Failed(5) });
        assert!(taken.failed.is_empty());
    }

    #[test]
    fn a_run_that_goes_on_counts_failed_commands_and_issues_no_more_for_them() {
        for (at, warmup, measured) in [(0, 10, 200), (9, 10, 200), (10, 10, 199), (109, 10, 199), (209, 10, 199)] {
            let mut engine = Broken { at, issued: 0, hangs: false };
            let mut samples = filled::<Sample>(200);
            let limits = Limits { warmup, continue_on_error: true, ..Limits::default() };
            let taken = run::<_, MonotonicRaw, _>(&mut engine, &mut samples, limits, &Control::default());
            assert_eq!((taken.samples, taken.end, engine.issued), (measured, End::Count, 210), "{at}");
            assert_eq!(taken.failed, BTreeMap::from([("EIO".to_string(), 1)]), "{at}");
        }
    }

    /// Refuses its first commands at once, then takes its time.
    struct LateStart {
        refusals: u32,
    }

    impl Engine for LateStart {
        fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
            Ok(())
        }
        fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
            if self.refusals > 0 {
                self.refusals -= 1;
                return Err(Fault::Failed(libc::EIO));
            }
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        }
        fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
            done.complete();
            Ok(())
        }
    }

    #[test]
    fn limits_are_kept_after_a_burst_of_failures() {
        let mut samples = filled::<Sample>(3000);
        let duration = Some(Duration::from_millis(100));
        let limits = Limits { duration, continue_on_error: true, ..Limits::default() };
        let mut engine = LateStart { refusals: 1000 };
        let taken = run::<_, MonotonicRaw, _>(&mut engine, &mut samples, limits, &Control::default());
        // All would take two seconds.
        assert_eq!((taken.end, &taken.failed), (End::Duration, &BTreeMap::from([("EIO".to_string(), 1000)])));
    }

    #[test]
    fn a_command_that_never_completes_is_given_up_when_told() {
        let control = Control::default();
        let mut engine = Broken { at: 10, issued: 0, hangs: true };
        let mut samples = filled::<Sample>(20);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                control.request(Stop::Stalled);
                control.abandon();
            });
            let taken = run::<_, MonotonicRaw, _>(&mut engine, &mut samples, Limits::default(), &control);
            assert_eq!((taken.samples, taken.end), (10, End::Stopped(Stop::Stalled)));
        });
    }

    #[test]
    fn a_time_limit_ends_the_run_with_what_was_measured() {
        let mut samples = filled::<Sample>(1 << 24);
        let limits = Limits { duration: Some(Duration::from_millis(30)), ..Limits::default() };
        let taken = run::<_, MonotonicRaw, _>(&mut Null, &mut samples, limits, &Control::default());
        assert_eq!(taken.end, End::Duration);
        assert!(taken.samples > 0 && taken.samples < samples.len());
    }

    #[test]
    fn a_chunk_follows_the_pace() {
        assert_eq!(next_chunk(16, Duration::from_micros(1), None), 128);
        assert_eq!(next_chunk(128, Duration::from_millis(128), None), 20);
        assert_eq!(next_chunk(1, Duration::from_secs(1), None), 1);
    }
}
