//! `lat-probe compare`: finished results, side against side, with a verdict.

pub(super) mod conclude;
mod cost;
mod doubts;
mod setup;
mod sides;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use super::{Format, Outcome};
use crate::{
    error::{Error, Result},
    report::{
        OutputFile, Warning,
        comparison::{
            Against, COMPARISON_SCHEMA, Comparison, Figure, FigureComparison, Method, PointComparison, QuantileShift,
            SideFacts, SidePoint,
        },
        comparison_text,
        read::{PointKey, Round, RoundPoint, Side},
        result::Tool,
    },
    stats::{Percentiles, Shift, Summary, Verdict, median},
};

/// Probability that all intervals that are judged cover what they are of.
pub const LEVEL: f64 = 0.95;

/// The least effect of interest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinEffect {
    /// In percent of the first side.
    Percent(f64),
    /// In nanoseconds.
    Ns(f64),
}

/// How figures are judged.
#[derive(Clone, Debug)]
pub struct Judging {
    /// The least effect of interest.
    pub min_effect: MinEffect,
    /// The figures that the verdict rests on.
    pub figures: Vec<Figure>,
    /// Probability that all of their intervals cover what they are of; [`LEVEL`] but for the looks of a series.
    pub level: f64,
}

/// What to compare, and what becomes of it.
#[derive(Clone, Debug)]
pub struct Compare {
    /// The sides as typed, `[NAME=]PATTERN`; the first one is what the others are compared with.
    pub sides: Vec<String>,
    /// How figures are judged.
    pub judging: Judging,
    /// Limits that figures of the last side must not be above.
    pub fail_above: Vec<(Figure, Duration)>,
    /// What stdout shows.
    pub format: ComparisonFormat,
    /// Where the JSON goes as well.
    pub output: Option<PathBuf>,
    /// Where a JUnit report goes.
    pub junit: Option<PathBuf>,
}

/// What stdout shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonFormat {
    /// Text or JSON.
    Plain(Format),
    /// A table in Markdown.
    Markdown,
    /// A table as comma-separated values.
    Csv,
}

/// Compares.
///
/// # Errors
/// [`Error::Usage`] for input that cannot be compared; [`Error::Output`].
pub fn compare(options: &Compare) -> Result<Outcome> {
    let output = options.output.as_deref().map(OutputFile::open).transpose()?;
    let junit = options.junit.as_deref().map(OutputFile::open).transpose()?;
    let sides = sides::read(&options.sides)?;
    if sides.len() < 2 && options.fail_above.is_empty() {
        return Err(Error::usage(
            "compare needs two sides, or one and --fail-above: lat-probe compare 'before-*.json' 'after-*.json'",
        ));
    }
    let mut comparison = of_sides(&sides, &options.judging)?;
    comparison.gates = conclude::gates(&comparison, &options.fail_above);
    let show = |document: &str| match options.format {
        ComparisonFormat::Plain(Format::Json) => document.to_string(),
        ComparisonFormat::Plain(Format::Text) => comparison_text::text(&comparison),
        ComparisonFormat::Markdown => comparison_text::markdown(&comparison),
        ComparisonFormat::Csv => comparison_text::csv(&comparison),
    };
    conclude::conclude(&comparison, show, output, junit, None)
}

