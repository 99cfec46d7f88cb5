//! What is asked of a block engine, and what it was granted.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::host::BlockDevice;

/// Direction and order of the commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rw {
    /// Reads, one behind the other.
    #[default]
    Read,
    /// Reads at random places.
    RandRead,
    /// Writes, one behind the other.
    Write,
    /// Writes at random places.
    RandWrite,
}

impl Rw {
    /// Every one, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Read, Self::RandRead, Self::Write, Self::RandWrite];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::RandRead => "randread",
            Self::Write => "write",
            Self::RandWrite => "randwrite",
        }
    }

    /// Whether it changes the target.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::RandWrite)
    }

    /// Whether places are drawn at random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite)
    }
}

/// A command without payload, which isolates the latency of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoData {
    /// SCSI TEST UNIT READY.
    TestUnitReady,
    /// SCSI INQUIRY; it brings 36 bytes, but none from the medium.
    Inquiry,
    /// NVMe Flush.
    Flush,
}

impl NoData {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::TestUnitReady => "test-unit-ready",
            Self::Inquiry => "inquiry",
            Self::Flush => "flush",
        }
    }
}

/// Choices of a block engine as asked for; null leaves the choice to the program, which reports it under `granted`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockOptions {
    /// The device node or file.
    #[serde(serialize_with = "lossy")]
    #[schemars(with = "String")]
    pub target: PathBuf,
    /// Direction and order.
    pub rw: Rw,
    /// The command without payload, instead of reads and writes.
    pub command: Option<NoData>,
    /// Where the working set begins, in bytes.
    pub offset_bytes: u64,
    /// Length of the working set in bytes; null for all up to the end.
    pub size_bytes: Option<u64>,
    /// Seed of random places and of the pattern.
    pub seed: u64,
    /// Whether the page cache is used; null where nothing was said.
    pub buffered: Option<bool>,
    /// Whether `pvsync2` asks for polled completion.
    pub hipri: bool,
    /// Choices of `io-uring`, and of `nvme-cmd` where it uses a ring.
    pub uring: UringOptions,
    /// Whether `nvme-cmd` uses the ioctl.
    pub nvme_ioctl: bool,
    /// Whether read data is checked against the pattern of `lat-probe fill`, or written data is that pattern.
    pub verify: bool,
    /// Whether a failed command is counted and the run goes on.
    pub continue_on_error: bool,
    /// The path that writes may destroy.
    #[serde(serialize_with = "lossy_or_null")]
    #[schemars(with = "Option<String>")]
    pub allow_write: Option<PathBuf>,
    /// Whether the buffer lies in 2 MiB pages.
    pub hugepages: bool,
}

/// Choices for an io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UringOptions {
    /// The kernel polls the device for completions.
    pub iopoll: bool,
    /// A kernel thread takes submissions.
    pub sqpoll: bool,
    /// Processor of that thread.
    pub sqpoll_cpu: Option<u32>,
    /// Every request goes to a worker thread.
    pub force_async: bool,
    /// Neither buffer nor file is registered.
    pub unregistered: bool,
}

/// What a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A block node.
    Block,
    /// A regular file.
    File,
    /// A SCSI generic node, /dev/sg*.
    Sg,
    /// A block SCSI generic node, /dev/bsg/*.
    Bsg,
    /// An NVMe generic node, /dev/ng*.
    NvmeGeneric,
}

/// Where a completion is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsIn {
    /// The call that issues the command sleeps until it has completed.
    SleepingCall,
    /// The call that issues the command polls the device, where it can.
    PollingCall,
    /// The program looks into a ring in its own memory.
    UserPoll,
    /// A system call polls the device.
    KernelPoll,
    /// A system call sleeps until the completion.
    KernelSleep,
}

impl WaitsIn {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::SleepingCall => "the call sleeps until completion",
            Self::PollingCall => "the call polls the device",
            Self::UserPoll => "completions polled in user space",
            Self::KernelPoll => "completions polled in the kernel",
            Self::KernelSleep => "sleeps in the kernel for completions",
        }
    }
}

/// A block path as it was set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockGranted {
    /// The target as given.
    #[serde(serialize_with = "lossy")]
    #[schemars(with = "String")]
    pub target: PathBuf,
    /// What it is.
    pub kind: TargetKind,
    /// The block device that commands reach at last, with its limits: for a file the one that its file system is on. Null
    /// where there is none.
    pub device: Option<BlockDevice>,
    /// Where the working set begins, in bytes.
    pub offset_bytes: u64,
    /// Length of the working set in bytes, in whole commands.
    pub size_bytes: u64,
    /// The unit of places and sizes, in bytes; 1 where any will do.
    pub block_bytes: u64,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// File system of a file.
    pub filesystem: Option<String>,
    /// Whether the data lies in memory: tmpfs, ramfs, a RAM disk.
    pub in_memory: bool,
    /// Bytes of the working set that were never written, so that reads of them need no device; null where it isn't known.
    pub unwritten_bytes: Option<u64>,
    /// Whether the block layer cuts a command of this size into several.
    pub split: bool,
    /// Where completions are waited for.
    pub waits_in: WaitsIn,
    /// The command as the interface names it, such as `preadv2` or `READ(10)`.
    pub command: String,
    /// The ring of an engine that has one.
    pub uring: Option<UringGranted>,
    /// SCSI passthrough.
    pub sg: Option<SgGranted>,
    /// NVMe passthrough.
    pub nvme: Option<NvmeGranted>,
}

/// A ring as it was set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UringGranted {
    /// Whether the buffer is registered.
    pub fixed_buffer: bool,
    /// Whether the file is registered.
    pub registered_file: bool,
    /// Whether the kernel polls the device.
    pub iopoll: bool,
    /// Whether a kernel thread takes submissions.
    pub sqpoll: bool,
    /// The processor that it was bound to, if one was asked for.
    pub sqpoll_cpu: Option<u32>,
    /// Whether every request goes to a worker.
    pub force_async: bool,
}

/// SCSI passthrough as it was set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SgGranted {
    /// Version of SG_IO: 3 or 4.
    pub version: u32,
    /// Whether data moves without a copy in the kernel; null where nobody tells, and for commands without data.
    pub direct_io: Option<bool>,
}

/// NVMe passthrough as it was set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NvmeGranted {
    /// Namespace id.
    pub namespace: u32,
    /// How commands are passed.
    #[schemars(extend("enum" = ["io_uring", "ioctl"]))]
    pub via: String,
}

/// A path as text. Not every path is UTF-8, which JSON must be; a finished measurement is not lost over its name.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// As [`lossy`].
fn lossy_or_null<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => lossy(path, serializer),
        None => serializer.serialize_none(),
    }
}
