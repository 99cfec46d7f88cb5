//! Every option as clap reads it: one definition feeds the parser and the help.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    ab::AbArgs,
    compare::CompareArgs,
    values::{Sizes, parse_engine, parse_meta, parse_peer, parse_sizes},
};
use crate::{
    engine::EngineKind,
    peer::{Cidr, PeerAddress},
    units::{parse_bytes, parse_count, parse_duration},
};

/// Measure the latency of single commands on RDMA and storage paths.
///
/// Without a subcommand it measures. Sizes: k K Ki KiB = 1024, kB KB = 1000, the same for M and G.
/// Times: ns us ms s m h. Exit codes: 0 done, 1 failed, 2 usage, 3 slower, 4 not to be told, 77 this
/// machine lacks what the engine needs, 130/143/129 interrupted (the partial result is written).
#[derive(Debug, Parser)]
#[command(name = "lat-probe", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
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
    Serve(ServeArgs),
    /// List the engines, what each needs, and whether this machine has it
    Engines,
    /// Inspect this machine and say what to fix, with commands
    Check,
    /// Measure the instrument and the machine: clock, floors of the loops, noise
    Calibrate(CalibrateArgs),
    /// Make sides by commands, measure them in turn, and compare
    Ab(Box<AbArgs>),
    /// Compare finished results, side against side, with a verdict
    Compare(CompareArgs),
    /// Carry out the measurements of a probe file, or the jobs of a fio file
    Run(Box<RunArgs>),
    /// Write the pattern that --verify expects
    Fill(FillArgs),
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
    #[arg(long, value_name = "NAME")]
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
    #[arg(long, value_name = "PATH", required = true)]
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
#[command(allow_negative_numbers = true)]
pub(super) struct MeasureArgs {
    /// What to measure; `lat-probe engines` lists them
    #[arg(long, value_name = "NAME", value_parser = parse_engine)]
    pub engine: Option<EngineKind>,
    /// Outstanding commands of each job; comma lists here and below measure one point for each combination [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_count)]
    pub qd: Vec<u64>,
    /// Payload bytes of a command [default: 8, 4k for block engines]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes)]
    pub bs: Vec<u64>,
    /// Payload bytes from one to another, each so many times or so much more than the one before: 2..8m:*2, 4k..64k:+4k
    #[arg(long, value_name = "RANGE", value_parser = parse_sizes, conflicts_with = "bs")]
    pub sizes: Option<Sizes>,
    /// Threads that measure, each with its own queue pair, ring or file [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_count)]
    pub jobs: Vec<u64>,
    /// Show each job by itself as well
    #[arg(long)]
    pub per_job: bool,
    /// Commands per second of each job, issued by the clock whether others have completed or not [default: as many as complete]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_count)]
    pub rate: Vec<u64>,
    /// Times between the commands of --rate: all the same, or exponential [default: fixed]
    #[arg(long, value_enum)]
    pub arrivals: Option<ArrivalsArg>,
    /// Commands to measure in each job [default: 100000, or as many as --duration allows]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub count: Option<u64>,
    /// Time to measure; the first limit reached ends the run
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Commands of each job to issue and discard first [default: 1000, or twice the depth if that is more]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub warmup: Option<u64>,
    /// Time to go on with that at least
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup_time: Option<Duration>,
    /// Busy-poll or sleep for completions
    #[arg(long, value_enum, default_value_t = CompletionArg::Poll)]
    pub completion: CompletionArg,
    /// The clock that stamps commands
    #[arg(long, value_enum, default_value_t = ClockArg::Auto)]
    pub clock: ClockArg,
    /// Stamp the end of the hand-over as well: splits latency into submit and wait
    #[arg(long)]
    pub phases: bool,
    /// Halve the round trips of ping-pong engines, as perftest does
    #[arg(long)]
    pub half_rtt: bool,
    /// The wait of the spin engine [default: 10us]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub delay: Option<Duration>,
    /// CPUs to measure on, for the jobs in turn [default: near the device, isolated if there are any]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_count)]
    pub cpu: Vec<u64>,
    /// CPU of the responder thread of a loopback
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub peer_cpu: Option<u64>,
    /// Put buffers into 2 MiB pages
    #[arg(long)]
    pub hugepages: bool,
    /// Quiet the machine while measuring, as far as allowed: idle states, memory, priority, interrupts
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub block: BlockArgs,
    #[command(flatten)]
    pub rdma: RdmaArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Files and block devices")]
pub(super) struct BlockArgs {
    /// File, block device, /dev/sg*, /dev/bsg/* or /dev/ng* to measure
    #[arg(long, value_name = "PATH")]
    pub target: Option<PathBuf>,
    /// Direction, and whether places are random [default: read]
    #[arg(long, value_enum)]
    pub rw: Option<RwArg>,
    /// A command without payload instead: isolates the transport (sg: the first two, nvme-cmd: flush)
    #[arg(long, value_enum)]
    pub command: Option<NoDataArg>,
    /// Where the working set begins [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub offset: Option<u64>,
    /// Length of the working set [default: all that follows]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub size: Option<u64>,
    /// Seed of random places and of the pattern of --verify [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub seed: Option<u64>,
    /// Pass by the page cache; the default on block devices
    #[arg(long)]
    pub direct: bool,
    /// Go through the page cache
    #[arg(long)]
    pub buffered: bool,
    /// Ask for polled completion (pvsync2)
    #[arg(long)]
    pub hipri: bool,
    /// Poll the device in the kernel (io-uring, nvme-cmd)
    #[arg(long)]
    pub uring_iopoll: bool,
    /// Let a kernel thread take submissions (io-uring, nvme-cmd)
    #[arg(long)]
    pub uring_sqpoll: bool,
    /// CPU of that thread
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub sqpoll_cpu: Option<u64>,
    /// Hand every command to a worker thread (io-uring)
    #[arg(long)]
    pub uring_async: bool,
    /// Register neither buffer nor file (io-uring, nvme-cmd)
    #[arg(long)]
    pub uring_unregistered: bool,
    /// Use the ioctl instead of io_uring (nvme-cmd)
    #[arg(long)]
    pub nvme_ioctl: bool,
    /// Check what reads bring against the pattern of `lat-probe fill`; write that pattern
    #[arg(long)]
    pub verify: bool,
    /// Count failed commands and go on; they are in no statistic
    #[arg(long)]
    pub continue_on_error: bool,
    /// The target, once more: writing may destroy its data
    #[arg(long, value_name = "PATH")]
    pub allow_write: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "RDMA")]
