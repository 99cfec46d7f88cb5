//! Sets up what an engine runs on: its buffer, its AIO context or ring, its passthrough command. Each refusal of the kernel
//! is told apart and comes with the knob that changes it.

use std::io;

use io_uring::{cqueue, squeue};

use super::{
    Subject,
    options::{NoData, NvmeGranted, TargetKind, UringGranted, UringOptions},
    sg::{Cdb, INQUIRY_BYTES},
    target::Target,
};
use crate::{
    engine::{BufferFacts, EngineKind},
    error::{Error, Result},
    host::{BlockDevice, Sysfs},
    sys::{
        aio,
        memory::{Buffer, Pages},
        nvme::{self, Opcode, UringCommand},
        scsi::{self, Direction, Header, Passthrough},
        uring::{MAX_DEPTH, MAX_SQPOLL_DEPTH, Ring, Setup, SqThread},
    },
    units::format_size,
};

/// How long the kernel lets a SCSI or NVMe command take: as long as the run waits for one.
const TIMEOUT_MS: u32 = 10_000;

/// What the kernel maps a buffer by, outside of 2 MiB pages.
const PAGE_BYTES: u64 = 4096;

/// Most blocks of one NVMe command: NLB has 16 bits and counts from zero.
const NVME_BLOCKS: u64 = 1 << 16;

/// Maps the data buffer of `depth` commands of `bytes`, near the device.
///
/// # Errors
/// The errno of `mmap`.
pub fn buffer(bytes: u64, depth: u32, hugepages: bool, node: Option<u32>) -> Result<Buffer> {
    let pages = if hugepages { Pages::Huge } else { Pages::Normal };
    let narrow = u32::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    narrow.and_then(|bytes| Buffer::in_pieces(bytes, depth, pages, node)).map_err(|source| {
        let hint = if hugepages { "Reserve 2 MiB pages: `sysctl vm.nr_hugepages=N`" } else { "" };
        Error::call(format!("buffer of {depth} × {bytes} bytes"), "mmap", source, hint)
    })
}

/// A buffer as it is, for the result.
pub fn buffer_facts(buffer: &Buffer) -> BufferFacts {
    let region = buffer.region();
    BufferFacts { bytes: region.len() as u64, page_bytes: region.page_bytes() as u64, numa_node: region.node() }
}

/// What the words about failed commands are made of.
pub fn subject(target: &Target, command: &str, bytes: u32, hugepages: bool) -> Subject {
    Subject {
        path: target.path.display().to_string(),
        command: command.into(),
        bytes,
        device: target.device.as_ref().map(|device| (device.major, device.minor)),
        size_hint: segments_hint(target, u64::from(bytes), hugepages).unwrap_or_default(),
    }
}

/// What to say if a passthrough command within the device's transfer limit is refused all the same. Whether it will be
/// isn't known before: pages that happen to be neighbours are one segment.
fn segments_hint(target: &Target, bytes: u64, hugepages: bool) -> Option<String> {
    let limit = target.device.as_ref()?.max_segments?;
    let is_sg = target.kind == TargetKind::Sg;
    if !target.is_passthrough() || bytes.div_ceil(PAGE_BYTES) <= limit || (hugepages && !is_sg) {
        return None;
    }
    let segments = format!("The device takes at most {limit} segments in one command (queue/max_segments)");
    Some(if is_sg {
        format!("{segments}, and sg makes one of every 32k (its module parameter scatter_elem_sz). Use a smaller --bs")
    } else {
        let sure = format_size(limit * PAGE_BYTES);
        format!("{segments}, and every page of 4k may be one: {sure} are sure to fit. --hugepages makes fewer")
    })
}

/// Sets up an AIO context for as many requests as the buffer has pieces.
///
/// # Errors
/// [`Error::Unavailable`] with what fs.aio-max-nr allows, and what is used of it.
pub fn aio_queue(sysfs: &Sysfs, target: &Target, buffer: Buffer, write: bool) -> Result<aio::Queue> {
    let requests = buffer.pieces();
    aio::Queue::new(requests, target.file()?, buffer, write).map_err(|source| aio_error(sysfs, requests, source))
}

