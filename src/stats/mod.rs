//! The arithmetic over finished samples: pure functions, exact where the answer is exact.
//!
//! Everything is computed on whole ticks and scaled to nanoseconds at the end: scaling keeps the order, so a percentile
//! of the ticks is the percentile of the times.

mod histogram;
mod series;
mod summary;

pub use histogram::{Bucket, Histogram, histogram};
pub use series::{Interval, Outlier, Window, outliers, timeline, windowed_rate};
pub use summary::{Percentiles, Summary, nearest_rank};
