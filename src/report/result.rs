//! The result, `lat-probe.result/1`: this file is the schema as Rust types, `results/schema/result-1.schema.json` the same
//! for everyone else. Keys carry their unit; undefined is null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::warning::Warning;
use crate::{
    engine::{Arrivals, BlockOptions, Completion, Convention, EngineKind, Granted, RdmaGranted, RdmaOptions, Rw},
    host::{HostFacts, Quiet, UsageDelta},
    measure::{BatchClass, DepthClass, Noise},
    stats::{Histogram, Interval, Outlier, Summary, Tail, Window},
    timing::{ClockChoice, ClockFacts},
};

/// Name and version of the schema.
pub const SCHEMA: &str = "lat-probe.result/1";

/// One run.
#[derive(Debug, Serialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program.
    pub tool: Tool,
    /// When the run began, RFC 3339, UTC.
    pub started_at: String,
    /// `--label`.
    pub label: Option<String>,
    /// `--meta`.
    pub meta: BTreeMap<String, String>,
    /// The machine.
    pub host: HostFacts,
    /// The clock.
    pub clock: ClockFacts,
    /// What the instrument itself costs, and what the machine does to it.
    pub instrument: Instrument,
    /// What `--quiet` did; null where it was not asked for.
    pub quiet: Option<Quiet>,
    /// The other end, if there was one.
    pub peer: Option<PeerFacts>,
    /// One entry a measured point.
    pub points: Vec<Point>,
    /// Doubts.
    pub warnings: Vec<Warning>,
    /// How a result of several points came about, where it was stored after each; null for others.
    pub sweep: Option<serde_json::Value>,
}

/// The program.
#[derive(Debug, Serialize)]
pub struct Tool {
    /// Always `lat-probe`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl Default for Tool {
    fn default() -> Self {
        Self { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") }
    }
}

/// The instrument's own cost on this machine, measured before the run.
#[derive(Clone, Debug, Serialize)]
pub struct Instrument {
    /// Latency of the command that does nothing, through the same compiled loop.
    pub floor_ns: Summary,
    /// Gaps in a spin on the measuring processor.
    pub noise: Noise,
}

/// The other end.
#[derive(Debug, Serialize)]
pub struct PeerFacts {
    /// As it was given with `--peer`.
    pub name: String,
    /// The address that it was reached at.
    pub address: String,
    /// Its host name.
    pub hostname: Option<String>,
    /// Its lat-probe version.
    pub version: String,
    /// Its end of the RDMA path.
    pub rdma: Option<RdmaGranted>,
}

/// One measured point.
#[derive(Debug, Serialize)]
pub struct Point {
    /// What was asked for.
    pub config: Config,
    /// What was granted.
    pub granted: Granted,
    /// What one number spans.
    pub convention: Convention,
    /// `closed`: a command is issued when one before it has completed; `open`: by the clock.
    #[serde(rename = "loop")]
    pub loop_kind: LoopKind,
    /// Latency of a command.
    pub latency_ns: Summary,
    /// Hand-over alone, with `--phases`.
    pub submit_ns: Option<Summary>,
    /// From hand-over to completion, with `--phases`.
    pub wait_ns: Option<Summary>,
    /// Latency from the intended start, with `--rate`.
    pub response_ns: Option<Summary>,
    /// How the timetable was kept; null without `--rate`.
    pub pace: Option<PaceUse>,
    /// What the instrument's own cost is to these figures; null where either is unknown.
    pub share: Option<Share>,
    /// The machine's part in the tail; null where there is none to speak of.
    pub tail: Option<Tail>,
    /// Distribution of the latency.
    pub histogram: Histogram,
    /// The ten largest samples.
    pub outliers: Vec<Outlier>,
    /// The run in hundredths.
    pub timeline: Vec<Window>,
    /// How deep the window was, and how completions came; null at depth one, where both are always 1.
    pub depth: Option<DepthUse>,
    /// Commands and bytes per second.
    pub throughput: Throughput,
    /// What happened to the measuring thread and its processor.
    pub cpu: CpuUse,
    /// Counters of the device that rose over the point, by the driver's names; others' commands are in them. Null for engines
    /// without a device that counts.
    pub device_counters: Option<BTreeMap<String, u64>>,
    /// Memory in use.
    pub memory: MemoryUse,
    /// Whether the bytes of the last command were checked, and what came of it.
    pub verified: Verified,
    /// What went wrong, by name: `failed_commands` are in no statistic, and `failed_commands.NAME` say why; `corrupt_commands`
    /// are in all of them; `lost_messages` left this end, so that their commands
    /// are, but never arrived at the other.
    pub errors: BTreeMap<String, u64>,
    /// What ended the run.
    pub ended_by: EndedBy,
    /// Why, in words, if it was not as asked.
    pub ended_because: Option<String>,
    /// Whether there are fewer commands than asked for.
    pub partial: bool,
    /// File of raw samples, where one was written, as it was named.
    pub samples_file: Option<String>,
    /// Each job by itself, with `--per-job`.
    pub per_job: Option<Vec<JobRow>>,
}

/// How deep a window of commands was, in the measured part.
#[derive(Clone, Debug, Serialize)]
pub struct DepthUse {
    /// Commands by the number in flight when each was handed over.
    pub outstanding: Vec<DepthClass>,
    /// Looks by the number of completions that they found.
    pub completed_batch: Vec<BatchClass>,
}

/// How a timetable was kept.
#[derive(Clone, Debug, Serialize)]
pub struct PaceUse {
    /// Commands per second asked for, of all jobs together.
    pub rate_per_s: u64,
    /// How the times between them are distributed.
    pub arrivals: Arrivals,
    /// Commands per second that completed.
    pub achieved_per_s: Option<f64>,
    /// How long after its intended start a command was handed over.
    pub late_ns: Summary,
    /// Commands that were due before the end and were not handed over: they are in no statistic.
    pub never_issued: u64,
}

/// One job of several.
#[derive(Clone, Debug, Serialize)]
pub struct JobRow {
    /// The processor that it ran on.
    pub cpu: Option<usize>,
    /// Latency of its commands.
    pub latency_ns: Summary,
    /// From the intended start, with `--rate`.
    pub response_ns: Option<Summary>,
    /// Its commands per second.
    pub ops_per_s: Option<f64>,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Why, in words, if it was not as asked.
    pub ended_because: Option<String>,
}

impl JobRow {
    /// The row of a job that was measured as a point.
    pub fn of(point: &Point) -> Self {
        Self {
            cpu: point.config.cpus.first().copied(),
            latency_ns: point.latency_ns.clone(),
            response_ns: point.response_ns.clone(),
            ops_per_s: point.throughput.ops_per_s,
            ended_by: point.ended_by,
            ended_because: point.ended_because.clone(),
        }
    }
}

/// The instrument's floor against a point.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    /// The floor's median by the point's median.
    pub floor_p50: f64,
    /// The floor's 99th percentile by the point's median.
    pub floor_p99: f64,
    /// Spread of the floor itself, from its 5th to its 95th percentile, in nanoseconds: a difference below it cannot be told
    /// from the instrument's own.
    pub unresolvable_below_ns: f64,
}

