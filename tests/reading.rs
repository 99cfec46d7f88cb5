//! The examples of reading a result in Python, R and jq print the same table, which is the one that the result holds, and
//! refuse what they don't know.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

mod schema_check;
use schema_check::assert_valid;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// As `results/README.md` shows them; what follows is the file.
const READERS: [&str; 3] = [
    "python3 results/schema/reading/read.py",
    "Rscript results/schema/reading/read.R",
    "jq -nrf results/schema/reading/read.jq",
];

const HEAD: &str = "engine\tbs_bytes\tqd\tn\tp50_ns\tp99_ns\tmax_ns\tfloor_p50_ns\tpartial\twarnings";

/// Readers whose program is there. R alone may be missing.
fn readers() -> Vec<&'static str> {
    let is_there = |program: &str| {
        let mut folders = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>().into_iter();
        folders.any(|folder| folder.join(program).is_file())
    };
    let found = READERS.into_iter().filter(|reader| {
        let program = reader.split(' ').next().unwrap();
        let there = is_there(program);
        assert!(there || program == "Rscript", "{program} is missing; run: scripts/setup --tests");
        if !there {
            eprintln!("skipped, for want of {program}: {reader}");
        }
        there
    });
    found.collect()
}

fn run(reader: &str, files: &[&Path]) -> Output {
    let mut words = reader.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(files).current_dir(ROOT).stdin(Stdio::null()).output().unwrap()
}

