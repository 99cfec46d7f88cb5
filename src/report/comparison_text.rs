//! A comparison for people: as text, and as a table in Markdown or comma-separated values.

use std::fmt::{self, Write};

use super::comparison::{
    Against, Comparison, CostComparison, Figure, FigureComparison, Gate, Method, PointComparison, SidePoint,
};
use crate::{
    stats::{Shift, Verdict},
    units::{format_count, format_ns, format_size},
};

/// Differences of set-up that the text shows; JSON has all of them.
const MOST_DIFFERENCES: usize = 20;

/// The report for a terminal.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_text(&mut text, comparison);
    text
}

fn write_text(text: &mut String, comparison: &Comparison) -> fmt::Result {
    let (first, others) = comparison.sides.split_first().ok_or(fmt::Error)?;
    let rounds = |rounds: usize| format!("{rounds} round{}", if rounds == 1 { "" } else { "s" });
    write!(text, "{} ({})", first.name, rounds(first.rounds))?;
    for side in others {
        write!(text, ", against it {} ({})", side.name, rounds(side.rounds))?;
    }
    writeln!(text, "\n{}\n", method(&comparison.method))?;
    for point in &comparison.points {
        writeln!(text, "{}", point.title())?;
        write_point(text, point)?;
        writeln!(text)?;
    }
    for over_sizes in &comparison.costs {
        writeln!(text, "cost       {}", cost(over_sizes))?;
    }
    if !others.is_empty() {
        write_differences(text, comparison)?;
    }
    for warning in &comparison.warnings {
        writeln!(text, "warning    {} [{}]", warning.message, warning.code)?;
    }
    for held in &comparison.gates {
        writeln!(text, "gate       {}", gate(held))?;
    }
    if let Some(verdict) = comparison.verdict {
        writeln!(text, "verdict    {} ({})", verdict.name(), basis(&comparison.method))?;
    }
    Ok(())
}

/// A limit, and how it was kept.
pub(super) fn gate(gate: &Gate) -> String {
    let value = gate.value_ns.map_or("not supported by its samples".into(), format_ns);
    let (limit, passed) = (format_ns(gate.limit_ns), if gate.passed { "passed" } else { "FAILED" });
    format!("{passed}: {} {} is {value}, limit {limit} ({})", gate.side, gate.figure.name(), gate.point)
}

/// What is one observation, and of what level the intervals are.
pub(super) fn method(method: &Method) -> String {
    let blocks = if method.in_blocks { ", within blocks" } else { "" };
    let together = if method.judged > 1 { format!(", {} together", method.judged) } else { String::new() };
    // Looks at a series leave levels such as 97.5 %.
    let level = (1000.0 * method.level).round() / 10.0;
    format!("the unit is the round{blocks}; intervals of {level} %{together}")
}

/// What a verdict rests on.
pub(super) fn basis(method: &Method) -> String {
    let judged: Vec<_> = method.judged_figures.iter().map(|figure| figure.name()).collect();
    let least = match (method.min_effect_percent, method.min_effect_ns) {
        (Some(percent), _) => format!("{percent} %"),
        (None, ns) => format_ns(ns.unwrap_or(0.0)),
    };
    format!("{}; effects below {least} do not count", judged.join(" and "))
}

fn write_point(text: &mut String, point: &PointComparison) -> fmt::Result {
    let Some((first, others)) = point.sides.split_first() else { return Ok(()) };
    if others.is_empty() {
        for figure in &first.figures {
            writeln!(text, "{:>7} {:>10}", figure.figure.name(), format_ns(figure.median_ns))?;
        }
    }
    for side in others {
        writeln!(
            text,
            "{:>7} {:>10} {:>10} {:>10} {:>8}   {:<24} {:>10}  verdict",
            "",
            clipped(&first.name),
            clipped(&side.name),
            "shift",
            "%",
            "interval",
            "visible"
        )?;
        for figure in &side.figures {
            let Some((base, against)) = base_of(first, figure) else { continue };
            let (Against { shift, verdict, .. }, median_ns) = (against, figure.median_ns);
            writeln!(
                text,
                "{:>7} {:>10} {:>10} {:>10} {:>8}   {:<24} {:>10}  {}",
                figure.figure.name(),
                format_ns(base.median_ns),
                format_ns(median_ns),
                signed_ns(shift.shift_ns),
                against.shift_percent.map_or("–".into(), signed_percent),
                interval(against),
                shift.least_visible_ns.map_or("–".into(), format_ns),
                verdict.name()
            )?;
        }
    }
    Ok(())
}

/// The same figure of the first side, and what it was compared with.
pub(super) fn base_of<'a>(
    first: &'a SidePoint,
    figure: &'a FigureComparison,
) -> Option<(&'a FigureComparison, &'a Against)> {
    let base = first.figures.iter().find(|base| base.figure == figure.figure)?;
    Some((base, figure.against_first.as_ref()?))
}

fn clipped(name: &str) -> String {
    if name.chars().count() <= 10 { name.into() } else { name.chars().take(9).chain(['…']).collect() }
}

pub(super) fn interval(against: &Against) -> String {
    match (against.shift.low_ns, against.shift.high_ns) {
        (Some(low), Some(high)) => format!("{} to {}", signed_ns(low), signed_ns(high)),
        _ => "too few rounds".into(),
    }
}

pub(super) fn signed_ns(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "+" };
    format!("{sign}{}", format_ns(ns.abs()))
}

pub(super) fn signed_percent(percent: f64) -> String {
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{:.2}", percent.abs())
}

