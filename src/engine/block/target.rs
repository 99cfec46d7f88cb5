//! A target: what it is, whether it may be touched, and what it offers. Everything here happens before the first command.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use super::{
    options::{BlockGranted, BlockOptions, TargetKind, WaitsIn},
    preflight::{Extent, within_transfer_limit, working_set},
};
use crate::{
    engine::EngineKind,
    error::{Error, Result},
    host::{
        BlockDevice, Filesystem, Sysfs,
        block::{of_bsg, of_nvme_generic, of_sg},
        in_use,
    },
    sys::block,
};

/// A target that is open and has passed every check.
#[derive(Debug)]
pub struct Target {
    /// As given.
    pub path: PathBuf,
    /// What it is.
    pub kind: TargetKind,
    /// The block device behind it.
    pub device: Option<BlockDevice>,
    /// All of it, in bytes.
    pub capacity_bytes: u64,
    /// Where the working set begins.
    pub offset_bytes: u64,
    /// Length of the working set, in whole commands.
    pub size_bytes: u64,
    /// The unit of places and sizes.
    pub block_bytes: u64,
    file: File,
    direct: bool,
    /// Whether commands reach the driver as they are, past the block layer.
    passthrough: bool,
    filesystem: Option<Filesystem>,
    /// Held for as long as writes may happen: nobody can mount what is claimed.
    _claim: Option<File>,
}

impl Target {
    /// Opens the target of `options` for commands of `bs_bytes` (none for commands without data). `claimed` says that another
    /// job of this process has claimed it for writing already, and holds it.
    ///
    /// # Errors
    /// Every refusal that can be known beforehand, with the limit and the value.
    pub fn open(
        sysfs: &Sysfs,
        options: &BlockOptions,
        engine: EngineKind,
        bs_bytes: Option<u64>,
        claimed: bool,
    ) -> Result<Self> {
        let path = &options.target;
        let metadata = std::fs::metadata(path).map_err(|source| open_error(path, "stat", source, None))?;
        let (kind, device) = classify(sysfs, path, &metadata)?;
        accept(engine, options, kind, path, device.as_ref())?;
        let writes = options.rw.writes() && options.command.is_none();
        let claim = if writes && !claimed { claim(sysfs, options, kind, device.as_ref())? } else { None };
        let direct = match (kind, options.buffered) {
            (TargetKind::File, None) => {
                return Err(Error::Usage(format!(
                    "{}: is a file: say --direct to pass by the page cache, or --buffered to measure it",
                    path.display()
                )));
            }
            (TargetKind::File | TargetKind::Block, buffered) => buffered != Some(true),
            _ => true,
        };
        let through_cache = matches!(kind, TargetKind::File | TargetKind::Block);
        let flags = match (through_cache, direct) {
            (true, true) => libc::O_DIRECT,
            (true, false) => 0,
            (false, _) => libc::O_NONBLOCK, // Never wait for somebody else's exclusive use of a generic node.
        };
        let file = block::open(path, writes, flags)
            .map_err(|source| open_error(path, "open", source, Some((&metadata, writes))))?;
        let filesystem = if kind == TargetKind::File { Filesystem::of(path) } else { None };
        let mut target = Self {
            path: path.clone(),
            kind,
            device,
            capacity_bytes: 0,
            offset_bytes: 0,
            size_bytes: 0,
            block_bytes: 1,
            file,
            direct,
            // SG_IO and the NVMe ioctl do the same on a block node.
            passthrough: matches!(engine, EngineKind::Sg | EngineKind::NvmeCmd),
            filesystem,
            _claim: claim,
        };
        if let Some(bs_bytes) = bs_bytes {
            target.measure(&metadata)?;
            target.check(options, bs_bytes)?;
        }
        Ok(target)
    }

    /// The block device behind a path, if there is one, before anything is opened.
    pub fn device_behind(sysfs: &Sysfs, path: &Path) -> Option<BlockDevice> {
        classify(sysfs, path, &std::fs::metadata(path).ok()?).ok()?.1
    }

    /// Makes sure that the target of `options` may be written to.
    ///
    /// # Errors
    /// Says who uses it, or what is missing.
    pub fn check_writable(sysfs: &Sysfs, options: &BlockOptions) -> Result<()> {
        let metadata =
            std::fs::metadata(&options.target).map_err(|source| open_error(&options.target, "stat", source, None))?;
        let (kind, device) = classify(sysfs, &options.target, &metadata)?;
        claim(sysfs, options, kind, device.as_ref()).map(drop)
    }

