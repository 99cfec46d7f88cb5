//! Comma-separated text: a line of names, then a line a sample. What was not measured is empty.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::Path,
};

use super::{COLUMNS, Row, Rows, wrong};
use crate::error::Result;

pub(super) fn write(to: &mut dyn Write, rows: &mut dyn Iterator<Item = Row>) -> io::Result<()> {
    writeln!(to, "{}", COLUMNS.join(","))?;
    for row in rows {
        write!(to, "{},{}", row.start_ns, row.latency_ns)?;
        for time in [row.submit_ns, row.wait_ns, row.response_ns] {
            match time {
                Some(time) => write!(to, ",{time}")?,
                None => write!(to, ",")?,
            }
        }
        writeln!(to, ",{},{}", row.job, row.op)?;
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<Rows> {
    let file = File::open(path).map_err(|error| wrong(path, error))?;
    let mut from = BufReader::with_capacity(1 << 20, file);
    let wanted = COLUMNS.join(",");
    let mut line = String::new();
    match from.read_line(&mut line).map_err(|error| wrong(path, error))? {
        0 => return Err(wrong(path, "the file is empty")),
        _ if line.ends_with('\n') && line.trim_end() == wanted => {}
        _ => return Err(wrong(path, format!("no samples of lat-probe: its first line is not `{wanted}`"))),
    }
    let (path, mut number) = (path.to_path_buf(), 1_u64);
    Ok(Box::new(std::iter::from_fn(move || {
        line.clear();
        number += 1;
        match from.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => {
                Some(parse(&line).ok_or_else(|| {
                    wrong(&path, format!("line {number} is cut off, or no sample: `{}`", line.trim_end()))
                }))
            }
            Err(error) => Some(Err(wrong(&path, error))),
        }
    })))
}

/// A line without its end is one that was cut off, however complete it looks.
fn parse(line: &str) -> Option<Row> {
    let mut cells = line.strip_suffix('\n')?.trim_end_matches('\r').split(',');
    let mut time = || match cells.next()? {
        "" => Some(None),
        text => text.parse().ok().filter(|time: &f64| time.is_finite()).map(Some),
    };
    let (start_ns, latency_ns) = (time()??, time()??);
    let (submit_ns, wait_ns, response_ns) = (time()?, time()?, time()?);
    let (job, op) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    cells.next().is_none().then_some(Row { start_ns, latency_ns, submit_ns, wait_ns, response_ns, job, op })
}
