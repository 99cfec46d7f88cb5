//! io_uring rings that own the file and the buffer their requests move, so that a request can outlive neither. A request
//! belongs to a slot, whose piece of the buffer it moves and whose number its completion carries.
//!
//! The calls are the crate's raw `enter`: its `submit_and_wait` asks for the ring's mode at every call.

use std::{fs::File, io, os::fd::AsRawFd};

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::{memory::Buffer, nvme};

const GETEVENTS: u32 = 1;
const SQ_WAKEUP: u32 = 2;

/// Whether submissions are handed over by a system call or to a kernel thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqThread {
    /// By `io_uring_enter`.
    None,
    /// To a kernel thread, on a processor of its own if one is named (`IORING_SETUP_SQPOLL`, `_SQ_AFF`).
    On(Option<u32>),
}

/// How a ring is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// `IORING_SETUP_IOPOLL`.
    pub iopoll: bool,
    /// Submission by a kernel thread.
    pub sq_thread: SqThread,
    /// Whether buffer and file are registered.
    pub registered: bool,
    /// Requests that may be outstanding.
    pub depth: u32,
}

/// Most requests that a ring can have outstanding: the kernel's IORING_MAX_CQ_ENTRIES.
pub const MAX_DEPTH: u32 = 65_536;

/// Most requests that can wait for the kernel's submission thread: the kernel's IORING_MAX_ENTRIES.
pub const MAX_SQPOLL_DEPTH: u32 = 32_768;

/// Most bytes of one registered buffer, a limit of the kernel.
const REGISTERED_BYTES: usize = 1 << 30;

/// How long the kernel's submission thread spins for work before it sleeps, in milliseconds: longer than anything that the
/// loop does between two commands.
const SQ_IDLE_MS: u32 = 2000;

/// A request that a ring has built for its own file and buffer.
#[derive(Clone, Debug)]
pub struct Request<S>(S);

/// A ring with one file and one buffer.
pub struct Ring<S: squeue::EntryMarker, C: cqueue::EntryMarker> {
    // First, so that it is closed before what its requests use is released.
    ring: IoUring<S, C>,
    file: File,
    buffer: Option<Buffer>,
    registered: bool,
    depth: u32,
    /// Pieces of the buffer in each registered part of it.
    pieces_per_part: u32,
}

/// Sets up a ring and closes it again.
///
/// # Errors
/// The errno of io_uring_setup.
pub fn probe() -> io::Result<()> {
    IoUring::new(1).map(drop)
}

/// A ring for reads and writes.
pub type PlainRing = Ring<squeue::Entry, cqueue::Entry>;

