//! A comparison, `lat-probe.comparison/1`: by how much each side differs from the first one, and whether to believe it.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{read::require_schema, result::Tool, warning::Warning};
use crate::{
    error::{Error, Result},
    schema::added_later,
    stats::{Shift, Verdict},
    units::format_size,
};

/// Name and version of the schema.
pub const COMPARISON_SCHEMA: &str = "lat-probe.comparison/1";

/// By how much each side differs from the first one, and whether to believe it: `lat-probe compare`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = COMPARISON_SCHEMA, extend("$id" = "urn:lat-probe:comparison-1"))]
pub struct Comparison {
    /// Name and version of this schema.
    #[schemars(extend("const" = COMPARISON_SCHEMA))]
    pub schema: String,
    /// The program.
    pub tool: Tool,
    /// How it was made.
    pub method: Method,
    /// The sides; the first one is what the others are compared with.
    #[schemars(length(min = 1))]
    pub sides: Vec<SideFacts>,
    /// Points that all rounds have.
    #[schemars(length(min = 1))]
    pub points: Vec<PointComparison>,
    /// Over sweeps of at least three sizes, a robust line through the shifts: what of the shift is for each command, and
    /// what for each byte.
    pub costs: Vec<CostComparison>,
    /// What is not the same on all sides, by its place in a result.
    pub differences: Vec<Difference>,
    /// Absolute limits that were given, for each point of the last side.
    pub gates: Vec<Gate>,
    /// Doubts.
    pub warnings: Vec<Warning>,
    /// The worst of what is judged: slower, then inconclusive, then faster, then same. Null for one side alone.
    pub verdict: Option<Verdict>,
}

/// An absolute limit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The point.
    pub point: String,
    /// The side that it was held against.
    pub side: String,
    /// The figure.
    pub figure: Figure,
    /// The limit, ns.
    #[schemars(range(min = 0))]
    pub limit_ns: f64,
    /// Median over rounds, ns; null if a round does not support it, which does not pass.
    pub value_ns: Option<f64>,
    /// Whether it is not above the limit.
    pub passed: bool,
}

/// How a comparison was made.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Method {
    /// What is one observation: samples within a round depend on each other.
    #[schemars(extend("const" = "round"))]
    pub unit: String,
    /// Whether rounds were compared within blocks, which takes a drift out.
    pub in_blocks: bool,
    /// Probability that all intervals that are judged together cover what they are of.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub level: f64,
    /// How many intervals are judged together.
    #[schemars(range(min = 1))]
    pub judged: usize,
    /// The level of each interval (Bonferroni).
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub level_of_each: f64,
    /// The figures that the verdict rests on; the others are shown with the same intervals.
    #[schemars(length(min = 1))]
    pub judged_figures: Vec<Figure>,
    /// The least effect of interest, in percent of the first side, if it was given so.
    pub min_effect_percent: Option<f64>,
    /// The same in ns.
    pub min_effect_ns: Option<f64>,
}

/// A figure of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Figure {
    /// Mean.
    #[serde(rename = "mean")]
    Mean,
    /// Median.
    #[serde(rename = "p50")]
    P50,
    /// 90th percentile.
    #[serde(rename = "p90")]
    P90,
    /// 99th percentile.
    #[serde(rename = "p99")]
    P99,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    P999,
}

impl Figure {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Mean, Self::P50, Self::P90, Self::P99, Self::P999];

    /// As it is written in a report and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// The figure of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.name() == name)
    }
}

/// One side.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SideFacts {
    /// Its name.
    pub name: String,
    /// Whether it equals the first one, as a control.
    pub control: bool,
    /// How many rounds it has.
    #[schemars(range(min = 1))]
    pub rounds: usize,
    /// Where they came from.
    pub files: Vec<String>,
}

/// One point on all sides.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PointComparison {
    /// The engine.
    pub engine: String,
    /// Direction or command of block engines.
    pub operation: Option<String>,
    /// Payload bytes of a command.
    pub bs_bytes: Option<u64>,
    /// Outstanding commands.
    #[schemars(range(min = 1))]
    pub qd: u64,
    /// Measuring threads.
    #[schemars(range(min = 1))]
    pub jobs: u64,
    /// The sides, in their order.
    #[schemars(length(min = 1))]
    pub sides: Vec<SidePoint>,
}

