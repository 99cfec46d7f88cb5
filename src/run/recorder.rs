//! Takes the samples of one job: keeps them one by one as far as there is room, and folds them into a digest beyond that.

use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::JoinHandle,
};

use super::{
    samples::{Kind, OUTLIERS, Samples},
    watch::Watch,
};
use crate::{
    error::{Error, Result},
    host::{CpuSet, cpu},
    measure::Record,
    probe::Load,
    stats::Digest,
    timing::{Stamps, filled},
};

/// Samples between two foldings, of all jobs together: some tens of milliseconds of the fastest commands.
const PIECE: usize = 1 << 18;

/// Fewest of one job.
const LEAST_PIECE: usize = 1 << 12;

/// Pieces in use: one is filled while another is folded, and one is ready in between.
const PIECES: usize = 3;

/// What a recorder is made for.
pub(super) struct Recording<'a> {
    /// Samples to keep one by one.
    pub kept: usize,
    /// Whether the run may last longer than that.
    pub may_last: bool,
    /// Processors for the thread beside.
    pub others: &'a CpuSet,
    /// Who looks on.
    pub watch: Option<&'a Watch>,
}

/// Takes the samples of a job. Once its room is used up, or from the beginning if somebody looks on, samples go to a thread,
/// a piece at a time, so that the measuring one goes on meanwhile.
pub(super) struct Recorder<S> {
    current: Vec<S>,
    taken: usize,
    /// Room that commands in flight may still need.
    spare: usize,
    order: Order,
    folding: Option<Folding<S>>,
    /// Whether samples go to the thread.
    handed_over: bool,
    bytes: u64,
}

impl<S: Kind> Recorder<S> {
    /// Makes room for a job with this load.
    ///
    /// # Errors
    /// The errno of `pthread_create`.
    pub fn new(load: &Load, recording: Recording) -> Result<Self> {
        let Recording { kept, may_last, others, watch } = recording;
        let spare = load.qd as usize;
        let piece = (PIECE / load.jobs.max(1) as usize).max(LEAST_PIECE).max(2 * spare);
        let handed_over = kept == 0 || watch.is_some();
        let current = filled(if handed_over { piece } else { kept });
        let order = Order { last: 0, one_at_a_time: load.qd == 1 };
        // Where somebody looks on, the thread is what keeps them.
        let store = Store::new(if watch.is_some() { kept } else { 0 }, may_last);
        let pieces = if may_last || watch.is_some() { PIECES - 1 } else { 0 };
        let bytes = (current.len() + pieces * piece) * size_of::<S>() + store.bytes() + watch.map_or(0, Watch::bytes);
        let folding = match pieces {
            0 => None,
            _ => Some(Folding::begin(piece, order, others, store, watch.cloned())?),
        };
        Ok(Self { current, taken: 0, spare, order, folding, handed_over, bytes: bytes as u64 })
    }

    /// Bytes that stamps and digest take at most.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was taken.
    ///
    /// # Errors
    /// [`Error::Clock`] where stamps are not in order, which makes every figure meaningless.
    pub fn into_samples(mut self) -> Result<Samples> {
        match self.folding.take() {
            Some(folding) if self.handed_over => folding.end(self.current, self.taken),
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
        if self.taken > 0 && (self.handed_over || self.current.len() - self.taken <= self.spare) {
            // No next piece means that the thread has found stamps out of order: without room the run ends.
            let next = folding.empty.recv().unwrap_or_default();
            let _ = folding.full.send((std::mem::replace(&mut self.current, next), self.taken));
            (self.taken, self.handed_over) = (0, true);
        }
    }
}

/// What the thread has of the samples.
struct Store<S> {
    kept: Vec<S>,
    room: usize,
    /// There before it is needed, where it may be: nothing is allocated beside a measurement.
    digest: Option<Box<Digest>>,
    /// Whether there was no room for a sample, so that all are in the digest.
    digested: bool,
}

impl<S: Kind> Store<S> {
    fn new(room: usize, may_last: bool) -> Self {
        let mut kept = filled(room); // Its pages are resident after this.
        kept.clear();
        let digest = may_last.then(|| Box::new(Digest::new(OUTLIERS)));
        Self { kept, room, digest, digested: false }
    }

