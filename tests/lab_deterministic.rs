//! On counted instructions the same command takes the same time. Run in the lab: `scripts/test`, or
//! `scripts/lab --deterministic -- TEST-BINARY --test-threads=1`.
#![cfg(feature = "rdma")]

mod lab;

use std::{fs, os::unix::fs::FileExt};

use lab::{measure, point, warns};
use lat_probe::{
    engine::{
        Completion, Engine, Null, One, RdmaOptions, Verb,
        block::{Subject, offsets::Offsets, setup, sync::Psync},
        rdma::{
            adapter::Adapter,
            endpoint::{Endpoint, Role},
            requester::{Fixed, Requester},
            wait::Polling,
            wire::Request,
        },
    },
    host::Sysfs,
    measure::{Control, End, Limits, Way, run},
    timing::{Calibration, ClockChoice, Counter, Sample, Tsc, filled},
};

/// Nanoseconds of an instruction on this clock (`-icount shift=2`).
const INSTRUCTION_NS: f64 = 4.0;
const COMMANDS: usize = 4_000;

/// What the harness may add to a command, in instructions: fetching the slot, the place of the sample,
/// the check of the length. Found: 3, 3 and 12. Exact here, so a change of one instruction shows.
const ALLOWED: [(&str, f64); 3] = [("null", 4.0), ("psync", 8.0), ("rdma-read", 16.0)];

/// Runs that must agree, and runs to try: memory that the kernel hands out and takes back in another order (a slab that fills up)
/// makes a path of about 280 instructions longer for a while after a boot, by itself and in the middle of a series.
const AGREEING: usize = 3;
const RUNS: usize = 12;

#[test]
fn settled_runs_in_one_boot_have_the_same_median() {
    if !lab::in_lab(1) {
        return;
    }
    assert_eq!(std::env::var("LAB_DETERMINISTIC").as_deref(), Ok("1"), "this lab does not count instructions");
    let mut p50 = Vec::new();
    let settled = |p50: &[f64]| {
        let last = p50.iter().rev().take(AGREEING);
        let (min, max) = last.fold((f64::INFINITY, 0.0), |(min, max), p50| (p50.min(min), p50.max(max)));
        p50.len() >= AGREEING && max / min - 1.0 < 0.001
    };
    while !settled(&p50) && p50.len() < RUNS {
        let result = measure("--engine rdma-read --qd 1 --clock tsc --count 3000 --warmup 100");
        assert!(warns(&result, "clock-forced"));
        p50.push(point(&result)["latency_ns"]["percentiles"]["50"].as_f64().unwrap());
    }
    let record = serde_json::json!({ "engine": "rdma-read", "bs_bytes": 8, "p50_ns": p50 });
    std::fs::write(lab::out_folder().join("deterministic.json"), record.to_string()).unwrap();
    // By chance, with a noise of one per cent, that is one series in a thousand.
    assert!(settled(&p50), "{p50:?}");
}

/// Median instructions from one command to the next.
fn per_command(ticks_per_ns: f64, fill: impl FnOnce(&mut [Sample])) -> f64 {
    let mut samples = filled::<Sample>(COMMANDS);
    fill(&mut samples);
    let mut ticks: Vec<_> = samples.windows(2).map(|pair| pair[1].start - pair[0].start).collect();
    ticks.sort_unstable();
    ticks[ticks.len() / 2] as f64 / ticks_per_ns / INSTRUCTION_NS
}

/// The commands of an engine, stamped by hand.
#[inline(never)]
fn by_hand<E: Engine>(engine: &mut E, samples: &mut [Sample]) {
    for sample in samples {
        engine.prepare(0).unwrap();
        let start = Tsc::start();
        engine.submit(0).unwrap();
        let mut done = One::default();
        while done.outcome().is_none() {
            engine.poll(&mut done).unwrap();
        }
        let stop = Tsc::stop();
        *sample = Sample { start, stop };
    }
}

