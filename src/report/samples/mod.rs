//! Files of raw samples: one row a command, in the order of completion within each job.
//!
//! All formats have the same columns, [`COLUMNS`]. What was not measured is NaN in `.npy`, empty in `.csv`, null in `.parquet`.
//! Times are nanoseconds to three places; decimals are points, whatever the locale.

mod csv;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

/// Names of the columns, in their order.
pub const COLUMNS: [&str; 7] = ["start_ns", "latency_ns", "submit_ns", "wait_ns", "response_ns", "job", "op"];

/// One command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// When it was handed over, in nanoseconds since the first measured command of the point.
    pub start_ns: f64,
    /// How long it took, in nanoseconds, as the point's convention says.
    pub latency_ns: f64,
    /// Hand-over alone, in nanoseconds, with `--phases`.
    pub submit_ns: Option<f64>,
    /// From hand-over to completion, in nanoseconds, with `--phases`.
    pub wait_ns: Option<f64>,
    /// From the intended start to completion, in nanoseconds, with `--rate`.
    pub response_ns: Option<f64>,
    /// The job that issued it, from 0.
    pub job: u32,
    /// Which of the job's measured commands it is, in the order of completion, from 0.
    pub op: u64,
}

/// Rows as they come from a file, or the reason why they do not.
pub type Rows = Box<dyn Iterator<Item = Result<Row>>>;

/// How samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    /// NumPy's structured array.
    Npy,
    /// Text with a line of names.
    Csv,
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl SampleFormat {
    /// The format that the ending of a file's name stands for.
    ///
    /// # Errors
    /// [`Error::Usage`] with the endings that there are.
    pub fn of(path: &Path) -> Result<Self> {
        let known = if cfg!(feature = "parquet") { ".npy, .csv and .parquet" } else { ".npy and .csv" };
        let refused = |what: &str| {
            Err(Error::Usage(format!(
                "{}: {what}; samples are stored as {known}, by the file's ending, and `lat-probe export` makes other \
                 formats of a result",
                path.display()
            )))
        };
        match path.extension().and_then(OsStr::to_str) {
            Some("npy") => Ok(Self::Npy),
            Some("csv") => Ok(Self::Csv),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => refused("this build has no Parquet (build with --features parquet)"),
            Some(other) => refused(&format!(".{other} is no format of raw samples")),
            None => refused("the name has no ending"),
        }
    }

    /// Writes `count` rows.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(self, to: &mut (dyn Write + Send), rows: &mut dyn Iterator<Item = Row>, count: u64) -> io::Result<()> {
        match self {
            Self::Npy => npy::write(to, rows, count),
            Self::Csv => csv::write(to, rows),
            #[cfg(feature = "parquet")]
            Self::Parquet => parquet::write(to, rows),
        }
    }

    /// Opens a file of samples: how many there are if its head says so, and the rows.
    ///
    /// # Errors
    /// [`Error::Usage`] with the file and what is wrong; a file that is found to be cut off later yields it as a row.
    pub fn read(self, path: &Path) -> Result<Rows> {
        match self {
            Self::Npy => npy::read(path),
            Self::Csv => csv::read(path),
            #[cfg(feature = "parquet")]
            Self::Parquet => parquet::read(path),
        }
    }
}

/// Opens a file of samples of any format, by its ending.
///
/// # Errors
/// As [`SampleFormat::of`] and [`SampleFormat::read`].
pub fn read(path: &Path) -> Result<Rows> {
    SampleFormat::of(path)?.read(path)
}

/// Where the samples of a stored result are: a relative name is looked for beside the result first, then from here.
///
/// # Errors
/// [`Error::Usage`] if there is no such file.
pub fn find(result: &Path, samples_file: &str) -> Result<PathBuf> {
    let named = Path::new(samples_file);
    let beside = result.parent().unwrap_or(Path::new("")).join(named.file_name().unwrap_or(named.as_os_str()));
    let found = [beside, named.to_path_buf()].into_iter().find(|path| path.is_file());
    found.ok_or_else(|| {
        Error::Usage(format!(
            "{}: its samples are in {samples_file}, which is neither beside it nor where the name leads",
            result.display()
        ))
    })
}

/// The file of one point of several: `x.npy` becomes `x-2.npy` for the second one.
pub fn of_point(path: &Path, index: usize, points: usize) -> PathBuf {
    if points == 1 {
        return path.to_path_buf();
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{}", index + 1));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// What is wrong with a file.
fn wrong(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::Usage(format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests;
