//! Which counter stamps commands, and how its ticks become nanoseconds.
//!
//! The rate of an invariant TSC is scaled by `quanta` and checked against CLOCK_MONOTONIC_RAW, an independent path
//! through the kernel, before the run and over the run. Where the two disagree, or where a counter is forced without
//! being invariant, the rate of the check is used. Nothing is ever taken from /proc/cpuinfo.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tsc;
use crate::error::{Error, Result};

/// Shortest window over which a rate is measured. A read of the reference costs 20 ns to 3 µs, so the rate is known to
/// 100 ppm at worst and to about 1 ppm on common machines.
const RATE_WINDOW: Duration = Duration::from_millis(50);

/// A disagreement beyond this means that an interruption spoiled the calibration of `quanta`, which it can by up to 0.2 %
/// on a busy machine; the check cannot be spoiled so, since it keeps the narrowest of many brackets.
pub const CALIBRATION_LIMIT_PPM: f64 = 200.0;

/// A drift beyond this makes every figure of the run doubtful: 1 %.
const DRIFT_LIMIT_PPM: f64 = 10_000.0;

/// A source of stamps. All three are inlined into the loop.
pub trait Counter: 'static {
    /// Which source this is.
    const SOURCE: Source;
    /// Start stamp in ticks, ordered against the code before and after it.
    fn start() -> u64;
    /// Stop stamp in ticks, ordered after the code before it.
    fn stop() -> u64;
    /// The counter in ticks, unordered: for waiting, never for a stamp.
    fn now() -> u64;
}

/// The fenced x86 time stamp counter.
#[derive(Debug)]
pub struct Tsc;

impl Counter for Tsc {
    const SOURCE: Source = Source::Tsc;

    #[inline(always)]
    fn start() -> u64 {
        tsc::start()
    }
    #[inline(always)]
    fn stop() -> u64 {
        tsc::stop()
    }
    #[inline(always)]
    fn now() -> u64 {
        tsc::now()
    }
}

/// CLOCK_MONOTONIC_RAW in nanoseconds: not slewed by NTP, read through the vDSO where the clocksource allows it.
#[derive(Debug)]
pub struct MonotonicRaw;

impl Counter for MonotonicRaw {
    const SOURCE: Source = Source::Monotonic;

    #[inline(always)]
    fn start() -> u64 {
        raw_ns()
    }
    #[inline(always)]
    fn stop() -> u64 {
        raw_ns()
    }
    #[inline(always)]
    fn now() -> u64 {
        raw_ns()
    }
}

/// What `--clock` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClockChoice {
    /// The TSC where it is invariant, otherwise the monotonic clock, with a warning.
    #[default]
    Auto,
    /// The TSC, even where its rate may change; the result is marked.
    Tsc,
    /// CLOCK_MONOTONIC_RAW.
    Monotonic,
}

/// The clock that stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The fenced time stamp counter.
    Tsc,
    /// CLOCK_MONOTONIC_RAW.
    Monotonic,
}

/// The clock that was granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// The clock that stamped the commands: the fenced time stamp counter or CLOCK_MONOTONIC_RAW.
    pub source: Source,
    /// Whether the counter was forced although it is not invariant.
    pub forced: bool,
    /// Why the counter is not trusted on this machine; null where it is.
    pub tsc_doubt: Option<String>,
    /// Ticks of the clock in one nanosecond; 1 for the monotonic clock.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub ticks_per_ns: f64,
    /// Calibrated rate against the rate by CLOCK_MONOTONIC_RAW before the run, in millionths; null where only one of them
    /// is known. Beyond ±200 the latter is in use.
    pub calibration_error_ppm: Option<f64>,
    /// Rate over the run by CLOCK_MONOTONIC_RAW against the rate in use, in millionths; null for the monotonic clock,
    /// which is the reference itself.
    pub drift_ppm: Option<f64>,
    /// Median cost of one start stamp, ns.
    #[schemars(range(min = 0))]
    pub read_cost_ns: f64,
}

/// One instant on both clocks: the counter's ticks and CLOCK_MONOTONIC_RAW.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    ticks: u64,
    raw_ns: u64,
}

/// A clock whose rate is known, and which will be checked once more after the run.
#[derive(Debug)]
pub struct Calibration {
    facts: ClockFacts,
    anchor: Anchor,
}