/// A ring for NVMe passthrough, whose entries are twice as large.
pub type WideRing = Ring<squeue::Entry128, cqueue::Entry32>;

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Ring<S, C> {
    /// Sets up a ring, with a buffer of a piece for each request.
    ///
    /// # Errors
    /// The call that failed, and its errno.
    pub fn new(setup: Setup, file: File, buffer: Option<Buffer>) -> Result<Self, (&'static str, io::Error)> {
        let mut builder = IoUring::<S, C>::builder();
        if setup.iopoll {
            builder.setup_iopoll();
        }
        if let SqThread::On(cpu) = setup.sq_thread {
            builder.setup_sqpoll(SQ_IDLE_MS);
            if let Some(cpu) = cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
        }
        // Requests are handed over one by one: only the kernel's thread lets them queue up.
        let entries = if setup.sq_thread == SqThread::None { 1 } else { setup.depth };
        if setup.depth > entries {
            builder.setup_cqsize(setup.depth);
        }
        let ring = builder.build(entries).map_err(|source| ("io_uring_setup", source))?;
        let registered = setup.registered;
        let mut pieces_per_part = setup.depth.max(1);
        if registered {
            if let Some(buffer) = &buffer {
                let stride = buffer.place(1).max(buffer.bytes() as usize).max(1);
                pieces_per_part = u32::try_from(REGISTERED_BYTES / stride).unwrap_or(u32::MAX).max(1);
                let parts = parts(buffer, pieces_per_part);
                // SAFETY: the buffer is mapped and lives until after the ring is closed.
                unsafe { ring.submitter().register_buffers(&parts) }
                    .map_err(|source| ("io_uring_register(buffers)", source))?;
            }
            let files = [file.as_raw_fd()];
            ring.submitter().register_files(&files).map_err(|source| ("io_uring_register(files)", source))?;
        }
        Ok(Self { ring, file, buffer, registered, depth: setup.depth, pieces_per_part })
    }

    /// Requests that may be outstanding.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Memory that the rings take for each request, in bytes.
    pub fn slot_bytes(&self) -> usize {
        let parameters = self.ring.params();
        let submissions = parameters.sq_entries() as usize * (size_of::<S>() + size_of::<u32>());
        (submissions + parameters.cq_entries() as usize * size_of::<C>()) / self.depth.max(1) as usize
    }

    /// Index of the registered part that a slot's piece lies in.
    #[inline(always)]
    fn part(&self, slot: u32) -> u16 {
        // There are no more parts than that: the buffer would be 64 TiB.
        (slot / self.pieces_per_part) as u16
    }

    #[inline(always)]
    fn piece(&self, slot: u32) -> (*mut u8, u32) {
        self.buffer.as_ref().map_or((std::ptr::null_mut(), 0), |buffer| (buffer.piece(slot), buffer.bytes()))
    }

    /// The memory that requests move.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }

    /// Puts a request into the ring and tells the kernel by `io_uring_enter(2)`.
    ///
    /// # Errors
    /// The errno.
    #[inline(always)]
    pub fn enter(&mut self, request: &Request<S>) -> Result<(), i32> {
        self.push(request)?;
        // SAFETY: no argument is given.
        match unsafe { self.ring.submitter().enter::<libc::sigset_t>(1, 0, 0, None) } {
            Ok(1) => Ok(()),
            Ok(_) => Err(libc::EAGAIN),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Puts a request into the ring for the kernel's thread, and wakes that if it sleeps.
    ///
    /// # Errors
    /// The errno.
    #[inline(always)]
    pub fn publish(&mut self, request: &Request<S>) -> Result<(), i32> {
        self.push(request)?;
        if !self.ring.submission().need_wakeup() {
            return Ok(());
        }
        // SAFETY: no argument is given.
        match unsafe { self.ring.submitter().enter::<libc::sigset_t>(1, 0, SQ_WAKEUP, None) } {
            Ok(_) => Ok(()),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    #[inline(always)]
    fn push(&mut self, request: &Request<S>) -> Result<(), i32> {
        // SAFETY: requests are built by this module alone, for the file and buffer of a ring, which live until it is closed.
        unsafe { self.ring.submission().push(&request.0) }.map_err(|_| libc::EBUSY)
    }

    /// `io_uring_enter(2)` until a completion is there, which on a ring with IOPOLL polls the device; also returns when a
    /// signal comes.
    ///
    /// # Errors
    /// The errno, but for EINTR.
    #[inline(always)]
    pub fn wait(&mut self) -> Result<(), i32> {
        // SAFETY: no argument is given.
        match unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 1, GETEVENTS, None) } {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Ring<S, C> {
    /// One look into the completion ring: tells slots and completions, `most` at most; whether there were any.
    #[inline(always)]
    pub fn reap(&mut self, most: u32, mut told: impl FnMut(u32, C)) -> bool {
        let mut any = false;
        // The end of the ring moves when the iterator goes, once for all of them.
        for completion in self.ring.completion().take(most as usize) {
            any = true;
            told(completion.user_data() as u32, completion); // The number of a slot, as given at submission.
        }
        any
    }
}

/// A buffer in the parts that are registered, each of whole pieces.
fn parts(buffer: &Buffer, pieces_per_part: u32) -> Vec<libc::iovec> {
    let end = |first: u32| {
        let last = first.saturating_add(pieces_per_part - 1).min(buffer.pieces() - 1);
        buffer.place(last) + buffer.bytes() as usize
    };
    let part = |first| libc::iovec { iov_base: buffer.piece(first).cast(), iov_len: end(first) - buffer.place(first) };
    (0..buffer.pieces()).step_by(pieces_per_part as usize).map(part).collect()
}

impl PlainRing {
    /// A read or write of a slot's whole piece at `offset`. Without a buffer it moves nothing.
    #[inline(always)]
    pub fn transfer(&self, write: bool, force_async: bool, offset: u64, slot: u32) -> Request<squeue::Entry> {
        let (pointer, bytes) = self.piece(slot);
        let (fixed, part) = (types::Fixed(0), self.part(slot));
        let plain = types::Fd(self.file.as_raw_fd());
        let entry = match (write, self.registered) {
            (false, true) => opcode::ReadFixed::new(fixed, pointer, bytes, part).offset(offset).build(),
            (true, true) => opcode::WriteFixed::new(fixed, pointer, bytes, part).offset(offset).build(),
            (false, false) => opcode::Read::new(plain, pointer, bytes).offset(offset).build(),
            (true, false) => opcode::Write::new(plain, pointer, bytes).offset(offset).build(),
        };
        let entry = entry.user_data(slot.into());
        Request(if force_async { entry.flags(squeue::Flags::ASYNC) } else { entry })
    }
}

impl WideRing {
    /// An NVMe command that moves a slot's whole piece, or nothing without a buffer.
    #[inline(always)]
    pub fn command(&self, mut command: nvme::UringCommand, slot: u32) -> Request<squeue::Entry128> {
        if let Some(buffer) = &self.buffer {
            command.set_buffer(buffer, slot);
        }
        let index = (self.registered && self.buffer.is_some()).then_some(self.part(slot));
        let entry = if self.registered {
            opcode::UringCmd80::new(types::Fixed(0), nvme::URING_CMD_IO).buf_index(index).cmd(command.bytes()).build()
        } else {
            opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), nvme::URING_CMD_IO).cmd(command.bytes()).build()
        };
        Request(entry.user_data(slot.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{file::pwrite, memory::Pages};

    #[test]
    fn requests_complete_on_plain_and_registered_rings_by_a_call_or_a_thread() {
        for (registered, sq_thread) in [(false, SqThread::None), (true, SqThread::None), (true, SqThread::On(None))] {
            let file = tempfile::tempfile().unwrap();
            let buffer = Buffer::new(512, Pages::Normal, None).unwrap();
            assert_eq!(pwrite(&file, &buffer, 0), Ok(512));
            let setup = Setup { iopoll: false, sq_thread, registered, depth: 1 };
            let mut ring = match PlainRing::new(setup, file, Some(buffer)) {
                Ok(ring) => ring,
                Err((call, error)) => {
                    eprintln!("skipped: {call}: {error}");
                    return;
                }
            };
            for offset in [0, 256] {
                let request = ring.transfer(false, offset == 0, offset, 0);
                match sq_thread {
                    SqThread::None => ring.enter(&request).unwrap(),
                    SqThread::On(_) => ring.publish(&request).unwrap(),
                }
                let mut completed = None;
                while completed.is_none() {
                    ring.wait().unwrap();
                    ring.reap(1, |slot, completion: cqueue::Entry| completed = Some((slot, completion.result())));
                }
                assert_eq!(completed, Some((0, 512 - offset as i32)));
            }
        }
    }
}
