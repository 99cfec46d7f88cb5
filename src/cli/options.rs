//! How to measure, as clap reads it.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, ValueHint};

use super::{
    args::OutputArgs,
    values::{Sizes, engine, mtu, parse_peer, parse_sizes},
};
use crate::{
    engine::EngineKind,
    peer::PeerAddress,
    units::{parse_bytes, parse_count, parse_duration},
};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct MeasureArgs {
    /// What to measure; `lat-probe engines` lists them
    #[arg(long, value_name = "NAME", value_parser = engine())]
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
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
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
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub allow_write: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "RDMA")]
pub(super) struct RdmaArgs {
    /// Where `lat-probe serve` runs; without it both ends are in this process
    #[arg(long, value_name = "HOST[:PORT]", value_parser = parse_peer, value_hint = ValueHint::Hostname)]
    pub peer: Option<PeerAddress>,
    /// File with the token that the peer wants to see
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the smaller of both ends' active MTU]
    #[arg(long, value_name = "BYTES", value_parser = mtu(), hide_possible_values = true)]
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
    #[arg(long, value_name = "DEV[:PORT]", value_hint = ValueHint::Other)]
    pub device: Option<String>,
    /// GID index [default: chosen by type and address]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub gid_index: Option<u64>,
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
