//! The samples of one job once they are taken: all of them, or a digest.

use crate::{
    measure::{Depths, Stamped},
    report::samples::Row,
    stats::{Digest, Figures, Scale, round_picoseconds},
    timing::{PacedSample, PhasedSample, Sample, Stamps},
};

/// Outliers kept of a run.
pub(super) const OUTLIERS: usize = 10;

/// What a point is made from, where several jobs make one.
pub(super) struct Raw {
    pub samples: Samples,
    pub depths: Depths,
}

/// What became of all samples of a job, by the number of their stamps.
pub(super) enum Samples {
    Plain(Vec<Sample>),
    Phased(Vec<PhasedSample>),
    Paced(Vec<PacedSample>),
    /// Too many to keep them.
    Digest(Box<Digest>),
}

/// A sample that can be kept under its own kind.
pub(super) trait Kind: Stamped + Send + 'static {
    /// Puts them into the kind.
    fn kept(samples: Vec<Self>) -> Samples;
}

impl Kind for Sample {
    fn kept(samples: Vec<Self>) -> Samples {
        Samples::Plain(samples)
    }
}

impl Kind for PhasedSample {
    fn kept(samples: Vec<Self>) -> Samples {
        Samples::Phased(samples)
    }
}

impl Kind for PacedSample {
    fn kept(samples: Vec<Self>) -> Samples {
        Samples::Paced(samples)
    }
}

impl Samples {
    /// All figures of them.
    pub fn figures(&self, scale: Scale) -> Figures {
        match self {
            Self::Plain(samples) => Figures::of_samples(samples, OUTLIERS, scale),
            Self::Phased(samples) => Figures::of_samples(samples, OUTLIERS, scale),
            Self::Paced(samples) => Figures::of_samples(samples, OUTLIERS, scale),
            Self::Digest(digest) => digest.figures(scale),
        }
    }

    /// How many there are, and the first hand-over in ticks. `None` where they were not kept.
    pub fn extent(&self) -> Option<(u64, Option<u64>)> {
        fn of<S: Stamps>(samples: &[S]) -> Option<(u64, Option<u64>)> {
            Some((samples.len() as u64, samples.iter().map(Stamps::start).min()))
        }
        match self {
            Self::Plain(samples) => of(samples),
            Self::Phased(samples) => of(samples),
            Self::Paced(samples) => of(samples),
            Self::Digest(_) => None,
        }
    }

    /// One row for each of them, with times from `origin`; none where they were not kept. Only with `phases` is the end of
    /// the hand-over of interest.
    pub fn rows(&self, job: u32, origin: u64, scale: Scale, phases: bool) -> Box<dyn Iterator<Item = Row> + '_> {
        let to_row = move |(op, sample)| row(sample, op, job, origin, scale, phases);
        match self {
            Self::Plain(samples) => Box::new((0..).zip(samples.iter().map(stamps)).map(to_row)),
            Self::Phased(samples) => Box::new((0..).zip(samples.iter().map(stamps)).map(to_row)),
            Self::Paced(samples) => Box::new((0..).zip(samples.iter().map(stamps)).map(to_row)),
            Self::Digest(_) => Box::new(std::iter::empty()),
        }
    }

    /// The samples of all jobs of a point. Jobs that kept theirs stay exact as long as all did.
    pub fn join(all: Vec<Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let first = all.next()?;
        Some(all.fold(first, Self::with))
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Plain(mut own), Self::Plain(other)) => {
                own.extend(other);
                Self::Plain(own)
            }
            (Self::Phased(mut own), Self::Phased(other)) => {
                own.extend(other);
                Self::Phased(own)
            }
            (Self::Paced(mut own), Self::Paced(other)) => {
                own.extend(other);
                Self::Paced(own)
            }
            (own, other) => {
                let mut digest = own.into_digest();
                digest.merge(&other.into_digest());
                Self::Digest(digest)
            }
        }
    }

    /// The same as a digest.
    pub fn into_digest(self) -> Box<Digest> {
        fn of<S: Stamps>(samples: &[S]) -> Box<Digest> {
            let mut digest = Box::new(Digest::new(OUTLIERS));
            digest.fold(samples);
            digest
        }
        match self {
            Self::Plain(samples) => of(&samples),
            Self::Phased(samples) => of(&samples),
            Self::Paced(samples) => of(&samples),
            Self::Digest(digest) => digest,
        }
    }
}

/// Stamps of any kind of sample.
type AnyStamps = (u64, Option<u64>, u64, Option<u64>);

fn stamps<S: Stamps>(sample: &S) -> AnyStamps {
    (sample.start(), sample.submitted(), sample.stop(), sample.intended())
}

fn row(stamps: AnyStamps, op: u64, job: u32, origin: u64, scale: Scale, phases: bool) -> Row {
    let (start, submitted, stop, intended) = stamps;
    let ns = |from: u64, to: u64| round_picoseconds(to.saturating_sub(from) as f64 / scale.latency);
    let submitted = submitted.filter(|_| phases);
    Row {
        start_ns: round_picoseconds(start.saturating_sub(origin) as f64 / scale.time),
        latency_ns: ns(start, stop),
        submit_ns: submitted.map(|submitted| ns(start, submitted)),
        wait_ns: submitted.map(|submitted| ns(submitted, stop)),
        response_ns: intended.map(|intended| ns(intended, stop)),
        job,
        op,
    }
}