/// The same commands through the harness.
fn by_harness<E: Engine>(engine: &mut E, samples: &mut [Sample]) {
    let taken =
        run::<E, Tsc, _>(engine, &mut Way::Single, &mut &mut samples[..], Limits::default(), &Control::default());
    assert_eq!((taken.samples as usize, taken.end), (COMMANDS, End::Count));
}

/// Reads of a file in memory as the standard library makes them.
#[inline(never)]
fn read_by_hand(file: &fs::File, buffer: &mut [u8], samples: &mut [Sample]) {
    for sample in samples {
        let start = Tsc::start();
        let moved = file.read_at(buffer, 0);
        let stop = Tsc::stop();
        assert!(matches!(moved, Ok(512)));
        *sample = Sample { start, stop };
    }
}

fn psync(file: &fs::File) -> Psync<false> {
    let subject =
        Subject { path: String::new(), command: "pread".into(), bytes: 512, size_hint: String::new(), device: None };
    let buffer = setup::buffer(512, 1, false, None).unwrap();
    Psync::new(file.try_clone().unwrap(), buffer, Offsets::new(0, 512, 512, None), subject)
}

/// One end of a loopback.
fn endpoint(role: Role) -> Endpoint {
    let options = RdmaOptions::default();
    let adapter = Adapter::open(&Sysfs::default(), &options, None).unwrap();
    let request = Request { verb: Verb::Read, bs_bytes: 8, depth: 1, completion: Completion::Poll, options, seed: 1 };
    Endpoint::create(adapter, request, role).unwrap()
}

#[test]
fn the_harness_adds_no_more_than_a_stated_number_of_instructions() {
    if !lab::in_lab(1) {
        return;
    }
    let clock = Calibration::begin(ClockChoice::Tsc).unwrap();
    let of = |fill: &mut dyn FnMut(&mut [Sample])| {
        // The kernel's paths settle in the first round.
        per_command(clock.ticks_per_ns(), &mut *fill);
        per_command(clock.ticks_per_ns(), fill)
    };
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    file.as_file().write_all_at(&[1; 512], 0).unwrap();
    let mut buffer = [0; 512];
    let (mut initiator, mut responder) = (endpoint(Role::Initiator), endpoint(Role::Responder));
    responder.connect(&initiator.info()).unwrap();
    initiator.connect(&responder.info()).unwrap();
    let rdma = || {
        let request = initiator.send_request(&responder.info()).unwrap();
        Requester::new(&initiator, request, Polling::new(&initiator.send_queue), Fixed)
    };
    let measured = [
        ("null", of(&mut |samples| by_hand(&mut Null, samples)), of(&mut |samples| by_harness(&mut Null, samples))),
        (
            "psync",
            of(&mut |samples| read_by_hand(file.as_file(), &mut buffer, samples)),
            of(&mut |samples| by_harness(&mut psync(file.as_file()), samples)),
        ),
        (
            "rdma-read",
            of(&mut |samples| by_hand(&mut rdma(), samples)),
            of(&mut |samples| by_harness(&mut rdma(), samples)),
        ),
    ];
    let record: Vec<_> = measured
        .iter()
        .map(|(engine, bare, harness)| {
            serde_json::json!({ "engine": engine, "bare_instructions": bare, "harness_instructions": harness })
        })
        .collect();
    let record = serde_json::json!({ "unit": "instructions from one command to the next, median", "engines": record });
    fs::write(lab::out_folder().join("path-length.json"), format!("{record:#}\n")).unwrap();
    eprintln!("{record:#}");
    for ((engine, bare, harness), (name, allowed)) in measured.into_iter().zip(ALLOWED) {
        assert_eq!(engine, name);
        // Instructions are whole; the calibrated rate of the counter is not.
        assert!(
            (harness - bare).round() <= allowed,
            "{engine}: {harness} instructions, by hand {bare}; allowed are {allowed} more"
        );
    }
}
