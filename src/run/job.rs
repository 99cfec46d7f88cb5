//! One measured point, whatever the engine: stamps, counters, the verification command, and the figures from them.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use super::{
    Live, Placed, SampleFiles, Signals,
    figures::{self, Made},
    monitor::Monitor,
    recorder::{Recorder, Recording},
    samples::{Kind, Raw},
    surroundings::Surroundings,
    team::Team,
    watch::Watch,
};
use crate::{
    engine::{Engine, Fault, Granted},
    error::{Error, Result},
    host::Usage,
    measure::{self, Control, End, Limits, Stop, Taken, Timetable, Way, Window, run},
    peer::Running,
    probe::{Load, Plan},
    report::result::{CpuUse, Instrument, Point, Verified},
    sys::interrupt::Sleeper,
    timing::{Calibration, Counter, MonotonicRaw, PacedSample, PhasedSample, Sample, Source, Tsc},
};

/// Longest wait for one command without payload; see [`Job::stall`].
const STALL: Duration = Duration::from_secs(10);

/// What all measurements of a result share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub signals: &'a Signals,
    pub clock: &'a Calibration,
    pub instrument: &'a Instrument,
    pub live: Live,
    /// The point's figures so far, where they are shown.
    pub watch: Option<&'a Watch>,
    /// Where samples go, where they are wanted.
    pub samples: Option<&'a SampleFiles>,
}

/// One thread's part in a point.
pub(crate) struct Job<'a> {
    pub plan: &'a Plan,
    pub load: Load,
    pub placed: &'a Placed,
    pub source: Source,
    pub ticks_per_ns: f64,
    pub instrument: &'a Instrument,
    pub signals: &'a Signals,
    /// Which of the jobs of the point it is, from 0.
    pub index: u32,
    pub team: Option<&'a Team>,
    live: Live,
    watch: Option<&'a Watch>,
    /// Whether the samples are needed once there are figures.
    keep: bool,
}

/// How the verification command is made ready, where the engine has one.
pub(crate) type PrepareLast<'a> = Option<&'a dyn Fn()>;

/// A job's part as measured, before what only the engine's own set-up knows is added.
#[cfg_attr(not(feature = "rdma"), allow(dead_code))] // Only engines that move data look at what was issued.
pub(crate) struct Run {
    pub point: Point,
    /// What the point was computed from, where that is still needed.
    pub raw: Option<Raw>,
    /// Commands that completed, warm-up and verification included.
    pub issued: u64,
    /// Whether the verification command completed.
    pub last_completed: bool,
    pub failure: Option<Error>,
}

impl<'a> Job<'a> {
    pub fn new(plan: &'a Plan, load: Load, placed: &'a Placed, shared: &Shared<'a>) -> Self {
        let Shared { signals, clock, instrument, live, watch, samples } = *shared;
        let (source, ticks_per_ns) = (clock.facts().source, clock.ticks_per_ns());
        let keep = samples.is_some();
        Self { plan, load, placed, source, ticks_per_ns, instrument, signals, index: 0, team: None, live, watch, keep }
    }

    /// The same as one of several; only the first one draws progress.
    pub fn in_team(self, team: &'a Team, index: u32) -> Self {
        Self { team: Some(team), index, live: if index == 0 { self.live } else { Live::Nothing }, keep: true, ..self }
    }

    /// Measures with an engine that is ready.
    ///
    /// # Errors
    /// Those that concern the whole run: no counters, no memory, a clock that ran backwards. A command that failed leaves a
    /// partial point instead.
    pub fn run<E: Engine>(
        &self,
        engine: &mut E,
        granted: Granted,
        prepare_last: PrepareLast,
        peer: Option<&Running>,
    ) -> Result<Run> {
        let ready = Ready { job: self, granted, prepare_last, peer };
        match (self.source, self.load.rate, self.plan.phases) {
            (Source::Tsc, None, false) => ready.closed::<E, Tsc, Sample>(engine),
            (Source::Tsc, None, true) => ready.closed::<E, Tsc, PhasedSample>(engine),
            (Source::Tsc, Some(rate), _) => ready.paced::<E, Tsc>(engine, rate),
            (Source::Monotonic, None, false) => ready.closed::<E, MonotonicRaw, Sample>(engine),
            (Source::Monotonic, None, true) => ready.closed::<E, MonotonicRaw, PhasedSample>(engine),
            (Source::Monotonic, Some(rate), _) => ready.paced::<E, MonotonicRaw>(engine, rate),
        }
    }