impl Calibration {
    /// Chooses the clock and measures its rate; takes 50 to 250 ms.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the TSC is forced where there is none, [`Error::Clock`] if a counter runs backwards.
    pub fn begin(choice: ClockChoice) -> Result<Self> {
        let support = tsc::support();
        let doubt = support.err().map(|unusable| unusable.reason().to_string());
        match (choice, support) {
            (ClockChoice::Tsc, Err(unusable)) if !unusable.can_be_forced() => Err(Error::Unavailable {
                what: format!("--clock tsc: {}", unusable.reason()),
                remedy: "Use --clock monotonic".into(),
            }),
            (ClockChoice::Tsc | ClockChoice::Auto, Ok(())) | (ClockChoice::Tsc, Err(_)) => Self::begin_tsc(doubt),
            (ClockChoice::Auto, Err(_)) | (ClockChoice::Monotonic, _) => Ok(Self::begin_monotonic(doubt)),
        }
    }

    fn begin_tsc(doubt: Option<String>) -> Result<Self> {
        let first = Anchor::take();
        // quanta calibrates while we wait, against another reference (CLOCK_MONOTONIC) and by another method.
        let by_quanta = if doubt.is_none() { quanta_ticks_per_ns() } else { None };
        let anchor = Anchor::take_after(&first, RATE_WINDOW);
        let by_raw = first.rate_to(&anchor)?;
        let calibration_error_ppm = by_quanta.map(|rate| parts_per_million(rate, by_raw));
        let agreed = calibration_error_ppm.is_some_and(|error| error.abs() <= CALIBRATION_LIMIT_PPM);
        let ticks_per_ns = by_quanta.filter(|_| agreed).unwrap_or(by_raw);
        let facts = ClockFacts {
            source: Source::Tsc,
            forced: doubt.is_some(),
            tsc_doubt: doubt,
            ticks_per_ns,
            calibration_error_ppm,
            drift_ppm: None,
            read_cost_ns: read_cost_ticks::<Tsc>() / ticks_per_ns,
        };
        Ok(Self { facts, anchor })
    }

    fn begin_monotonic(doubt: Option<String>) -> Self {
        let facts = ClockFacts {
            source: Source::Monotonic,
            forced: false,
            tsc_doubt: doubt,
            ticks_per_ns: 1.0,
            calibration_error_ppm: None,
            drift_ppm: None,
            read_cost_ns: read_cost_ticks::<MonotonicRaw>(),
        };
        Self { facts, anchor: Anchor { ticks: 0, raw_ns: 0 } }
    }

    /// The clock as known so far; the drift is still open.
    pub fn facts(&self) -> &ClockFacts {
        &self.facts
    }

    /// Ticks of the clock in one nanosecond.
    pub fn ticks_per_ns(&self) -> f64 {
        self.facts.ticks_per_ns
    }

    /// The clock with its rate checked over the time since the calibration; waits until at least 50 ms have passed since the calibration.
    ///
    /// # Errors
    /// [`Error::Clock`] if the counter ran backwards or drifted by more than 1 %: no sample of such a run means anything.
    pub fn check(&self) -> Result<ClockFacts> {
        let mut facts = self.facts.clone();
        if self.facts.source == Source::Tsc {
            let last = Anchor::take_after(&self.anchor, RATE_WINDOW);
            let drift_ppm = parts_per_million(self.anchor.rate_to(&last)?, self.facts.ticks_per_ns);
            if drift_ppm.abs() > DRIFT_LIMIT_PPM {
                return Err(Error::Clock(format!(
                    "the time stamp counter drifted by {drift_ppm:.0} ppm against CLOCK_MONOTONIC_RAW during the run \
                     (limit {DRIFT_LIMIT_PPM:.0}). Use --clock monotonic"
                )));
            }
            facts.drift_ppm = Some(drift_ppm);
        }
        Ok(facts)
    }
}

impl Anchor {
    /// Reads both clocks as close together as can be had: the narrowest of 32 brackets, so that an interrupt between the
    /// two reads does not become an error of the rate.
    fn take() -> Self {
        let bracket = |_| {
            let before = tsc::start();
            let raw_ns = raw_ns();
            let after = tsc::stop();
            (after.wrapping_sub(before), Anchor { ticks: before.wrapping_add(after.wrapping_sub(before) / 2), raw_ns })
        };
        let (mut width, mut best) = bracket(0);
        for candidate in (1..32).map(bracket) {
            if candidate.0 < width {
                (width, best) = candidate;
            }
        }
        best
    }

