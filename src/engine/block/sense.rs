//! The outcome of a SCSI command in words: sense data, the target's status, and what Linux adds to it.
//!
//! Sense keys, sense data formats and additional sense codes are those of SPC-4, status codes those of SAM-5, host codes
//! those of Linux's include/scsi/scsi_status.h, driver codes those of include/scsi/scsi.h before Linux 5.14 retired them.
//!
//! Callers must not assume that a device fills in more than the key: everything else may be absent, and then reads as
//! zero or `None`. Nothing here is called in the measuring loop.

use std::fmt;

/// Bytes before the descriptors (descriptor format), or before those that the additional length counts (fixed format).
const HEADER_BYTES: usize = 8;
/// Where both formats keep the additional length.
const ADDITIONAL_LENGTH: usize = 7;
/// Type of the descriptor that carries the information field.
const INFORMATION_DESCRIPTOR: u8 = 0x00;
/// Set in front of an information field that means something.
const VALID: u8 = 0x80;

/// What a device says about a command that did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// Sense key, 0 to 15: the kind of failure.
    pub key: u8,
    /// Additional sense code: the cause; 0 if the device gave none.
    pub asc: u8,
    /// Additional sense code qualifier: the cause more closely.
    pub ascq: u8,
    /// The information field where the device marked it valid; for most keys the first LBA in error.
    pub information: Option<u64>,
    /// The failure is one of an earlier command that had been reported as good.
    pub deferred: bool,
}

impl Sense {
    /// Reads sense data in fixed (0x70, 0x71) or descriptor format (0x72, 0x73).
    ///
    /// Pass only the bytes that were transferred (`sb_len_wr`). `None` if they hold no sense key; fields that the
    /// buffer ends before are taken as not given, as Linux's `scsi_normalize_sense` does.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let response_code = bytes.first()? & 0x7f;
        let bytes = match bytes.get(ADDITIONAL_LENGTH) {
            Some(&additional) => bytes.get(..HEADER_BYTES + usize::from(additional)).unwrap_or(bytes),
            None => bytes,
        };
        let deferred = matches!(response_code, 0x71 | 0x73);
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        match response_code {
            0x70 | 0x71 => Some(Self {
                key: bytes.get(2)? & 0x0f,
                asc: at(12),
                ascq: at(13),
                information: fixed_information(bytes),
                deferred,
            }),
            0x72 | 0x73 => Some(Self {
                key: bytes.get(1)? & 0x0f,
                asc: at(2),
                ascq: at(3),
                information: described_information(bytes),
                deferred,
            }),
            _ => None,
        }
    }

    /// The cause in words, or `None` for one that is not in the table.
    pub fn cause(&self) -> Option<&'static str> {
        match (self.asc, self.ascq) {
            (0x40, 0x80..) => Some("diagnostic failure on a component"),
            (0x4d, _) => Some("tagged overlapped commands"),
            code => CAUSES.iter().find(|(asc, ascq, _)| (*asc, *ascq) == code).map(|(_, _, words)| *words),
        }
    }

    /// Whether the information field is an LBA. For MISCOMPARE it is an offset into the data, for UNIT ATTENTION it
    /// depends on the event, and an ATA device behind a translation layer puts its registers there.
    fn informs_of_lba(&self) -> bool {
        // Recovered, medium and hardware errors, illegal request, data protect, blank check, aborted command.
        matches!(self.key, 0x1 | 0x3..=0x5 | 0x7 | 0x8 | 0xb) && (self.asc, self.ascq) != (0x00, 0x1d)
    }
}

/// Fixed format has 32 bits for it; a device with a larger number to tell leaves it invalid.
fn fixed_information(bytes: &[u8]) -> Option<u64> {
    let valid = bytes.first()? & VALID != 0;
    let field: [u8; 4] = bytes.get(3..7)?.try_into().ok()?;
    valid.then(|| u64::from(u32::from_be_bytes(field)))
}

