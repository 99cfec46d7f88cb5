//! The percentile bar: a log axis from the smallest to the largest latency, with a mark for each percentile.
//!
//! Marks are letters from left to right. What falls on one cell shares its letter, and the legend names all of it.

use super::{Canvas, MARK};
use crate::stats::Summary;

/// A shorter axis tells nothing.
const LEAST_CELLS: usize = 8;

/// Draws the axis, and the legend below; `None` for no percentiles, or where there is no room.
pub(super) fn draw(latency: &Summary, floor_ns: Option<f64>, canvas: &Canvas) -> Option<String> {
    let (min, max) = (latency.min?, latency.max?);
    let p = &latency.percentiles;
    let known = [("p50", p.p50), ("p90", p.p90), ("p99", p.p99), ("p99.9", p.p99_9)];
    let mut values: Vec<(&str, f64)> = known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    if values.is_empty() {
        return None;
    }
    let floor = floor_ns.filter(|floor| (min..=max).contains(floor));
    values.extend(floor.map(|floor| ("floor", floor)));
    values.sort_by(|one, other| one.1.total_cmp(&other.1));

    let (first, last) = (canvas.time(min), canvas.time(max));
    let cells = canvas.columns.checked_sub(first.chars().count() + last.chars().count() + 4)?;
    if cells < LEAST_CELLS {
        return None;
    }
    let mut marks: Vec<(usize, Vec<String>)> = Vec::new();
    for (name, value) in values {
        let cell = cell(value, min, max, cells);
        let named = format!("{name} {}", canvas.time(value));
        match marks.last_mut().filter(|(last, _)| *last == cell) {
            Some((_, names)) => names.push(named),
            None => marks.push((cell, vec![named])),
        }
    }
    let (begin, line, end) = if canvas.unicode { ("├", "─", "┤") } else { ("|", "-", "|") };
    let mut axis = format!("{first} {begin}");
    let mut drawn = 0;
    for ((cell, _), letter) in marks.iter().zip('a'..) {
        axis += &line.repeat(cell - drawn);
        axis += &canvas.paint(&letter.to_string(), MARK);
        drawn = cell + 1;
    }
    axis += &line.repeat(cells - drawn);
    Some(format!("{axis}{end} {last}\n{}", legend(&marks, canvas)))
}

/// The cell of a value on the log axis. Below 1 ns it is linear, so that 0 has its place.
fn cell(value: f64, min: f64, max: f64, cells: usize) -> usize {
    let place = |ns: f64| if ns < 1.0 { ns - 1.0 } else { ns.ln() };
    let span = place(max) - place(min);
    let part = if span > 0.0 { (place(value) - place(min)) / span } else { 0.0 };
    // A value that is no number would be the first cell.
    ((part * (cells - 1) as f64).round() as usize).min(cells - 1)
}

/// Every mark with its letter, in as many lines as it takes.
fn legend(marks: &[(usize, Vec<String>)], canvas: &Canvas) -> String {
    let mut text = String::new();
    let mut used = 0;
    let mut put = |text: &mut String, gap: &str, word: &str, shown: &str| {
        let width = word.chars().count();
        if used > 0 && used + gap.len() + width > canvas.columns {
            text.push('\n');
            used = 0;
        }
        if used > 0 {
            text.push_str(gap);
            used += gap.len();
        }
        text.push_str(shown);
        used += width;
    };
    for ((_, names), letter) in marks.iter().zip('a'..) {
        for (index, name) in names.iter().enumerate() {
            let comma = if index + 1 < names.len() { "," } else { "" };
            if index == 0 {
                let shown = format!("{} {name}{comma}", canvas.paint(&letter.to_string(), MARK));
                put(&mut text, "   ", &format!("{letter} {name}{comma}"), &shown);
            } else {
                put(&mut text, " ", &format!("{name}{comma}"), &format!("{name}{comma}"));
            }
        }
    }
    put(&mut text, "   ", "(log axis)", "(log axis)");
    text.push('\n');
    text
}
