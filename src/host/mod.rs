//! Facts about the machine and the thread that measures on it: CPUs, memory, RDMA and block devices,
//! interference.
//!
//! Everything that is read from /proc, /sys and /dev goes through a [`Sysfs`], so that tests can lay out trees of their
//! own. What a kernel or a container doesn't show is `None` and becomes null in the result, never a zero and never an
//! error: a missing fact must not end a measurement.

pub mod block;
mod counters;
pub mod cpu;
mod cpu_set;
pub mod facts;
pub mod filesystem;
pub mod in_use;
mod interference;
pub mod memory;
mod modules;
mod nearby;
pub mod quiet;
pub mod rdma;
mod sysfs;
pub mod usage;

#[cfg(test)]
pub(crate) mod fake;

pub use block::BlockDevice;
pub use counters::{DeviceCounters, Trouble};
pub use cpu::Cpus;
pub use cpu_set::{CpuSet, MAX_CPUS};
pub use facts::HostFacts;
pub use filesystem::Filesystem;
pub use interference::increases;
pub use memory::Memory;
pub use modules::Module;
pub use nearby::{Cause, Moment, Nearby, Watch};
pub use quiet::Quiet;
pub use sysfs::Sysfs;
pub use usage::{Usage, UsageDelta};