/// Which of the ways to be without AIO this is.
fn aio_error(sysfs: &Sysfs, requests: u32, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EAGAIN) => {
            let number = |name| sysfs.read_word(&format!("/proc/sys/fs/{name}")).unwrap_or_else(|| "unknown".into());
            let (used, allowed) = (number("aio-nr"), number("aio-max-nr"));
            Error::Unavailable {
                what: format!(
                    "io_setup: needed {requests} AIO requests, {used} are used, {allowed} are allowed \
                     (fs.aio-max-nr)"
                ),
                remedy: "Raise it (`sysctl fs.aio-max-nr=1048576`), or use a smaller --qd".into(),
            }
        }
        Some(libc::EPERM | libc::ENOSYS) if is_filtered(sysfs) => Error::Unavailable {
            what: format!("io_setup: {source}: a seccomp filter on this process forbids AIO"),
            remedy: "Run without it, or use --engine io-uring or psync".into(),
        },
        Some(libc::ENOSYS) => Error::Unavailable {
            what: format!("io_setup: {source}: this kernel has no AIO (CONFIG_AIO)"),
            remedy: "Use --engine io-uring or psync".into(),
        },
        _ => Error::call("AIO context", "io_setup", source, ""),
    }
}

/// Sets up a ring.
///
/// # Errors
/// [`Error::Unavailable`] where io_uring is disabled, forbidden or missing, told apart.
pub fn ring<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    sysfs: &Sysfs,
    target: &Target,
    options: UringOptions,
    depth: u32,
    buffer: Option<Buffer>,
) -> Result<Ring<S, C>> {
    let sq_thread = if options.sqpoll { SqThread::On(options.sqpoll_cpu) } else { SqThread::None };
    let limit = if options.sqpoll { MAX_SQPOLL_DEPTH } else { MAX_DEPTH };
    if depth > limit {
        let (object, what) = ("io_uring".into(), "depth (entries of a ring)");
        let remedy = "Use a smaller --qd, or more --jobs".into();
        return Err(Error::Limit { object, what, value: depth.into(), limit: limit.into(), remedy });
    }
    let setup = Setup { iopoll: options.iopoll, sq_thread, registered: !options.unregistered, depth };
    Ring::new(setup, target.file()?, buffer).map_err(|(call, source)| ring_error(sysfs, call, source, options))
}

/// Whether a ring can be had at all.
///
/// # Errors
/// As [`ring`].
pub fn ring_support(sysfs: &Sysfs) -> Result<()> {
    crate::sys::uring::probe().map_err(|source| ring_error(sysfs, "io_uring_setup", source, UringOptions::default()))
}

/// Which of the ways to be without io_uring this is.
fn ring_error(sysfs: &Sysfs, call: &'static str, source: io::Error, options: UringOptions) -> Error {
    let unavailable = |what: String, remedy: &str| Error::Unavailable { what, remedy: remedy.into() };
    let disabled = sysfs.read_word("/proc/sys/kernel/io_uring_disabled").unwrap_or_else(|| "0".into());
    let filtered = is_filtered(sysfs);
    match (source.raw_os_error(), call) {
        (Some(libc::EPERM), "io_uring_setup") if disabled != "0" => unavailable(
            format!("io_uring_setup: {source}: kernel.io_uring_disabled is {disabled}"),
            "1 allows CAP_SYS_ADMIN and the group kernel.io_uring_group, 2 nobody: `sysctl kernel.io_uring_disabled=0`",
        ),
        (Some(libc::EPERM | libc::ENOSYS), "io_uring_setup") if filtered => unavailable(
            format!(
                "io_uring_setup: {source}: a seccomp filter on this process forbids io_uring, as container runtimes do"
            ),
            "Run outside the container, or with a profile that allows it (docker: --security-opt seccomp=unconfined)",
        ),
        (Some(libc::EPERM), "io_uring_setup") if options.sqpoll => unavailable(
            format!("io_uring_setup: {source}: --uring-sqpoll needs CAP_SYS_ADMIN or CAP_SYS_NICE on this kernel"),
            "Run as root, or leave the option out",
        ),
        (Some(libc::ENOSYS), _) => unavailable(
            format!("{call}: {source}: this kernel has no io_uring"),
            "It needs Linux 5.1, built with CONFIG_IO_URING",
        ),
        (Some(libc::EINVAL), "io_uring_setup") if options.sqpoll_cpu.is_some() => Error::Usage(format!(
            "--sqpoll-cpu {}: io_uring_setup refused the CPU (EINVAL): it does not exist, is offline, or not allowed here",
            options.sqpoll_cpu.unwrap_or(0)
        )),
        (Some(libc::EINVAL), "io_uring_setup") => unavailable(
            format!("io_uring_setup: {source}: this kernel does not know an option of the ring"),
            "NVMe passthrough (entries of 128 bytes) needs Linux 5.19, --uring-sqpoll without root 5.11",
        ),
        (Some(libc::ENOMEM), _) => unavailable(
            format!("{call}: {source}: locked memory is limited (`ulimit -l`)"),
            "Raise it (`ulimit -l unlimited`), use a smaller --qd, or --uring-unregistered",
        ),
        (Some(libc::EOPNOTSUPP), _) => {
            unavailable(format!("{call}: {source}: not for this kind of file"), "Use --uring-unregistered")
        }
        _ => Error::call("ring", call, source, ""),
    }
}

