//! Every figure of a run, from all of its samples or from a digest of them: what follows need not know which.

use super::{
    Beyond, Histogram, Outlier, Scale, Summary, Tail, Window,
    histogram::histogram,
    series::{outliers, timeline},
};
use crate::timing::{Sample, Stamps};

/// From the first command to the last one, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First hand-over.
    pub first_start: u64,
    /// Last hand-over.
    pub last_start: u64,
    /// Last completion.
    pub last_stop: u64,
    /// All latencies together. By the time elapsed it is the number of commands in flight, on average.
    pub busy: u128,
}

impl Span {
    /// Of no sample so far, in a run that begins with `first`.
    pub(super) fn before<S: Stamps>(first: &S) -> Self {
        Self { first_start: first.start(), last_start: first.start(), last_stop: first.stop(), busy: 0 }
    }

    #[inline]
    pub(super) fn add<S: Stamps>(&mut self, sample: &S) {
        let (start, stop) = (sample.start(), sample.stop());
        self.first_start = self.first_start.min(start);
        self.last_start = self.last_start.max(start);
        self.last_stop = self.last_stop.max(stop);
        self.busy = self.busy.saturating_add(u128::from(stop.saturating_sub(start)));
    }

    /// From the first hand-over of both to the last one.
    pub(super) fn with(self, other: &Self) -> Self {
        Self {
            first_start: self.first_start.min(other.first_start),
            last_start: self.last_start.max(other.last_start),
            last_stop: self.last_stop.max(other.last_stop),
            busy: self.busy.saturating_add(other.busy),
        }
    }

    /// `None` for no samples.
    pub fn of<S: Stamps>(samples: &[S]) -> Option<Self> {
        let mut span = Self::before(samples.first()?);
        samples.iter().for_each(|sample| span.add(sample));
        Some(span)
    }

    /// From the first hand-over to the last completion.
    pub fn elapsed(&self) -> u64 {
        self.last_stop.saturating_sub(self.first_start)
    }
}

/// The figures of one point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Latency of a command.
    pub latency: Summary,
    /// Hand-over alone, where it was stamped.
    pub submit: Option<Summary>,
    /// From hand-over to completion, where that was stamped.
    pub wait: Option<Summary>,
    /// From the intended start to completion, where there was a timetable.
    pub response: Option<Summary>,
    /// From the intended start to the actual one, where there was a timetable.
    pub late: Option<Summary>,
    /// Distribution of the latency.
    pub histogram: Histogram,
    /// The largest samples, largest first.
    pub outliers: Vec<Outlier>,
    /// Start and stop of the outliers, in ticks and in the same order.
    pub slowest: Vec<Sample>,
    /// The run in windows of equal length.
    pub timeline: Vec<Window>,
    /// The tail; `None` where no percentile for it is supported.
    pub beyond: Option<Beyond>,
    /// From the first command to the last one; `None` where there was none.
    pub span: Option<Span>,
}

impl Figures {
    /// Computes them from all samples, in the order of their completion, exactly; `most` outliers are looked for.
    pub fn of_samples<S: Stamps>(samples: &[S], most: usize, scale: Scale) -> Self {
        let sorted = |ticks: fn(&S) -> u64| {
            let mut values: Vec<u64> = samples.iter().map(ticks).collect();
            values.sort_unstable();
            values
        };
        // Either all samples have the stamp between or none.
        let phased = samples.first().is_some_and(|sample| sample.submitted().is_some());
        let phase = |ticks| phased.then(|| Summary::of_sorted(&sorted(ticks), scale.latency));
        let paced = samples.first().is_some_and(|sample| sample.intended().is_some());
        let timed = |ticks| paced.then(|| Summary::of_sorted(&sorted(ticks), scale.latency));
        let latencies = sorted(|sample| sample.stop().saturating_sub(sample.start()));
        let latency = Summary::of_sorted(&latencies, scale.latency);
        let outliers = outliers(samples, most, scale);
        let stamps = |outlier: &Outlier| samples.get(outlier.index as usize);
        let slowest = outliers.iter().filter_map(stamps);
        Self {
            beyond: Beyond::of_sorted(&latencies, scale.latency, &latency),
            latency,
            submit: phase(|sample| sample.submitted().unwrap_or(sample.start()).saturating_sub(sample.start())),
            wait: phase(|sample| sample.stop().saturating_sub(sample.submitted().unwrap_or(sample.start()))),
            response: timed(|sample| sample.stop().saturating_sub(sample.intended().unwrap_or(sample.start()))),
            late: timed(|sample| sample.start().saturating_sub(sample.intended().unwrap_or(sample.start()))),
            histogram: histogram(&latencies, scale.latency),
            slowest: slowest.map(|sample| Sample { start: sample.start(), stop: sample.stop() }).collect(),
            outliers,
            timeline: timeline(samples, scale),
            span: Span::of(samples),
        }
    }

    /// The machine's part in the tail, from gaps heard over `window_ns`; see [`Tail::explain`].
    pub fn tail(&self, gaps: &[(f64, u64)], window_ns: f64) -> Option<Tail> {
        Tail::explain(self.beyond?, &self.latency, gaps, window_ns)
    }
}