/// Compares sides that are at hand.
///
/// # Errors
/// [`Error::Usage`] for sides whose figures are of other kinds, or that have no point in common.
pub(super) fn of_sides(sides: &[Side], judging: &Judging) -> Result<Comparison> {
    let Judging { min_effect, figures: judged_figures, level } = judging;
    let (min_effect, level) = (*min_effect, *level);
    let keys = common_keys(sides)?;
    setup::require_equal(sides, &keys)?;
    let in_blocks = sides.iter().flat_map(|side| &side.rounds).all(|round| round.block.is_some());
    // A control is no question of its own.
    let asked = sides.iter().skip(1).filter(|side| !side.control).count();
    let asked = if asked == 0 { sides.len() - 1 } else { asked };
    let judged = (keys.len() * asked * judged_figures.len()).max(1);
    let level_of_each = 1.0 - (1.0 - level) / judged as f64;
    let at = Judgement { in_blocks, level: level_of_each, min_effect };
    let points: Vec<_> = keys.iter().map(|key| at.point(sides, key)).collect();
    let only_controls = sides.iter().skip(1).all(|side| side.control);
    let unsupported = if sides.len() > 1 { doubts::unsupported(&points, judged_figures) } else { Vec::new() };
    let found = verdicts(&points, judged_figures, |control| control == only_controls);
    // What cannot be judged must not pass.
    let verdict = Comparison::worst(found.chain(unsupported.iter().map(|_| Verdict::Inconclusive)));
    let mut warnings = setup::doubts(sides, &keys);
    warnings.extend(doubts::left_out(sides, &keys));
    warnings.extend(unsupported);
    let differs = |verdict: Verdict| matches!(verdict, Verdict::Slower | Verdict::Faster);
    if !only_controls && verdicts(&points, judged_figures, |control| control).any(differs) {
        let message =
            "the control, which equals the first side, differs from it: something else than the sides changes";
        warnings.push(Warning::new("control-differs", message));
    }
    warnings.extend(doubts::of_rounds(sides, in_blocks));
    if sides.len() > 1 {
        warnings.extend(doubts::too_few(sides, level_of_each, in_blocks));
    }
    if !in_blocks {
        warnings.extend(doubts::uneven(sides, &keys, judged_figures));
    }
    warnings.extend(doubts::unresolved(&points, judged_figures));
    let (percent, ns) = match min_effect {
        MinEffect::Percent(percent) => (Some(percent), None),
        MinEffect::Ns(ns) => (None, Some(ns)),
    };
    Ok(Comparison {
        schema: COMPARISON_SCHEMA.into(),
        tool: Tool::default(),
        method: Method {
            unit: "round".into(),
            in_blocks,
            level,
            judged,
            level_of_each,
            judged_figures: judged_figures.to_vec(),
            min_effect_percent: percent,
            min_effect_ns: ns,
        },
        sides: sides
            .iter()
            .map(|side| SideFacts {
                name: side.name.clone(),
                control: side.control,
                rounds: side.rounds.len(),
                files: side.rounds.iter().map(|round| round.origin.clone()).collect(),
            })
            .collect(),
        costs: cost::costs(&at, sides, &keys),
        points,
        differences: setup::differences(sides),
        gates: Vec::new(),
        warnings,
        verdict,
    })
}

/// The judged verdicts of sides that are controls or not, as `wanted` says.
fn verdicts(
    points: &[PointComparison],
    judged: &[Figure],
    wanted: impl Fn(bool) -> bool,
) -> impl Iterator<Item = Verdict> {
    let sides = points.iter().flat_map(|point| &point.sides).filter(move |side| wanted(side.control));
    sides.flat_map(|side| &side.figures).filter_map(|figure| {
        let against = figure.against_first.as_ref()?;
        judged.contains(&figure.figure).then_some(against.verdict)
    })
}

/// Points that every round of every side has, in the order of the first.
fn common_keys(sides: &[Side]) -> Result<Vec<PointKey>> {
    let rounds = || sides.iter().flat_map(|side| &side.rounds);
    let first = rounds().next().map(|round| round.points.iter().map(|point| point.key.clone()).collect::<Vec<_>>());
    let first = first.unwrap_or_default();
    let common: Vec<PointKey> =
        first.iter().filter(|key| rounds().all(|round| point_of(round, key).is_some())).cloned().collect();
    if common.is_empty() {
        let has = |round: &Round| round.points.iter().map(|point| point.key.to_string()).collect::<Vec<_>>().join("; ");
        let other = rounds().find(|round| !first.iter().any(|key| point_of(round, key).is_some()));
        let (first, other) = (rounds().next(), other.or(rounds().last()));
        let said = [first, other].into_iter().flatten().map(|round| format!("{} has {}", round.origin, has(round)));
        let said: Vec<_> = said.collect();
        return Err(Error::usage(format!("there is no point that all runs have: {}", said.join(", "))));
    }
    Ok(common)
}

fn point_of<'a>(round: &'a Round, key: &PointKey) -> Option<&'a RoundPoint> {
    round.points.iter().find(|point| point.key == *key)
}

/// How figures are judged.
struct Judgement {
    in_blocks: bool,
    level: f64,
    min_effect: MinEffect,
}

impl Judgement {
    fn point(&self, sides: &[Side], key: &PointKey) -> PointComparison {
        let of = |side: &Side| SidePoint {
            name: side.name.clone(),
            control: side.control,
            ops_per_s: median(
                &side.rounds.iter().filter_map(|round| point_of(round, key)?.ops_per_s).collect::<Vec<_>>(),
            ),
            figures: Figure::ALL.into_iter().filter_map(|figure| self.figure(sides, side, key, figure)).collect(),
            shift_function: self.shift_function(&sides[0], side, key),
        };
        PointComparison {
            engine: key.engine.clone(),
            operation: key.operation.clone(),
            bs_bytes: key.bs_bytes,
            qd: key.qd,
            jobs: key.jobs,
            sides: sides.iter().map(of).collect(),
        }
    }