/// What of a shift over a sweep of sizes is for each command, and what for each byte.
pub(super) fn cost(cost: &CostComparison) -> String {
    let ends = |shift: &Shift, show: fn(f64) -> String| match (shift.low_ns, shift.high_ns) {
        (Some(low), Some(high)) => format!(" ({} to {})", show(low), show(high)),
        _ => " (too few rounds for an interval)".into(),
    };
    let per_byte = |ns: f64| format!("{ns:+.4} ns");
    let (command, byte) = (&cost.per_command, &cost.per_byte);
    format!(
        "{} {}, {} over {} sizes: {}{} a command, {}{} a byte",
        cost.side,
        cost.figure.name(),
        cost.engine,
        cost.sizes.len(),
        signed_ns(command.shift_ns),
        ends(command, signed_ns),
        per_byte(byte.shift_ns),
        ends(byte, per_byte)
    )
}

fn write_differences(text: &mut String, comparison: &Comparison) -> fmt::Result {
    if comparison.differences.is_empty() {
        return writeln!(text, "set-up     no difference that the results show");
    }
    for difference in comparison.differences.iter().take(MOST_DIFFERENCES) {
        let values =
            difference.values.iter().map(|values| if values.is_empty() { "–".into() } else { values.join(", ") });
        writeln!(text, "set-up     {}: {}", difference.key, values.collect::<Vec<_>>().join(" → "))?;
    }
    let more = comparison.differences.len().saturating_sub(MOST_DIFFERENCES);
    if more > 0 {
        writeln!(text, "set-up     and {more} more, in the JSON")?;
    }
    Ok(())
}

/// The table of a sweep, rows points and columns sides; empty for a single point.
pub fn sweep(comparison: &Comparison) -> String {
    if comparison.points.len() < 2 { String::new() } else { format!("\n{}", markdown(comparison)) }
}

/// Rows are points, columns the sides.
pub fn markdown(comparison: &Comparison) -> String {
    let rows = table(comparison);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let row: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if index == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

/// As [`markdown`], with numbers in nanoseconds and without units.
pub fn csv(comparison: &Comparison) -> String {
    let quoted = |cell: &String| {
        if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
    };
    let mut text = String::new();
    for row in numbers(comparison) {
        let row: Vec<_> = row.iter().map(quoted).collect();
        let _ = writeln!(text, "{}", row.join(","));
    }
    text
}

/// The table of the judged figures, for reading.
fn table(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut head: Vec<String> = ["engine", "block", "depth", "jobs"].map(str::to_string).into();
    head.extend(comparison.sides.iter().map(|side| format!("{} IOPS", side.name)));
    for figure in &comparison.method.judged_figures {
        head.extend(comparison.sides.iter().map(|side| format!("{} {}", side.name, figure.name())));
        head.extend(comparison.sides.iter().skip(1).map(|side| format!("{} {} shift", side.name, figure.name())));
    }
    let mut rows = vec![head];
    for point in &comparison.points {
        let engine = point.operation.as_ref().map_or(point.engine.clone(), |name| format!("{} {name}", point.engine));
        let block = point.bs_bytes.map_or("–".into(), format_size);
        let mut row = vec![engine, block, point.qd.to_string(), point.jobs.to_string()];
        let iops = |side: &SidePoint| side.ops_per_s.map_or("–".into(), |rate| format_count(rate.round() as u64));
        row.extend(point.sides.iter().map(iops));
        for &figure in &comparison.method.judged_figures {
            let of =
                |side: &SidePoint| figure_of(side, figure).map_or("–".into(), |found| format_ns(found.median_ns));
            row.extend(point.sides.iter().map(of));
            let shift = |side: &SidePoint| {
                let against = figure_of(side, figure)?.against_first.as_ref()?;
                let percent = against.shift_percent.map_or("–".into(), signed_percent);
                Some(format!(
                    "{} ({percent} %; {}): {}",
                    signed_ns(against.shift.shift_ns),
                    interval(against),
                    against.verdict.name()
                ))
            };
            row.extend(point.sides.iter().skip(1).map(|side| shift(side).unwrap_or("–".into())));
        }
        rows.push(row);
    }
    rows
}

/// One row for each point, side and figure.
fn numbers(comparison: &Comparison) -> Vec<Vec<String>> {
    let head = [
        "engine",
        "operation",
        "bs_bytes",
        "qd",
        "jobs",
        "side",
        "rounds",
        "ops_per_s",
        "figure",
        "median_ns",
        "shift_ns",
        "low_ns",
        "high_ns",
        "least_visible_ns",
        "shift_percent",
        "verdict",
    ];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for point in &comparison.points {
        for (side, facts) in point.sides.iter().zip(&comparison.sides) {
            for figure in &side.figures {
                let against = figure.against_first.as_ref();
                let shift = against.map(|against| against.shift);
                rows.push(vec![
                    point.engine.clone(),
                    point.operation.clone().unwrap_or_default(),
                    point.bs_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                    point.qd.to_string(),
                    point.jobs.to_string(),
                    side.name.clone(),
                    facts.rounds.to_string(),
                    number(side.ops_per_s),
                    figure.figure.name().into(),
                    number(Some(figure.median_ns)),
                    number(shift.map(|shift| shift.shift_ns)),
                    number(shift.and_then(|shift| shift.low_ns)),
                    number(shift.and_then(|shift| shift.high_ns)),
                    number(shift.and_then(|shift| shift.least_visible_ns)),
                    number(against.and_then(|against| against.shift_percent)),
                    against.map_or("", |against| Verdict::name(against.verdict)).into(),
                ]);
            }
        }
    }
    rows
}

fn figure_of(side: &SidePoint, figure: Figure) -> Option<&FigureComparison> {
    side.figures.iter().find(|found| found.figure == figure)
}
