//! NVMe passthrough: the command of linux/nvme_ioctl.h, for the ioctl and for io_uring.

use std::{fs::File, io, os::fd::AsRawFd};

use nix::errno::Errno;

use super::memory::Buffer;

/// `NVME_URING_CMD_IO`, `_IOWR('N', 0x80, struct nvme_uring_cmd)`.
pub(super) const URING_CMD_IO: u32 = (3 << 30) | ((size_of::<Command>() as u32) << 16) | ((b'N' as u32) << 8) | 0x80;
/// `NVME_IOCTL_IO64_CMD`, `_IOWR('N', 0x48, struct nvme_passthru_cmd64)`.
const IO64_CMD: libc::c_ulong =
    (3 << 30) | ((size_of::<Command64>() as libc::c_ulong) << 16) | ((b'N' as libc::c_ulong) << 8) | 0x48;
/// `NVME_IOCTL_ID`, `_IO('N', 0x40)`.
const ID: libc::c_ulong = ((b'N' as libc::c_ulong) << 8) | 0x40;

/// `struct nvme_uring_cmd`, which is also `struct nvme_passthru_cmd64` without its result.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    data: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    reserved2: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Command64 {
    command: Command,
    result: u64,
}

/// An I/O command without its data: where that lies is filled in by what owns it.
#[derive(Clone, Copy, Debug)]
pub struct UringCommand(Command);

/// Opcodes of the NVM command set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Flush.
    Flush = 0,
    /// Write.
    Write = 1,
    /// Read.
    Read = 2,
}

impl UringCommand {
    /// A command on a namespace, with a timeout in milliseconds. Its block address is set later.
    pub fn new(opcode: Opcode, namespace: u32, blocks: u32, timeout_ms: u32) -> Self {
        Self(Command {
            opcode: opcode as u8,
            namespace,
            cdw12: blocks.saturating_sub(1) & 0xffff, // NLB is zero-based, in the low half.
            timeout_ms,
            ..Command::default()
        })
    }

    /// Sets the first logical block.
    #[inline(always)]
    pub fn set_lba(&mut self, lba: u64) {
        self.0.cdw10 = lba as u32;
        self.0.cdw11 = (lba >> 32) as u32;
    }

    #[inline(always)]
    pub(super) fn set_buffer(&mut self, buffer: &Buffer, slot: u32) {
        self.0.data = buffer.piece(slot) as u64;
        self.0.data_bytes = buffer.bytes();
    }

    /// The bytes for an io_uring entry of 128 bytes.
    #[inline(always)]
    pub(super) fn bytes(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        // SAFETY: source and target are live and do not overlap; the structure has 72 bytes and no padding.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const self.0).cast::<u8>(), bytes.as_mut_ptr(), size_of::<Command>());
        }
        bytes
    }
}

/// A namespace, with the one command that is issued by the ioctl.
#[derive(Debug)]
pub struct Passthrough {
    command: Box<Command64>,
    file: File,
    buffer: Option<Buffer>,
}

impl Passthrough {
    /// The command on the namespace behind `file`, moving the whole buffer.
    pub fn new(file: File, buffer: Option<Buffer>, mut command: UringCommand) -> Self {
        if let Some(buffer) = &buffer {
            command.set_buffer(buffer, 0);
        }
        Self { command: Box::new(Command64 { command: command.0, result: 0 }), file, buffer }
    }

    /// The data.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }

    /// Sets the first logical block of the next command.
    #[inline(always)]
    pub fn set_lba(&mut self, lba: u64) {
        self.command.command.cdw10 = lba as u32;
        self.command.command.cdw11 = (lba >> 32) as u32;
    }

    /// Issues the command and waits for it; the result is the NVMe status, 0 for success.
    ///
    /// # Errors
    /// The errno.
    #[inline(always)]
    pub fn execute(&mut self) -> Result<u16, i32> {
        // SAFETY: the command is a live structure of the type that the ioctl's number names; its data lives in this value,
        // and the kernel is done with it when the call returns.
        let status = unsafe { libc::ioctl(self.file.as_raw_fd(), IO64_CMD, &mut *self.command as *mut Command64) };
        if status < 0 { Err(Errno::last_raw()) } else { Ok(status as u16) }
    }
}

/// The namespace id behind a node.
///
/// # Errors
/// The errno; ENOTTY is what is not an NVMe namespace.
pub fn namespace_id(file: &File) -> io::Result<u32> {
    // SAFETY: the ioctl has no argument.
    let id = unsafe { libc::ioctl(file.as_raw_fd(), ID) };
    if id < 0 { Err(io::Error::last_os_error()) } else { Ok(id as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_kernels_header() {
        assert_eq!((size_of::<Command>(), size_of::<Command64>()), (72, 80));
        assert_eq!((URING_CMD_IO, IO64_CMD, ID), (0xc048_4e80, 0xc050_4e48, 0x4e40));
    }

    #[test]
    fn blocks_are_counted_from_zero() {
        let mut command = UringCommand::new(Opcode::Read, 1, 8, 0);
        command.set_lba(0x1_2345_6789);
        assert_eq!((command.0.cdw10, command.0.cdw11, command.0.cdw12), (0x2345_6789, 1, 7));
        assert_eq!(command.bytes()[0], 2);
    }

    #[test]
    fn what_is_not_nvme_says_enotty() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(namespace_id(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
