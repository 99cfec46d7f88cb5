//! `lat-probe compare --table`: a table of commands per second that somebody else has measured, read as latencies.
//!
//! One over the rate is the latency only where one command is outstanding, so only the rows with one job are read so. Single
//! values have no interval: there is no verdict, only the size of what there is.

use std::{
    fmt::{self, Write},
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{Format, Outcome, compare::EXIT_INCONCLUSIVE, finish_document};
use crate::{
    error::{Error, Result},
    report::{OutputFile, json, result::Tool},
    stats::Line,
    units::{format_count, format_ns, format_size},
};

/// Name and version of the schema.
const SCHEMA: &str = "lat-probe.table/1";

/// What to read, and what becomes of it.
#[derive(Clone, Debug)]
pub struct Table {
    /// The file: columns `bs_bytes` and `jobs`, then one a side, commands per second. Lines that begin with # are skipped.
    pub path: PathBuf,
    /// Rows above this size do not go into the line.
    pub max_bytes: Option<u64>,
    /// What stdout shows.
    pub format: Format,
    /// Where the JSON goes as well.
    pub output: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Reading {
    schema: &'static str,
    tool: Tool,
    file: String,
    sides: Vec<String>,
    rows: Vec<Row>,
    costs: Vec<Cost>,
}

#[derive(Debug, Serialize)]
struct Row {
    bs_bytes: u64,
    jobs: u64,
    ops_per_s: Vec<f64>,
    /// One over the rate, for rows with one job; null for others.
    latency_ns: Option<Vec<f64>>,
    /// Against the first side.
    shift_ns: Option<Vec<f64>>,
}

#[derive(Debug, Serialize)]
struct Cost {
    side: String,
    sizes: Vec<u64>,
    per_command_ns: f64,
    per_byte_ns: f64,
}

/// Reads a table.
///
/// # Errors
/// [`Error::Usage`] with file, line and what was expected; [`Error::Output`].
pub fn table(options: &Table) -> Result<Outcome> {
    let output = options.output.as_deref().map(OutputFile::open).transpose()?;
    let text = fs::read_to_string(&options.path)
        .map_err(|error| Error::usage(format!("{}: {error}", options.path.display())))?;
    let (sides, rows) = parse(&options.path, &text)?;
    let costs = (1..sides.len()).filter_map(|side| cost(&sides, &rows, side, options.max_bytes)).collect();
    let file = options.path.display().to_string();
    let reading = Reading { schema: SCHEMA, tool: Tool::default(), file, sides, rows, costs };
    let document = json::to_string(&reading).map_err(|source| Error::Output { path: "<stdout>".into(), source })?;
    let stdout = match options.format {
        Format::Json => document.clone(),
        Format::Text => render(&reading),
    };
    let mut outcome = finish_document(document, stdout, output, None, None);
    if outcome.failure.is_none() {
        outcome.exit_code = EXIT_INCONCLUSIVE; // Single values carry no verdict.
    }
    Ok(outcome)
}

fn parse(path: &Path, text: &str) -> Result<(Vec<String>, Vec<Row>)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let wrong = |line: usize, what: String| Error::usage(format!("{}: line {line}: {what}", path.display()));
    let (number, head) = lines.next().ok_or_else(|| wrong(1, "there is no row of titles".into()))?;
    let head: Vec<&str> = head.split(',').map(str::trim).collect();
    if head.len() < 4 || head[..2] != ["bs_bytes", "jobs"] {
        return Err(wrong(number, "the titles must be bs_bytes, jobs and at least two sides".into()));
    }
    let sides: Vec<String> = head[2..].iter().map(|side| side.to_string()).collect();
    let mut rows = Vec::new();
    for (number, line) in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != head.len() {
            let (found, wanted) = (cells.len(), head.len());
            return Err(wrong(number, format!("{found} columns instead of {wanted}")));
        }
        let whole = |column: usize| match cells[column].parse::<u64>() {
            Ok(value) if (1..=1 << 53).contains(&value) => Ok(value),
            _ => Err(wrong(number, format!("{}: {:?} is no whole number above 0", head[column], cells[column]))),
        };
        let rate = |column: usize| match cells[column].parse::<f64>() {
            Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
            _ => Err(wrong(number, format!("{}: {:?} is no rate above 0", head[column], cells[column]))),
        };
        let ops_per_s = (2..head.len()).map(rate).collect::<Result<Vec<f64>>>()?;
        rows.push(Row::new(whole(0)?, whole(1)?, ops_per_s));
    }
    if rows.is_empty() {
        return Err(wrong(number, "there is no row below the titles".into()));
    }
    Ok((sides, rows))
}

impl Row {
    fn new(bs_bytes: u64, jobs: u64, ops_per_s: Vec<f64>) -> Self {
        let latency_ns = (jobs == 1).then(|| ops_per_s.iter().map(|rate| 1e9 / rate).collect::<Vec<f64>>());
        let shift_ns = latency_ns.as_ref().map(|all| all.iter().map(|ns| ns - all[0]).collect());
        Self { bs_bytes, jobs, ops_per_s, latency_ns, shift_ns }
    }
}

