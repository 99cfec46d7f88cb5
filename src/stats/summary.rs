//! Nearest-rank percentiles, mean and spread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The figures of one set of times, in nanoseconds. Undefined is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of samples.
    pub n: u64,
    /// Smallest sample, ns.
    #[schemars(range(min = 0))]
    pub min: Option<f64>,
    /// Largest sample, ns.
    #[schemars(range(min = 0))]
    pub max: Option<f64>,
    /// Arithmetic mean, ns.
    #[schemars(range(min = 0))]
    pub mean: Option<f64>,
    /// Sample standard deviation (n − 1), ns; null for fewer than two samples.
    #[schemars(range(min = 0))]
    pub stddev: Option<f64>,
    /// Nearest-rank percentiles, ns; null where n samples cannot support one: n·(1−q) < 1.
    pub percentiles: Percentiles,
}

/// Nearest-rank percentiles in nanoseconds; one that n samples cannot support, n·(1−q) < 1, is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)] // The names say it.
pub struct Percentiles {
    #[serde(rename = "1")]
    #[schemars(range(min = 0))]
    pub p1: Option<f64>,
    #[serde(rename = "5")]
    #[schemars(range(min = 0))]
    pub p5: Option<f64>,
    #[serde(rename = "10")]
    #[schemars(range(min = 0))]
    pub p10: Option<f64>,
    #[serde(rename = "25")]
    #[schemars(range(min = 0))]
    pub p25: Option<f64>,
    #[serde(rename = "50")]
    #[schemars(range(min = 0))]
    pub p50: Option<f64>,
    #[serde(rename = "75")]
    #[schemars(range(min = 0))]
    pub p75: Option<f64>,
    #[serde(rename = "90")]
    #[schemars(range(min = 0))]
    pub p90: Option<f64>,
    #[serde(rename = "95")]
    #[schemars(range(min = 0))]
    pub p95: Option<f64>,
    #[serde(rename = "99")]
    #[schemars(range(min = 0))]
    pub p99: Option<f64>,
    #[serde(rename = "99.5")]
    #[schemars(range(min = 0))]
    pub p99_5: Option<f64>,
    #[serde(rename = "99.9")]
    #[schemars(range(min = 0))]
    pub p99_9: Option<f64>,
    #[serde(rename = "99.99")]
    #[schemars(range(min = 0))]
    pub p99_99: Option<f64>,
    #[serde(rename = "99.999")]
    #[schemars(range(min = 0))]
    pub p99_999: Option<f64>,
}

/// 100 % in thousandths of a percent, the unit in which ranks are computed without rounding.
const WHOLE: u64 = 100_000;

/// The sample of nearest rank ⌈q·n⌉ in `sorted`, for q in thousandths of a percent (50,000 is the median).
///
/// `None` for no samples. Definition: Hyndman and Fan, "Sample Quantiles in Statistical Packages", type 1.
pub fn nearest_rank<T: Copy>(sorted: &[T], q_thousandths: u64) -> Option<T> {
    let rank = usize::try_from(rank(sorted.len() as u64, q_thousandths)).ok()?;
    sorted.get(rank - 1).copied()
}

/// The nearest rank ⌈q·n⌉ itself, from 1.
fn rank(n: u64, q_thousandths: u64) -> u64 {
    (u128::from(n) * u128::from(q_thousandths)).div_ceil(u128::from(WHOLE)).max(1) as u64
}

/// The rank of the percentile among `n` samples, if they support it: n·(1−q) ≥ 1.
pub(super) fn supported_rank(n: u64, q_thousandths: u64) -> Option<u64> {
    supported(n, q_thousandths).then(|| rank(n, q_thousandths))
}

/// Whether `n` samples can support the percentile: n·(1−q) ≥ 1.
pub(super) fn supported(n: u64, q_thousandths: u64) -> bool {
    u128::from(n) * u128::from(WHOLE - q_thousandths) >= u128::from(WHOLE)
}

impl Percentiles {
    /// Each of them from what `percentile` says of it, in thousandths of a percent.
    pub(super) fn each(percentile: impl Fn(u64) -> Option<f64>) -> Self {
        Self {
            p1: percentile(1_000),
            p5: percentile(5_000),
            p10: percentile(10_000),
            p25: percentile(25_000),
            p50: percentile(50_000),
            p75: percentile(75_000),
            p90: percentile(90_000),
            p95: percentile(95_000),
            p99: percentile(99_000),
            p99_5: percentile(99_500),
            p99_9: percentile(99_900),
            p99_99: percentile(99_990),
            p99_999: percentile(99_999),
        }
    }
}

