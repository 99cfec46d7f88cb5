//! The walk over two schemas finds every way to break one: each is done to each place of each schema that was published.

use serde_json::{Map, Value, json};

use super::{golden, today, versions, walk::broken};

/// A changed schema within a whole one, with what was done.
type Change = (String, Map<String, Value>);

/// Calls `look` with every map within a value that is a schema, and its pointer.
fn schemas(pointer: &str, value: &Value, look: &mut impl FnMut(&str, &Map<String, Value>)) {
    let Some(schema) = value.as_object() else { return };
    look(pointer, schema);
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                for (name, schema) in named {
                    schemas(&format!("{pointer}/{key}/{}", name.replace('/', "~1")), schema, look);
                }
            }
            ("items" | "additionalProperties", schema) => schemas(&format!("{pointer}/{key}"), schema, look),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                (0..).zip(all).for_each(|(at, schema)| schemas(&format!("{pointer}/{key}/{at}"), schema, look));
            }
            _ => {}
        }
    }
}

/// Calls `look` with the whole schema after each change that `changes` makes of each schema within it, and with what was
/// done. Returns how many there were.
fn mutants(whole: &Value, changes: fn(&Map<String, Value>) -> Vec<Change>, look: impl Fn(&str, &Value)) -> usize {
    let mut all: Vec<(String, Change)> = Vec::new();
    schemas("", whole, &mut |pointer, schema| {
        all.extend(changes(schema).into_iter().map(|change| (pointer.to_string(), change)));
    });
    // Changed in place: thousands of copies would take gigabytes.
    let mut mutant = whole.clone();
    for (pointer, (what, changed)) in &all {
        let before = std::mem::replace(mutant.pointer_mut(pointer).unwrap(), Value::Object(changed.clone()));
        look(&format!("{pointer}: {what}"), &mutant);
        *mutant.pointer_mut(pointer).unwrap() = before;
    }
    assert_eq!(&mutant, whole);
    all.len()
}

/// A copy with a key set, or without it.
fn with(schema: &Map<String, Value>, key: &str, value: Option<Value>) -> Map<String, Value> {
    let mut schema = schema.clone();
    match value {
        Some(value) => drop(schema.insert(key.into(), value)),
        None => drop(schema.remove(key)),
    }
    schema
}

