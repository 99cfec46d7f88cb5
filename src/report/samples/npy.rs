//! NumPy's `.npy`, format 1.0, with a structured type: `numpy.load` gives an array whose fields are the columns.
//!
//! Format: numpy.lib.format, NEP 1.

use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    path::Path,
};

use super::{COLUMNS, Row, Rows, wrong};
use crate::error::Result;

const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";

/// The head is padded to a multiple of this, so that the data is aligned.
const ALIGNMENT: usize = 64;

/// Five doubles, a job, a number.
const ROW_BYTES: usize = 5 * 8 + 4 + 8;

pub(super) fn write(to: &mut dyn Write, rows: &mut dyn Iterator<Item = Row>, count: u64) -> io::Result<()> {
    to.write_all(&head(count))?;
    for row in rows {
        to.write_all(&encode(&row))?;
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<Rows> {
    let file = File::open(path).map_err(|error| wrong(path, error))?;
    let mut from = BufReader::with_capacity(1 << 20, file);
    let count = read_head(&mut from).map_err(|what| wrong(path, what))?;
    let path = path.to_path_buf();
    let mut done = 0;
    Ok(Box::new(std::iter::from_fn(move || {
        if done == count {
            // What follows would be lost silently.
            let more = from.read(&mut [0]).unwrap_or(0) > 0;
            done += 1;
            return more.then(|| Err(wrong(&path, format!("there is more in it than its {count} samples"))));
        }
        if done > count {
            return None;
        }
        let mut bytes = [0; ROW_BYTES];
        match from.read_exact(&mut bytes) {
            Ok(()) => {
                done += 1;
                Some(Ok(decode(&bytes)))
            }
            Err(error) => {
                let what = format!("cut off after {done} of {count} samples: {error}");
                done = count + 1;
                Some(Err(wrong(&path, what)))
            }
        }
    })))
}

/// The description of the columns, as Python writes it.
fn description() -> String {
    let fields = COLUMNS.map(|name| match name {
        "job" => format!("('{name}', '<u4')"),
        "op" => format!("('{name}', '<u8')"),
        _ => format!("('{name}', '<f8')"),
    });
    format!("{{'descr': [{}], 'fortran_order': False, 'shape': (", fields.join(", "))
}

fn head(count: u64) -> Vec<u8> {
    let mut text = format!("{}{count},), }}", description());
    let unpadded = MAGIC.len() + 2 + text.len() + 1;
    text.push_str(&" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded));
    text.push('\n');
    // A few hundred bytes, so they fit into the length's two.
    let length = text.len() as u16;
    [MAGIC.as_slice(), &length.to_le_bytes(), text.as_bytes()].concat()
}

/// The number of rows, if the columns are ours.
fn read_head(from: &mut impl Read) -> std::result::Result<u64, String> {
    let mut fixed = [0; MAGIC.len() + 2];
    from.read_exact(&mut fixed).map_err(|_| "empty or cut off: no array of NumPy")?;
    let (magic, length) = fixed.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err("no array of NumPy in format 1.0".into());
    }
    let mut text = vec![0; usize::from(u16::from_le_bytes([length[0], length[1]]))];
    from.read_exact(&mut text).map_err(|_| "cut off within its head")?;
    let text = String::from_utf8_lossy(&text);
    let rest = text.strip_prefix(&description()).ok_or_else(|| {
        format!("an array, but not of samples of lat-probe: its type is not that of the columns {}", COLUMNS.join(", "))
    })?;
    rest.split(',')
        .next()
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| "its head has no number of samples".into())
}

fn encode(row: &Row) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    let missing = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let Row { start_ns, latency_ns, .. } = *row;
    let times = [start_ns, latency_ns, missing(row.submit_ns), missing(row.wait_ns), missing(row.response_ns)];
    for (to, time) in bytes.chunks_exact_mut(8).zip(times) {
        to.copy_from_slice(&time.to_le_bytes());
    }
    bytes[40..44].copy_from_slice(&row.job.to_le_bytes());
    bytes[44..].copy_from_slice(&row.op.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; ROW_BYTES]) -> Row {
    let word = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
    let time = |index: usize| f64::from_le_bytes(word(8 * index));
    let measured = |index: usize| Some(time(index)).filter(|time| !time.is_nan());
    Row {
        start_ns: time(0),
        latency_ns: time(1),
        submit_ns: measured(2),
        wait_ns: measured(3),
        response_ns: measured(4),
        job: u32::from_le_bytes(std::array::from_fn(|byte| bytes[40 + byte])),
        op: u64::from_le_bytes(word(44)),
    }
}
