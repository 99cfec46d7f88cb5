//! Devices of known latency, measured by this program and by fio in turn, on counted instructions. Run in the lab:
//! `scripts/test`, or `scripts/lab --deterministic --with null_blk -- TEST-BINARY --test-threads=1`.
//!
//! Where time is counted in instructions, other load on the machine changes nothing, so that two programs can be compared
//! to a few microseconds. With real time their medians differ by a factor of two from one round to the next.

mod lab;

use std::process::{Command, Stdio};

use lab::{measure, point};
use serde_json::{Value, json};

const ROUNDS: usize = 3;
const COUNT: usize = 100;

/// The devices, and when they complete a command at the earliest.
const DEVICES: [(&str, f64); 3] = [("n200us", 200_000.0), ("n500us", 500_000.0), ("n1ms", 1_000_000.0)];

/// Every way through the block layer but a submission thread, for which one processor is too few.
const WAYS: [&str; 8] = [
    "psync",
    "pvsync2",
    "libaio",
    "libaio --completion event",
    "io-uring",
    "io-uring --completion event",
    "io-uring --uring-unregistered",
    "io-uring --uring-async",
];

/// The pairs that are compared: a name, fio's engine, this program's options for the same calls, and the device. fio
/// registers nothing and sleeps for completions.
const PAIRS: [(&str, &str, &str, &str); 6] = [
    ("psync", "psync", "psync", "n200us"),
    ("pvsync2", "pvsync2", "pvsync2", "n200us"),
    ("libaio", "libaio", "libaio --completion event", "n200us"),
    ("io_uring", "io_uring", "io-uring --completion event --uring-unregistered", "n200us"),
    ("psync at 500 us", "psync", "psync", "n500us"),
    ("psync at 1 ms", "psync", "psync", "n1ms"),
];

/// How far the medians of the two may be apart. fio's percentiles are the middle of a bucket of 1/64 of an octave, up to
/// 0.8 % off; its own work between its stamps is 0.5 to 1 µs (its `lat` from before the preparation of the command on),
/// 0.5 % of the shortest latency here.
const MARGIN: f64 = 0.015;

/// One run of fio for all pairs; figures by name.
fn fio_figures() -> Value {
    let mut arguments: Vec<String> = vec!["--output-format=json".into()];
    let common = format!(
        "--thread=1 --direct=1 --rw=randread --bs=4k --iodepth=1 --number_ios={COUNT} --size=64m --lat_percentiles=1"
    );
    for (name, engine, _, device) in PAIRS {
        arguments.push(format!("--name={name}"));
        arguments.extend(common.split(' ').map(String::from));
        arguments.extend([
            format!("--ioengine={engine}"),
            format!("--filename=/dev/lab/{device}"),
            "--stonewall".into(),
        ]);
    }
    let output = Command::new("fio").args(&arguments).stdin(Stdio::null()).output().expect("fio runs");
    assert!(output.status.success(), "fio: {output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("fio prints JSON");
    let jobs = report["jobs"].as_array().unwrap().iter();
    jobs.map(|job| {
        let latency = &job["read"]["lat_ns"];
        assert_eq!(job["read"]["total_ios"], COUNT, "{job}");
        let figures =
            json!({ "min": latency["min"], "mean": latency["mean"], "p50": latency["percentile"]["50.000000"] });
        (job["jobname"].as_str().unwrap().to_string(), figures)
    })
    .collect()
}

/// One run of this program; its figures.
fn own_figures(options: &str, device: &str) -> Value {
    let arguments =
        format!("--engine {options} --target /dev/lab/{device} --rw randread --count {COUNT} --warmup 5 --clock tsc");
    let result = measure(&arguments);
    let latency = &point(&result)["latency_ns"];
    json!({ "min": latency["min"], "mean": latency["mean"], "p50": latency["percentiles"]["50"] })
}

fn median(rounds: &[Value], tool: &str, name: &str, figure: &str) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(|round| round[tool][name][figure].as_f64().unwrap()).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn in_deterministic_lab() -> bool {
    if !lab::in_lab(1) {
        return false;
    }
    assert_eq!(std::env::var("LAB_DETERMINISTIC").as_deref(), Ok("1"), "this lab does not count instructions");
    true
}

#[test]
fn no_way_of_measuring_is_faster_than_the_device_or_much_slower() {
    if !in_deterministic_lab() {
        return;
    }
    for (device, known) in DEVICES {
        for way in WAYS {
            let figures = own_figures(way, device);
            let [min, p50] = ["min", "p50"].map(|figure| figures[figure].as_f64().unwrap());
            assert!(min >= known, "{way} on {device}: {min} ns");
            // The kernel's way there and back: 64 to 90 µs on this clock, a worker thread included.
            assert!(p50 < known + 150_000.0, "{way} on {device}: {p50} ns");
        }
    }
}

#[test]
fn the_same_calls_take_as_long_as_fio_says() {
    if !in_deterministic_lab() {
        return;
    }
    let rounds: Vec<Value> = (0..ROUNDS)
        .map(|_| {
            let fio = fio_figures();
            let own = PAIRS.iter().map(|(name, _, options, device)| (name.to_string(), own_figures(options, device)));
            json!({ "fio": fio, "lat_probe": own.collect::<Value>() })
        })
        .collect();
    let medians = |tool| -> Value {
        PAIRS.iter().map(|(name, ..)| (name.to_string(), json!(median(&rounds, tool, name, "p50")))).collect()
    };
    let record = json!({
        "unit": "ns", "bs_bytes": 4096, "count": COUNT, "rw": "randread", "clock": "counted instructions, 4 ns each",
        "definitions": {
            "fio": "lat: submission and completion latency together, from before the preparation of the command on",
            "lat_probe": "from hand-over until the completion was seen, after 5 commands of warm-up",
        },
        "pairs": PAIRS.map(|(name, engine, options, device)| json!({
            "name": name, "fio": engine, "lat_probe": options, "device": device,
        })),
        "rounds": rounds,
        "median_of_p50": { "fio": medians("fio"), "lat_probe": medians("lat_probe") },
    });
    let file = lab::out_folder().join("null_blk-rounds.json");
    std::fs::write(file, serde_json::to_string_pretty(&record).unwrap()).unwrap();
    println!("medians of p50 in ns: {}", record["median_of_p50"]);
    for (name, _, _, device) in PAIRS {
        let [fio, own] = ["fio", "lat_probe"].map(|tool| median(&rounds, tool, name, "p50"));
        assert!((own / fio - 1.0).abs() <= MARGIN, "{name}: fio says {fio} ns, lat-probe {own} ns");
        let known = DEVICES.iter().find(|(known, _)| *known == device).unwrap().1;
        for round in &rounds {
            let min = round["lat_probe"][name]["min"].as_f64().unwrap();
            assert!(min >= known, "{name}: {min} ns on {device}");
        }
    }
}
