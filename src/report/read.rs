//! Results read back: what a comparison needs of them, with the file and the key named where something is missing.
//!
//! Keys that are not known are ignored, a version that is not known is refused.

use std::{fmt, fs, path::Path};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::result::SCHEMA;
use crate::{
    error::{Error, Result},
    stats::Summary,
};

/// One side of a comparison.
#[derive(Debug)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Whether it equals the first one, as a control.
    pub control: bool,
    /// Its rounds.
    pub rounds: Vec<Round>,
}

/// One finished run: a round of a comparison.
#[derive(Clone, Debug)]
pub struct Round {
    /// The file, and the place in it where there are several.
    pub origin: String,
    /// The name that the run was given.
    pub label: Option<String>,
    /// Its block, where rounds were taken in blocks.
    pub block: Option<u64>,
    /// The whole document.
    pub document: Value,
    /// Its points.
    pub points: Vec<RoundPoint>,
}

/// One point of a round.
#[derive(Clone, Debug)]
pub struct RoundPoint {
    /// What it is a measurement of.
    pub key: PointKey,
    /// Its place in the document.
    pub index: usize,
    /// Latencies.
    pub latency_ns: Summary,
    /// Commands per second.
    pub ops_per_s: Option<f64>,
}

/// What makes two points the same measurement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PointKey {
    /// The engine.
    pub engine: String,
    /// Direction or command of block engines.
    pub operation: Option<String>,
    /// Outstanding commands.
    pub qd: u64,
    /// Measuring threads.
    pub jobs: u64,
    /// Payload of a command.
    pub bs_bytes: Option<u64>,
    /// Which one, of several of this kind in one result.
    pub nth: usize,
}

impl Round {
    /// A round from a result.
    ///
    /// # Errors
    /// [`Error::Usage`] with the file and what is wrong: another schema, a partial result, a missing or impossible figure.
    pub fn of(origin: String, document: Value, block: Option<u64>) -> Result<Self> {
        let wrong = |what: String| Error::usage(format!("{origin}: {what}"));
        require_schema(&origin, &document, SCHEMA)?;
        let label = document["label"].as_str().map(str::to_string);
        let Some(found) = document["points"].as_array().filter(|points| !points.is_empty()) else {
            return Err(wrong("`points` is missing or empty: nothing was measured".into()));
        };
        let mut points: Vec<RoundPoint> = Vec::new();
        for (index, point) in found.iter().enumerate() {
            let mut point = RoundPoint::of(index, point).map_err(|what| wrong(format!("points[{index}].{what}")))?;
            point.key.nth = points.iter().filter(|other| other.key.is_of_kind(&point.key)).count();
            points.push(point);
        }
        Ok(Self { origin, label, block, document, points })
    }

    /// The document of a point.
    pub fn document_of(&self, point: &RoundPoint) -> &Value {
        &self.document["points"][point.index]
    }
}

impl RoundPoint {
    fn of(index: usize, point: &Value) -> std::result::Result<Self, String> {
        if point["partial"] != false {
            let why = point["ended_because"].as_str().unwrap_or("it was stopped");
            return Err(format!(
                "partial: the run is not complete ({why}), so its figures are not those of the others"
            ));
        }
        let config = &point["config"];
        let operation = config["block"]["command"].as_str().or(config["rw"].as_str()).map(str::to_string);
        let key = PointKey {
            engine: typed(config, "config", "engine")?,
            operation,
            qd: typed(config, "config", "qd")?,
            jobs: typed(config, "config", "jobs")?,
            bs_bytes: typed(config, "config", "bs_bytes")?,
            nth: 0,
        };
        let latency_ns: Summary =
            serde_json::from_value(point["latency_ns"].clone()).map_err(|error| format!("latency_ns: {error}"))?;
        if !is_possible(&latency_ns) {
            return Err(format!("latency_ns: {} commands with impossible figures", latency_ns.n));
        }
        if point["verified"] == "no" {
            return Err("verified: the bytes were not right, so the commands were not those that were asked for".into());
        }
        Ok(Self { key, index, latency_ns, ops_per_s: point["throughput"]["ops_per_s"].as_f64() })
    }
}

impl PointKey {
    /// Whether it is the same measurement, but for its place in the result.
    fn is_of_kind(&self, other: &Self) -> bool {
        Self { nth: 0, ..self.clone() } == Self { nth: 0, ..other.clone() }
    }
}

impl fmt::Display for PointKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.engine)?;
        if let Some(operation) = &self.operation {
            write!(formatter, " {operation}")?;
        }
        if let Some(bytes) = self.bs_bytes {
            write!(formatter, " {bytes} bytes")?;
        }
        write!(formatter, " depth {}", self.qd)?;
        if self.jobs > 1 {
            write!(formatter, " {} jobs", self.jobs)?;
        }
        Ok(())
    }
}

