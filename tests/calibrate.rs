//! `lat-probe calibrate`: what it prints is what its schema says, and it makes sense.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

mod schema_check;
use schema_check::assert_valid_as;

fn calibrate(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.arg("calibrate").args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

fn report(arguments: &str) -> Value {
    let output = calibrate(&format!("{arguments} --format json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_calibration_is_valid_on_every_clock_that_is_there() {
    for clock in ["auto", "monotonic"] {
        let report = report(&format!("--clock {clock} --window 20ms"));
        assert_valid_as("calibration-1", &report);
        assert!(report["noise"]["window_ns"].as_f64().unwrap() >= 20e6);
        let stamps = &report["stamps"];
        assert_eq!(stamps["backwards"], 0, "{stamps}");
        assert_eq!(stamps["pair_ns"]["n"], stamps["looked_at"]);
        assert!(stamps["step_ns"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn stamps_of_two_processors_are_in_order() {
    let report = report("--window 1ms");
    let across = &report["stamps"]["across"];
    if across.is_null() {
        eprintln!("skipped: there is one processor");
        return;
    }
    assert!(across["looked_at"].as_u64().unwrap() > 0, "{across}");
    assert_eq!(across["backwards"], 0, "{across}");
    assert_ne!(across["cpu"], report["cpu"]);
}

#[test]
fn every_engine_that_needs_no_device_has_a_floor_no_lower_than_the_stamps() {
    let report = report("--window 1ms");
    let least = report["stamps"]["pair_ns"]["min"].as_f64().unwrap();
    let floors = report["floors"].as_array().unwrap();
    let engines: Vec<_> = floors.iter().map(|floor| floor["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["psync", "pvsync2", "libaio", "io-uring", "null"]);
    for floor in floors {
        assert_eq!(floor["unavailable"], Value::Null, "{floor}");
        assert_eq!(floor["latency_ns"]["n"], 10_000, "{floor}");
        assert!(floor["latency_ns"]["percentiles"]["50"].as_f64().unwrap() >= least, "{floor}");
    }
}

#[test]
fn the_text_says_what_the_json_has() {
    let output = calibrate("--window 1ms");
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["clock", "order", "noise", "stamps", "psync", "null", "sleep 1us", "p99.9"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_window_of_nothing_and_a_processor_that_is_not_there_are_refused() {
    for (arguments, expected) in [("--window 0s", "--window"), ("--window 2h", "--window"), ("--cpu 99999", "--cpu")] {
        let output = calibrate(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(expected) && output.stdout.is_empty(), "{arguments}: {said}");
    }
}
