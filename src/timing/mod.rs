//! Time: the counters that stamp commands, their calibration, and the array that keeps the stamps.
//!
//! Callers must not assume that ticks are nanoseconds; only [`Calibration`] converts them.

mod clock;
mod samples;
pub mod tsc;

pub use clock::{CALIBRATION_LIMIT_PPM, Calibration, ClockChoice, ClockFacts, Counter, MonotonicRaw, Source, Tsc};
pub use samples::{PacedSample, PhasedSample, Sample, Stamps, filled};
