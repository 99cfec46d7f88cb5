//! The block engines on real files of this machine, through the binary: in memory (tmpfs) and on a disk. What needs a
//! device is tested in the lab.

mod common;
mod faults;
mod fill;
mod refusals;
mod runs;
mod verify;
