//! SCSI commands by the ioctl SG_IO, in both of its versions: 3 on /dev/sg* and on block nodes, 4 on /dev/bsg/*.
//!
//! Everything but the CDB is filled in once. The kernel writes only the output fields of the header.

use std::{fs::File, io, marker::PhantomData, os::fd::AsRawFd};

use nix::errno::Errno;

use super::memory::Buffer;

const SG_IO: libc::c_ulong = 0x2285;
const SG_FLAG_DIRECT_IO: u32 = 1;
const SG_INFO_CHECK: u32 = 1;
const SG_INFO_DIRECT_IO_MASK: u32 = 6;
const SG_INFO_DIRECT_IO: u32 = 2;

/// Longest CDB in use, in bytes.
const CDB_BYTES: usize = 16;
/// Room for sense data, in bytes.
const SENSE_BYTES: usize = 96;

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// There is none.
    None,
    /// To the initiator.
    FromDevice,
    /// To the target.
    ToDevice,
}

/// How a command ended, as the header tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// SCSI status; 2 is CHECK CONDITION.
    pub scsi_status: u8,
    /// Linux's `DID_*` code.
    pub host_status: u16,
    /// Linux's driver status.
    pub driver_status: u16,
    /// Bytes asked for less bytes moved.
    pub residual: i32,
    /// Whether the data went straight to or from the buffer, without a copy in the kernel.
    pub direct: bool,
}

/// `struct sg_io_hdr` of scsi/sg.h.
#[derive(Debug)]
#[repr(C)]
pub struct HeaderV3 {
    interface: i32,
    direction: i32,
    cdb_bytes: u8,
    sense_room: u8,
    vectors: u16,
    data_bytes: u32,
    data: u64,
    cdb: u64,
    sense: u64,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user: u64,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sense_bytes: u8,
    host_status: u16,
    driver_status: u16,
    residual: i32,
    duration_ms: u32,
    info: u32,
}

/// `struct sg_io_v4` of linux/bsg.h.
#[derive(Debug)]
#[repr(C)]
pub struct HeaderV4 {
    guard: i32,
    protocol: u32,
    subprotocol: u32,
    cdb_bytes: u32,
    cdb: u64,
    tag: u64,
    attribute: u32,
    priority: u32,
    extra: u32,
    sense_room: u32,
    sense: u64,
    out_vectors: u32,
    out_bytes: u32,
    in_vectors: u32,
    in_bytes: u32,
    out_data: u64,
    in_data: u64,
    timeout_ms: u32,
    flags: u32,
    user: u64,
    spare_in: u32,
    driver_status: u32,
    transport_status: u32,
    device_status: u32,
    retry_delay: u32,
    info: u32,
    duration_ms: u32,
    sense_bytes: u32,
    in_residual: i32,
    out_residual: i32,
    generated_tag: u64,
    spare_out: u32,
    padding: u32,
}

/// What both versions are given.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    direction: Direction,
    data: u64,
    data_bytes: u32,
    cdb: u64,
    cdb_bytes: u8,
    sense: u64,
    timeout_ms: u32,
}

/// A version of the header.
pub trait Header {
    /// The version's number.
    const VERSION: u32;
    /// A header with its inputs filled in, and everything else zero.
    fn new(fixed: Fixed) -> Self;
    /// Whether the command succeeded and moved everything.
    fn succeeded(&self) -> bool;
    /// How it ended.
    fn outcome(&self) -> Outcome;
}

impl Header for HeaderV3 {
    const VERSION: u32 = 3;

    fn new(fixed: Fixed) -> Self {
        // SAFETY: the structure has integers only, for which all zeros is a value.
        let zeroed: Self = unsafe { std::mem::zeroed() };
        Self {
            interface: i32::from(b'S'),
            direction: match fixed.direction {
                Direction::None => -1,
                Direction::ToDevice => -2,
                Direction::FromDevice => -3,
            },
            cdb_bytes: fixed.cdb_bytes,
            sense_room: SENSE_BYTES as u8,
            data_bytes: fixed.data_bytes,
            data: fixed.data,
            cdb: fixed.cdb,
            sense: fixed.sense,
            timeout_ms: fixed.timeout_ms,
            flags: SG_FLAG_DIRECT_IO,
            ..zeroed
        }
    }

    #[inline(always)]
    fn succeeded(&self) -> bool {
        self.info & SG_INFO_CHECK == 0 && self.residual == 0
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            scsi_status: self.status,
            host_status: self.host_status,
            driver_status: self.driver_status,
            residual: self.residual,
            direct: self.info & SG_INFO_DIRECT_IO_MASK == SG_INFO_DIRECT_IO,
        }
    }
}

impl Header for HeaderV4 {
    const VERSION: u32 = 4;

