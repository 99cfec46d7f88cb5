//! The checks of the options of block engines against each other. What only the target can tell is checked when it is
//! opened.

use super::{
    plan::{MAX_INTEGER, range},
    spec::{BlockSpec, Spec},
};
use crate::{
    engine::{BlockOptions, Completion, EngineKind, MAX_BS_BYTES, NoData, UringOptions},
    error::{Error, Result},
    host::MAX_CPUS,
};

/// Seed where none was given: every run with the same options goes to the same places.
const DEFAULT_SEED: u64 = 1;
const DEFAULT_BYTES: u64 = 4096;

/// Checks the options of a block engine and fills in what was not said.
///
/// # Errors
/// [`Error::Usage`] that names the option and the reason.
pub(super) fn resolve(spec: &Spec) -> Result<BlockOptions> {
    let block = &spec.block;
    let Some(target) = block.target.clone() else {
        return Err(Error::Usage(format!(
            "--target is missing: the engine {} measures a file or a device",
            spec.engine
        )));
    };
    of_engine(spec)?;
    of_rings(spec)?;
    let rw = block.rw.unwrap_or_default();
    if block.command.is_none() && !rw.writes() && block.allow_write.is_some() {
        return Err(Error::Usage(format!("--allow-write has no effect with --rw {}: nothing is written", rw.name())));
    }
    if let Some(command) = block.command {
        without_payload(spec, command)?;
    }
    if block.direct && block.buffered {
        return Err(Error::usage("--direct and --buffered exclude each other"));
    }
    check_extent(block.offset, block.size, block.seed)?;
    let sqpoll_cpu = block.sqpoll_cpu.map(|cpu| match u32::try_from(cpu) {
        Ok(cpu) if (cpu as usize) < MAX_CPUS => Ok(cpu),
        _ => Err(range("--sqpoll-cpu", cpu, &format!("0 to {}", MAX_CPUS - 1))),
    });
    Ok(BlockOptions {
        target,
        rw,
        command: block.command,
        offset_bytes: block.offset.unwrap_or(0),
        size_bytes: block.size,
        seed: block.seed.unwrap_or(DEFAULT_SEED),
        buffered: (block.direct || block.buffered).then_some(block.buffered),
        hipri: block.hipri,
        uring: UringOptions {
            iopoll: block.uring_iopoll,
            sqpoll: block.uring_sqpoll,
            sqpoll_cpu: sqpoll_cpu.transpose()?,
            force_async: block.uring_async,
            unregistered: block.uring_unregistered,
        },
        nvme_ioctl: block.nvme_ioctl,
        verify: block.verify,
        continue_on_error: block.continue_on_error,
        allow_write: block.allow_write.clone(),
        hugepages: spec.hugepages,
    })
}

/// Checks the numbers that a measurement shares with `lat-probe fill`.
///
/// # Errors
/// [`Error::Usage`] that names the option, the value and what is allowed.
pub fn check_extent(offset: Option<u64>, size: Option<u64>, seed: Option<u64>) -> Result<()> {
    for (option, value) in [("--offset", offset), ("--size", size), ("--seed", seed)] {
        if let Some(value) = value.filter(|&value| value > MAX_INTEGER) {
            return Err(range(option, value, &format!("at most {MAX_INTEGER}")));
        }
    }
    if size == Some(0) {
        return Err(range("--size", 0, "at least one block"));
    }
    Ok(())
}

/// Payload bytes of each point.
///
/// # Errors
/// A size that no engine takes.
pub(super) fn points(spec: &Spec) -> Result<Vec<Option<u64>>> {
    if spec.block.command.is_some() {
        return Ok(vec![None]);
    }
    if spec.bs_bytes.is_empty() {
        return Ok(vec![Some(DEFAULT_BYTES)]);
    }
    let check = |&bytes: &u64| match bytes {
        0 => Err(range("--bs", bytes, "at least one block")),
        1..=MAX_BS_BYTES => Ok(Some(bytes)),
        _ => Err(range("--bs", bytes, &format!("at most {MAX_BS_BYTES} (1G)"))),
    };
    spec.bs_bytes.iter().map(check).collect()
}

