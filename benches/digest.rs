//! What a digest costs: time for each sample that is folded in, and memory. Run it with `scripts/bench digest`.

mod common;

use std::{error::Error, fs, hint::black_box, path::Path, time::Instant};

use common::{median, range, resident_pages};
use lat_probe::{
    host::{CpuSet, Cpus, cpu},
    stats::{Digest, Scale},
    timing::{PhasedSample, Sample, Stamps, filled},
};
use serde_json::json;

const ROUNDS: usize = 15;
/// About what a chunk of the measuring loop brings.
const CHUNK: usize = 1 << 14;
const CHUNKS: usize = 256;
const AIM_NS: f64 = 8.0;

fn main() -> Result<(), Box<dyn Error>> {
    let cpu = Cpus::read().choose(None, &CpuSet::default()).ok_or("no CPU may be used")?;
    cpu::pin_current(cpu)?;
    let mut digest = Digest::new(10);
    let (two_ns, grown) = measure(&mut digest, |start, stop| Sample { start, stop })?;
    let (three_ns, _) =
        measure(&mut Digest::new(10), |start, stop| PhasedSample { start, submitted: start + 900, stop })?;
    let began = Instant::now();
    black_box(digest.figures(Scale::of(2.1)));
    let figures_ms = began.elapsed().as_secs_f64() * 1e3;
    let (two_median, three_median, bytes) = (median(&two_ns), median(&three_ns), digest.bytes());
    println!("{ROUNDS} rounds of {CHUNKS} chunks of {CHUNK} samples each, on CPU {cpu}");
    println!("two stamps    {two_median:8.2} ns a sample (median; {}; aim: at most {AIM_NS})", range(&two_ns));
    println!("three stamps  {three_median:8.2} ns a sample (median; {})", range(&three_ns));
    println!("figures       {figures_ms:8.2} ms, once at the end");
    println!("memory        {bytes:8} bytes; resident memory grew by {grown} pages");
    let result = json!({
        "bench": "digest", "cpu": cpu, "rounds": ROUNDS, "samples": CHUNKS * CHUNK, "two_stamps_ns": two_ns,
        "three_stamps_ns": three_ns, "two_stamps_median_ns": two_median, "three_stamps_median_ns": three_median,
        "aim_ns": AIM_NS, "figures_ms": figures_ms, "bytes": bytes, "resident_growth_pages": grown,
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("digest.json"), format!("{result:#}\n"))?;
    println!("written       target/bench/digest.json");
    Ok(())
}

/// Nanoseconds a sample in each round, and by how many pages resident memory grew over them. The run goes on from round to
/// round, so that windows are put together as they would be; chunks differ in time only.
fn measure<S: Stamps>(digest: &mut Digest, sample: impl Fn(u64, u64) -> S) -> Result<(Vec<f64>, i64), Box<dyn Error>> {
    let mut now = 1 << 40;
    let mut noise = 1u64;
    let mut rounds = Vec::with_capacity(ROUNDS);
    let mut chunk = filled::<S>(CHUNK);
    let mut resident = 0;
    for round in 0..=ROUNDS {
        let mut seconds = 0.0;
        for _ in 0..CHUNKS {
            for place in &mut chunk {
                let start = now;
                now += latency(&mut noise);
                *place = sample(start, now);
            }
            let began = Instant::now();
            digest.fold(black_box(&chunk));
            seconds += began.elapsed().as_secs_f64();
        }
        if round == 0 {
            // The first round warms up; what it made resident is no growth.
            resident = resident_pages()?;
        } else {
            rounds.push(seconds * 1e9 / (CHUNKS * CHUNK) as f64);
        }
    }
    Ok((rounds, resident_pages()? - resident))
}

/// About 10 µs at 2 GHz with a spread of 10 %, and one in a thousand ten times as long (xorshift: G. Marsaglia, "Xorshift RNGs",
/// Journal of Statistical Software 8, 2003).
fn latency(noise: &mut u64) -> u64 {
    *noise ^= *noise << 13;
    *noise ^= *noise >> 7;
    *noise ^= *noise << 17;
    let spread = (*noise & 1023) + (*noise >> 10 & 1023);
    let latency = 19_000 + spread;
    if *noise >> 40 & 1023 == 0 { 10 * latency } else { latency }
}