    /// Finds out the size, and the unit of access.
    fn measure(&mut self, metadata: &Metadata) -> Result<()> {
        let call = |call, source| Error::call(self.path.display().to_string(), call, source, "");
        match self.kind {
            TargetKind::File => {
                self.capacity_bytes = metadata.len();
                if self.direct {
                    self.block_bytes = self.direct_unit()?;
                }
            }
            TargetKind::Block => {
                self.capacity_bytes = block::device_bytes(&self.file).map_err(|source| call("BLKGETSIZE64", source))?;
                if self.direct {
                    let bytes = block::logical_block_bytes(&self.file).map_err(|source| call("BLKSSZGET", source))?;
                    self.block_bytes = u64::from(bytes.max(1));
                }
            }
            TargetKind::Sg | TargetKind::Bsg | TargetKind::NvmeGeneric => {
                let Some(device) = &self.device else {
                    return Err(Error::Usage(format!(
                        "{}: no disk is behind this node, so its size and block length are unknown. Only --command works",
                        self.path.display()
                    )));
                };
                (self.capacity_bytes, self.block_bytes) = (device.size_bytes, device.logical_block_bytes.max(1));
            }
        }
        Ok(())
    }

    /// The unit of direct access to a file: as the file system tells, otherwise the logical block of its device.
    fn direct_unit(&self) -> Result<u64> {
        let of_device = self.device.as_ref().map(|device| device.logical_block_bytes);
        match block::direct_alignment(&self.path) {
            Some(alignment) if alignment.offset_bytes == 0 => Err(Error::Usage(format!(
                "{}: {} takes no direct access to this file. Use --buffered",
                self.path.display(),
                self.filesystem.as_ref().map_or("its file system", |filesystem| &filesystem.name)
            ))),
            Some(alignment) => Ok(u64::from(alignment.offset_bytes)),
            None => Ok(of_device.unwrap_or(512)),
        }
    }

    /// Fits the working set in, and holds the size of a command against the limits.
    fn check(&mut self, options: &BlockOptions, bs_bytes: u64) -> Result<()> {
        let name = self.path.display().to_string();
        let extent = Extent {
            name: &name,
            bytes: self.capacity_bytes,
            block_bytes: self.block_bytes,
            is_file: self.kind == TargetKind::File,
        };
        (self.offset_bytes, self.size_bytes) = working_set(extent, options.offset_bytes, options.size_bytes, bs_bytes)?;
        if self.passthrough {
            let limit = self.device.as_ref().and_then(|device| device.max_hw_transfer_bytes);
            within_transfer_limit(&name, bs_bytes, limit)?;
        }
        Ok(())
    }

    /// Whether commands reach the driver as they are, past the block layer.
    pub fn is_passthrough(&self) -> bool {
        self.passthrough
    }

    /// The open file, for an engine.
    ///
    /// # Errors
    /// The errno of `dup`.
    pub fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|source| Error::call(self.path.display().to_string(), "dup", source, ""))
    }

    /// Whether the kernel polls the device for completions, where it is asked to.
    pub fn polls(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.poll_queues)
    }

    /// What was granted, for the result.
    pub fn granted(
        &self,
        options: &BlockOptions,
        bs_bytes: Option<u64>,
        waits_in: WaitsIn,
        command: &str,
    ) -> BlockGranted {
        let by_block_layer = self.direct && !self.passthrough;
        let split = match (&self.device, bs_bytes) {
            (Some(device), Some(bytes)) if by_block_layer => is_split(device, bytes, options.hugepages),
            _ => false,
        };
        let unwritten_bytes = if self.kind == TargetKind::File && bs_bytes.is_some() {
            let written = block::written_bytes(&self.file, self.offset_bytes, self.size_bytes);
            written.ok().map(|written| self.size_bytes.saturating_sub(written))
        } else {
            None
        };
        let in_memory = self.filesystem.as_ref().is_some_and(|filesystem| filesystem.in_memory)
            || self.device.as_ref().is_some_and(|device| device.memory_backed);
        BlockGranted {
            target: self.path.clone(),
            kind: self.kind,
            device: self.device.clone(),
            offset_bytes: self.offset_bytes,
            size_bytes: self.size_bytes,
            block_bytes: self.block_bytes,
            direct: self.direct,
            filesystem: self.filesystem.as_ref().map(|filesystem| filesystem.name.clone()),
            in_memory,
            unwritten_bytes,
            split,
            waits_in,
            command: command.into(),
            uring: None,
            sg: None,
            nvme: None,
        }
    }
}

