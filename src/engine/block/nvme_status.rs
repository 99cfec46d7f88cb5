//! The outcome of an NVMe command in words.
//!
//! Names and codes are those of the NVM Express base specification 2.0 (status field definition), the
//! NVM, Key Value and Zoned Namespace command set specifications, and Linux's include/linux/nvme.h.
//!
//! Linux's passthrough (`NVME_IOCTL_IO_CMD`, `IORING_OP_URING_CMD`) returns the completion entry's status field shifted
//! right by the phase bit. Callers must not pass a negative result here: that one is an errno, and the command has no
//! status; a command that Linux gave up after its timeout ends with `EINTR` in this way. Command specific codes from
//! 0x80 mean something else for Fabrics commands (Connect and so on), which are not decoded here.

use std::fmt;

/// The status field without its phase bit: code in bits 0 to 7, type in 8 to 10, retry delay in 11 to 12, then the
/// flags "more" (bit 13) and "do not retry" (bit 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvmeStatus(pub u16);

/// Type and code together, as include/linux/nvme.h numbers them.
const TYPE_AND_CODE: u16 = 0x07ff;
/// The error log holds more about it.
const MORE: u16 = 0x2000;
/// The same command would fail again.
const DO_NOT_RETRY: u16 = 0x4000;

impl NvmeStatus {
    /// Whether the command succeeded.
    pub fn is_success(&self) -> bool {
        self.0 & TYPE_AND_CODE == 0
    }

    /// Status code: the outcome within its type.
    pub fn code(&self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// Status code type, 0 to 7.
    pub fn code_type(&self) -> u8 {
        self.0.to_le_bytes()[1] & 0x07
    }

    /// Which of the three delays that Identify Controller lists (CRDT1 to CRDT3) the controller asks for before a
    /// retry; 0 for none.
    pub fn retry_delay_index(&self) -> u8 {
        (self.0.to_le_bytes()[1] >> 3) & 0x03
    }

    /// The specification's name for the outcome, or `None` for a reserved, vendor specific or unlisted one.
    pub fn name(&self) -> Option<&'static str> {
        let wanted = self.0 & TYPE_AND_CODE;
        NAMES.iter().find(|(status, _)| *status == wanted).map(|(_, name)| *name)
    }

    /// The usual cause and its remedy, as a sentence, where one is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.0 & TYPE_AND_CODE {
            0x001 => "The controller does not support this command; `nvme id-ctrl` lists the optional ones (ONCS)",
            0x002 => {
                "Usually the transfer is larger than the controller's MDTS, the number of blocks (NLB) does not match \
                 the data length, or a flag such as FUA or a directive is not supported"
            }
            0x004 => "The controller could not reach the buffer: look for IOMMU and PCIe errors in the kernel log",
            0x00b => {
                "Usually the namespace ID is not attached to this controller, or the command does not fit the \
                 namespace's format (block size, metadata, protection information)"
            }
            0x00f => "The number of blocks (NLB) does not match the data length",
            0x014 => {
                "The data is longer than the atomic write unit; for a fused compare and write that is ACWU or NACWU"
            }
            0x020 => "Write protection is set: look at `nvme get-feature -f 0x84`",
            0x01d | 0x084 => "The device is being sanitized or formatted: wait until this is done",
            0x080 => "The offset plus the block size reaches beyond the namespace: `nvme id-ns` gives its size (NSZE)",
            0x081 => "A thin provisioned namespace has run out of space",
            0x083 => "Another host holds a reservation: look at `nvme resv-report`",
            0x181 => "The namespace is formatted with protection information that the command does not match",
            0x285 => "The data on the device is not the data that was sent to compare",
            0x282..=0x284 | 0x288 => {
                "The blocks carry other protection information than expected: they were written without it or moved"
            }
            0x287 => "The blocks were never written, or were deallocated: write them before reading",
            0x301..=0x303 => "The path is not an active one to this namespace: `nvme list-subsys` shows the states",
            0x370 => "The host lost its path to the controller: look for a reset or a lost link in the kernel log",
            0x371 => "Linux aborted the command: look for a timeout or a reset in the kernel log",
            _ => return None,
        })
    }

    fn type_name(&self) -> &'static str {
        match self.code_type() {
            0 => "generic command status",
            1 => "command specific status",
            2 => "media and data integrity error",
            3 => "path related status",
            7 => "vendor specific status",
            4 => "status of reserved type 4,",
            5 => "status of reserved type 5,",
            _ => "status of reserved type 6,",
        }
    }
}

impl fmt::Display for NvmeStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = (self.type_name(), self.code());
        match self.name() {
            Some(name) => write!(formatter, "{name} ({kind} {code:#04x})")?,
            None => write!(formatter, "{kind} {code:#04x}")?,
        }
        if self.retry_delay_index() != 0 {
            write!(formatter, ", retry after delay CRDT{}", self.retry_delay_index())?;
        }
        if self.0 & MORE != 0 {
            formatter.write_str(", more in the error log")?;
        }
        if self.0 & DO_NOT_RETRY != 0 { formatter.write_str(", do not retry") } else { Ok(()) }
    }
}

