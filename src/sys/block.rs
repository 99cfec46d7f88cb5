//! What the kernel says of a file or block device: sizes, alignment for direct access, extents.

use std::{
    ffi::CString,
    fs::File,
    io,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    },
    path::Path,
};

mod ioctl {
    nix::ioctl_read!(size_bytes, 0x12, 114, u64);
    nix::ioctl_read_bad!(logical_block_bytes, 0x1268, libc::c_int);
    nix::ioctl_readwrite!(extents, b'f', 11, super::Fiemap);
}

/// `struct fiemap` of linux/fiemap.h, with room for some extents.
#[repr(C)]
pub struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

const EXTENTS: usize = 64;
const FIEMAP_FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNWRITTEN: u32 = 0x800;

/// `struct fiemap_extent`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// Alignment that direct access to a file needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Of the memory.
    pub memory_bytes: u32,
    /// Of offset and length in the file; 0 means that the file takes no direct access.
    pub offset_bytes: u32,
}

/// Opens for reading, and for writing if asked; nothing is created or cut.
///
/// # Errors
/// The errno of `open`.
pub fn open(path: &Path, write: bool, flags: i32) -> io::Result<File> {
    File::options().read(true).write(write).custom_flags(flags | libc::O_CLOEXEC).open(path)
}

/// The size of an open block device, in bytes.
///
/// # Errors
/// The errno of the ioctl.
pub fn device_bytes(file: &File) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: the ioctl writes 64 bits, which are live.
    unsafe { ioctl::size_bytes(file.as_raw_fd(), &mut bytes) }?;
    Ok(bytes)
}

/// The logical block of an open block device, in bytes.
///
/// # Errors
/// The errno of the ioctl.
pub fn logical_block_bytes(file: &File) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the ioctl writes an int, which is live.
    unsafe { ioctl::logical_block_bytes(file.as_raw_fd(), &mut bytes) }?;
    u32::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Alignment for direct access, where the kernel (6.1 or newer) and the file system tell.
pub fn direct_alignment(path: &Path) -> Option<DirectAlignment> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the structure has integers only, for which all zeros is a value.
    let mut facts: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a live C string, and the structure is the one that the call writes.
    let result = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_DIOALIGN, &mut facts) };
    let known = result == 0 && facts.stx_mask & libc::STATX_DIOALIGN != 0;
    known.then_some(DirectAlignment { memory_bytes: facts.stx_dio_mem_align, offset_bytes: facts.stx_dio_offset_align })
}

/// Bytes from `start` on, `length` long, that hold written data: by the file system's extents, or where it has none to show,
/// as tmpfs, by its holes.
///
/// # Errors
/// The errno of FS_IOC_FIEMAP and of `lseek`.
pub fn written_bytes(file: &File, start: u64, length: u64) -> io::Result<u64> {
    by_extents(file, start, length).or_else(|_| by_holes(file, start, start.saturating_add(length)))
}

fn by_holes(file: &File, start: u64, end: u64) -> io::Result<u64> {
    let (mut at, mut written) = (start, 0);
    while at < end {
        let Some(data) = seek(file, at, libc::SEEK_DATA)? else { break };
        let hole = seek(file, data, libc::SEEK_HOLE)?.unwrap_or(end);
        written += hole.min(end).saturating_sub(data);
        at = hole.max(at + 1);
    }
    Ok(written)
}

/// Where the next data or hole is; `None` past the last one.
fn seek(file: &File, from: u64, what: libc::c_int) -> io::Result<Option<u64>> {
    // SAFETY: lseek has no preconditions; the file's position is not used otherwise.
    let found = unsafe { libc::lseek64(file.as_raw_fd(), from as i64, what) };
    match u64::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

fn by_extents(file: &File, start: u64, length: u64) -> io::Result<u64> {
    let end = start.saturating_add(length);
    let (mut at, mut written) = (start, 0);
    while at < end {
        // SAFETY: the structure has integers only, for which all zeros is a value.
        let mut map: Fiemap = unsafe { std::mem::zeroed() };
        (map.start, map.length, map.flags, map.room) = (at, end - at, FIEMAP_FLAG_SYNC, EXTENTS as u32);
        // SAFETY: the structure is live and has room for as many extents as it says.
        unsafe { ioctl::extents(file.as_raw_fd(), &mut map) }?;
        let extents = &map.extents[..(map.mapped as usize).min(EXTENTS)];
        for extent in extents {
            let (from, to) = (extent.logical.max(start), extent.logical.saturating_add(extent.length).min(end));
            if extent.flags & EXTENT_UNWRITTEN == 0 {
                written += to.saturating_sub(from);
            }
        }
        let Some(last) = extents.last() else { break };
        let next = last.logical.saturating_add(last.length);
        if last.flags & EXTENT_LAST != 0 || next <= at {
            break;
        }
        at = next;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn holes_are_not_counted_as_written() {
        for folder in [env!("CARGO_MANIFEST_DIR"), "/dev/shm"] {
            let file = tempfile::NamedTempFile::new_in(folder).unwrap();
            let file = file.as_file();
            file.set_len(1 << 20).unwrap();
            file.write_all_at(&[1; 65536], 65536).unwrap();
            assert_eq!(written_bytes(file, 0, 1 << 20).unwrap(), 65536, "{folder}");
            assert_eq!(written_bytes(file, 0, 65536).unwrap(), 0, "{folder}");
            assert_eq!(written_bytes(file, 65536 + 4096, 4096).unwrap(), 4096, "{folder}");
            assert_eq!(by_holes(file, 0, 1 << 20).unwrap(), 65536, "{folder}");
        }
    }

    #[test]
    fn what_is_no_block_device_says_so() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(device_bytes(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(logical_block_bytes(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
