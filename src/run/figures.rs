//! From the samples of one point to its entry in the result.

use std::collections::BTreeMap;

use super::job::Job;
use crate::{
    engine::{Convention, EngineKind, Fault, Granted},
    measure::{End, Stamped, Stop},
    report::result::{Config, CpuUse, EndedBy, Instrument, LoopKind, MemoryUse, Point, Share, Throughput, Verified},
    stats::{Interval, Scale, Summary, Tail, histogram, outliers, timeline, windowed_rate},
};

/// Outliers kept of a run.
const OUTLIERS: usize = 10;

/// Name of the commands that moved other bytes than they should have.
pub(super) const CORRUPT_COMMANDS: &str = "corrupt_commands";

/// What was set up for the point.
pub(super) struct Made {
    pub granted: Granted,
    pub bs_bytes: Option<u64>,
    /// Whether there is data to verify.
    pub verifiable: bool,
}

/// Computes every figure of a point.
pub(super) fn point<S: Stamped>(job: &Job, samples: &[S], made: Made, end: End, cpu: CpuUse) -> Point {
    let plan = job.plan;
    let (convention, scale) = (plan.convention(), scale(job));
    let latencies = sorted(samples, |sample| sample.stop() - sample.start());
    let phase = |ticks: fn(&S, u64) -> u64| {
        let of = |sample: &S| ticks(sample, sample.submitted().unwrap_or(sample.start()));
        plan.phases.then(|| Summary::of_sorted(&sorted(samples, of), scale.latency))
    };
    let timeline = timeline(samples, scale);
    let latency_ns = Summary::of_sorted(&latencies, scale.latency);
    let Instrument { floor_ns, noise } = job.instrument;
    let ended_by = ended_by(end, plan.count.is_none());
    // A command that brought wrong data is a sample like any other; that it was wrong was found out after it.
    let failed = match end {
        End::Fault { fault: Fault::Data, .. } => Some((CORRUPT_COMMANDS.to_string(), 1)),
        End::Fault { .. } => Some(("failed_commands".to_string(), 1)),
        _ => None,
    };
    Point {
        config: config(job, made.bs_bytes),
        convention,
        loop_kind: LoopKind::Closed,
        share: Share::of(floor_ns, &latency_ns),
        tail: Tail::of(&latencies, scale.latency, &latency_ns, &noise.gaps, noise.window_ns),
        latency_ns,
        submit_ns: phase(|sample, submitted| submitted - sample.start()),
        wait_ns: phase(|sample, submitted| sample.stop() - submitted),
        response_ns: None,
        histogram: histogram(&latencies, scale.latency),
        outliers: outliers(samples, OUTLIERS, scale),
        depth: None,
        throughput: throughput(samples, made.bs_bytes, job.ticks_per_ns, windowed_rate(&timeline)),
        timeline,
        cpu,
        device_counters: None,
        memory: MemoryUse {
            buffer_bytes: made.granted.buffer.as_ref().map_or(0, |buffer| buffer.bytes),
            sample_bytes: plan.capacity * size_of::<S>() as u64,
            bytes_per_outstanding: None,
        },
        granted: made.granted,
        verified: if made.verifiable { Verified::NotChecked } else { Verified::NotApplicable },
        errors: failed.into_iter().collect::<BTreeMap<_, _>>(),
        partial: matches!(ended_by, EndedBy::Signal | EndedBy::Error),
        ended_by,
        ended_because: None,
        samples_file: None,
    }
}

/// Ticks in a nanosecond of what is reported.
pub(super) fn scale(job: &Job) -> Scale {
    match job.plan.convention() {
        Convention::HalfRoundTrip => Scale::halved(job.ticks_per_ns),
        _ => Scale::of(job.ticks_per_ns),
    }
}

/// What failed while the run went on: all of it, and by name.
pub(super) fn failed_commands(failed: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let all: u64 = failed.values().sum();
    let by_name = failed.into_iter().map(|(name, count)| (format!("failed_commands.{name}"), count));
    let mut errors: BTreeMap<_, _> = by_name.collect();
    if all > 0 {
        errors.insert("failed_commands".into(), all);
    }
    errors
}

fn ended_by(end: End, by_time_alone: bool) -> EndedBy {
    match end {
        End::Count if by_time_alone => EndedBy::Samples,
        End::Count => EndedBy::Count,
        End::Duration => EndedBy::Duration,
        End::Stopped(Stop::Interrupt | Stop::Terminate | Stop::HangUp) => EndedBy::Signal,
        End::Stopped(Stop::Stalled | Stop::PeerGone) | End::Fault { .. } | End::Migrated { .. } => EndedBy::Error,
    }
}

fn config(job: &Job, bs_bytes: Option<u64>) -> Config {
    let (plan, placed) = (job.plan, job.placed);
    let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let responds_here = match plan.engine {
        EngineKind::Rdma(verb) => verb.needs_responder() && plan.peer.is_none(),
        _ => false,
    };
    Config {
        engine: plan.engine,
        qd: 1,
        bs_bytes,
        jobs: 1,
        rw: plan.block.as_ref().filter(|block| block.command.is_none()).map(|block| block.rw),
        completion: plan.completion,
        cpus: vec![placed.cpu],
        peer_cpu: responds_here.then_some(placed.peer_cpu),
        count: plan.count,
        duration_ns: plan.duration.map(nanoseconds),
        warmup: plan.warmup,
        clock: plan.clock,
        phases: plan.phases,
        half_rtt: plan.half_rtt,
        peer: plan.peer.as_ref().map(ToString::to_string),
        delay_ns: (plan.engine == EngineKind::Spin).then(|| nanoseconds(plan.delay)),
        rdma: matches!(plan.engine, EngineKind::Rdma(_)).then(|| plan.rdma.clone()),
        block: plan.block.clone(),
    }
}

/// Differences of stamps, sorted.
pub(super) fn sorted<S: Stamped>(samples: &[S], ticks: impl Fn(&S) -> u64) -> Vec<u64> {
    let mut values: Vec<u64> = samples.iter().map(ticks).collect();
    values.sort_unstable();
    values
}

fn throughput<S: Stamped>(samples: &[S], bs_bytes: Option<u64>, ticks_per_ns: f64, interval: Interval) -> Throughput {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Throughput::default() };
    let elapsed_ns = (last.stop() - first.start()) as f64 / ticks_per_ns;
    if elapsed_ns <= 0.0 {
        return Throughput::default();
    }
    let ops_per_s = samples.len() as f64 * 1e9 / elapsed_ns;
    let steps = samples.len() as f64 - 1.0;
    Throughput {
        ops_per_s: Some(ops_per_s),
        bytes_per_s: bs_bytes.map(|bytes| ops_per_s * bytes as f64),
        period_ns: (steps > 0.0).then(|| (last.start() - first.start()) as f64 / ticks_per_ns / steps),
        interval,
    }
}
