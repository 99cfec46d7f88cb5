//! The figures of a run that is too long to keep every sample, in memory that is all there from the beginning.
//!
//! Number, smallest, largest, mean, deviation and the largest samples with their place are exact. Percentiles are at most
//! 0.1 % above the sample of nearest rank and never below it; see the methods for what else is rounded. Callers must have
//! made sure that the stamps of a sample are in order: where they are not, the difference counts as zero.

mod durations;
mod slowest;
mod windows;

#[cfg(test)]
mod tests;

pub use durations::Durations;
use slowest::Slowest;
use windows::Windows;

use super::{Beyond, Figures, Histogram, Outlier, Scale, Span, Summary, Window};
use crate::timing::{Sample, Stamps};

/// What is kept of samples, whatever their number. About 7 MB, most of it for the timeline; [`Digest::bytes`] says it exactly.
///
/// What is there for stamps that never come is not touched again, so that it takes no room in a cache.
#[derive(Clone, PartialEq)]
pub struct Digest {
    latency: Durations,
    submit: Durations,
    wait: Durations,
    response: Durations,
    late: Durations,
    slowest: Slowest,
    windows: Windows,
    /// `None` before the first sample.
    span: Option<Span>,
}

impl Digest {
    /// For samples yet to come, of which so many of the largest are kept. All memory is allocated and resident after this.
    pub fn new(outliers: usize) -> Self {
        let [latency, submit, wait, response, late] = [(); 5].map(|()| Durations::new());
        let (slowest, windows) = (Slowest::new(outliers), Windows::new());
        Self { latency, submit, wait, response, late, slowest, windows, span: None }
    }

    /// Memory in use in bytes, which stays the same.
    pub fn bytes(&self) -> usize {
        let tables = [&self.latency, &self.submit, &self.wait, &self.response, &self.late].map(Durations::bytes);
        size_of::<Self>() + tables.iter().sum::<usize>() + self.slowest.bytes() + self.windows.bytes()
    }

    /// Takes the next samples of the run, in the order of their completion. How they are divided between calls makes no
    /// difference.
    pub fn fold<S: Stamps>(&mut self, samples: &[S]) {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return };
        self.windows.cover(first.start(), last.stop());
        let before = self.n();
        // One pass for each, since that is faster than all at once.
        let latency = |sample: &S| sample.stop().saturating_sub(sample.start());
        self.latency.extend(samples.iter().map(latency));
        let submitted = || samples.iter().filter_map(|sample| Some((sample, sample.submitted()?)));
        self.submit.extend(submitted().map(|(sample, submitted)| submitted.saturating_sub(sample.start())));
        self.wait.extend(submitted().map(|(sample, submitted)| sample.stop().saturating_sub(submitted)));
        self.windows.extend(samples);
        let intended = || samples.iter().filter_map(|sample| Some((sample, sample.intended()?)));
        self.response.extend(intended().map(|(sample, intended)| sample.stop().saturating_sub(intended)));
        self.late.extend(intended().map(|(sample, intended)| sample.start().saturating_sub(intended)));
        let mut span = self.span.unwrap_or_else(|| Span::before(first));
        for (index, sample) in (before..).zip(samples) {
            let (start, stop) = (sample.start(), sample.stop());
            self.slowest.offer(latency(sample), index, Sample { start, stop });
            span.add(sample);
        }
        // A sample that is not in order may have ended after the last one.
        self.windows.cover(first.start(), span.last_stop);
        self.span = Some(span);
    }

    /// Takes what another thread of the same run has measured. Its commands are counted after those that are here already:
    /// an outlier's index is that of all samples of the one followed by all of the other. Both must keep equally many.
    ///
    /// All that is exact stays exact but for the timeline, where commands may be one window early unless both threads began
    /// at the same tick.
    pub fn merge(&mut self, other: &Self) {
        self.slowest.merge(&other.slowest, self.n());
        self.latency.merge(&other.latency);
        self.submit.merge(&other.submit);
        self.wait.merge(&other.wait);
        self.response.merge(&other.response);
        self.late.merge(&other.late);
        self.windows.merge(&other.windows);
        self.span = match (self.span, other.span) {
            (Some(own), Some(other)) => Some(own.with(&other)),
            (own, other) => own.or(other),
        };
    }

    /// Number of samples.
    pub fn n(&self) -> u64 {
        self.latency.n()
    }

    /// Of the latency. Percentiles are within 0.1 %, the rest is exact.
    pub fn summary(&self, scale: Scale) -> Summary {
        self.latency.summary(scale)
    }

    /// Of the latency. Buckets are of ticks, their bounds rounded to nanoseconds: a sample that rounds to the upper bound of a
    /// bucket may be in it.
    pub fn histogram(&self, scale: Scale) -> Histogram {
        self.latency.histogram(scale)
    }

    /// Where the tail begins, and how many samples are in it, exactly.
    pub fn beyond(&self, scale: Scale) -> Option<Beyond> {
        Beyond::of(&self.summary(scale), |threshold_ns| self.latency.above(threshold_ns, scale))
    }

    /// The largest samples, largest first; of equal ones the earlier first. Exact.
    pub fn outliers(&self, scale: Scale) -> Vec<Outlier> {
        self.slowest.outliers(self.span.map_or(0, |span| span.first_start), scale)
    }

    /// Start and stop of the outliers, in ticks and in the same order.
    pub fn slowest(&self) -> Vec<Sample> {
        self.slowest.stamps()
    }

    /// The run in up to 100 windows of equal length, 51 at least if it is not a very short one, none left out; their length in ticks is a power of two. Percentiles are
    /// at most 0.8 % above the sample of nearest rank; number and largest are exact.
    pub fn timeline(&self, scale: Scale) -> Vec<Window> {
        self.windows.timeline(scale)
    }

    /// From the first command to the last one; `None` where there was none.
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// All of it, in the shape that kept samples have.
    pub fn figures(&self, scale: Scale) -> Figures {
        let latency = self.summary(scale);
        // Of what had no stamps there are no figures.
        let of = |durations: &Durations| (durations.n() > 0).then(|| durations.summary(scale));
        Figures {
            beyond: Beyond::of(&latency, |threshold_ns| self.latency.above(threshold_ns, scale)),
            latency,
            submit: of(&self.submit),
            wait: of(&self.wait),
            response: of(&self.response),
            late: of(&self.late),
            histogram: self.histogram(scale),
            outliers: self.outliers(scale),
            slowest: self.slowest(),
            timeline: self.timeline(scale),
            span: self.span,
        }
    }
}
