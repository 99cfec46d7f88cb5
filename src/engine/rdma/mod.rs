//! The verbs family: commands on an RDMA queue pair.
//!
//! | file | purpose |
//! |---|---|
//! | [`adapter`] | device, port and GID, with every choice checked against what the machine has |
//! | [`endpoint`], `connect` | buffer, queues and queue pair of one end; the ways to connect it |
//! | [`wire`] | what the two ends tell each other |
//! | [`wait`] | polling and sleeping for completions |
//! | [`requester`], [`ping_pong`] | the data path of the initiator: post and poll, nothing else |
//! | [`responder`] | the data path of the other end, for verbs that need one |
//! | `pattern`, [`verify`] | what the bytes must be afterwards |

pub mod adapter;
mod connect;
pub mod endpoint;
mod pattern;
pub mod ping_pong;
pub mod requester;
pub mod responder;
pub mod verify;
pub mod wait;
pub mod wire;

use super::Fault;
use crate::sys::completion::status_name;

/// Words for a fault on a queue pair, with a hint where the usual cause is known.
pub fn explain(fault: Fault) -> String {
    // Numbers of enum ibv_wc_status.
    let hint = match fault {
        Fault::Completion { status: 4, .. } => "The local buffer is not registered for this use.",
        Fault::Completion { status: 5, .. } => {
            "The queue pair was stopped, by the other end's failure or by this one's."
        }
        Fault::Completion { status: 9, .. } => "The message is longer than the receive that it met.",
        Fault::Completion { status: 10, .. } => {
            "The peer refused: its memory key, its bounds, or the access it grants."
        }
        Fault::Completion { status: 11, .. } => "The peer's NIC failed to carry it out.",
        Fault::Completion { status: 12, .. } => {
            "No answer after all retries: the peer or its process is gone, the GID or MTU does not fit the path, or a \
             firewall drops UDP port 4791."
        }
        Fault::Completion { status: 13, .. } => "The peer had no receive posted in time; see --rnr-retry.",
        _ => "",
    };
    match fault {
        Fault::Completion { status, vendor } => {
            format!("completion status {status} ({}), vendor error {vendor:#x}. {hint}", status_name(status))
        }
        other => other.to_string(),
    }
}
