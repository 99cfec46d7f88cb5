//! Linux AIO by its raw system calls, and the completion ring that the kernel maps into the process.
//!
//! The ring's layout is the kernel's `struct aio_ring` (fs/aio.c), which fio and others read as well. Where it is another
//! one, [`Queue::reap_ring`] must not be used; [`Queue::has_ring`] tells.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use libc::{c_long, c_ulong, timespec};
use nix::errno::Errno;

use super::memory::Buffer;

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const RING_MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb` of include/uapi/linux/aio_abi.h, little endian.
#[derive(Debug, Default)]
#[repr(C)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    request_priority: i16,
    descriptor: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_descriptor: u32,
}

/// `struct io_event`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Event {
    data: u64,
    request: u64,
    result: i64,
    result2: i64,
}

/// Most events that one call reaps.
const EVENTS: u32 = 16;

/// The head of `struct aio_ring`; the events follow it.
#[repr(C)]
struct Ring {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible_features: u32,
    incompatible_features: u32,
    header_bytes: u32,
}

/// An AIO context on one file and one buffer. A request belongs to a slot, whose piece of the buffer it moves. The kernel
/// copies requests when they are submitted, so that one serves all slots.
#[derive(Debug)]
pub struct Queue {
    context: c_ulong,
    request: Box<Iocb>,
    events: Box<[Event; EVENTS as usize]>,
    // Dropped after the context, which waits for what is in flight.
    _file: File,
    buffer: Buffer,
}

impl Queue {
    /// Sets up a context for `events` requests, and the request.
    ///
    /// # Errors
    /// The errno of `io_setup`: EAGAIN when fs.aio-max-nr is exhausted, ENOSYS where the kernel has no AIO.
    pub fn new(events: u32, file: File, buffer: Buffer, write: bool) -> io::Result<Self> {
        let mut context: c_ulong = 0;
        // SAFETY: the context is a live word that must be zero beforehand, and is.
        if unsafe { libc::syscall(libc::SYS_io_setup, c_long::from(events), &mut context) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let request = Box::new(Iocb {
            opcode: if write { IOCB_CMD_PWRITE } else { IOCB_CMD_PREAD },
            descriptor: file.as_raw_fd() as u32, // An open descriptor is not negative.
            buffer: buffer.pointer() as u64,
            bytes: u64::from(buffer.bytes()),
            ..Iocb::default()
        });
        let events = Box::new([Event::default(); EVENTS as usize]);
        Ok(Self { context, request, events, _file: file, buffer })
    }

    /// The memory that requests move.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Makes the next request one of a slot, which begins at `offset`, in bytes.
    #[inline(always)]
    pub fn set(&mut self, slot: u32, offset: u64) {
        self.request.data = slot.into();
        self.request.buffer = self.buffer.piece(slot) as u64;
        self.request.offset = offset as i64;
    }

    /// Memory that the completion ring takes for each of `depth` requests, in bytes.
    pub fn slot_bytes(&self, depth: u32) -> usize {
        // SAFETY: as in `has_ring`.
        let entries = if self.has_ring() { unsafe { (*self.ring()).entries } } else { 0 };
        entries as usize * size_of::<Event>() / depth.max(1) as usize
    }

    /// `io_submit(2)` of the request.
    ///
    /// # Errors
    /// The errno.
    #[inline(always)]
    pub fn submit(&mut self) -> Result<(), i32> {
        let mut list: *mut Iocb = &mut *self.request;
        // SAFETY: the list of one lives until the call returns; the request is copied by the kernel; file and buffer live
        // as long as the context, whose destruction waits for them.
        let submitted = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1 as c_long, &mut list) };
        if submitted == 1 { Ok(()) } else { Err(Errno::last_raw()) }
    }

    /// Whether completions can be read from the ring in user space.
    pub fn has_ring(&self) -> bool {
        let ring = self.ring();
        // SAFETY: the context is the address of the mapping that io_setup made, at least a page long, until io_destroy.
        unsafe {
            (*ring).magic == RING_MAGIC
                && (*ring).incompatible_features == 0
                && (*ring).header_bytes as usize == size_of::<Ring>()
                && (*ring).entries != 0
        }
    }

    /// One look into the ring; the slot of a request that has completed, and its result: bytes or a negative errno.
    #[inline(always)]
    pub fn reap_ring(&mut self) -> Option<(u32, i64)> {
        let ring = self.ring();
        // SAFETY: the mapping lives as long as the context, and has this layout, as `has_ring` found. Only this thread moves
        // the head, so it may be read relaxed; the tail is read before the event, and the head released after it.
        unsafe {
            let head = (*ring).head.load(Ordering::Relaxed);
            if head == (*ring).tail.load(Ordering::Acquire) {
                return None;
            }
            let event = ring.add(1).cast::<Event>().add(head as usize).read();
            let next = if head + 1 == (*ring).entries { 0 } else { head + 1 };
            (*ring).head.store(next, Ordering::Release);
            Some((event.data as u32, event.result)) // The number of a slot, as given at submission.
        }
    }

    /// `io_getevents(2)`: waits for a completion, or until a signal comes; tells slots and results, `most` at most.
    ///
    /// # Errors
    /// The errno, but for EINTR.
    #[inline(always)]
    pub fn wait(&mut self, most: u32, told: impl FnMut(u32, i64)) -> Result<(), i32> {
        self.get_events(1, most, ptr::null(), told)
    }

    /// One look by `io_getevents(2)`, for kernels whose ring is unknown.
    ///
    /// # Errors
    /// As [`Queue::wait`].
    #[inline(always)]
    pub fn look(&mut self, most: u32, told: impl FnMut(u32, i64)) -> Result<(), i32> {
        self.get_events(0, most, &timespec { tv_sec: 0, tv_nsec: 0 }, told)
    }

    #[inline(always)]
    fn get_events(
        &mut self,
        least: c_long,
        most: u32,
        timeout: *const timespec,
        mut told: impl FnMut(u32, i64),
    ) -> Result<(), i32> {
        let most = most.min(EVENTS);
        let events = self.events.as_mut_ptr();
        // SAFETY: there is room for the events that are asked for; the timeout is null or lives until the call returns.
        let got =
            unsafe { libc::syscall(libc::SYS_io_getevents, self.context, least, c_long::from(most), events, timeout) };
        match usize::try_from(got) {
            Ok(got) => {
                self.events.iter().take(got).for_each(|event| told(event.data as u32, event.result));
                Ok(())
            }
            Err(_) if Errno::last_raw() == libc::EINTR => Ok(()),
            Err(_) => Err(Errno::last_raw()),
        }
    }

    #[inline(always)]
    fn ring(&self) -> *const Ring {
        self.context as *const Ring
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the context was made by io_setup and is destroyed once. The call waits for what is in flight.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{file::pwrite, memory::Pages};

    #[test]
    fn the_abi_has_the_sizes_of_the_kernels_headers() {
        assert_eq!((size_of::<Iocb>(), size_of::<Event>(), size_of::<Ring>()), (64, 32, 32));
    }

    #[test]
    fn a_request_completes_in_the_ring_and_by_the_system_call() {
        let file = tempfile::tempfile().unwrap();
        let buffer = Buffer::new(512, Pages::Normal, None).unwrap();
        assert_eq!(pwrite(&file, &buffer, 0), Ok(512));
        let mut queue = Queue::new(1, file, buffer, false).unwrap();
        assert!(queue.has_ring());
        assert_eq!(queue.reap_ring(), None);
        let mut results = Vec::new();
        // More often than the ring has entries, so that it wraps.
        for round in 0..1000 {
            queue.set(0, 256 * (round % 2));
            queue.submit().unwrap();
            while results.is_empty() {
                match round % 3 {
                    0 => queue.wait(1, |slot, result| results.push((slot, result))).unwrap(),
                    1 => queue.look(1, |slot, result| results.push((slot, result))).unwrap(),
                    _ => results.extend(queue.reap_ring()),
                }
            }
            assert_eq!(std::mem::take(&mut results), [(0, 512 - 256 * (round % 2) as i64)]);
        }
    }

    #[test]
    fn a_context_of_no_events_is_refused() {
        let buffer = Buffer::new(512, Pages::Normal, None).unwrap();
        let error = Queue::new(0, tempfile::tempfile().unwrap(), buffer, false).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
