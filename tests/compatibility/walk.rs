//! What a schema no longer promises that an older one did.
//!
//! Readers rely on what the older one says of a document, so that must stay true of every new one; and old documents must
//! stay valid. New keys that are not required, and new names in a list of names, break neither.

use std::{collections::BTreeSet, sync::LazyLock};

use serde_json::{Map, Value};

/// A schema without references and alternatives.
type Leaf = Map<String, Value>;

/// What a schema is that says nothing, and what one has that has no keys.
static NOTHING: LazyLock<Leaf> = LazyLock::new(Leaf::new);

/// Keywords that lead to other schemas.
const WITHIN: [&str; 7] = ["$ref", "anyOf", "oneOf", "properties", "additionalProperties", "items", "prefixItems"];

/// Every place at which the later schema breaks what the earlier one says, with what is wrong there.
pub fn broken(earlier: &Value, later: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut walk = Walk { earlier, later, found: &mut found, seen: BTreeSet::new() };
    walk.compare("", earlier, later);
    found
}

struct Walk<'a, 'b> {
    earlier: &'a Value,
    later: &'a Value,
    found: &'b mut Vec<String>,
    /// Pairs of objects that were compared: definitions are used at many places, and named at the first one.
    seen: BTreeSet<(*const Leaf, *const Leaf)>,
}

impl<'a> Walk<'a, '_> {
    fn say(&mut self, place: &str, what: impl AsRef<str>) {
        let place = if place.is_empty() { "the document" } else { place };
        self.found.push(format!("{place} {}", what.as_ref()));
    }

    fn compare(&mut self, place: &str, earlier: &'a Value, later: &'a Value) {
        // Most keys are plain and unchanged.
        let is_plain = |schema: &Value| WITHIN.iter().all(|key| schema.get(key).is_none());
        if earlier == later && is_plain(earlier) {
            return;
        }
        let (earlier, later) = (leaves(self.earlier, earlier), leaves(self.later, later));
        self.compare_types(place, &earlier, &later);
        let named = self.compare_values(place, &earlier, &later);
        if !named {
            self.compare_bounds(place, &earlier, &later);
        }
        if let (Some(earlier), Some(later)) = (of_type(&earlier, "object"), of_type(&later, "object")) {
            self.compare_objects(place, earlier, later);
        }
        if let (Some(earlier), Some(later)) = (of_type(&earlier, "array"), of_type(&later, "array")) {
            self.compare_arrays(place, earlier, later);
        }
    }

    fn compare_types(&mut self, place: &str, earlier: &[&Leaf], later: &[&Leaf]) {
        let Some(earlier) = types(earlier) else { return };
        let Some(later) = types(later) else {
            return self.say(place, "may be of any type now");
        };
        for name in later.difference(&earlier) {
            self.say(place, format!("may be {name} now"));
        }
        for name in earlier.difference(&later) {
            self.say(place, format!("is never {name} any more"));
        }
    }

    /// Whether the later one lists its values.
    fn compare_values(&mut self, place: &str, earlier: &[&Leaf], later: &[&Leaf]) -> bool {
        let (earlier, later) = (values(earlier), values(later));
        match (&earlier, &later) {
            (Some(earlier), Some(later)) => {
                for value in earlier.difference(later) {
                    self.say(place, format!("lost the value {value}"));
                }
            }
            (Some(_), None) => self.say(place, "takes any value now"),
            (None, Some(_)) => self.say(place, "takes some values only now"),
            (None, None) => {}
        }
        later.is_some()
    }

    fn compare_bounds(&mut self, place: &str, earlier: &[&Leaf], later: &[&Leaf]) {
        for keyword in ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minItems", "maxItems", "pattern"]
        {
            let Some(bound) = earlier.iter().find_map(|leaf| leaf.get(keyword)) else { continue };
            if !later.iter().any(|leaf| keeps(leaf, keyword, bound)) {
                self.say(place, format!("does not keep its {keyword} of {bound}"));
            }
        }
    }

    fn compare_objects(&mut self, place: &str, earlier: &'a Leaf, later: &'a Leaf) {
        if !self.seen.insert((earlier, later)) {
            return;
        }
        let (before, after) = (properties(earlier), properties(later));
        let (required, required_now) = (required(earlier), required(later));
        for (name, schema) in before {
            match after.get(name) {
                Some(now) => self.compare(&format!("{place}/{name}"), schema, now),
                None => self.say(&format!("{place}/{name}"), "is gone"),
            }
        }
        for name in required.iter().filter(|name| !required_now.contains(*name)) {
            self.say(&format!("{place}/{name}"), "is not required any more");
        }
        // A schema that names no keys said nothing of which there are.
        for name in required_now.iter().filter(|name| !before.is_empty() && !required.contains(*name)) {
            self.say(&format!("{place}/{name}"), "is required now, and documents from before lack it");
        }
        let Some(others) = earlier.get("additionalProperties").filter(|schema| schema.is_object()) else { return };
        let new = after.iter().filter(|(name, _)| !before.contains_key(*name));
        let mut described: Vec<_> = new.map(|(name, schema)| (name.as_str(), schema)).collect();
        described.extend(later.get("additionalProperties").map(|schema| ("*", schema)));
        if described.is_empty() {
            self.say(&format!("{place}/*"), "is not described any more");
        }
        for (name, schema) in described {
            self.compare(&format!("{place}/{name}"), others, schema);
        }
    }

    fn compare_arrays(&mut self, place: &str, earlier: &'a Leaf, later: &'a Leaf) {
        let rows = |leaf: &'a Leaf| leaf.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (before, after) = (rows(earlier), rows(later));
        if !before.is_empty() && before.len() != after.len() {
            self.say(place, format!("has {} described places instead of {}", after.len(), before.len()));
        }
        for (at, (before, after)) in before.iter().zip(after).enumerate() {
            self.compare(&format!("{place}/{at}"), before, after);
        }
        let Some(items) = earlier.get("items") else { return };
        let described: Vec<_> = after.iter().chain(later.get("items")).collect();
        if described.is_empty() {
            self.say(&format!("{place}/[]"), "is not described any more");
        }
        for now in described {
            self.compare(&format!("{place}/[]"), items, now);
        }
    }
}

