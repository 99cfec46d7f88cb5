//! The options of `lat-probe export`.

use std::{
    fmt::Write,
    io::Read,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};

use crate::{
    error::{Error, Result},
    report::{
        export::{Export, Source},
        read,
        samples::SampleFormat,
        stored::Stored,
    },
    units::parse_count,
};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct ExportArgs {
    /// The result, as --output stored it; - for stdin
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: ExportArg,
    /// Only this point of several, from 1
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub point: Option<u64>,
    /// Where to write it, replaced as a whole; of fio-log, what the names of its files begin with [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ExportArg {
    /// HdrHistogram's percentile distribution, ns
    Hgrm,
    /// HdrHistogram's log, ns
    Hlog,
    /// fio's JSON
    FioJson,
    /// fio's JSON+, with histograms
    #[value(name = "fio-json+")]
    FioJsonPlus,
    /// fio's logs of latencies, from samples
    FioLog,
    /// For node_exporter's textfile collector
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// The table of ib_read_lat and its kind, µs
    Perftest,
    /// Samples as an array of NumPy
    Npy,
    /// Samples as comma-separated text
    Csv,
    /// Samples as Apache Parquet
    #[cfg(feature = "parquet")]
    Parquet,
}

impl From<ExportArg> for Export {
    fn from(argument: ExportArg) -> Self {
        match argument {
            ExportArg::Hgrm => Self::Hgrm,
            ExportArg::Hlog => Self::Hlog,
            ExportArg::FioJson => Self::FioJson { bins: false },
            ExportArg::FioJsonPlus => Self::FioJson { bins: true },
            ExportArg::FioLog => Self::FioLog,
            ExportArg::OpenMetrics => Self::OpenMetrics,
            ExportArg::Perftest => Self::Perftest,
            ExportArg::Npy => Self::Samples(SampleFormat::Npy),
            ExportArg::Csv => Self::Samples(SampleFormat::Csv),
            #[cfg(feature = "parquet")]
            ExportArg::Parquet => Self::Samples(SampleFormat::Parquet),
        }
    }
}

/// Writes the file, or returns the text for stdout.
///
/// # Errors
/// [`Error::Usage`] with the file and what is wrong with it, [`Error::Output`].
pub(super) fn export(arguments: &ExportArgs) -> Result<String> {
    let path = &arguments.result;
    let document = if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| Error::Usage(format!("<stdin>: {error}")))?;
        read::parse_text(&text, "<stdin>")?
    } else {
        read::parse(path, &path.display().to_string())?
    };
    let shown = if path == Path::new("-") { Path::new("<stdin>") } else { path };
    let mut source = Source { path: shown, stored: Stored::of(&shown.display().to_string(), document)? };
    if let Some(number) = arguments.point {
        source.choose(number)?;
    }
    let export = Export::from(arguments.to);
    let Some(output) = &arguments.output else { return export.text(&source) };
    if output == path {
        return Err(Error::Usage(format!("--output {}: is the result itself", output.display())));
    }
    let mut said = String::new();
    for path in export.write(&source, output)? {
        let _ = writeln!(said, "{}", path.display());
    }
    Ok(said)
}
