//! From the options as clap reads them to the measurement as written.

use super::options::{
    ArrivalsArg, BlockArgs, ClockArg, CompletionArg, MeasureArgs, NoDataArg, RdmaArgs, RwArg, TransportArg,
};
use super::values::engine_names;
use crate::{
    engine::{Arrivals, Completion, NoData, Rw, Transport},
    error::{Error, Result},
    peer::read_token_file,
    probe::{BlockSpec, RdmaSpec, Spec},
    timing::ClockChoice,
    units::parse_count,
};

/// The measurement that was typed.
///
/// # Errors
/// [`Error::Usage`] for what clap cannot check, and the errors of reading the token.
pub(super) fn spec(arguments: MeasureArgs) -> Result<Spec> {
    let Some(engine) = arguments.engine else {
        return Err(Error::Usage(format!("--engine is missing (one of: {})", engine_names())));
    };
    let token = arguments.rdma.token_file.as_deref().map(read_token_file).transpose()?;
    let peer = arguments.rdma.peer.clone();
    Ok(Spec {
        engine,
        qd: arguments.qd,
        bs_bytes: arguments.sizes.map_or(arguments.bs, |sizes| sizes.0),
        jobs: arguments.jobs,
        rate: arguments.rate,
        arrivals: arguments.arrivals.map(|arrivals| match arrivals {
            ArrivalsArg::Fixed => Arrivals::Fixed,
            ArrivalsArg::Poisson => Arrivals::Poisson,
        }),
        per_job: arguments.per_job,
        count: arguments.count,
        duration: arguments.duration,
        warmup: arguments.warmup,
        warmup_time: arguments.warmup_time,
        completion: match arguments.completion {
            CompletionArg::Poll => Completion::Poll,
            CompletionArg::Event => Completion::Event,
        },
        clock: clock(arguments.clock),
        phases: arguments.phases,
        half_rtt: arguments.half_rtt,
        delay: arguments.delay,
        cpu: arguments.cpu,
        peer_cpu: arguments.peer_cpu,
        peer,
        token,
        hugepages: arguments.hugepages,
        quiet: arguments.quiet,
        rdma: rdma_spec(arguments.rdma)?,
        block: block_spec(arguments.block),
    })
}

/// The clock by its name.
pub(super) fn clock(argument: ClockArg) -> ClockChoice {
    match argument {
        ClockArg::Auto => ClockChoice::Auto,
        ClockArg::Tsc => ClockChoice::Tsc,
        ClockArg::Monotonic => ClockChoice::Monotonic,
    }
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
        signal_every: arguments.signal_every,
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

/// `DEV:PORT` in its parts.
pub(super) fn device_and_port(text: Option<String>) -> Result<(Option<String>, Option<u64>)> {
    let Some(text) = text else { return Ok((None, None)) };
    let Some((device, port)) = text.rsplit_once(':') else { return Ok((Some(text), None)) };
    let port = parse_count(port).map_err(|why| Error::Usage(format!("--device {text}: port {why}")))?;
    Ok((Some(device.into()), Some(port)))
}
