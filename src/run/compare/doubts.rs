//! Why a comparison may not say what it seems to say.

use std::collections::BTreeSet;

use super::point_of;
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