impl Summary {
    /// Summarises latencies in ticks, which must be sorted; `ticks_per_ns` scales them.
    pub fn of_sorted(sorted: &[u64], ticks_per_ns: f64) -> Self {
        debug_assert!(sorted.is_sorted());
        let ns = |ticks: f64| round_picoseconds(ticks / ticks_per_ns);
        let percentile = |q| {
            let ticks = if supported(sorted.len() as u64, q) { nearest_rank(sorted, q) } else { None };
            ticks.map(|ticks| ns(ticks as f64))
        };
        let mean = mean(sorted);
        Self {
            n: sorted.len() as u64,
            min: sorted.first().map(|&ticks| ns(ticks as f64)),
            max: sorted.last().map(|&ticks| ns(ticks as f64)),
            mean: mean.map(ns),
            stddev: mean.and_then(|mean| stddev(sorted, mean)).map(ns),
            percentiles: Percentiles::each(percentile),
        }
    }
}

/// Nanoseconds to three places. A picosecond is far below any clock's resolution, and keeps printed figures short.
pub fn round_picoseconds(ns: f64) -> f64 {
    (ns * 1000.0).round() / 1000.0
}

/// The mean from an exact 128-bit sum: 2^64 samples of 2^64 ticks still fit.
fn mean(values: &[u64]) -> Option<f64> {
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    (!values.is_empty()).then(|| sum as f64 / values.len() as f64)
}

/// The sample standard deviation, from exact squares of the distance to the rounded mean.
///
/// At depth one the latencies add up to at most the run's length T < 2^64 ticks, so the squares add up to at most T² <
/// 2^128. Values that never came from such a run saturate instead of wrapping.
fn stddev(values: &[u64], mean: f64) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let pivot = mean.round() as u64;
    let squares = values.iter().fold(0u128, |sum, &value| {
        let distance = u128::from(value.abs_diff(pivot));
        sum.saturating_add(distance * distance)
    });
    Some(deviation(squares, values.len() as u64, mean - pivot as f64))
}

/// The sample standard deviation of `n` > 1 values, from their squares around a pivot that the mean is `offset` away from.
fn deviation(squares: u128, n: u64, offset: f64) -> f64 {
    let variance = (squares as f64 - n as f64 * offset * offset) / (n - 1) as f64;
    variance.max(0.0).sqrt()
}

/// Running sums, for the mean and the deviation of values that are not kept. They are whole numbers, so that both come out
/// as they do from the values themselves.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// 2^64 values of 2^64 ticks still fit.
    sum: u128,
    /// Modulo 2^128: the squares around the mean are smaller, and come out right if they fit themselves.
    squares: u128,
}

impl Sums {
    #[inline]
    pub fn record(&mut self, value: u64) {
        let value = u128::from(value);
        self.sum = self.sum.wrapping_add(value);
        self.squares = self.squares.wrapping_add(value * value);
    }

    pub fn add(&mut self, other: &Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.squares = self.squares.wrapping_add(other.squares);
    }

    /// `None` for no values.
    pub fn mean(&self, n: u64) -> Option<f64> {
        (n > 0).then(|| self.sum as f64 / n as f64)
    }