/// Whether the block layer may cut a command. Pages of a buffer need not be neighbours, so each may be a segment.
fn is_split(device: &BlockDevice, bytes: u64, hugepages: bool) -> bool {
    let by_size = device.max_transfer_bytes.is_some_and(|limit| bytes > limit);
    let by_segments = !hugepages && device.max_segments.is_some_and(|limit| bytes.div_ceil(4096) > limit);
    by_size || by_segments
}

/// What a path names, and the block device behind it.
fn classify(sysfs: &Sysfs, path: &Path, metadata: &Metadata) -> Result<(TargetKind, Option<BlockDevice>)> {
    let number = |device| (nix::sys::stat::major(device) as u32, nix::sys::stat::minor(device) as u32);
    let kind = metadata.file_type();
    if kind.is_block_device() {
        let (major, minor) = number(metadata.rdev());
        return Ok((TargetKind::Block, BlockDevice::by_number(sysfs, major, minor)));
    }
    if kind.is_file() {
        let (major, minor) = number(metadata.dev());
        return Ok((TargetKind::File, BlockDevice::by_number(sysfs, major, minor)));
    }
    if !kind.is_char_device() {
        return Err(Error::Usage(format!(
            "{}: is neither a file nor a device. --target takes a file, a block device, /dev/sg*, /dev/bsg/* or /dev/ng*",
            path.display()
        )));
    }
    let (major, minor) = number(metadata.rdev());
    let name = sysfs.link_name(&format!("/sys/dev/char/{major}:{minor}")).unwrap_or_default();
    let exists = |class: &str| !name.is_empty() && sysfs.exists(&format!("/sys/class/{class}/{name}"));
    let (kind, disk) = if exists("scsi_generic") {
        (TargetKind::Sg, of_sg(sysfs, &name)?)
    } else if exists("bsg") {
        (TargetKind::Bsg, of_bsg(sysfs, &name)?)
    } else if exists("nvme-generic") {
        (TargetKind::NvmeGeneric, of_nvme_generic(sysfs, &name))
    } else {
        return Err(Error::Usage(format!(
            "{}: is a character device, but neither SCSI (/dev/sg*, /dev/bsg/*) nor an NVMe namespace (/dev/ng*)",
            path.display()
        )));
    };
    Ok((kind, disk.and_then(|disk| BlockDevice::by_name(sysfs, &disk))))
}

/// Refuses targets that the engine cannot use, and says what it can.
fn accept(
    engine: EngineKind,
    options: &BlockOptions,
    kind: TargetKind,
    path: &Path,
    device: Option<&BlockDevice>,
) -> Result<()> {
    let path = path.display();
    let accepted = match engine {
        EngineKind::Sg => matches!(kind, TargetKind::Sg | TargetKind::Bsg | TargetKind::Block),
        EngineKind::NvmeCmd if options.nvme_ioctl => matches!(kind, TargetKind::NvmeGeneric | TargetKind::Block),
        EngineKind::NvmeCmd => kind == TargetKind::NvmeGeneric,
        _ => matches!(kind, TargetKind::File | TargetKind::Block),
    };
    if accepted {
        return Ok(());
    }
    let remedy = match (engine, kind) {
        (EngineKind::Sg, _) => {
            "sg sends SCSI commands: it takes /dev/sg*, /dev/bsg/*, or the block node of a SCSI disk".into()
        }
        (EngineKind::NvmeCmd, TargetKind::Block) => {
            let generic =
                device.and_then(|device| device.name.strip_prefix("nvme")).map(|rest| format!("/dev/ng{rest}"));
            format!(
                "io_uring passthrough needs the generic node{}; --nvme-ioctl works on the block node",
                generic.map(|name| format!(", {name}")).unwrap_or_default()
            )
        }
        (EngineKind::NvmeCmd, _) => "nvme-cmd sends NVMe commands: it takes /dev/ng*".into(),
        (_, _) => match device {
            Some(device) => format!("{engine} reads and writes through the block layer: use /dev/{}", device.name),
            None => format!("{engine} takes files and block devices"),
        },
    };
    Err(Error::Usage(format!("{path}: is no target for the engine {engine}. {remedy}")))
}

