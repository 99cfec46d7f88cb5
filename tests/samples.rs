//! `--samples`: every sample is in the file, and the figures of the result are those of the file.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use lat_probe::report::samples::{self, Row};
use serde_json::{Value, json};

fn run(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(arguments.split_whitespace()).args(["--format", "json"]).current_dir(folder);
    command.stdin(Stdio::null()).output().unwrap()
}

fn measured(folder: &Path, arguments: &str) -> Value {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str, code: i32) -> String {
    let output = run(folder, arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
    message
}

fn rows(folder: &Path, name: &Value) -> Vec<Row> {
    samples::read(&folder.join(name.as_str().unwrap())).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Nearest rank, written anew: the sample of which at least so many per mille are no larger.
fn percentile(values: &[f64], per_mille: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(per_mille * sorted.len()).div_ceil(1000).max(1) - 1]
}

#[test]
fn the_figures_of_a_result_are_those_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ["npy", "csv"] {
        let result =
            measured(folder.path(), &format!("--engine spin --delay 1us --count 3000 --phases --samples x.{ending}"));
        let point = &result["points"][0];
        assert_eq!(point["samples_file"], json!(format!("x.{ending}")));
        let rows = rows(folder.path(), &point["samples_file"]);
        let latencies: Vec<f64> = rows.iter().map(|row| row.latency_ns).collect();
        let latency = &point["latency_ns"];
        assert_eq!(latency["n"], json!(rows.len()));
        for (per_mille, key) in [(10, "1"), (500, "50"), (990, "99"), (999, "99.9")] {
            assert_eq!(latency["percentiles"][key], json!(percentile(&latencies, per_mille)), "{key}");
        }
        assert_eq!(
            (&latency["min"], &latency["max"]),
            (&json!(percentile(&latencies, 0)), &json!(percentile(&latencies, 1000)))
        );
        let slowest = &point["outliers"][0];
        let row = rows[slowest["index"].as_u64().unwrap() as usize];
        assert_eq!((&slowest["at_ns"], &slowest["latency_ns"]), (&json!(row.start_ns), &json!(row.latency_ns)));
        for (index, row) in rows.iter().enumerate() {
            let (submit, wait) = (row.submit_ns.unwrap(), row.wait_ns.unwrap());
            assert!((submit + wait - row.latency_ns).abs() < 0.003, "{row:?}");
            assert_eq!((row.op, row.job, row.response_ns), (index as u64, 0, None));
        }
        assert!(rows.is_sorted_by_key(|row| row.start_ns) && rows[0].start_ns == 0.0);
    }
}

#[test]
fn samples_of_jobs_and_of_a_timetable_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let result = measured(folder.path(), "--engine null --jobs 2 --qd 4 --rate 20000 --count 500 --samples x.csv");
    let rows = rows(folder.path(), &result["points"][0]["samples_file"]);
    for job in 0..2 {
        let ops: Vec<u64> = rows.iter().filter(|row| row.job == job).map(|row| row.op).collect();
        assert_eq!(ops, (0..500).collect::<Vec<_>>());
    }
    let responses: Vec<f64> = rows.iter().map(|row| row.response_ns.unwrap()).collect();
    assert_eq!(result["points"][0]["response_ns"]["percentiles"]["50"], json!(percentile(&responses, 500)));
    assert!(rows.iter().all(|row| row.response_ns.unwrap() >= row.latency_ns && row.submit_ns.is_none()));
}

#[test]
fn each_point_of_a_list_has_its_own_file_also_when_it_was_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let command = "--engine null --qd 1,2,4 --count 100 --samples s.npy --output r.json";
    let result = measured(folder.path(), command);
    for (index, point) in result["points"].as_array().unwrap().iter().enumerate() {
        assert_eq!(point["samples_file"], json!(format!("s-{}.npy", index + 1)));
        assert_eq!(rows(folder.path(), &point["samples_file"]).len(), 100);
    }
    let mut document: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("r.json")).unwrap()).unwrap();
    document["points"].as_array_mut().unwrap().truncate(2);
    document["sweep"]["complete"] = json!(false);
    fs::write(folder.path().join("r.json"), document.to_string()).unwrap();
    fs::remove_file(folder.path().join("s-3.npy")).unwrap();
    let kept = fs::metadata(folder.path().join("s-1.npy")).unwrap().modified().unwrap();
    let result = measured(folder.path(), &format!("{command} --resume"));
    assert_eq!(rows(folder.path(), &result["points"][2]["samples_file"]).len(), 100);
    assert_eq!(fs::metadata(folder.path().join("s-1.npy")).unwrap().modified().unwrap(), kept);
}

#[test]
fn what_cannot_be_stored_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &str, code| refused(folder.path(), arguments, code);
    assert!(refused("--engine null --samples x.xlsx", 2).contains("x.xlsx: .xlsx is no format of raw samples"));
    assert!(refused("--engine null --samples x", 2).contains("the name has no ending"));
    assert!(refused("--engine null --samples no/x.npy", 1).contains("no/x.npy"));
    assert!(refused("--engine null --samples x.csv --output x.csv", 2).contains("both name x.csv"));
    let too_many = refused("--engine null --jobs 8 --count 10m --samples x.npy", 2);
    assert!(too_many.contains("80000000 commands") && too_many.contains("67108864"), "{too_many}");
    let series = refused("ab --a true --b true --rounds 4 --engine null --samples x.npy", 2);
    assert!(series.contains("--samples: ab keeps the results of its rounds"), "{series}");
    if !cfg!(feature = "parquet") {
        assert!(refused("--engine null --samples x.parquet", 2).contains("--features parquet"));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_run_that_outgrew_its_samples_says_so_and_has_its_result_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.npy"), "old").unwrap();
    // 128 jobs share the samples of a run that only a time limits; a job of some more than its part is long enough.
    let output = run(folder.path(), "--engine null --jobs 128 --duration 4s --samples x.npy --output r.json");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("x.npy: not written: there were more commands than samples are kept"), "{message}");
    let result: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!((&result["points"][0]["samples_file"], &result["points"][0]["partial"]), (&Value::Null, &json!(false)));
    assert_eq!(fs::read_to_string(folder.path().join("x.npy")).unwrap(), "old");
}

#[test]
fn a_disk_that_fills_up_leaves_the_old_file_and_the_result() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full.csv")).unwrap();
    let message = refused(folder.path(), "--engine null --count 2000 --samples full.csv --output r.json", 1);
    assert!(message.contains("full.csv: No space left on device"), "{message}");
    assert!(fs::read_to_string(folder.path().join("r.json")).unwrap().contains("\"samples_file\": null"));
    // A file may grow to 2 MiB here, which is more than is claimed before the run, and less than 100,000 samples.
    fs::write(folder.path().join("x.npy"), "old").unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 4096; exec {} --engine null --count 100000 --samples x.npy",
        env!("CARGO_BIN_EXE_lat-probe")
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("x.npy: File too large"), "{message}");
    assert_eq!(fs::read_to_string(folder.path().join("x.npy")).unwrap(), "old");
}

#[test]
fn decimals_are_points_whatever_the_locale() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(["--engine", "spin", "--delay", "1us", "--count", "50", "--samples", "x.csv"]);
    let output = command.env("LC_ALL", "de_DE.UTF-8").current_dir(folder.path()).output().unwrap();
    assert!(output.status.success());
    assert_eq!(rows(folder.path(), &json!("x.csv")).len(), 50);
}