/// One point on one side.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SidePoint {
    /// The side's name.
    pub name: String,
    /// Whether it equals the first one, as a control.
    pub control: bool,
    /// Median over rounds of the commands per second.
    pub ops_per_s: Option<f64>,
    /// Figures that every round supports.
    pub figures: Vec<FigureComparison>,
    /// The shift at every percentile that all rounds support; empty for the first side.
    pub shift_function: Vec<QuantileShift>,
}

/// A figure on one side, against the first one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureComparison {
    /// Which one.
    pub figure: Figure,
    /// Median over rounds, ns.
    #[schemars(range(min = 0))]
    pub median_ns: f64,
    /// Against the first side; null for that side itself.
    pub against_first: Option<Against>,
}

/// Against the first side.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = added_later(&["unresolvable_ns"]))]
pub struct Against {
    /// The shift, positive if slower.
    #[serde(flatten)]
    pub shift: Shift,
    /// The shift in percent of the first side's median over rounds.
    pub shift_percent: Option<f64>,
    /// Lower end of the interval, in percent.
    pub low_percent: Option<f64>,
    /// Upper end, in percent.
    pub high_percent: Option<f64>,
    /// The least effect of interest, ns.
    #[schemars(range(min = 0))]
    pub least_effect_ns: f64,
    /// The spread of the instrument's own floor, median over rounds, ns: a shift below it is neither slower nor faster.
    // What is taken where an old document lacks it is no promise to readers.
    #[serde(default)]
    #[schemars(range(min = 0), transform = |schema: &mut Schema| drop(schema.remove("default")))]
    pub unresolvable_ns: f64,
    /// What can be said.
    pub verdict: Verdict,
}

/// A line through the shifts over a sweep of sizes, on one side against the first one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CostComparison {
    /// The side's name.
    pub side: String,
    /// The engine.
    pub engine: String,
    /// Direction or command of block engines.
    pub operation: Option<String>,
    /// Outstanding commands.
    #[schemars(range(min = 1))]
    pub qd: u64,
    /// Measuring threads.
    #[schemars(range(min = 1))]
    pub jobs: u64,
    /// The figure whose shift it is.
    pub figure: Figure,
    /// The sizes, bytes.
    #[schemars(length(min = 3))]
    pub sizes: Vec<u64>,
    /// Shift that every command has, whatever its size.
    pub per_command: Shift,
    /// Shift that every byte adds: its keys are ns a byte.
    pub per_byte: Shift,
}

/// The shift of one percentile.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct QuantileShift {
    /// The percentile.
    #[schemars(range(min = 0, max = 100))]
    pub percentile: f64,
    /// Its shift.
    #[serde(flatten)]
    pub shift: Shift,
}

/// A value that is not the same on all sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Its place in a result.
    pub key: String,
    /// The values on each side, in the order of the sides, as JSON.
    pub values: Vec<Vec<String>>,
}

impl PointComparison {
    /// What was measured, in a line.
    pub fn title(&self) -> String {
        let mut title = self.engine.clone();
        title.extend(self.operation.iter().map(|operation| format!(", {operation}")));
        title.extend(self.bs_bytes.map(|bytes| format!(", {}", format_size(bytes))));
        title.push_str(&format!(", depth {}", self.qd));
        if self.jobs > 1 {
            title.push_str(&format!(", {} jobs", self.jobs));
        }
        title
    }
}

impl Comparison {
    /// One that was stored; `origin` names it in errors.
    ///
    /// # Errors
    /// [`Error::Usage`] with the key that is missing or of another type, or the schema that it is of.
    pub fn of(origin: &str, document: Value) -> Result<Self> {
        require_schema(origin, &document, COMPARISON_SCHEMA)?;
        serde_json::from_value(document).map_err(|error| Error::usage(format!("{origin}: {error}")))
    }

    /// The worst of some verdicts.
    pub fn worst(verdicts: impl Iterator<Item = Verdict>) -> Option<Verdict> {
        let badness = |verdict: &Verdict| match verdict {
            Verdict::Same => 0,
            Verdict::Faster => 1,
            Verdict::Inconclusive => 2,
            Verdict::Slower => 3,
        };
        verdicts.max_by_key(badness)
    }
}
