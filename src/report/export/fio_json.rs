//! fio's JSON and JSON+, in the layout of fio 3.33. A point is a job in a group of its own.
//!
//! - `lat_ns` is the latency. `slat_ns` and `clat_ns` are there only with `--phases`: `slat` ends when the hand-over returns, and
//!   `clat` begins there. Where one call does all of a command, `slat` is all of it.
//! - Percentiles are samples, of which a result has other ones than fio's list. JSON+ has `bins`: the buckets of the result,
//!   each counted in the bin of fio that its middle lies in, so up to 1/64 off. They are of `lat_ns` alone.
//! - `bw_*` and `iops_*` are over hundredths of the run. A key whose figure was not measured is left out.
//! - `lat-probe` at the top level is ours: the version, the floor, and the warnings.

use serde_json::{Map, Value, json};

use super::seconds;
use crate::{
    error::{Error, Result},
    report::{
        fio::{
            depth::{BATCHES, DEPTHS, Seen, shares},
            latency::{class_shares, middle},
            number::{self, whole},
        },
        json,
        stored::{Stored, StoredPoint},
    },
    stats::{Histogram, Summary},
};

/// fio's number for a failure that has a reason in words.
const EIO: u32 = 5;

pub(super) fn document(stored: &Stored, bins: bool) -> Result<String> {
    let at = seconds(&stored.started_at);
    let jobs: Vec<Value> = (0..).zip(&stored.points).map(|(group, point)| job(stored, point, group, bins)).collect();
    let document = json!({
        "fio version": format!("lat-probe-{}", stored.tool.version),
        "timestamp": at.as_secs(),
        "timestamp_ms": at.as_secs().saturating_mul(1000),
        "time": number::date(&stored.started_at),
        "jobs": jobs,
        "lat-probe": {
            "version": stored.tool.version,
            "floor_p50_ns": stored.instrument.floor_ns.percentiles.p50,
            "warnings": stored.warnings,
        },
    });
    json::to_string(&document).map_err(|error| Error::usage(format!("fio's JSON: {error}")))
}

fn job(stored: &Stored, point: &StoredPoint, group: u32, bins: bool) -> Value {
    let engine = if point.config.engine == "io-uring" { "io_uring" } else { point.config.engine.as_str() };
    let name = match (&stored.label, stored.points.len()) {
        (Some(label), 1) => label.clone(),
        _ => format!("{engine}-{group}"),
    };
    let direction = if point.writes() { "write" } else { "read" };
    let failed = point.errors.get("failed_commands").copied().unwrap_or(0);
    let mut job = object(json!({
        "jobname": name,
        "groupid": group,
        "error": if failed > 0 || (point.partial && point.ended_because.is_some()) { EIO } else { 0 },
        "elapsed": point.elapsed_ns().map(|ns| (ns / 1e9).ceil()),
        "job options": options(point, &name, engine, direction),
    }));
    for other in ["read", "write", "trim"] {
        job.insert(other.into(), if other == direction { moved(point, bins) } else { nothing() });
    }
    let cpu = &point.cpu;
    if let Some(elapsed) = cpu.elapsed_ns.filter(|&elapsed| elapsed > 0) {
        let percent = |ns: u64| 100.0 * ns as f64 / elapsed as f64;
        job.insert("usr_cpu".into(), json!(percent(cpu.user_ns)));
        job.insert("sys_cpu".into(), json!(percent(cpu.system_ns)));
    }
    job.insert("ctx".into(), json!(cpu.voluntary_switches.saturating_add(cpu.involuntary_switches)));
    job.insert("majf".into(), json!(cpu.major_faults));
    job.insert("minf".into(), json!(cpu.minor_faults));
    insert_depths(&mut job, point);
    for (unit, classes) in class_shares(&point.histogram) {
        let classes: Map<String, Value> = classes.into_iter().map(|(name, percent)| (name, json!(percent))).collect();
        job.insert(format!("latency_{unit}s"), classes.into());
    }
    job.insert("latency_depth".into(), json!(point.config.qd));
    Value::Object(job)
}

/// As strings, which is how fio has its own.
fn options(point: &StoredPoint, name: &str, engine: &str, direction: &str) -> Value {
    let config = &point.config;
    let mut options = object(json!({
        "name": name,
        "ioengine": engine,
        "rw": config.rw.as_deref().unwrap_or(direction),
        "bs": config.bs_bytes.unwrap_or(0).to_string(),
        "iodepth": config.qd.to_string(),
        "numjobs": config.jobs.to_string(),
    }));
    if let Some(target) = point.target() {
        options.insert("filename".into(), json!(target));
    }
    options.into()
}

