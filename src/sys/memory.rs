//! Data buffers: anonymous memory, resident before it is used, on the wanted NUMA node and in the wanted pages.
//!
//! A device may write to the buffer at any time, so no Rust reference to its bytes is ever handed out: bytes are copied
//! in and out, and single ones are read as volatile.

use std::{io, num::NonZeroUsize, os::raw::c_ulong, ptr::NonNull};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The size of pages that a buffer lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The system's own page size.
    Normal,
    /// 2 MiB pages from the pool of /proc/sys/vm/nr_hugepages.
    Huge,
}

/// Bytes of a huge page as asked for by [`Pages::Huge`].
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// An anonymous mapping, zeroed and resident.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    mapped: usize,
    pages: Pages,
}

// SAFETY: the mapping belongs to this value alone and is only accessed by copies; it may move between threads.
unsafe impl Send for Region {}
// SAFETY: shared access only copies bytes that devices may change at any time anyway; torn bytes are what verification is
// for, and nothing else is derived from them.
unsafe impl Sync for Region {}

impl Region {
    /// Maps at least `bytes` (at least one page), prefers memory of NUMA node `node`, and touches every page.
    ///
    /// # Errors
    /// The errno of `mmap`; ENOMEM for [`Pages::Huge`] means that the pool has too few free pages.
    pub fn new(bytes: usize, pages: Pages, node: Option<u32>) -> io::Result<Self> {
        let unit = match pages {
            Pages::Normal => page_bytes(),
            Pages::Huge => HUGE_PAGE_BYTES,
        };
        let mapped =
            bytes.max(1).checked_next_multiple_of(unit).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let huge = match pages {
            Pages::Normal => MapFlags::empty(),
            Pages::Huge => MapFlags::MAP_HUGETLB | MapFlags::from_bits_retain(21 << libc::MAP_HUGE_SHIFT),
        };
        let length = NonZeroUsize::new(mapped).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe {
            mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE | huge)
        }?;
        let region = Self { start: start.cast(), mapped, pages };
        if let Some(node) = node {
            region.prefer_node(node);
        }
        // SAFETY: the mapping is `mapped` bytes long and writable; writing makes every page resident.
        unsafe { std::ptr::write_bytes(region.start.as_ptr(), 0, mapped) };
        Ok(region)
    }

    /// Asks for pages of `node`. Where the kernel refuses, first touch decides, and the node reported tells the truth.
    fn prefer_node(&self, node: u32) {
        const MPOL_PREFERRED: c_ulong = 1;
        let mask = [1 as c_ulong].map(|one| one.checked_shl(node).unwrap_or(0));
        // SAFETY: the range is this mapping; the mask is a live array of 64 bits (the count is one more by the kernel's
        // custom).
        unsafe {
            libc::syscall(libc::SYS_mbind, self.start.as_ptr(), self.mapped, MPOL_PREFERRED, mask.as_ptr(), 65, 0)
        };
    }

    /// The NUMA node that holds the first page, where the kernel tells.
    pub fn node(&self) -> Option<u32> {
        const MPOL_F_NODE_ADDR: c_ulong = 3;
        let mut node: libc::c_int = -1;
        // SAFETY: `node` is a live int that the kernel writes; no mask is asked for; the address lies in this mapping.
        let result = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &mut node,
                std::ptr::null::<c_ulong>(),
                0,
                self.start.as_ptr(),
                MPOL_F_NODE_ADDR,
            )
        };
        if result == 0 { u32::try_from(node).ok() } else { None }
    }

    /// Size of the pages it lies in, in bytes.
    pub fn page_bytes(&self) -> usize {
        match self.pages {
            Pages::Normal => page_bytes(),
            Pages::Huge => HUGE_PAGE_BYTES,
        }
    }

    /// Mapped bytes: the size asked for, rounded up to whole pages.
    pub fn len(&self) -> usize {
        self.mapped
    }

    /// Never: a mapping has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Address of the first byte, for handing it to a device.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Copies `bytes` to `offset`. What does not fit is a programming error and is cut off.
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let length = bytes.len().min(self.mapped.saturating_sub(offset));
        // SAFETY: `offset + length` lies within the mapping, as computed; source and mapping cannot overlap, since no
        // slice of the mapping exists.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset.min(self.mapped)), length)
        };
    }

    /// Copies bytes from `offset` into `bytes`, as many as there are.
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        let length = bytes.len().min(self.mapped.saturating_sub(offset));
        // SAFETY: as in `copy_in`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr().add(offset.min(self.mapped)), bytes.as_mut_ptr(), length)
        };
    }

    /// A place in the buffer of which single bytes are read and written while a device may do the same.
    pub fn cell(&self, offset: usize) -> ByteCell {
        let offset = offset.min(self.mapped - 1);
        // SAFETY: the offset lies within the mapping.
        ByteCell { place: unsafe { self.start.add(offset) } }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length and is unmapped once. Failure would leave it mapped,
        // which does no harm.
        let _ = unsafe { munmap(self.start.cast(), self.mapped) };
    }
}