/// Walks the descriptors, each of which says its own length, for the first information descriptor.
fn described_information(bytes: &[u8]) -> Option<u64> {
    let mut rest = bytes.get(HEADER_BYTES..)?;
    // The two bytes of type and length are always consumed, so the walk ends.
    while let [kind, length, ..] = *rest {
        if kind == INFORMATION_DESCRIPTOR {
            let valid = rest.get(2)? & VALID != 0;
            let field: [u8; 8] = rest.get(4..12)?.try_into().ok()?;
            return valid.then(|| u64::from_be_bytes(field));
        }
        rest = rest.get(2 + usize::from(length)..)?;
    }
    None
}

impl fmt::Display for Sense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, asc, ascq, information, deferred } = self;
        write!(formatter, "{} (sense key {key}): ", key_name(*key).replace('-', " ").to_uppercase())?;
        match self.cause() {
            Some(words) => write!(formatter, "{words} (asc {asc:#04x}, ascq {ascq:#04x})")?,
            None => write!(formatter, "asc {asc:#04x}, ascq {ascq:#04x}")?,
        }
        match information {
            Some(lba) if self.informs_of_lba() => write!(formatter, ", at LBA {lba}")?,
            Some(value) => write!(formatter, ", information {value}")?,
            None => {}
        }
        if *deferred { formatter.write_str("; deferred: an earlier command failed, not this one") } else { Ok(()) }
    }
}

/// The sense key as error counters name it.
pub fn key_name(key: u8) -> &'static str {
    match key {
        0x0 => "no-sense",
        0x1 => "recovered-error",
        0x2 => "not-ready",
        0x3 => "medium-error",
        0x4 => "hardware-error",
        0x5 => "illegal-request",
        0x6 => "unit-attention",
        0x7 => "data-protect",
        0x8 => "blank-check",
        0x9 => "vendor-specific",
        0xa => "copy-aborted",
        0xb => "aborted-command",
        0xd => "volume-overflow",
        0xe => "miscompare",
        0xf => "completed",
        _ => "reserved",
    }
}

/// The target's status byte as SAM-5 names it. In `sg_io_hdr` this is `status`, not the shifted `masked_status`.
pub fn scsi_status(status: u8) -> &'static str {
    match status {
        0x00 => "GOOD",
        0x02 => "CHECK CONDITION",
        0x04 => "CONDITION MET",
        0x08 => "BUSY",
        0x10 => "INTERMEDIATE",
        0x14 => "INTERMEDIATE-CONDITION MET",
        0x18 => "RESERVATION CONFLICT",
        0x22 => "COMMAND TERMINATED",
        0x28 => "TASK SET FULL",
        0x30 => "ACA ACTIVE",
        0x40 => "TASK ABORTED",
        _ => "unknown status",
    }
}

/// What the host adapter's driver or the kernel's middle layer says of the command, with Linux's name in front.
pub fn host_status(status: u16) -> &'static str {
    match status {
        0x00 => "DID_OK: no error",
        0x01 => "DID_NO_CONNECT: no connection to the device",
        0x02 => "DID_BUS_BUSY: the bus stayed busy until the timeout",
        0x03 => "DID_TIME_OUT: the command timed out",
        0x04 => "DID_BAD_TARGET: no such target",
        0x05 => "DID_ABORT: the command was aborted",
        0x06 => "DID_PARITY: parity or CRC error on the way",
        0x07 => "DID_ERROR: internal error of the host adapter or its driver",
        0x08 => "DID_RESET: a reset ended the command",
        0x09 => "DID_BAD_INTR: unexpected interrupt",
        0x0a => "DID_PASSTHROUGH: passed by the middle layer",
        0x0b => "DID_SOFT_ERROR: the driver asks for a retry",
        0x0c => "DID_IMM_RETRY: the driver asks for an immediate retry",
        0x0d => "DID_REQUEUE: the driver asks to queue the command again",
        0x0e => "DID_TRANSPORT_DISRUPTED: the link to the device was lost during the command",
        0x0f => "DID_TRANSPORT_FAILFAST: the link to the device is down, and the wait for it was given up",
        0x10 => "DID_TARGET_FAILURE: permanent failure of the target",
        0x11 => "DID_NEXUS_FAILURE: permanent failure on this path, such as a reservation of another initiator",
        0x12 => "DID_ALLOC_FAILURE: the device could not allocate space",
        0x13 => "DID_MEDIUM_ERROR: error on the medium",
        0x14 => "DID_TRANSPORT_MARGINAL: the path is marked as marginal",
        _ => "unknown host status",
    }
}

