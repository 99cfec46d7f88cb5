//! A stored result as exporters read it: what they need of `lat-probe.result/1`, with unknown keys ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    read::require_schema,
    result::{SCHEMA, Tool},
    warning::Warning,
};
use crate::{
    error::{Error, Result},
    stats::{Histogram, Interval, Summary, Window},
};

/// One result.
#[derive(Debug, Deserialize)]
pub struct Stored {
    /// The program that wrote it.
    pub tool: Tool,
    /// When the run began, RFC 3339, UTC.
    pub started_at: String,
    /// `--label`.
    pub label: Option<String>,
    /// The machine.
    pub host: StoredHost,
    /// The instrument's own cost.
    pub instrument: StoredInstrument,
    /// Its points, at least one.
    pub points: Vec<StoredPoint>,
    /// Doubts.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// The machine.
#[derive(Debug, Deserialize)]
pub struct StoredHost {
    /// Its name.
    pub hostname: Option<String>,
    /// Its kernel.
    pub kernel: Option<String>,
}

/// The instrument's own cost.
#[derive(Debug, Deserialize)]
pub struct StoredInstrument {
    /// Latency of the command that does nothing, in nanoseconds.
    pub floor_ns: Summary,
    /// Gaps that a spin on the measuring processor has heard.
    pub noise: StoredNoise,
}

/// Gaps that a spin has heard.
#[derive(Debug, Deserialize)]
pub struct StoredNoise {
    /// Time listened, in nanoseconds.
    pub window_ns: f64,
    /// Gaps of more than 1 µs.
    pub gaps_over_1us: u64,
    /// The longest, in nanoseconds.
    pub max_gap_ns: f64,
    /// Share of the window that they took.
    pub stolen_fraction: f64,
}

/// One point.
#[derive(Debug, Deserialize)]
pub struct StoredPoint {
    /// What was asked for.
    pub config: StoredConfig,
    /// What was granted, of which only the device is of interest.
    #[serde(default)]
    pub granted: Value,
    /// Latency of a command.
    pub latency_ns: Summary,
    /// Hand-over alone, with `--phases`.
    pub submit_ns: Option<Summary>,
    /// From hand-over to completion, with `--phases`.
    pub wait_ns: Option<Summary>,
    /// From the intended start, with `--rate`.
    pub response_ns: Option<Summary>,
    /// Distribution of the latency.
    pub histogram: Histogram,
    /// The largest samples, largest first.
    #[serde(default)]
    pub outliers: Vec<StoredOutlier>,
    /// The run in windows of equal length.
    #[serde(default)]
    pub timeline: Vec<Window>,
    /// How deep the window was; null at depth one.
    pub depth: Option<StoredDepth>,
    /// Rates.
    pub throughput: StoredThroughput,
    /// What happened to the measuring thread.
    pub cpu: StoredCpu,
    /// What went wrong, by name.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// Why it ended, if it was not as asked.
    pub ended_because: Option<String>,
    /// Whether there are fewer commands than asked for.
    pub partial: bool,
    /// File of raw samples.
    pub samples_file: Option<String>,
}

/// What was asked for.
#[derive(Debug, Deserialize)]
pub struct StoredConfig {
    /// The engine by its name.
    pub engine: String,
    /// Outstanding commands.
    pub qd: u32,
    /// Payload bytes of a command; null for engines that move no data.
    pub bs_bytes: Option<u64>,
    /// Measuring threads.
    pub jobs: u32,
    /// Direction of block engines.
    pub rw: Option<String>,
    /// Options of block engines.
    #[serde(default)]
    pub block: Value,
}

/// One of the largest samples.
#[derive(Debug, Deserialize)]
pub struct StoredOutlier {
    /// When it was handed over, in nanoseconds since the first measured command.
    pub at_ns: f64,
    /// How long it took, in nanoseconds.
    pub latency_ns: f64,
    /// What may have caused it.
    pub cause: Option<String>,
}

/// How deep the window was.
#[derive(Debug, Deserialize)]
pub struct StoredDepth {
    /// Commands by the number in flight.
    pub outstanding: Vec<StoredOutstanding>,
    /// Looks by the number of completions.
    pub completed_batch: Vec<StoredBatch>,
}

/// Commands that found so many in flight.
#[derive(Debug, Deserialize)]
pub struct StoredOutstanding {
    /// Fewest of the class.
    pub lower: u64,
    /// Commands.
    pub commands: u64,
}

/// Looks that found so many completions.
#[derive(Debug, Deserialize)]
pub struct StoredBatch {
    /// Completions.
    pub size: u64,
    /// Looks.
    pub looks: u64,
}

/// Rates.
#[derive(Debug, Deserialize)]
pub struct StoredThroughput {
    /// Commands per second.
    pub ops_per_s: Option<f64>,
    /// Payload bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Commands per second over the windows of the timeline.
    pub interval: Interval,
}

/// What happened to the measuring thread; times in nanoseconds.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)] // As in the schema.
pub struct StoredCpu {
    pub elapsed_ns: Option<u64>,
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Stored {
    /// A result from a document; `origin` names it in errors.
    ///
    /// # Errors
    /// [`Error::Usage`] with the key that is missing or of another type, or the schema that it is of.
    pub fn of(origin: &str, document: Value) -> Result<Self> {
        require_schema(origin, &document, SCHEMA)?;
        let stored: Self =
            serde_json::from_value(document).map_err(|error| Error::usage(format!("{origin}: {error}")))?;
        if stored.points.is_empty() {
            return Err(Error::usage(format!("{origin}: `points` is empty: nothing was measured")));
        }
        Ok(stored)
    }
}

impl StoredPoint {
    /// The device or file that the commands went to, where there is one.
    pub fn target(&self) -> Option<&str> {
        let rdma = &self.granted["rdma"]["device"];
        rdma.as_str().or_else(|| self.config.block["target"].as_str())
    }

    /// Whether the payload goes from here to there, in fio's terms: see [`super::fio`].
    pub fn writes(&self) -> bool {
        match &self.config.rw {
            Some(rw) => rw.contains("write"),
            None => ["rdma-write", "rdma-send"].iter().any(|engine| self.config.engine.starts_with(engine)),
        }
    }

    /// Time of the measured part, from the first hand-over to the last completion, in nanoseconds.
    pub fn elapsed_ns(&self) -> Option<f64> {
        let ops_per_s = self.throughput.ops_per_s.filter(|&rate| rate > 0.0)?;
        Some(self.latency_ns.n as f64 * 1e9 / ops_per_s)
    }
}
