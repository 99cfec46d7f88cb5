//! The result, `lat-probe.result/1`: this file is the schema as Rust types, `results/schema/result-1.schema.json` the same
//! for everyone else. Keys carry their unit; undefined is null.

use std::{collections::BTreeMap, num::NonZeroU64};

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{sweep::SweepUse, warning::Warning};
use crate::{
    engine::{Arrivals, BlockOptions, Completion, Convention, EngineKind, Granted, RdmaGranted, RdmaOptions, Rw},
    host::{HostFacts, Quiet, UsageDelta},
    measure::{BatchClass, DepthClass, Noise},
    schema::{TIMESTAMP, added_later},
    stats::{Histogram, Interval, Outlier, Summary, Tail, Window},
    timing::{ClockChoice, ClockFacts},
};

/// Name and version of the schema.
pub const SCHEMA: &str = "lat-probe.result/1";

/// One run of lat-probe. Keys carry their unit; undefined is null; no integer is beyond 2^53−1. New keys may appear
/// within a version: ignore those you don't know, and refuse a version that you don't know.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = SCHEMA, extend("$id" = "urn:lat-probe:result-1"), transform = added_later(&["quiet", "sweep"]))]
pub struct RunResult {
    /// Name and version of this schema.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The program.
    pub tool: Tool,
    /// When the run began, RFC 3339, UTC.
    #[schemars(regex(pattern = TIMESTAMP))]
    pub started_at: String,
    /// `--label`.
    pub label: Option<String>,
    /// `--meta`.
    pub meta: BTreeMap<String, String>,
    /// The machine as far as it bears on latency. What it doesn't show is null.
    pub host: HostFacts,
    /// The clock that was granted.
    pub clock: ClockFacts,
    /// What the instrument itself costs on this machine, measured before the run.
    pub instrument: Instrument,
    /// What `--quiet` did while it was measured; null or absent where it was not asked for. Each measure stands in one of
    /// the two lists.
    pub quiet: Option<Quiet>,
    /// The other end, if there was one.
    pub peer: Option<PeerFacts>,
    /// One entry for each measured point.
    pub points: Vec<Point>,
    /// Doubts about the result.
    pub warnings: Vec<Warning>,
    /// How a result of several points came about that was stored after each of them; null for others.
    pub sweep: Option<SweepUse>,
}

/// The program.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Always lat-probe.
    #[schemars(extend("const" = env!("CARGO_PKG_NAME")))]
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for Tool {
    fn default() -> Self {
        Self { name: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// What the instrument itself costs on this machine, measured before the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Instrument {
    /// Latency of the command that does nothing, through the same compiled loop, ns.
    pub floor_ns: Summary,
    /// Gaps in a spin on the measuring processor.
    pub noise: Noise,
}

/// A serving lat-probe.
#[derive(Debug, Serialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = added_later(&["pace", "device_counters", "per_job"]))]
pub struct Point {
    /// What was asked for.
    pub config: Config,
    /// What was granted.
    pub granted: Granted,
    /// What one number spans: until the initiator saw the completion, there and back, or half of that.
    pub convention: Convention,
    /// `closed`: a command is issued when one before it has completed; `open`: by the clock (`--rate`).
    #[serde(rename = "loop")]
    pub loop_kind: LoopKind,
    /// Latency of a command, ns.
    pub latency_ns: Summary,
    /// Hand-over alone, ns; with `--phases`.
    pub submit_ns: Option<Summary>,
    /// From hand-over to completion, ns; with `--phases`.
    pub wait_ns: Option<Summary>,
    /// Latency from the intended start, ns; for paced load (`--rate`).
    pub response_ns: Option<Summary>,
    /// How the timetable of `--rate` was kept; null without it.
    pub pace: Option<PaceUse>,
    /// The instrument's floor against this point; null where either is unknown.
    pub share: Option<Share>,
    /// The machine's part in the slowest commands; null where there is no tail to speak of.
    pub tail: Option<Tail>,
    /// Distribution of the latency.
    pub histogram: Histogram,
    /// The ten largest samples, largest first.
    #[schemars(length(max = 10))]
    pub outliers: Vec<Outlier>,
    /// The run in up to a hundred windows of equal length.
    #[schemars(length(max = 100))]
    pub timeline: Vec<Window>,
    /// How deep the window was, and how completions came; null at depth one, where both are always 1.
    pub depth: Option<DepthUse>,
    /// Rates over the measured part.
    pub throughput: Throughput,
    /// What happened to the measuring thread and its processor, from the first warm-up command to the last measured one.
    pub cpu: CpuUse,
    /// Counters of the device that rose over the point, by the driver's names; others' commands are in them. Null for
    /// engines without a device that counts.
    #[schemars(with = "Option<BTreeMap<String, NonZeroU64>>")]
    pub device_counters: Option<BTreeMap<String, u64>>,
    /// Memory in use.
    pub memory: MemoryUse,
    /// What came of checking the bytes of the last command.
    pub verified: Verified,
    /// What went wrong, by name. `failed_commands` are in no statistic, `failed_commands.NAME` say why;
    /// `corrupt_commands` moved other bytes than they should, and are in the figures; `lost_messages` (UC and UD) left
    /// this end, so that they are in the figures as sent, but never arrived at the other.
    pub errors: BTreeMap<String, u64>,
    /// What ended the run.
    pub ended_by: EndedBy,
    /// Why, in words, if it was not as asked.
    pub ended_because: Option<String>,
    /// Whether there are fewer commands than asked for.
    pub partial: bool,
    /// File of raw samples, where one was written, as it was named.
    pub samples_file: Option<String>,
    /// Each job by itself, with `--per-job`; null without.
    pub per_job: Option<Vec<JobRow>>,
}

/// How deep a window of commands was, in the measured part.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DepthUse {
    /// Commands by the number in flight when each was handed over, itself included, in powers of two.
    pub outstanding: Vec<DepthClass>,
    /// Looks for completions by the number that they found, at most 16.
    pub completed_batch: Vec<BatchClass>,
}

/// How a timetable was kept.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PaceUse {
    /// Commands per second asked for, of all jobs together.
    #[schemars(range(min = 1))]
    pub rate_per_s: u64,
    /// How the times between them are distributed.
    pub arrivals: Arrivals,
    /// Commands per second that completed.
    #[schemars(range(min = 0))]
    pub achieved_per_s: Option<f64>,
    /// How long after its intended start a command was handed over, ns.
    pub late_ns: Summary,
    /// Commands that were due before the end and were not handed over: they are in no statistic.
    pub never_issued: u64,
}

