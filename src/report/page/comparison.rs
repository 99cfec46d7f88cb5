//! A stored comparison as a page shows it: what it needs of `lat-probe.comparison/1`, with unknown keys ignored.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ShownComparison, tables};
use crate::{
    error::{Error, Result},
    report::{comparison::COMPARISON_SCHEMA, read::require_schema, warning::Warning},
    units::{format_ns, format_size},
};

/// A comparison.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)] // As in the schema, here and below.
pub struct StoredComparison {
    pub method: StoredMethod,
    pub sides: Vec<StoredSide>,
    pub points: Vec<StoredPointComparison>,
    #[serde(default)]
    pub differences: Vec<StoredDifference>,
    #[serde(default)]
    pub warnings: Vec<Warning>,
    pub verdict: Option<String>,
}

/// How it was made.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredMethod {
    pub in_blocks: bool,
    pub level: f64,
    pub judged_figures: Vec<String>,
}

/// A side.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredSide {
    pub name: String,
    pub rounds: u64,
}

/// A point on all sides.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredPointComparison {
    pub engine: String,
    pub operation: Option<String>,
    pub bs_bytes: Option<u64>,
    pub qd: u64,
    pub jobs: u64,
    pub sides: Vec<StoredSidePoint>,
}

/// A point on one side.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredSidePoint {
    pub name: String,
    pub figures: Vec<StoredFigure>,
    pub shift_function: Vec<StoredQuantileShift>,
}

/// A figure.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredFigure {
    pub figure: String,
    pub median_ns: f64,
    pub against_first: Option<StoredAgainst>,
}

/// A figure against the first side.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredAgainst {
    pub shift_ns: f64,
    pub shift_percent: Option<f64>,
    pub low_ns: Option<f64>,
    pub high_ns: Option<f64>,
    pub verdict: String,
}

/// The shift of one percentile.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredQuantileShift {
    pub percentile: f64,
    pub shift_ns: f64,
    pub low_ns: Option<f64>,
    pub high_ns: Option<f64>,
}

/// What is not the same on all sides.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StoredDifference {
    pub key: String,
    pub values: Vec<Vec<String>>,
}

impl StoredComparison {
    /// A comparison from a document; `origin` names it in errors.
    ///
    /// # Errors
    /// [`Error::Usage`] with the key that is missing or of another type, or the schema that it is of.
    pub fn of(origin: &str, document: Value) -> Result<Self> {
        require_schema(origin, &document, COMPARISON_SCHEMA)?;
        serde_json::from_value(document).map_err(|error| Error::usage(format!("{origin}: {error}")))
    }
}

impl StoredPointComparison {
    fn title(&self) -> String {
        let mut parts = vec![self.engine.clone()];
        parts.extend(self.operation.clone());
        parts.extend(self.bs_bytes.map(format_size));
        parts.push(format!("depth {}", self.qd));
        if self.jobs > 1 {
            parts.push(format!("{} jobs", self.jobs));
        }
        parts.join(", ")
    }
}

/// The shift functions, a chart for each point.
pub(super) fn charts(shown: &ShownComparison) -> Vec<Value> {
    let points = shown.stored.points.iter();
    points
        .map(|point| {
            let sides = point.sides.iter().filter(|side| !side.shift_function.is_empty());
            json!({
                "name": point.title(),
                "sides": sides.map(|side| json!({
                    "name": side.name,
                    "shifts": side.shift_function.iter().map(|at| {
                        json!([at.percentile, at.shift_ns, at.low_ns, at.high_ns])
                    }).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            })
        })
        .collect()
}

/// All comparisons, their verdict first.
pub(super) fn tables(comparisons: &[ShownComparison]) -> Markup {
    let mut charts = 0..;
    html! {
        @for ShownComparison { origin, stored } in comparisons {
            h3 { (origin) }
            p.verdict { "Verdict: " strong { (stored.verdict.as_deref().unwrap_or("none, there is one side")) } }
            p { (method(stored)) }
            @if !stored.warnings.is_empty() {
                div.warnings { ul { @for warning in &stored.warnings { li { (warning.message) " " code { (warning.code) } } } } }
            }
            @for point in &stored.points {
                h4 { (point.title()) }
                (figures(point))
                div data-shift=(charts.next().unwrap_or_default()) {
                    (tables::chart("shift", "Shift at each percentile, with its interval; above 0 is slower", &[
                        ("log", "Stretch small shifts", false),
                    ]))
                }
            }
            @if !stored.differences.is_empty() { (differences(stored)) }
        }
    }
}

fn method(stored: &StoredComparison) -> String {
    let sides: Vec<_> = stored.sides.iter().map(|side| format!("{} ({} rounds)", side.name, side.rounds)).collect();
    let blocks = if stored.method.in_blocks { ", within blocks" } else { "" };
    let level = (1000.0 * stored.method.level).round() / 10.0;
    format!(
        "{}. The first is the base. The unit is the round{blocks}; intervals of {level} % together; judged by {}.",
        sides.join(", "),
        stored.method.judged_figures.join(", ")
    )
}

fn figures(point: &StoredPointComparison) -> Markup {
    let Some((first, others)) = point.sides.split_first() else { return html! {} };
    html! {
        div.wide { table {
            thead { tr {
                th scope="col" { "figure" } th.number scope="col" { (first.name) } th scope="col" { "side" }
                th.number scope="col" { "median" } th.number scope="col" { "shift" } th.number scope="col" { "%" }
                th scope="col" { "interval" } th scope="col" { "verdict" }
            } }
            tbody {
                @for base in &first.figures {
                    @for side in others {
                        @for figure in side.figures.iter().filter(|figure| figure.figure == base.figure) {
                            @if let Some(against) = &figure.against_first {
                                tr {
                                    th scope="row" { (base.figure) } td.number { (tables::time(Some(base.median_ns))) }
                                    td { (side.name) } td.number { (tables::time(Some(figure.median_ns))) }
                                    td.number { (signed(against.shift_ns)) }
                                    td.number { (against.shift_percent.map_or("–".into(), |percent| format!("{percent:+.2}"))) }
                                    td { (interval(against)) } td { (against.verdict) }
                                }
                            }
                        }
                    }
                }
            }
        } }
    }
}

fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "−" } else { "+" }, format_ns(ns.abs()))
}

fn interval(against: &StoredAgainst) -> String {
    match (against.low_ns, against.high_ns) {
        (Some(low), Some(high)) => format!("{} to {}", signed(low), signed(high)),
        _ => "too few rounds".into(),
    }
}

fn differences(stored: &StoredComparison) -> Markup {
    html! {
        details {
            summary { "What is not the same on all sides" }
            div.wide { table.facts {
                thead { tr { th scope="col" { "key" } @for side in &stored.sides { th scope="col" { (side.name) } } } }
                tbody { @for difference in &stored.differences {
                    tr { th scope="row" { (difference.key) } @for values in &difference.values { td { (values.join(", ")) } } }
                } }
            } }
        }
    }
}
