//! A table of rates that others have measured, read as latencies: `lat-probe.table/1`, and the same as text.

use std::fmt::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::result::Tool;
use crate::units::{format_count, format_ns, format_size};

/// Name and version of the schema.
pub const TABLE_SCHEMA: &str = "lat-probe.table/1";

/// Single values carry none.
pub const VERDICT: &str = "inconclusive";

/// A table of rates that others have measured, read as latencies: `lat-probe compare --table`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = TABLE_SCHEMA, extend("$id" = "urn:lat-probe:table-1"))]
pub struct TableReading {
    /// Name and version of this schema.
    #[schemars(extend("const" = TABLE_SCHEMA))]
    pub schema: &'static str,
    /// The program.
    pub tool: Tool,
    /// The file.
    pub file: String,
    /// The sides; the first one is what the others are compared with.
    #[schemars(length(min = 2))]
    pub sides: Vec<String>,
    /// One row a point.
    #[schemars(length(min = 1))]
    pub rows: Vec<Row>,
    /// A robust line through the shifts over sizes: what every command and every byte costs, for each side but the first.
    pub costs: Vec<Cost>,
    /// Sides that must equal the first one, by lines `# control: SIDE` in the table.
    pub controls: Vec<Control>,
    /// Values that were not repeated carry none.
    #[schemars(extend("const" = VERDICT))]
    pub verdict: &'static str,
}

/// A row, with a value for each side.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// Payload bytes of a command.
    #[schemars(range(min = 1))]
    pub bs_bytes: u64,
    /// Commands outstanding, each in a job of its own.
    #[schemars(range(min = 1))]
    pub jobs: u64,
    /// Commands per second, on each side.
    #[schemars(extend("items" = { "type": "number", "exclusiveMinimum": 0 }))]
    pub ops_per_s: Vec<f64>,
    /// One over the rate, ns; null for more than one job, where that is no latency.
    #[schemars(inner(range(min = 0)))]
    pub latency_ns: Option<Vec<f64>>,
    /// Against the first side, ns.
    pub shift_ns: Option<Vec<f64>>,
    /// The same, in percent of the first side.
    pub shift_percent: Option<Vec<f64>>,
}

/// The line through a side's shifts over sizes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cost {
    /// The side.
    pub side: String,
    /// The sizes, bytes.
    #[schemars(inner(range(min = 1)))]
    pub sizes: Vec<u64>,
    /// Shift that every command has, ns.
    pub per_command_ns: f64,
    /// Shift that every byte adds, ns.
    pub per_byte_ns: f64,
    /// Interval of 95 % by how sizes scatter around the line, low and high, ns; null for fewer than seven sizes. Not one
    /// of repeated runs: it carries no verdict.
    pub per_command_scatter_ns: Option<(f64, f64)>,
    /// The same for a byte; null for fewer than five sizes.
    pub per_byte_scatter_ns: Option<(f64, f64)>,
}

/// A side that must equal the first one, as the table says.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Control {
    /// The side.
    pub side: String,
    /// Where it differs most; null without a row of one job.
    pub bs_bytes: Option<u64>,
    /// By how much there, with its sign, ns.
    pub largest_shift_ns: Option<f64>,
}

impl Row {
    /// A row with a rate for each side, all above zero.
    pub fn new(bs_bytes: u64, jobs: u64, ops_per_s: Vec<f64>) -> Self {
        let latency_ns = (jobs == 1).then(|| ops_per_s.iter().map(|rate| 1e9 / rate).collect::<Vec<f64>>());
        let shift_ns = latency_ns.as_ref().map(|all| all.iter().map(|ns| ns - all[0]).collect::<Vec<f64>>());
        let percent = |(all, shifts): (&Vec<f64>, &Vec<f64>)| shifts.iter().map(|ns| ns / all[0] * 100.0).collect();
        let shift_percent = latency_ns.as_ref().zip(shift_ns.as_ref()).map(percent);
        Self { bs_bytes, jobs, ops_per_s, latency_ns, shift_ns, shift_percent }
    }
}

