//! Checks results against the schema that stands in `results/schema/`, for every test that makes one.

use std::{fs, path::Path, sync::LazyLock};

use jsonschema::Validator;
use serde_json::Value;

static RESULT: LazyLock<Validator> = LazyLock::new(|| validator("result-1"));

fn validator(name: &str) -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("results/schema/{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "{} is no schema", path.display());
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether the schema accepts the value.
#[allow(dead_code)] // As above.
pub fn is_valid(result: &Value) -> bool {
    RESULT.is_valid(result)
}

/// Panics with every place at which the result is not what the schema says, and if an integer is too large for readers
/// that keep numbers as doubles.
#[allow(dead_code)] // Not every test has such results.
pub fn assert_valid(result: &Value) {
    assert_valid_by(&RESULT, "lat-probe.result/1", result);
}

/// As [`assert_valid`], by another schema in `results/schema/`.
#[allow(dead_code)] // Not every test has results of other kinds.
pub fn assert_valid_as(name: &str, document: &Value) {
    assert_valid_by(&validator(name), name, document);
}

fn assert_valid_by(validator: &Validator, name: &str, document: &Value) {
    let complaints: Vec<_> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(complaints.is_empty(), "not a {name}:\n{}", complaints.join("\n"));
    assert_small_integers("", document);
}

fn assert_small_integers(path: &str, value: &Value) {
    const LARGEST: u64 = (1 << 53) - 1;
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                assert_small_integers(&format!("{path}/{index}"), item);
            }
        }
        Value::Object(entries) => {
            for (key, entry) in entries {
                assert_small_integers(&format!("{path}/{key}"), entry);
            }
        }
        Value::Number(number) => {
            let magnitude = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
            assert!(magnitude.is_none_or(|magnitude| magnitude <= LARGEST), "{path}: {number} is beyond 2^53−1");
        }
        _ => {}
    }
}