/// The line through a side's shifts over sizes.
fn cost(sides: &[String], rows: &[Row], side: usize, max_bytes: Option<u64>) -> Option<Cost> {
    let fits = |row: &&Row| max_bytes.is_none_or(|most| row.bs_bytes <= most);
    let point = |row: &Row| Some((row.bs_bytes as f64, row.shift_ns.as_ref()?[side]));
    let points: Vec<_> = rows.iter().filter(fits).filter_map(point).collect();
    let line = Line::through(&points)?;
    let sizes = points.iter().map(|(bytes, _)| *bytes as u64).collect();
    Some(Cost { side: sides[side].clone(), sizes, per_command_ns: line.intercept, per_byte_ns: line.slope })
}

fn render(reading: &Reading) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_reading(&mut text, reading);
    text
}

fn write_reading(text: &mut String, reading: &Reading) -> fmt::Result {
    write!(text, "{:>9} {:>5}", "block", "jobs")?;
    for side in &reading.sides {
        write!(text, " {side:>22}")?;
    }
    writeln!(text)?;
    for row in &reading.rows {
        write!(text, "{:>9} {:>5}", format_size(row.bs_bytes), row.jobs)?;
        for (side, rate) in row.ops_per_s.iter().enumerate() {
            let cell = match (&row.latency_ns, &row.shift_ns) {
                (Some(latency), Some(shift)) if side > 0 => {
                    let sign = if shift[side] < 0.0 { "−" } else { "+" };
                    format!("{} ({sign}{})", format_ns(latency[side]), format_ns(shift[side].abs()))
                }
                (Some(latency), _) => format_ns(latency[side]),
                _ => format!("{}/s", format_count(rate.round() as u64)),
            };
            write!(text, " {cell:>22}")?;
        }
        writeln!(text)?;
    }
    writeln!(
        text,
        "\nOne over the rate is the latency only with one command outstanding: rows of more jobs have none."
    )?;
    for Cost { side, sizes, per_command_ns, per_byte_ns } in &reading.costs {
        let sign = if *per_command_ns < 0.0 { "−" } else { "+" };
        let (cost, sizes, first) = (format_ns(per_command_ns.abs()), sizes.len(), &reading.sides[0]);
        writeln!(
            text,
            "cost       {side} against {first}, over {sizes} sizes: {sign}{cost} a command, {per_byte_ns:+.4} ns a byte"
        )?;
    }
    writeln!(
        text,
        "verdict    inconclusive: single values have no interval. Where two sides must be equal, what they differ by is the noise"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Result<(Vec<String>, Vec<Row>)> {
        parse(Path::new("t.csv"), text)
    }

    #[test]
    fn the_table_of_2010_has_a_constant_cost_of_about_four_microseconds_a_command() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/tables/srp-thread-2010.csv");
        let (sides, rows) = of(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!((sides.len(), rows.len()), (3, 8));
        let cost = cost(&sides, &rows, 2, Some(65_536)).unwrap();
        assert_eq!((cost.side.as_str(), cost.sizes.as_slice()), ("thread=y", &[512, 4096, 65_536][..]));
        assert!((3800.0..4300.0).contains(&cost.per_command_ns), "{cost:?}");
        // A hundredth of a nanosecond a byte would be 0.7 µs at 64 KiB.
        assert!(cost.per_byte_ns.abs() < 0.01, "{cost:?}");
        // The control of that table: two columns that must be equal.
        let largest = rows.iter().find(|row| row.bs_bytes == 524_288 && row.jobs == 1).unwrap();
        assert!((largest.shift_ns.as_ref().unwrap()[1] - 3361.0).abs() < 10.0, "{largest:?}");
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, words) in [
            ("", "line 1: there is no row of titles"),
            ("# a\n\nbs_bytes,jobs,a\n", "line 3: the titles must be"),
            ("bs_bytes,jobs,a,b\n", "there is no row below"),
            ("bs_bytes,jobs,a,b\n512,1,2\n", "line 2: 3 columns instead of 4"),
            ("bs_bytes,jobs,a,b\n512,1,2,x\n", "line 2: b: \"x\" is no rate above 0"),
            ("bs_bytes,jobs,a,b\n512,1,2,NaN\n", "b: \"NaN\" is no rate"),
            ("bs_bytes,jobs,a,b\n512,1,0,1\n", "a: \"0\" is no rate"),
            ("bs_bytes,jobs,a,b\n-1,1,1,1\n", "bs_bytes: \"-1\" is no whole number"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("t.csv"), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-a-z0-9_,.#\n ]{0,200}", head in proptest::bool::ANY) {
            let text = if head { format!("bs_bytes,jobs,a,b\n{text}") } else { text };
            if let Ok((sides, rows)) = of(&text) {
                let _ = cost(&sides, &rows, 1, None);
            }
        }
    }
}