pub(super) struct RdmaArgs {
    /// Where `lat-probe serve` runs; without it both ends are in this process
    #[arg(long, value_name = "HOST[:PORT]", value_parser = parse_peer)]
    pub peer: Option<PeerAddress>,
    /// File with the token that the peer wants to see
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the smaller of both ends' active MTU]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub mtu: Option<u64>,
    /// Service level, 0 to 15 [default: 0]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub sl: Option<u64>,
    /// Traffic class, 0 to 255 [default: 0]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub traffic_class: Option<u64>,
    /// Largest payload to send inline; 0 for none [default: payloads up to 256 bytes, if the device takes them]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub inline: Option<u64>,
    /// Outstanding READs and atomics [default: what both ends can do]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub read_depth: Option<u64>,
    /// Let only every Nth command report its completion; the others are seen with it [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub signal_every: Option<u64>,
    /// Local ACK timeout code, 0 to 31: 4.096 µs · 2^N [default: 14]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub qp_timeout: Option<u64>,
    /// Retries after a timeout, 0 to 7 [default: 7]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub retry: Option<u64>,
    /// Retries after receiver-not-ready, 0 to 7, 7 for ever [default: 7]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub rnr_retry: Option<u64>,
    /// Transport of the queue pair [default: RC]
    #[arg(long, value_enum, ignore_case = true)]
    pub transport: Option<TransportArg>,
    /// Connect through rdma_cm
    #[arg(long)]
    pub cm: bool,
}

#[derive(Debug, Args)]
pub(super) struct DeviceArgs {
    /// RDMA device and port [default: the first active one, near the peer's network]
    #[arg(long, value_name = "DEV[:PORT]")]
    pub device: Option<String>,
    /// GID index [default: chosen by type and address]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub gid_index: Option<u64>,
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
    /// Name of this run, kept in the result
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// A fact to keep in the result; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_meta)]
    pub meta: Vec<(String, String)>,
    /// Draw progress on a terminal
    #[arg(long, value_enum, default_value_t = ProgressArg::Auto)]
    pub progress: ProgressArg,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "[::]")]
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
pub(super) enum ArrivalsArg {
    Fixed,
    Poisson,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum CompletionArg {
    Poll,
    Event,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ClockArg {
    Auto,
    Tsc,
    Monotonic,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum RwArg {
    Read,
    #[value(name = "randread")]
    RandRead,
    Write,
    #[value(name = "randwrite")]
    RandWrite,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum NoDataArg {
    TestUnitReady,
    Inquiry,
    Flush,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum TransportArg {
    Rc,
    Uc,
    Ud,
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