    fn bytes(&self) -> usize {
        self.room * size_of::<S>() + self.digest.as_ref().map_or(0, |digest| digest.bytes())
    }

    fn add(&mut self, samples: &[S]) {
        match &mut self.digest {
            Some(digest) if self.digested || self.kept.len() + samples.len() > self.room => {
                digest.fold(&std::mem::take(&mut self.kept));
                digest.fold(samples);
                self.digested = true;
            }
            _ => self.kept.extend_from_slice(samples),
        }
    }

    fn into_samples(self) -> Samples {
        match self.digest {
            Some(digest) if self.digested => Samples::Digest(digest),
            _ => S::kept(self.kept),
        }
    }
}

struct Folding<S> {
    full: SyncSender<(Vec<S>, usize)>,
    empty: Receiver<Vec<S>>,
    thread: JoinHandle<Result<Samples>>,
}

impl<S: Kind> Folding<S> {
    fn begin(
        piece: usize,
        mut order: Order,
        others: &CpuSet,
        mut store: Store<S>,
        watch: Option<Watch>,
    ) -> Result<Self> {
        let (full, pieces) = sync_channel::<(Vec<S>, usize)>(PIECES);
        let (back, empty) = sync_channel(PIECES);
        (1..PIECES).for_each(|_| drop(back.try_send(filled(piece))));
        let others = others.clone();
        let fold = move || {
            if !others.is_empty() {
                let _ = cpu::restrict_current(&others); // It would only disturb on the measuring processor.
            }
            for (samples, count) in pieces {
                order.check(&samples[..count])?;
                store.add(&samples[..count]);
                if let Some(watch) = &watch {
                    watch.add(&samples[..count]);
                }
                // What was kept at first is longer than a piece, and its memory is not needed any more.
                if samples.len() <= piece {
                    let _ = back.try_send(samples);
                }
            }
            Ok(store.into_samples())
        };
        let thread = std::thread::Builder::new().name("digest".into()).spawn(fold);
        let thread = thread.map_err(|source| Error::call("digest", "pthread_create", source, ""))?;
        Ok(Self { full, empty, thread })
    }

    fn end(self, last: Vec<S>, count: usize) -> Result<Samples> {
        let _ = self.full.send((last, count)); // If it has ended already, it says why.
        drop(self.full);
        self.thread.join().unwrap_or_else(|_| Err(Error::usage("the thread of the digest failed")))
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
    use crate::{
        stats::Scale,
        timing::{PacedSample, PhasedSample, Sample},
    };

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
        let others = CpuSet::default();
        Recorder::new(&load, Recording { kept, may_last: true, others: &others, watch: None }).unwrap()
    }

    #[test]
    fn samples_that_somebody_looks_at_are_the_same_and_kept_as_far_as_there_is_room() {
        let load = Load { qd: 1, bs_bytes: None, jobs: 1, rate: None };
        let (others, watch) = (CpuSet::default(), Watch::new());
        for (kept, may_last) in [(2500, false), (3000, true), (1000, true)] {
            let recording = Recording { kept, may_last, others: &others, watch: Some(&watch) };
            let mut watched = Recorder::new(&load, recording).unwrap();
            let mut alone = recorder(if may_last { kept } else { 3000 });
            record(&mut watched, 1, 2500);
            record(&mut alone, 1, 2500);
            let [watched, alone] = [watched, alone].map(|recorder| recorder.into_samples().unwrap());
            assert_eq!(matches!(watched, Samples::Digest(_)), kept == 1000);
            assert!(watched.figures(Scale::of(1.0)) == alone.figures(Scale::of(1.0)), "{kept}");
        }
        assert!(
            watch.line(Scale::of(1.0)).starts_with("7,500 commands, p50 4.00 ns, "),
            "{}",
            watch.line(Scale::of(1.0))
        );
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