    /// The sample standard deviation of `n` values between `min` and `max`; `None` for fewer than two, and for values that
    /// never came from a run, whose squares do not fit.
    pub fn stddev(&self, n: u64, min: u64, max: u64) -> Option<f64> {
        let mean = self.mean(n).filter(|_| n > 1)?;
        // No values have a larger variance around their mean: R. Bhatia and C. Davis, "A Better Bound on the Variance",
        // American Mathematical Monthly 107, 2000. Half of the room is left to rounding.
        let largest = n as f64 * ((mean - min as f64) * (max as f64 - mean) + 1.0);
        if largest >= 2f64.powi(127) {
            return None;
        }
        let pivot = mean.round() as u64;
        let wide = u128::from(pivot);
        // Σ(x − p)² = Σx² − 2pΣx + np²
        let squares = self.squares.wrapping_sub((2 * wide).wrapping_mul(self.sum));
        let squares = squares.wrapping_add((wide * wide).wrapping_mul(u128::from(n)));
        Some(deviation(squares, n, mean - pivot as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantile_of_one_sample_is_that_sample() {
        assert_eq!(nearest_rank(&[7], 1), Some(7));
        assert_eq!(nearest_rank(&[7], 50_000), Some(7));
        assert_eq!(nearest_rank(&[7], 99_999), Some(7));
        assert_eq!(nearest_rank::<u64>(&[], 50_000), None);
    }

    #[test]
    fn ranks_are_those_of_the_textbook() {
        let sorted: Vec<u64> = vec![15, 20, 35, 40, 50];
        for (q, value) in [(5_000, 15), (30_000, 20), (40_000, 20), (50_000, 35), (100_000, 50)] {
            assert_eq!(nearest_rank(&sorted, q), Some(value), "{q}");
        }
    }

    #[test]
    fn a_percentile_that_the_samples_cannot_support_is_null() {
        let sorted: Vec<u64> = (1..=1000).collect();
        let summary = Summary::of_sorted(&sorted, 1.0);
        assert_eq!(summary.percentiles.p99_9, Some(999.0));
        assert_eq!(summary.percentiles.p99_99, None);
        let one = Summary::of_sorted(&[5], 1.0);
        assert_eq!((one.n, one.min, one.mean, one.stddev, one.percentiles.p50), (1, Some(5.0), Some(5.0), None, None));
        assert_eq!(Summary::of_sorted(&[], 1.0), Summary::default());
    }

    #[test]
    fn spread_of_values_far_from_zero_is_exact() {
        let offset = 1 << 50;
        let values = [2u64, 4, 4, 4, 5, 5, 7, 9].map(|value| value + offset);
        let summary = Summary::of_sorted(&values, 1.0);
        assert!((summary.stddev.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-3, "{summary:?}");
    }

    #[test]
    fn the_largest_ticks_do_not_overflow() {
        let summary = Summary::of_sorted(&[0, u64::MAX, u64::MAX], 1.0);
        assert!(summary.mean.unwrap().is_finite() && summary.stddev.unwrap().is_finite());
    }

    #[test]
    fn ticks_are_scaled_to_nanoseconds() {
        let summary = Summary::of_sorted(&[100, 200], 2.0);
        assert_eq!((summary.min, summary.max, summary.mean), (Some(50.0), Some(100.0), Some(75.0)));
    }

    fn sums(values: &[u64]) -> Sums {
        let mut sums = Sums::default();
        values.iter().for_each(|&value| sums.record(value));
        sums
    }

    #[test]
    fn sums_of_values_that_never_came_from_a_run_have_no_deviation() {
        let values = [0, u64::MAX, u64::MAX, 0, 0];
        assert_eq!(sums(&values).stddev(5, 0, u64::MAX), None);
        assert_eq!(
            (sums(&[]).mean(0), sums(&[]).stddev(0, u64::MAX, 0), sums(&[7]).stddev(1, 7, 7)),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn sums_give_mean_and_deviation_as_the_values_do(
            values in proptest::collection::vec(0u64..1 << 50, 2..200), offset in 0u64..1 << 63,
        ) {
            let values: Vec<u64> = values.iter().map(|value| value + offset).collect();
            let (min, max) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
            let (sums, n) = (sums(&values), values.len() as u64);
            prop_assert_eq!(sums.mean(n), mean(&values));
            prop_assert_eq!(sums.stddev(n, min, max), stddev(&values, mean(&values).unwrap()));
        }

        #[test]
        fn percentiles_are_samples_in_order(mut values in proptest::collection::vec(0u64..1 << 40, 1..500)) {
            values.sort_unstable();
            let mut last = values[0];
            for q in [0, 1_000, 25_000, 50_000, 75_000, 99_000, 99_999, 100_000] {
                let value = nearest_rank(&values, q).unwrap();
                prop_assert!(values.binary_search(&value).is_ok());
                prop_assert!(value >= last);
                last = value;
            }
            prop_assert_eq!(last, *values.last().unwrap());
        }

        #[test]
        fn the_rank_is_the_smallest_that_covers_the_share(n in 1usize..2000, q in 1u64..=100_000) {
            let values: Vec<u64> = (1..=n as u64).collect();
            let rank = nearest_rank(&values, q).unwrap();
            prop_assert!(u128::from(rank) * 100_000 >= n as u128 * u128::from(q));
            prop_assert!(rank == 1 || u128::from(rank - 1) * 100_000 < n as u128 * u128::from(q));
        }
    }
}
