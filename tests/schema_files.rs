//! The schemas in `results/schema/` are what `lat-probe schema` prints, which are those of the types that it writes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

const KINDS: [&str; 6] = ["result", "calibration", "comparison", "series", "table", "served"];

fn schema(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.arg("schema").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = schema(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema")
}

#[test]
fn the_files_are_what_the_program_prints() {
    for kind in KINDS {
        let file = format!("results/schema/{kind}-1.schema.json");
        let stored = fs::read_to_string(folder().join(format!("{kind}-1.schema.json"))).unwrap_or_default();
        assert!(
            stored == printed(&[kind]),
            "{file} is not the schema of the types any more; renew it:\n    cargo build && target/debug/lat-probe schema {kind} > {file}"
        );
    }
}

#[test]
fn there_is_no_schema_that_nothing_renews() {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<_> = names.filter(|name| name.ends_with(".json")).collect();
    let mut known = KINDS.map(|kind| format!("{kind}-1.schema.json"));
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn the_schema_of_a_result_is_printed_where_nothing_is_said() {
    assert_eq!(printed(&[]), printed(&["result"]));
}

#[test]
fn a_name_that_is_none_is_refused_with_those_that_are() {
    for wrong in ["", "results", "result-1", "../result"] {
        let output = schema(&[wrong]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{wrong}: {said}");
        assert!(KINDS.iter().all(|kind| said.contains(kind)), "{wrong}: {said}");
    }
}

/// Calls `look` with every schema within one, and its place.
fn each(place: &str, schema: &Value, look: &mut impl FnMut(&str, &Value)) {
    look(place, schema);
    let Some(entries) = schema.as_object() else { return };
    for (key, value) in entries {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                named.iter().for_each(|(name, schema)| each(&format!("{place}/{key}/{name}"), schema, look));
            }
            ("items" | "additionalProperties", schema) => each(&format!("{place}/{key}"), schema, look),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                all.iter().enumerate().for_each(|(at, schema)| each(&format!("{place}/{key}/{at}"), schema, look));
            }
            _ => {}
        }
    }
}

#[test]
fn every_key_is_described_for_people_who_know_no_rust() {
    for kind in KINDS {
        let schema: Value = serde_json::from_str(&printed(&[kind])).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{kind} is no schema");
        let mut keys = 0;
        each("", &schema, &mut |place, schema| {
            let is_key = place.rsplit('/').nth(1).is_some_and(|parent| parent == "properties" || parent == "$defs");
            let description = schema["description"].as_str();
            // Percentiles are named by their numbers.
            let is_number = place.rsplit('/').next().is_some_and(|name| name.parse::<f64>().is_ok());
            keys += usize::from(is_key);
            assert!(!is_key || is_number || description.is_some(), "{kind}: {place} has no description");
            for word in ["[`", "`None`", "`Some", "::", "\n"] {
                assert!(!description.unwrap_or_default().contains(word), "{kind}: {place}: {description:?}");
            }
        });
        assert!(keys > 10, "{kind}: {keys} keys");
    }
}

#[test]
fn no_integer_is_without_bounds_and_no_key_is_forbidden() {
    for kind in KINDS {
        let schema: Value = serde_json::from_str(&printed(&[kind])).unwrap();
        each("", &schema, &mut |place, schema| {
            let types = &schema["type"];
            let is_integer =
                types == "integer" || types.as_array().is_some_and(|types| types.contains(&"integer".into()));
            let is_bounded =
                schema["minimum"].is_u64() && schema["maximum"].as_u64().is_some_and(|most| most <= 1 << 53);
            assert!(!is_integer || is_bounded, "{kind}: {place}: {schema}");
            assert_ne!(schema["additionalProperties"], false, "{kind}: {place}");
            assert!(schema.get("format").is_none(), "{kind}: {place}: {schema}");
        });
    }
}
