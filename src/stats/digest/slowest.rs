//! The largest samples of a run, each with its place in it.

use crate::{
    stats::{Outlier, Scale, summary::round_picoseconds},
    timing::Sample,
};

/// One of the largest samples.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    latency: u64,
    index: u64,
    stamps: Sample,
}

/// Largest first; of equal ones the earlier first.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Slowest {
    most: usize,
    places: Vec<Place>,
}

impl Slowest {
    pub fn new(most: usize) -> Self {
        Self { most, places: Vec::with_capacity(most) }
    }

    /// Takes a sample that comes after all those before it.
    #[inline]
    pub fn offer(&mut self, latency: u64, index: u64, stamps: Sample) {
        // Nearly every sample of a long run ends here, which costs one comparison.
        let full = self.places.len() >= self.most;
        if full && self.places.last().is_none_or(|least| latency <= least.latency) {
            return;
        }
        self.insert(Place { latency, index, stamps });
    }

    #[cold]
    fn insert(&mut self, place: Place) {
        let at = self.places.partition_point(|kept| kept.latency >= place.latency);
        if self.places.len() >= self.most {
            self.places.pop();
        }
        self.places.insert(at, place);
    }

    /// Takes samples that come after `n` others, which these have seen.
    pub fn merge(&mut self, other: &Self, n: u64) {
        for place in &other.places {
            self.offer(place.latency, place.index.saturating_add(n), place.stamps);
        }
    }

    pub fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }

    /// With times since `origin`, in ticks.
    pub fn outliers(&self, origin: u64, scale: Scale) -> Vec<Outlier> {
        let outlier = |place: &Place| Outlier {
            index: place.index,
            job: None,
            at_ns: round_picoseconds(place.stamps.start.saturating_sub(origin) as f64 / scale.time),
            latency_ns: round_picoseconds(place.latency as f64 / scale.latency),
            nearby: None,
            cause: None,
        };
        self.places.iter().map(outlier).collect()
    }

    pub fn stamps(&self) -> Vec<Sample> {
        self.places.iter().map(|place| place.stamps).collect()
    }
}