/// The alternatives of a schema, with references followed.
fn leaves<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Leaf> {
    let Some(object) = schema.as_object() else { return vec![&NOTHING] };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("no {reference}"));
        return leaves(root, target);
    }
    let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|key| object.get(key)?.as_array());
    match alternatives {
        Some(all) => all.iter().flat_map(|schema| leaves(root, schema)).collect(),
        None => vec![object],
    }
}

/// The one alternative of that type.
fn of_type<'a>(leaves: &[&'a Leaf], name: &str) -> Option<&'a Leaf> {
    let is_of_type = |leaf: &&'a Leaf| types_of(leaf).is_some_and(|types| types.contains(name));
    let found: Vec<&'a Leaf> = leaves.iter().copied().filter(is_of_type).collect();
    assert!(found.len() <= 1, "several alternatives are {name}: {found:?}");
    found.first().copied()
}

/// `None` for any.
fn types<'a>(leaves: &[&'a Leaf]) -> Option<BTreeSet<&'a str>> {
    leaves.iter().map(|leaf| types_of(leaf)).try_fold(BTreeSet::new(), |all, types| Some(&all | &types?))
}

fn types_of(leaf: &Leaf) -> Option<BTreeSet<&str>> {
    match leaf.get("type") {
        Some(Value::String(name)) => return Some([name.as_str()].into()),
        Some(Value::Array(names)) => return Some(names.iter().filter_map(Value::as_str).collect()),
        _ => {}
    }
    let listed = listed(leaf)?;
    let fraction = listed.iter().any(|value| value.is_f64());
    let name = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if fraction => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Some(listed.iter().map(name).collect())
}

fn listed(leaf: &Leaf) -> Option<&[Value]> {
    leaf.get("const").map(std::slice::from_ref).or_else(|| leaf.get("enum")?.as_array().map(Vec::as_slice))
}

/// All values but null, if they are listed. `None` where there are others, or none but null.
fn values(leaves: &[&Leaf]) -> Option<BTreeSet<String>> {
    let is_null = |leaf: &&&Leaf| types_of(leaf).is_some_and(|types| types.len() == 1 && types.contains("null"));
    let mut all = BTreeSet::new();
    for leaf in leaves.iter().filter(|leaf| !is_null(leaf)) {
        all.extend(listed(leaf)?.iter().filter(|value| !value.is_null()).map(Value::to_string));
    }
    (!all.is_empty()).then_some(all)
}

/// Whether everything that the leaf takes is within the bound.
fn keeps(leaf: &Leaf, keyword: &str, bound: &Value) -> bool {
    let own = |keyword: &str| leaf.get(keyword).and_then(Value::as_f64);
    let Some(limit) = bound.as_f64() else { return leaf.get(keyword) == Some(bound) };
    let holds = |keyword: &str, test: &dyn Fn(f64) -> bool| own(keyword).is_some_and(test);
    match keyword {
        "minimum" => holds("minimum", &|own| own >= limit) || holds("exclusiveMinimum", &|own| own >= limit),
        "exclusiveMinimum" => holds("minimum", &|own| own > limit) || holds(keyword, &|own| own >= limit),
        "maximum" => holds("maximum", &|own| own <= limit) || holds("exclusiveMaximum", &|own| own <= limit),
        "exclusiveMaximum" => holds("maximum", &|own| own < limit) || holds(keyword, &|own| own <= limit),
        "minItems" => holds(keyword, &|own| own >= limit),
        _ => holds(keyword, &|own| own <= limit),
    }
}

fn properties(leaf: &Leaf) -> &Map<String, Value> {
    leaf.get("properties").and_then(Value::as_object).unwrap_or(&NOTHING)
}

fn required(leaf: &Leaf) -> BTreeSet<&str> {
    let names = leaf.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    names.iter().filter_map(Value::as_str).collect()
}
