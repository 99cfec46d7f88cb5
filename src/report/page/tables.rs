//! The tables of a page, which say in words and figures all that its charts show.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use super::{Page, Shown, charts};
use crate::{
    report::{stored::StoredPoint, warning::Warning},
    stats::Summary,
    units::{format_count, format_ns, format_size},
};

/// Points whose charts are drawn at first: lines of more of them cannot be told apart.
const DRAWN: usize = 4;

/// A figure of a summary, by its name.
type Column = (&'static str, fn(&Summary) -> Option<f64>);

const COLUMNS: [Column; 9] = [
    ("min", |summary| summary.min),
    ("p50", |summary| summary.percentiles.p50),
    ("p90", |summary| summary.percentiles.p90),
    ("p99", |summary| summary.percentiles.p99),
    ("p99.9", |summary| summary.percentiles.p99_9),
    ("p99.99", |summary| summary.percentiles.p99_99),
    ("max", |summary| summary.max),
    ("mean", |summary| summary.mean),
    ("stddev", |summary| summary.stddev),
];

/// What a result is called: its label, or its file.
pub(super) fn name(shown: &Shown) -> &str {
    shown.stored.label.as_deref().unwrap_or(&shown.origin)
}

/// What was measured, in a line.
pub(super) fn point_name(shown: &Shown, point: &StoredPoint) -> String {
    let config = &point.config;
    let mut parts = vec![config.engine.clone()];
    parts.extend(config.block["command"].as_str().map(String::from).or_else(|| config.rw.clone()));
    parts.extend(config.bs_bytes.map(format_size));
    parts.push(format!("depth {}", config.qd));
    if config.jobs > 1 {
        parts.push(format!("{} jobs", config.jobs));
    }
    parts.extend(point.target().map(String::from));
    format!("{}: {}", name(shown), parts.join(", "))
}

/// Figures of all points, their distributions, and doubts.
pub(super) fn summary(page: &Page) -> Markup {
    html! {
        (warnings(page))
        div.wide {
            table {
                caption { "Latency of a command. Nothing is subtracted; the floor is what the instrument shows for no command." }
                thead { tr {
                    th scope="col" { "Chart" } th scope="col" { "Point" } th.number scope="col" { "n" }
                    @for (name, _) in COLUMNS { th.number scope="col" { (name) } }
                    th.number scope="col" { "floor p50" } th.number scope="col" { "1/s" }
                } }
                tbody {
                    @for (index, (shown, point, _)) in page.points().enumerate() {
                        (row(index, shown, point))
                    }
                }
            }
        }
        (chart("curve", "Latency by percentile", &[("log", "Logarithmic latency", true)]))
        (chart("histogram", "Histogram: commands by latency", &[("log", "Logarithmic number", true)]))
    }
}

fn row(index: usize, shown: &Shown, point: &StoredPoint) -> Markup {
    let name = point_name(shown, point);
    let ended = point.ended_because.as_deref().unwrap_or("it was stopped");
    let phases = [("submit", &point.submit_ns), ("wait", &point.wait_ns), ("response", &point.response_ns)];
    html! {
        tr data-point=(index) {
            td { input type="checkbox" name="point" value=(index) aria-label={ "Draw " (name) } checked[index < DRAWN]; }
            th scope="row" {
                (name)
                @if point.partial { p.bad { "Partial: " (ended) } }
            }
            td.number { (format_count(point.latency_ns.n)) }
            (figures(&point.latency_ns))
            td.number { (time(shown.stored.instrument.floor_ns.percentiles.p50)) }
            td.number { (point.throughput.ops_per_s.map_or("–".into(), |rate| format_count(rate.round() as u64))) }
        }
        @for (name, summary) in phases {
            @if let Some(summary) = summary {
                tr.phase {
                    td {} th scope="row" { (name) } td.number { (format_count(summary.n)) }
                    (figures(summary))
                    td {} td {}
                }
            }
        }
        @if !point.errors.is_empty() {
            @let errors: Vec<_> = point.errors.iter().map(|(name, count)| format!("{name} {count}")).collect();
            tr.phase { td {} td.bad colspan="13" { "Errors: " (errors.join(", ")) } }
        }
    }
}

fn figures(summary: &Summary) -> Markup {
    html! { @for (_, of) in COLUMNS { td.number { (time(of(summary))) } } }
}

/// A time, with the exact nanoseconds for those who look closer.
pub(super) fn time(ns: Option<f64>) -> Markup {
    html! {
        @match ns {
            Some(ns) => span title={ (ns) " ns" } { (format_ns(ns)) },
            None => "–",
        }
    }
}

/// Doubts in words, each once, with the results that have it.
fn warnings(page: &Page) -> Markup {
    let mut of: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for shown in &page.results {
        for Warning { code, message } in &shown.stored.warnings {
            of.entry((message, code)).or_default().push(name(shown));
        }
    }
    html! {
        @if !of.is_empty() || !page.notes.is_empty() {
            div.warnings {
                h3 { "Doubts" }
                ul {
                    @for note in &page.notes { li { (note) } }
                    @for ((message, code), names) in of {
                        li {
                            (message) " " code { (code) }
                            @if page.results.len() > 1 { " (" (names.join(", ")) ")" }
                        }
                    }
                }
            }
        }
    }
}

/// A place for a chart, with its switches and, for those who have no mouse, its buttons.
pub(super) fn chart(id: &str, title: &str, switches: &[(&str, &str, bool)]) -> Markup {
    html! {
        figure.chart data-chart=(id) hidden {
            figcaption { (title) }
            div.controls {
                @for (name, text, on) in switches {
                    label { input type="checkbox" data-switch=(name) checked[*on]; " " (text) }
                }
                button type="button" data-zoom="in" { "Zoom in" }
                button type="button" data-zoom="out" { "Zoom out" }
                @if id == "histogram" { button type="button" data-zoom="body" { "Up to p99" } }
                button type="button" data-zoom="reset" { "All" }
                output aria-live="polite" {}
            }
            div.plot tabindex="0" role="img" aria-label={ (title) ". Arrow keys move, + and − zoom, 0 shows all." } {}
        }
    }
}

/// A point over its time, and its slowest commands.
pub(super) fn timeline(page: &Page) -> Markup {
    let all = page.points().count();
    html! {
        p.controls hidden {
            label { "Point " select #over-time {
                @for (index, (shown, point, _)) in page.points().enumerate() {
                    option value=(index) { (point_name(shown, point)) }
                }
            } }
        }
        (chart("timeline", "Latency over time", &[("log", "Logarithmic latency", true)]))
        @for (index, (shown, point, timeline)) in page.points().enumerate() {
            div.of-point data-point=(index) {
                h3 { (point_name(shown, point)) }
                p { "Shown are " (charts::basis(timeline, all)) "." }
                @if !point.outliers.is_empty() { (slowest(point)) }
            }
        }
    }
}