/// One job of several.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobRow {
    /// The processor that it ran on.
    pub cpu: Option<usize>,
    /// Latency of its commands, ns.
    pub latency_ns: Summary,
    /// Latency from the intended start, ns; with `--rate`.
    pub response_ns: Option<Summary>,
    /// Its commands per second.
    #[schemars(range(min = 0))]
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

/// The instrument's share.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Share {
    /// Median of the floor by the median of the point.
    #[schemars(range(min = 0))]
    pub floor_p50: f64,
    /// 99th percentile of the floor by the median of the point.
    #[schemars(range(min = 0))]
    pub floor_p99: f64,
    /// Spread of the floor, 5th to 95th percentile, ns: a smaller difference cannot be told from the instrument's own.
    #[schemars(range(min = 0))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoopKind {
    /// A command waits until one before it has completed.
    Closed,
    /// Commands are issued by the clock.
    Open,
}

/// What was asked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(transform = added_later(&["rate_per_s", "warmup_time_ns"]))]
pub struct Config {
    /// The engine.
    pub engine: EngineKind,
    /// Outstanding commands of each job.
    #[schemars(range(min = 1))]
    pub qd: u32,
    /// Payload bytes of a command; null for engines that move no data.
    pub bs_bytes: Option<u64>,
    /// Measuring threads.
    #[schemars(range(min = 1))]
    pub jobs: u32,
    /// Commands per second that each job was to issue; null for as many as complete.
    #[schemars(range(min = 1))]
    pub rate_per_s: Option<u64>,
    /// Direction and order of block engines that move data; null for others.
    pub rw: Option<Rw>,
    /// How completions are awaited: busy polling or sleeping.
    pub completion: Completion,
    /// Processors of the measuring threads, as the kernel numbers them.
    pub cpus: Vec<usize>,
    /// Processor of the responder in this process, where there is one.
    pub peer_cpu: Option<usize>,
    /// Commands to measure; null for as many as the time allows.
    pub count: Option<u64>,
    /// Longest time to measure, ns.
    pub duration_ns: Option<u64>,
    /// Commands discarded first.
    pub warmup: u64,
    /// Time that the warm-up took at least, ns.
    pub warmup_time_ns: Option<u64>,
    /// Clock asked for.
    pub clock: ClockChoice,
    /// Whether submit and wait are stamped apart.
    pub phases: bool,
    /// Whether round trips are halved.
    pub half_rtt: bool,
    /// Where the other end is; null for loopback.
    pub peer: Option<String>,
    /// The wait of the spin engine, ns; null for others.
    pub delay_ns: Option<u64>,
    /// RDMA choices; null for other engines.
    pub rdma: Option<RdmaOptions>,
    /// Choices of the block engines; null for others.
    pub block: Option<BlockOptions>,
}

/// Rates over the measured part.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Throughput {
    /// Commands per second.
    #[schemars(range(min = 0))]
    pub ops_per_s: Option<f64>,
    /// Payload bytes per second; null for engines that move no data.
    #[schemars(range(min = 0))]
    pub bytes_per_s: Option<f64>,
    /// Time from one hand-over to the next on average, ns; null for fewer than two commands.
    #[schemars(range(min = 0))]
    pub period_ns: Option<f64>,
    /// Commands per second over the windows of the timeline.
    pub interval: Interval,
}

/// What happened to the measuring thread and its processor, from the first warm-up command to the last measured one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CpuUse {
    /// Counters, as differences.
    #[serde(flatten)]
    pub usage: UsageDelta,
    /// Whether the thread left its processor.
    pub migrated: bool,
}

/// Memory in use.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryUse {
    /// Data buffer, bytes.
    pub buffer_bytes: u64,
    /// Stamps, bytes.
    pub sample_bytes: u64,
    /// Memory for each outstanding command, its data included, bytes; null at depth one.
    pub bytes_per_outstanding: Option<u64>,
}

/// What came of checking the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = with_samples)]
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

/// Earlier versions ended runs that had more samples than they could keep; their results are as valid as ever.
fn with_samples(schema: &mut Schema) {
    let samples = json!({
        "description": "No more samples could be kept; only earlier versions wrote it.", "type": "string", "const": "samples"
    });
    if let Some(ends) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        ends.push(samples);
    }
}
