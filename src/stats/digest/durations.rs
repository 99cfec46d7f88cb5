//! Durations of one kind, counted in buckets of constant relative width; what a bucket cannot say is kept beside them.

use std::iter;

use hdrhistogram::Histogram as Hdr;

use crate::stats::{
    Bucket, Histogram, Scale, Summary,
    histogram::HIGHEST_NS,
    summary::{Percentiles, Sums, round_picoseconds, supported_rank},
};

/// Longest duration that has a bucket of its own, in ticks; longer ones share the last bucket. Over ten days at any clock.
const HIGHEST_TICKS: u64 = (1 << 53) - 1;

/// Buckets for durations from 0 to 2^53 ticks. They are at most 1/1024 of a duration wide with three `digits`, 1/128 with
/// two.
pub(super) fn counts(digits: u8) -> Hdr<u64> {
    // The bounds are valid ones. If they were not, the sum of none would do: it has three digits, and grows.
    let mut counts = Hdr::new_with_bounds(1, HIGHEST_TICKS, digits).unwrap_or_else(|_| iter::empty::<Hdr<u64>>().sum());
    // Zeroed memory comes without pages. Writing it brings them now and not while something is measured.
    counts.reset();
    counts
}

/// Memory behind `counts` in bytes.
pub(super) fn bytes(counts: &Hdr<u64>) -> usize {
    counts.distinct_values() * size_of::<u64>()
}

/// The upper end of the bucket that holds the duration of this rank, from 1. It is never below that duration, and above it
/// by less than the width of the bucket.
///
/// The crate's own quantiles take a fraction, which rounding may move to the next rank.
pub(super) fn at_rank(counts: &Hdr<u64>, rank: u64) -> Option<u64> {
    let mut seen = 0u64;
    let mut steps = counts.iter_recorded();
    let step = steps.find(|step| {
        seen = seen.saturating_add(step.count_at_value());
        seen >= rank
    });
    step.map(|step| counts.highest_equivalent(step.value_iterated_to()))
}

/// The counted durations, with what is exact: number, sums, smallest and largest.
#[derive(Clone, PartialEq)]
pub struct Durations {
    counts: Hdr<u64>,
    sums: Sums,
    min: u64,
    max: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self::new()
    }
}

impl Durations {
    /// Of none so far; all memory is allocated and resident after this.
    pub fn new() -> Self {
        Self { counts: counts(3), sums: Sums::default(), min: u64::MAX, max: 0 }
    }

    /// Takes more of them, in ticks.
    pub fn extend(&mut self, durations: impl Iterator<Item = u64>) {
        // In registers, and back once at the end.
        let (mut sums, mut min, mut max) = (self.sums, self.min, self.max);
        for ticks in durations {
            self.counts.saturating_record(ticks);
            sums.record(ticks);
            min = min.min(ticks);
            max = max.max(ticks);
        }
        (self.sums, self.min, self.max) = (sums, min, max);
    }

    /// Takes all that another one has.
    pub fn merge(&mut self, other: &Self) {
        self.counts += &other.counts;
        self.sums.add(&other.sums);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many there are.
    pub fn n(&self) -> u64 {
        self.counts.len()
    }

    /// Memory in use in bytes, which stays the same.
    pub fn bytes(&self) -> usize {
        bytes(&self.counts)
    }

    /// Percentiles are upper ends of buckets, at most 0.1 % above the sample of nearest rank; the rest is exact.
    pub fn summary(&self, scale: Scale) -> Summary {
        let n = self.n();
        if n == 0 {
            return Summary::default();
        }
        let ns = |ticks: f64| round_picoseconds(ticks / scale.latency);
        // No further out than the samples go, even where the last bucket holds what is beyond it.
        let at_rank = |rank| at_rank(&self.counts, rank).map(|ticks| ticks.max(self.min).min(self.max));
        Summary {
            n,
            min: Some(ns(self.min as f64)),
            max: Some(ns(self.max as f64)),
            mean: self.sums.mean(n).map(ns),
            stddev: self.sums.stddev(n, self.min, self.max).map(ns),
            percentiles: Percentiles::each(|q| supported_rank(n, q).and_then(at_rank).map(|ticks| ns(ticks as f64))),
        }
    }

    /// How many are above a latency. Those in the bucket that it falls into count as not above it, so the answer is exact
    /// for a percentile of [`Durations::summary`], which is the upper end of one.
    pub fn above(&self, latency_ns: f64, scale: Scale) -> u64 {
        let ticks = (latency_ns * scale.latency).round() as u64;
        let above = self.counts.iter_recorded();
        let above = above.filter(|step| self.counts.lowest_equivalent(step.value_iterated_to()) > ticks);
        above.map(|step| step.count_at_value()).sum()
    }

    /// The buckets in nanoseconds, bounds rounded to whole ones: a sample that rounds to the upper bound of a bucket may be
    /// in it. Buckets that become one are put together.
    ///
    /// Counting ticks again in buckets of nanoseconds would move samples by up to a bucket, and make a comb of a smooth
    /// distribution.
    pub fn histogram(&self, scale: Scale) -> Histogram {
        let ns = |ticks: u64| ((ticks as f64 / scale.latency).round() as u64).min(HIGHEST_NS);
        let mut buckets: Vec<Bucket> = Vec::new();
        for step in self.counts.iter_recorded() {
            let lower = self.counts.lowest_equivalent(step.value_iterated_to());
            let (lower_ns, upper_ns) = (ns(lower), ns(self.counts.next_non_equivalent(lower)));
            let bucket = Bucket { lower_ns, upper_ns: upper_ns.max(lower_ns + 1), count: step.count_at_value() };
            match buckets.last_mut() {
                Some(last) if last.upper_ns > lower_ns => {
                    last.upper_ns = last.upper_ns.max(bucket.upper_ns);
                    last.count += bucket.count;
                }
                _ => buckets.push(bucket),
            }
        }
        Histogram { buckets }
    }
}
