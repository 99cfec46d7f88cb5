//! Arguments as typed, and the exit code. What they mean is decided in [`crate::probe`].

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    engine::{Completion, EngineKind, Transport},
    error::{Error, Result},
    host::Sysfs,
    peer::{DEFAULT_PORT, PeerAddress, read_token_file},
    probe::{Plan, RdmaSpec, Spec},
    run::{self, Format, Reporting, check},
    timing::ClockChoice,
    units::{parse_bytes, parse_count, parse_duration},
};

/// Measure the latency of single commands on RDMA and storage paths.
///
/// Without a subcommand it measures. Sizes: k K Ki KiB = 1024, kB KB = 1000, the same for M and G.
/// Times: ns us ms s m h. Exit codes: 0 done, 1 failed, 2 usage, 77 this machine lacks what the
/// engine needs, 130/143 interrupted (the partial result is written).
#[derive(Debug, Parser)]
#[command(name = "lat-probe", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve as the other end of RDMA measurements
    Serve(ServeArgs),
    /// List the engines, what each needs, and whether this machine has it
    Engines,
    /// Inspect this machine and say what to fix, with commands
    Check,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
struct MeasureArgs {
    /// What to measure; `lat-probe engines` lists them
    #[arg(long, value_name = "NAME", value_parser = parse_engine)]
    engine: Option<EngineKind>,
    /// Outstanding commands; this version measures one at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    qd: u64,
    /// Payload bytes of a command; a comma list measures one point each [default: 8]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes)]
    bs: Vec<u64>,
    /// Commands to measure [default: 100000, or as many as --duration allows]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: Option<u64>,
    /// Time to measure; the first limit reached ends the run
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Commands to issue and discard first
    #[arg(long, value_name = "N", default_value = "1000", value_parser = parse_count)]
    warmup: u64,
    /// Busy-poll or sleep for completions
    #[arg(long, value_enum, default_value_t = CompletionArg::Poll)]
    completion: CompletionArg,
    /// The clock that stamps commands
    #[arg(long, value_enum, default_value_t = ClockArg::Auto)]
    clock: ClockArg,
    /// Stamp the end of the hand-over as well: splits latency into submit and wait
    #[arg(long)]
    phases: bool,
    /// Halve the round trips of ping-pong engines, as perftest does
    #[arg(long)]
    half_rtt: bool,
    /// The wait of the spin engine [default: 10us]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    delay: Option<Duration>,
    /// CPU to measure on [default: near the device, isolated if there is one]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    cpu: Option<u64>,
    /// CPU of the responder thread of a loopback
    #[arg(long, value_name = "N", value_parser = parse_count)]
    peer_cpu: Option<u64>,
    #[command(flatten)]
    rdma: RdmaArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "RDMA")]
