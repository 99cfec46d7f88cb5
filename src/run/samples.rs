//! The samples of one job: kept one by one as far as there is room, folded into a digest beyond that.

use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::JoinHandle,
};

use crate::{
    error::{Error, Result},
    host::{CpuSet, cpu},
    measure::{Depths, Record, Stamped},
    probe::Load,
    report::samples::Row,
    stats::{Digest, Figures, Scale, round_picoseconds},
    timing::{PacedSample, PhasedSample, Sample, Stamps, filled},
};

/// Outliers kept of a run.
pub(super) const OUTLIERS: usize = 10;

/// Samples between two foldings, of all jobs together: some tens of milliseconds of the fastest commands.
const PIECE: usize = 1 << 18;

/// Fewest of one job.
const LEAST_PIECE: usize = 1 << 12;

/// Pieces in use: one is filled while another is folded, and one is ready in between.
const PIECES: usize = 3;

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

    fn into_digest(self) -> Box<Digest> {
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

/// Takes the samples of a job. Once its room is used up, all of them go to a thread that folds them into a digest, a piece at
/// a time, so that the measuring one goes on meanwhile.
pub(super) struct Recorder<S> {
    current: Vec<S>,
    taken: usize,
    /// Room that commands in flight may still need.
    spare: usize,
    /// Samples of a piece, once they are folded.
    piece: usize,
    order: Order,
    folding: Option<Folding<S>>,
    /// Whether samples have gone to the thread.
    folded: bool,
}

struct Folding<S> {
    full: SyncSender<(Vec<S>, usize)>,
    empty: Receiver<Vec<S>>,
    thread: JoinHandle<Result<Box<Digest>>>,
}

impl<S: Kind> Recorder<S> {
    /// Keeps `kept` samples of a job with this load. If the run `may_last` longer than that, a thread on `others` stands by.
    ///
    /// # Errors
    /// The errno of `pthread_create`.
    pub fn new(kept: usize, load: &Load, may_last: bool, others: &CpuSet) -> Result<Self> {
        let spare = load.qd as usize;
        let piece = (PIECE / load.jobs.max(1) as usize).max(LEAST_PIECE).max(2 * spare);
        let current = filled(if kept == 0 { piece } else { kept });
        let order = Order { last: 0, one_at_a_time: load.qd == 1 };
        let folding = if may_last { Some(Folding::begin(piece, order, others)?) } else { None };
        Ok(Self { current, taken: 0, spare, piece, order, folding, folded: kept == 0 })
    }

    /// Bytes that stamps and digest take at most.
    pub fn bytes(&self) -> u64 {
        let pieces = if self.folding.is_some() { (PIECES - 1) * self.piece } else { 0 };
        let digest = if self.folding.is_some() { Digest::new(OUTLIERS).bytes() } else { 0 };
        ((self.current.len() + pieces) * size_of::<S>() + digest) as u64
    }

    /// What was taken.
    ///
    /// # Errors
    /// [`Error::Clock`] where stamps are not in order, which makes every figure meaningless.
    pub fn into_samples(mut self) -> Result<Samples> {
        match self.folding.take() {
            Some(folding) if self.folded => folding.end(self.current, self.taken),
            _ => {
                self.current.truncate(self.taken);
                self.order.check(&self.current)?;
                Ok(S::kept(self.current))
            }
        }
    }
}

impl<S: Kind> Record<S> for Recorder<S> {
    fn room(&mut self) -> &mut [S] {
        &mut self.current[self.taken..]
    }

    fn taken(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.current.len());
        let Some(folding) = &self.folding else { return };
        if self.taken > 0 && (self.folded || self.current.len() - self.taken <= self.spare) {
            // No next piece means that the thread has found stamps out of order: without room the run ends.
            let next = folding.empty.recv().unwrap_or_default();
            let _ = folding.full.send((std::mem::replace(&mut self.current, next), self.taken));
            (self.taken, self.folded) = (0, true);
        }
    }
}

impl<S: Kind> Folding<S> {
    fn begin(piece: usize, mut order: Order, others: &CpuSet) -> Result<Self> {
        let (full, pieces) = sync_channel::<(Vec<S>, usize)>(PIECES);
        let (back, empty) = sync_channel(PIECES);
        (1..PIECES).for_each(|_| drop(back.try_send(filled(piece))));
        let (others, mut digest) = (others.clone(), Box::new(Digest::new(OUTLIERS)));
        let fold = move || {
            if !others.is_empty() {
                let _ = cpu::restrict_current(&others); // It would only disturb on the measuring processor.
            }
            for (samples, count) in pieces {
                order.check(&samples[..count])?;
                digest.fold(&samples[..count]);
                // What was kept at first is longer than a piece, and its memory is not needed any more.
                if samples.len() <= piece {
                    let _ = back.try_send(samples);
                }
            }
            Ok(digest)
        };
        let thread = std::thread::Builder::new().name("digest".into()).spawn(fold);
        let thread = thread.map_err(|source| Error::call("digest", "pthread_create", source, ""))?;
        Ok(Self { full, empty, thread })
    }

