//! The control connection between an initiator (`--peer HOST`) and `lat-probe serve`.
//!
//! | file | purpose |
//! |---|---|
//! | [`address`] | who to connect to, who may connect |
//! | [`deadline`] | how long a step may take |
//! | [`frame`], [`kind`] | bytes on the stream: the opening, then one JSON value a frame, and what each is called |
//! | [`session`], [`client`], [`server`] | the order of the frames, as types |
//! | [`progress`] | how far a run is |
//! | [`admission`] | which clients a server takes, and how many |
//!
//! The payloads (hello, endpoint, plan, summary, ...) belong to higher layers; here they are only `Serialize` and
//! `DeserializeOwned`. Nothing here may assume a well-meaning other end: every read and write is bounded in size and in
//! time, and everything that arrives ends in a value or in an error with a name.

pub mod address;
pub mod admission;
pub mod client;
pub mod deadline;
pub mod frame;
pub mod kind;
pub mod progress;
pub mod server;
pub mod session;

pub use address::{Cidr, DEFAULT_PORT, PeerAddress};
pub use admission::{Admission, Ticket, read_token_file};
pub use client::{Client, Running};
pub use deadline::Deadline;
pub use progress::Progress;
pub use server::{Event, Server, Serving};
pub use session::{HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT, STEP_TIMEOUT, VERDICT_TIMEOUT};

#[cfg(test)]
mod tests;