struct RdmaArgs {
    /// Where `lat-probe serve` runs; without it both ends are in this process
    #[arg(long, value_name = "HOST[:PORT]", value_parser = parse_peer)]
    peer: Option<PeerAddress>,
    /// File with the token that the peer wants to see
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096 [default: the smaller of both ends' active MTU]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    mtu: Option<u64>,
    /// Service level, 0 to 15 [default: 0]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    sl: Option<u64>,
    /// Traffic class, 0 to 255 [default: 0]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    traffic_class: Option<u64>,
    /// Largest payload to send inline; 0 for none [default: payloads up to 256 bytes, if the device takes them]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    inline: Option<u64>,
    /// Outstanding READs and atomics [default: what both ends can do]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    read_depth: Option<u64>,
    /// Local ACK timeout code, 0 to 31: 4.096 µs · 2^N [default: 14]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    qp_timeout: Option<u64>,
    /// Retries after a timeout, 0 to 7 [default: 7]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    retry: Option<u64>,
    /// Retries after receiver-not-ready, 0 to 7, 7 for ever [default: 7]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    rnr_retry: Option<u64>,
    /// Transport of the queue pair [default: RC]
    #[arg(long, value_enum, ignore_case = true)]
    transport: Option<TransportArg>,
    /// Connect through rdma_cm
    #[arg(long)]
    cm: bool,
    /// Put buffers into 2 MiB pages
    #[arg(long)]
    hugepages: bool,
}

#[derive(Debug, Args)]
struct DeviceArgs {
    /// RDMA device and port [default: the first active one, near the peer's network]
    #[arg(long, value_name = "DEV[:PORT]")]
    device: Option<String>,
    /// GID index [default: chosen by type and address]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    gid_index: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// What stdout shows
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Write the JSON result to this file as well; it is replaced as a whole
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Name of this run, kept in the result
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// A fact to keep in the result; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_meta)]
    meta: Vec<(String, String)>,
    /// Draw progress on a terminal
    #[arg(long, value_enum, default_value_t = ProgressArg::Auto)]
    progress: ProgressArg,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "[::]")]
    bind: String,
    /// Serve clients of this network only; may be repeated
    #[arg(long, value_name = "CIDR")]
    allow: Vec<crate::peer::Cidr>,
    /// Serve clients only that show the token in this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Clients at a time
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_count)]
    max_clients: u64,
    /// Largest payload of one command: bounds the buffer of a client
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = parse_bytes)]
    max_size: u64,
    #[command(flatten)]
    device: DeviceArgs,
    /// CPU of the responders
    #[arg(long, value_name = "N", value_parser = parse_count)]
    cpu: Option<u64>,
    /// End after the first client, with exit code 1 if it failed
    #[arg(long)]
    once: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompletionArg {
    Poll,
    Event,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ClockArg {
    Auto,
    Tsc,
    Monotonic,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TransportArg {
    Rc,
    Uc,
    Ud,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProgressArg {
    Auto,
    Never,
}

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    // Nobody reads stderr if this fails.
    let _ = writeln!(io::stderr(), "lat-probe: {error}");
    ExitCode::from(error.exit_code())
}

fn dispatch(cli: Cli) -> Result<u8> {
    match cli.command {
        None => measure(cli.measure),
        Some(Command::Serve(arguments)) => serve(arguments),
        Some(Command::Engines) => print(&run::engines::render()).map(|()| 0),
        Some(Command::Check) => {
            let findings = check::inspect(&check::System::read(Sysfs::default()));
            print(&check::render(&findings)).map(|()| 0)
        }
    }
}

fn measure(arguments: MeasureArgs) -> Result<u8> {
    let reporting = reporting(&arguments.output);
    let plan = Plan::check(spec(arguments)?)?;
    let outcome = run::measure(&plan, &reporting)?;
    let printed = print(&outcome.stdout);
    if let Some(error) = &outcome.failure {
        fail(error);
    }
    printed.map(|()| outcome.exit_code)
}

fn spec(arguments: MeasureArgs) -> Result<Spec> {
    let Some(engine) = arguments.engine else {
        return Err(Error::Usage(format!("--engine is missing (one of: {})", engine_names())));
    };
    let token = arguments.rdma.token_file.as_deref().map(read_token_file).transpose()?;
    let peer = arguments.rdma.peer.clone();
    Ok(Spec {
        engine,
        qd: arguments.qd,
        bs_bytes: arguments.bs,
        count: arguments.count,
        duration: arguments.duration,
        warmup: arguments.warmup,
        completion: match arguments.completion {
            CompletionArg::Poll => Completion::Poll,
            CompletionArg::Event => Completion::Event,
        },
        clock: match arguments.clock {
            ClockArg::Auto => ClockChoice::Auto,
            ClockArg::Tsc => ClockChoice::Tsc,
            ClockArg::Monotonic => ClockChoice::Monotonic,
        },
        phases: arguments.phases,
        half_rtt: arguments.half_rtt,
        delay: arguments.delay,
        cpu: arguments.cpu,
        peer_cpu: arguments.peer_cpu,
        peer,
        token,
        rdma: rdma_spec(arguments.rdma)?,
    })
}

fn rdma_spec(arguments: RdmaArgs) -> Result<RdmaSpec> {
    let (device, port) = device_and_port(arguments.device.device)?;
    Ok(RdmaSpec {
        device,
        port,
        gid_index: arguments.device.gid_index,
        mtu: arguments.mtu,
        sl: arguments.sl,
        traffic_class: arguments.traffic_class,
        inline: arguments.inline,
        read_depth: arguments.read_depth,
        timeout: arguments.qp_timeout,
        retry: arguments.retry,
        rnr_retry: arguments.rnr_retry,
        transport: arguments.transport.map(|transport| match transport {
            TransportArg::Rc => Transport::Rc,
            TransportArg::Uc => Transport::Uc,
            TransportArg::Ud => Transport::Ud,
        }),
        cm: arguments.cm,
        hugepages: arguments.hugepages,
    })
}

fn device_and_port(text: Option<String>) -> Result<(Option<String>, Option<u64>)> {
    let Some(text) = text else { return Ok((None, None)) };
    let Some((device, port)) = text.rsplit_once(':') else { return Ok((Some(text), None)) };
    let port = parse_count(port).map_err(|why| Error::Usage(format!("--device {text}: port {why}")))?;
    Ok((Some(device.into()), Some(port)))
}

fn reporting(arguments: &OutputArgs) -> Reporting {
    Reporting {
        format: match arguments.format {
            FormatArg::Text => Format::Text,
            FormatArg::Json => Format::Json,
        },
        output: arguments.output.clone(),
        label: arguments.label.clone(),
        meta: arguments.meta.iter().cloned().collect::<BTreeMap<_, _>>(),
        progress: matches!(arguments.progress, ProgressArg::Auto),
    }
}

#[cfg(feature = "rdma")]
fn serve(arguments: ServeArgs) -> Result<u8> {
    use crate::run::serve::{ServeOptions, serve};
    let (device, port) = device_and_port(arguments.device.device)?;
    let spec = RdmaSpec { device, port, gid_index: arguments.device.gid_index, ..RdmaSpec::default() };
    if arguments.max_clients == 0 {
        return Err(Error::usage("--max-clients 0 would serve nobody"));
    }
    serve(ServeOptions {
        bind: PeerAddress::parse(&arguments.bind, DEFAULT_PORT).map_err(|why| Error::Usage(format!("--bind {why}")))?,
        allow: arguments.allow,
        token: arguments.token_file.as_deref().map(read_token_file).transpose()?,
        max_clients: usize::try_from(arguments.max_clients).unwrap_or(usize::MAX),
        max_bytes: arguments.max_size,
        rdma: spec.resolve()?,
        cpu: arguments.cpu.map(|cpu| usize::try_from(cpu).unwrap_or(usize::MAX)),
        once: arguments.once,
    })
}

#[cfg(not(feature = "rdma"))]
fn serve(_arguments: ServeArgs) -> Result<u8> {
    Err(Error::Unavailable {
        what: "serve: this build has no RDMA engines".into(),
        remedy: "Build with the default features (needs cmake and libclang)".into(),
    })
}

/// Writes to stdout; a reader that has left is an error like any other, not a panic.
fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|source| Error::Output { path: "<stdout>".into(), source })
}

fn engine_names() -> String {
    EngineKind::ALL.map(EngineKind::name).join(", ")
}

fn parse_engine(text: &str) -> std::result::Result<EngineKind, String> {
    EngineKind::from_name(text).ok_or_else(|| format!("there is no such engine (there are: {})", engine_names()))
}

fn parse_peer(text: &str) -> std::result::Result<PeerAddress, String> {
    PeerAddress::parse(text, DEFAULT_PORT)
}

fn parse_meta(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
