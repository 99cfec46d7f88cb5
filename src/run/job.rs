//! One measured point, whatever the engine: stamps, counters, the verification command, and the figures from them.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use super::{
    Placed, Signals,
    figures::{self, Made},
    monitor::Monitor,
    surroundings::Surroundings,
};
use crate::{
    engine::{Engine, Fault, Granted},
    error::{Error, Result},
    host::Usage,
    measure::{Control, End, Limits, Stamped, Stop, Taken, run, single},
    peer::Running,
    probe::Plan,
    report::result::{CpuUse, Instrument, Point, Verified},
    sys::interrupt::Sleeper,
    timing::{Calibration, Counter, MonotonicRaw, PhasedSample, Sample, Source, Tsc, filled},
};

/// Longest wait for one command without payload; see [`Job::stall`].
const STALL: Duration = Duration::from_secs(10);

/// What all points of a run share.
pub(crate) struct Job<'a> {
    pub plan: &'a Plan,
    pub placed: &'a Placed,
    pub source: Source,
    pub ticks_per_ns: f64,
    pub instrument: &'a Instrument,
    pub signals: &'a Signals,
    progress: bool,
}

/// What all measurements of a result share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub signals: &'a Signals,
    pub clock: &'a Calibration,
    pub instrument: &'a Instrument,
    pub progress: bool,
}

/// How the verification command is made ready, where the engine has one.
pub(crate) type PrepareLast<'a> = Option<&'a dyn Fn()>;

/// A point as measured, before what only the engine's own set-up knows is added.
#[cfg_attr(not(feature = "rdma"), allow(dead_code))] // Only engines that move data look at what was issued.
pub(crate) struct Run {
    pub point: Point,
    /// Commands that completed, warm-up and verification included.
    pub issued: u64,
    /// Whether the verification command completed.
    pub last_completed: bool,
    pub failure: Option<Error>,
}

impl<'a> Job<'a> {
    pub fn new(plan: &'a Plan, placed: &'a Placed, shared: &Shared<'a>) -> Self {
        let Shared { signals, clock, instrument, progress } = *shared;
        let (source, ticks_per_ns) = (clock.facts().source, clock.ticks_per_ns());
        Self { plan, placed, source, ticks_per_ns, instrument, signals, progress }
    }

    /// Measures one point with an engine that is ready.
    ///
    /// # Errors
    /// Those that concern the whole run: no counters, no memory, a clock that ran backwards. A command that failed leaves a
    /// partial point instead.
    pub fn run<E: Engine>(
        &self,
        engine: &mut E,
        bs_bytes: Option<u64>,
        granted: Granted,
        prepare_last: PrepareLast,
        peer: Option<&Running>,
    ) -> Result<Run> {
        let ready = Ready { job: self, bs_bytes, granted, prepare_last, peer };
        match (self.source, self.plan.phases) {
            (Source::Tsc, false) => ready.run::<E, Tsc, Sample>(engine),
            (Source::Tsc, true) => ready.run::<E, Tsc, PhasedSample>(engine),
            (Source::Monotonic, false) => ready.run::<E, MonotonicRaw, Sample>(engine),
            (Source::Monotonic, true) => ready.run::<E, MonotonicRaw, PhasedSample>(engine),
        }
    }

    /// Longest wait for one command: 10 s, and a second more for every 16 MiB, which software devices need.
    fn stall(bs_bytes: Option<u64>) -> Duration {
        STALL + Duration::from_secs(bs_bytes.unwrap_or(0) >> 24)
    }
}

/// Everything that a point needs but the engine.
struct Ready<'a> {
    job: &'a Job<'a>,
    bs_bytes: Option<u64>,
    granted: Granted,
    prepare_last: PrepareLast<'a>,
    peer: Option<&'a Running>,
}

