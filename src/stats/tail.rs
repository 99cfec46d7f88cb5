//! How much of a tail the machine alone would make: gaps that a spin has heard, against commands beyond a percentile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Summary;

/// The tail of a distribution, and the machine's part in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// The percentile that the tail begins above: 99.9, or 99 where there are too few samples for that.
    #[schemars(extend("enum" = [99, 99.9]))]
    pub percentile: f64,
    /// Its value, ns.
    #[schemars(range(min = 0))]
    pub threshold_ns: f64,
    /// Commands above it.
    #[schemars(range(min = 1))]
    pub commands: u64,
    /// Gaps heard before the run that are at least as long as threshold less median.
    pub gaps_heard: u64,
    /// Share of these commands that gaps of that length, coming as often as heard, would make by themselves.
    #[schemars(range(min = 0, max = 1))]
    pub explained_fraction: f64,
    /// The share that one more gap in the window would have added: what the window can resolve.
    #[schemars(range(min = 0, max = 1))]
    pub resolution_fraction: f64,
}

/// Where a tail begins, and how many commands are in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beyond {
    /// As in [`Tail`].
    pub percentile: f64,
    /// As in [`Tail`].
    pub threshold_ns: f64,
    /// As in [`Tail`].
    pub commands: u64,
}

impl Beyond {
    /// The tail of a summary; `above` counts the samples above a latency in nanoseconds. `None` where no percentile is
    /// supported.
    pub fn of(summary: &Summary, above: impl FnOnce(f64) -> u64) -> Option<Self> {
        let p = &summary.percentiles;
        let (percentile, threshold_ns) = match (p.p99_9, p.p99) {
            (Some(value), _) => (99.9, value),
            (None, Some(value)) => (99.0, value),
            (None, None) => return None,
        };
        Some(Self { percentile, threshold_ns, commands: above(threshold_ns) })
    }

    /// As [`Beyond::of`], from the samples in ticks, sorted.
    pub fn of_sorted(sorted: &[u64], scale_ticks_per_ns: f64, summary: &Summary) -> Option<Self> {
        // The threshold is a sample's own latency, rounded: back to the ticks that it came from, so that they are inside.
        let inside =
            |threshold_ns: f64| move |&ticks: &u64| ticks <= (threshold_ns * scale_ticks_per_ns).round() as u64;
        Self::of(summary, |threshold_ns| (sorted.len() - sorted.partition_point(inside(threshold_ns))) as u64)
    }
}

impl Tail {
    /// As [`Tail::explain`], from the samples in ticks, sorted.
    pub fn of(
        sorted: &[u64],
        scale_ticks_per_ns: f64,
        summary: &Summary,
        gaps: &[(f64, u64)],
        window_ns: f64,
    ) -> Option<Self> {
        Self::explain(Beyond::of_sorted(sorted, scale_ticks_per_ns, summary)?, summary, gaps, window_ns)
    }

    /// Compares a tail with gaps heard over `window_ns`: lower bounds of their lengths in nanoseconds, and how many there
    /// were.
    ///
    /// A gap that begins while a command is in flight makes that command longer by what is left of it, so gaps of at least
    /// the excess, at the rate heard, hit as many commands as begin within the time in flight. `None` where nothing lies in
    /// the tail.
    pub fn explain(beyond: Beyond, summary: &Summary, gaps: &[(f64, u64)], window_ns: f64) -> Option<Self> {
        let Beyond { percentile, threshold_ns, commands } = beyond;
        let (median, mean) = (summary.percentiles.p50?, summary.mean?);
        if commands == 0 || window_ns <= 0.0 {
            return None;
        }
        let excess = threshold_ns - median;
        let gaps_heard = gaps.iter().filter(|(lower, _)| *lower >= excess).map(|(_, count)| count).sum();
        let in_flight_ns = mean * summary.n as f64;
        let of = |gaps: f64| gaps / window_ns * in_flight_ns / commands as f64;
        Some(Self {
            percentile,
            threshold_ns,
            commands,
            gaps_heard,
            explained_fraction: of(gaps_heard as f64).min(1.0),
            resolution_fraction: of(1.0).min(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 commands of 1 µs, but ten of 11 µs.
    fn latencies() -> Vec<u64> {
        let mut all = vec![1_000; 9_990];
        all.extend([11_000; 10]);
        all
    }

    fn tail(sorted: &[u64], gaps: &[(f64, u64)], window_ns: f64) -> Option<Tail> {
        Tail::of(sorted, 1.0, &Summary::of_sorted(sorted, 1.0), gaps, window_ns)
    }

    #[test]
    fn gaps_that_come_often_enough_explain_the_tail_and_rarer_ones_a_part() {
        // The commands take 10.1 ms: ten gaps fall into that if one comes each 1.01 ms.
        let all = tail(&latencies(), &[(8_000.0, 7), (16_000.0, 10)], 10.1e6).unwrap();
        assert_eq!((all.percentile, all.threshold_ns, all.commands, all.gaps_heard), (99.9, 1_000.0, 10, 17));
        assert_eq!(all.explained_fraction, 1.0);
        let part = tail(&latencies(), &[(16_000.0, 5)], 10.1e6).unwrap();
        assert!((part.explained_fraction - 0.5).abs() < 1e-9, "{part:?}");
        assert!((part.resolution_fraction - 0.1).abs() < 1e-9, "{part:?}");
    }

    #[test]
    fn gaps_shorter_than_the_excess_explain_nothing() {
        let mut sorted = vec![1_000; 98];
        sorted.extend([50_000; 1]);
        sorted.extend([60_000; 1]);
        let tail = tail(&sorted, &[(32_000.0, 1_000)], 1e6).unwrap();
        assert_eq!((tail.percentile, tail.threshold_ns, tail.commands), (99.0, 50_000.0, 1));
        assert_eq!((tail.gaps_heard, tail.explained_fraction), (0, 0.0));
    }

    #[test]
    fn samples_at_the_threshold_are_not_above_it_at_any_rate_of_the_clock() {
        for rate in [2.1, 2.0949, 3.0, 0.999] {
            let sorted = latencies();
            let beyond = Beyond::of_sorted(&sorted, rate, &Summary::of_sorted(&sorted, rate)).unwrap();
            assert_eq!(beyond.commands, 10, "{rate}");
        }
    }

    #[test]
    fn a_tail_that_is_not_there_is_none() {
        assert_eq!(tail(&[1, 2, 3], &[], 1e6), None);
        assert_eq!(tail(&vec![5; 20_000], &[], 1e6), None);
        assert_eq!(tail(&latencies(), &[], 0.0), None);
    }
}
