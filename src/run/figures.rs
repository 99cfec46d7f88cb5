//! From the figures of one job to its entry in the result.

use std::collections::BTreeMap;

use super::job::Job;
use crate::{
    engine::{Convention, EngineKind, Fault, Granted},
    measure::{Depths, End, Stop, Taken},
    probe::Plan,
    report::result::{
        Config, CpuUse, DepthUse, EndedBy, Instrument, LoopKind, MemoryUse, PaceUse, Point, Share, Throughput, Verified,
    },
    stats::{Figures, Interval, Scale, Span, windowed_rate},
};

/// Name of the commands that moved other bytes than they should have.
pub(super) const CORRUPT_COMMANDS: &str = "corrupt_commands";

/// What was set up for the job.
pub(super) struct Made {
    pub granted: Granted,
    /// Whether there is data to verify.
    pub verifiable: bool,
    /// Memory for samples.
    pub sample_bytes: u64,
    /// Memory for each slot of a window, its data not included.
    pub slots: Option<usize>,
}

/// Puts every figure of a job into its place.
pub(super) fn point(job: &Job, figures: Figures, made: Made, taken: Taken, cpu: CpuUse) -> Point {
    let (plan, load) = (job.plan, &job.load);
    let Instrument { floor_ns, noise } = job.instrument;
    let ended_by = ended_by(taken.end);
    // A command that brought wrong data is a sample like any other; that it was wrong was found out after it.
    let failed = match taken.end {
        End::Fault { fault: Fault::Data, .. } => Some((CORRUPT_COMMANDS.to_string(), 1)),
        End::Fault { .. } => Some(("failed_commands".to_string(), 1)),
        _ => None,
    };
    let mut errors: BTreeMap<_, _> = failed.into_iter().collect();
    errors.extend(failed_commands(taken.failed));
    let rate = windowed_rate(&figures.timeline);
    let throughput = throughput(&figures, load.bs_bytes, job.ticks_per_ns, rate);
    let buffer_bytes = made.granted.buffer.as_ref().map_or(0, |buffer| buffer.bytes);
    Point {
        config: config(job),
        convention: plan.convention(),
        loop_kind: if load.rate.is_some() { LoopKind::Open } else { LoopKind::Closed },
        share: Share::of(floor_ns, &figures.latency),
        tail: figures.tail(&noise.gaps, noise.window_ns),
        pace: load.rate.map(|rate| PaceUse {
            rate_per_s: rate,
            arrivals: plan.arrivals,
            achieved_per_s: throughput.ops_per_s,
            late_ns: figures.late.clone().unwrap_or_default(),
            never_issued: taken.overdue,
        }),
        latency_ns: figures.latency,
        submit_ns: figures.submit.filter(|_| plan.phases),
        wait_ns: figures.wait.filter(|_| plan.phases),
        response_ns: figures.response,
        histogram: figures.histogram,
        outliers: figures.outliers,
        depth: made.slots.map(|_| depth_use(&taken.depths)),
        throughput,
        timeline: figures.timeline,
        cpu,
        device_counters: None,
        memory: MemoryUse {
            buffer_bytes,
            sample_bytes: made.sample_bytes,
            bytes_per_outstanding: made.slots.map(|slot| buffer_bytes / u64::from(load.qd) + slot as u64),
        },
        granted: made.granted,
        verified: if made.verifiable { Verified::NotChecked } else { Verified::NotApplicable },
        errors,
        partial: matches!(ended_by, EndedBy::Signal | EndedBy::Error),
        ended_by,
        ended_because: None,
        samples_file: None,
        per_job: None,
    }
}

/// How deep a window was, and how completions came.
pub(super) fn depth_use(depths: &Depths) -> DepthUse {
    DepthUse { outstanding: depths.depths(), completed_batch: depths.batches() }
}

/// Ticks in a nanosecond of what is reported.
pub(super) fn scale(plan: &Plan, ticks_per_ns: f64) -> Scale {
    match plan.convention() {
        Convention::HalfRoundTrip => Scale::halved(ticks_per_ns),
        _ => Scale::of(ticks_per_ns),
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

fn ended_by(end: End) -> EndedBy {
    match end {
        End::Count => EndedBy::Count,
        End::Duration => EndedBy::Duration,
        End::Stopped(Stop::Interrupt | Stop::Terminate | Stop::HangUp) => EndedBy::Signal,
        End::Stopped(Stop::Stalled | Stop::PeerGone | Stop::Together) | End::Fault { .. } | End::Migrated { .. } => {
            EndedBy::Error
        }
    }
}

fn config(job: &Job) -> Config {
    let (plan, placed) = (job.plan, job.placed);
    let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let responds_here = match plan.engine {
        EngineKind::Rdma(verb) => verb.needs_responder() && plan.peer.is_none(),
        _ => false,
    };
    Config {
        engine: plan.engine,
        qd: job.load.qd,
        bs_bytes: job.load.bs_bytes,
        jobs: job.load.jobs,
        rate_per_s: job.load.rate,
        rw: plan.block.as_ref().filter(|block| block.command.is_none()).map(|block| block.rw),
        completion: plan.completion,
        cpus: vec![placed.cpu],
        peer_cpu: responds_here.then_some(placed.peer_cpu),
        count: plan.count,
        duration_ns: plan.duration.map(nanoseconds),
        warmup: plan.warmup(&job.load),
        warmup_time_ns: plan.warmup_time.map(nanoseconds),
        clock: plan.clock,
        phases: plan.phases,
        half_rtt: plan.half_rtt,
        peer: plan.peer.as_ref().map(ToString::to_string),
        delay_ns: (plan.engine == EngineKind::Spin).then(|| nanoseconds(plan.delay)),
        rdma: matches!(plan.engine, EngineKind::Rdma(_)).then(|| plan.rdma.clone()),
        block: plan.block.clone(),
    }
}

/// Rates from the first hand-over to the last completion.
pub(super) fn throughput(
    figures: &Figures,
    bs_bytes: Option<u64>,
    ticks_per_ns: f64,
    interval: Interval,
) -> Throughput {
    let Some(span) = figures.span.filter(|span| span.elapsed() > 0) else { return Throughput::default() };
    let Span { first_start, last_start, .. } = span;
    let n = figures.latency.n as f64;
    let ops_per_s = n * 1e9 * ticks_per_ns / span.elapsed() as f64;
    let period_ns = (last_start - first_start) as f64 / ticks_per_ns / (n - 1.0);
    Throughput {
        ops_per_s: Some(ops_per_s),
        bytes_per_s: bs_bytes.map(|bytes| ops_per_s * bytes as f64),
        period_ns: (n > 1.0).then_some(period_ns),
        interval,
    }
}
