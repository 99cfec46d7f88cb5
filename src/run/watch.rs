//! `--watch`: figures of a point while it is measured, for all of its jobs together.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    stats::{Durations, Scale, Summary},
    timing::Stamps,
    units::{format_count, format_ns},
};

/// Latencies so far. The threads that take samples from the measuring ones add them, the monitor reads.
#[derive(Clone)]
pub(super) struct Watch(Arc<Mutex<Durations>>);

impl Watch {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Durations::new())))
    }

    /// Memory in use in bytes.
    pub fn bytes(&self) -> usize {
        self.durations().bytes()
    }

    /// Takes finished samples.
    pub fn add<S: Stamps>(&self, samples: &[S]) {
        self.durations().extend(samples.iter().map(|sample| sample.stop().saturating_sub(sample.start())));
    }

    /// A line on what there is so far. Percentiles are at most 0.1 % above the sample of nearest rank.
    pub fn line(&self, scale: Scale) -> String {
        describe(&self.durations().summary(scale))
    }

    fn durations(&self) -> std::sync::MutexGuard<'_, Durations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe(latency: &Summary) -> String {
    let figure = |value: Option<f64>| value.map_or_else(|| "–".into(), format_ns);
    let (p, n) = (&latency.percentiles, format_count(latency.n));
    format!("{n} commands, p50 {}, p99 {}, max {}", figure(p.p50), figure(p.p99), figure(latency.max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Sample;

    #[test]
    fn the_line_has_the_figures_of_all_samples_so_far() {
        let watch = Watch::new();
        assert_eq!(watch.line(Scale::of(1.0)), "0 commands, p50 –, p99 –, max –");
        let samples: Vec<_> = (1..=200).map(|n| Sample { start: 1000 * n, stop: 1000 * n + n }).collect();
        let (first, second) = samples.split_at(70);
        watch.add(first);
        watch.clone().add(second);
        assert_eq!(watch.line(Scale::of(1.0)), "200 commands, p50 100.0 ns, p99 198.0 ns, max 200.0 ns");
    }
}
