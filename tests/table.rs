//! `lat-probe compare --table` on the committed table of 2010: no verdict, but the cost of a command, and what the table's own
//! control says.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

mod schema_check;
use schema_check::assert_valid_as;

const TABLE: &str = "results/tables/srp-thread-2010.csv";

fn compare(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    let command = command.arg("compare").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.stdin(Stdio::null()).output().unwrap()
}

fn reading(arguments: &[&str]) -> Value {
    let output = compare(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    let document = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid_as("table-1", &document);
    document
}

#[test]
fn the_text_names_the_cost_the_control_and_why_there_is_no_verdict() {
    let output = compare(&["--table", TABLE, "--max-bytes", "64k"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "{text}");
    for words in [
        "43.29 µs (+3920 ns, +10.0 %)",
        "cost       thread=y against before, over 3 sizes: +3922 ns a command",
        "control    thread=n must equal before, and differs by up to 3361 ns, at 512 KiB",
        "verdict    inconclusive: single values have no interval",
        "rows of more jobs have none",
        "153,000/s",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_json_has_the_same() {
    let reading = reading(&["--table", TABLE, "--max-bytes", "64KiB"]);
    let cost = &reading["costs"][1];
    assert_eq!((cost["side"].as_str(), cost["per_command_scatter_ns"].is_null()), (Some("thread=y"), true));
    assert!((3800.0..4300.0).contains(&cost["per_command_ns"].as_f64().unwrap()), "{cost}");
    let control = &reading["controls"][0];
    assert_eq!((control["side"].as_str(), control["bs_bytes"].as_u64()), (Some("thread=n"), Some(524_288)));
    assert_eq!(control["largest_shift_ns"].as_f64().unwrap().round(), 3361.0);
    assert_eq!(reading["verdict"], "inconclusive");
    let rows = reading["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["latency_ns"].is_null() == (row["jobs"] != 1)), "{rows:?}");
}

#[test]
fn a_table_of_many_sizes_is_valid_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.csv");
    let rows: String = (0..9).map(|i| format!("{},1,{},{}\n", 512 << i, 25_000 - i * 100, 22_000 - i * 90)).collect();
    fs::write(&path, format!("bs_bytes,jobs,before,after\n{rows}")).unwrap();
    let reading = reading(&["--table", path.to_str().unwrap()]);
    assert!(reading["costs"][0]["per_command_scatter_ns"][1].is_number(), "{reading}");
}

#[test]
fn what_is_no_table_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8], words: &[&str]| {
        let path = folder.path().join("wrong.csv");
        fs::write(&path, bytes).unwrap();
        assert_refused(&path, words);
    };
    refused(b"bs_bytes,jobs,a,b\n512,1,25k,3\n", &["wrong.csv", "line 2", "column 3 (a)", "\"25k\"", "per second"]);
    refused(b"\xff\xfe", &["wrong.csv", "UTF-8"]);
    refused(b"", &["wrong.csv", "titles"]);
    assert_refused(folder.path(), &["directory"]);
    assert_refused(&folder.path().join("none.csv"), &["none.csv", "No such file"]);
}

fn assert_refused(path: &Path, words: &[&str]) {
    let output = compare(&["--table", path.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}