    /// Longest wait for one command: 10 s, and a second more for every 16 MiB, which software devices need, on the way at once.
    fn stall(&self) -> Duration {
        let bytes = self.load.bs_bytes.unwrap_or(0).saturating_mul(self.load.qd.into());
        // A timetable may have its own, longer pauses.
        let pause = self.load.rate.map_or(0.0, |rate| 100.0 / rate as f64);
        STALL + Duration::from_secs(bytes >> 24) + Duration::from_secs_f64(pause)
    }

    fn limits(&self) -> Limits {
        let plan = self.plan;
        Limits {
            warmup: plan.warmup(&self.load),
            warmup_time: plan.warmup_time,
            count: plan.count,
            duration: plan.duration,
            continue_on_error: plan.block.as_ref().is_some_and(|block| block.continue_on_error),
            cpu: Some(self.placed.cpu),
        }
    }
}

/// Everything that a job needs but the engine.
struct Ready<'a> {
    job: &'a Job<'a>,
    granted: Granted,
    prepare_last: PrepareLast<'a>,
    peer: Option<&'a Running>,
}

/// What a job came to, before there are figures.
struct Ended {
    taken: Taken,
    cpu: CpuUse,
    last: Option<std::result::Result<(), Fault>>,
    peer_failure: Option<Error>,
}

