//! What the two ends of an RDMA measurement tell each other. The control connection carries it; loopback passes it on.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{
    engine::{Completion, MAX_BS_BYTES, RdmaGranted, RdmaOptions, Transport, Verb},
    error::{Error, Result},
};

/// What the initiator wants to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The command.
    pub verb: Verb,
    /// Payload bytes of one command.
    pub bs_bytes: u64,
    /// Commands outstanding at once; one if nothing is said.
    #[serde(default = "one")]
    pub depth: u32,
    /// How both ends await completions.
    pub completion: Completion,
    /// The initiator's choices. Device, port and GID index are its own; the other end chooses its own.
    pub options: RdmaOptions,
    /// Seed of the data patterns, new for each run.
    pub seed: u64,
}

/// Most commands outstanding at once; queues of devices in use are shorter.
pub const MAX_DEPTH: u32 = 1 << 20;

fn one() -> u32 {
    1
}

impl Request {
    /// Checks what came from another machine as strictly as the command line checks what was typed: nobody knows who wrote
    /// it.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the field.
    pub fn check(&self) -> Result<()> {
        let options = &self.options;
        let size_fits = match self.verb {
            Verb::CompareSwap | Verb::FetchAdd => self.bs_bytes == 8,
            Verb::WritePingPong => (1..=MAX_BS_BYTES).contains(&self.bs_bytes),
            _ => self.bs_bytes <= MAX_BS_BYTES,
        };
        let rules = [
            (size_fits, "block size"),
            ((1..=MAX_DEPTH).contains(&self.depth) && (self.depth == 1 || !self.verb.is_ping_pong()), "depth"),
            (self.verb.exists_on(options.transport), "transport"),
            (!options.cm || options.transport == Transport::Rc, "connection manager"),
            (self.verb != Verb::WritePingPong || self.completion == Completion::Poll, "completion mode"),
            (options.mtu_bytes.is_none_or(|mtu| [256, 512, 1024, 2048, 4096].contains(&mtu)), "MTU"),
            (options.service_level <= 15, "service level"),
            (options.timeout_code <= 31, "timeout code"),
            (options.retry_count <= 7 && options.rnr_retry_count <= 7, "retry count"),
            (options.read_depth != Some(0), "read depth"),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, what)) => Err(Error::Usage(format!("the {what} asked for does not exist for this command"))),
        }
    }
}

/// One end, as the other one needs to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointInfo {
    /// What this end chose.
    pub facts: RdmaGranted,
    /// Its GID.
    pub gid: [u8; 16],
    /// Its LID; 0 on Ethernet.
    pub lid: u16,
    /// First packet sequence number that it sends.
    pub packet_sequence: u32,
    /// Most READs and atomics that it may have outstanding.
    pub initiator_depth: u8,
    /// Most READs and atomics that it answers at once.
    pub responder_depth: u8,
    /// Address of its receiving area.
    pub address: u64,
    /// Remote key of its buffer.
    pub key: u32,
    /// Where it listens for rdma_cm, if it does.
    pub cm_address: Option<SocketAddr>,
}

/// What the initiator reports when it is done with its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Commands that completed, warm-up and verification included.
    pub commands: u64,
    /// Whether the last of them was the verification command, so that the bytes can be judged.
    pub verify: bool,
}

/// What the other end found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Messages that its processor handled, where it takes part in each command.
    pub handled: Option<u64>,
    /// Whether the bytes that arrived there are the ones that were sent; null where none arrive there.
    pub verified: Option<bool>,
    /// What is wrong, in words.
    pub problem: Option<String>,
}