impl Share {
    /// Compares a floor with a point.
    pub fn of(floor: &Summary, latency: &Summary) -> Option<Self> {
        let (floor, p50) = (&floor.percentiles, latency.percentiles.p50.filter(|&p50| p50 > 0.0)?);
        Some(Self {
            floor_p50: floor.p50? / p50,
            floor_p99: floor.p99? / p50,
            unresolvable_below_ns: floor.p95? - floor.p5?,
        })
    }
}

/// How commands are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoopKind {
    /// A command waits until one before it has completed.
    Closed,
    /// Commands are issued by the clock.
    Open,
}

/// What was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    /// The engine.
    pub engine: EngineKind,
    /// Outstanding commands.
    pub qd: u32,
    /// Payload bytes of a command; null for engines that move no data.
    pub bs_bytes: Option<u64>,
    /// Measuring threads.
    pub jobs: u32,
    /// Commands per second that each of them was to issue; null for as many as complete.
    pub rate_per_s: Option<u64>,
    /// Direction of block engines; null for others.
    pub rw: Option<Rw>,
    /// How completions are awaited.
    pub completion: Completion,
    /// Processors of the measuring threads.
    pub cpus: Vec<usize>,
    /// Processor of the responder in this process, where there is one.
    pub peer_cpu: Option<usize>,
    /// Commands to measure; null for as many as the time allows.
    pub count: Option<u64>,
    /// Longest time to measure.
    pub duration_ns: Option<u64>,
    /// Commands discarded first.
    pub warmup: u64,
    /// Time that this took at least.
    pub warmup_time_ns: Option<u64>,
    /// Clock asked for.
    pub clock: ClockChoice,
    /// Whether submit and wait are stamped apart.
    pub phases: bool,
    /// Whether round trips are halved.
    pub half_rtt: bool,
    /// Where the other end is; null for loopback.
    pub peer: Option<String>,
    /// The wait of the spin engine.
    pub delay_ns: Option<u64>,
    /// RDMA choices; null for other engines.
    pub rdma: Option<RdmaOptions>,
    /// Choices of the block engines; null for others.
    pub block: Option<BlockOptions>,
}

/// Rates over the measured part.
#[derive(Debug, Default, Serialize)]
pub struct Throughput {
    /// Commands per second.
    pub ops_per_s: Option<f64>,
    /// Payload bytes per second; null for engines that move no data.
    pub bytes_per_s: Option<f64>,
    /// Time from one hand-over to the next, on average.
    pub period_ns: Option<f64>,
    /// Commands per second over the windows of the timeline.
    pub interval: Interval,
}

/// What happened to the measuring thread and its processor, from the first warm-up command to the last measured one.
#[derive(Debug, Serialize)]
pub struct CpuUse {
    /// Counters, as differences.
    #[serde(flatten)]
    pub usage: UsageDelta,
    /// Whether the thread left its processor.
    pub migrated: bool,
}

/// Memory in use.
#[derive(Debug, Serialize)]
pub struct MemoryUse {
    /// Data buffer.
    pub buffer_bytes: u64,
    /// Stamps.
    pub sample_bytes: u64,
    /// Memory for each outstanding command, its data included; null at depth one.
    pub bytes_per_outstanding: Option<u64>,
}

/// What came of checking the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verified {
    /// The bytes of the last command, with `--verify` of every command, are right at every end that received some.
    Yes,
    /// They are not.
    No,
    /// The engine moves no data.
    NotApplicable,
    /// The run ended before they could be checked, or, on block devices, `--verify` was not given.
    NotChecked,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// The count was reached.
    Count,
    /// The time was reached.
    Duration,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    /// A failure.
    Error,
}