    fn new(fixed: Fixed) -> Self {
        // SAFETY: the structure has integers only, for which all zeros is a value.
        let mut header: Self = unsafe { std::mem::zeroed() };
        header.guard = i32::from(b'Q');
        header.cdb = fixed.cdb;
        header.cdb_bytes = u32::from(fixed.cdb_bytes);
        header.sense = fixed.sense;
        header.sense_room = SENSE_BYTES as u32;
        header.timeout_ms = fixed.timeout_ms;
        match fixed.direction {
            Direction::None => {}
            Direction::FromDevice => (header.in_data, header.in_bytes) = (fixed.data, fixed.data_bytes),
            Direction::ToDevice => (header.out_data, header.out_bytes) = (fixed.data, fixed.data_bytes),
        }
        header
    }

    #[inline(always)]
    fn succeeded(&self) -> bool {
        (self.driver_status | self.transport_status | self.device_status) == 0
            && (self.in_residual | self.out_residual) == 0
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            scsi_status: self.device_status as u8,
            host_status: self.transport_status as u16,
            driver_status: self.driver_status as u16,
            residual: self.in_residual.max(self.out_residual),
            direct: true, // bsg maps the caller's pages.
        }
    }
}

/// What the header points at, beside the data.
#[derive(Debug)]
struct Attached {
    cdb: [u8; CDB_BYTES],
    sense: [u8; SENSE_BYTES],
}

/// One SCSI command on one device, issued again and again.
#[derive(Debug)]
pub struct Passthrough<H: Header> {
    header: Box<H>,
    attached: Box<Attached>,
    file: File,
    buffer: Option<Buffer>,
    version: PhantomData<H>,
}

impl<H: Header> Passthrough<H> {
    /// A command of `cdb_bytes` (at most 16) that moves the whole buffer, with a timeout in milliseconds.
    pub fn new(file: File, buffer: Option<Buffer>, direction: Direction, cdb_bytes: u8, timeout_ms: u32) -> Self {
        let attached = Box::new(Attached { cdb: [0; CDB_BYTES], sense: [0; SENSE_BYTES] });
        let header = Box::new(H::new(Fixed {
            direction: if buffer.is_some() { direction } else { Direction::None },
            data: buffer.as_ref().map_or(0, |buffer| buffer.pointer() as u64),
            data_bytes: buffer.as_ref().map_or(0, Buffer::bytes),
            cdb: attached.cdb.as_ptr() as u64,
            cdb_bytes: cdb_bytes.min(CDB_BYTES as u8),
            sense: attached.sense.as_ptr() as u64,
            timeout_ms,
        }));
        Self { header, attached, file, buffer, version: PhantomData }
    }

    /// The data.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }

    /// Sets the command block of the next command.
    #[inline(always)]
    pub fn set_cdb(&mut self, cdb: [u8; CDB_BYTES]) {
        self.attached.cdb = cdb;
    }

    /// Issues the command and waits for it. `Ok(false)` means that it did not succeed; see [`Passthrough::outcome`].
    ///
    /// # Errors
    /// The errno; ENOTTY is what is not SCSI.
    #[inline(always)]
    pub fn execute(&mut self) -> Result<bool, i32> {
        // SAFETY: the header is a live, fully initialised structure of the version that the node takes; what it points at
        // lives in this value, and the kernel is done with it when the call returns, or, after a signal, never writes to it
        // (the driver copies through its own pages then).
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), SG_IO, &mut *self.header as *mut H) };
        if result < 0 { Err(Errno::last_raw()) } else { Ok(self.header.succeeded()) }
    }

    /// How the last command ended.
    pub fn outcome(&self) -> Outcome {
        self.header.outcome()
    }

    /// Sense data of the last command that failed.
    pub fn sense(&self) -> &[u8] {
        &self.attached.sense
    }

    /// Forgets the sense data, so that it can't be taken for a later command's.
    pub fn clear_sense(&mut self) {
        self.attached.sense = [0; SENSE_BYTES];
    }
}

/// The version of the sg driver behind a node, times 10,000, such as 30536.
///
/// # Errors
/// The errno; ENOTTY is what is not SCSI.
pub fn driver_version(file: &File) -> io::Result<i32> {
    const SG_GET_VERSION_NUM: libc::c_ulong = 0x2282;
    let mut version: libc::c_int = 0;
    // SAFETY: the ioctl writes one int, which is live.
    match unsafe { libc::ioctl(file.as_raw_fd(), SG_GET_VERSION_NUM, &mut version) } {
        0 => Ok(version),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_have_the_sizes_of_the_kernels() {
        assert_eq!((size_of::<HeaderV3>(), size_of::<HeaderV4>()), (88, 160));
    }

    #[test]
    fn what_is_not_scsi_says_enotty() {
        let mut command =
            Passthrough::<HeaderV3>::new(File::open("/dev/null").unwrap(), None, Direction::None, 6, 1000);
        assert_eq!(command.execute(), Err(libc::ENOTTY));
        assert_eq!(driver_version(&File::open("/dev/null").unwrap()).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