fn example(name: &str) -> Value {
    let path = Path::new(ROOT).join("results/schema/golden/result-1").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn measured(arguments: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(arguments.split(' ')).args(["--format", "json"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The table that a result holds. `floors` has the median of the floor for each point.
fn table(document: &Value, floors: &[Option<f64>]) -> String {
    let ns = |value: &Value| value.as_f64().map_or("-".into(), |ns| format!("{ns:.3}"));
    let count = |value: &Value| value.as_u64().map_or("-".into(), |count| count.to_string());
    let mut codes: Vec<_> =
        document["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect();
    codes.sort();
    codes.dedup();
    let warnings = if codes.is_empty() { "none".into() } else { codes.join(",") };
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), floors.len());
    let rows = points.iter().zip(floors).map(|(point, floor)| {
        let (config, latency) = (&point["config"], &point["latency_ns"]);
        let cells = [
            config["engine"].as_str().unwrap().to_string(),
            count(&config["bs_bytes"]),
            count(&config["qd"]),
            count(&latency["n"]),
            ns(&latency["percentiles"]["50"]),
            ns(&latency["percentiles"]["99"]),
            ns(&latency["max"]),
            ns(&json!(floor)),
            if point["partial"] == true { "yes" } else { "no" }.into(),
            warnings.clone(),
        ];
        cells.join("\t") + "\n"
    });
    format!("{HEAD}\n{}", rows.collect::<String>())
}

fn file_of(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Every reader prints this of the document.
fn assert_read(document: &Value, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(folder.path(), "result.json", &document.to_string());
    for reader in readers() {
        let Output { status, stdout, stderr } = run(reader, &[&file]);
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success() && said.is_empty(), "{reader}: {status} {said}");
        assert_eq!(String::from_utf8_lossy(&stdout), expected, "{reader}");
    }
}

/// Every reader refuses the file in words, with exit code 2.
fn assert_refused(file: &Path, word: &str) {
    for reader in readers() {
        let Output { status, stdout, stderr } = run(reader, &[file]);
        let said = String::from_utf8_lossy(&stderr);
        assert_eq!((status.code(), stdout.len()), (Some(2), 0), "{reader}: {said}");
        let script = reader.rsplit('/').next().unwrap();
        assert!(said.contains(script), "{reader}: {said}");
        let named = said.contains(file.to_str().unwrap()) || script == "read.jq" && said.contains("the input");
        assert!(named, "{reader}: {said}");
        assert!(said.contains(word), "{reader}: {said}");
        for trace in ["Traceback", "Error in", "Calls:", "Execution halted", "jq: error (at"] {
            assert!(!said.contains(trace), "{reader}: {said}");
        }
    }
}

fn floor(instrument: &Value) -> Option<f64> {
    instrument["floor_ns"]["percentiles"]["50"].as_f64()
}

#[test]
fn the_commands_are_those_that_the_readme_shows() {
    let text = fs::read_to_string(Path::new(ROOT).join("results/README.md")).unwrap();
    for reader in READERS {
        assert!(text.contains(&format!("\n    {reader} result.json\n")), "results/README.md does not show: {reader}");
    }
}

#[test]
fn all_readers_print_the_table_of_every_published_result() {
    for name in ["rdma-read.json", "block.json", "sweep.json", "one-command.json"] {
        let document = example(name);
        let floors = vec![floor(&document["instrument"]); document["points"].as_array().unwrap().len()];
        let expected = table(&document, &floors);
        assert!(expected.lines().count() > 1, "{expected}");
        assert_read(&document, &expected);
    }
}

#[test]
fn all_readers_print_what_was_just_measured_a_sweep_and_one_with_nulls() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("sweep.json");
    let sweep =
        measured(&format!("--engine null --qd 1,2,4 --jobs 2 --per-job --count 200 --output {}", output.display()));
    let one = measured("--engine spin --delay 1us --warmup 0 --count 1");
    for (document, points) in [(sweep, 3), (one, 1)] {
        assert_valid(&document);
        let expected = table(&document, &vec![floor(&document["instrument"]); points]);
        assert_eq!(expected.contains("\t1\t-\t-\t"), points == 1, "{expected}");
        assert_read(&document, &expected);
    }
}

#[test]
fn undefined_is_a_dash_and_large_numbers_are_exact() {
    let mut document = example("rdma-read.json");
    let latency = &mut document["points"][0]["latency_ns"];
    (latency["n"], latency["max"]) = (json!((1u64 << 53) - 1), json!(123_456_789_012.345));
    latency["percentiles"]["50"] = json!(0.062);
    latency["percentiles"]["99"] = Value::Null;
    document["points"][0]["partial"] = json!(true);
    document["instrument"]["floor_ns"]["percentiles"]["50"] = Value::Null;
    document["warnings"] = json!([]);
    assert_valid(&document);
    let row = "rdma-read\t8\t1\t9007199254740991\t0.062\t-\t123456789012.345\t-\tyes\tnone\n";
    assert_read(&document, &format!("{HEAD}\n{row}"));
}

#[test]
fn keys_that_are_not_known_and_keys_that_came_later_are_no_obstacle() {
    let mut document = example("rdma-read.json");
    let expected = table(&document, &[floor(&document["instrument"])]);
    document.as_object_mut().unwrap().retain(|key, _| key != "quiet" && key != "sweep");
    document["a_later_key"] = json!({ "n": [1, null, { "schema": "other" }] });
    // Names that begin as known ones do: R's `$` would take them.
    document["points"][0]["latency_ns"]["n_lost"] = json!(7);
    document["points"][0]["latency_ns"]["percentiles"]["99.9999"] = json!(1.0);
    document["points"][0]["config"]["qd_limits"] = json!("none");
    assert_read(&document, &expected);
    document["points"][0]["latency_ns"].as_object_mut().unwrap().remove("n");
    let without = expected.replace("\t1000\t", "\t-\t");
    assert_ne!(without, expected);
    assert_read(&document, &without);
}

#[test]
fn each_warning_is_named_once_and_in_the_same_order_whatever_the_language() {
    let mut document = example("rdma-read.json");
    let warning = |code: &str| json!({ "code": code, "message": "x" });
    document["warnings"] = ["noise", "a-b", "ab", "noise", "a1"].map(warning).into_iter().collect();
    let expected = table(&document, &[floor(&document["instrument"])]);
    assert!(expected.ends_with("\ta-b,a1,ab,noise\n"), "{expected}");
    assert_read(&document, &expected);
}

#[test]
fn the_floor_of_a_point_is_that_of_the_call_that_measured_it() {
    let mut document = example("sweep.json");
    let second = document["points"][0].clone();
    document["points"].as_array_mut().unwrap().push(second);
    let mut session = document["sweep"]["sessions"][0].clone();
    let first = floor(&session["instrument"]);
    session["first_point"] = json!(2);
    session["instrument"]["floor_ns"]["percentiles"]["50"] = json!(1.5);
    document["sweep"]["sessions"].as_array_mut().unwrap().push(session);
    assert_valid(&document);
    assert!(first.is_some_and(|first| first != 1.5));
    assert_read(&document, &table(&document, &[first, first, Some(1.5)]));
}

#[test]
fn a_version_that_is_not_known_is_refused_whatever_else_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let whole = example("rdma-read.json");
    for schema in ["lat-probe.result/2", "lat-probe.result/10", "lat-probe.result/1.1", "lat-probe.series/1", ""] {
        let mut document = whole.clone();
        document["schema"] = json!(schema);
        assert_refused(&file_of(folder.path(), "later.json", &document.to_string()), "lat-probe.result/1");
        let bare = json!({ "schema": schema, "points": "none" });
        assert_refused(&file_of(folder.path(), "bare.json", &bare.to_string()), "lat-probe.result/1");
    }
    for schema in [json!(1), json!(true), json!({ "name": { "is": ["deep"] } }), json!(["lat-probe.result/1", "x"])] {
        let document = json!({ "schema": schema, "points": [] });
        assert_refused(&file_of(folder.path(), "odd.json", &document.to_string()), "lat-probe.result/1");
    }
    for document in
        ["{}", "[]", "[{\"schema\": \"lat-probe.result/1\"}]", "3", "null", "\"text\"", "{\"schema\": null}"]
    {
        assert_refused(&file_of(folder.path(), "none.json", document), "no `schema`");
    }
}

#[test]
fn files_that_are_no_json_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let broken = ["", "  \n", "{ \"schema\": ", "PNG", "{\"schema\": \"lat-probe.result/1\"} {}", "\u{0}"];
    for (at, text) in broken.into_iter().enumerate() {
        assert_refused(&file_of(folder.path(), &format!("broken-{at}.json"), text), "");
    }
    assert_refused(&folder.path().join("missing.json"), "");
    for reader in readers().into_iter().filter(|reader| !reader.starts_with("jq")) {
        let Output { status, stderr, .. } = run(reader, &[]);
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && said.contains("takes one file"), "{reader}: {said}");
    }
}
