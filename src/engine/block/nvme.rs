//! `nvme-cmd`: NVMe read, write and flush by passthrough, through a ring or by the ioctl.

use std::marker::PhantomData;

use io_uring::squeue;

use super::{
    Block, Subject,
    nvme_status::NvmeStatus,
    offsets::Offsets,
    sync::failed,
    uring::{Await, HandOver},
};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{
        memory::Buffer,
        nvme::{Passthrough, UringCommand},
        uring::{Request, WideRing},
    },
};

/// Status code type of what has to do with the way to the device.
const PATH_RELATED: u8 = 3;

/// Passthrough through a ring.
pub struct ByRing<H: HandOver, A: Await> {
    ring: WideRing,
    command: UringCommand,
    request: Request<squeue::Entry128>,
    place: Place,
    subject: Subject,
    ways: PhantomData<(H, A)>,
}

/// Where the command goes.
struct Place {
    offsets: Offsets,
    offset: u64,
    block_shift: u32,
}

impl Place {
    /// The next one, as a block address.
    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.offset = self.offsets.draw();
        self.offset >> self.block_shift
    }
}

impl<H: HandOver, A: Await> ByRing<H, A> {
    /// The engine on a ring that is set up; blocks are of `block_bytes`, a power of two.
    pub fn new(ring: WideRing, command: UringCommand, offsets: Offsets, block_bytes: u64, subject: Subject) -> Self {
        let request = ring.command(command);
        let place = Place { offsets, offset: 0, block_shift: block_bytes.trailing_zeros() };
        Self { ring, command, request, place, subject, ways: PhantomData }
    }
}

impl<H: HandOver, A: Await> Engine for ByRing<H, A> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.command.set_lba(self.place.next());
        self.request = self.ring.command(self.command);
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        H::submit(&mut self.ring, &self.request).map_err(Fault::Submit)
    }

    #[inline(always)]
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
        if let Some(completion) = A::reap(&mut self.ring).map_err(Fault::Poll)? {
            match completion.result() {
                0 => done.complete(),
                status if status > 0 => return Err(Fault::Completion { status: status as u32, vendor: 0 }),
                errno => return Err(Fault::Failed(-errno)),
            }
        }
        Ok(())
    }

    fn explain(&self, fault: Fault) -> String {
        explain(&self.subject, self.place.offset, fault)
    }

    fn fault_name(&self, fault: Fault) -> String {
        fault_name(fault)
    }
}

impl<H: HandOver, A: Await> Block for ByRing<H, A> {
    fn buffer(&self) -> Option<&Buffer> {
        self.ring.buffer()
    }
    fn offset(&self) -> u64 {
        self.place.offset
    }
}

/// Passthrough by the ioctl.
pub struct ByIoctl {
    passthrough: Passthrough,
    place: Place,
    subject: Subject,
}

impl ByIoctl {
    /// The engine on an open namespace; blocks are of `block_bytes`, a power of two.
    pub fn new(passthrough: Passthrough, offsets: Offsets, block_bytes: u64, subject: Subject) -> Self {
        let place = Place { offsets, offset: 0, block_shift: block_bytes.trailing_zeros() };
        Self { passthrough, place, subject }
    }
}

impl Engine for ByIoctl {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.passthrough.set_lba(self.place.next());
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        match self.passthrough.execute().map_err(failed)? {
            0 => Ok(()),
            status => Err(Fault::Completion { status: u32::from(status), vendor: 0 }),
        }
    }

    #[inline(always)]
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault> {
        done.complete();
        Ok(())
    }

    fn explain(&self, fault: Fault) -> String {
        explain(&self.subject, self.place.offset, fault)
    }

    fn fault_name(&self, fault: Fault) -> String {
        fault_name(fault)
    }
}

impl Block for ByIoctl {
    fn buffer(&self) -> Option<&Buffer> {
        self.passthrough.buffer()
    }
    fn offset(&self) -> u64 {
        self.place.offset
    }
}

fn explain(subject: &Subject, offset: u64, fault: Fault) -> String {
    match fault {
        Fault::Completion { status, .. } => {
            let status = NvmeStatus(status as u16);
            let command = format!("{} of {} bytes", subject.command, subject.bytes);
            let hint = status.hint().map_or_else(String::new, |hint| format!(". {hint}"));
            // Where there was no path to the device, it is the host that says so.
            subject.sentence(offset, &command, &format!("{status}{hint}"), status.code_type() != PATH_RELATED)
        }
        other => subject.explain(offset, other),
    }
}

fn fault_name(fault: Fault) -> String {
    match fault {
        Fault::Completion { status, .. } => match NvmeStatus(status as u16).name() {
            Some(name) => name.to_lowercase().replace(' ', "_"),
            None => format!("nvme_status_{status:#x}"),
        },
        other => other.name(),
    }
}
