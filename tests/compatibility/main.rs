//! What was published stays true: documents of every version are valid by today's schemas and read by today's program, and
//! today's schemas keep what those of the same version have promised. `results/schema/golden/` has both, frozen.

mod mutations;
#[path = "../schema_check/mod.rs"]
mod schema_check;
mod walk;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use schema_check::assert_valid_as;
use walk::broken;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `result-1` and so on: every version of every kind that was published.
fn versions() -> Vec<String> {
    let folders = fs::read_dir(root().join("golden")).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> =
        folders.filter(|path| path.is_dir()).map(|path| path.file_name().unwrap().to_str().unwrap().into()).collect();
    names.sort();
    names
}

/// The schema of a version as it was first published.
fn golden(version: &str) -> Value {
    read(&root().join(format!("golden/{version}/{version}.schema.json")))
}

fn frozen(version: &str) -> Vec<PathBuf> {
    let folder = root().join("golden").join(version);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn is_schema(path: &Path) -> bool {
    path.to_str().unwrap().ends_with(".schema.json")
}

/// All frozen schemas of a version: the first one, and later ones with the keys that came since.
fn published(version: &str) -> Vec<(PathBuf, Value)> {
    frozen(version).into_iter().filter(|path| is_schema(path)).map(|path| (path.clone(), read(&path))).collect()
}

fn today(version: &str) -> Value {
    read(&root().join(format!("{version}.schema.json")))
}

/// The frozen documents of a version.
fn documents(version: &str) -> Vec<PathBuf> {
    let files: Vec<_> = frozen(version).into_iter().filter(|path| !is_schema(path)).collect();
    assert!(!files.is_empty(), "{version} has no document");
    files
}

#[test]
fn every_kind_has_a_version_that_was_published() {
    let kinds = ["result", "calibration", "comparison", "series", "table", "served"];
    for kind in kinds {
        assert!(versions().contains(&format!("{kind}-1")), "{kind}");
    }
    for file in fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        let Some(version) = file.strip_suffix(".schema.json") else { continue };
        assert!(
            versions().contains(&version.to_string()),
            "{version} has no copy in golden/, as it was first published"
        );
    }
}

#[test]
fn documents_of_every_version_are_valid_by_its_schema_of_today() {
    for version in versions() {
        let (kind, number) = version.rsplit_once('-').unwrap();
        for file in documents(&version) {
            let document = read(&file);
            assert_eq!(document["schema"], format!("lat-probe.{kind}/{number}"), "{}", file.display());
            assert_valid_as(&version, &document);
            let by_one = published(&version).iter().any(|(_, schema)| jsonschema::is_valid(schema, &document));
            assert!(by_one, "{} is valid by no schema that was published with it", file.display());
        }
    }
}

#[test]
fn the_frozen_results_hold_what_a_reader_may_meet() {
    let of = |name: &str| read(&root().join("golden/result-1").join(name));
    let (rdma, block, sweep, one) = (of("rdma-read.json"), of("block.json"), of("sweep.json"), of("one-command.json"));
    assert!(rdma["points"][0]["granted"]["rdma"].is_object());
    assert!(block["points"][0]["granted"]["block"]["uring"].is_object() && block["quiet"].is_object());
    assert!(block["points"][0]["submit_ns"].is_object());
    let points = sweep["points"].as_array().unwrap();
    assert!(points.len() > 1 && sweep["sweep"]["complete"] == true);
    assert!(points.iter().all(|point| point["pace"].is_object() && point["per_job"].is_array()));
    assert!(points.iter().any(|point| point["depth"].is_object()));
    assert!(one["points"][0]["latency_ns"]["percentiles"]["50"].is_null());
}

#[test]
fn what_a_version_promised_is_kept() {
    for version in versions() {
        for (file, schema) in published(&version) {
            let problems = broken(&schema, &today(&version));
            assert!(
                problems.is_empty(),
                "{version} breaks what {} promised, which takes a new version of the schema (see CONTRIBUTING.md):\n  {}",
                file.display(),
                problems.join("\n  ")
            );
        }
    }
}

/// Commands that read a document, by its kind. A command that is new and reads one gets a line here.
const READERS: [(&str, &[&str]); 2] = [
    ("result", &["compare", "FILE", "--fail-above", "p50=1h", "--format", "json"]),
    ("series", &["compare", "FILE", "--format", "json"]),
];

/// What a reader says of a file.
fn said_of(words: &[&str], file: &Path) -> Output {
    let shown = file.display().to_string();
    let words: Vec<_> = words.iter().map(|word| if *word == "FILE" { shown.as_str() } else { word }).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(words).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn documents_of_every_version_are_read_by_the_program_of_today() {
    for version in versions() {
        let (kind, _) = version.rsplit_once('-').unwrap();
        for (_, words) in READERS.iter().filter(|(read, _)| *read == kind) {
            for file in documents(&version) {
                let output = said_of(words, &file);
                let said = String::from_utf8_lossy(&output.stderr);
                // Slower and inconclusive are verdicts on what was read.
                assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{words:?} {}: {said}", file.display());
                let (found, document): (Value, _) = (serde_json::from_slice(&output.stdout).unwrap(), read(&file));
                let result = if kind == "series" { &document["rounds"][0]["result"] } else { &document };
                let points = |document: &Value| document["points"].as_array().unwrap().len();
                assert_eq!(points(&found), points(result), "{words:?} {}", file.display());
                assert_eq!(found["points"][0]["engine"], result["points"][0]["config"]["engine"]);
            }
        }
    }
}

#[test]
fn results_of_every_version_are_exported_by_the_program_of_today() {
    let versions = versions().into_iter().filter(|version| version.starts_with("result-"));
    for file in versions.flat_map(|version| documents(&version)) {
        let output = said_of(&["export", "--to", "fio-json+", "FILE"], &file);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", file.display());
        let (found, document): (Value, _) = (serde_json::from_slice(&output.stdout).unwrap(), read(&file));
        let points = document["points"].as_array().unwrap();
        assert_eq!(found["jobs"].as_array().unwrap().len(), points.len());
        for (job, point) in found["jobs"].as_array().unwrap().iter().zip(points) {
            let moved = ["read", "write"].map(|direction| job[direction]["lat_ns"]["N"].as_u64().unwrap());
            assert_eq!(moved.iter().sum::<u64>(), point["latency_ns"]["n"], "{}", file.display());
        }
    }
}

#[test]
fn a_version_that_is_not_known_is_refused_by_every_reader() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, words) in READERS {
        let mut document = read(&documents(&format!("{kind}-1"))[0]);
        document["schema"] = json!(format!("lat-probe.{kind}/999"));
        let file = folder.path().join("later.json");
        fs::write(&file, document.to_string()).unwrap();
        let output = said_of(words, &file);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(&format!("{kind}/999")) && said.contains("later.json"), "{words:?}: {said}");
    }
}
