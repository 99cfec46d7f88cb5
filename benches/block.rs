//! What the harness adds to storage commands: 512-byte reads of cached files by a bare loop, by lat-probe and by fio, in
//! turn within one run. Run it with `scripts/bench block`.
//!
//! The bare loops are written as one would in C: raw system calls, two stamps, one store. All three use one file and one
//! processor.

use std::{
    error::Error,
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use io_uring::{IoUring, opcode, types};
use lat_probe::{
    host::{CpuSet, Cpus, cpu},
    timing::{Counter, MonotonicRaw, Sample, Tsc, filled, tsc},
};
use serde_json::{Value, json};

const ROUNDS: usize = 11;
const COMMANDS: usize = 50_000;
const WARMUP: usize = 1_000;
const BYTES: usize = 512;
const FILE_BYTES: u64 = 1 << 20;
const P50_AIM: f64 = 1.02;
const PERIOD_AIM: f64 = 1.10;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Median latency and mean time from one command to the next, in nanoseconds.
#[derive(Clone, Copy)]
struct Figures {
    p50_ns: f64,
    period_ns: f64,
}

/// One engine on one file.
struct Case {
    engine: &'static str,
    fio_engine: &'static str,
    folder: PathBuf,
    place: &'static str,
}

fn main() -> Outcome<()> {
    let cpu = Cpus::read().choose(None, &CpuSet::default()).ok_or("no CPU may be used")?;
    let ticks_per_ns = ticks_per_ns();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    let cases = [
        Case { engine: "psync", fio_engine: "psync", folder: "/dev/shm".into(), place: "tmpfs" },
        Case { engine: "io-uring", fio_engine: "io_uring", folder: target.clone(), place: "disk, page cache" },
    ];
    let has_fio = Command::new("fio").arg("--version").stdout(Stdio::null()).status().is_ok_and(|it| it.success());
    let mut results = Vec::new();
    for case in &cases {
        let file = tempfile::NamedTempFile::new_in(&case.folder)?;
        file.as_file().write_all_at(&vec![1; FILE_BYTES as usize], 0)?;
        file.as_file().sync_all()?;
        results.push(compare(case, file.path(), cpu, ticks_per_ns, has_fio)?);
    }
    fs::create_dir_all(target.join("bench"))?;
    fs::write(target.join("bench/block.json"), format!("{:#}\n", json!({ "bench": "block", "cases": results })))?;
    println!("written       target/bench/block.json");
    Ok(())
}

fn compare(case: &Case, file: &Path, cpu: usize, ticks_per_ns: f64, has_fio: bool) -> Outcome<Value> {
    let Case { engine, place, .. } = case;
    println!("{engine}, {BYTES} B reads of a file on {place}, {ROUNDS} rounds of {COMMANDS} in turn, on CPU {cpu}");
    let (mut bare, mut ours, mut fio) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let ours_now = by_lat_probe(engine, file, cpu)?;
        let bare_now = bare_on_a_thread(engine, file, cpu, ticks_per_ns)?;
        let fio_now = if has_fio { Some(by_fio(case.fio_engine, file, cpu)?) } else { None };
        if round > 0 {
            bare.push(bare_now);
            ours.push(ours_now);
            fio.extend(fio_now);
        }
    }
    let row = |name: &str, all: &[Figures]| {
        let (p50, period) = (median(all, |it| it.p50_ns), median(all, |it| it.period_ns));
        println!("  {name:<10} p50 {p50:8.1} ns   period {period:8.1} ns");
        (p50, period)
    };
    let bare_figures = row("bare loop", &bare);
    let our_figures = row("lat-probe", &ours);
    // Paired within each round, so that a change of the machine's pace touches both.
    let ratio = |of: &[Figures], value: fn(&Figures) -> f64| {
        let mut ratios: Vec<f64> = of.iter().zip(&bare).map(|(one, bare)| value(one) / value(bare)).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    };
    let ours_ratio = (ratio(&ours, |it| it.p50_ns), ratio(&ours, |it| it.period_ns));
    if let (Some(p50), Some(period)) = ours_ratio {
        println!(
            "  ratio      p50 {p50:8.3} (aim: at most {P50_AIM})   period {period:8.3} (aim: at most {PERIOD_AIM})"
        );
    }
    let mut result = json!({
        "engine": engine, "place": place, "rounds": ROUNDS, "commands": COMMANDS, "bytes": BYTES,
        "bare": { "p50_ns": bare_figures.0, "period_ns": bare_figures.1 },
        "lat_probe": { "p50_ns": our_figures.0, "period_ns": our_figures.1 },
        "ratio": { "p50": ours_ratio.0, "period": ours_ratio.1 },
    });
    if fio.is_empty() {
        println!("  fio        is not installed");
    } else {
        let (p50, period) = row("fio", &fio);
        let (p50_ratio, period_ratio) = (ratio(&fio, |it| it.p50_ns), ratio(&fio, |it| it.period_ns));
        if let (Some(p50), Some(period)) = (p50_ratio, period_ratio) {
            println!("  fio/bare   p50 {p50:8.3}   period {period:8.3}");
        }
        result["fio"] = json!({ "p50_ns": p50, "period_ns": period });
        result["fio_ratio"] = json!({ "p50": p50_ratio, "period": period_ratio });
    }
    Ok(result)
}

fn by_lat_probe(engine: &str, file: &Path, cpu: usize) -> Outcome<Figures> {
    let output = Command::new(env!("CARGO_BIN_EXE_lat-probe"))
        .args(["--engine", engine, "--buffered", "--format", "json", "--target"])
        .arg(file)
        .args(["--bs", &BYTES.to_string(), "--count", &COMMANDS.to_string(), "--warmup", &WARMUP.to_string()])
        .args(["--cpu", &cpu.to_string()])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let point = &result["points"][0];
    let number = |value: &Value| value.as_f64().ok_or("a figure is missing");
    Ok(Figures {
        p50_ns: number(&point["latency_ns"]["percentiles"]["50"])?,
        period_ns: number(&point["throughput"]["period_ns"])?,
    })
}

