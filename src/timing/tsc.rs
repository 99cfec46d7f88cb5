//! The x86 time stamp counter: fenced reads, and whether it can be trusted as a clock.
//!
//! Fences follow the practice of Intel's "How to Benchmark Code Execution Times" and of divan: a start stamp is
//! `lfence; rdtsc; lfence` (nothing earlier may still be running, nothing later may start), a stop stamp is
//! `rdtscp; lfence` (`rdtscp` waits for everything before it).
#![allow(unsafe_code)]

/// Why the counter cannot serve as a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The processor is not an x86-64.
    NotX86,
    /// There is no `rdtscp` instruction.
    NoRdtscp,
    /// The counter may change its rate or stop with the processor's power state.
    NotInvariant,
}

impl Unusable {
    /// The reason as a clause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotX86 => "this processor has no x86 time stamp counter",
            Self::NoRdtscp => "this processor has no rdtscp instruction",
            Self::NotInvariant => "the time stamp counter is not invariant here",
        }
    }

    /// Whether `--clock tsc` may override the doubt: a counter of unsteady rate can be read, a missing one cannot.
    pub fn can_be_forced(self) -> bool {
        self == Self::NotInvariant
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Unusable;
    use std::arch::x86_64::{__cpuid, __rdtscp, _mm_lfence, _rdtsc};

    /// Asks the processor whether its counter is present (leaf 8000_0001, EDX 27) and invariant (8000_0007, EDX 8).
    pub fn support() -> Result<(), Unusable> {
        #[allow(unused_unsafe)] // `__cpuid` became a safe function in newer toolchains.
        let leaf = |number| {
            // SAFETY: every x86-64 processor has `cpuid`; a leaf is asked only if leaf 8000_0000 says that it exists.
            unsafe { __cpuid(number) }
        };
        let highest = leaf(0x8000_0000).eax;
        if highest < 0x8000_0001 || leaf(0x8000_0001).edx & (1 << 27) == 0 {
            return Err(Unusable::NoRdtscp);
        }
        if highest < 0x8000_0007 || leaf(0x8000_0007).edx & (1 << 8) == 0 {
            return Err(Unusable::NotInvariant);
        }
        Ok(())
    }

    /// Start stamp: ordered after everything before it and before everything after it.
    #[inline(always)]
    pub fn start() -> u64 {
        // SAFETY: `lfence` is in SSE2 and `rdtsc` in the base set; both exist on every x86-64 processor.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }

    /// Stop stamp: ordered after everything before it; nothing after it starts earlier.
    #[inline(always)]
    pub fn stop() -> u64 {
        let mut aux = 0;
        // SAFETY: `support` has found `rdtscp` before this clock could be chosen, and `aux` is a live local.
        unsafe {
            let ticks = __rdtscp(&mut aux);
            _mm_lfence();
            ticks
        }
    }

    /// The counter as it stands, unordered: for waiting, never for a stamp.
    #[inline(always)]
    pub fn now() -> u64 {
        // SAFETY: `rdtsc` is in the base set of every x86-64 processor.
        unsafe { _rdtsc() }
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{now, start, stop, support};

#[cfg(not(target_arch = "x86_64"))]
mod absent {
    use super::Unusable;

    /// There is no such counter on this architecture.
    pub fn support() -> Result<(), Unusable> {
        Err(Unusable::NotX86)
    }

    /// Never called: `support` refuses the clock.
    pub fn start() -> u64 {
        0
    }

    pub use start as stop;
    pub use start as now;
}

#[cfg(not(target_arch = "x86_64"))]
pub use absent::{now, start, stop, support};