fn slowest(point: &StoredPoint) -> Markup {
    html! { div.wide {
        table {
            caption { "The slowest commands, and what may have caused them" }
            thead { tr { th.number scope="col" { "began at" } th.number scope="col" { "took" } th scope="col" { "cause" } } }
            tbody {
                @for outlier in &point.outliers {
                    tr {
                        td.number { (time(Some(outlier.at_ns))) }
                        td.number { (time(Some(outlier.latency_ns))) }
                        td { (outlier.cause.as_deref().unwrap_or("nothing that was counted")) }
                    }
                }
            }
        }
    } }
}

/// What the figures rest on: the instrument, the machine, and what was granted.
pub(super) fn instrument(page: &Page) -> Markup {
    html! {
        @for shown in &page.results {
            h3 { (name(shown)) }
            p { (shown.origin) ", begun " (shown.stored.started_at) ", lat-probe " (shown.stored.tool.version) }
            div.wide {
                table {
                    caption { "Floor: the same loop with no command" }
                    thead { tr { th.number scope="col" { "n" } @for (name, _) in COLUMNS { th.number scope="col" { (name) } } } }
                    tbody { tr {
                        td.number { (format_count(shown.stored.instrument.floor_ns.n)) }
                        (figures(&shown.stored.instrument.floor_ns))
                    } }
                }
            }
            @let noise = &shown.stored.instrument.noise;
            p {
                "Noise: " (format_count(noise.gaps_over_1us)) " gaps over 1 µs in " (format_ns(noise.window_ns)) ", largest "
                (format_ns(noise.max_gap_ns)) ", " (format!("{:.3}", 100.0 * noise.stolen_fraction)) " % of the time stolen"
            }
            @for (title, key) in [("Clock", "clock"), ("Machine", "host"), ("Quiet", "quiet"), ("Far end", "peer")] {
                (facts(title, &shown.document[key], key != "host"))
            }
            @for (index, point) in shown.stored.points.iter().enumerate() {
                @let document = &shown.document["points"][index];
                h4 { (point_name(shown, point)) }
                (facts("Asked for", &document["config"], false))
                (facts("Granted", &document["granted"], true))
                (facts("Load on the processor", &document["cpu"], false))
            }
        }
    }
}

/// What a part of the document says, by its keys; what is null is left out.
fn facts(title: &str, value: &Value, open: bool) -> Markup {
    let mut rows = Vec::new();
    flatten(String::new(), value, &mut rows);
    html! {
        @if !rows.is_empty() {
            details open[open] {
                summary { (title) }
                table.facts { tbody { @for (key, value) in rows { tr { th scope="row" { (key) } td { (value) } } } } }
            }
        }
    }
}

fn flatten(key: String, value: &Value, rows: &mut Vec<(String, String)>) {
    let inner = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    match value {
        Value::Null => {}
        Value::Object(map) => map.iter().for_each(|(name, value)| flatten(inner(name), value, rows)),
        Value::String(text) => rows.push((key, text.clone())),
        Value::Number(number) if number.is_f64() => {
            rows.push((key, number.as_f64().map_or_else(String::new, six_digits)))
        }
        other => rows.push((key, other.to_string())),
    }
}

/// A fraction to six digits: more of them are no facts.
fn six_digits(number: f64) -> String {
    let exponent = if number == 0.0 { 0.0 } else { number.abs().log10().floor() };
    let places = (5.0 - exponent).clamp(0.0, 15.0) as usize;
    let text = format!("{number:.places$}");
    if places == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').into() }
}