/// What went in the direction of the point.
fn moved(point: &StoredPoint, bins: bool) -> Value {
    let bytes = point.config.bs_bytes.unwrap_or(0).saturating_mul(point.latency_ns.n);
    let per_s = point.throughput.bytes_per_s.unwrap_or(0.0);
    let mut moved = object(json!({
        "io_bytes": bytes,
        "io_kbytes": bytes / 1024,
        "bw_bytes": whole(per_s),
        "bw": whole(per_s / 1024.0),
        "iops": point.throughput.ops_per_s.unwrap_or(0.0),
        // Scripts divide by it, so it is rounded up.
        "runtime": point.elapsed_ns().map_or(0, |ns| (ns / 1e6).ceil() as u64),
        "total_ios": point.latency_ns.n,
        "short_ios": 0,
        "drop_ios": 0,
    }));
    if let (Some(submit), Some(wait)) = (&point.submit_ns, &point.wait_ns) {
        moved.insert("slat_ns".into(), latency(submit, None));
        moved.insert("clat_ns".into(), latency(wait, None));
    }
    moved.insert("lat_ns".into(), latency(&point.latency_ns, bins.then_some(&point.histogram)));
    let interval = &point.throughput.interval;
    let kib = point.config.bs_bytes.unwrap_or(0) as f64 / 1024.0;
    let figures = [("min", interval.min), ("max", interval.max), ("mean", interval.mean), ("stddev", interval.stddev)];
    for (name, ops_per_s) in figures {
        // fio has them as numbers in any case; without windows nothing varied.
        let ops_per_s = ops_per_s.unwrap_or(0.0);
        let (bw, whole_number) = (ops_per_s * kib, ["min", "max"].contains(&name));
        let number = |value: f64| if whole_number { json!(whole(value)) } else { json!(value) };
        moved.insert(format!("bw_{}", if name == "stddev" { "dev" } else { name }), number(bw));
        moved.insert(format!("iops_{name}"), number(ops_per_s));
    }
    moved.into()
}

/// The other directions, in which nothing went.
fn nothing() -> Value {
    json!({
        "io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0, "short_ios": 0,
        "drop_ios": 0, "lat_ns": { "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 }, "bw_min": 0, "bw_max": 0,
        "bw_mean": 0.0, "bw_dev": 0.0, "iops_min": 0, "iops_max": 0, "iops_mean": 0.0, "iops_stddev": 0.0,
    })
}

/// A latency. One command alone has no deviation, for which fio writes 0.
fn latency(summary: &Summary, bins: Option<&Histogram>) -> Value {
    let ns = |value: Option<f64>| whole(value.unwrap_or(0.0));
    let mut latency = object(json!({
        "min": ns(summary.min), "max": ns(summary.max), "mean": summary.mean.unwrap_or(0.0),
        "stddev": summary.stddev.unwrap_or(0.0), "N": summary.n,
    }));
    let percentiles = serde_json::to_value(&summary.percentiles).unwrap_or_default();
    let known = percentiles.as_object().into_iter().flatten();
    let known = known.filter_map(|(name, value)| Some((name.parse::<f64>().ok()?, value.as_f64()?)));
    let mut known: Vec<(f64, f64)> = known.collect();
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    let known: Map<String, Value> =
        known.into_iter().map(|(percent, ns)| (format!("{percent:.6}"), json!(whole(ns)))).collect();
    if !known.is_empty() {
        latency.insert("percentile".into(), known.into());
    }
    if let Some(histogram) = bins {
        let mut counts = std::collections::BTreeMap::<u64, u64>::new();
        for bucket in &histogram.buckets {
            let count = counts.entry(bin(middle(bucket))).or_default();
            *count = count.saturating_add(bucket.count);
        }
        let counts: Map<String, Value> =
            counts.into_iter().map(|(value, count)| (value.to_string(), json!(count))).collect();
        latency.insert("bins".into(), counts.into());
    }
    latency.into()
}

/// The value of the bin that fio would count `ns` in: 64 bins for each power of two from 64 on, called by their middle.
/// Longer than fio's last bin, 17.18 s, is counted on where fio stops.
fn bin(ns: u64) -> u64 {
    let width_bits = ns.checked_ilog2().unwrap_or(0).saturating_sub(6);
    ((ns >> width_bits) << width_bits) + (1_u64 << width_bits) / 2
}

fn insert_depths(job: &mut Map<String, Value>, point: &StoredPoint) {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    // Every command is handed over by itself, and at depth one it is alone in all ways.
    let alone: Vec<Seen> = vec![(1, point.latency_ns.n)];
    let (outstanding, completed) = match &point.depth {
        None if point.config.qd > 1 => return,
        None => (alone.clone(), alone.clone()),
        Some(depth) => (
            depth.outstanding.iter().map(|class| (narrow(class.lower), class.commands)).collect(),
            depth.completed_batch.iter().map(|class| (narrow(class.size), class.looks)).collect(),
        ),
    };
    let of = |classes, seen: &[Seen]| -> Map<String, Value> {
        shares(classes, seen).into_iter().map(|(name, percent)| (name.into(), json!(percent))).collect()
    };
    job.insert("iodepth_level".into(), of(&DEPTHS, &outstanding).into());
    job.insert("iodepth_submit".into(), of(&BATCHES, &alone).into());
    job.insert("iodepth_complete".into(), of(&BATCHES, &completed).into());
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_of_fio() {
        // Each pair stands in a JSON+ of fio 3.33, or follows from its source's plat_idx_to_val.
        for (ns, value) in [(0, 0), (1, 1), (127, 127), (128, 129), (129, 129), (921, 924), (955, 956), (967, 964)] {
            assert_eq!(bin(ns), value, "{ns}");
        }
        for ns in [u64::MAX, 1 << 63, 17_179_869_184] {
            assert!(bin(ns).abs_diff(ns) <= ns / 64);
        }
    }
}
