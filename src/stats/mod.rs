//! The arithmetic over finished samples: pure functions, exact where the answer is exact.
//!
//! Everything is computed on whole ticks and scaled to nanoseconds at the end: scaling keeps the order, so a percentile
//! of the ticks is the percentile of the times. Runs too long for that are computed from a [`Digest`], which says where it
//! rounds.

mod digest;
mod figures;
mod histogram;
mod line;
mod rank;
mod series;
mod shift;
mod summary;
mod tail;

pub use digest::{Digest, Durations};
pub use figures::{Figures, Span};
pub use histogram::{Bucket, Histogram, histogram};
pub use line::{Line, LineIntervals};
pub use series::{Interval, Outlier, Window, outliers, timeline, windowed_rate};
pub use shift::{Shift, Verdict, median};
pub use summary::{Percentiles, Summary, nearest_rank, round_picoseconds};
pub use tail::{Beyond, Tail};

/// Ticks in one nanosecond, for points in time and for latencies. They differ where only half of a round trip counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// For points in time.
    pub time: f64,
    /// For latencies.
    pub latency: f64,
}

impl Scale {
    /// The same for both.
    pub fn of(ticks_per_ns: f64) -> Self {
        Self { time: ticks_per_ns, latency: ticks_per_ns }
    }

    /// Latencies count half.
    pub fn halved(ticks_per_ns: f64) -> Self {
        Self { time: ticks_per_ns, latency: 2.0 * ticks_per_ns }
    }
}
