//! JSON Schemas of what the program writes, made from the very types that are written.
//!
//! The doc comments of types and fields become descriptions, so they say no more of Rust than a reader of JSON knows.
//! `#[schemars(…)]` says what the types don't. A key that came within a version is named to [`added_later`].

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value};

/// Largest integer in a document, 2^53 − 1: readers that keep numbers as doubles would confuse larger ones.
pub const LARGEST_INTEGER: u64 = (1 << 53) - 1;

/// A moment by RFC 3339, UTC.
pub const TIMESTAMP: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$";

/// A name that programs can rely on, in kebab case.
pub const STABLE_NAME: &str = "^[a-z0-9]+(-[a-z0-9]+)*$";

/// Keywords in the order in which they are printed; others follow.
const ORDER: [&str; 13] = [
    "$schema",
    "$id",
    "title",
    "description",
    "$ref",
    "type",
    "const",
    "enum",
    "minimum",
    "maximum",
    "required",
    "properties",
    "items",
];

/// Characters of a line.
const WIDTH: usize = 120;

/// The schema of what `T` is written as, draft 2020-12, as the text of a file.
pub fn text_of<T: JsonSchema>() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(put_for_readers));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut text = String::new();
    write(&mut text, schema.as_value(), Order::Keywords, 0, 0);
    text + "\n"
}

/// Keys that came after the version was first published: they are always written, but not required, since documents from
/// before lack them.
pub fn added_later(keys: &'static [&'static str]) -> impl Transform {
    move |schema: &mut Schema| {
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|key| key.as_str().is_none_or(|key| !keys.contains(&key)));
        }
    }
}

/// Widths of numbers become bounds, and a comment one line.
fn put_for_readers(schema: &mut Schema) {
    let width = schema.get("format").and_then(Value::as_str).map(str::to_string);
    let largest = match width.as_deref() {
        Some("uint32") => Some(u64::from(u32::MAX)),
        Some("uint64" | "uint") => Some(LARGEST_INTEGER),
        Some("uint8" | "uint16" | "double") => None,
        _ => return join_lines(schema),
    };
    schema.remove("format");
    if let (Some(largest), Some(object)) = (largest, schema.as_object_mut()) {
        object.entry("maximum").or_insert(largest.into());
    }
    join_lines(schema);
}

fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

/// What a map's keys are, which says in which order people want to read them: no map of JSON values keeps one.
#[derive(Clone, Copy)]
enum Order<'a> {
    /// Those of a schema.
    Keywords,
    /// Names of schemas, those that are required in their order first.
    Names(&'a [Value]),
}

impl Order<'_> {
    fn place(self, key: &str) -> usize {
        let found = match self {
            Self::Keywords => ORDER.iter().position(|keyword| *keyword == key),
            Self::Names(required) => required.iter().position(|name| name == key),
        };
        found.unwrap_or(usize::MAX)
    }
}

/// The entries of a map as they are printed, each with the order that is within it.
fn entries<'a>(map: &'a Map<String, Value>, order: Order) -> Vec<(String, &'a Value, Order<'a>)> {
    let required = map.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut sorted: Vec<_> = map.iter().collect();
    sorted.sort_by_key(|(key, _)| (order.place(key), *key));
    let entry = |(key, value): (&'a String, &'a Value)| {
        let within = match (order, key.as_str()) {
            (Order::Keywords, "properties") => Order::Names(required),
            (Order::Keywords, "$defs") => Order::Names(&[]),
            _ => Order::Keywords,
        };
        (format!("{}: ", Value::from(key.as_str())), value, within)
    };
    sorted.into_iter().map(entry).collect()
}

/// The value on one line.
fn line(value: &Value, order: Order) -> String {
    let all = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Object(map) => {
            let parts = entries(map, order).into_iter().map(|(key, value, order)| key + &line(value, order));
            format!("{{{}}}", all(parts.collect()))
        }
        Value::Array(items) => format!("[{}]", all(items.iter().map(|item| line(item, order)).collect())),
        plain => plain.to_string(),
    }
}

/// Writes the value behind `before` characters of a line: on the same line if it fits, else with an entry a line.
fn write(text: &mut String, value: &Value, order: Order, indent: usize, before: usize) {
    let whole = line(value, order);
    let parts = match value {
        _ if before + whole.chars().count() < WIDTH => return text.push_str(&whole),
        Value::Object(map) => entries(map, order),
        Value::Array(items) => items.iter().map(|item| (String::new(), item, order)).collect(),
        _ => return text.push_str(&whole),
    };
    let (indent, ends) = (indent + 2, if value.is_object() { ["{", "}"] } else { ["[", "]"] });
    let mut separator = ends[0];
    for (key, value, order) in parts {
        *text += &format!("{separator}\n{:indent$}{key}", "");
        write(text, value, order, indent, indent + key.chars().count());
        separator = ",";
    }
    *text += &format!("\n{:1$}{2}", "", indent - 2, ends[1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_printed_in_the_order_that_it_is_read_in_and_stays_the_same() {
        let long = "x".repeat(WIDTH);
        let schema = json!({
            "properties": { "a": { "minimum": 0, "type": "integer" }, "z": { "description": long } },
            "required": ["z", "a"], "type": "object", "$id": "urn:x"
        });
        let mut text = String::new();
        write(&mut text, &schema, Order::Keywords, 0, 0);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), schema);
        let expected = format!(
            "{{\n  \"$id\": \"urn:x\",\n  \"type\": \"object\",\n  \"required\": [\"z\", \"a\"],\n  \"properties\": {{\n    \
             \"z\": {{\n      \"description\": \"{long}\"\n    }},\n    \"a\": {{\"type\": \"integer\", \"minimum\": 0}}\n  }}\n}}"
        );
        assert_eq!(text, expected);
    }

    #[derive(JsonSchema)]
    #[schemars(transform = added_later(&["later"]))]
    #[allow(dead_code)] // Only described.
    struct Example {
        /// Two
        /// lines.
        count: u64,
        small: Option<u32>,
        later: f64,
    }

    #[test]
    fn widths_are_bounds_and_what_came_later_is_not_required() {
        let schema: Value = serde_json::from_str(&text_of::<Example>()).unwrap();
        let count = json!({ "description": "Two lines.", "type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER });
        assert_eq!(schema["properties"]["count"], count);
        let small = json!({ "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX });
        assert_eq!(schema["properties"]["small"], small);
        assert_eq!(schema["properties"]["later"], json!({ "type": "number" }));
        assert_eq!(schema["required"], json!(["count", "small"]));
    }
}
