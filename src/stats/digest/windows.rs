//! The course of a run of unknown length: windows that are put together in pairs whenever they would become too many.

use hdrhistogram::Histogram as Hdr;

use super::durations::{at_rank, bytes, counts};
use crate::{
    stats::{
        Scale, Window,
        summary::{round_picoseconds, supported_rank},
    },
    timing::Stamps,
};

/// Most windows; even, so that all of them have a partner.
const WINDOWS: usize = 100;

/// Windows of 2^`shift` ticks, each twice as long as before whenever the run gets beyond the last one. A run of at least 100
/// ticks has 51 to 100 of them.
#[derive(Clone, PartialEq)]
pub(super) struct Windows {
    /// Where the first window begins, in ticks: the start of the first sample that was seen.
    origin: Option<u64>,
    shift: u32,
    /// How far after the origin the last sample seen ended.
    extent: u64,
    cells: Vec<Cell>,
}

/// The commands that began in one window.
#[derive(Clone, PartialEq)]
struct Cell {
    counts: Hdr<u64>,
    max: u64,
}

impl Windows {
    pub fn new() -> Self {
        let cells = (0..WINDOWS).map(|_| Cell { counts: counts(2), max: 0 }).collect();
        Self { origin: None, shift: 0, extent: 0, cells }
    }

    /// Counts commands. One that began before the origin, since it was overtaken, is put into the first window.
    pub fn extend<S: Stamps>(&mut self, samples: &[S]) {
        let Some(first) = samples.first() else { return };
        let origin = *self.origin.get_or_insert(first.start());
        let after = |sample: &S| sample.start().saturating_sub(origin);
        // Neighbours are nearly always in the same window, so it is looked up once for all of them. Those that are stay so
        // when windows are put together.
        let shift = self.shift;
        for run in samples.chunk_by(|one, next| after(one) >> shift == after(next) >> shift) {
            let after = run.first().map_or(0, after);
            self.reach(after);
            if let Some(cell) = self.cells.get_mut((after >> self.shift) as usize) {
                cell.extend(run);
            }
        }
    }

    /// Makes room up to a point in time, which the timeline will cover. The windows come out the same whenever this is
    /// called, but the sooner, the fewer of them have to be put together.
    pub fn cover(&mut self, from: u64, to: u64) {
        let after = to.saturating_sub(*self.origin.get_or_insert(from));
        self.extent = self.extent.max(after);
        self.reach(after);
    }

    /// Makes windows longer until the last one holds this many ticks after the origin.
    fn reach(&mut self, after: u64) {
        while after >> self.shift >= WINDOWS as u64 {
            self.pair();
        }
    }

    /// Makes the windows half as many and twice as long.
    fn pair(&mut self) {
        for pair in self.cells.chunks_exact_mut(2) {
            if let [first, second] = pair {
                first.add(second);
            }
        }
        (1..WINDOWS / 2).for_each(|number| self.cells.swap(number, 2 * number));
        self.cells[WINDOWS / 2..].iter_mut().for_each(Cell::clear);
        self.shift += 1;
    }

    /// Takes the windows of another thread. Where they do not begin and end with these they are put where they begin, so
    /// that commands may be one window early.
    pub fn merge(&mut self, other: &Self) {
        let Some(theirs) = other.origin else { return };
        let ours = *self.origin.get_or_insert(theirs);
        let origin = ours.min(theirs);
        let (ours_after, theirs_after) = (ours - origin, theirs - origin);
        let ours_extent = self.extent.saturating_add(ours_after);
        self.extent = ours_extent.max(other.extent.saturating_add(theirs_after));
        while self.shift < other.shift {
            self.pair();
        }
        self.reach(self.extent);
        self.cells.rotate_right((ours_after >> self.shift) as usize);
        self.origin = Some(origin);
        for (number, cell) in (0..).zip(&other.cells) {
            let after = theirs_after.saturating_add(number << other.shift);
            if let Some(own) = self.cells.get_mut((after >> self.shift) as usize) {
                own.add(cell);
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.cells.iter().map(|cell| size_of::<Cell>() + bytes(&cell.counts)).sum()
    }

    /// Percentiles are upper ends of buckets, at most 0.8 % above the sample of nearest rank; the rest is exact.
    pub fn timeline(&self, scale: Scale) -> Vec<Window> {
        let used = if self.origin.is_some() { (self.extent >> self.shift) as usize + 1 } else { 0 };
        let ns = |ticks: u64| round_picoseconds(ticks as f64 / scale.latency);
        let window = |(number, cell): (u64, &Cell)| {
            let n = cell.counts.len();
            let at_rank = |rank| at_rank(&cell.counts, rank).map(|ticks| ns(ticks.min(cell.max)));
            Window {
                at_ns: round_picoseconds((number << self.shift) as f64 / scale.time),
                n,
                p50_ns: supported_rank(n, 50_000).and_then(at_rank),
                p99_ns: supported_rank(n, 99_000).and_then(at_rank),
                max_ns: (n > 0).then(|| ns(cell.max)),
            }
        };
        (0..).zip(&self.cells).take(used).map(window).collect()
    }
}

impl Cell {
    fn extend<S: Stamps>(&mut self, samples: &[S]) {
        let mut max = self.max;
        for sample in samples {
            let ticks = sample.stop().saturating_sub(sample.start());
            self.counts.saturating_record(ticks);
            max = max.max(ticks);
        }
        self.max = max;
    }

    fn add(&mut self, other: &Self) {
        self.counts += &other.counts;
        self.max = self.max.max(other.max);
    }

    fn clear(&mut self) {
        if !self.counts.is_empty() {
            self.counts.reset();
        }
        self.max = 0;
    }
}