/// Options that mean something to one engine only.
fn of_engine(spec: &Spec) -> Result<()> {
    let (engine, block) = (spec.engine, &spec.block);
    let only = |given: bool, option: &str, whom: &str| {
        if given { Err(Error::Usage(format!("{option} is for {whom}, not for {engine}"))) } else { Ok(()) }
    };
    only(block.hipri && engine != EngineKind::Pvsync2, "--hipri", "pvsync2")?;
    only(block.nvme_ioctl && engine != EngineKind::NvmeCmd, "--nvme-ioctl", "nvme-cmd")?;
    let rings = matches!(engine, EngineKind::IoUring | EngineKind::NvmeCmd);
    if let Some(option) = block.first_of_uring().filter(|_| !rings) {
        only(true, option, "io-uring and nvme-cmd")?;
    }
    only(block.uring_async && engine != EngineKind::IoUring, "--uring-async", "io-uring")?;
    let passthrough = matches!(engine, EngineKind::Sg | EngineKind::NvmeCmd);
    for (given, option) in [(block.direct, "--direct"), (block.buffered, "--buffered")] {
        only(given && passthrough, option, "engines that read and write through the block layer")?;
    }
    Ok(())
}

/// How completions are awaited, and what rings can do.
fn of_rings(spec: &Spec) -> Result<()> {
    let (engine, block) = (spec.engine, &spec.block);
    if block.nvme_ioctl
        && let Some(option) = block.first_of_uring()
    {
        return Err(Error::Usage(format!("{option} has no effect with --nvme-ioctl, which uses no ring")));
    }
    if block.sqpoll_cpu.is_some() && !block.uring_sqpoll {
        return Err(Error::usage("--sqpoll-cpu is for --uring-sqpoll"));
    }
    if block.uring_iopoll && block.buffered {
        return Err(Error::usage("--uring-iopoll needs direct access: the page cache has nothing to poll"));
    }
    if block.hipri && block.buffered {
        return Err(Error::usage("--hipri needs direct access: the page cache has nothing to poll"));
    }
    if spec.completion == Completion::Event {
        let blocking = matches!(engine, EngineKind::Psync | EngineKind::Pvsync2 | EngineKind::Sg) || block.nvme_ioctl;
        if blocking {
            return Err(Error::Usage(format!(
                "--completion has no effect on {engine}: its call returns on completion"
            )));
        }
        if block.uring_iopoll {
            return Err(Error::usage("--uring-iopoll polls; --completion event sleeps. Choose one"));
        }
    }
    Ok(())
}

/// A command without payload leaves nothing to choose about data.
fn without_payload(spec: &Spec, command: NoData) -> Result<()> {
    let (engine, block) = (spec.engine, &spec.block);
    let knows = match command {
        NoData::TestUnitReady | NoData::Inquiry => engine == EngineKind::Sg,
        NoData::Flush => engine == EngineKind::NvmeCmd,
    };
    let name = command.name();
    if !knows {
        return Err(Error::Usage(format!("--command {name}: {engine} has no such command")));
    }
    let BlockSpec { rw, offset, size, seed, verify, .. } = block;
    let given = [
        (rw.is_some(), "--rw"),
        (!spec.bs_bytes.is_empty(), "--bs"),
        (offset.is_some(), "--offset"),
        (size.is_some(), "--size"),
        (seed.is_some(), "--seed"),
        (*verify, "--verify"),
        (block.allow_write.is_some(), "--allow-write"),
    ];
    match given.into_iter().find_map(|(given, option)| given.then_some(option)) {
        Some(option) => Err(Error::Usage(format!("{option} has no effect with --command {name}, which moves no data"))),
        None => Ok(()),
    }
}
