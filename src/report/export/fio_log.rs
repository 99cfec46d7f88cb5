//! fio's logs of latencies: `PREFIX_lat.1.log`, and with `--phases` `PREFIX_slat.1.log` and `PREFIX_clat.1.log`.
//!
//! A line has milliseconds since the first command, nanoseconds, the direction (0 read, 1 write), the block size, the offset
//! and the priority. Offsets are not kept and priorities not set, so both are 0. A line's time is that of the completion, as
//! fio's is.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::store;
use crate::{
    error::Result,
    report::{
        OutputFile,
        fio::number::whole,
        samples::{Row, Rows},
        stored::StoredPoint,
    },
};

/// What a log has of a command.
type Value = fn(&Row) -> Option<f64>;

pub(super) fn write(point: &StoredPoint, rows: impl Fn() -> Result<Rows>, prefix: &Path) -> Result<Vec<PathBuf>> {
    let phased = point.submit_ns.is_some() && point.wait_ns.is_some();
    let logs: [(&str, Value); 3] =
        [("lat", |row| Some(row.latency_ns)), ("slat", |row| row.submit_ns), ("clat", |row| row.wait_ns)];
    let mut written = Vec::new();
    for (name, value) in logs.into_iter().take(if phased { 3 } else { 1 }) {
        let mut path = prefix.as_os_str().to_os_string();
        path.push(format!("_{name}.1.log"));
        let file = OutputFile::open(Path::new(&path))?;
        store(file, rows()?, point.latency_ns.n, |to, rows| write_log(to, rows, point, value))?;
        written.push(path.into());
    }
    Ok(written)
}

fn write_log(
    to: &mut dyn Write,
    rows: &mut dyn Iterator<Item = Row>,
    point: &StoredPoint,
    value: Value,
) -> io::Result<()> {
    let (direction, bytes) = (u8::from(point.writes()), point.config.bs_bytes.unwrap_or(0));
    for row in rows {
        let Some(ns) = value(&row) else { continue };
        let ms = ((row.start_ns + row.latency_ns) / 1e6).floor() as u64;
        writeln!(to, "{ms}, {}, {direction}, {bytes}, 0, 0x0000", whole(ns))?;
    }
    Ok(())
}
