//! lat-probe measures the latency of single commands on kernel-bypass and kernel I/O paths, one at a time or among others.
//!
//! The layers point one way; a file names only its own folder and lower layers (`tests/layers.rs` checks it):
//!
//! | layer | modules | purpose |
//! |---|---|---|
//! | 7 | `main.rs`, [`cli`] | arguments as typed, exit code |
//! | 6 | [`run`] | the order of a run; the only match over engines |
//! | 5 | [`report`] | what leaves the program |
//! | 4 | [`measure`], [`stats`], [`probe`] | the loops; the arithmetic; the plan with every check made |
//! | 3 | [`engine`] | one kind of command each |
//! | 2 | [`timing`], [`host`], [`peer`] | facts and services |
//! | 1 | `sys`, `timing::tsc` | all `unsafe`, thin and owned |
//! | 0 | [`error`], [`schema`], [`units`] | |

pub mod cli;
pub mod engine;
pub mod error;
pub mod host;
pub mod measure;
pub mod peer;
pub mod probe;
pub mod report;
pub mod run;
pub mod schema;
pub mod stats;
mod sys;
pub mod timing;
pub mod units;