/// Whether these can be the figures of commands: none below zero, and percentiles in their order between the ends.
fn is_possible(latency_ns: &Summary) -> bool {
    let Summary { n, min, max, mean, stddev: _, percentiles: p } = latency_ns;
    let middle = [p.p1, p.p5, p.p10, p.p25, p.p50, p.p75, p.p90, p.p95, p.p99, p.p99_5, p.p99_9, p.p99_99, p.p99_999];
    let in_order: Vec<f64> = [*min].into_iter().chain(middle).chain([*max]).flatten().collect();
    *n > 0 && in_order.is_sorted() && in_order.iter().chain(mean).all(|ns| ns.is_finite() && *ns >= 0.0)
}

/// Reads a file as JSON.
///
/// # Errors
/// [`Error::Usage`] with the file and why it is none.
pub fn parse(path: &Path, origin: &str) -> Result<Value> {
    let text = fs::read_to_string(path).map_err(|error| Error::usage(format!("{origin}: {error}")))?;
    parse_text(&text, origin)
}

/// Reads text as JSON; `origin` names it.
///
/// # Errors
/// As [`parse`].
pub fn parse_text(text: &str, origin: &str) -> Result<Value> {
    if text.trim().is_empty() {
        return Err(Error::usage(format!("{origin}: the file is empty")));
    }
    serde_json::from_str(text).map_err(|error| Error::usage(format!("{origin}: not a JSON document: {error}")))
}

/// Refuses a document of another schema or version.
///
/// # Errors
/// [`Error::Usage`] with the file, what it says, and what was expected.
pub fn require_schema(origin: &str, document: &Value, expected: &str) -> Result<()> {
    match document["schema"].as_str() {
        Some(schema) if schema == expected => Ok(()),
        Some(schema) => Err(Error::usage(format!("{origin}: its `schema` is {schema}; this version reads {expected}"))),
        None => Err(Error::usage(format!("{origin}: it has no `schema`, so it is no result of lat-probe"))),
    }
}

fn typed<T: DeserializeOwned>(object: &Value, place: &str, key: &str) -> std::result::Result<T, String> {
    let value = object.get(key).ok_or_else(|| format!("{place}.{key} is missing"))?;
    serde_json::from_value(value.clone()).map_err(|error| format!("{place}.{key}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn example() -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema/examples/rdma-read.json");
        parse(&path, "example").unwrap()
    }

    fn error(document: Value) -> String {
        Round::of("a.json".into(), document, None).unwrap_err().to_string()
    }

    #[test]
    fn the_example_is_a_round() {
        let round = Round::of("a.json".into(), example(), None).unwrap();
        let key = &round.points[0].key;
        assert_eq!((key.engine.as_str(), key.qd, key.jobs, key.nth), ("rdma-read", 1, 1, 0));
        assert!(round.points[0].latency_ns.n > 0 && round.points[0].ops_per_s > Some(0.0));
        let mut twice = example();
        let point = twice["points"][0].clone();
        twice["points"].as_array_mut().unwrap().push(point);
        assert_eq!(Round::of("a.json".into(), twice, None).unwrap().points[1].key.nth, 1);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key() {
        assert_eq!(error(json!({})), "a.json: it has no `schema`, so it is no result of lat-probe");
        let newer = error(json!({ "schema": "lat-probe.result/2" }));
        assert!(newer.contains("lat-probe.result/2; this version reads lat-probe.result/1"), "{newer}");
        let of = |place: &str, value: Value| {
            let mut document = example();
            *document.pointer_mut(place).unwrap() = value;
            error(document)
        };
        assert!(of("/points", json!([])).contains("`points` is missing or empty"));
        assert!(of("/points/0/partial", json!(true)).contains("points[0].partial: the run is not complete"));
        assert!(of("/points/0/latency_ns/mean", json!("NaN")).contains("points[0].latency_ns: "));
        assert!(of("/points/0/latency_ns/mean", json!(-1)).contains("impossible"));
        assert!(of("/points/0/latency_ns/n", json!(0)).contains("impossible"));
        assert!(of("/points/0/latency_ns/percentiles/99", json!(-5)).contains("impossible"));
        assert!(of("/points/0/latency_ns/percentiles/50", json!(1e300)).contains("impossible"));
        assert!(of("/points/0/latency_ns/max", json!(0.5)).contains("impossible"));
        assert!(of("/points/0/verified", json!("no")).contains("points[0].verified: the bytes were not right"));
        assert!(of("/points/0/config/qd", json!("one")).contains("points[0].config.qd: "));
        let mut document = example();
        document["points"][0]["config"].as_object_mut().unwrap().remove("jobs");
        assert!(error(document).contains("points[0].config.jobs is missing"));
        let mut document = example();
        document["points"][0].as_object_mut().unwrap().remove("latency_ns");
        assert!(error(document).contains("points[0].latency_ns: "));
    }

    #[test]
    fn files_that_are_none_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            let path = folder.path().join("x.json");
            fs::write(&path, text).unwrap();
            parse(&path, &path.display().to_string()).unwrap_err().to_string()
        };
        assert!(of("").ends_with("x.json: the file is empty"));
        assert!(of("{ \"schema\": ").contains("x.json: not a JSON document: EOF"));
        assert!(of("PNG").contains("not a JSON document"));
        let missing = parse(&folder.path().join("y.json"), "y.json").unwrap_err().to_string();
        assert!(missing.contains("y.json: No such file"), "{missing}");
    }
}
