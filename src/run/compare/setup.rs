//! What must be the same on all sides, and what differs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    error::{Error, Result},
    report::{
        Warning,
        comparison::Difference,
        read::{PointKey, Round, Side},
    },
};

/// Below a point: figures of one kind only if these are the same.
const MUST_BE_EQUAL: [(&str, &str); 8] = [
    ("/convention", "what one number spans"),
    ("/loop", "how commands are issued"),
    ("/config/completion", "how completions are awaited"),
    ("/config/phases", "how many stamps a command has"),
    ("/config/rdma/transport", "the transport"),
    ("/granted/block/direct", "whether the page cache is passed by"),
    ("/granted/block/waits_in", "where a command waits"),
    ("/granted/rdma/inline", "whether the payload is in the request"),
];

/// Below a point or, with `host`, below the result: a difference that may be what is looked for, or may not.
const SHOULD_BE_EQUAL: [(&str, &str); 8] = [
    ("/config/cpus", "the measuring CPU"),
    ("/config/peer_cpu", "the responder's CPU"),
    ("/config/warmup", "the warm-up"),
    ("/granted/rdma/device", "the device"),
    ("/granted/block/device/model", "the device"),
    ("/granted/block/device/name", "the device"),
    ("/granted/block/filesystem", "the file system"),
    ("/granted/rdma/mtu_bytes", "the MTU"),
];

/// What is another value in every run and means nothing.
const NOISE: [&str; 9] = [
    "queue_pair",
    "boot_id",
    "started_at",
    "calibration_error_ppm",
    "drift_ppm",
    "ticks_per_ns",
    "read_cost_ns",
    "gid",
    "unwritten_bytes",
];

/// Refuses sides whose figures are not of one kind.
///
/// # Errors
/// [`Error::Usage`] with the key and the values.
pub(super) fn require_equal(sides: &[Side], keys: &[PointKey]) -> Result<()> {
    for key in keys {
        for (pointer, meaning) in MUST_BE_EQUAL {
            refuse_if_different(pointer, meaning, &values(sides, |round| of_point(round, key, pointer)))?;
        }
    }
    let clock = |round: &Round| round.document.pointer("/clock/source").map(Value::to_string);
    refuse_if_different("/clock/source", "the clock", &values(sides, clock))
}

fn refuse_if_different(pointer: &str, meaning: &str, values: &[BTreeSet<String>]) -> Result<()> {
    let all: BTreeSet<&String> = values.iter().flatten().collect();
    if all.len() > 1 {
        let all: Vec<_> = all.into_iter().map(String::as_str).collect();
        let key = pointer[1..].replace('/', ".");
        return Err(Error::usage(format!(
            "{meaning} must be the same in all runs of a comparison: {key} is {}",
            all.join(" and ")
        )));
    }
    Ok(())
}

/// Doubts about sides that differ in more than they should.
pub(super) fn doubts(sides: &[Side], keys: &[PointKey]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    let mut add = |meaning: &str, values: Vec<BTreeSet<String>>| {
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            let said: Vec<_> = values.iter().map(shown).collect();
            let warning = Warning::new("set-up-differs", format!("{meaning} differs: {}", said.join(" against ")));
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    };
    for key in keys {
        for (pointer, meaning) in SHOULD_BE_EQUAL {
            add(meaning, values(sides, |round| of_point(round, key, pointer)));
        }
    }
    for (pointer, meaning) in [("/host/hostname", "the machine"), ("/host/cpu_model", "the processor")] {
        add(meaning, values(sides, |round| round.document.pointer(pointer).map(Value::to_string)));
    }
    add("what was quieted", values(sides, |round| Some(quieted(round))));
    for side in sides {
        let noisy = side.rounds.iter().filter(|round| has_warning(round, "noise")).count();
        if noisy > 0 {
            let (name, all) = (&side.name, side.rounds.len());
            warnings.push(Warning::new("noise", format!("{noisy} of {all} rounds of {name} ran on a noisy CPU")));
        }
    }
    warnings
}

/// What `--quiet` has applied, by name.
fn quieted(round: &Round) -> String {
    let applied = round.document.pointer("/quiet/applied").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<_> = applied.filter_map(|entry| entry["what"].as_str()).collect();
    if names.is_empty() { "nothing".into() } else { names.join(" and ") }
}

fn has_warning(round: &Round, code: &str) -> bool {
    round.document["warnings"].as_array().into_iter().flatten().any(|warning| warning["code"] == code)
}

fn shown(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn of_point(round: &Round, key: &PointKey, pointer: &str) -> Option<String> {
    let point = round.points.iter().find(|point| point.key == *key)?;
    round.document_of(point).pointer(pointer).filter(|value| !value.is_null()).map(Value::to_string)
}

fn values(sides: &[Side], of: impl Fn(&Round) -> Option<String>) -> Vec<BTreeSet<String>> {
    sides.iter().map(|side| side.rounds.iter().filter_map(&of).collect()).collect()
}

/// Every leaf of host, peer, what was asked and what was granted whose values are not the same on all sides.
pub(super) fn differences(sides: &[Side]) -> Vec<Difference> {
    let leaves: Vec<_> = sides.iter().map(leaves_of).collect();
    let keys: BTreeSet<&String> = leaves.iter().flat_map(BTreeMap::keys).collect();
    let of = |key: &&String| {
        let values: Vec<Vec<String>> = leaves
            .iter()
            .map(|leaves| leaves.get(*key).map(|values| values.iter().cloned().collect()).unwrap_or_default())
            .collect();
        let differ = values.windows(2).any(|pair| pair[0] != pair[1]);
        differ.then(|| Difference { key: (*key).clone(), values })
    };
    keys.iter().filter_map(of).collect()
}

fn leaves_of(side: &Side) -> BTreeMap<String, BTreeSet<String>> {
    let mut leaves = BTreeMap::new();
    for round in &side.rounds {
        for key in ["host", "peer", "clock", "tool"] {
            collect(&mut leaves, key, &round.document[key]);
        }
        for point in &round.points {
            let document = round.document_of(point);
            collect(&mut leaves, "config", &document["config"]);
            collect(&mut leaves, "granted", &document["granted"]);
        }
    }
    leaves
}

fn collect(leaves: &mut BTreeMap<String, BTreeSet<String>>, place: &str, value: &Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter().filter(|(key, _)| !NOISE.contains(&key.as_str())) {
                collect(leaves, &format!("{place}.{key}"), value);
            }
        }
        Value::Null => {}
        leaf => {
            leaves.entry(place.to_string()).or_default().insert(leaf.to_string());
        }
    }
}
