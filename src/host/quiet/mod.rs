//! What can be done about a machine's noise without a reboot, for as long as a measurement takes. Each measure is a guard:
//! made when it is applied, undone when it is dropped.
//!
//! A measure that is refused is no error. Its reason goes into the result, and the measurement goes on.

mod cpu_latency;
pub mod interrupts;
mod locked_memory;
pub mod priority;

pub use cpu_latency::CpuLatency;
pub use interrupts::{Steering, irqbalance_runs};
pub use locked_memory::LockedMemory;
pub use priority::Priority;

use schemars::JsonSchema;
use serde::Serialize;

use crate::schema::STABLE_NAME;

/// What `--quiet` did. Every measure stands in one of the two lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Quiet {
    /// Measures that were in force while it was measured.
    pub applied: Vec<Applied>,
    /// Measures that could not be had, and interrupts that stayed: fixed-interrupts, device-interrupts.
    pub refused: Vec<Refused>,
}

/// A measure in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Applied {
    /// Stable name: cpu-dma-latency, locked-memory, real-time-priority, nice, interrupt-affinity.
    #[schemars(regex(pattern = STABLE_NAME))]
    pub what: &'static str,
    /// What was done.
    pub detail: String,
}

/// A measure that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refused {
    /// Stable name, as of a measure in force.
    #[schemars(regex(pattern = STABLE_NAME))]
    pub what: &'static str,
    /// Why not, with errno and remedy where there are some.
    pub reason: String,
}

impl Quiet {
    /// Adds a measure to the list it belongs to, and keeps its guard.
    pub fn note<T>(&mut self, what: &'static str, outcome: Result<(T, String), String>) -> Option<T> {
        match outcome {
            Ok((guard, detail)) => {
                self.applied.push(Applied { what, detail });
                Some(guard)
            }
            Err(reason) => {
                self.refuse(what, reason);
                None
            }
        }
    }

    /// Adds a refusal.
    pub fn refuse(&mut self, what: &'static str, reason: impl Into<String>) {
        self.refused.push(Refused { what, reason: reason.into() });
    }
}
