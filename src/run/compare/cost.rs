//! Over a sweep of sizes: what of a shift is for each command, and what for each byte.

use super::{Judgement, Side, mean, value};
use crate::{
    report::{
        comparison::{CostComparison, Figure},
        read::{PointKey, Round},
    },
    stats::{Line, Shift},
};

/// Sizes that a line needs to mean something.
const LEAST_SIZES: usize = 3;

/// For each series of sizes, and each side but the first.
pub(super) fn costs(at: &Judgement, sides: &[Side], keys: &[PointKey]) -> Vec<CostComparison> {
    let Some((first, others)) = sides.split_first() else { return Vec::new() };
    let mut costs = Vec::new();
    for sweep in sweeps(keys) {
        for side in others {
            for figure in [Figure::Mean, Figure::P50] {
                costs.extend(cost(at, (first, side), &sweep, figure));
            }
        }
    }
    costs
}

/// Points that differ in nothing but their size.
fn sweeps(keys: &[PointKey]) -> Vec<Vec<PointKey>> {
    let mut sweeps: Vec<Vec<PointKey>> = Vec::new();
    let kind = |key: &PointKey| PointKey { bs_bytes: None, ..key.clone() };
    for key in keys.iter().filter(|key| key.bs_bytes.is_some()) {
        match sweeps.iter_mut().find(|sweep| kind(&sweep[0]) == kind(key)) {
            Some(sweep) => sweep.push(key.clone()),
            None => sweeps.push(vec![key.clone()]),
        }
    }
    sweeps.retain(|sweep| sweep.len() >= LEAST_SIZES);
    sweeps
}

/// A line through the shifts of each block, so that the round stays the unit. Without blocks, the rounds of both sides are
/// taken together in their order.
fn cost(at: &Judgement, (first, side): (&Side, &Side), sweep: &[PointKey], figure: Figure) -> Option<CostComparison> {
    let of = |rounds: &[&Round], key: &PointKey| mean(rounds, key, |summary| value(summary, figure));
    let line = |(base, other): &(Vec<&Round>, Vec<&Round>)| {
        let point = |key: &PointKey| Some((key.bs_bytes? as f64, of(other, key)? - of(base, key)?));
        Line::through(&sweep.iter().filter_map(point).collect::<Vec<_>>())
    };
    let lines: Vec<Line> = at.pairs(first, side).iter().filter_map(line).collect();
    let of_lines = |part: fn(&Line) -> f64| Shift::of_blocks(&lines.iter().map(part).collect::<Vec<_>>(), at.level);
    let (key, sizes) = (sweep.first()?, sweep.iter().filter_map(|key| key.bs_bytes));
    Some(CostComparison {
        side: side.name.clone(),
        engine: key.engine.clone(),
        operation: key.operation.clone(),
        qd: key.qd,
        jobs: key.jobs,
        figure,
        sizes: sizes.collect(),
        per_command: of_lines(|line| line.intercept)?,
        per_byte: of_lines(|line| line.slope)?,
    })
}
