//! `--watch`: figures while it is measured, and the same result as without.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_lat-probe");

fn run(arguments: &str) -> Output {
    let output = Command::new(BINARY).args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn without_a_terminal_there_is_a_line_now_and_then_and_stdout_is_one_document() {
    let output = run("--engine spin --delay 100us --warmup 10 --duration 5s --watch --format json");
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<_> = said.lines().filter(|line| line.contains(" commands, p50 ")).collect();
    assert!((1..=3).contains(&lines.len()) && lines.iter().all(|line| line.contains(", max ")), "{said}");
    let commands = |line: &str| line.split(' ').nth(1).unwrap().replace(',', "").parse::<u64>().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let n = result["points"][0]["latency_ns"]["n"].as_u64().unwrap();
    assert!(commands(lines[0]) > 100 && lines.iter().all(|line| commands(line) < n), "{said}");
}

#[test]
fn on_a_terminal_the_figures_stand_beside_the_progress() {
    let command =
        format!("{BINARY} --engine spin --delay 100us --warmup 10 --duration 4s --watch --format json > /dev/null");
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return println!("skipped: script is not here: {error}"),
    };
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains(" % ") && shown.contains(" commands, p50 ") && shown.contains(", p99 "), "{shown}");
}

#[test]
fn what_is_watched_is_kept_and_exact_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    let path = file.display();
    let output = run(&format!("--engine null --jobs 2 --qd 4 --count 50000 --watch --samples {path} --format json"));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let latency = &result["points"][0]["latency_ns"];
    let rows = lat_probe::report::samples::read(&file).unwrap();
    let mut latencies: Vec<f64> = rows.map(|row| row.unwrap().latency_ns).collect();
    latencies.sort_by(f64::total_cmp);
    assert_eq!(latencies.len(), 100_000);
    assert_eq!(latency["percentiles"]["50"], latencies[49_999]);
    assert_eq!(
        (&latency["max"], &latency["percentiles"]["99.99"]),
        (&latencies[99_999].into(), &latencies[99_989].into())
    );
}