    fn take_after(earlier: &Self, window: Duration) -> Self {
        let elapsed = Duration::from_nanos(raw_ns().saturating_sub(earlier.raw_ns));
        let until = Instant::now() + window.saturating_sub(elapsed);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        Self::take()
    }

    /// Ticks per nanosecond between two anchors.
    fn rate_to(&self, later: &Self) -> Result<f64> {
        if later.ticks <= self.ticks || later.raw_ns <= self.raw_ns {
            return Err(Error::Clock(format!(
                "the counter ran backwards or stood still (from {} to {} ticks in {} ns). Use --clock monotonic",
                self.ticks,
                later.ticks,
                later.raw_ns.wrapping_sub(self.raw_ns)
            )));
        }
        Ok((later.ticks - self.ticks) as f64 / (later.raw_ns - self.raw_ns) as f64)
    }
}

/// The TSC's rate as `quanta` calibrates it, or `None` where quanta does not use the TSC (its scale is then exactly 1).
fn quanta_ticks_per_ns() -> Option<f64> {
    const TICKS: u64 = 1 << 40;
    let nanoseconds = quanta::Clock::new().delta_as_nanos(0, TICKS);
    (nanoseconds != TICKS && nanoseconds != 0).then(|| TICKS as f64 / nanoseconds as f64)
}

fn parts_per_million(value: f64, reference: f64) -> f64 {
    (value / reference - 1.0) * 1e6
}

/// Median cost of one start stamp in ticks, over 51 batches of 64 reads.
fn read_cost_ticks<C: Counter>() -> f64 {
    const READS: u32 = 64;
    let mut batches = [0u64; 51];
    for batch in &mut batches {
        let before = C::start();
        for _ in 0..READS {
            std::hint::black_box(C::start());
        }
        *batch = C::start().saturating_sub(before);
    }
    batches.sort_unstable();
    batches[batches.len() / 2] as f64 / f64::from(READS + 1)
}

/// CLOCK_MONOTONIC_RAW in nanoseconds.
#[inline(always)]
fn raw_ns() -> u64 {
    // The call fails only for a clock id that the kernel does not know; this one exists since Linux 2.6.28.
    match clock_gettime(ClockId::CLOCK_MONOTONIC_RAW) {
        Ok(time) => time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_runs_backwards_is_an_error_with_a_name() {
        let first = Anchor { ticks: 1000, raw_ns: 100 };
        let later = Anchor { ticks: 999, raw_ns: 200 };
        let error = first.rate_to(&later).unwrap_err();
        assert!(matches!(error, Error::Clock(_)), "{error}");
        assert!(error.to_string().contains("backwards"), "{error}");
    }

    #[test]
    fn a_rate_is_ticks_by_nanoseconds() {
        let first = Anchor { ticks: 1000, raw_ns: 100 };
        let later = Anchor { ticks: 3000, raw_ns: 1100 };
        assert_eq!(first.rate_to(&later).unwrap(), 2.0);
    }

    #[test]
    fn the_monotonic_clock_counts_nanoseconds_and_has_no_drift_against_itself() {
        let facts = Calibration::begin(ClockChoice::Monotonic).unwrap().check().unwrap();
        assert_eq!((facts.source, facts.ticks_per_ns, facts.drift_ppm), (Source::Monotonic, 1.0, None));
        assert!(facts.read_cost_ns > 0.0);
    }

    #[test]
    fn an_invariant_counter_agrees_with_the_raw_clock() {
        if let Err(unusable) = tsc::support() {
            eprintln!("skipped: {}", unusable.reason());
            return;
        }
        let facts = Calibration::begin(ClockChoice::Tsc).unwrap().check().unwrap();
        assert!(!facts.forced);
        // The rate in use, whichever it is: 1000 ppm is above what two narrow brackets can be off by on any machine, and
        // far below what a wrong scale would show.
        assert!(facts.calibration_error_ppm.is_some());
        assert!(facts.drift_ppm.unwrap().abs() < 1000.0, "{facts:?}");
    }
}
