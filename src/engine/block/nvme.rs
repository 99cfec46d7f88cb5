//! `nvme-cmd`: NVMe read, write and flush by passthrough, through a ring or by the ioctl.

use std::marker::PhantomData;

use io_uring::{cqueue, squeue};

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

/// Where commands go.
struct Place {
    offsets: Offsets,
    /// The command of each slot.
    offset: Box<[u64]>,
    block_shift: u32,
}

impl Place {
    fn new(offsets: Offsets, depth: u32, block_bytes: u64) -> Self {
        let offset = vec![0; depth as usize].into_boxed_slice();
        Self { offsets, offset, block_shift: block_bytes.trailing_zeros() }
    }

    /// The next one, as a block address.
    #[inline(always)]
    fn next(&mut self, slot: u32) -> u64 {
        let offset = self.offsets.draw();
        self.offset[slot as usize] = offset;
        offset >> self.block_shift
    }
}

impl<H: HandOver, A: Await> ByRing<H, A> {
    /// The engine on a ring that is set up; blocks are of `block_bytes`, a power of two.
    pub fn new(ring: WideRing, command: UringCommand, offsets: Offsets, block_bytes: u64, subject: Subject) -> Self {
        let request = ring.command(command, 0);
        let place = Place::new(offsets, ring.depth(), block_bytes);
        Self { ring, command, request, place, subject, ways: PhantomData }
    }
}

impl<H: HandOver, A: Await> Engine for ByRing<H, A> {
    #[inline(always)]
    fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
        self.command.set_lba(self.place.next(slot));
        self.request = self.ring.command(self.command, slot);
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        H::submit(&mut self.ring, &self.request).map_err(Fault::Submit)
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        let told = |slot, completion: cqueue::Entry32| done.complete(slot, outcome(completion.result()));
        A::reap(&mut self.ring, D::MOST, told).map_err(Fault::Poll)
    }

    fn slot_bytes(&self) -> usize {
        size_of::<u64>() + self.ring.slot_bytes()
    }

    fn explain(&self, slot: u32, fault: Fault) -> String {
        explain(&self.subject, self.place.offset[slot as usize], fault)
    }

    fn fault_name(&self, fault: Fault) -> String {
        fault_name(fault)
    }
}

impl<H: HandOver, A: Await> Block for ByRing<H, A> {
    fn buffer(&self) -> Option<&Buffer> {
        self.ring.buffer()
    }
    fn offset(&self, slot: u32) -> u64 {
        self.place.offset[slot as usize]
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
        let place = Place::new(offsets, 1, block_bytes);
        Self { passthrough, place, subject }
    }
}

impl Engine for ByIoctl {
    #[inline(always)]
    fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
        self.passthrough.set_lba(self.place.next(slot));
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
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        done.complete(0, Ok(()));
        Ok(())
    }

    fn explain(&self, slot: u32, fault: Fault) -> String {
        explain(&self.subject, self.place.offset[slot as usize], fault)
    }

    fn fault_name(&self, fault: Fault) -> String {
        fault_name(fault)
    }
}

impl Block for ByIoctl {
    fn buffer(&self) -> Option<&Buffer> {
        self.passthrough.buffer()
    }
    fn offset(&self, slot: u32) -> u64 {
        self.place.offset[slot as usize]
    }
}

/// What the result of a passthrough completion says.
#[inline(always)]
fn outcome(result: i32) -> Result<(), Fault> {
    match result {
        0 => Ok(()),
        status if status > 0 => Err(Fault::Completion { status: status as u32, vendor: 0 }),
        errno => Err(Fault::Failed(-errno)),
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
