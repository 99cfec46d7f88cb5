//! Apache Parquet, one row group for each million samples, not compressed: stamps hardly repeat.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use parquet::{
    data_type::{DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        reader::SerializedFileReader,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    record::{Row as Record, RowAccessor},
    schema::parser::parse_message_type,
};

use super::{COLUMNS, Row, Rows, wrong};
use crate::error::Result;

const SCHEMA: &str = "message samples {
    required double start_ns; required double latency_ns;
    optional double submit_ns; optional double wait_ns; optional double response_ns;
    required int32 job (integer(32, false)); required int64 op (integer(64, false)); }";

/// Samples of a row group.
const GROUP: usize = 1 << 20;

pub(super) fn write(to: &mut (dyn Write + Send), rows: &mut dyn Iterator<Item = Row>) -> io::Result<()> {
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(io_error)?);
    // No two stamps are alike, so a dictionary would only be tried in vain.
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut writer = SerializedFileWriter::new(to, schema, Arc::new(properties)).map_err(io_error)?;
    loop {
        let group: Vec<Row> = (&mut *rows).take(GROUP).collect();
        if group.is_empty() {
            break;
        }
        let mut of_group = writer.next_row_group().map_err(io_error)?;
        write_group(&mut of_group, &group).map_err(io_error)?;
        of_group.close().map_err(io_error)?;
    }
    writer.close().map(drop).map_err(io_error)
}

fn write_group<W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
) -> std::result::Result<(), ParquetError> {
    for name in COLUMNS {
        let Some(mut column) = to.next_column()? else { break };
        match name {
            "job" => {
                let jobs: Vec<i32> = rows.iter().map(|row| row.job.cast_signed()).collect();
                column.typed::<Int32Type>().write_batch(&jobs, None, None)?;
            }
            "op" => {
                let ops: Vec<i64> = rows.iter().map(|row| row.op.cast_signed()).collect();
                column.typed::<Int64Type>().write_batch(&ops, None, None)?;
            }
            "start_ns" | "latency_ns" => {
                let times: Vec<f64> = rows.iter().filter_map(|row| time(row, name)).collect();
                column.typed::<DoubleType>().write_batch(&times, None, None)?;
            }
            _ => {
                let times: Vec<f64> = rows.iter().filter_map(|row| time(row, name)).collect();
                let present: Vec<i16> = rows.iter().map(|row| i16::from(time(row, name).is_some())).collect();
                column.typed::<DoubleType>().write_batch(&times, Some(&present), None)?;
            }
        }
        column.close()?;
    }
    Ok(())
}

fn time(row: &Row, column: &str) -> Option<f64> {
    match column {
        "start_ns" => Some(row.start_ns),
        "latency_ns" => Some(row.latency_ns),
        "submit_ns" => row.submit_ns,
        "wait_ns" => row.wait_ns,
        _ => row.response_ns,
    }
}

pub(super) fn read(path: &Path) -> Result<Rows> {
    let file = File::open(path).map_err(|error| wrong(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(|error| wrong(path, error))?;
    let path = path.to_path_buf();
    Ok(Box::new(reader.into_iter().map(move |record| {
        record
            .and_then(|record| row(&record))
            .map_err(|error| wrong(&path, format!("no samples of lat-probe: {error}")))
    })))
}

fn row(record: &Record) -> std::result::Result<Row, ParquetError> {
    if record.get_column_iter().map(|(name, _)| name).ne(COLUMNS.iter()) {
        return Err(ParquetError::General(format!("its columns are not {}", COLUMNS.join(", "))));
    }
    // A null is no double.
    let measured = |index| record.get_double(index).ok();
    Ok(Row {
        start_ns: record.get_double(0)?,
        latency_ns: record.get_double(1)?,
        submit_ns: measured(2),
        wait_ns: measured(3),
        response_ns: measured(4),
        job: record.get_uint(5)?,
        op: record.get_ulong(6)?,
    })
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        // The reason of a write that failed is within, and a full disk is to be named as one.
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
