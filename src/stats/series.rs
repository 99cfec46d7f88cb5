//! Samples in the order of time: the largest ones with their place, windows over the run, and the rate in them.

use std::{cmp::Reverse, collections::BinaryHeap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Scale,
    summary::{nearest_rank, round_picoseconds, supported},
};
use crate::{
    host::{Cause, Nearby},
    schema::added_later,
    timing::Stamps,
};

/// Windows that a run is divided into.
const WINDOWS: u64 = 100;

/// One of the largest samples.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = added_later(&["job", "nearby", "cause"]))]
pub struct Outlier {
    /// Index of the command in the order of completion, from 0.
    pub index: u64,
    /// The job that issued it, from 0; null where there is one only.
    pub job: Option<u32>,
    /// When it was handed over, ns since the first measured command.
    #[schemars(range(min = 0))]
    pub at_ns: f64,
    /// How long it took, ns.
    #[schemars(range(min = 0))]
    pub latency_ns: f64,
    /// What changed around it; null where nobody looked.
    pub nearby: Option<Nearby>,
    /// What may have caused it: only what was counted nearby and could have taken that long. Null if there is nothing.
    pub cause: Option<Cause>,
}

/// The commands that began within one hundredth of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Start of the window, ns since the first measured command.
    #[schemars(range(min = 0))]
    pub at_ns: f64,
    /// Commands that began in it.
    pub n: u64,
    /// Median, ns; null for fewer than 2 commands.
    #[schemars(range(min = 0))]
    pub p50_ns: Option<f64>,
    /// 99th percentile, ns; null for fewer than 100 commands.
    #[schemars(range(min = 0))]
    pub p99_ns: Option<f64>,
    /// Largest, ns; null for no command.
    #[schemars(range(min = 0))]
    pub max_ns: Option<f64>,
}

/// Commands per second over the windows of the timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Length of a window, ns.
    #[schemars(range(min = 0))]
    pub window_ns: f64,
    /// Slowest window, 1/s.
    #[schemars(range(min = 0))]
    pub min: Option<f64>,
    /// Fastest window, 1/s.
    #[schemars(range(min = 0))]
    pub max: Option<f64>,
    /// Mean over the windows, 1/s.
    #[schemars(range(min = 0))]
    pub mean: Option<f64>,
    /// Standard deviation over the windows, 1/s.
    #[schemars(range(min = 0))]
    pub stddev: Option<f64>,
}

/// The `most` largest samples, largest first; of equal ones the earlier first.
pub fn outliers<S: Stamps>(samples: &[S], most: usize, scale: Scale) -> Vec<Outlier> {
    // Where several commands are in flight the first to complete need not be the first that was handed over.
    let Some(origin) = samples.iter().map(Stamps::start).min() else { return Vec::new() };
    // The smallest of the largest ones is on top, so that each sample is compared with one other.
    let mut largest = BinaryHeap::with_capacity(most + 1);
    for (index, sample) in samples.iter().enumerate() {
        largest.push(Reverse((sample.stop().saturating_sub(sample.start()), Reverse(index))));
        if largest.len() > most {
            largest.pop();
        }
    }
    let outlier = |Reverse((latency, Reverse(index))): Reverse<(u64, Reverse<usize>)>| Outlier {
        index: index as u64,
        job: None,
        at_ns: round_picoseconds((samples[index].start() - origin) as f64 / scale.time),
        latency_ns: round_picoseconds(latency as f64 / scale.latency),
        nearby: None,
        cause: None,
    };
    largest.into_sorted_vec().into_iter().map(outlier).collect()
}

/// The run in up to 100 windows of equal length, none left out, even those in which no command began.
///
/// Where commands overtook each other, so that samples are not in the order in which they began, it takes a copy of them.
pub fn timeline<S: Stamps>(samples: &[S], scale: Scale) -> Vec<Window> {
    if samples.is_sorted_by_key(Stamps::start) {
        return in_windows(samples, scale);
    }
    let mut by_start = samples.to_vec();
    by_start.sort_by_key(Stamps::start);
    in_windows(&by_start, scale)
}

