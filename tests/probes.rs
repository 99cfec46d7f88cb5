//! Every file in probes/ is one that the program understands, and what needs no special device runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn probes() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("probes");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // The folders beside them have job files of fio, which tests/fio_jobs.rs reads.
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn run(file: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.arg("run").arg(file).args(more).args(["--format", "json"]).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn written(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

/// A file of a megabyte in memory.
fn target() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    fs::write(file.path(), vec![1; 1 << 20]).unwrap();
    file
}

#[test]
fn every_probe_is_understood_up_to_its_device() {
    assert!(probes().len() >= 2);
    for probe in probes() {
        let output = run(&probe, &["--target", "/no/such/device"]);
        let said = text(&output.stderr);
        // Everything but the target was checked before that was looked for.
        assert!(said.contains("/no/such/device: stat: No such file"), "{}: {said}", probe.display());
        assert_eq!(output.status.code(), Some(1), "{}", probe.display());
    }
}

#[test]
fn the_engines_of_2007_run_in_memory() {
    let target = target();
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("probes/engine-depth-ramfs.json");
    let output = run(&probe, &["--target", target.path().to_str().unwrap(), "--count", "200", "--label", "mine"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = result["points"].as_array().unwrap();
    let engines: Vec<_> = points.iter().map(|point| point["config"]["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["psync", "libaio", "libaio", "io-uring", "io-uring", "io-uring", "io-uring"]);
    let depths: Vec<_> = points.iter().map(|point| point["config"]["qd"].as_u64().unwrap()).collect();
    assert_eq!(depths, [1, 1, 32, 1, 32, 1, 32]);
    let forced: Vec<_> = points.iter().map(|point| &point["config"]["block"]["uring"]["force_async"]).collect();
    assert_eq!(forced, [false, false, false, false, false, true, true]);
    for point in points {
        assert_eq!((&point["latency_ns"]["n"], &point["config"]["bs_bytes"]), (&200.into(), &8192.into()));
    }
    assert_eq!(result["label"], "mine");
}

#[test]
fn what_is_typed_behind_the_file_takes_the_place_of_its_own() {
    let target = target();
    let probe = written(&format!(
        r#"{{ "schema": "lat-probe.probe/1", "title": "two sizes",
             "defaults": {{ "engine": "psync", "target": "{}", "buffered": true, "bs": [512, "1k"], "count": 100 }},
             "measurements": [ {{}}, {{ "rw": "randread", "verify": false }} ] }}"#,
        target.path().display()
    ));
    let sizes = |more: &[&str]| {
        let output = run(probe.path(), more);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let points = result["points"].as_array().unwrap().clone();
        points.iter().map(|point| point["config"]["bs_bytes"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&[]), [512, 1024, 512, 1024]);
    assert_eq!(sizes(&["--bs", "2k"]), [2048, 2048]);
}

#[test]
fn a_broken_probe_is_a_usage_error_with_its_place() {
    let head = r#""schema": "lat-probe.probe/1", "title": "t""#;
    for (rest, expected) in [
        ("\n\"measurements\": [ { \"engine\": \"null\", \"colour\": 1 } ]", "unknown option 'colour' at line 2"),
        ("\"measurements\": [ { \"engine\": \"null\", \"output\": \"x\" } ]", "unknown option 'output'"),
        ("\"measurements\": [ { \"engine\": \"nul\" } ]", "measurement 1: invalid value 'nul'"),
        ("\"measurements\": [ { \"engine\": \"null\" }, { \"count\": 5 } ]", "measurement 2: --engine is missing"),
        ("\"measurements\": [ { \"engine\": \"null\", \"bs\": 8 } ]", "measurement 1: --bs means nothing"),
        (
            "\"measurements\": [ { \"engine\": \"null\", \"phases\": true }, { \"engine\": \"null\" } ]",
            "must be the same",
        ),
    ] {
        let probe = written(&format!("{{ {head}, {rest} }}"));
        let output = run(probe.path(), &[]);
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{rest}: {said}");
        assert_eq!(output.status.code(), Some(2), "{rest}: {said}");
        assert!(output.stdout.is_empty());
    }
}
