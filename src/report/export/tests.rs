use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::report::read;

const TEXTS: [Export; 6] = [
    Export::Hgrm,
    Export::Hlog,
    Export::FioJson { bins: false },
    Export::FioJson { bins: true },
    Export::OpenMetrics,
    Export::Perftest,
];

fn example() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema/examples/rdma-read.json");
    read::parse(&path, "example").unwrap()
}

fn source(document: Value) -> Source<'static> {
    Source { path: Path::new("a.json"), stored: Stored::of("a.json", document).unwrap() }
}

fn text(export: Export, document: Value) -> String {
    export.text(&source(document)).unwrap()
}

/// The example with other figures.
fn with(place: &str, value: Value) -> Value {
    let mut document = example();
    *document.pointer_mut(place).unwrap() = value;
    document
}

#[test]
fn the_percentile_text_ends_at_all_samples_and_never_goes_back() {
    let document = example();
    let n = document["points"][0]["latency_ns"]["n"].as_u64().unwrap();
    let text = text(Export::Hgrm, document);
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(2)
        .take_while(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let last = rows.last().unwrap();
    assert_eq!((last[1], last[2], last.len()), (1.0, n as f64, 3), "{text}");
    assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][2] <= pair[1][2]));
    assert!(text.contains("#[Max     = ") && text.contains(&format!("Total count    = {n:>12}]")), "{text}");
}

#[test]
fn the_bins_of_fio_have_every_sample() {
    let document: Value = serde_json::from_str(&text(Export::FioJson { bins: true }, example())).unwrap();
    let read = &document["jobs"][0]["read"];
    let bins = read["lat_ns"]["bins"].as_object().unwrap();
    assert_eq!(bins.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), read["lat_ns"]["N"].as_u64().unwrap());
    assert_eq!((&read["clat_ns"], &document["jobs"][0]["write"]["total_ios"]), (&Value::Null, &json!(0)));
    let plain: Value = serde_json::from_str(&text(Export::FioJson { bins: false }, example())).unwrap();
    assert_eq!(plain["jobs"][0]["read"]["lat_ns"]["bins"], Value::Null);
}

#[test]
fn labels_cannot_break_out_of_their_quotes() {
    let text = text(Export::OpenMetrics, with("/label", json!("a\"b\\c\nd")));
    assert!(text.contains(r#"label="a\"b\\c\nd""#), "{text}");
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn a_time_is_counted_from_1970() {
    for (text, at) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T23:59:59Z", 951_868_799),
        ("2026-12-01T12:00:00.25Z", 1_796_126_400),
        ("yesterday", 0),
        ("2026-13-01T00:00:00Z", 0),
    ] {
        assert_eq!(seconds(text).as_secs(), at, "{text}");
    }
}

#[test]
fn a_result_of_several_points_is_exported_by_point_where_the_format_has_one() {
    let mut document = example();
    let point = document["points"][0].clone();
    document["points"].as_array_mut().unwrap().push(point);
    let refused = Export::Hgrm.text(&source(document.clone())).unwrap_err().to_string();
    assert!(refused.contains("a.json has 2 points") && refused.contains("--point N"), "{refused}");
    let mut chosen = source(document.clone());
    chosen.choose(2).unwrap();
    assert!(Export::Hgrm.text(&chosen).is_ok());
    for number in [0, 3, u64::MAX] {
        let error = source(document.clone()).choose(number).unwrap_err().to_string();
        assert!(error.contains("a.json has points 1 to 2"), "{error}");
    }
    assert_eq!(text(Export::Perftest, document).lines().count(), 3);
}

#[test]
fn no_samples_at_all_and_undefined_figures_are_no_numbers() {
    let mut document = example();
    let summary = json!({ "n": 0, "min": null, "max": null, "mean": null, "stddev": null, "percentiles": {} });
    document["points"][0]["latency_ns"] = summary;
    document["points"][0]["histogram"] = json!({ "buckets": [] });
    document["points"][0]["throughput"]["ops_per_s"] = Value::Null;
    for export in TEXTS {
        let text = text(export, document.clone());
        assert!(!text.is_empty());
    }
    assert!(text(Export::Perftest, document.clone()).contains(" 0              -  "));
    let metrics = text(Export::OpenMetrics, document);
    assert!(!metrics.contains("lat_probe_latency_seconds{") && metrics.contains("lat_probe_latency_seconds_count{"));
}

#[test]
fn what_is_no_result_is_named() {
    let error = |document: Value| Stored::of("a.json", document).unwrap_err().to_string();
    assert!(error(json!({})).contains("a.json: it has no `schema`"));
    assert!(error(json!({ "schema": "lat-probe.result/2" })).contains("this version reads lat-probe.result/1"));
    assert!(error(with("/points", json!([]))).contains("a.json: `points` is empty"));
    assert!(error(with("/points/0/latency_ns", json!("x"))).contains("a.json: "));
}

/// Every place of a document that holds something.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.into());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Array(items) => {
            items.iter().take(2).enumerate().for_each(|(index, value)| places(value, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_document_makes_an_export_panic(at: prop::sample::Index, which in 0..7_usize) {
        let values = [json!(null), json!(-1), json!(0), json!(u64::MAX), json!(1e300), json!("x"), json!([[0, 0, u64::MAX]])];
        let mut document = example();
        let mut found = Vec::new();
        places(&document, "", &mut found);
        *document.pointer_mut(at.get(found.as_slice()).as_str()).unwrap() = values[which].clone();
        if let Ok(stored) = Stored::of("a.json", document) {
            let source = Source { path: Path::new("a.json"), stored };
            for export in TEXTS {
                let _ = export.text(&source);
            }
        }
    }
}
