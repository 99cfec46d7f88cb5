//! How far a run is, as its client tells it with each heartbeat, and what follows from that.
//!
//! A server has these numbers from a stranger: nothing here may assume that they fit together.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// More commands in a second than any path carries: what is beyond it is no rate.
const MOST_OPS_PER_S: f64 = 1e12;

/// How far a run is. What an older client does not tell is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Commands done, warm-up included.
    pub done: u64,
    /// Commands to do, warm-up included; a run that ends by time alone has no total.
    pub total: Option<u64>,
    /// Time since the warm-up was over, in nanoseconds; `None` before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    /// Longest time that may become, in nanoseconds; `None` for a run that ends by count alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_ns: Option<u64>,
    /// Commands per second since the heartbeat before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops_per_s: Option<f64>,
}

impl Progress {
    /// The part of the run that is done, from 0 to 1, by the limit that is nearer; `None` where there is no limit.
    pub fn fraction(&self) -> Option<f64> {
        let part = |done: u64, all: Option<u64>| {
            let all = all.filter(|&all| all > 0)?;
            Some((done as f64 / all as f64).min(1.0))
        };
        let by_count = part(self.done, self.total);
        let by_time = part(self.elapsed_ns.unwrap_or(0), self.limit_ns);
        by_count.into_iter().chain(by_time).reduce(f64::max)
    }

    /// The time until the limit that is reached first, at a rate of `ops_per_s`; `None` where nothing tells.
    pub fn remaining(&self, ops_per_s: Option<f64>) -> Option<Duration> {
        let to_do = self.total.filter(|&total| total > 0).map(|total| total.saturating_sub(self.done));
        let rate = ops_per_s.and_then(believable_rate).filter(|&rate| rate > 0.0);
        let by_count = to_do.zip(rate).and_then(|(to_do, rate)| Duration::try_from_secs_f64(to_do as f64 / rate).ok());
        let limit = self.limit_ns.filter(|&limit| limit > 0);
        let by_time = limit.map(|limit| Duration::from_nanos(limit.saturating_sub(self.elapsed_ns.unwrap_or(0))));
        by_count.into_iter().chain(by_time).min()
    }
}

/// Commands per second, if the number can be that.
pub fn believable_rate(ops_per_s: f64) -> Option<f64> {
    Some(ops_per_s).filter(|rate| (0.0..=MOST_OPS_PER_S).contains(rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn by_count(done: u64, total: u64) -> Progress {
        Progress { done, total: Some(total), ..Progress::default() }
    }

    fn by_time(elapsed_ns: u64, limit_ns: u64) -> Progress {
        Progress { elapsed_ns: Some(elapsed_ns), limit_ns: Some(limit_ns), ..Progress::default() }
    }

    #[test]
    fn the_nearer_limit_says_how_far_a_run_is() {
        assert_eq!(by_count(25, 100).fraction(), Some(0.25));
        assert_eq!(by_time(SECOND, 4 * SECOND).fraction(), Some(0.25));
        let both = Progress { done: 50, total: Some(100), ..by_time(SECOND, 4 * SECOND) };
        assert_eq!(both.fraction(), Some(0.5));
        // Before the warm-up is over no time counts.
        assert_eq!(Progress { limit_ns: Some(SECOND), ..Progress::default() }.fraction(), Some(0.0));
    }

    #[test]
    fn a_run_is_never_more_than_done() {
        assert_eq!(by_count(4778, 1000).fraction(), Some(1.0));
        assert_eq!(by_count(u64::MAX, 1).fraction(), Some(1.0));
        assert_eq!(by_time(u64::MAX, 1).fraction(), Some(1.0));
        assert_eq!(by_count(4778, 1000).remaining(Some(10.0)), Some(Duration::ZERO));
    }

    #[test]
    fn without_a_limit_nothing_is_known() {
        for progress in [Progress { done: 7, ..Progress::default() }, by_count(7, 0), by_time(7, 0)] {
            assert_eq!((progress.fraction(), progress.remaining(Some(10.0))), (None, None), "{progress:?}");
        }
    }

    #[test]
    fn the_time_left_is_that_until_the_first_limit() {
        assert_eq!(by_count(40, 100).remaining(Some(10.0)), Some(Duration::from_secs(6)));
        assert_eq!(by_time(SECOND, 4 * SECOND).remaining(None), Some(Duration::from_secs(3)));
        let both = Progress { done: 90, total: Some(100), ..by_time(SECOND, 4 * SECOND) };
        assert_eq!(both.remaining(Some(10.0)), Some(Duration::from_secs(1)));
        assert_eq!(both.remaining(None), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_rate_that_is_none_tells_no_time() {
        for rate in [0.0, -0.0, -1.0, 1e13, f64::MAX, f64::INFINITY, f64::NAN] {
            assert_eq!(by_count(1, 100).remaining(Some(rate)), None, "{rate}");
        }
        assert_eq!(by_count(0, u64::MAX).remaining(Some(f64::MIN_POSITIVE)), None);
    }

    #[test]
    fn a_client_that_knows_less_or_more_is_understood() {
        let older: Progress = serde_json::from_str(r#"{"done":5,"total":null}"#).unwrap();
        assert_eq!(older, Progress { done: 5, ..Progress::default() });
        let later: Progress =
            serde_json::from_str(r#"{"done":5,"total":10,"colour":"red","ops_per_s":1e308}"#).unwrap();
        assert_eq!(later, Progress { ops_per_s: Some(1e308), ..by_count(5, 10) });
        // A server of before reads what it knows.
        assert_eq!(serde_json::to_string(&by_count(5, 10)).unwrap(), r#"{"done":5,"total":10}"#);
    }

    proptest! {
        #[test]
        fn no_numbers_overflow(done: u64, total: Option<u64>, elapsed_ns: Option<u64>, limit_ns: Option<u64>, rate: f64) {
            let progress = Progress { done, total, elapsed_ns, limit_ns, ops_per_s: Some(rate) };
            prop_assert!(progress.fraction().is_none_or(|part| (0.0..=1.0).contains(&part)));
            let _ = progress.remaining(Some(rate));
        }
    }
}
