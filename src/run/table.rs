//! `lat-probe compare --table`: a table of commands per second that somebody else has measured, read as latencies.
//!
//! One over the rate is the latency only where one command is outstanding, so only the rows with one job are read so. Single
//! values have no interval: there is no verdict, only the size of what there is.

use std::{
    fs::File,
    io::Read,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use super::{Format, LEVEL, Outcome, compare::conclude::EXIT_INCONCLUSIVE, finish_document};
use crate::{
    error::{Error, Result},
    report::{
        OutputFile, json,
        result::Tool,
        table::{Control, Cost, Row, TABLE_SCHEMA, TableReading, VERDICT, render},
    },
    stats::{Line, LineIntervals},
};

/// Below this a rate has no inverse worth the name, above it nothing completes.
const RATES: RangeInclusive<f64> = 1e-9..=1e15;
/// A table that people have written is far smaller.
const MOST_BYTES: u64 = 1 << 20;
/// The line looks at all pairs of rows.
const MOST_ROWS: usize = 1_000;

/// What to read, and what becomes of it.
#[derive(Clone, Debug)]
pub struct Table {
    /// The file: columns `bs_bytes` and `jobs`, then one a side, commands per second. Lines that begin with # are skipped,
    /// except for `# control: SIDE`, which names sides that must equal the first one.
    pub path: PathBuf,
    /// Rows above this size do not go into the line.
    pub max_bytes: Option<u64>,
    /// What stdout shows.
    pub format: Format,
    /// Where the JSON goes as well.
    pub output: Option<PathBuf>,
}

/// A table as it stands in the file.
#[derive(Debug)]
struct Parsed {
    sides: Vec<String>,
    rows: Vec<Row>,
    /// Sides that must equal the first one.
    controls: Vec<usize>,
}

/// Reads a table.
///
/// # Errors
/// [`Error::Usage`] with file, line, column and what was expected; [`Error::Output`].
pub fn table(options: &Table) -> Result<Outcome> {
    let output = options.output.as_deref().map(OutputFile::open).transpose()?;
    let text = load(&options.path).map_err(|what| Error::usage(format!("{}: {what}", options.path.display())))?;
    let reading = read(&options.path, &text, options.max_bytes)?;
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

fn load(path: &Path) -> std::result::Result<String, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 <= MOST_BYTES => Ok(text),
        Ok(_) => Err("a table has at most 1 MiB".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn read(path: &Path, text: &str, max_bytes: Option<u64>) -> Result<TableReading> {
    let Parsed { sides, rows, controls } = parse(path, text)?;
    Ok(TableReading {
        schema: TABLE_SCHEMA,
        tool: Tool::default(),
        file: path.display().to_string(),
        costs: (1..sides.len()).filter_map(|side| cost(&sides, &rows, side, max_bytes)).collect(),
        controls: controls.iter().map(|&side| Control::new(&sides[side], &rows, side)).collect(),
        sides,
        rows,
        verdict: VERDICT,
    })
}

fn parse(path: &Path, text: &str) -> Result<Parsed> {
    let wrong = |line: usize, what: String| Error::usage(format!("{}: line {line}: {what}", path.display()));
    // Spreadsheets put a mark in front of what they write.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut rows_of_cells = lines.clone().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (number, head) = rows_of_cells.next().ok_or_else(|| wrong(1, "there is no row of titles".into()))?;
    let head = cells(head);
    let sides = sides(&head).map_err(|what| wrong(number, what))?;
    let mut rows = Vec::new();
    for (number, line) in rows_of_cells {
        if rows.len() == MOST_ROWS {
            return Err(wrong(number, format!("a table has at most {MOST_ROWS} rows")));
        }
        rows.push(row(&head, &cells(line)).map_err(|what| wrong(number, what))?);
    }
    if rows.is_empty() {
        return Err(wrong(number, "there is no row below the titles".into()));
    }
    let mut controls = Vec::new();
    for (number, line) in lines {
        controls.extend(named_controls(line, &sides).map_err(|what| wrong(number, what))?);
    }
    controls.sort_unstable();
    controls.dedup();
    Ok(Parsed { sides, rows, controls })
}

/// The sides that a line `# control: SIDE, SIDE` names; none in any other line.
fn named_controls(line: &str, sides: &[String]) -> std::result::Result<Vec<usize>, String> {
    let Some(names) = line.strip_prefix('#').and_then(|line| line.trim_start().strip_prefix("control:")) else {
        return Ok(Vec::new());
    };
    let index = |name: &str| {
        let found = sides.iter().position(|side| side == name).filter(|&side| side > 0);
        found.ok_or_else(|| format!("control: {name:?} is none of {}", sides[1..].join(", ")))
    };
    cells(names).into_iter().map(index).collect()
}

/// The cells of a line. A comma within quotes is not known: no number and no side needs one.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| unquoted(cell.trim())).collect()
}

fn unquoted(cell: &str) -> &str {
    cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).map_or(cell, str::trim)
}

fn sides(head: &[&str]) -> std::result::Result<Vec<String>, String> {
    if head.len() < 4 || head[..2] != ["bs_bytes", "jobs"] {
        return Err("the titles must be bs_bytes, jobs and at least two sides".into());
    }
    for (index, side) in head.iter().enumerate().skip(2) {
        if side.is_empty() || head[..index].contains(side) {
            return Err(format!("column {}: {side:?} must be a name of its own", index + 1));
        }
    }
    Ok(head[2..].iter().map(|side| side.to_string()).collect())
}

fn row(head: &[&str], cells: &[&str]) -> std::result::Result<Row, String> {
    if cells.len() != head.len() {
        return Err(format!("{} columns instead of {}", cells.len(), head.len()));
    }
    let wrong = |column: usize, wanted: &str| {
        format!("column {} ({}): {:?} is no {wanted}", column + 1, head[column], cells[column])
    };
    let whole = |column: usize| match cells[column].parse::<u64>() {
        Ok(value) if (1..1 << 53).contains(&value) => Ok(value),
        _ => Err(wrong(column, "whole number above 0")),
    };
    let rate = |column: usize| match cells[column].parse::<f64>() {
        Ok(value) if RATES.contains(&value) => Ok(value),
        _ => Err(wrong(column, "rate: commands per second, above 0, without a unit or commas")),
    };
    let ops_per_s = (2..head.len()).map(rate).collect::<std::result::Result<Vec<f64>, String>>()?;
    Ok(Row::new(whole(0)?, whole(1)?, ops_per_s))
}

/// The line through a side's shifts over sizes. `None` for fewer than two sizes.
fn cost(sides: &[String], rows: &[Row], side: usize, max_bytes: Option<u64>) -> Option<Cost> {
    let fits = |row: &&Row| max_bytes.is_none_or(|most| row.bs_bytes <= most);
    let point = |row: &Row| Some((row.bs_bytes as f64, row.shift_ns.as_ref()?[side]));
    let points: Vec<_> = rows.iter().filter(fits).filter_map(point).collect();
    let Line { intercept, slope } = Line::through(&points)?;
    let scatter: LineIntervals = Line::intervals(&points, LEVEL);
    Some(Cost {
        side: sides[side].clone(),
        sizes: points.iter().map(|(bytes, _)| *bytes as u64).collect(),
        per_command_ns: intercept,
        per_byte_ns: slope,
        per_command_scatter_ns: scatter.intercept,
        per_byte_scatter_ns: scatter.slope,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::Control;
    use proptest::prelude::*;

    fn of(text: &str) -> Result<TableReading> {
        read(Path::new("t.csv"), text, None)
    }

    fn of_2010(max_bytes: Option<u64>) -> TableReading {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/tables/srp-thread-2010.csv");
        read(&path, &load(&path).unwrap(), max_bytes).unwrap()
    }

    #[test]
    fn the_table_of_2010_has_a_constant_cost_of_about_four_microseconds_a_command() {
        let reading = of_2010(Some(65_536));
        assert_eq!((reading.sides.len(), reading.rows.len()), (3, 8));
        let cost = &reading.costs[1];
        assert_eq!((cost.side.as_str(), cost.sizes.as_slice()), ("thread=y", &[512, 4096, 65_536][..]));
        assert!((3800.0..4300.0).contains(&cost.per_command_ns), "{cost:?}");
        // A hundredth of a nanosecond a byte would be 0.7 µs at 64 KiB.
        assert!(cost.per_byte_ns.abs() < 0.01, "{cost:?}");
        assert_eq!((cost.per_command_scatter_ns, cost.per_byte_scatter_ns), (None, None));
        assert!((reading.rows[0].shift_percent.as_ref().unwrap()[2] - 9.957).abs() < 0.001, "{:?}", reading.rows[0]);
    }

    #[test]
    fn the_control_of_the_table_of_2010_differs_most_at_its_largest_size_whatever_the_line_goes_through() {
        for max_bytes in [None, Some(65_536)] {
            let reading = of_2010(max_bytes);
            let [Control { side, bs_bytes, largest_shift_ns: Some(shift) }] = &reading.controls[..] else {
                panic!("{:?}", reading.controls);
            };
            assert_eq!((side.as_str(), *bs_bytes), ("thread=n", Some(524_288)));
            assert!((shift - 3361.0).abs() < 1.0, "{shift}");
        }
    }

    #[test]
    fn only_rows_of_one_job_have_a_latency() {
        let reading = of("bs_bytes,jobs,a,b\n512,2,1000,500\n").unwrap();
        let Row { latency_ns, shift_ns, shift_percent, .. } = &reading.rows[0];
        assert_eq!((latency_ns, shift_ns, shift_percent, reading.costs.len()), (&None, &None, &None, 0));
        let text = render(&reading);
        for words in
            ["1,000/s", "rows of more jobs have none", "cost       none: it takes", "control    none", "inconclusive"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        let reading = of("# control: b\nbs_bytes,jobs,a,b\n512,2,1000,500\n").unwrap();
        assert!(render(&reading).contains("b must equal a, but there is no row of one job"), "{}", render(&reading));
    }

    #[test]
    fn many_sizes_show_how_they_scatter_but_no_verdict() {
        let rows: String = (0..8).map(|i| format!("{},1,1000,800\n", 512 << i)).collect();
        let reading = of(&format!("bs_bytes,jobs,a,b\n{rows}")).unwrap();
        let cost = &reading.costs[0];
        assert_eq!((cost.per_command_scatter_ns, cost.per_byte_scatter_ns), (Some((250e3, 250e3)), Some((0.0, 0.0))));
        let text = render(&reading);
        assert!(text.contains("by how the sizes scatter") && text.contains("inconclusive"), "{text}");
    }

    #[test]
    fn what_spreadsheets_write_is_read() {
        let reading = of("\u{feff}\"bs_bytes\",\"jobs\",\"a\",\"b\"\r\n512, 1,\"1e3\",2000\r\n").unwrap();
        assert_eq!((reading.sides, &reading.rows[0].ops_per_s), (vec!["a".into(), "b".into()], &vec![1000.0, 2000.0]));
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, words) in [
            ("", "line 1: there is no row of titles"),
            ("# a\n\nbs_bytes,jobs,a\n", "line 3: the titles must be"),
            ("bs_bytes,jobs,a,a\n1,1,1,1\n", "line 1: column 4: \"a\" must be a name of its own"),
            ("bs_bytes,jobs,a,\n1,1,1,1\n", "line 1: column 4: \"\" must be"),
            ("bs_bytes,jobs,a,b\n", "there is no row below"),
            ("bs_bytes,jobs,a,b\n512,1,2\n", "line 2: 3 columns instead of 4"),
            ("bs_bytes,jobs,a,b\n512,1,2,x\n", "line 2: column 4 (b): \"x\" is no rate: commands per second"),
            ("bs_bytes,jobs,a,b\n512,1,2,NaN\n", "(b): \"NaN\" is no rate"),
            ("bs_bytes,jobs,a,b\n512,1,2,inf\n", "(b): \"inf\" is no rate"),
            ("bs_bytes,jobs,a,b\n512,1,0,1\n", "(a): \"0\" is no rate"),
            ("bs_bytes,jobs,a,b\n512,1,1,1e-310\n", "(b): \"1e-310\" is no rate"),
            ("bs_bytes,jobs,a,b\n-1,1,1,1\n", "column 1 (bs_bytes): \"-1\" is no whole number"),
            ("bs_bytes,jobs,a,b\n1,9007199254740992,1,1\n", "column 2 (jobs): \"9007199254740992\" is no whole"),
            ("# control: c\nbs_bytes,jobs,a,b\n1,1,1,1\n", "line 1: control: \"c\" is none of b"),
            ("# control: a\nbs_bytes,jobs,a,b\n1,1,1,1\n", "line 1: control: \"a\" is none of b"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("t.csv"), "{text:?}: {error}");
        }
        let long = format!("bs_bytes,jobs,a,b\n{}", "1,1,1,1\n".repeat(MOST_ROWS + 1));
        assert!(of(&long).unwrap_err().to_string().contains("line 1002: a table has at most 1000 rows"));
        assert_eq!(load(Path::new("/dev/zero")), Err("a table has at most 1 MiB".into()));
    }

    /// Whether every number of a document is one: JSON has null where there was an infinity.
    fn is_finite(reading: &TableReading) -> bool {
        let finite = |values: &Option<Vec<f64>>| values.iter().flatten().all(|value| value.is_finite());
        reading.rows.iter().all(|row| finite(&row.latency_ns) && finite(&row.shift_ns) && finite(&row.shift_percent))
            && reading.costs.iter().all(|cost| cost.per_command_ns.is_finite() && cost.per_byte_ns.is_finite())
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-a-z0-9_,.#\"\n :µ]{0,200}", head in proptest::bool::ANY) {
            let text = if head { format!("bs_bytes,jobs,a,b\n{text}") } else { text };
            if let Ok(reading) = of(&text) {
                render(&reading);
            }
        }

        #[test]
        fn every_table_of_numbers_has_finite_figures(
            rows in proptest::collection::vec((1u64..1 << 53, 1u64..3, -9i32..=15, -9i32..=15), 1..8),
        ) {
            let lines = rows.iter().map(|(bytes, jobs, a, b)| format!("{bytes},{jobs},1e{a},1e{b}\n"));
            let reading = of(&format!("# control: b\nbs_bytes,jobs,a,b\n{}", lines.collect::<String>())).unwrap();
            prop_assert!(is_finite(&reading), "{reading:?}");
            render(&reading);
        }
    }
}
