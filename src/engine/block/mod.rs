//! Block engines: one command each on a file, a block device, or the device behind a SCSI or NVMe generic node.
//!
//! Callers open a [`target::Target`] first, which checks everything that can be known before, and give it to an engine.

pub mod aio;
pub mod checked;
mod gone;
pub mod nvme;
pub mod nvme_status;
pub mod offsets;
pub mod options;
pub mod pattern;
mod preflight;
pub mod sense;
pub mod setup;
pub mod sg;
pub mod sync;
pub mod target;
pub mod uring;

use std::io;

use super::{Engine, Fault};
use crate::{host::Sysfs, sys::memory::Buffer};

/// An engine whose commands move data from or to a place.
pub trait Block: Engine {
    /// The data of all slots; none for commands without data.
    fn buffer(&self) -> Option<&Buffer>;
    /// The place of a slot's command, in bytes from the beginning of the target.
    fn offset(&self, slot: u32) -> u64;
}

/// What the words about a failed command are made of.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The target as given.
    pub path: String,
    /// The command as the interface names it.
    pub command: String,
    /// Bytes that one command moves.
    pub bytes: u32,
    /// Number of the block device behind the target.
    pub device: Option<(u32, u32)>,
    /// Why the device may refuse a command of this size all the same; empty where nothing is known.
    pub size_hint: String,
}

impl Subject {
    /// Says what a fault of the command at `offset` means.
    pub fn explain(&self, offset: u64, fault: Fault) -> String {
        let (bytes, command) = (self.bytes, &self.command);
        let gone = self.device.is_some_and(|device| gone::goes(&Sysfs::default(), device));
        let what = match fault {
            Fault::Short(moved) => format!("moved {moved} bytes of {bytes}"),
            Fault::Submit(errno) | Fault::Poll(errno) | Fault::Failed(errno) => {
                // What a device that is gone answers has no cause but that.
                let hint = if gone { "" } else { self.hint(errno) };
                format!("{}{}{hint}", io::Error::from_raw_os_error(errno), if hint.is_empty() { "" } else { ". " })
            }
            other => other.to_string(),
        };
        self.words(offset, &format!("{command} of {bytes} bytes"), &what, gone)
    }

    /// The sentence about a failed command, and that the device is gone if it is. `answered` says that the failure is the
    /// device's own word, so that it was there at least then.
    pub fn sentence(&self, offset: u64, command: &str, what: &str, answered: bool) -> String {
        let look = if answered { gone::is_gone } else { gone::goes };
        let gone = self.device.is_some_and(|device| look(&Sysfs::default(), device));
        self.words(offset, command, what, gone)
    }

    fn words(&self, offset: u64, command: &str, what: &str, gone: bool) -> String {
        let gone = if gone { ". The device is gone" } else { "" };
        format!("{}: {command} at offset {offset}: {what}{gone}", self.path)
    }

    fn hint(&self, errno: i32) -> &str {
        match errno {
            libc::EINVAL | libc::ENOMEM if !self.size_hint.is_empty() => &self.size_hint,
            libc::EIO => "The kernel log (dmesg) may say more",
            libc::ENODATA => "The kernel's word for a medium error: these blocks can't be read",
            libc::EREMOTEIO => {
                "The device refused it, for instance because it is write-protected; dmesg has the reason"
            }
            libc::EACCES | libc::EPERM => {
                "The node was opened, but the command needs more: run as root (NVMe passthrough needs CAP_SYS_ADMIN \
                 before Linux 6.2, some SCSI commands need CAP_SYS_RAWIO)"
            }
            libc::EOPNOTSUPP => "The device or its file system does not do this, for instance polled completion",
            libc::EINVAL => "Usually the alignment, or a size that the device does not take",
            libc::ENOSPC => "The device or file system is full",
            _ => "",
        }
    }
}

/// Why a transfer that moved `moved` bytes is a fault, if it is.
#[inline(always)]
fn whole(moved: u32, bytes: u32) -> Result<(), Fault> {
    if moved == bytes { Ok(()) } else { Err(Fault::Short(moved)) }
}

/// As [`whole`], for completions that carry bytes or a negative errno.
#[inline(always)]
fn completed(result: i64, bytes: u32) -> Result<(), Fault> {
    if result == i64::from(bytes) {
        Ok(())
    } else if result < 0 {
        Err(Fault::Failed(-result as i32))
    } else {
        Err(Fault::Short(result as u32))
    }
}
