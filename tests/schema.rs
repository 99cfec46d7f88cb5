//! What the program writes is what `results/schema/` promises.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

mod schema_check;
use schema_check::{assert_valid, is_valid};

fn lat_probe(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(arguments.split_whitespace()).args(["--format", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn measured(arguments: &str) -> Value {
    let output = lat_probe(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn example() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema/examples/rdma-read.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_example_is_valid_and_holds_an_rdma_path() {
    let example = example();
    assert_valid(&example);
    assert_eq!(example["points"][0]["granted"]["rdma"]["software"], true);
    assert_eq!(example["points"][0]["verified"], "yes");
}

#[test]
fn a_run_of_null_is_valid() {
    let result = measured("--engine null --count 1000 --label before --meta driver=1.2");
    assert_valid(&result);
    assert_eq!((&result["label"], &result["meta"]), (&json!("before"), &json!({ "driver": "1.2" })));
}

#[test]
fn a_window_of_jobs_by_a_timetable_is_valid_and_a_sweep_of_them_too() {
    let result = measured("--engine null --qd 4 --jobs 2 --per-job --rate 20000 --arrivals poisson --count 500");
    assert_valid(&result);
    let point = &result["points"][0];
    assert_eq!((&point["latency_ns"]["n"], &point["response_ns"]["n"]), (&json!(1000), &json!(1000)));
    assert_eq!(point["per_job"].as_array().unwrap().len(), 2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweep.json");
    let result = measured(&format!("--engine null --qd 1,2,64 --count 100 --output {}", file.display()));
    assert_valid(&result);
    assert_eq!((&result["sweep"]["complete"], result["points"].as_array().unwrap().len()), (&json!(true), 3));
}

#[test]
fn a_run_too_long_to_keep_is_valid_and_counts_every_command() {
    // 8 × 8.4 million are more than the samples that are kept.
    let result = measured("--engine null --jobs 8 --count 8400000 --duration 300ms");
    assert_valid(&result);
    let point = &result["points"][0];
    let counted: u64 = point["histogram"]["buckets"].as_array().unwrap().iter().map(|b| b[2].as_u64().unwrap()).sum();
    assert_eq!(point["latency_ns"]["n"], counted);
    // A digest and three pieces of samples for each job.
    assert!(point["memory"]["sample_bytes"].as_u64().unwrap() < 8 * 25_000_000, "{}", point["memory"]);
}

#[test]
fn a_run_with_phases_is_valid_and_has_both() {
    let result = measured("--engine spin --delay 2us --count 500 --warmup 0 --phases");
    assert_valid(&result);
    for phase in ["submit_ns", "wait_ns"] {
        assert_eq!(result["points"][0][phase]["n"], 500, "{phase}");
    }
}

#[test]
fn runs_on_a_file_are_valid_for_every_engine_that_takes_one() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    for engine in ["psync", "pvsync2", "libaio", "io-uring"] {
        let path = file.path().display();
        let result = measured(&format!("--engine {engine} --target {path} --buffered --rw randread --count 100"));
        assert_valid(&result);
        let granted = &result["points"][0]["granted"]["block"];
        assert_eq!((&granted["kind"], &granted["size_bytes"]), (&json!("file"), &json!(1 << 20)), "{engine}");
        assert_eq!(granted["uring"].is_null(), engine != "io-uring");
    }
}

#[test]
fn a_run_by_time_is_valid() {
    let result = measured("--engine spin --delay 10us --duration 50ms");
    assert_valid(&result);
    assert_eq!(result["points"][0]["ended_by"], "duration");
    assert_eq!(result["points"][0]["config"]["count"], Value::Null);
}

#[test]
fn runs_of_one_and_two_commands_are_valid_and_undefined_is_null() {
    for count in 1..=2 {
        let result = measured(&format!("--engine null --warmup 0 --count {count}"));
        assert_valid(&result);
        let latency = &result["points"][0]["latency_ns"];
        assert_eq!(latency["n"], count);
        assert_eq!(latency["stddev"].is_null(), count == 1);
        assert_eq!(latency["percentiles"]["99"], Value::Null);
    }
}

#[test]
fn a_percentile_that_the_samples_cannot_support_is_null() {
    let result = measured("--engine null --count 1000");
    let percentiles = &result["points"][0]["latency_ns"]["percentiles"];
    assert!(percentiles["99.9"].is_number(), "{percentiles}");
    assert_eq!(percentiles["99.99"], Value::Null, "{percentiles}");
}

#[test]
fn an_interrupted_run_is_partial_and_valid() {
    let child = lat_probe("--engine spin --delay 1ms --warmup 0 --count 100000").spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid(&result);
    assert_eq!(result["points"][0]["partial"], true);
    assert_eq!(result["points"][0]["ended_by"], "signal");
}

#[test]
fn what_a_reader_does_not_know_is_no_fault() {
    let mut result = example();
    result["points"][0]["config"]["a_later_key"] = json!([1, { "a": null }]);
    assert_valid(&result);
}

#[test]
fn a_missing_key_is_a_fault_wherever_it_stands() {
    let whole = example();
    for (place, key) in [
        ("", "warnings"),
        ("/host", "kernel"),
        ("/clock", "drift_ppm"),
        ("/instrument/noise", "stolen_fraction"),
        ("/points/0", "submit_ns"),
        ("/points/0/config", "qd"),
        ("/points/0/config/rdma", "transport"),
        ("/points/0/granted/rdma", "gid"),
        ("/points/0/latency_ns/percentiles", "99.99"),
        ("/points/0/outliers/0", "index"),
        ("/points/0/timeline/0", "p99_ns"),
        ("/points/0/throughput/interval", "stddev"),
        ("/points/0/cpu", "migrated"),
        ("/points/0/memory", "sample_bytes"),
    ] {
        let mut result = whole.clone();
        let object = result.pointer_mut(place).unwrap().as_object_mut().unwrap();
        assert!(object.remove(key).is_some(), "{place}/{key} is not in the example");
        assert!(!is_valid(&result), "{place}/{key} was not missed");
    }
}

#[test]
fn a_wrong_value_is_a_fault() {
    let whole = example();
    for (place, value) in [
        ("/schema", json!("lat-probe.result/2")),
        ("/started_at", json!("yesterday")),
        ("/label", json!(7)),
        ("/clock/source", json!("hpet")),
        ("/instrument/floor_ns/min", json!("12")),
        ("/points/0/latency_ns/n", json!(1.5)),
        ("/points/0/latency_ns/n", json!(-1)),
        ("/points/0/latency_ns/n", json!(1u64 << 53)),
        ("/points/0/latency_ns/percentiles/50", json!(-1.0)),
        ("/points/0/config/engine", json!("tcp")),
        ("/points/0/config/rdma/mtu_bytes", json!(1500)),
        ("/points/0/config/rdma/service_level", json!(16)),
        ("/points/0/convention", json!("one-way")),
        ("/points/0/loop", json!("ajar")),
        ("/points/0/depth", json!({ "outstanding": [] })),
        ("/points/0/histogram/buckets/0", json!([1, 2])),
        ("/points/0/verified", json!(true)),
        ("/points/0/errors", json!({ "failed_commands": "1" })),
        ("/points/0/partial", Value::Null),
    ] {
        let mut result = whole.clone();
        *result.pointer_mut(place).unwrap_or_else(|| panic!("{place} is not in the example")) = value.clone();
        assert!(!is_valid(&result), "{place} = {value} was accepted");
    }
}

#[test]
fn each_of_the_slowest_commands_has_its_surroundings_however_short_the_run() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        eprintln!("skipped: with one processor nobody looks on");
        return;
    }
    for count in [1, 100] {
        let result = measured(&format!("--engine null --count {count} --warmup 0"));
        for outlier in result["points"][0]["outliers"].as_array().unwrap() {
            assert!(outlier["nearby"]["window_ns"].as_f64() > outlier["latency_ns"].as_f64(), "{outlier}");
        }
    }
}
