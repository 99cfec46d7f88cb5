//! A point drawn for a terminal: how its latencies are distributed, and where its percentiles are. It adds nothing that the
//! figures don't say; a report is complete without it.
//!
//! Nobody here asks the terminal: who calls says by a [`Canvas`] what it allows.

mod axis;
mod rows;

use super::result::{Point, RunResult};
use crate::{
    stats::{Histogram, Summary},
    units::format_ns,
};

use rows::Rows;

/// What a terminal allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canvas {
    /// No line of a drawing is longer.
    pub columns: usize,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
    /// Whether it shows colours.
    pub color: bool,
}

/// On less there is no drawing: it would say nothing.
pub const LEAST_COLUMNS: usize = 40;

/// About as wide as the table of figures, so that a bar can be followed from its label.
const MOST_COLUMNS: usize = 100;

/// A result with more points is read as a table, not as a stack of pictures.
pub const MOST_POINTS: usize = 3;

/// ANSI sequences.
const BAR: &str = "36";
const MARK: &str = "1";

/// Draws a point of this result; empty where there is nothing to draw, too little room, or too many points.
pub(super) fn of_point(point: &Point, result: &RunResult, canvas: &Canvas) -> String {
    if result.points.len() > MOST_POINTS {
        return String::new();
    }
    draw(&point.latency_ns, &point.histogram, result.instrument.floor_ns.percentiles.p50, canvas)
}

/// Draws a distribution; `floor_ns` is marked if it lies between the smallest and the largest latency.
fn draw(latency: &Summary, histogram: &Histogram, floor_ns: Option<f64>, canvas: &Canvas) -> String {
    if canvas.columns < LEAST_COLUMNS {
        return String::new();
    }
    let canvas = Canvas { columns: canvas.columns.min(MOST_COLUMNS), ..*canvas };
    let rows = Rows::of(histogram).and_then(|rows| rows.draw(&canvas)).unwrap_or_default();
    match axis::draw(latency, floor_ns, &canvas) {
        Some(axis) if !rows.is_empty() => format!("{rows}\n{axis}"),
        axis => rows + &axis.unwrap_or_default(),
    }
}

impl Canvas {
    /// A time as the table has it.
    fn time(&self, ns: f64) -> String {
        let text = format_ns(ns);
        if self.unicode { text } else { text.replace('µ', "u") }
    }

    fn paint(&self, text: &str, how: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{how}m{text}\x1b[0m") } else { text.into() }
    }
}

#[cfg(test)]
mod tests;
