//! Stored results in the formats of other tools. A format is one file and one arm in [`Export::text`] or [`Export::write`].
//!
//! What was not measured is left out, and so is an undefined figure: none becomes 0.

mod fio_json;
mod fio_log;
mod hdr;
mod openmetrics;
mod perftest;

#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    OutputFile,
    samples::{self, Row, Rows, SampleFormat},
    stored::{Stored, StoredPoint},
};
use crate::error::{Error, Result};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// HdrHistogram's percentile distribution, in nanoseconds.
    Hgrm,
    /// HdrHistogram's log: one compressed histogram a point, in nanoseconds.
    Hlog,
    /// fio's JSON; `bins` makes it JSON+.
    FioJson {
        /// Whether each latency has its histogram.
        bins: bool,
    },
    /// fio's logs of latencies.
    FioLog,
    /// Prometheus' and OpenMetrics' text.
    OpenMetrics,
    /// The table of perftest's latency tools.
    Perftest,
    /// Raw samples.
    Samples(SampleFormat),
}

/// A result, and where it was read from.
pub struct Source<'a> {
    /// Its file, or what stands for it.
    pub path: &'a Path,
    /// What was read.
    pub stored: Stored,
}

impl Source<'_> {
    /// Leaves only one of its points, counted from 1.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such point.
    pub fn choose(&mut self, number: u64) -> Result<()> {
        let points = std::mem::take(&mut self.stored.points);
        let count = points.len();
        let index = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        match points.into_iter().nth(index) {
            Some(point) => self.stored.points.push(point),
            None => {
                let path = self.path.display();
                return Err(Error::Usage(format!("--point {number}: {path} has points 1 to {count}")));
            }
        }
        Ok(())
    }

    /// The only point.
    fn alone(&self) -> Result<&StoredPoint> {
        match self.stored.points.as_slice() {
            [point] => Ok(point),
            points => Err(Error::Usage(format!(
                "{} has {} points, and this format holds one: choose it by --point N",
                self.path.display(),
                points.len()
            ))),
        }
    }

    /// The samples of the only point.
    fn rows(&self) -> Result<Rows> {
        let path = self.path.display();
        let Some(name) = &self.alone()?.samples_file else {
            return Err(Error::Usage(format!(
                "{path}: names no file of samples, which this format is made from: measure with --samples FILE.npy"
            )));
        };
        samples::read(&samples::find(self.path, name)?)
    }
}

impl Export {
    /// The formats that are text, as text.
    ///
    /// # Errors
    /// [`Error::Usage`] for several points in a format of one, and for a format that goes to files only.
    pub fn text(self, source: &Source) -> Result<String> {
        let stored = &source.stored;
        match self {
            Self::Hgrm => hdr::percentiles(source.alone()?),
            Self::Hlog => hdr::log(stored),
            Self::FioJson { bins } => fio_json::document(stored, bins),
            Self::OpenMetrics => Ok(openmetrics::text(stored)),
            Self::Perftest => Ok(perftest::table(stored)),
            Self::FioLog | Self::Samples(_) => {
                Err(Error::usage("this format goes to a file: name it by --output FILE"))
            }
        }
    }

    /// Writes to `output`, which is replaced as a whole; fio's logs are several files whose names begin with it.
    ///
    /// # Errors
    /// As [`Export::text`]; [`Error::Output`], which also says that samples are damaged or not those of the result.
    pub fn write(self, source: &Source, output: &Path) -> Result<Vec<PathBuf>> {
        match self {
            Self::FioLog => fio_log::write(source.alone()?, || source.rows(), output),
            Self::Samples(format) => {
                let (point, rows) = (source.alone()?, source.rows()?);
                let file = OutputFile::open(output)?;
                store(file, rows, point.latency_ns.n, |to, rows| format.write(to, rows, point.latency_ns.n))?;
                Ok(vec![output.to_path_buf()])
            }
            _ => {
                let file = OutputFile::open(output)?;
                file.commit(self.text(source)?.as_bytes())?;
                Ok(vec![output.to_path_buf()])
            }
        }
    }
}

/// Writes a file from rows, and lets it take its place only if all of them came, as many as there must be.
fn store(
    file: OutputFile,
    rows: Rows,
    count: u64,
    write: impl FnOnce(&mut (dyn io::Write + Send), &mut dyn Iterator<Item = Row>) -> io::Result<()>,
) -> Result<()> {
    let mut rows = Whole { rows, came: 0, failed: None };
    file.commit_with(|to| {
        write(to, &mut rows)?;
        rows.by_ref().for_each(drop); // A format may have asked for fewer.
        match rows.failed {
            Some(error) => Err(io::Error::other(error)),
            None if rows.came != count => Err(io::Error::other(format!(
                "the file of samples has {}, the result {count} commands: they do not belong together",
                rows.came
            ))),
            None => Ok(()),
        }
    })
}

/// Rows up to the first that is damaged.
struct Whole {
    rows: Rows,
    came: u64,
    failed: Option<Error>,
}

impl Iterator for Whole {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.failed.is_some() {
            return None;
        }
        match self.rows.next()? {
            Ok(row) => {
                self.came += 1;
                Some(row)
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }
}

/// A time as RFC 3339 writes it, since 1970; what is none is 1970. Days by Howard Hinnant's `days_from_civil`.
fn seconds(rfc_3339: &str) -> Duration {
    let parsed = || -> Option<u64> {
        let (day, time) = rfc_3339.strip_suffix('Z')?.split_once('T')?;
        let number = |text: Option<&str>, most: u64| text?.parse::<u64>().ok().filter(|&number| number <= most);
        let (mut day, mut time) = (day.splitn(3, '-'), time.split('.').next()?.splitn(3, ':'));
        let (year, month) = (number(day.next(), 9999)?, number(day.next(), 12)?);
        let day = number(day.next(), 31)?.checked_sub(1)?;
        let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
        let day_of_era = (year % 400) * 365 + year % 400 / 4 - year % 400 / 100 + (153 * month + 2) / 5 + day;
        let days = (year / 400 * 146_097 + day_of_era).checked_sub(719_468)?;
        let (hour, minute, second) = (number(time.next(), 23)?, number(time.next(), 59)?, number(time.next(), 60)?);
        Some(days * 86_400 + hour * 3600 + minute * 60 + second)
    };
    Duration::from_secs(parsed().unwrap_or(0))
}
