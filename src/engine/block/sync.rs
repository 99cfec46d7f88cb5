//! `psync` and `pvsync2`: one system call a command, which returns when it has completed.

use std::fs::File;

use super::{Block, Subject, offsets::Offsets, whole};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{file, memory::Buffer},
};

/// `pread` or `pwrite`.
#[derive(Debug)]
pub struct Psync<const WRITE: bool> {
    file: File,
    buffer: Buffer,
    offsets: Offsets,
    offset: u64,
    subject: Subject,
}

impl<const WRITE: bool> Psync<WRITE> {
    /// The engine on an open file.
    pub fn new(file: File, buffer: Buffer, offsets: Offsets, subject: Subject) -> Self {
        Self { file, buffer, offsets, offset: 0, subject }
    }
}

impl<const WRITE: bool> Engine for Psync<WRITE> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.offset = self.offsets.draw();
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        let moved = if WRITE {
            file::pwrite(&self.file, &self.buffer, self.offset)
        } else {
            file::pread(&self.file, &self.buffer, self.offset)
        };
        whole(moved.map_err(failed)?, self.buffer.bytes())
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        done.complete(0, Ok(()));
        Ok(())
    }

    fn explain(&self, _slot: u32, fault: Fault) -> String {
        self.subject.explain(self.offset, fault)
    }
}

impl<const WRITE: bool> Block for Psync<WRITE> {
    fn buffer(&self) -> Option<&Buffer> {
        Some(&self.buffer)
    }
    fn offset(&self, _slot: u32) -> u64 {
        self.offset
    }
}

/// `preadv2` or `pwritev2`, with polled completion where that was asked for.
#[derive(Debug)]
pub struct Pvsync2<const WRITE: bool> {
    file: File,
    buffer: Buffer,
    offsets: Offsets,
    offset: u64,
    flags: i32,
    subject: Subject,
}

impl<const WRITE: bool> Pvsync2<WRITE> {
    /// The engine on an open file.
    pub fn new(file: File, buffer: Buffer, offsets: Offsets, hipri: bool, subject: Subject) -> Self {
        let flags = if hipri { file::HIPRI } else { 0 };
        Self { file, buffer, offsets, offset: 0, flags, subject }
    }
}

impl<const WRITE: bool> Engine for Pvsync2<WRITE> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.offset = self.offsets.draw();
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        let moved = if WRITE {
            file::pwritev2(&self.file, &self.buffer, self.offset, self.flags)
        } else {
            file::preadv2(&self.file, &self.buffer, self.offset, self.flags)
        };
        whole(moved.map_err(failed)?, self.buffer.bytes())
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        done.complete(0, Ok(()));
        Ok(())
    }

    fn explain(&self, _slot: u32, fault: Fault) -> String {
        self.subject.explain(self.offset, fault)
    }
}

impl<const WRITE: bool> Block for Pvsync2<WRITE> {
    fn buffer(&self) -> Option<&Buffer> {
        Some(&self.buffer)
    }
    fn offset(&self, _slot: u32) -> u64 {
        self.offset
    }
}

/// A call that a signal ended was given up, not failed.
#[inline(always)]
pub(super) fn failed(errno: i32) -> Fault {
    if errno == libc::EINTR { Fault::Abandoned } else { Fault::Failed(errno) }
}
