//! Everything that is unsafe: thin owners of memory, signals and verbs handles. A handle is released by `Drop`, and keeps
//! what it depends on alive, so that the order of release is right by construction.
#![allow(unsafe_code)]

#[cfg(feature = "rdma")]
mod address_handle;
#[cfg(feature = "rdma")]
pub mod cm;
#[cfg(feature = "rdma")]
pub mod completion;
pub mod interrupt;
#[cfg(feature = "rdma")]
pub mod memory;
#[cfg(feature = "rdma")]
pub mod queue_pair;
#[cfg(feature = "rdma")]
pub mod request;
#[cfg(feature = "rdma")]
pub mod verbs;
