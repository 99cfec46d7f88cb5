//! What the instrument costs on this machine, and what the machine does to it: measured before every run.

use std::time::Duration;

use crate::{
    engine::{Engine, Null},
    measure::{Control, Limits, Noise, Stamped, Way, listen, run},
    report::result::Instrument,
    stats::Summary,
    timing::{Calibration, Counter, MonotonicRaw, PhasedSample, Sample, Source, Tsc, filled},
};

/// How long the machine is listened to before a run.
const NOISE_WINDOW: Duration = Duration::from_millis(50);

/// Commands that a floor is measured with.
const FLOOR_COMMANDS: usize = 10_000;

/// Measures both, on the calling thread.
pub(super) fn measure(clock: &Calibration, phases: bool) -> Instrument {
    Instrument { noise: noise(clock, NOISE_WINDOW), floor_ns: floor(clock, phases) }
}

/// Gaps in a spin of the calling thread.
pub(super) fn noise(clock: &Calibration, window: Duration) -> Noise {
    let (ticks_per_ns, read_cost_ns) = (clock.ticks_per_ns(), clock.facts().read_cost_ns);
    match clock.facts().source {
        Source::Tsc => listen::<Tsc>(window, ticks_per_ns, read_cost_ns),
        Source::Monotonic => listen::<MonotonicRaw>(window, ticks_per_ns, read_cost_ns),
    }
}

/// Latency of the command that does nothing, through the same compiled loop.
pub(super) fn floor(clock: &Calibration, phases: bool) -> Summary {
    match (clock.facts().source, phases) {
        (Source::Tsc, false) => floor_of::<Null, Tsc, Sample>(&mut Null, clock),
        (Source::Tsc, true) => floor_of::<Null, Tsc, PhasedSample>(&mut Null, clock),
        (Source::Monotonic, false) => floor_of::<Null, MonotonicRaw, Sample>(&mut Null, clock),
        (Source::Monotonic, true) => floor_of::<Null, MonotonicRaw, PhasedSample>(&mut Null, clock),
    }
}

fn floor_of<E: Engine, C: Counter, S: Stamped>(engine: &mut E, clock: &Calibration) -> Summary {
    let mut samples = filled::<S>(FLOOR_COMMANDS);
    let limits = Limits { warmup: 1000, ..Limits::default() };
    let taken = run::<E, C, S>(engine, &mut Way::Single, &mut samples.as_mut_slice(), limits, &Control::default());
    let samples = &samples[..taken.samples as usize];
    let mut latencies: Vec<u64> = samples.iter().map(|sample| sample.stop().saturating_sub(sample.start())).collect();
    latencies.sort_unstable();
    Summary::of_sorted(&latencies, clock.ticks_per_ns())
}