    fn figure(&self, sides: &[Side], side: &Side, key: &PointKey, figure: Figure) -> Option<FigureComparison> {
        let of = |summary: &Summary| value(summary, figure);
        let median_ns = median(&values(side, key, of)?)?;
        let is_first = std::ptr::eq(side, &sides[0]);
        let against_first = if is_first { None } else { Some(self.against(&sides[0], side, key, of)?) };
        Some(FigureComparison { figure, median_ns, against_first })
    }

    fn against(
        &self,
        first: &Side,
        side: &Side,
        key: &PointKey,
        of: impl Fn(&Summary) -> Option<f64>,
    ) -> Option<Against> {
        let shift = self.shift(first, side, key, &of)?;
        let base_ns = median(&values(first, key, &of)?)?;
        let percent = |ns: f64| (base_ns > 0.0).then(|| 100.0 * ns / base_ns);
        let least_effect_ns = match self.min_effect {
            MinEffect::Percent(percent) => base_ns * percent / 100.0,
            MinEffect::Ns(ns) => ns,
        };
        let unresolvable_ns = doubts::unresolvable_ns(&[first, side], key);
        Some(Against {
            shift,
            shift_percent: percent(shift.shift_ns),
            low_percent: shift.low_ns.and_then(percent),
            high_percent: shift.high_ns.and_then(percent),
            least_effect_ns,
            unresolvable_ns,
            verdict: Verdict::of(&shift, least_effect_ns).if_resolved(&shift, unresolvable_ns),
        })
    }

    fn shift(&self, first: &Side, side: &Side, key: &PointKey, of: impl Fn(&Summary) -> Option<f64>) -> Option<Shift> {
        if !self.in_blocks {
            return Shift::of_two_samples(&values(first, key, &of)?, &values(side, key, &of)?, self.level);
        }
        let difference =
            |(base, other): &(Vec<&Round>, Vec<&Round>)| Some(mean(other, key, &of)? - mean(base, key, &of)?);
        let differences: Vec<f64> = self.pairs(first, side).iter().filter_map(difference).collect();
        Shift::of_blocks(&differences, self.level)
    }

    /// Rounds of both sides that belong together: those of a block, or those of equal place.
    fn pairs<'a>(&self, first: &'a Side, side: &'a Side) -> Vec<(Vec<&'a Round>, Vec<&'a Round>)> {
        if !self.in_blocks {
            return first.rounds.iter().zip(&side.rounds).map(|(base, other)| (vec![base], vec![other])).collect();
        }
        let blocks: BTreeSet<_> = first.rounds.iter().filter_map(|round| round.block).collect();
        let of = |side: &'a Side, block: u64| side.rounds.iter().filter(|round| round.block == Some(block)).collect();
        blocks.into_iter().map(|block| (of(first, block), of(side, block))).collect()
    }

    fn shift_function(&self, first: &Side, side: &Side, key: &PointKey) -> Vec<QuantileShift> {
        if std::ptr::eq(first, side) {
            return Vec::new();
        }
        let at = |(percentile, of): (f64, OfPercentiles)| {
            // A percentile that one round cannot support has no shift.
            let of = |summary: &Summary| of(&summary.percentiles);
            values(first, key, of)?;
            values(side, key, of)?;
            Some(QuantileShift { percentile, shift: self.shift(first, side, key, of)? })
        };
        QUANTILES.into_iter().filter_map(at).collect()
    }
}

type OfPercentiles = fn(&Percentiles) -> Option<f64>;

/// Every percentile that a result has.
const QUANTILES: [(f64, OfPercentiles); 13] = [
    (1.0, |p| p.p1),
    (5.0, |p| p.p5),
    (10.0, |p| p.p10),
    (25.0, |p| p.p25),
    (50.0, |p| p.p50),
    (75.0, |p| p.p75),
    (90.0, |p| p.p90),
    (95.0, |p| p.p95),
    (99.0, |p| p.p99),
    (99.5, |p| p.p99_5),
    (99.9, |p| p.p99_9),
    (99.99, |p| p.p99_99),
    (99.999, |p| p.p99_999),
];

/// A figure of every round of a side; `None` if one of them does not support it.
fn values(side: &Side, key: &PointKey, of: impl Fn(&Summary) -> Option<f64>) -> Option<Vec<f64>> {
    side.rounds.iter().map(|round| of(&point_of(round, key)?.latency_ns)).collect()
}

/// The mean of a figure over rounds that belong together; `None` if none of them supports it.
fn mean(rounds: &[&Round], key: &PointKey, of: impl Fn(&Summary) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = rounds.iter().filter_map(|round| of(&point_of(round, key)?.latency_ns)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn value(summary: &Summary, figure: Figure) -> Option<f64> {
    let p = &summary.percentiles;
    match figure {
        Figure::Mean => summary.mean,
        Figure::P50 => p.p50,
        Figure::P90 => p.p90,
        Figure::P99 => p.p99,
        Figure::P999 => p.p99_9,
    }
}
