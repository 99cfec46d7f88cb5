//! Several commands in flight: a slot is issued again as soon as its completion was seen and its next command is due.
//!
//! One stamp serves all completions of a look, sixteen at most: they were all seen in it. The look comes before anything
//! else is done, so that a command does not wait for the ones that complete with it to be issued again.

use super::{Control, Stamped, depths::Depths, pace::Pace};
use crate::{
    engine::{Done, Engine, Fault},
    timing::Counter,
};

/// Most completions of a look.
const MOST: usize = 16;

/// Completions of the last look that are not dealt with yet, oldest first.
struct Seen {
    slots: [u32; MOST],
    outcomes: [Result<(), Fault>; MOST],
    next: usize,
    end: usize,
}

impl Done for Seen {
    const MOST: u32 = MOST as u32;

    #[inline(always)]
    fn complete(&mut self, slot: u32, outcome: Result<(), Fault>) {
        // An engine that told more than there is room for would be wrong about its slots as well.
        if let (Some(place), Some(how)) = (self.slots.get_mut(self.end), self.outcomes.get_mut(self.end)) {
            (*place, *how) = (slot, outcome);
            self.end += 1;
        }
    }
}

/// Slots that are free, in the order in which they became so.
struct Free {
    slots: Box<[u32]>,
    first: usize,
    count: usize,
}

impl Free {
    fn new(depth: u32) -> Self {
        Self { slots: (0..depth).collect(), first: 0, count: depth as usize }
    }

    #[inline(always)]
    fn next(&self) -> Option<u32> {
        if self.count == 0 { None } else { self.slots.get(self.first).copied() }
    }

    /// Takes what `next` has shown.
    #[inline(always)]
    fn take(&mut self) {
        self.first = if self.first + 1 == self.slots.len() { 0 } else { self.first + 1 };
        self.count -= 1;
    }

    #[inline(always)]
    fn put(&mut self, slot: u32) {
        let place = self.first + self.count;
        let place = if place >= self.slots.len() { place - self.slots.len() } else { place };
        if let Some(free) = self.slots.get_mut(place) {
            *free = slot;
            self.count += 1;
        }
    }
}

/// The commands in flight.
pub struct Window<S: Stamped> {
    open: Box<[S::Open]>,
    free: Free,
    seen: Seen,
    /// Stamp of the last look that found something.
    stop: u64,
    /// Commands handed over before this are of the warm-up, wherever they complete.
    measured_from: u64,
    pace: S::Pace,
    depths: Depths,
}

/// What became of a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Advance {
    /// Commands handed over, or refused.
    pub issued: usize,
    /// Samples taken.
    pub taken: usize,
    /// Commands of the warm-up that completed.
    pub discarded: usize,
    /// The failure that ended it early, and its slot.
    pub fault: Option<(u32, Fault)>,
    /// Whether that was a command of the warm-up, which had been in flight since then.
    pub of_warmup: bool,
}

impl<S: Stamped> Window<S> {
    /// A window of `depth` slots, whose commands are due by `pace`.
    pub fn new(depth: u32, pace: S::Pace) -> Self {
        let seen = Seen { slots: [0; MOST], outcomes: [Ok(()); MOST], next: 0, end: 0 };
        let open = vec![S::Open::default(); depth as usize].into_boxed_slice();
        let (free, depths) = (Free::new(depth), Depths::default());
        Self { open, free, seen, stop: 0, measured_from: u64::MAX, pace, depths }
    }

    /// Memory for each slot, in bytes.
    pub const fn slot_bytes() -> usize {
        size_of::<S::Open>() + size_of::<u32>()
    }

    /// Ends the warm-up: what is handed over from now on is measured.
    pub(super) fn measure_from<C: Counter>(&mut self) {
        self.measured_from = C::start();
        self.depths = Depths::default();
        self.pace.begin(self.measured_from);
    }

    /// Commands in flight, those included whose completion was seen and not dealt with.
    pub(super) fn outstanding(&self) -> usize {
        self.open.len() - self.free.count
    }

    /// How deep the window was, and how completions came.
    pub(super) fn depths(&self) -> &Depths {
        &self.depths
    }

    /// Commands that were due before `now` and were not handed over.
    pub(super) fn overdue(&self, now: u64) -> u64 {
        self.pace.overdue(now)
    }

    /// Hands `issue` commands over, each as soon as it is due and a slot is free, and fills `samples` from the front with those
    /// that complete meanwhile. With none to hand over it waits for all that are in flight.
    #[inline(never)]
    pub(super) fn advance<E: Engine, C: Counter>(
        &mut self,
        engine: &mut E,
        samples: &mut [S],
        issue: usize,
        control: &Control,
    ) -> Advance {
        let mut advance = Advance::default();
        loop {
            if let Err(fault) = self.settle(samples, &mut advance) {
                return Advance { fault: Some(fault), ..advance };
            }
            while advance.issued < issue {
                let Some(slot) = self.free.next() else { break };
                let Some(intended) = self.pace.due::<C>() else { break };
                let last = advance.issued + 1 == issue;
                match Self::hand_over::<E, C>(engine, slot, intended, last) {
                    Ok(open) => {
                        self.open[slot as usize] = open;
                        self.free.take();
                        self.pace.advance();
                        advance.issued += 1;
                        self.depths.issued(self.open.len() - self.free.count);
                    }
                    // A command that was refused was issued as well.
                    Err(fault) => {
                        return Advance { issued: advance.issued + 1, fault: Some((slot, fault)), ..advance };
                    }
                }
            }
            if self.outstanding() == 0 || (advance.issued == issue && issue > 0) {
                if advance.issued == issue {
                    return advance;
                }
                // Nothing is in flight and nothing is due: only the timetable is waited for.
                if control.stop().is_some() {
                    return advance;
                }
                continue;
            }
            (self.seen.next, self.seen.end) = (0, 0);
            if let Err(fault) = engine.poll(&mut self.seen) {
                return Advance { fault: Some((0, fault)), ..advance };
            }
            if self.seen.end > 0 {
                self.stop = C::stop();
                self.depths.completed(self.seen.end);
            } else if control.abandoned() {
                return Advance { fault: Some((0, Fault::Abandoned)), ..advance };
            }
        }
    }

    #[inline(always)]
    fn hand_over<E: Engine, C: Counter>(
        engine: &mut E,
        slot: u32,
        intended: u64,
        last: bool,
    ) -> Result<S::Open, Fault> {
        engine.prepare(slot)?;
        if last {
            engine.conclude(slot);
        }
        S::open::<E, C>(engine, slot, intended)
    }

    /// Frees the slots of the completions that were seen, and keeps their samples.
    #[inline(always)]
    fn settle(&mut self, samples: &mut [S], advance: &mut Advance) -> Result<(), (u32, Fault)> {
        while self.seen.next < self.seen.end {
            let (slot, outcome) = (self.seen.slots[self.seen.next], self.seen.outcomes[self.seen.next]);
            self.seen.next += 1;
            self.free.put(slot);
            let sample = S::close(self.open[slot as usize], self.stop);
            let measured = sample.start() >= self.measured_from;
            if let Err(fault) = outcome {
                advance.of_warmup = !measured;
                return Err((slot, fault));
            }
            match samples.get_mut(advance.taken) {
                Some(place) if measured => {
                    *place = sample;
                    advance.taken += 1;
                }
                _ => advance.discarded += 1,
            }
        }
        Ok(())
    }
}
