//! Arguments as typed, and the exit code. What they mean is decided in [`crate::probe`].

mod args;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

use crate::{
    engine::{Completion, NoData, Rw, Transport},
    error::{Error, Result},
    host::Sysfs,
    peer::read_token_file,
    probe::{BlockSpec, Plan, RdmaSpec, Spec},
    run::{self, Fill, Format, Reporting, check},
    timing::ClockChoice,
    units::parse_count,
};

use args::{
    BlockArgs, Cli, ClockArg, Command, CompletionArg, FillArgs, FormatArg, MeasureArgs, NoDataArg, OutputArgs,
    ProgressArg, RdmaArgs, RwArg, ServeArgs, TransportArg, engine_names,
};

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
        Some(Command::Fill(arguments)) => fill(arguments),
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

fn fill(arguments: FillArgs) -> Result<u8> {
    let filled = run::fill(&Fill {
        path: arguments.allow_write,
        offset_bytes: arguments.offset.unwrap_or(0),
        size_bytes: arguments.size,
        seed: arguments.seed,
    })?;
    print(&filled).map(|()| 0)
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
        hugepages: arguments.hugepages,
        rdma: rdma_spec(arguments.rdma)?,
        block: block_spec(arguments.block),
    })
}

fn block_spec(arguments: BlockArgs) -> BlockSpec {
    BlockSpec {
        target: arguments.target,
        rw: arguments.rw.map(|rw| match rw {
            RwArg::Read => Rw::Read,
            RwArg::RandRead => Rw::RandRead,
            RwArg::Write => Rw::Write,
            RwArg::RandWrite => Rw::RandWrite,
        }),
        command: arguments.command.map(|command| match command {
            NoDataArg::TestUnitReady => NoData::TestUnitReady,
            NoDataArg::Inquiry => NoData::Inquiry,
            NoDataArg::Flush => NoData::Flush,
        }),
        offset: arguments.offset,
        size: arguments.size,
        seed: arguments.seed,
        direct: arguments.direct,
        buffered: arguments.buffered,
        hipri: arguments.hipri,
        uring_iopoll: arguments.uring_iopoll,
        uring_sqpoll: arguments.uring_sqpoll,
        sqpoll_cpu: arguments.sqpoll_cpu,
        uring_async: arguments.uring_async,
        uring_unregistered: arguments.uring_unregistered,
        nvme_ioctl: arguments.nvme_ioctl,
        verify: arguments.verify,
        continue_on_error: arguments.continue_on_error,
        allow_write: arguments.allow_write,
    }
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
    use crate::{
        peer::{DEFAULT_PORT, PeerAddress},
        run::serve::{ServeOptions, serve},
    };
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
        rdma: spec.resolve(false)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