impl Control {
    /// Of the side at `index` among `rows`.
    pub fn new(name: &str, rows: &[Row], index: usize) -> Self {
        let shift = |row: &Row| Some((row.bs_bytes, row.shift_ns.as_ref()?[index]));
        let largest = rows.iter().filter_map(shift).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let (bs_bytes, largest_shift_ns) = largest.unzip();
        Self { side: name.into(), bs_bytes, largest_shift_ns }
    }
}

/// The reading for people.
pub fn render(reading: &TableReading) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_rows(&mut text, reading).and_then(|()| write_findings(&mut text, reading));
    text
}

fn write_rows(text: &mut String, TableReading { sides, rows, .. }: &TableReading) -> fmt::Result {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| (0..sides.len()).map(|side| cell(row, side)).collect()).collect();
    let width = |side: usize| {
        let all = cells.iter().map(|row| &row[side]).chain([&sides[side]]);
        all.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    write!(text, "{:>9} {:>5}", "block", "jobs")?;
    for (side, width) in sides.iter().zip(&widths) {
        write!(text, "  {side:>width$}")?;
    }
    writeln!(text)?;
    for (row, cells) in rows.iter().zip(&cells) {
        write!(text, "{:>9} {:>5}", format_size(row.bs_bytes), row.jobs)?;
        for (cell, width) in cells.iter().zip(&widths) {
            write!(text, "  {cell:>width$}")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn cell(row: &Row, side: usize) -> String {
    let (Some(latency), Some(shift), Some(percent)) = (&row.latency_ns, &row.shift_ns, &row.shift_percent) else {
        return format!("{}/s", format_count(row.ops_per_s[side].round() as u64));
    };
    match side {
        0 => format_ns(latency[0]),
        _ => {
            let (latency, shift, share) = (format_ns(latency[side]), shift[side], percent[side].abs());
            let sign = sign(shift);
            format!("{latency} ({sign}{}, {sign}{share:.1} %)", format_ns(shift.abs()))
        }
    }
}

fn write_findings(text: &mut String, reading: &TableReading) -> fmt::Result {
    writeln!(
        text,
        "\nOne over the rate is the latency only with one command outstanding: rows of more jobs have none."
    )?;
    let first = &reading.sides[0];
    for cost in &reading.costs {
        let Cost { side, sizes, per_command_ns, per_byte_ns, .. } = cost;
        let per_byte = format!("{}{:.4}", sign(*per_byte_ns), per_byte_ns.abs());
        let (cost_ns, sizes) = (signed_ns(*per_command_ns), sizes.len());
        writeln!(
            text,
            "cost       {side} against {first}, over {sizes} sizes: {cost_ns} a command, {per_byte} ns a byte"
        )?;
        if let Some((low, high)) = cost.per_command_scatter_ns {
            let (low, high) = (signed_ns(low), signed_ns(high));
            writeln!(
                text,
                "           from {low} to {high} a command by how the sizes scatter, as if that were all noise"
            )?;
        }
    }
    if reading.costs.is_empty() {
        writeln!(text, "cost       none: it takes rows of one job in two sizes or more")?;
    }
    for Control { side, bs_bytes, largest_shift_ns } in &reading.controls {
        match bs_bytes.zip(*largest_shift_ns) {
            Some((bytes, shift)) => writeln!(
                text,
                "control    {side} must equal {first}, and differs by up to {}, at {}: that much is noise",
                format_ns(shift.abs()),
                format_size(bytes)
            )?,
            None => writeln!(text, "control    {side} must equal {first}, but there is no row of one job")?,
        }
    }
    if reading.controls.is_empty() {
        writeln!(text, "control    none: the table names no side that must equal {first} (# control: SIDE)")?;
    }
    writeln!(text, "verdict    {VERDICT}: single values have no interval, since nothing was repeated")
}

fn signed_ns(ns: f64) -> String {
    format!("{}{}", sign(ns), format_ns(ns.abs()))
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "−" } else { "+" }
}