/// A region in equal pieces, one for each outstanding command, with the number of bytes that a command moves to or from the
/// beginning of its piece: what system calls may be given.
#[derive(Debug)]
pub struct Buffer {
    region: Region,
    bytes: u32,
    stride: usize,
    pieces: u32,
}

/// Pieces begin at multiples of this: what direct access needs at most of the memory's place on devices in use.
const PIECE_ALIGNMENT: usize = 512;

impl Buffer {
    /// Maps a buffer for commands of `bytes`; see [`Region::new`].
    ///
    /// # Errors
    /// As [`Region::new`].
    pub fn new(bytes: u32, pages: Pages, node: Option<u32>) -> io::Result<Self> {
        Self::in_pieces(bytes, 1, pages, node)
    }

    /// As [`Buffer::new`], for `pieces` commands at once; at least one.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub fn in_pieces(bytes: u32, pieces: u32, pages: Pages, node: Option<u32>) -> io::Result<Self> {
        let (stride, pieces) = ((bytes as usize).next_multiple_of(PIECE_ALIGNMENT), pieces.max(1));
        let whole = stride.checked_mul(pieces as usize - 1).and_then(|others| others.checked_add(bytes as usize));
        let whole = whole.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { region: Region::new(whole, pages, node)?, bytes, stride, pieces })
    }

    /// Bytes that one command moves; never more than are mapped.
    #[inline(always)]
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Commands that can move data at once.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Where the piece of a slot begins in the region; slots that there are no pieces for share the first one.
    #[inline(always)]
    pub fn place(&self, slot: u32) -> usize {
        if slot < self.pieces { self.stride * slot as usize } else { 0 }
    }

    /// The first byte, for the kernel.
    #[inline(always)]
    pub(super) fn pointer(&self) -> *mut u8 {
        self.region.start.as_ptr()
    }

    /// The first byte of the piece of a slot, for the kernel.
    #[inline(always)]
    pub(super) fn piece(&self, slot: u32) -> *mut u8 {
        // SAFETY: every piece begins within the mapping, which `in_pieces` made that long.
        unsafe { self.region.start.as_ptr().add(self.place(slot)) }
    }

    /// The memory itself.
    pub fn region(&self) -> &Region {
        &self.region
    }
}

/// One byte of a [`Region`] that a device or another thread may change. Its holder keeps the region alive.
#[derive(Clone, Copy, Debug)]
pub struct ByteCell {
    place: NonNull<u8>,
}

// SAFETY: accesses are volatile single bytes, which cannot tear.
unsafe impl Send for ByteCell {}

impl ByteCell {
    /// Reads the byte as it is in memory now; nothing after it is read earlier.
    #[inline(always)]
    pub fn load(&self) -> u8 {
        // SAFETY: the place lies in a live region (the holder's duty). On the architectures in use a plain byte load
        // followed by an acquire fence is how memory that a device writes is watched.
        let byte = unsafe { self.place.as_ptr().read_volatile() };
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        byte
    }

    /// Writes the byte; everything before it is written earlier.
    #[inline(always)]
    pub fn store(&self, byte: u8) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        // SAFETY: as in `load`.
        unsafe { self.place.as_ptr().write_volatile(byte) };
    }
}

/// The system's page size in bytes.
pub fn page_bytes() -> usize {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_copied_in_come_out_again_and_the_rest_is_zero() {
        let region = Region::new(10, Pages::Normal, None).unwrap();
        assert_eq!(region.len(), page_bytes());
        region.copy_in(3, b"lat");
        let mut bytes = [9; 8];
        region.copy_out(1, &mut bytes);
        assert_eq!(&bytes, b"\0\0lat\0\0\0");
        region.cell(3).store(7);
        assert_eq!(region.cell(3).load(), 7);
    }

    #[test]
    fn pieces_lie_one_behind_the_other_and_within_the_mapping() {
        let buffer = Buffer::in_pieces(700, 9, Pages::Normal, None).unwrap();
        assert_eq!((buffer.pieces(), buffer.place(0), buffer.place(8), buffer.place(9)), (9, 0, 8 * 1024, 0));
        assert!(buffer.place(8) + buffer.bytes() as usize <= buffer.region().len());
        assert!(Buffer::in_pieces(u32::MAX, u32::MAX, Pages::Normal, None).is_err());
    }

    #[test]
    fn copies_past_the_end_are_cut_off() {
        let region = Region::new(1, Pages::Normal, Some(0)).unwrap();
        region.copy_in(region.len() - 1, b"ab");
        region.copy_in(usize::MAX, b"ab");
        let mut bytes = [0; 4];
        region.copy_out(region.len() - 1, &mut bytes);
        assert_eq!(&bytes, b"a\0\0\0");
    }

    #[test]
    fn a_size_beyond_the_address_space_is_an_error() {
        assert!(Region::new(usize::MAX, Pages::Normal, None).is_err());
        assert!(Region::new(1 << 46, Pages::Normal, None).is_err());
    }
}
