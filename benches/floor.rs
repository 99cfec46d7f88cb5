//! What the harness costs: a bare loop of two reads of the counter and one store, and `null` through the whole harness,
//! in turn within one process. Run it with `scripts/bench`.

mod common;

use std::{error::Error, fs, hint::black_box, path::Path, time::Instant};

use common::{median, range, resident_pages};
use lat_probe::{
    engine::Null,
    host::{CpuSet, Cpus, cpu},
    measure::{Control, End, Limits, Taken, Way, run},
    timing::{Counter, MonotonicRaw, Sample, Tsc, filled, tsc},
};
use serde_json::json;

const ROUNDS: usize = 15;
/// Long enough for several chunks of the harness, so that what it does between them is in the figure.
const COMMANDS: usize = 1 << 20;
const AIM: f64 = 1.25;

fn main() -> Result<(), Box<dyn Error>> {
    let cpu = Cpus::read().choose(None, &CpuSet::default()).ok_or("no CPU may be used")?;
    cpu::pin_current(cpu)?;
    match tsc::support() {
        Ok(()) => measure::<Tsc>("tsc", cpu),
        Err(unusable) => {
            println!("clock: CLOCK_MONOTONIC_RAW, because {}", unusable.reason());
            measure::<MonotonicRaw>("monotonic", cpu)
        }
    }
}

/// The least that a loop can do which keeps two stamps a command.
#[inline(never)]
fn bare<C: Counter>(samples: &mut [Sample]) {
    for sample in samples {
        let start = C::start();
        let stop = C::stop();
        *sample = Sample { start, stop };
    }
}

#[inline(never)]
fn harness<C: Counter>(samples: &mut [Sample]) -> Result<(), String> {
    match run::<_, C, _>(&mut Null, &mut Way::Single, &mut &mut samples[..], Limits::default(), &Control::default()) {
        Taken { samples, end: End::Count, .. } if samples == COMMANDS as u64 => Ok(()),
        other => Err(format!("the harness ended early: {other:?}")),
    }
}

fn measure<C: Counter>(clock: &str, cpu: usize) -> Result<(), Box<dyn Error>> {
    // One array for both, so that neither has the better memory.
    let mut samples = filled::<Sample>(COMMANDS);
    let (mut bare_ns, mut null_ns) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    let mut resident = 0;
    for round in 0..=ROUNDS {
        let bare_took = per_command(|| bare::<C>(black_box(&mut samples)));
        let mut outcome = Ok(());
        let null_took = per_command(|| outcome = harness::<C>(black_box(&mut samples)));
        outcome?;
        if round == 0 {
            // The first round warms up; what it made resident is no growth.
            resident = resident_pages()?;
        } else {
            bare_ns.push(bare_took);
            null_ns.push(null_took);
        }
    }
    let grown = resident_pages()? - resident;
    let (bare_median, null_median) = (median(&bare_ns), median(&null_ns));
    let ratio = null_median / bare_median;
    println!("{ROUNDS} rounds of {COMMANDS} commands each in turn, on CPU {cpu}, by the {clock} clock");
    println!("bare loop     {bare_median:8.2} ns a command (median; {})", range(&bare_ns));
    println!("null, harness {null_median:8.2} ns a command (median; {})", range(&null_ns));
    println!("ratio         {ratio:8.3} (aim: at most {AIM})");
    println!("memory        {:8} bytes a sample; resident memory grew by {grown} pages", size_of::<Sample>());
    let result = json!({
        "bench": "floor", "clock": clock, "cpu": cpu, "rounds": ROUNDS, "commands": COMMANDS,
        "bare_ns": bare_ns, "null_ns": null_ns, "bare_median_ns": bare_median, "null_median_ns": null_median,
        "ratio": ratio, "ratio_aim": AIM, "sample_bytes": size_of::<Sample>(), "resident_growth_pages": grown,
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("floor.json"), format!("{result:#}\n"))?;
    println!("written       target/bench/floor.json");
    Ok(())
}

/// Wall time of `work` in nanoseconds for each of its commands.
fn per_command(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_nanos() as f64 / COMMANDS as f64
}