/// Whether a seccomp filter is on this process.
fn is_filtered(sysfs: &Sysfs) -> bool {
    let status = sysfs.read("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Seccomp:")).is_some_and(|mode| mode.trim() == "2")
}

/// A ring as it was set up, for the result.
pub fn ring_granted(options: UringOptions, has_buffer: bool) -> UringGranted {
    UringGranted {
        fixed_buffer: !options.unregistered && has_buffer,
        registered_file: !options.unregistered,
        iopoll: options.iopoll,
        sqpoll: options.sqpoll,
        sqpoll_cpu: options.sqpoll_cpu,
        force_async: options.force_async,
    }
}

/// Refuses polled completion where the device has no queues for it.
///
/// # Errors
/// [`Error::Unavailable`] with the way to get such queues.
pub fn require_polling(target: &Target, option: &str) -> Result<()> {
    if target.polls() {
        return Ok(());
    }
    let device = target.device.as_ref();
    let name = device.map_or("its device".into(), |device| format!("/dev/{}", device.disk));
    let how = match device.and_then(|device| device.driver.as_deref()) {
        Some("nvme") => "Load the driver with some: `modprobe -r nvme; modprobe nvme poll_queues=1`",
        Some("null_blk") => "Make the device with some: poll_queues=1 in its configfs folder, or as a module parameter",
        _ => {
            "Only drivers with poll queues have them, among them nvme (poll_queues=N), nvme-rdma and nvme-tcp (nr_poll_queues=N)"
        }
    };
    Err(Error::Unavailable {
        what: format!("{option}: {name} has no poll queues (queue/io_poll is 0)"),
        remedy: how.into(),
    })
}

/// A SCSI command, ready to be issued.
pub struct ScsiCommand<H: Header> {
    /// The passthrough.
    pub passthrough: Passthrough<H>,
    /// Its command block.
    pub cdb: Cdb,
}

/// Builds the SCSI command of a run: a transfer of `bytes`, or one without payload.
///
/// # Errors
/// [`Error::Usage`] on what is not SCSI; errors of the buffer.
pub fn scsi_command<H: Header>(
    target: &Target,
    command: Option<NoData>,
    write: bool,
    bytes: Option<u64>,
    hugepages: bool,
) -> Result<ScsiCommand<H>> {
    let file = target.file()?;
    let shown = target.path.display();
    scsi::driver_version(&file).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOTTY | libc::EINVAL | libc::EOPNOTSUPP) => Error::Usage(format!(
            "{shown}: SG_GET_VERSION_NUM: {source}: is not a SCSI device, the engine sg needs one"
        )),
        _ => {
            Error::call(shown.to_string(), "SG_GET_VERSION_NUM", source, "Needs CAP_SYS_RAWIO or the group of the node")
        }
    })?;
    let (cdb, direction, bytes) = match (command, bytes) {
        (Some(NoData::Inquiry), _) => (Cdb::inquiry(), Direction::FromDevice, Some(u64::from(INQUIRY_BYTES))),
        (Some(_), _) | (None, None) => (Cdb::test_unit_ready(), Direction::None, None),
        (None, Some(bytes)) => {
            let blocks = u32::try_from(bytes / target.block_bytes).unwrap_or(u32::MAX);
            let last = (target.capacity_bytes / target.block_bytes).saturating_sub(1);
            let direction = if write { Direction::ToDevice } else { Direction::FromDevice };
            (Cdb::transfer(write, blocks, last), direction, Some(bytes))
        }
    };
    let node = target.device.as_ref().and_then(|device| device.numa_node);
    let buffer = bytes.map(|bytes| buffer(bytes, 1, hugepages, node)).transpose()?;
    Ok(ScsiCommand { passthrough: Passthrough::new(file, buffer, direction, cdb.length(), TIMEOUT_MS), cdb })
}