impl Ready<'_> {
    /// As many commands as complete.
    fn closed<E: Engine, C: Counter, S>(self, engine: &mut E) -> Result<Run>
    where
        S: Kind,
        S::Pace: Default,
    {
        let way = match self.job.load.qd {
            1 => Way::Single,
            depth => Way::Window(Box::new(Window::new(depth, S::Pace::default()))),
        };
        self.run::<E, C, S>(engine, way)
    }

    /// Commands by a timetable. Jobs that begin together must not keep step: each has random times of its own.
    fn paced<E: Engine, C: Counter>(self, engine: &mut E, rate: u64) -> Result<Run> {
        let interval_ticks = 1e9 / rate as f64 * self.job.ticks_per_ns;
        let pace = Timetable::new(interval_ticks, self.job.plan.arrivals, u64::from(self.job.index) + 1);
        let way = Way::Window(Box::new(Window::new(self.job.load.qd, pace)));
        self.run::<E, C, PacedSample>(engine, way)
    }

    fn run<E: Engine, C: Counter, S: Kind>(self, engine: &mut E, mut way: Way<S>) -> Result<Run> {
        let (plan, job) = (self.job.plan, self.job);
        let control = Control::default();
        let kept = plan.kept(&job.load);
        let recording = Recording {
            kept: kept as usize,
            may_last: plan.count.is_none_or(|count| count > kept),
            others: &job.placed.others,
            watch: job.watch,
        };
        let mut recorder = Recorder::<S>::new(&job.load, recording)?;
        let sample_bytes = recorder.bytes();
        let mut surroundings = Surroundings::begin(job, &self.granted, C::now);
        let ended = self.measure::<E, C, S>(engine, &mut way, &mut recorder, &mut surroundings, &control)?;
        let samples = recorder.into_samples()?;
        let Ended { taken, cpu, last, peer_failure } = ended;
        let failure = failure(taken.end, last, peer_failure, job.stall(), engine);
        let last_completed = last == Some(Ok(()));
        let slots = match way {
            Way::Single => None,
            Way::Window(_) => Some(engine.slot_bytes() + Window::<S>::slot_bytes()),
        };
        let made = Made { granted: self.granted, verifiable: self.prepare_last.is_some(), sample_bytes, slots };
        let mut figures = samples.figures(figures::scale(plan, job.ticks_per_ns));
        surroundings.explain(job, &mut figures);
        let depths = taken.depths.clone();
        let mut point = figures::point(job, figures, made, taken, cpu);
        point.device_counters = surroundings.device_counters();
        if last_completed {
            point.verified = Verified::Yes; // Until a check at either end says otherwise.
        }
        point.ended_because = failure.as_ref().map(ToString::to_string);
        let raw = job.keep.then_some(Raw { samples, depths });
        Ok(Run { point, raw, issued: control.done(), last_completed, failure })
    }

    /// The run itself, with the thread beside it that watches.
    fn measure<E: Engine, C: Counter, S: Kind>(
        &self,
        engine: &mut E,
        way: &mut Way<S>,
        recorder: &mut Recorder<S>,
        surroundings: &mut Surroundings,
        control: &Control,
    ) -> Result<Ended> {
        let (job, cpu) = (self.job, self.job.placed.cpu);
        let limits = job.limits();
        let sleeper = Sleeper::current().map_err(|source| Error::call("SIGURG", "sigaction", source, ""))?;
        let monitor = Monitor {
            control,
            signals: job.signals,
            sleeper,
            total: limits.count.map(|count| count.saturating_add(limits.warmup)),
            warmup: limits.warmup,
            duration: limits.duration,
            stall: job.stall(),
            live: job.live,
            watch: job.watch.map(|watch| (watch, figures::scale(job.plan, job.ticks_per_ns))),
            peer: self.peer,
            team: job.team,
            cpus: &job.placed.others,
        };
        let finished = AtomicBool::new(false);
        let (measured, peer_failure) = std::thread::scope(|scope| {
            let watcher = std::thread::Builder::new().name("monitor".into());
            let (away, started) = mpsc::channel();
            let watcher = watcher
                .spawn_scoped(scope, || monitor.watch(&finished, surroundings.moments.as_mut(), away))
                .map_err(|source| Error::call("monitor", "pthread_create", source, ""))?;
            // It begins on this processor, where it would not get away from a thread of real-time priority.
            let _ = started.recv();
            if job.team.is_some_and(|team| !team.arrive()) {
                control.request(Stop::Together);
            }
            let measured = Usage::now(Some(cpu)).and_then(|before| {
                let taken = run::<E, C, S>(engine, way, recorder, limits, control);
                let usage = Usage::now(Some(cpu))?.since(&before);
                let last = match taken.end {
                    End::Fault { .. } | End::Migrated { .. } => None,
                    End::Stopped(Stop::Stalled | Stop::PeerGone) => None,
                    _ => self.prepare_last,
                };
                let last = last.map(|prepare| {
                    prepare();
                    measure::last(engine, control).inspect(|()| control.advance(1))
                });
                Ok((taken, usage, last))
            });
            finished.store(true, Relaxed);
            watcher.thread().unpark();
            measured.map(|measured| (measured, watcher.join().unwrap_or(None)))
        })?;
        let (taken, usage, last) = measured;
        let migrated = nix::sched::sched_getcpu().is_ok_and(|now| now != cpu);
        Ok(Ended { taken, cpu: CpuUse { usage, migrated }, last, peer_failure })
    }
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
        (End::Stopped(Stop::Together), _) => Some(Error::Together),
        (End::Stopped(Stop::Stalled), _) => Some(Error::Stalled { seconds: stall.as_secs() }),
        (End::Fault { warmup, index, slot, fault }, _) => {
            let phase = if warmup { "in the warm-up: " } else { "" };
            let cause = peer_failure.map_or_else(String::new, |error| format!(" ({error})"));
            Some(Error::Command { index, message: format!("{phase}{}{cause}", engine.explain(slot, fault)) })
        }
        // The verification command of a run that was told to stop may be given up as well.
        (End::Stopped(_), Some(Err(Fault::Abandoned))) => None,
        (_, Some(Err(fault))) => {
            Some(Error::Verification(format!("the command for it failed: {}", engine.explain(0, fault))))
        }
        _ => None,
    }
}
