//! `sg`: SCSI commands by SG_IO: READ and WRITE, and the commands without payload that isolate the transport.

use super::{
    Block, Subject,
    offsets::Offsets,
    sense::{Sense, driver_status, host_status, key_name, scsi_status},
    sync::failed,
};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{
        memory::Buffer,
        scsi::{Header, Outcome, Passthrough},
    },
};

/// Bytes that INQUIRY asks for: the part that every device has.
pub const INQUIRY_BYTES: u32 = 36;

const CHECK_CONDITION: u8 = 2;

/// A command descriptor block whose address changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cdb {
    /// READ(10) or WRITE(10).
    Ten([u8; 16]),
    /// READ(16) or WRITE(16).
    Sixteen([u8; 16]),
    /// A command without an address.
    Fixed([u8; 16], u8),
}

impl Cdb {
    /// The shortest read or write that reaches block `last` with `blocks` blocks a command.
    pub fn transfer(write: bool, blocks: u32, last: u64) -> Self {
        let mut cdb = [0; 16];
        if last <= u64::from(u32::MAX) && blocks <= u32::from(u16::MAX) {
            cdb[0] = if write { 0x2a } else { 0x28 };
            cdb[7..9].copy_from_slice(&(blocks as u16).to_be_bytes());
            Self::Ten(cdb)
        } else {
            cdb[0] = if write { 0x8a } else { 0x88 };
            cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
            Self::Sixteen(cdb)
        }
    }

    /// TEST UNIT READY.
    pub fn test_unit_ready() -> Self {
        Self::Fixed([0; 16], 6)
    }

    /// INQUIRY of [`INQUIRY_BYTES`].
    pub fn inquiry() -> Self {
        let mut cdb = [0; 16];
        cdb[0] = 0x12;
        cdb[4] = INQUIRY_BYTES as u8;
        Self::Fixed(cdb, 6)
    }

    /// Its length in bytes.
    pub fn length(self) -> u8 {
        match self {
            Self::Ten(_) => 10,
            Self::Sixteen(_) => 16,
            Self::Fixed(_, length) => length,
        }
    }

    /// Its name in the standard.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ten([0x28, ..]) => "READ(10)",
            Self::Ten(_) => "WRITE(10)",
            Self::Sixteen([0x88, ..]) => "READ(16)",
            Self::Sixteen(_) => "WRITE(16)",
            Self::Fixed([0x12, ..], _) => "INQUIRY",
            Self::Fixed(..) => "TEST UNIT READY",
        }
    }

    /// The block for the command at block `lba`.
    #[inline(always)]
    fn at(self, lba: u64) -> [u8; 16] {
        match self {
            Self::Ten(mut cdb) => {
                cdb[2..6].copy_from_slice(&(lba as u32).to_be_bytes());
                cdb
            }
            Self::Sixteen(mut cdb) => {
                cdb[2..10].copy_from_slice(&lba.to_be_bytes());
                cdb
            }
            Self::Fixed(cdb, _) => cdb,
        }
    }
}

/// One SCSI command at a time.
pub struct Sg<H: Header> {
    passthrough: Passthrough<H>,
    cdb: Cdb,
    offsets: Offsets,
    offset: u64,
    block_bytes: u64,
    subject: Subject,
}

impl<H: Header> Sg<H> {
    /// The engine on an open node whose blocks are of `block_bytes`.
    pub fn new(passthrough: Passthrough<H>, cdb: Cdb, offsets: Offsets, block_bytes: u64, subject: Subject) -> Self {
        Self { passthrough, cdb, offsets, offset: 0, block_bytes: block_bytes.max(1), subject }
    }

    /// Whether the last command's data moved without a copy in the kernel.
    pub fn moved_directly(&self) -> bool {
        self.passthrough.outcome().direct
    }