/// fio's own figures: the median of its completion latency, and the run time by the number of commands.
fn by_fio(engine: &str, file: &Path, cpu: usize) -> Outcome<Figures> {
    let output = Command::new("fio")
        .args(["--name=bench", "--rw=read", "--direct=0", "--iodepth=1", "--output-format=json", "--invalidate=0"])
        .args([format!("--ioengine={engine}"), format!("--bs={BYTES}"), format!("--size={FILE_BYTES}")])
        .args([format!("--filename={}", file.display()), format!("--io_size={}", COMMANDS * BYTES)])
        .args([format!("--cpus_allowed={cpu}"), "--thread".into(), "--allow_file_create=0".into()])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let read = &result["jobs"][0]["read"];
    let number = |value: &Value| value.as_f64().ok_or("fio's output lacks a figure");
    Ok(Figures {
        p50_ns: number(&read["clat_ns"]["percentile"]["50.000000"])?,
        period_ns: 1e9 / number(&read["iops"])?,
    })
}

/// The bare loop on a thread of its own, pinned to the processor that the others are given.
fn bare_on_a_thread(engine: &str, file: &Path, cpu: usize, ticks_per_ns: f64) -> Outcome<Figures> {
    let file = File::open(file)?;
    let samples = std::thread::scope(|scope| {
        let bare = || -> Outcome<Vec<Sample>> {
            cpu::pin_current(cpu)?;
            match (engine, tsc::support()) {
                ("psync", Ok(())) => bare_psync::<Tsc>(&file),
                ("psync", Err(_)) => bare_psync::<MonotonicRaw>(&file),
                (_, Ok(())) => bare_uring::<Tsc>(&file),
                (_, Err(_)) => bare_uring::<MonotonicRaw>(&file),
            }
        };
        scope.spawn(move || bare().map_err(|error| error.to_string())).join()
    });
    let samples = samples.map_err(|_| "the bare loop failed")??;
    let mut ticks: Vec<u64> = samples.iter().map(|sample| sample.stop - sample.start).collect();
    ticks.sort_unstable();
    let (first, last) = (samples.first().ok_or("no samples")?, samples.last().ok_or("no samples")?);
    Ok(Figures {
        p50_ns: ticks[ticks.len() / 2] as f64 / ticks_per_ns,
        period_ns: (last.start - first.start) as f64 / ticks_per_ns / (samples.len() - 1) as f64,
    })
}

#[inline(never)]
fn bare_psync<C: Counter>(file: &File) -> Outcome<Vec<Sample>> {
    let mut buffer = vec![1u8; BYTES];
    let mut samples = filled::<Sample>(COMMANDS);
    let descriptor = file.as_raw_fd();
    let mut offset = 0;
    for index in 0..WARMUP + COMMANDS {
        let start = C::start();
        // SAFETY: the buffer is live and as long as it is said to be.
        #[allow(unsafe_code)]
        let moved = unsafe { libc::pread64(descriptor, buffer.as_mut_ptr().cast(), BYTES, offset) };
        let stop = C::stop();
        if moved != BYTES as isize {
            return Err(std::io::Error::last_os_error().into());
        }
        if index >= WARMUP {
            samples[index - WARMUP] = Sample { start, stop };
        }
        offset += BYTES as i64;
        if offset == FILE_BYTES as i64 {
            offset = 0;
        }
    }
    Ok(samples)
}

/// As lat-probe does by default: registered buffer and file, one entry, looking at the completion ring.
#[inline(never)]
fn bare_uring<C: Counter>(file: &File) -> Outcome<Vec<Sample>> {
    let mut buffer = vec![1u8; BYTES];
    let mut samples = filled::<Sample>(COMMANDS);
    let mut ring = IoUring::new(1)?;
    let vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: BYTES };
    // SAFETY: the buffer was declared before the ring, so it is dropped after it.
    #[allow(unsafe_code)]
    unsafe {
        ring.submitter().register_buffers(&[vector])?;
    }
    ring.submitter().register_files(&[file.as_raw_fd()])?;
    let mut offset = 0;
    for index in 0..WARMUP + COMMANDS {
        let entry =
            opcode::ReadFixed::new(types::Fixed(0), buffer.as_mut_ptr(), BYTES as u32, 0).offset(offset).build();
        let start = C::start();
        // SAFETY: the entry names the registered buffer, which is live.
        #[allow(unsafe_code)]
        unsafe {
            ring.submission().push(&entry)?;
            ring.submitter().enter::<libc::sigset_t>(1, 0, 0, None)?;
        }
        let moved = loop {
            if let Some(completion) = ring.completion().next() {
                break completion.result();
            }
        };
        let stop = C::stop();
        if moved != BYTES as i32 {
            return Err(format!("moved {moved}").into());
        }
        if index >= WARMUP {
            samples[index - WARMUP] = Sample { start, stop };
        }
        offset += BYTES as u64;
        if offset == FILE_BYTES {
            offset = 0;
        }
    }
    Ok(samples)
}

fn ticks_per_ns() -> f64 {
    use lat_probe::timing::{Calibration, ClockChoice};
    let clock = if tsc::support().is_ok() { ClockChoice::Tsc } else { ClockChoice::Monotonic };
    Calibration::begin(clock).map_or(1.0, |calibration| calibration.ticks_per_ns())
}

fn median(all: &[Figures], value: fn(&Figures) -> f64) -> f64 {
    let mut values: Vec<f64> = all.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
