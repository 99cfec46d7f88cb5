//! From a comparison to the program's end: files, what stdout shows, limits, the exit code.

use std::time::Duration;

use super::super::{Outcome, finish_document};
use crate::{
    error::{Error, Result},
    measure::Stop,
    report::{
        OutputFile,
        comparison::{Comparison, Figure, Gate, PointComparison, SidePoint},
        json, junit,
    },
    stats::Verdict,
};

/// Exit code of a regression.
const EXIT_REGRESSION: u8 = 3;
/// Exit code of a comparison that cannot tell.
pub(in crate::run) const EXIT_INCONCLUSIVE: u8 = 4;

/// Writes a comparison to its files. `show` makes what stdout shows from the JSON document.
///
/// # Errors
/// [`Error::Output`] for a document that cannot be made; a file that cannot be written is in the outcome.
pub(in crate::run) fn conclude(
    comparison: &Comparison,
    show: impl FnOnce(&str) -> String,
    output: Option<OutputFile>,
    junit: Option<OutputFile>,
    stop: Option<Stop>,
) -> Result<Outcome> {
    let document = json::to_string(comparison).map_err(|source| Error::Output { path: "<stdout>".into(), source })?;
    let stdout = show(&document);
    let mut outcome = finish_document(document, stdout, output, None, stop);
    if let Some(junit) = junit {
        let stored = junit.commit(junit::render(comparison).as_bytes());
        outcome.failure = outcome.failure.or(stored.err());
        outcome.exit_code = outcome.failure.as_ref().map_or(outcome.exit_code, Error::exit_code);
    }
    if outcome.failure.is_none() && stop.is_none() {
        outcome.exit_code = exit_code(comparison);
    }
    Ok(outcome)
}

/// 3 for a regression or a limit that was not kept, 4 if nothing can be told, 0 otherwise.
fn exit_code(comparison: &Comparison) -> u8 {
    let gates_hold = comparison.gates.iter().all(|gate| gate.passed);
    match comparison.verdict {
        Some(Verdict::Slower) => EXIT_REGRESSION,
        _ if !gates_hold => EXIT_REGRESSION,
        Some(Verdict::Inconclusive) => EXIT_INCONCLUSIVE,
        Some(Verdict::Same | Verdict::Faster) | None => 0,
    }
}

/// Holds every point of the last side against the limits.
pub(super) fn gates(comparison: &Comparison, limits: &[(Figure, Duration)]) -> Vec<Gate> {
    let of = |point: &PointComparison, side: &SidePoint, figure: Figure, limit: Duration| {
        let value_ns = side.figures.iter().find(|found| found.figure == figure).map(|found| found.median_ns);
        let limit_ns = limit.as_nanos() as f64;
        let passed = value_ns.is_some_and(|value_ns| value_ns <= limit_ns);
        Gate { point: point.title(), side: side.name.clone(), figure, limit_ns, value_ns, passed }
    };
    let points = comparison.points.iter().filter_map(|point| Some((point, point.sides.last()?)));
    points.flat_map(|(point, side)| limits.iter().map(move |&(figure, limit)| of(point, side, figure, limit))).collect()
}
