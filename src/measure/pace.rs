//! When commands are due: at once, or by a timetable that does not wait for them.

use crate::{
    engine::{Arrivals, block::offsets::SplitMix},
    timing::Counter,
};

/// Says when the next command is due.
pub trait Pace {
    /// Whether there is a timetable, which begins when nothing is in flight.
    const OPEN_LOOP: bool;

    /// The run begins at `now`, in ticks.
    fn begin(&mut self, now: u64);

    /// When the next command was to be handed over, if that time has come.
    fn due<C: Counter>(&self) -> Option<u64>;

    /// The command that was due is handed over.
    fn advance(&mut self);

    /// Commands that were due before `now` and were not handed over.
    fn overdue(&self, now: u64) -> u64;
}

/// A command is due as soon as there is a slot for it: the closed loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtOnce;

impl Pace for AtOnce {
    const OPEN_LOOP: bool = false;

    fn begin(&mut self, _now: u64) {}

    #[inline(always)]
    fn due<C: Counter>(&self) -> Option<u64> {
        Some(0)
    }

    #[inline(always)]
    fn advance(&mut self) {}

    fn overdue(&self, _now: u64) -> u64 {
        0
    }
}

/// Commands are due by the clock, whether those before have completed or not: the open loop.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// Mean time between commands, in ticks.
    interval: f64,
    arrivals: Arrivals,
    random: SplitMix,
    begin: u64,
    /// Ticks from the beginning until the next command is due. Kept as a sum of 52 bits, so that no interval is rounded.
    next: f64,
}

impl Timetable {
    /// A command each `interval` ticks on average, which must be above 0. Another `seed` makes other random times.
    pub fn new(interval: f64, arrivals: Arrivals, seed: u64) -> Self {
        Self { interval, arrivals, random: SplitMix(seed), begin: u64::MAX, next: 0.0 }
    }

    /// The next time between two commands.
    #[inline(always)]
    fn step(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Fixed => self.interval,
            Arrivals::Poisson => {
                // 53 random bits and one more: above 0, up to 1.
                let uniform = ((self.random.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                -uniform.ln() * self.interval
            }
        }
    }
}

impl Pace for Timetable {
    const OPEN_LOOP: bool = true;

    fn begin(&mut self, now: u64) {
        (self.begin, self.next) = (now, 0.0);
    }

    #[inline(always)]
    fn due<C: Counter>(&self) -> Option<u64> {
        let due = self.begin.wrapping_add(self.next as u64);
        // Read as signed, so that it stays right where the counter wraps. Before the beginning, in the warm-up, all is due.
        if self.begin == u64::MAX || C::now().wrapping_sub(due) as i64 >= 0 { Some(due) } else { None }
    }

    #[inline(always)]
    fn advance(&mut self) {
        if self.begin != u64::MAX {
            self.next += self.step();
        }
    }

    fn overdue(&self, now: u64) -> u64 {
        let late = now.saturating_sub(self.begin) as f64 - self.next;
        if self.begin == u64::MAX || late <= 0.0 { 0 } else { (late / self.interval) as u64 + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::MonotonicRaw;

    fn times(mut pace: Timetable, count: usize) -> Vec<f64> {
        pace.begin(0);
        let mut step = || {
            let due = pace.next;
            pace.advance();
            due
        };
        (0..count).map(|_| step()).collect()
    }

    #[test]
    fn fixed_times_do_not_drift() {
        let due = times(Timetable::new(1000.0 / 3.0, Arrivals::Fixed, 1), 3_000_001);
        assert!((due[3_000_000] - 1e9).abs() < 1.0, "{}", due[3_000_000]);
    }

    #[test]
    fn poisson_times_have_the_mean_and_the_spread_of_an_exponential_distribution() {
        let due = times(Timetable::new(1000.0, Arrivals::Poisson, 7), 100_001);
        let between: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = between.iter().sum::<f64>() / 1e5;
        let deviation = (between.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 1e5).sqrt();
        // Six standard errors.
        assert!((mean - 1000.0).abs() < 19.0 && (deviation - 1000.0).abs() < 27.0, "{mean} {deviation}");
        assert!(between.iter().all(|&gap| gap >= 0.0));
        assert_ne!(due, times(Timetable::new(1000.0, Arrivals::Poisson, 8), 100_001));
    }

    #[test]
    fn what_was_due_and_not_handed_over_is_counted() {
        let mut pace = Timetable::new(100.0, Arrivals::Fixed, 1);
        assert_eq!(pace.overdue(1 << 40), 0);
        pace.begin(1000);
        assert_eq!((pace.overdue(1000), pace.overdue(1001), pace.overdue(1250)), (0, 1, 3));
        (0..3).for_each(|_| pace.advance());
        assert_eq!((pace.overdue(1250), pace.overdue(1301)), (0, 1));
    }

    #[test]
    fn a_closed_loop_has_no_timetable() {
        assert_eq!((AtOnce.due::<MonotonicRaw>(), AtOnce.overdue(u64::MAX)), (Some(0), 0));
    }
}