impl Ready<'_> {
    fn run<E: Engine, C: Counter, S: Stamped>(self, engine: &mut E) -> Result<Run> {
        let plan = self.job.plan;
        let control = Control::default();
        let mut samples = filled::<S>(plan.capacity as usize);
        let continue_on_error = plan.block.as_ref().is_some_and(|block| block.continue_on_error);
        let cpu = self.job.placed.cpu;
        let limits = Limits { warmup: plan.warmup, duration: plan.duration, continue_on_error, cpu: Some(cpu) };
        let stall = Job::stall(self.bs_bytes);
        let sleeper = Sleeper::current().map_err(|source| Error::call("SIGURG", "sigaction", source, ""))?;
        let monitor = Monitor {
            control: &control,
            signals: self.job.signals,
            sleeper,
            total: plan.count.map(|count| count.saturating_add(plan.warmup)),
            warmup: plan.warmup,
            duration: plan.duration,
            stall,
            progress: self.job.progress,
            peer: self.peer,
            cpus: &self.job.placed.others,
        };
        let mut surroundings = Surroundings::begin(self.job, &self.granted, C::now);
        let finished = AtomicBool::new(false);
        let (measured, peer_failure) = std::thread::scope(|scope| {
            let watcher = std::thread::Builder::new().name("monitor".into());
            let (away, started) = mpsc::channel();
            let watcher = watcher
                .spawn_scoped(scope, || monitor.watch(&finished, surroundings.moments.as_mut(), away))
                .map_err(|source| Error::call("monitor", "pthread_create", source, ""))?;
            // It begins on this processor, where it would not get away from a thread of real-time priority.
            let _ = started.recv();
            let measured = Usage::now(Some(cpu)).and_then(|before| {
                let taken = run::<E, C, S>(engine, &mut samples, limits, &control);
                let usage = Usage::now(Some(cpu))?.since(&before);
                let last = match taken.end {
                    End::Fault { .. } | End::Migrated { .. } | End::Stopped(Stop::Stalled | Stop::PeerGone) => None,
                    _ => self.prepare_last,
                };
                let last = last.map(|prepare| {
                    prepare();
                    let mut one = filled::<Sample>(1);
                    let (done, fault) = single::<E, C, _>(engine, &mut one, &control);
                    control.advance(done as u64);
                    fault.map_or(Ok(()), Err)
                });
                Ok((taken, usage, last))
            });
            finished.store(true, Relaxed);
            watcher.thread().unpark();
            measured.map(|measured| (measured, watcher.join().unwrap_or(None)))
        })?;
        let (Taken { samples: done, end, failed }, usage, last) = measured;
        let samples = &samples[..done];
        check_order(samples)?;
        let migrated = nix::sched::sched_getcpu().is_ok_and(|now| now != cpu);
        let failure = failure(end, last, peer_failure, stall, engine);
        let last_completed = last == Some(Ok(()));
        let made = Made { granted: self.granted, bs_bytes: self.bs_bytes, verifiable: self.prepare_last.is_some() };
        let mut point = figures::point(self.job, samples, made, end, CpuUse { usage, migrated });
        point.errors.extend(figures::failed_commands(failed));
        surroundings.explain(self.job, &mut point, samples);
        if last_completed {
            point.verified = Verified::Yes; // Until a check at either end says otherwise.
        }
        point.ended_because = failure.as_ref().map(ToString::to_string);
        Ok(Run { point, issued: control.done(), last_completed, failure })
    }
}

/// A counter that ran backwards makes every later figure meaningless, so it is looked for before anything is computed.
fn check_order<S: Stamped>(samples: &[S]) -> Result<()> {
    let mut last = 0;
    for (index, sample) in samples.iter().enumerate() {
        let stamps = [sample.start(), sample.submitted().unwrap_or(sample.start()), sample.stop()];
        for stamp in stamps {
            if stamp < last {
                return Err(Error::Clock(format!(
                    "the counter ran backwards at command {index}, from {last} to {stamp} ticks. Use --clock monotonic"
                )));
            }
            last = stamp;
        }
    }
    Ok(())
}

/// Words for what ended the run, if it was a failure.
fn failure<E: Engine>(
    end: End,
    last: Option<std::result::Result<(), Fault>>,
    peer_failure: Option<Error>,
    stall: Duration,
    engine: &E,
) -> Option<Error> {
    match (end, last) {
        (End::Migrated { from, to }, _) => Some(Error::Migrated { from, to }),
        (End::Stopped(Stop::PeerGone), _) => peer_failure,
        (End::Stopped(Stop::Stalled), _) => Some(Error::Stalled { seconds: stall.as_secs() }),
        (End::Fault { warmup, index, fault }, _) => {
            let phase = if warmup { "in the warm-up: " } else { "" };
            let cause = peer_failure.map_or_else(String::new, |error| format!(" ({error})"));
            Some(Error::Command { index, message: format!("{phase}{}{cause}", engine.explain(fault)) })
        }
        // The verification command of a run that was told to stop may be given up as well.
        (End::Stopped(_), Some(Err(Fault::Abandoned))) => None,
        (_, Some(Err(fault))) => {
            Some(Error::Verification(format!("the command for it failed: {}", engine.explain(fault))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(stamps: &[(u64, u64)]) -> Vec<Sample> {
        stamps.iter().map(|&(start, stop)| Sample { start, stop }).collect()
    }

    #[test]
    fn a_clock_that_steps_back_is_an_error_that_names_the_command() {
        assert!(check_order(&samples(&[(1, 2), (2, 5), (5, 5)])).is_ok());
        for stepped in [&[(1, 2), (3, 9), (4, 12)], &[(1, 2), (3, 9), (9, 8)]] {
            let error = check_order(&samples(stepped)).unwrap_err();
            assert!(error.to_string().contains("ran backwards at command 2"), "{error}");
            assert_eq!(error.exit_code(), 1);
        }
    }

    #[test]
    fn a_stamp_of_a_phase_must_lie_between_the_others() {
        let phased = |submitted| [PhasedSample { start: 10, submitted, stop: 20 }];
        assert!(check_order(&phased(15)).is_ok());
        assert!(check_order(&phased(9)).is_err() && check_order(&phased(21)).is_err());
    }
}