/// Makes sure that writes were allowed and hurt nobody, and claims the device against mounts for as long as the result
/// lives.
///
/// # Errors
/// Says who uses the target, or what is missing.
fn claim(
    sysfs: &Sysfs,
    options: &BlockOptions,
    kind: TargetKind,
    device: Option<&BlockDevice>,
) -> Result<Option<File>> {
    let path = &options.target;
    let shown = path.display();
    match &options.allow_write {
        Some(allowed) if allowed.as_os_str() == path.as_os_str() => {}
        Some(allowed) => {
            return Err(Error::Usage(format!(
                "--allow-write names {}, but the target is {shown}: both must be the same text",
                allowed.display()
            )));
        }
        None => {
            return Err(Error::Usage(format!(
                "writing would destroy the data on {shown}. --allow-write {shown} says that it may"
            )));
        }
    }
    let in_use = |by: String| Err(Error::Usage(format!("{shown}: writes are refused, it is in use: {by}")));
    if kind == TargetKind::File {
        let canonical = path.canonicalize().map_err(|source| open_error(path, "realpath", source, None))?;
        let users = in_use::file_users(sysfs, &canonical);
        return if users.is_empty() { Ok(None) } else { in_use(users.join("; ")) };
    }
    let Some(device) = device else {
        return Err(Error::Usage(format!(
            "{shown}: writes are refused: no block device is known behind it, so nobody can tell who uses it"
        )));
    };
    let users = in_use::users(sysfs, device);
    if !users.is_empty() {
        return in_use(users.join("; "));
    }
    if device.read_only {
        return Err(Error::Usage(format!("{shown}: the device is read-only (/sys/class/block/{}/ro)", device.name)));
    }
    let node =
        if kind == TargetKind::Block { path.clone() } else { Path::new("/dev").join(device.name.replace('!', "/")) };
    match block::open(&node, false, libc::O_EXCL | libc::O_NONBLOCK) {
        Ok(claim) => Ok(Some(claim)),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            in_use(format!("{} is held exclusively (open with O_EXCL says EBUSY)", node.display()))
        }
        Err(source) => {
            Err(Error::call(node.display().to_string(), "open(O_EXCL)", source, "It must be claimed before writing"))
        }
    }
}

/// What `open` and its like say, with the usual cause; `asked` is what was to be opened, and whether for writing.
fn open_error(path: &Path, call: &'static str, source: io::Error, asked: Option<(&Metadata, bool)>) -> Error {
    let hint = match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => permission_hint(asked),
        Some(libc::ENOENT) => "`lsblk` lists block devices, `ls /dev/sg* /dev/ng*` generic nodes".into(),
        Some(libc::EINVAL) => "Its file system does not take direct access; use --buffered".into(),
        Some(libc::EROFS) => "The device or its file system is read-only".into(),
        Some(libc::EBUSY) => "Somebody else has it for himself".into(),
        Some(libc::ENXIO | libc::ENODEV) => "No driver is behind this node".into(),
        Some(libc::ENOMEDIUM) => "There is no medium in the device".into(),
        _ => String::new(),
    };
    Error::call(path.display().to_string(), call, source, hint)
}

/// Who may open it: root, or the group that owns the node, where its mode lets that group in.
fn permission_hint(asked: Option<(&Metadata, bool)>) -> String {
    let Some((metadata, writes)) = asked else { return "Needs search permission on its folder".into() };
    let (mode, needed) = (metadata.mode() & 0o7777, if writes { 0o060 } else { 0o040 });
    let or = if mode & needed == needed {
        let group = group_name(metadata.gid()).unwrap_or_else(|| metadata.gid().to_string());
        format!("membership of the group `{group}`")
    } else {
        "another mode (`chmod`)".into()
    };
    format!("Needs root (CAP_DAC_OVERRIDE) or {or}: its mode is {mode:04o}")
}

fn group_name(gid: u32) -> Option<String> {
    let groups = Sysfs::default().read("/etc/group")?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_string())
    })
}
