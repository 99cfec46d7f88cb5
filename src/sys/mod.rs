//! Everything that is unsafe: thin owners of memory, signals, files, rings and verbs handles. A handle is released by
//! `Drop`, and keeps what it depends on alive, so that the order of release is right by construction.
#![allow(unsafe_code)]

#[cfg(feature = "rdma")]
mod address_handle;
pub mod aio;
pub mod block;
#[cfg(feature = "rdma")]
pub mod cm;
#[cfg(feature = "rdma")]
pub mod completion;
pub mod file;
pub mod interrupt;
pub mod memory;
pub mod nvme;
pub mod priority;
#[cfg(feature = "rdma")]
pub mod queue_pair;
#[cfg(feature = "rdma")]
pub mod request;
pub mod scsi;
pub mod terminal;
pub mod uring;
#[cfg(feature = "rdma")]
pub mod verbs;