    fn end(self, last: Vec<S>, count: usize) -> Result<Samples> {
        let _ = self.full.send((last, count)); // If it has ended already, it says why.
        drop(self.full);
        let digest = self.thread.join().unwrap_or_else(|_| Err(Error::usage("the thread of the digest failed")));
        digest.map(Samples::Digest)
    }
}

/// A counter that ran backwards makes every later figure meaningless, so it is looked for before anything is computed.
#[derive(Clone, Copy)]
struct Order {
    last: u64,
    /// Whether each command began after the one before had ended.
    one_at_a_time: bool,
}

impl Order {
    fn check<S: Stamps>(&mut self, samples: &[S]) -> Result<()> {
        for sample in samples {
            let (start, stop) = (sample.start(), sample.stop());
            let submitted = sample.submitted().unwrap_or(start);
            let intended = sample.intended().unwrap_or(start);
            let begin = if self.one_at_a_time { start } else { stop };
            for pair in [[self.last, begin], [intended, start], [start, submitted], [submitted, stop]] {
                if let [from, to] = pair
                    && to < from
                {
                    return Err(Error::Clock(format!(
                        "the counter ran backwards, from {from} to {to} ticks. Use --clock monotonic"
                    )));
                }
            }
            self.last = stop;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(stamps: &[(u64, u64)]) -> Vec<Sample> {
        stamps.iter().map(|&(start, stop)| Sample { start, stop }).collect()
    }

    fn order(one_at_a_time: bool) -> Order {
        Order { last: 0, one_at_a_time }
    }

    #[test]
    fn a_clock_that_steps_back_is_an_error() {
        assert!(order(true).check(&samples(&[(1, 2), (2, 5), (5, 5)])).is_ok());
        for stepped in [&[(1, 2), (3, 9), (4, 12)], &[(1, 2), (3, 9), (9, 8)]] {
            let error = order(true).check(&samples(stepped)).unwrap_err();
            assert!(error.to_string().contains("ran backwards"), "{error}");
            assert_eq!(error.exit_code(), 1);
        }
    }

    #[test]
    fn commands_in_flight_together_may_overtake_each_other_but_are_seen_in_order() {
        assert!(order(false).check(&samples(&[(3, 5), (1, 5), (4, 9)])).is_ok());
        assert!(order(false).check(&samples(&[(3, 5), (1, 4)])).is_err());
    }

    #[test]
    fn a_stamp_of_a_phase_must_lie_between_the_others_and_the_intended_start_before_them() {
        let phased = |submitted| [PhasedSample { start: 10, submitted, stop: 20 }];
        assert!(order(true).check(&phased(15)).is_ok());
        assert!(order(true).check(&phased(9)).is_err() && order(true).check(&phased(21)).is_err());
        let paced = |intended| [PacedSample { intended, start: 10, submitted: 11, stop: 20 }];
        assert!(order(true).check(&paced(10)).is_ok() && order(true).check(&paced(11)).is_err());
    }

    fn recorder(kept: usize) -> Recorder<Sample> {
        let load = Load { qd: 1, bs_bytes: None, jobs: 1, rate: None };
        Recorder::new(kept, &load, true, &CpuSet::default()).unwrap()
    }

    fn record(recorder: &mut Recorder<Sample>, from: u64, count: usize) {
        for at in (from..).take(count) {
            recorder.room()[0] = Sample { start: 10 * at, stop: 10 * at + 1 + at % 7 };
            recorder.taken(1);
        }
    }

    #[test]
    fn a_run_beyond_its_room_is_digested_with_every_sample_in_it() {
        let mut short = recorder(3000);
        let mut long = recorder(1000);
        for recorder in [&mut short, &mut long] {
            record(recorder, 1, 2500);
        }
        let (short, long) = (short.into_samples().unwrap(), long.into_samples().unwrap());
        assert!(matches!((&short, &long), (Samples::Plain(_), Samples::Digest(_))));
        let [short, long] = [short, long].map(|samples| samples.figures(Scale::of(1.0)));
        assert_eq!((short.latency.n, short.outliers), (2500, long.outliers));
        assert_eq!((short.latency.max, short.latency.mean), (long.latency.max, long.latency.mean));
    }

    #[test]
    fn stamps_out_of_order_are_found_in_a_digest_as_well() {
        let mut recorder = recorder(0);
        record(&mut recorder, 100, 1);
        record(&mut recorder, 1, 1);
        assert!(recorder.into_samples().is_err());
    }

    #[test]
    fn jobs_are_joined_from_their_samples_and_stay_exact() {
        let job = |first| Samples::Plain(samples(&[(first, first + 10), (first + 20, first + 50)]));
        let joined = Samples::join(vec![job(0), job(5)]).unwrap();
        let figures = joined.figures(Scale::of(1.0));
        assert_eq!((figures.latency.n, figures.latency.max), (4, Some(30.0)));
        let mixed = Samples::join(vec![job(0), Samples::Digest(job(5).into_digest())]).unwrap();
        assert_eq!(mixed.figures(Scale::of(1.0)).latency.n, 4);
        assert!(Samples::join(Vec::new()).is_none());
    }
}
