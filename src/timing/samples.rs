//! What the loop stores: two or three stamps a command, in an array that is resident before the first command.

/// Start and stop of one command, in ticks of the clock in use. 16 bytes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sample {
    /// Stamp taken before the command was handed over.
    pub start: u64,
    /// Stamp taken after its completion was seen.
    pub stop: u64,
}

/// As [`Sample`], with a third stamp right after the command was handed over (`--phases`). 24 bytes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PhasedSample {
    /// Stamp taken before the command was handed over.
    pub start: u64,
    /// Stamp taken when the hand-over had returned.
    pub submitted: u64,
    /// Stamp taken after its completion was seen.
    pub stop: u64,
}

/// As [`PhasedSample`], with the time at which the command was to be handed over (`--rate`). 32 bytes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PacedSample {
    /// When the timetable wanted it handed over.
    pub intended: u64,
    /// Stamp taken before the command was handed over.
    pub start: u64,
    /// Stamp taken when the hand-over had returned.
    pub submitted: u64,
    /// Stamp taken after its completion was seen.
    pub stop: u64,
}

/// What the arithmetic reads of a sample.
pub trait Stamps: Copy {
    /// A value that no memory has by chance of being fresh; writing it makes pages resident.
    const FILL: Self;

    /// Stamp taken before the command was handed over, in ticks.
    fn start(&self) -> u64;
    /// Stamp taken when the hand-over had returned, in ticks, where it was taken.
    fn submitted(&self) -> Option<u64>;
    /// Stamp taken after the completion was seen, in ticks.
    fn stop(&self) -> u64;
    /// When the timetable wanted it handed over, in ticks, where there was one; never after the start.
    fn intended(&self) -> Option<u64> {
        None
    }
}

impl Stamps for Sample {
    const FILL: Self = Self { start: u64::MAX, stop: u64::MAX };

    fn start(&self) -> u64 {
        self.start
    }
    fn submitted(&self) -> Option<u64> {
        None
    }
    fn stop(&self) -> u64 {
        self.stop
    }
}

impl Stamps for PhasedSample {
    const FILL: Self = Self { start: u64::MAX, submitted: u64::MAX, stop: u64::MAX };

    fn start(&self) -> u64 {
        self.start
    }
    fn submitted(&self) -> Option<u64> {
        Some(self.submitted)
    }
    fn stop(&self) -> u64 {
        self.stop
    }
}

impl Stamps for PacedSample {
    const FILL: Self = Self { intended: u64::MAX, start: u64::MAX, submitted: u64::MAX, stop: u64::MAX };

    fn start(&self) -> u64 {
        self.start
    }
    fn submitted(&self) -> Option<u64> {
        Some(self.submitted)
    }
    fn stop(&self) -> u64 {
        self.stop
    }
    fn intended(&self) -> Option<u64> {
        Some(self.intended)
    }
}

/// An array of `count` samples whose every page has been written, so that the loop takes no page fault on it.
pub fn filled<S: Stamps>(count: usize) -> Vec<S> {
    // A non-zero fill is written for real; zeroes would come as untouched copy-on-write pages.
    vec![S::FILL; count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_sixteen_bytes() {
        assert_eq!(size_of::<Sample>(), 16);
        assert_eq!(size_of::<PhasedSample>(), 24);
    }
}
