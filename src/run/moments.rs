//! Looks at the measuring thread over a run, from the thread that watches it, so that slow commands can be told from what
//! happened around them.

use std::time::Duration;

use crate::{
    host::{Moment, Nearby, Watch},
    stats::Outlier,
    timing::{Sample, Stamps},
};

/// Windows kept. Beyond it every two are made one: a run of any length takes the same memory and loses only sharpness.
const MOST_WINDOWS: usize = 2048;

/// The windows between looks. Each look has two stamps, since it takes time.
pub(super) struct Moments {
    watch: Watch,
    now: fn() -> u64,
    ticks_per_ns: f64,
    last: Look,
    windows: Vec<Window>,
    /// How many looks make a window, once windows were put together.
    looks_per_window: u32,
    looks_in_last: u32,
}

struct Look {
    opened: u64,
    moment: Moment,
    closed: u64,
}

/// From before its first look to after its last one, in ticks: what was counted may have happened at any time between.
struct Window {
    opened: u64,
    closed: u64,
    nearby: Nearby,
}

impl Moments {
    /// Takes the first look, on the thread that is looked at, before it measures.
    pub fn begin(watch: Watch, now: fn() -> u64, ticks_per_ns: f64) -> Self {
        let last = Look::take(&watch, now);
        Self { watch, now, ticks_per_ns, last, windows: Vec::new(), looks_per_window: 1, looks_in_last: 1 }
    }

    /// Takes another look, `late` after it was due; `stopped` says that the process was stopped since the last one.
    pub fn look(&mut self, late: Duration, stopped: bool) {
        let look = Look::take(&self.watch, self.now);
        let window_ns = look.closed.saturating_sub(self.last.opened) as f64 / self.ticks_per_ns;
        let mut nearby = look.moment.since(&self.last.moment, window_ns);
        nearby.stopped = stopped;
        nearby.late_ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        let window = Window { opened: self.last.opened, closed: look.closed, nearby };
        self.last = look;
        match self.windows.last_mut() {
            Some(last) if self.looks_in_last < self.looks_per_window => {
                last.join(&window);
                self.looks_in_last += 1;
            }
            _ => {
                self.windows.push(window);
                self.looks_in_last = 1;
            }
        }
        if self.windows.len() > MOST_WINDOWS {
            self.thin();
        }
    }

    /// Puts every two windows together.
    fn thin(&mut self) {
        let odd = self.windows.len() % 2 == 1;
        let mut windows = std::mem::take(&mut self.windows).into_iter();
        while let Some(mut first) = windows.next() {
            if let Some(second) = windows.next() {
                first.join(&second);
            }
            self.windows.push(first);
        }
        self.looks_in_last += if odd { 0 } else { self.looks_per_window };
        self.looks_per_window *= 2;
    }

    /// What changed in the windows that a time in ticks touches.
    fn around(&self, start: u64, stop: u64) -> Option<Nearby> {
        let mut touched = self.windows.iter().filter(|window| window.closed >= start && window.opened <= stop);
        let first = touched.next()?;
        let mut nearby = first.nearby.clone();
        let mut closed = first.closed;
        for window in touched {
            nearby.add(&window.nearby);
            closed = window.closed;
        }
        // The looks between windows are in both of them.
        nearby.window_ns = (closed.saturating_sub(first.opened) as f64 / self.ticks_per_ns).round();
        Some(nearby)
    }

    /// Says of each outlier, whose stamps are in `slowest`, what changed around it, and what may have caused it.
    pub fn explain(&self, outliers: &mut [Outlier], slowest: &[Sample], p50_ns: Option<f64>, latency_scale: f64) {
        for (outlier, sample) in outliers.iter_mut().zip(slowest) {
            outlier.nearby = self.around(sample.start(), sample.stop());
            // Half of a round trip is what is reported; the whole of it is what took time.
            let excess_ns = p50_ns.map(|p50_ns| (outlier.latency_ns - p50_ns) * latency_scale / self.ticks_per_ns);
            outlier.cause =
                outlier.nearby.as_ref().zip(excess_ns).and_then(|(nearby, excess_ns)| nearby.cause(excess_ns));
        }
    }
}

impl Look {
    fn take(watch: &Watch, now: fn() -> u64) -> Self {
        let opened = now();
        let moment = watch.look();
        Self { opened, moment, closed: now() }
    }
}

impl Window {
    fn join(&mut self, next: &Self) {
        self.nearby.add(&next.nearby);
        self.closed = next.closed;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::{
        host::{Cause, Sysfs},
        stats::{Scale, outliers},
    };

    /// A clock that moves by a tick at each read, of which each test has its own.
    macro_rules! ticking {
        () => {{
            static NOW: AtomicU64 = AtomicU64::new(0);
            || NOW.fetch_add(1, Relaxed)
        }};
    }

    fn begin(now: fn() -> u64) -> Moments {
        let watch = Watch::current(Sysfs::at("/nowhere"), 0, None);
        Moments::begin(watch, now, 1.0)
    }

    #[test]
    fn a_command_is_told_by_the_windows_that_it_touches_and_no_others() {
        let mut moments = begin(ticking!());
        // Looks take the ticks 0 to 1, 2 to 3, 4 to 5, and so on.
        (1..=4).for_each(|late| moments.look(Duration::from_nanos(late), late == 3));
        let near =
            |start, stop| moments.around(start, stop).map(|nearby| (nearby.window_ns, nearby.late_ns, nearby.stopped));
        assert_eq!(near(0, 1), Some((3.0, 1, false)));
        assert_eq!(near(6, 6), Some((5.0, 4, true)));
        assert_eq!(near(4, 5), Some((5.0, 3, true)));
        assert_eq!(near(1, 8), Some((9.0, 4, true)));
        assert_eq!(near(100, 200), None);
    }

    #[test]
    fn a_long_run_keeps_all_windows_in_the_same_memory() {
        let mut moments = begin(ticking!());
        let looks = 5 * MOST_WINDOWS + 3;
        (0..looks).for_each(|_| moments.look(Duration::ZERO, false));
        assert!(moments.windows.len() <= MOST_WINDOWS, "{}", moments.windows.len());
        assert!(moments.windows.windows(2).all(|pair| pair[0].closed >= pair[1].opened));
        let all = moments.around(0, u64::MAX).unwrap();
        assert_eq!(all.window_ns, 2.0 * looks as f64 + 1.0);
    }

    #[test]
    fn an_outlier_gets_what_could_have_taken_its_excess() {
        let mut moments = begin(ticking!());
        moments.look(Duration::from_nanos(60), true);
        let samples: Vec<_> = [(1, 2), (2, 102)].map(|(start, stop)| Sample { start, stop }).into();
        let mut found = outliers(&samples, 1, Scale::of(1.0));
        let slowest = [samples[1]];
        moments.explain(&mut found, &slowest, Some(1.0), 1.0);
        assert_eq!((found[0].index, found[0].cause), (1, Some(Cause::Stopped)));
        moments.explain(&mut found, &slowest, Some(1.0), 2.0);
        assert_eq!(found[0].cause, None);
    }
}