fn list(schema: &Map<String, Value>, key: &str) -> Vec<Value> {
    schema.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn without(all: &[Value], at: usize) -> Value {
    all[..at].iter().chain(&all[at + 1..]).cloned().collect()
}

/// Every breaking change that can be made to a schema alone.
fn breaking(schema: &Map<String, Value>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut change = |what: String, changed| changes.push((what, changed));
    for key in ["required", "enum"] {
        let all = list(schema, key);
        for (at, value) in all.iter().enumerate() {
            change(format!("{key} without {value}"), with(schema, key, Some(without(&all, at))));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required = list(schema, "required");
    for name in properties.keys() {
        let fewer = with(&properties, name, None);
        change(format!("no property {name}"), with(schema, "properties", Some(fewer.into())));
        let listed = required.contains(&json!(name));
        if !listed {
            let more: Value = required.iter().cloned().chain([json!(name)]).collect();
            change(format!("{name} required"), with(schema, "required", Some(more)));
        }
    }
    let (types, named) = (list(schema, "type"), schema.get("type").and_then(Value::as_str));
    for (at, name) in types.iter().enumerate() {
        change(format!("never {name}"), with(schema, "type", Some(without(&types, at))));
    }
    for (old, new) in [("integer", "number"), ("number", "integer"), ("string", "boolean"), ("boolean", "string")] {
        if named == Some(old) {
            change(format!("{new} for {old}"), with(schema, "type", Some(json!(new))));
            change(format!("{old} or null"), with(schema, "type", Some(json!([old, "null"]))));
        }
    }
    if let Some(named @ ("object" | "array" | "null")) = named {
        change(format!("string for {named}"), with(schema, "type", Some(json!("string"))));
    }
    for key in ["type", "const", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        // A list of values has a type of its own.
        let says_no_more = key == "type" && (schema.contains_key("const") || schema.contains_key("enum"));
        if schema.contains_key(key) && !says_no_more {
            change(format!("no {key}"), with(schema, key, None));
        }
    }
    for key in ["minItems", "maxItems", "items", "additionalProperties", "prefixItems"] {
        let is_said = schema.get(key).is_some_and(|value| value != &json!({}));
        if is_said {
            change(format!("no {key}"), with(schema, key, None));
        }
    }
    for key in ["minimum", "exclusiveMinimum", "minItems"] {
        if let Some(bound) = schema.get(key).and_then(Value::as_i64) {
            change(format!("{key} below"), with(schema, key, Some(json!(bound - 1))));
        }
    }
    for key in ["maximum", "exclusiveMaximum", "maxItems"] {
        if let Some(bound) = schema.get(key).and_then(Value::as_i64) {
            change(format!("{key} above"), with(schema, key, Some(json!(bound + bound / 2 + 1))));
        }
    }
    changes
}

/// Every change that readers and old documents live with.
fn harmless(schema: &Map<String, Value>) -> Vec<Change> {
    let mut changes = vec![("said otherwise".into(), with(schema, "description", Some(json!("Something else."))))];
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let more = with(properties, "a_later_key", Some(json!({ "type": "string" })));
        changes.push(("a new key".into(), with(schema, "properties", Some(more.into()))));
    }
    if schema.get("enum").is_some_and(|values| values[0].is_string()) {
        let more: Value = list(schema, "enum").into_iter().chain([json!("a-later-name")]).collect();
        changes.push(("a new name".into(), with(schema, "enum", Some(more))));
    }
    if let Some(most) = schema.get("maximum").and_then(Value::as_u64) {
        changes.push(("a lower maximum".into(), with(schema, "maximum", Some(json!(most - 1)))));
    }
    changes
}

#[test]
fn every_breaking_change_at_every_place_is_found_and_named() {
    for version in versions() {
        let whole = golden(&version);
        let count = mutants(&whole, breaking, |what, mutant| {
            assert!(!broken(&whole, mutant).is_empty(), "{version}{what} was not found");
        });
        assert!(count > 30, "{version}: {count} changes");
        eprintln!("{version}: {count} breaking changes found");
    }
}

#[test]
fn no_harmless_change_at_any_place_is_called_breaking() {
    for version in versions() {
        let whole = golden(&version);
        assert_eq!(broken(&whole, &whole), [""; 0]);
        let count = mutants(&whole, harmless, |what, mutant| {
            assert_eq!(broken(&whole, mutant), [""; 0], "{version}{what}");
        });
        assert!(count > 10, "{version}: {count} changes");
    }
}

#[test]
fn what_is_broken_is_named_with_its_place() {
    let whole = golden("result-1");
    let of = |pointer: &str, value: Value| {
        let mut mutant = whole.clone();
        *mutant.pointer_mut(pointer).unwrap() = value;
        broken(&whole, &mutant)
    };
    assert_eq!(
        of("/properties/label/type", json!("integer")),
        ["/label may be integer now", "/label is never null any more", "/label is never string any more"]
    );
    assert_eq!(of("/properties/tool/required", json!(["name"])), ["/tool/version is not required any more"]);
    assert_eq!(of("/properties/tool/properties/version", json!({})), ["/tool/version may be of any type now"]);
    assert_eq!(of("/$defs/point/properties/loop/enum", json!(["closed"])), ["/points/[]/loop lost the value \"open\""]);
    let mut mutant = whole.clone();
    mutant["$defs"]["window"]["properties"].as_object_mut().unwrap().remove("n");
    assert_eq!(broken(&whole, &mutant), ["/points/[]/timeline/[]/n is gone"]);
}

#[test]
fn a_break_between_what_was_published_and_today_is_found_across_their_forms() {
    let (whole, today) = (golden("result-1"), today("result-1"));
    let of = |change: &dyn Fn(&mut Value)| {
        let mut mutant = today.clone();
        change(&mut mutant);
        broken(&whole, &mutant)
    };
    let unrequired = of(&|schema| {
        let required = schema["$defs"]["Point"]["required"].as_array_mut().unwrap();
        required.retain(|key| key != "latency_ns");
    });
    assert_eq!(unrequired, ["/points/[]/latency_ns is not required any more"]);
    let renamed = of(&|schema| schema["$defs"]["Convention"]["oneOf"][1]["const"] = json!("both-ways"));
    assert_eq!(renamed, ["/points/[]/convention lost the value \"round-trip\""]);
    let retyped = of(&|schema| schema["$defs"]["Warning"]["properties"]["code"] = json!({ "type": "integer" }));
    assert!(retyped.contains(&"/warnings/[]/code may be integer now".to_string()), "{retyped:?}");
    let demanded = of(&|schema| schema["required"].as_array_mut().unwrap().push(json!("quiet")));
    assert_eq!(demanded, ["/quiet is required now, and documents from before lack it"]);
}