    fn outcome(&self) -> String {
        let Outcome { scsi_status: status, host_status: host, driver_status: driver, residual, .. } =
            self.passthrough.outcome();
        if status == CHECK_CONDITION
            && let Some(sense) = Sense::parse(self.passthrough.sense())
        {
            return sense.to_string();
        }
        let mut parts = Vec::new();
        if status != 0 {
            parts.push(format!("SCSI status {} ({status:#04x})", scsi_status(status)));
        }
        if host != 0 {
            parts.push(format!("host status {} ({host:#04x})", host_status(host)));
        }
        if driver != 0 {
            parts.push(format!("driver status {} ({driver:#04x})", driver_status(driver)));
        }
        if parts.is_empty() {
            parts.push(format!("moved {residual} bytes less than asked for"));
        }
        parts.join(", ")
    }
}

impl<H: Header> Engine for Sg<H> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.offset = self.offsets.draw();
        self.passthrough.set_cdb(self.cdb.at(self.offset / self.block_bytes));
        self.passthrough.clear_sense();
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        if self.passthrough.execute().map_err(failed)? {
            return Ok(());
        }
        let outcome = self.passthrough.outcome();
        Err(Fault::Completion { status: u32::from(outcome.scsi_status), vendor: u32::from(outcome.host_status) })
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        done.complete(0, Ok(()));
        Ok(())
    }

    fn explain(&self, _slot: u32, fault: Fault) -> String {
        match fault {
            Fault::Completion { .. } => {
                let command = format!("{} of {} bytes", self.cdb.name(), self.subject.bytes);
                // A host status is the word of the adapter's driver.
                let answered = self.passthrough.outcome().host_status == 0;
                self.subject.sentence(self.offset, &command, &self.outcome(), answered)
            }
            other => self.subject.explain(self.offset, other),
        }
    }

    fn fault_name(&self, fault: Fault) -> String {
        match fault {
            Fault::Completion { status: 0, vendor: 0 } => "short_transfer".into(),
            Fault::Completion { status, .. } if status == u32::from(CHECK_CONDITION) => {
                Sense::parse(self.passthrough.sense())
                    .map_or_else(|| "check_condition".into(), |sense| key_name(sense.key).replace('-', "_"))
            }
            Fault::Completion { status: 0, vendor } => format!("host_status_{vendor:#04x}"),
            Fault::Completion { status, .. } => scsi_status(status as u8).to_lowercase().replace(' ', "_"),
            other => other.name(),
        }
    }
}

impl<H: Header> Block for Sg<H> {
    fn buffer(&self) -> Option<&Buffer> {
        self.passthrough.buffer()
    }
    fn offset(&self, _slot: u32) -> u64 {
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_used_as_far_as_it_reaches() {
        assert_eq!(Cdb::transfer(false, 8, 1000).name(), "READ(10)");
        assert_eq!(Cdb::transfer(true, 65_535, u64::from(u32::MAX)).name(), "WRITE(10)");
        assert_eq!(Cdb::transfer(false, 65_536, 1000).name(), "READ(16)");
        assert_eq!(Cdb::transfer(true, 8, 1 << 32).name(), "WRITE(16)");
    }

    #[test]
    fn addresses_and_lengths_are_big_endian_where_the_standard_has_them() {
        let ten = Cdb::transfer(false, 0x0102, 0x0a0b_0c0d).at(0x0a0b_0c0d);
        assert_eq!(ten[..10], [0x28, 0, 0x0a, 0x0b, 0x0c, 0x0d, 0, 1, 2, 0]);
        let sixteen = Cdb::transfer(true, 8, 1 << 40).at(0x01_0203_0405);
        assert_eq!(sixteen, [0x8a, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 8, 0, 0]);
        assert_eq!(Cdb::inquiry().at(7)[..6], [0x12, 0, 0, 0, 36, 0]);
        assert_eq!((Cdb::test_unit_ready().at(7), Cdb::test_unit_ready().length()), ([0; 16], 6));
    }
}
