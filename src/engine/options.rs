//! What is asked of an engine, and what was granted. Both stand side by side in the result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::options::BlockGranted;
use crate::schema::added_later;

/// How completions are awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Completion {
    /// Look again and again: the processor is busy, the latency is the command's.
    #[default]
    Poll,
    /// Sleep until the kernel reports a completion.
    Event,
}

/// How the times between the commands of a timetable are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// All the same.
    #[default]
    Fixed,
    /// Exponentially, as from many independent users.
    Poisson,
}

/// The transport of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Transport {
    /// Reliable connection: every verb; a completion means that the peer's NIC has acknowledged.
    #[default]
    Rc,
    /// Unreliable connection: write, send; a completion means that the message has left.
    Uc,
    /// Unreliable datagram: send up to one MTU; a completion means that the message has left.
    Ud,
}

impl Transport {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
        }
    }
}

/// RDMA choices as asked for; null leaves the choice to the program, which reports it under `granted`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = added_later(&["signal_every"]))]
pub struct RdmaOptions {
    /// RDMA device name, for example `mlx5_0`.
    pub device: Option<String>,
    /// Port number, from 1.
    #[schemars(range(min = 1))]
    pub port: Option<u8>,
    /// Index into the port's GID table.
    pub gid_index: Option<u32>,
    /// Path MTU in bytes.
    #[schemars(extend("enum" = [256, 512, 1024, 2048, 4096, null]))]
    pub mtu_bytes: Option<u32>,
    /// Service level.
    #[schemars(range(max = 15))]
    pub service_level: u8,
    /// Traffic class of the global route header.
    pub traffic_class: u8,
    /// Largest payload to send inline, in bytes; 0 turns it off.
    pub inline_bytes: Option<u32>,
    /// Outstanding READs and atomics as initiator.
    pub read_depth: Option<u8>,
    /// How many commands share a completion that the initiator sees; 1 for one each.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub signal_every: u32,
    /// Local ACK timeout code: 4.096 µs · 2^code; 0 waits for ever.
    #[schemars(range(max = 31))]
    pub timeout_code: u8,
    /// Retries after a timeout.
    #[schemars(range(max = 7))]
    pub retry_count: u8,
    /// Retries after receiver-not-ready; 7 retries for ever.
    #[schemars(range(max = 7))]
    pub rnr_retry_count: u8,
    /// Transport of the queue pair.
    pub transport: Transport,
    /// Whether the queue pairs are connected by rdma_cm rather than over the control connection.
    pub cm: bool,
    /// Whether buffers lie in 2 MiB pages.
    pub hugepages: bool,
}

fn one() -> u32 {
    1
}

impl Default for RdmaOptions {
    fn default() -> Self {
        Self {
            device: None,
            port: None,
            gid_index: None,
            mtu_bytes: None,
            service_level: 0,
            traffic_class: 0,
            inline_bytes: None,
            read_depth: None,
            signal_every: 1,
            timeout_code: 14,
            retry_count: 7,
            rnr_retry_count: 7,
            transport: Transport::Rc,
            cm: false,
            hugepages: false,
        }
    }
}

/// What an engine was granted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// The initiator's data buffer, where there is one.
    pub buffer: Option<BufferFacts>,
    /// The block path, for block engines.
    pub block: Option<BlockGranted>,
    /// The initiator's end of the RDMA path.
    pub rdma: Option<RdmaGranted>,
    /// The other end of it.
    pub remote: Option<RdmaGranted>,
}

/// A registered data buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferFacts {
    /// Bytes registered.
    pub bytes: u64,
    /// Size of its pages, in bytes.
    pub page_bytes: u64,
    /// NUMA node that holds its first page; null where the kernel does not tell.
    pub numa_node: Option<u32>,
}

/// One end of an RDMA path as it was set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RdmaGranted {
    /// Host name of this end.
    pub hostname: Option<String>,
    /// RDMA device.
    pub device: String,
    /// Kernel driver of the device.
    pub driver: Option<String>,
    /// Firmware version as the device tells it.
    pub firmware: Option<String>,
    /// Whether the device is software (rdma_rxe, siw): its latency is the processor's, not a NIC's.
    pub software: bool,
    /// Port number, from 1.
    #[schemars(range(min = 1))]
    pub port: u8,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// NUMA node of the device.
    pub numa_node: Option<u32>,
    /// GID index in use.
    pub gid_index: u32,
    /// GID in use, as an IPv6 address.
    pub gid: String,
    /// `IB`, `RoCE v1` or `RoCE v2`.
    pub gid_type: String,
    /// Path MTU in bytes.
    pub mtu_bytes: u32,
    /// Transport of the queue pair.
    pub transport: Transport,
    /// How the queue pairs were connected: `exchange` or `rdma_cm`.
    pub connected_by: String,
    /// Service level in use.
    #[schemars(range(max = 15))]
    pub service_level: u8,
    /// Traffic class in use.
    pub traffic_class: u8,
    /// Largest payload that the queue pair takes inline, in bytes.
    pub inline_limit_bytes: u32,
    /// Whether this end's payload goes inline.
    pub inline: bool,
    /// READs and atomics that this end may have outstanding as initiator; null before it is connected, and for datagrams.
    pub read_depth: Option<u8>,
    /// How completions are awaited.
    pub completion: Completion,
    /// Queue pair number, 24 bits.
    pub queue_pair: u32,
}