/// The driver's status; since Linux 5.14 only `DRIVER_SENSE` is left of it, which says that sense data is there.
pub fn driver_status(status: u16) -> &'static str {
    // The upper half once held a suggestion (SUGGEST_RETRY and so on), which says nothing about what happened.
    match status & 0x0f {
        0x00 => "DRIVER_OK: no error",
        0x01 => "DRIVER_BUSY: the driver was busy",
        0x02 => "DRIVER_SOFT: the driver asks for a retry",
        0x03 => "DRIVER_MEDIA: error on the medium",
        0x04 => "DRIVER_ERROR: internal error of the driver",
        0x05 => "DRIVER_INVALID: the driver refused the command",
        0x06 => "DRIVER_TIMEOUT: the command timed out",
        0x07 => "DRIVER_HARD: permanent failure",
        0x08 => "DRIVER_SENSE: sense data is available",
        _ => "unknown driver status",
    }
}

/// Additional sense codes that a disk, an array or the way to it may answer with: code, qualifier, words.
const CAUSES: &[(u8, u8, &str)] = &[
    (0x00, 0x00, "no additional sense information"),
    (0x00, 0x1d, "ATA pass-through information available"),
    (0x03, 0x00, "peripheral device write fault"),
    (0x04, 0x00, "logical unit not ready, cause not reportable"),
    (0x04, 0x01, "logical unit is becoming ready"),
    (0x04, 0x02, "logical unit not ready, initializing command required"),
    (0x04, 0x03, "logical unit not ready, manual intervention required"),
    (0x04, 0x04, "logical unit not ready, format in progress"),
    (0x04, 0x05, "logical unit not ready, rebuild in progress"),
    (0x04, 0x07, "logical unit not ready, operation in progress"),
    (0x04, 0x09, "logical unit not ready, self-test in progress"),
    (0x04, 0x0a, "logical unit not accessible, asymmetric access state transition"),
    (0x04, 0x0b, "logical unit not accessible, target port in standby state"),
    (0x04, 0x0c, "logical unit not accessible, target port in unavailable state"),
    (0x04, 0x11, "logical unit not ready, notify (enable spinup) required"),
    (0x04, 0x12, "logical unit not ready, offline"),
    (0x04, 0x1b, "logical unit not ready, sanitize in progress"),
    (0x08, 0x00, "logical unit communication failure"),
    (0x08, 0x01, "logical unit communication timeout"),
    (0x0c, 0x00, "write error"),
    (0x0c, 0x01, "write error, recovered with automatic reallocation"),
    (0x0c, 0x02, "write error, automatic reallocation failed"),
    (0x0c, 0x03, "write error, reassignment recommended"),
    (0x10, 0x00, "ID CRC or ECC error"),
    (0x10, 0x01, "logical block guard check failed"),
    (0x10, 0x02, "logical block application tag check failed"),
    (0x10, 0x03, "logical block reference tag check failed"),
    (0x11, 0x00, "unrecovered read error"),
    (0x11, 0x01, "read retries exhausted"),
    (0x11, 0x02, "error too long to correct"),
    (0x11, 0x03, "multiple read errors"),
    (0x11, 0x04, "unrecovered read error, automatic reallocation failed"),
    (0x11, 0x0b, "unrecovered read error, reassignment recommended"),
    (0x11, 0x0c, "unrecovered read error, rewriting the data recommended"),
    (0x11, 0x14, "read error, LBA marked bad by application client"),
    (0x17, 0x01, "recovered data with retries"),
    (0x18, 0x00, "recovered data with error correction applied"),
    (0x1d, 0x00, "miscompare during verify operation"),
    (0x20, 0x00, "invalid command operation code"),
    (0x20, 0x02, "access denied, no access rights"),
    (0x21, 0x00, "logical block address out of range"),
    (0x21, 0x04, "unaligned write command"),
    (0x21, 0x05, "write boundary violation"),
    (0x24, 0x00, "invalid field in CDB"),
    (0x25, 0x00, "logical unit not supported"),
    (0x26, 0x00, "invalid field in parameter list"),
    (0x27, 0x00, "write protected"),
    (0x27, 0x01, "hardware write protected"),
    (0x27, 0x02, "logical unit software write protected"),
    (0x27, 0x07, "space allocation failed, write protected"),
    (0x28, 0x00, "not ready to ready change, medium may have changed"),
    (0x29, 0x00, "power on, reset, or bus device reset occurred"),
    (0x29, 0x01, "power on occurred"),
    (0x29, 0x02, "SCSI bus reset occurred"),
    (0x29, 0x03, "bus device reset function occurred"),
    (0x29, 0x04, "device internal reset"),
    (0x29, 0x07, "I_T nexus loss occurred"),
    (0x2a, 0x01, "mode parameters changed"),
    (0x2a, 0x03, "reservations preempted"),
    (0x2a, 0x04, "reservations released"),
    (0x2a, 0x05, "registrations preempted"),
    (0x2a, 0x06, "asymmetric access state changed"),
    (0x2a, 0x09, "capacity data has changed"),
    (0x2c, 0x00, "command sequence error"),
    (0x2f, 0x00, "commands cleared by another initiator"),
    (0x38, 0x07, "thin provisioning soft threshold reached"),
    (0x3a, 0x00, "medium not present"),
    (0x3e, 0x01, "logical unit failure"),
    (0x3e, 0x02, "timeout on logical unit"),
    (0x3f, 0x01, "microcode has been changed"),
    (0x3f, 0x03, "inquiry data has changed"),
    (0x3f, 0x0e, "reported LUNs data has changed"),
    (0x44, 0x00, "internal target failure"),
    (0x47, 0x00, "SCSI parity error"),
    (0x47, 0x01, "data phase CRC error detected"),
    (0x47, 0x03, "information unit CRC error detected"),
    (0x47, 0x05, "protocol service CRC error"),
    (0x47, 0x7f, "some commands cleared by iSCSI protocol event"),
    (0x4b, 0x00, "data phase error"),
    (0x4b, 0x02, "too much write data"),
    (0x4b, 0x03, "ACK/NAK timeout"),
    (0x4b, 0x04, "NAK received"),
    (0x4b, 0x05, "data offset error"),
    (0x4b, 0x06, "initiator response timeout"),
    (0x4b, 0x07, "connection lost"),
    (0x4e, 0x00, "overlapped commands attempted"),
    (0x55, 0x03, "insufficient resources"),
    (0x5d, 0x00, "failure prediction threshold exceeded"),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(bytes: &[u8]) -> String {
        Sense::parse(bytes).unwrap().to_string()
    }

    #[test]
    fn fixed_format_names_the_first_bad_block() {
        let bytes = [0xf0, 0, 0x03, 0, 0, 0x12, 0x34, 0x0a, 0, 0, 0, 0, 0x11, 0x00, 0, 0, 0, 0];
        let expected = Sense { key: 3, asc: 0x11, ascq: 0, information: Some(0x1234), deferred: false };
        assert_eq!(Sense::parse(&bytes), Some(expected));
        assert_eq!(
            words(&bytes),
            "MEDIUM ERROR (sense key 3): unrecovered read error (asc 0x11, ascq 0x00), at LBA 4660"
        );
    }

    #[test]
    fn an_information_field_not_marked_valid_is_not_believed() {
        let bytes = [0x70, 0, 0x05, 0, 0, 0x10, 0, 0x0a, 0, 0, 0, 0, 0x21, 0x00, 0, 0, 0, 0];
        assert_eq!(Sense::parse(&bytes).unwrap().information, None);
        let text = "ILLEGAL REQUEST (sense key 5): logical block address out of range (asc 0x21, ascq 0x00)";
        assert_eq!(words(&bytes), text);
        assert_eq!(words(&[&[0xf0], &bytes[1..]].concat()), format!("{text}, at LBA 4096"));
    }

    #[test]
    fn descriptor_format_carries_an_lba_beyond_32_bits_behind_other_descriptors() {
        let key_specific = [0x02, 0x06, 0, 0, 0x80, 0, 0x07, 0];
        let information = [0x00, 0x0a, 0x80, 0, 0, 0, 0, 0x01, 0x23, 0x45, 0x67, 0x89];
        let bytes = [&[0x72, 0x03, 0x11, 0x0b, 0, 0, 0, 20][..], &key_specific, &information].concat();
        assert_eq!(Sense::parse(&bytes).unwrap().information, Some(0x1_2345_6789));
        // Bytes behind the additional length are whatever was in the buffer before.
        let stale = [&[0x72, 0x03, 0x11, 0x0b, 0, 0, 0, 8][..], &key_specific, &information].concat();
        assert_eq!(Sense::parse(&stale).unwrap().information, None);
    }

    #[test]
    fn information_that_is_not_an_lba_is_not_called_one() {
        let miscompare = [0xf0, 0, 0x0e, 0, 0, 0, 0x40, 0x0a, 0, 0, 0, 0, 0x1d, 0x00, 0, 0, 0, 0];
        assert!(words(&miscompare).ends_with("(asc 0x1d, ascq 0x00), information 64"));
        let ata = [0xf0, 0, 0x01, 0x00, 0x50, 0x00, 0x01, 0x0a, 0, 0, 0, 0, 0x00, 0x1d, 0, 0, 0, 0];
        assert!(words(&ata).ends_with("information 5242881"));
    }

    #[test]
    fn a_deferred_error_is_said_to_be_of_an_earlier_command() {
        let text = words(&[0x73, 0x04, 0x0c, 0x02, 0, 0, 0, 0]);
        assert!(text.starts_with("HARDWARE ERROR (sense key 4): write error, automatic reallocation failed"));
        assert!(text.ends_with("; deferred: an earlier command failed, not this one"));
    }

    #[test]
    fn unknown_causes_print_their_numbers_only() {
        assert_eq!(words(&[0x72, 0x0b, 0x80, 0x01]), "ABORTED COMMAND (sense key 11): asc 0x80, ascq 0x01");
    }

    #[test]
    fn buffers_without_a_key_or_a_known_format_are_no_sense_data() {
        for bytes in [&[][..], &[0x70, 0], &[0x72], &[0; 18], &[0x7f, 0x05, 0x24, 0x00]] {
            assert_eq!(Sense::parse(bytes), None);
        }
        assert_eq!(
            Sense::parse(&[0xf0, 0, 0x02]).unwrap().to_string().split(':').next(),
            Some("NOT READY (sense key 2)")
        );
    }

    #[test]
    fn status_bytes_have_their_names() {
        assert_eq!([0x02, 0x18, 0x28].map(scsi_status), ["CHECK CONDITION", "RESERVATION CONFLICT", "TASK SET FULL"]);
        assert_eq!(host_status(0x01), "DID_NO_CONNECT: no connection to the device");
        assert_eq!(driver_status(0x28), "DRIVER_SENSE: sense data is available");
        assert_eq!([0x03, 0x0c, 0xff].map(key_name), ["medium-error", "reserved", "reserved"]);
    }

    #[test]
    fn every_cause_is_listed_once_in_order() {
        assert!(CAUSES.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            code in 0x60u8..=0xff,
            tail in proptest::collection::vec(any::<u8>(), 0..260),
        ) {
            let whole = [&[code][..], &tail].concat();
            for bytes in [&whole[..], &tail[..]] {
                if let Some(sense) = Sense::parse(bytes) {
                    prop_assert!(sense.key < 16 && !sense.to_string().is_empty());
                }
            }
        }
    }
}
