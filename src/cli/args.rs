//! Subcommands and what they share, as clap reads them: one definition feeds the parser and the help.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use super::{
    ab::AbArgs,
    compare::CompareArgs,
    exit_codes,
    export::ExportArgs,
    options::{ClockArg, DeviceArgs, MeasureArgs},
    report::ReportArgs,
    values::parse_meta,
};
use crate::{
    peer::Cidr,
    units::{parse_bytes, parse_count, parse_duration},
};

/// Measure the latency of single commands on RDMA and storage paths.
///
/// Without a subcommand it measures. The latency of a command counts from before it is handed over until its completion was
/// seen. The instrument's own cost, the floor, stands beside it and is not subtracted.
///
/// Sizes: k K Ki KiB = 1024, kB KB = 1000, the same for M and G. Times: ns us ms s m h.
#[derive(Debug, Parser)]
#[command(name = "lat-probe", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
#[command(after_long_help = exit_codes::help(), override_usage = "lat-probe --engine <NAME> [OPTIONS]\n       lat-probe <COMMAND>")]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Go on with a list of points that was interrupted: those in the file of --output are not measured again
    #[arg(long, requires = "output")]
    pub resume: bool,
    #[command(flatten)]
    pub measure: MeasureArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve as the other end of RDMA measurements
    ///
    /// Clients find it by --peer. It serves several at a time, until a signal comes. What a client measured is shown at its end.
    /// A server answers anyone who reaches its port, unless --allow or --token-file limit it; the connection is not encrypted.
    Serve(ServeArgs),
    /// List the engines, what each needs, and whether this machine has it
    Engines,
    /// Inspect this machine and say what to fix, with commands
    Check,
    /// Measure the instrument and the machine: clock, floors of the loops, noise
    ///
    /// At length, what a short form does before every measurement: cost and order of stamps, also between two processors; the
    /// shortest path through each loop; gaps by length; and what a sleep of 1 µs costs.
    Calibrate(CalibrateArgs),
    /// Make sides by commands, measure them in turn, and compare
    ///
    /// Before each measurement a shell command makes the side. Rounds come in random blocks (A B B A or B A A B), so that a drift
    /// falls on both. Then it ends as `lat-probe compare` does. Every round is stored in --output, from where --resume goes on.
    Ab(Box<AbArgs>),
    /// Compare finished results, side against side, with a verdict
    ///
    /// The unit is the round: one result of a side. With fewer than four rounds a side there is no interval of 95 %, and no verdict.
    /// A figure is slower or faster if the whole interval of its shift lies on one side of zero and the shift counts
    /// (--min-effect), the same if the whole interval is smaller than that, and else inconclusive.
    Compare(CompareArgs),
    /// Carry out the measurements of a probe file, or the jobs of a fio file
    ///
    /// Each is measured as if its options had been typed. Options behind the file's name take the place of the file's own. A
    /// job that writes needs --allow-write there.
    Run(Box<RunArgs>),
    /// Write a stored result in a format of other tools
    Export(ExportArgs),
    /// Put stored results on one page for a browser
    ///
    /// The page has tables and charts of all points, their timelines, the instrument, and comparisons. It loads nothing from
    /// anywhere. A series is compared as `lat-probe compare` does. A timeline is of all samples where --samples stored them.
    Report(ReportArgs),
    /// Write the pattern that --verify expects
    ///
    /// Every eight bytes of it tell their place. This destroys what the file or device holds, within the checks that every
    /// write of lat-probe has.
    Fill(FillArgs),
    /// Print the JSON Schema of what this version writes
    Schema(SchemaArgs),
    /// Print a script that completes commands in a shell
    Completions(CompletionsArgs),
    /// Print the man page, or write those of all subcommands
    ///
    /// They are made from the definition that the parser has. SOURCE_DATE_EPOCH, in seconds, gives them a date.
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// The kind of document
    #[arg(value_enum, default_value_t = SchemaArg::Result)]
    pub name: SchemaArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum SchemaArg {
    /// What a run writes
    Result,
    /// What calibrate writes
    Calibration,
    /// What compare writes
    Comparison,
    /// What ab keeps
    Series,
    /// What compare --table writes
    Table,
    /// A line of serve --format json
    Served,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write all pages into this folder instead, lat-probe.1, lat-probe-serve.1 and so on; each is replaced as a whole
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct CalibrateArgs {
    /// The clock that stamps commands
    #[arg(long, value_enum, default_value_t = ClockArg::Auto)]
    pub clock: ClockArg,
    /// CPU to measure on [default: as for a measurement]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub cpu: Option<u64>,
    /// How long to listen to the machine
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub window: Duration,
    /// Quiet the machine meanwhile, as for a measurement
    #[arg(long)]
    pub quiet: bool,
    /// What stdout shows
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
    /// Write the JSON report to this file as well; it is replaced as a whole
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct RunArgs {
    /// The probe file, or a job file of fio; options behind it take the place of its own
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The one job of a fio file to carry out
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub section: Option<String>,
    /// Only print the commands that the file became, with notes
    #[arg(long)]
    pub explain: bool,
    /// Go on with measurements that were interrupted: points in the file of --output are not measured again
    #[arg(long, requires = "output")]
    pub resume: bool,
    #[command(flatten)]
    pub measure: MeasureArgs,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct FillArgs {
    /// The file or device to overwrite; a file that does not exist is made
    #[arg(long, value_name = "PATH", required = true, value_hint = ValueHint::FilePath)]
    pub allow_write: PathBuf,
    /// Where to begin [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub offset: Option<u64>,
    /// How much to write; a file grows to it [default: all that is there]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub size: Option<u64>,
    /// Seed of the pattern [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// What stdout shows; fio is the layout of fio's own report
    #[arg(long, value_enum, default_value_t = ResultFormatArg::Text)]
    pub format: ResultFormatArg,
    /// Write the JSON result to this file as well; it is replaced as a whole
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write every sample to this file: .npy, .csv or .parquet; of several points each to one of its own, FILE-1 and so on
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Name of this run, kept in the result
    #[arg(long, value_name = "TEXT", value_hint = ValueHint::Other)]
    pub label: Option<String>,
    /// A fact to keep in the result; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_meta)]
    pub meta: Vec<(String, String)>,
    /// Draw progress on a terminal
    #[arg(long, value_enum, default_value_t = ProgressArg::Auto)]
    pub progress: ProgressArg,
    /// Show p50, p99 and max of the commands so far: on a terminal live, elsewhere in a line every 2 s
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "[::]", value_hint = ValueHint::Hostname)]
    pub bind: String,
    /// Serve clients of this network only; may be repeated
    #[arg(long, value_name = "CIDR")]
    pub allow: Vec<Cidr>,
    /// Serve clients only that show the token in this file
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Clients at a time
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_count)]
    pub max_clients: u64,
    /// Largest payload of one command: bounds the buffer of a client
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = parse_bytes)]
    pub max_size: u64,
    /// Most commands that a client may have outstanding: bounds the receives that are kept for it
    #[arg(long, value_name = "N", default_value = "32768", value_parser = parse_count)]
    pub max_depth: u64,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// CPU of the responders
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub cpu: Option<u64>,
    /// End after the first client, with exit code 1 if it failed
    #[arg(long)]
    pub once: bool,
    /// What stdout shows: a table for each client, or a line of JSON for each that has finished
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
    /// Draw the progress of clients on a terminal
    #[arg(long, value_enum, default_value_t = ProgressArg::Auto)]
    pub progress: ProgressArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum FormatArg {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ResultFormatArg {
    Text,
    Json,
    Fio,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ProgressArg {
    Auto,
    Never,
}