/// Type and code, and the specification's name. Not all that a controller may answer: what an I/O command can get.
const NAMES: &[(u16, &str)] = &[
    // Generic command status; 0x17 is reserved.
    (0x000, "Successful Completion"),
    (0x001, "Invalid Command Opcode"),
    (0x002, "Invalid Field in Command"),
    (0x003, "Command ID Conflict"),
    (0x004, "Data Transfer Error"),
    (0x005, "Commands Aborted due to Power Loss Notification"),
    (0x006, "Internal Error"),
    (0x007, "Command Abort Requested"),
    (0x008, "Command Aborted due to SQ Deletion"),
    (0x009, "Command Aborted due to Failed Fused Command"),
    (0x00a, "Command Aborted due to Missing Fused Command"),
    (0x00b, "Invalid Namespace or Format"),
    (0x00c, "Command Sequence Error"),
    (0x00d, "Invalid SGL Segment Descriptor"),
    (0x00e, "Invalid Number of SGL Descriptors"),
    (0x00f, "Data SGL Length Invalid"),
    (0x010, "Metadata SGL Length Invalid"),
    (0x011, "SGL Descriptor Type Invalid"),
    (0x012, "Invalid Use of Controller Memory Buffer"),
    (0x013, "PRP Offset Invalid"),
    (0x014, "Atomic Write Unit Exceeded"),
    (0x015, "Operation Denied"),
    (0x016, "SGL Offset Invalid"),
    (0x018, "Host Identifier Inconsistent Format"),
    (0x019, "Keep Alive Timer Expired"),
    (0x01a, "Keep Alive Timeout Invalid"),
    (0x01b, "Command Aborted due to Preempt and Abort"),
    (0x01c, "Sanitize Failed"),
    (0x01d, "Sanitize In Progress"),
    (0x01e, "SGL Data Block Granularity Invalid"),
    (0x01f, "Command Not Supported for Queue in CMB"),
    (0x020, "Namespace is Write Protected"),
    (0x021, "Command Interrupted"),
    (0x022, "Transient Transport Error"),
    (0x023, "Command Prohibited by Command and Feature Lockdown"),
    (0x024, "Admin Command Media Not Ready"),
    // Generic, but defined by the I/O command sets.
    (0x080, "LBA Out of Range"),
    (0x081, "Capacity Exceeded"),
    (0x082, "Namespace Not Ready"),
    (0x083, "Reservation Conflict"),
    (0x084, "Format In Progress"),
    (0x085, "Invalid Value Size"),
    (0x086, "Invalid Key Size"),
    // Command specific: NVM command set, then zoned namespaces.
    (0x180, "Conflicting Attributes"),
    (0x181, "Invalid Protection Information"),
    (0x182, "Attempted Write to Read Only Range"),
    (0x183, "Command Size Limit Exceeded"),
    (0x1b8, "Zone Boundary Error"),
    (0x1b9, "Zone Is Full"),
    (0x1ba, "Zone Is Read Only"),
    (0x1bb, "Zone Is Offline"),
    (0x1bc, "Zone Invalid Write"),
    (0x1bd, "Too Many Active Zones"),
    (0x1be, "Too Many Open Zones"),
    (0x1bf, "Invalid Zone State Transition"),
    // Media and data integrity errors.
    (0x280, "Write Fault"),
    (0x281, "Unrecovered Read Error"),
    (0x282, "End-to-end Guard Check Error"),
    (0x283, "End-to-end Application Tag Check Error"),
    (0x284, "End-to-end Reference Tag Check Error"),
    (0x285, "Compare Failure"),
    (0x286, "Access Denied"),
    (0x287, "Deallocated or Unwritten Logical Block"),
    (0x288, "End-to-end Storage Tag Check Error"),
    // Path related status.
    (0x300, "Internal Path Error"),
    (0x301, "Asymmetric Access Persistent Loss"),
    (0x302, "Asymmetric Access Inaccessible"),
    (0x303, "Asymmetric Access Transition"),
    (0x360, "Controller Pathing Error"),
    (0x370, "Host Pathing Error"),
    (0x371, "Command Aborted By Host"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lba_out_of_range_is_told_with_its_type_code_and_flag() {
        let status = NvmeStatus(0x4080);
        assert_eq!(status.to_string(), "LBA Out of Range (generic command status 0x80), do not retry");
        assert_eq!((status.code_type(), status.code()), (0, 0x80));
        assert!(status.hint().unwrap().contains("beyond the namespace"));
    }

    #[test]
    fn each_type_has_its_own_meaning_of_one_code() {
        let names = [0x0081, 0x0181, 0x0281].map(|status| NvmeStatus(status).name().unwrap());
        assert_eq!(names, ["Capacity Exceeded", "Invalid Protection Information", "Unrecovered Read Error"]);
    }

    #[test]
    fn retry_delay_and_more_are_told_and_change_no_name() {
        let text = "Namespace Not Ready (generic command status 0x82), retry after delay CRDT2, more in the error log";
        assert_eq!(NvmeStatus(0x3082).to_string(), text);
        assert_eq!(NvmeStatus(0x1882).retry_delay_index(), 3);
    }

    #[test]
    fn unlisted_codes_print_their_numbers_only() {
        assert_eq!(NvmeStatus(0x0017).to_string(), "generic command status 0x17");
        assert_eq!(NvmeStatus(0x47c1).to_string(), "vendor specific status 0xc1, do not retry");
        assert_eq!(NvmeStatus(0x0512).to_string(), "status of reserved type 5, 0x12");
        assert_eq!((NvmeStatus(0x0017).name(), NvmeStatus(0x0017).hint()), (None, None));
    }

    #[test]
    fn only_type_and_code_decide_on_success() {
        assert!(NvmeStatus(0).is_success() && NvmeStatus(0x2000).is_success());
        assert!(!NvmeStatus(0x0100).is_success());
    }

    #[test]
    fn every_status_is_listed_once_in_order() {
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn every_status_value_can_be_printed_and_hints_are_only_for_named_ones() {
        for status in (0..=u16::MAX).map(NvmeStatus) {
            assert!(!status.to_string().is_empty());
            assert!(status.hint().is_none() || status.name().is_some());
        }
    }
}
