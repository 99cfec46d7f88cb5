//! Positional reads and writes of one buffer: the system call and its result, nothing else.
//!
//! The result is the number of bytes moved, or an errno. A short transfer is not an error here; callers compare.

use std::{fs::File, os::fd::AsRawFd};

use libc::{c_int, c_void, iovec, off64_t};
use nix::errno::Errno;

use super::memory::Buffer;

/// Asks for polled completion (`RWF_HIPRI`).
pub const HIPRI: c_int = libc::RWF_HIPRI;

/// `pread(2)`.
///
/// # Errors
/// The errno.
#[inline(always)]
pub fn pread(file: &File, buffer: &Buffer, offset: u64) -> Result<u32, i32> {
    // SAFETY: the buffer is mapped for at least `bytes`, writable, and lives until the call returns.
    outcome(unsafe {
        libc::pread64(file.as_raw_fd(), buffer.pointer().cast::<c_void>(), buffer.bytes() as usize, offset as off64_t)
    })
}

/// `pwrite(2)`.
///
/// # Errors
/// The errno.
#[inline(always)]
pub fn pwrite(file: &File, buffer: &Buffer, offset: u64) -> Result<u32, i32> {
    // SAFETY: the buffer is mapped for at least `bytes` and lives until the call returns.
    outcome(unsafe {
        libc::pwrite64(file.as_raw_fd(), buffer.pointer().cast::<c_void>(), buffer.bytes() as usize, offset as off64_t)
    })
}

/// `preadv2(2)` with one vector.
///
/// # Errors
/// The errno.
#[inline(always)]
pub fn preadv2(file: &File, buffer: &Buffer, offset: u64, flags: c_int) -> Result<u32, i32> {
    let vector = vector(buffer);
    // SAFETY: as in `pread`; the one vector lives on the stack until the call returns.
    outcome(unsafe { libc::preadv2(file.as_raw_fd(), &vector, 1, offset as off64_t, flags) })
}

/// `pwritev2(2)` with one vector.
///
/// # Errors
/// The errno.
#[inline(always)]
pub fn pwritev2(file: &File, buffer: &Buffer, offset: u64, flags: c_int) -> Result<u32, i32> {
    let vector = vector(buffer);
    // SAFETY: as in `pwrite`; the one vector lives on the stack until the call returns.
    outcome(unsafe { libc::pwritev2(file.as_raw_fd(), &vector, 1, offset as off64_t, flags) })
}

#[inline(always)]
fn vector(buffer: &Buffer) -> iovec {
    iovec { iov_base: buffer.pointer().cast(), iov_len: buffer.bytes() as usize }
}

#[inline(always)]
fn outcome(moved: isize) -> Result<u32, i32> {
    // A transfer never exceeds the buffer, whose size is 32 bits wide.
    u32::try_from(moved).map_err(|_| Errno::last_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::Pages;

    #[test]
    fn what_is_written_is_read_again_and_the_end_of_the_file_is_short() {
        let file = tempfile::tempfile().unwrap();
        let buffer = Buffer::new(8, Pages::Normal, None).unwrap();
        buffer.region().copy_in(0, b"abcdefgh");
        assert_eq!((pwrite(&file, &buffer, 0), pwritev2(&file, &buffer, 8, 0)), (Ok(8), Ok(8)));
        buffer.region().copy_in(0, &[0; 8]);
        assert_eq!((pread(&file, &buffer, 1), preadv2(&file, &buffer, 12, 0)), (Ok(8), Ok(4)));
        let mut bytes = [0; 8];
        buffer.region().copy_out(0, &mut bytes);
        assert_eq!(&bytes, b"efghfgha");
    }

    #[test]
    fn a_refused_call_is_its_errno() {
        let file = File::open("/").unwrap();
        let buffer = Buffer::new(8, Pages::Normal, None).unwrap();
        assert_eq!(pread(&file, &buffer, 0), Err(libc::EISDIR));
        assert_eq!(pwrite(&file, &buffer, 0), Err(libc::EBADF));
    }
}
