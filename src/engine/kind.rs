//! The engines by name, what each measures, and what each needs.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::json;

use super::Transport;

/// Largest payload of one command: 1 GiB.
pub const MAX_BS_BYTES: u64 = 1 << 30;

/// An engine as `--engine` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// No command at all: what is left is the instrument's own floor.
    Null,
    /// A busy wait of a known time, to check the instrument's accuracy.
    Spin,
    /// A command on an RDMA queue pair.
    Rdma(Verb),
    /// pread and pwrite.
    Psync,
    /// preadv2 and pwritev2.
    Pvsync2,
    /// Linux AIO.
    Libaio,
    /// io_uring.
    IoUring,
    /// NVMe passthrough.
    NvmeCmd,
    /// SCSI passthrough.
    Sg,
}

/// A command on an RDMA queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// RDMA READ.
    Read,
    /// RDMA WRITE.
    Write,
    /// SEND into a posted receive; the initiator's completion is timed.
    Send,
    /// Atomic compare and swap of 8 bytes.
    CompareSwap,
    /// Atomic fetch and add of 8 bytes.
    FetchAdd,
    /// RDMA WRITE there and back, each side watching its memory.
    WritePingPong,
    /// SEND there and back.
    SendPingPong,
}

/// What one number of an engine spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Convention {
    /// From hand-over until the initiator saw the completion.
    Completion,
    /// From hand-over until the answer was back.
    RoundTrip,
    /// Half of a round trip, as perftest prints it (`--half-rtt`).
    HalfRoundTrip,
}

/// What an engine needs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing but a processor.
    Nothing,
    /// An active RDMA device, libibverbs, and read-write access to /dev/infiniband.
    RdmaDevice,
    /// A file or block device.
    BlockTarget,
    /// A file or block device, and io_uring.
    IoUring,
    /// An NVMe namespace, /dev/ng*, and io_uring.
    NvmeNamespace,
    /// A SCSI device, /dev/sg*.
    ScsiDevice,
}

impl EngineKind {
    /// Every engine, in the order in which they are listed.
    pub const ALL: [Self; 15] = [
        Self::Rdma(Verb::Read),
        Self::Rdma(Verb::Write),
        Self::Rdma(Verb::Send),
        Self::Rdma(Verb::CompareSwap),
        Self::Rdma(Verb::FetchAdd),
        Self::Rdma(Verb::WritePingPong),
        Self::Rdma(Verb::SendPingPong),
        Self::Psync,
        Self::Pvsync2,
        Self::Libaio,
        Self::IoUring,
        Self::NvmeCmd,
        Self::Sg,
        Self::Null,
        Self::Spin,
    ];

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Spin => "spin",
            Self::Rdma(Verb::Read) => "rdma-read",
            Self::Rdma(Verb::Write) => "rdma-write",
            Self::Rdma(Verb::Send) => "rdma-send",
            Self::Rdma(Verb::CompareSwap) => "rdma-cas",
            Self::Rdma(Verb::FetchAdd) => "rdma-faa",
            Self::Rdma(Verb::WritePingPong) => "rdma-write-pingpong",
            Self::Rdma(Verb::SendPingPong) => "rdma-send-pingpong",
            Self::Psync => "psync",
            Self::Pvsync2 => "pvsync2",
            Self::Libaio => "libaio",
            Self::IoUring => "io-uring",
            Self::NvmeCmd => "nvme-cmd",
            Self::Sg => "sg",
        }
    }

    /// One line that says what is measured.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Null => "nothing: the floor of the instrument itself",
            Self::Spin => "a busy wait of --delay: checks the instrument's accuracy",
            Self::Rdma(Verb::Read) => "RDMA READ, until its completion",
            Self::Rdma(Verb::Write) => "RDMA WRITE, until the peer's NIC has acknowledged it",
            Self::Rdma(Verb::Send) => "SEND into a posted receive, until the initiator's completion",
            Self::Rdma(Verb::CompareSwap) => "atomic compare and swap of 8 bytes",
            Self::Rdma(Verb::FetchAdd) => "atomic fetch and add of 8 bytes",
            Self::Rdma(Verb::WritePingPong) => "RDMA WRITE there and back, both CPUs watching memory",
            Self::Rdma(Verb::SendPingPong) => "SEND there and back, both CPUs involved",
            Self::Psync => "pread or pwrite, until it returns",
            Self::Pvsync2 => "preadv2 or pwritev2, until it returns; --hipri polls",
            Self::Libaio => "io_submit, until the completion is seen in the ring",
            Self::IoUring => "a read or write through io_uring, until its completion is seen",
            Self::NvmeCmd => "an NVMe read, write or flush, past the block layer",
            Self::Sg => "a SCSI command, past the block layer",
        }
    }

    /// The engine of this name; underscores count as hyphens, as fio spells them.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace('_', "-");
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What the engine needs of the machine.
    pub fn needs(self) -> Needs {
        match self {
            Self::Null | Self::Spin => Needs::Nothing,
            Self::Rdma(_) => Needs::RdmaDevice,
            Self::Psync | Self::Pvsync2 | Self::Libaio => Needs::BlockTarget,
            Self::IoUring => Needs::IoUring,
            Self::NvmeCmd => Needs::NvmeNamespace,
            Self::Sg => Needs::ScsiDevice,
        }
    }

    /// Whether it has a `--target`.
    pub fn is_block(self) -> bool {
        !matches!(self, Self::Null | Self::Spin | Self::Rdma(_))
    }

    /// What one number spans, before `--half-rtt`.
    pub fn convention(self) -> Convention {
        match self {
            Self::Rdma(verb) if verb.is_ping_pong() => Convention::RoundTrip,
            _ => Convention::Completion,
        }
    }
}

impl Verb {
    /// Whether the peer answers each command with one of its own.
    pub fn is_ping_pong(self) -> bool {
        matches!(self, Self::WritePingPong | Self::SendPingPong)
    }

    /// Whether the command is an 8-byte atomic.
    pub fn is_atomic(self) -> bool {
        matches!(self, Self::CompareSwap | Self::FetchAdd)
    }

    /// Whether the peer must have receives posted.
    pub fn needs_receives(self) -> bool {
        matches!(self, Self::Send | Self::SendPingPong)
    }

    /// Whether a processor at the other end must take part in each command.
    pub fn needs_responder(self) -> bool {
        self.needs_receives() || self == Self::WritePingPong
    }

    /// Whether this command exists on the transport.
    pub fn exists_on(self, transport: Transport) -> bool {
        match transport {
            Transport::Rc => true,
            Transport::Uc => self.carries_payload(),
            Transport::Ud => self.needs_receives(),
        }
    }

    /// Whether the payload leaves the initiator, so that it may be sent inline.
    pub fn carries_payload(self) -> bool {
        matches!(self, Self::Write | Self::Send | Self::WritePingPong | Self::SendPingPong)
    }
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Serialize for EngineKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for EngineKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Engine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let engine = |kind: Self| json!({ "description": kind.summary(), "type": "string", "const": kind.name() });
        json_schema!({ "description": "An engine as `--engine` names it.", "oneOf": Self::ALL.map(engine) })
    }
}

impl<'de> serde::Deserialize<'de> for EngineKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown engine '{name}'")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_found_by_its_own_name_and_by_fios_spelling() {
        for kind in EngineKind::ALL {
            assert_eq!(EngineKind::from_name(kind.name()), Some(kind));
            assert_eq!(EngineKind::from_name(&kind.name().replace('-', "_")), Some(kind));
        }
        assert_eq!(EngineKind::from_name("rdma"), None);
    }
}
