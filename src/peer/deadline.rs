//! A point in time by which a step must be over.

use std::time::{Duration, Instant};

/// Longer waits have no meaning here, and adding them to a clock could overflow it.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// An absolute end, and the time that was allowed, which an error names when it is over.
///
/// It is absolute because a timeout for each read would start anew with every byte: a peer that drips one byte at a
/// time could hold a step for ever.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    end: Instant,
    allowed: Duration,
}

impl Deadline {
    /// The deadline `allowed` from now.
    pub fn after(allowed: Duration) -> Self {
        let allowed = allowed.min(LONGEST);
        Self { end: Instant::now() + allowed, allowed }
    }

    /// The time left, never zero, or `None` when the deadline has passed.
    pub fn remaining(&self) -> Option<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// The time that was allowed in all, in words: `10 s`, `0.3 s`.
    pub fn allowed(&self) -> String {
        format_seconds(self.allowed)
    }
}

/// Seconds with milliseconds only where there are some.
pub(super) fn format_seconds(time: Duration) -> String {
    format!("{} s", time.as_millis() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_and_remembers_what_it_allowed() {
        let deadline = Deadline::after(Duration::from_millis(20));
        assert!(deadline.remaining().is_some());
        std::thread::sleep(Duration::from_millis(25));
        assert!(deadline.remaining().is_none());
        assert_eq!(deadline.allowed(), "0.02 s");
    }

    #[test]
    fn the_longest_duration_does_not_overflow_the_clock() {
        assert!(Deadline::after(Duration::MAX).remaining().is_some());
    }

    #[test]
    fn whole_seconds_are_printed_whole() {
        assert_eq!(Deadline::after(Duration::from_secs(10)).allowed(), "10 s");
    }
}
