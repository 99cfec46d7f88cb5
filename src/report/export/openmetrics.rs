//! Text for the textfile collector of Prometheus' node_exporter, in base units: seconds, bytes.
//!
//! It is OpenMetrics, and also the older text format, which that collector reads: what the two have in common, with `# EOF`, a
//! comment in the older one. A point is told from others by its labels; latencies are a summary with quantiles.

use std::fmt::Write;

use super::seconds;
use crate::{
    report::stored::{Stored, StoredPoint},
    stats::{Percentiles, Summary},
};

/// Labels, and a value.
type Sample = (String, f64);

pub(super) fn text(stored: &Stored) -> String {
    let mut text = String::new();
    let labels: Vec<String> = (1..).zip(&stored.points).map(|(number, point)| labels(stored, point, number)).collect();
    let of_points = |value: fn(&StoredPoint) -> Option<f64>| -> Vec<Sample> {
        let points = stored.points.iter().zip(&labels);
        points.filter_map(|(point, labels)| Some((labels.clone(), value(point)?))).collect()
    };
    let summaries: Vec<(&str, &Summary)> =
        stored.points.iter().zip(&labels).map(|(point, labels)| (labels.as_str(), &point.latency_ns)).collect();
    write_summary(&mut text, "lat_probe_latency_seconds", "Latency of a command.", &summaries);
    let host = label("hostname", stored.host.hostname.as_deref().unwrap_or(""));
    let floor = [(host.as_str(), &stored.instrument.floor_ns)];
    write_summary(&mut text, "lat_probe_floor_seconds", "Latency of no command at all, by the same loop.", &floor);
    let gauges: [(&str, &str, Vec<Sample>); 6] = [
        ("lat_probe_latency_min_seconds", "The shortest latency.", of_points(|p| p.latency_ns.min.map(ns))),
        ("lat_probe_latency_max_seconds", "The longest latency.", of_points(|p| p.latency_ns.max.map(ns))),
        ("lat_probe_commands_per_second", "Commands per second.", of_points(|p| p.throughput.ops_per_s)),
        ("lat_probe_bytes_per_second", "Payload bytes per second.", of_points(|p| p.throughput.bytes_per_s)),
        (
            "lat_probe_partial",
            "1 if the run did not end as asked.",
            of_points(|p| Some(f64::from(u8::from(p.partial)))),
        ),
        (
            "lat_probe_started_at_seconds",
            "When the run began, in seconds since 1970.",
            vec![(host.clone(), seconds(&stored.started_at).as_secs_f64())],
        ),
    ];
    for (name, help, samples) in gauges {
        if samples.is_empty() {
            continue;
        }
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    }
    text.push_str("# EOF\n");
    text
}

fn ns(value: f64) -> f64 {
    value / 1e9
}

/// Quantiles that the samples support, their sum and number.
fn write_summary(text: &mut String, name: &str, help: &str, of: &[(&str, &Summary)]) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} summary");
    for (labels, summary) in of {
        let Percentiles { p50, p90, p99, p99_9, p99_99, .. } = summary.percentiles;
        let quantiles = [("0.5", p50), ("0.9", p90), ("0.99", p99), ("0.999", p99_9), ("0.9999", p99_99)];
        for (quantile, value) in quantiles.into_iter().filter_map(|(quantile, value)| Some((quantile, value?))) {
            let _ = writeln!(text, "{name}{{{labels},quantile=\"{quantile}\"}} {}", ns(value));
        }
        let sum = summary.mean.map_or(0.0, |mean| ns(mean * summary.n as f64));
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {}", summary.n);
    }
}

fn labels(stored: &Stored, point: &StoredPoint, number: u64) -> String {
    let config = &point.config;
    let mut labels = vec![
        label("point", &number.to_string()),
        label("engine", &config.engine),
        label("qd", &config.qd.to_string()),
        label("jobs", &config.jobs.to_string()),
    ];
    labels.extend(config.bs_bytes.map(|bytes| label("bs_bytes", &bytes.to_string())));
    labels.extend(config.rw.as_deref().map(|rw| label("rw", rw)));
    labels.extend(point.target().map(|target| label("target", target)));
    labels.extend(stored.label.as_deref().map(|name| label("label", name)));
    labels.join(",")
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}