fn in_windows<S: Stamps>(samples: &[S], scale: Scale) -> Vec<Window> {
    let Some(origin) = samples.first().map(Stamps::start) else { return Vec::new() };
    let stop = samples.iter().map(Stamps::stop).max().unwrap_or(origin);
    let elapsed = stop.saturating_sub(origin);
    let length = elapsed.saturating_add(1).div_ceil(WINDOWS);
    let ns = |ticks: u64| round_picoseconds(ticks as f64 / scale.latency);
    let mut windows = Vec::new();
    let mut rest = samples;
    let mut latencies = Vec::new();
    for number in 0..elapsed / length + 1 {
        let end = origin.saturating_add((number + 1).saturating_mul(length));
        let count = rest.partition_point(|sample| sample.start() < end);
        let (inside, after) = rest.split_at(count);
        rest = after;
        latencies.clear();
        latencies.extend(inside.iter().map(|sample| sample.stop().saturating_sub(sample.start())));
        latencies.sort_unstable();
        let percentile = |q| if supported(count as u64, q) { nearest_rank(&latencies, q).map(ns) } else { None };
        windows.push(Window {
            at_ns: round_picoseconds((number * length) as f64 / scale.time),
            n: count as u64,
            p50_ns: percentile(50_000),
            p99_ns: percentile(99_000),
            max_ns: latencies.last().copied().map(ns),
        });
    }
    windows
}

/// Commands per second in each window of a timeline of the run's length, summarised.
pub fn windowed_rate(timeline: &[Window]) -> Interval {
    // The last window is as long as the others only by accident; one alone says nothing about variation.
    let [first, second, ..] = timeline else { return Interval::default() };
    let window_ns = second.at_ns - first.at_ns;
    let rates: Vec<f64> = timeline[..timeline.len() - 1].iter().map(|w| w.n as f64 * 1e9 / window_ns).collect();
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    Interval {
        window_ns,
        min: rates.iter().copied().reduce(f64::min),
        max: rates.iter().copied().reduce(f64::max),
        mean: Some(mean),
        stddev: (rates.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Sample;

    fn back_to_back(latencies: &[u64]) -> Vec<Sample> {
        let mut now = 1000;
        let mut sample = |&latency: &u64| {
            let start = now;
            now += latency;
            Sample { start, stop: now }
        };
        latencies.iter().map(&mut sample).collect()
    }

    #[test]
    fn outliers_are_the_largest_with_their_place_and_time() {
        let samples = back_to_back(&[10, 50, 10, 90, 50]);
        let found = outliers(&samples, 3, Scale::of(1.0));
        let places: Vec<_> = found.iter().map(|o| (o.index, o.at_ns, o.latency_ns)).collect();
        assert_eq!(places, [(3, 70.0, 90.0), (1, 10.0, 50.0), (4, 160.0, 50.0)]);
        assert_eq!(outliers::<Sample>(&[], 10, Scale::of(1.0)), []);
    }

    #[test]
    fn every_command_is_in_one_window_even_around_a_stall() {
        let mut latencies = vec![10; 1000];
        latencies[500] = 50_000;
        let windows = timeline(&back_to_back(&latencies), Scale::of(1.0));
        assert!(windows.len() <= 100, "{}", windows.len());
        assert_eq!(windows.iter().map(|window| window.n).sum::<u64>(), 1000);
        assert!(windows.iter().any(|window| window.n == 0 && window.p50_ns.is_none()));
        assert_eq!(windows.iter().filter_map(|window| window.max_ns).fold(0.0, f64::max), 50_000.0);
    }

    #[test]
    fn commands_that_were_overtaken_are_where_they_began() {
        let samples = [(100, 110), (0, 199), (150, 190)].map(|(start, stop)| Sample { start, stop });
        let windows = timeline(&samples, Scale::of(1.0));
        let begun: Vec<_> = windows.iter().filter(|window| window.n > 0).map(|w| (w.at_ns, w.n, w.max_ns)).collect();
        assert_eq!(begun, [(0.0, 1, Some(199.0)), (100.0, 1, Some(10.0)), (150.0, 1, Some(40.0))]);
        let found: Vec<_> = outliers(&samples, 2, Scale::of(1.0)).iter().map(|o| (o.index, o.at_ns)).collect();
        assert_eq!(found, [(1, 0.0), (2, 150.0)]);
    }

    #[test]
    fn a_steady_run_has_a_steady_rate() {
        let windows = timeline(&back_to_back(&[100; 10_000]), Scale::of(1.0));
        let rate = windowed_rate(&windows);
        assert!((rate.mean.unwrap() - 1e7).abs() < 2e5, "{rate:?}");
        assert_eq!(windowed_rate(&[]), Interval::default());
    }

    #[test]
    fn one_command_makes_one_window() {
        let windows = timeline(&[Sample { start: 5, stop: 5 }], Scale::of(1.0));
        assert_eq!(windows.len(), 1);
        assert_eq!((windows[0].n, windows[0].max_ns), (1, Some(0.0)));
    }
}
