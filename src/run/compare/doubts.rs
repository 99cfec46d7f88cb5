//! Why a comparison may not say what it seems to say.

use std::collections::BTreeSet;

use super::{point_of, value, values};
use crate::{
    report::{
        Warning,
        comparison::{Figure, FigureComparison, PointComparison, SidePoint},
        read::{PointKey, Round, Side},
    },
    stats::{Shift, Verdict, median},
    units::format_ns,
};

/// The spread of the instrument's floor in a round, as the median over rounds, so that one noisy round does not hide what
/// all the others show.
pub(super) fn unresolvable_ns(sides: &[&Side], key: &PointKey) -> f64 {
    let rounds = sides.iter().flat_map(|side| &side.rounds);
    let of = |round: &Round| {
        let point = round.document_of(point_of(round, key)?);
        point.pointer("/share/unresolvable_below_ns")?.as_f64()
    };
    median(&rounds.filter_map(of).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// Says so where a judged shift would have a direction but for the instrument's own spread.
pub(super) fn unresolved(points: &[PointComparison], judged: &[Figure]) -> Vec<Warning> {
    let sides = points.iter().flat_map(|point| point.sides.iter().map(move |side| (point, side)));
    let figures = sides.flat_map(|(point, side)| side.figures.iter().map(move |figure| (point, side, figure)));
    let of = |(point, side, figure): (&PointComparison, &SidePoint, &FigureComparison)| {
        let against = figure.against_first.as_ref().filter(|_| judged.contains(&figure.figure))?;
        let (shift, spread_ns) = (&against.shift, against.unresolvable_ns);
        let taken_back = Verdict::of(shift, against.least_effect_ns) != against.verdict;
        let message = format!(
            "{}: the shift of {} of {} is sharp, but below {}, the spread of the instrument's own floor",
            point.title(),
            figure.figure.name(),
            side.name,
            format_ns(spread_ns)
        );
        taken_back.then(|| Warning::new("below-floor", message))
    };
    figures.filter_map(of).collect()
}

/// Judged figures that not every round supports, at each point: nothing can be told of them.
pub(super) fn unsupported(points: &[PointComparison], judged: &[Figure]) -> Vec<Warning> {
    let of = |point: &PointComparison, figure: Figure| {
        let has = |side: &SidePoint| side.figures.iter().any(|found| found.figure == figure);
        let side = point.sides.iter().find(|side| !has(side))?;
        let (title, figure, name) = (point.title(), figure.name(), &side.name);
        let message = format!("{title}: {figure} is judged, but not every round has the samples for it: {name}");
        Some(Warning::new("unsupported", message))
    };
    points.iter().flat_map(|point| judged.iter().filter_map(move |&figure| of(point, figure))).collect()
}

/// Names the points that only some rounds have: nothing is said of them.
pub(super) fn left_out(sides: &[Side], keys: &[PointKey]) -> Option<Warning> {
    let all = sides.iter().flat_map(|side| &side.rounds).flat_map(|round| &round.points);
    let left_out: BTreeSet<String> =
        all.filter(|point| !keys.contains(&point.key)).map(|point| point.key.to_string()).collect();
    let names = left_out.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
    (!left_out.is_empty()).then(|| Warning::new("left-out", format!("not all rounds have these points: {names}")))
}

/// Doubts that do not come from the figures: commands that failed, and an order that lets a drift look like a shift.
pub(super) fn of_rounds(sides: &[Side], in_blocks: bool) -> Vec<Warning> {
    let mut warnings: Vec<_> = sides.iter().filter_map(failed).collect();
    if let Some((first, others)) = sides.split_first().filter(|_| !in_blocks) {
        warnings.extend(others.iter().filter_map(|side| not_in_turn(first, side)));
    }
    warnings
}

fn failed(side: &Side) -> Option<Warning> {
    let names = |round: &Round| -> BTreeSet<String> {
        let points = round.points.iter().map(|point| &round.document_of(point)["errors"]);
        let counts = points.filter_map(|errors| errors.as_object()).flatten();
        counts.filter(|(_, count)| count.as_u64() != Some(0)).map(|(name, _)| name.clone()).collect()
    };
    let failed: Vec<_> = side.rounds.iter().map(names).filter(|names| !names.is_empty()).collect();
    let (all, count, name) = (side.rounds.len(), failed.len(), &side.name);
    let names: BTreeSet<String> = failed.into_iter().flatten().collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    (count > 0).then(|| Warning::new("errors", format!("{count} of {all} rounds of {name} count errors: {names}")))
}

/// Whether all rounds of one side were taken before all of the other.
fn not_in_turn(first: &Side, other: &Side) -> Option<Warning> {
    let ((first_from, first_to), (from, to)) = (span(first)?, span(other)?);
    let (earlier, later) = match () {
        () if first_to < from => (&first.name, &other.name),
        () if to < first_from => (&other.name, &first.name),
        () => return None,
    };
    let message = format!(
        "all rounds of {earlier} were taken before those of {later}: whatever the machine did between them is in the shift. \
         Take them in turn, as lat-probe ab does"
    );
    Some(Warning::new("not-in-turn", message))
}

/// When the first and the last of several rounds began. Times are RFC 3339 in UTC, so their order is that of their text.
fn span(side: &Side) -> Option<(&str, &str)> {
    let times: Option<Vec<&str>> = side.rounds.iter().map(|round| round.document["started_at"].as_str()).collect();
    let times = times.filter(|times| times.len() > 1)?;
    Some((times.iter().min()?, times.iter().max()?))
}

/// How many times as many rounds, and as wide a scatter, are uneven.
const UNEVEN: (f64, f64) = (1.5, 2.0);

/// Says so where the side with fewer rounds scatters more: [`Shift::of_two_samples`] errs too often then.
pub(super) fn uneven(sides: &[Side], keys: &[PointKey], judged: &[Figure]) -> Vec<Warning> {
    let Some((first, others)) = sides.split_first() else { return Vec::new() };
    let of = |side: &Side| {
        let (few, many) = if side.rounds.len() < first.rounds.len() { (side, first) } else { (first, side) };
        let (n, m) = (few.rounds.len(), many.rounds.len());
        if n < 2 || (m as f64) < UNEVEN.0 * n as f64 {
            return None;
        }
        let mut scatters = keys.iter().flat_map(|key| judged.iter().map(move |&figure| (key, figure)));
        let (wide_ns, narrow_ns) = scatters.find_map(|(key, figure)| {
            let scatter = |side| scatter_ns(&values(side, key, |summary| value(summary, figure))?);
            let (wide, narrow) = (scatter(few)?, scatter(many)?);
            (wide > 0.0 && wide >= UNEVEN.1 * narrow).then_some((wide, narrow))
        })?;
        let (few, many, wide, narrow) = (&few.name, &many.name, format_ns(wide_ns), format_ns(narrow_ns));
        let message = format!(
            "the {n} rounds of {few} scatter by {wide}, the {m} of {many} by {narrow}: intervals are too narrow where fewer \
             rounds scatter more. Take as many of each"
        );
        Some(Warning::new("uneven-rounds", message))
    };
    others.iter().filter_map(of).collect()
}

/// The median distance from the median.
fn scatter_ns(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    median(&values.iter().map(|ns| (ns - middle).abs()).collect::<Vec<_>>())
}

/// Says so where a side has too few rounds for an interval.
pub(super) fn too_few(sides: &[Side], level: f64, in_blocks: bool) -> Option<Warning> {
    let has_interval = |base: usize, other: usize| {
        let (base, other) = (vec![0.0; base], vec![0.0; other]);
        let shift =
            if in_blocks { Shift::of_blocks(&other, level) } else { Shift::of_two_samples(&base, &other, level) };
        shift.is_some_and(|shift| shift.low_ns.is_some())
    };
    let unit = |side: &Side| {
        let blocks: BTreeSet<_> = side.rounds.iter().filter_map(|round| round.block).collect();
        if in_blocks { blocks.len() } else { side.rounds.len() }
    };
    let (first, others) = sides.split_first()?;
    let few = others.iter().find(|side| !has_interval(unit(first), unit(side)))?;
    let needed = (2..1000).find(|&n| has_interval(n, n))?;
    let (name, has, units) = (&few.name, unit(few), if in_blocks { "blocks" } else { "rounds" });
    let base = unit(first);
    Some(Warning::new(
        "few-rounds",
        format!("{base} against {has} {units} of {name} have no interval of this level; {needed} each have one"),
    ))
}