/// Builds the NVMe command of a run, and says what it reaches.
///
/// # Errors
/// [`Error::Usage`] on what is no NVMe namespace, [`Error::Limit`] for more blocks than a command can have.
pub fn nvme_command(
    target: &Target,
    command: Option<NoData>,
    write: bool,
    bytes: Option<u64>,
    ioctl: bool,
) -> Result<(UringCommand, &'static str, NvmeGranted)> {
    let shown = target.path.display();
    let namespace = nvme::namespace_id(&target.file()?).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOTTY | libc::EINVAL) => Error::Usage(format!(
            "{shown}: NVME_IOCTL_ID: {source}: is not an NVMe namespace, the engine nvme-cmd needs one"
        )),
        _ => Error::call(shown.to_string(), "NVME_IOCTL_ID", source, ""),
    })?;
    let (opcode, name) = match (command, write) {
        (Some(_), _) => (Opcode::Flush, "NVMe Flush"),
        (None, false) => (Opcode::Read, "NVMe Read"),
        (None, true) => (Opcode::Write, "NVMe Write"),
    };
    let blocks = bytes.unwrap_or(0) / target.block_bytes.max(1);
    if blocks > NVME_BLOCKS {
        return Err(Error::Limit {
            object: shown.to_string(),
            what: "blocks of one NVMe command",
            value: blocks,
            limit: NVME_BLOCKS,
            remedy: format!("Its blocks are of {} bytes; NLB has 16 bits", target.block_bytes),
        });
    }
    let granted = NvmeGranted { namespace, via: if ioctl { "ioctl" } else { "io_uring" }.into() };
    Ok((UringCommand::new(opcode, namespace, blocks as u32, TIMEOUT_MS), name, granted))
}

/// The NUMA node that a buffer should be on.
pub fn node(device: Option<&BlockDevice>) -> Option<u32> {
    device.and_then(|device| device.numa_node)
}

/// The system call behind an engine that reads and writes through the block layer, for results and messages.
pub fn call_name(engine: EngineKind, write: bool) -> &'static str {
    match (engine, write) {
        (EngineKind::Psync, false) => "pread",
        (EngineKind::Psync, true) => "pwrite",
        (EngineKind::Pvsync2, false) => "preadv2",
        (EngineKind::Pvsync2, true) => "pwritev2",
        (EngineKind::Libaio, false) => "AIO pread",
        (EngineKind::Libaio, true) => "AIO pwrite",
        (_, false) => "io_uring read",
        (_, true) => "io_uring write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    fn refusal(tree: Tree, errno: i32, options: UringOptions) -> String {
        ring_error(&tree.sysfs(), "io_uring_setup", io::Error::from_raw_os_error(errno), options).to_string()
    }

    #[test]
    fn the_ways_to_be_without_aio_are_told_apart() {
        let refusal = |tree: Tree, errno| aio_error(&tree.sysfs(), 1, io::Error::from_raw_os_error(errno)).to_string();
        let filtered = || Tree::new().file("/proc/self/status", "Seccomp:\t2\n");
        assert!(refusal(filtered(), libc::EPERM).contains("seccomp filter"));
        assert!(refusal(filtered(), libc::ENOSYS).contains("seccomp filter"));
        assert!(refusal(Tree::new(), libc::ENOSYS).contains("CONFIG_AIO"));
        let full = Tree::new().file("/proc/sys/fs/aio-nr", "65530\n").file("/proc/sys/fs/aio-max-nr", "65536\n");
        assert!(refusal(full, libc::EAGAIN).contains("65530 are used, 65536 are allowed (fs.aio-max-nr)"));
    }

    #[test]
    fn the_ways_to_be_without_io_uring_are_told_apart() {
        let none = UringOptions::default();
        let disabled = || Tree::new().file("/proc/sys/kernel/io_uring_disabled", "2\n");
        assert!(refusal(disabled(), libc::EPERM, none).contains("kernel.io_uring_disabled is 2"));
        let filtered = || Tree::new().file("/proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        assert!(refusal(filtered(), libc::EPERM, none).contains("seccomp filter"));
        assert!(refusal(filtered(), libc::ENOSYS, none).contains("seccomp filter"));
        assert!(refusal(Tree::new(), libc::ENOSYS, none).contains("this kernel has no io_uring"));
        let sqpoll = UringOptions { sqpoll: true, ..none };
        assert!(refusal(Tree::new(), libc::EPERM, sqpoll).contains("--uring-sqpoll needs"));
        let on_cpu = UringOptions { sqpoll_cpu: Some(9), ..sqpoll };
        assert!(refusal(Tree::new(), libc::EINVAL, on_cpu).contains("--sqpoll-cpu 9"));
        assert!(refusal(Tree::new(), libc::EINVAL, none).contains("5.19"));
        assert!(refusal(Tree::new(), libc::ENOMEM, none).contains("ulimit -l"));
    }
}
