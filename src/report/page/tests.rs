use std::path::Path;

use serde_json::Value;

use super::*;
use crate::{error::Result, report::read};

fn shown(change: impl FnOnce(&mut Value)) -> Shown {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema/examples/rdma-read.json");
    let mut document = read::parse(&path, "example").unwrap();
    change(&mut document);
    let stored = Stored::of("example", document.clone()).unwrap();
    let timelines = stored.points.iter().map(|_| Timeline::Windows).collect();
    Shown { origin: "example".into(), document, stored, timelines }
}

#[test]
fn the_page_has_the_figures_and_the_doubts_and_loads_nothing() {
    let text = Page { results: vec![shown(|_| {})], ..Page::default() }.render();
    for expected in
        ["43.39 µs", "376.0 µs", "clock-monotonic", "rdma-read, 8 B, depth 1, rxe0", "run-queue-wait", "RoCE v2"]
    {
        assert!(text.contains(expected), "{expected}");
    }
    assert!(text.contains("default-src &#39;none&#39;") || text.contains("default-src 'none'"), "no policy");
    assert!(!text.contains("src=\"") && !text.contains("href=\"") && !text.contains("@import"));
}

#[test]
fn what_others_named_is_text_only() {
    let label = "</script><script>alert(1)</script><b>";
    let text = Page { results: vec![shown(|document| document["label"] = label.into())], ..Page::default() }.render();
    assert!(!text.contains("<script>alert") && !text.contains("<b>"));
    let data = text.split_once("type=\"application/json\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    assert!(data["points"][0]["name"].as_str().unwrap().starts_with(label));
}

#[test]
fn places_are_shared_by_all_points() {
    assert_eq!((places(0), places(1), places(60), places(100_000)), (10_000, 10_000, 1000, 50));
}

fn comparison(change: impl FnOnce(&mut Value)) -> Result<Comparison> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema/golden/comparison-1/comparison.json");
    let mut document = read::parse(&path, "golden").unwrap();
    change(&mut document);
    Comparison::of("golden", document)
}

#[test]
fn a_comparison_has_its_verdict_limits_costs_and_doubts() {
    let against = |document: &mut Value| {
        let figure = &mut document["points"][0]["sides"][1]["figures"][0];
        figure["against_first"].as_object_mut().unwrap().remove("unresolvable_ns").unwrap();
        document["points"][0]["sides"][1]["figures"][0]["against_first"]["least_visible_ns"] = 4_321.0.into();
        document["gates"] = json!([
            { "point": "p", "side": "b", "figure": "p99", "limit_ns": 20_000.0, "value_ns": 25_000.0, "passed": false }
        ]);
        let shift = json!({ "shift_ns": 500.0, "low_ns": 400.0, "high_ns": 600.0, "least_visible_ns": 140.0 });
        document["costs"] = json!([{
            "side": "b", "engine": "sg", "operation": null, "qd": 1, "jobs": 1, "figure": "p50", "sizes": [512, 1024, 2048],
            "per_command": shift, "per_byte": shift
        }]);
    };
    let comparison = comparison(against).unwrap();
    let text = Page { comparisons: vec![ShownComparison { origin: "c.json".into(), comparison }], ..Page::default() };
    let text = text.render();
    for expected in [
        "class=\"bad\">Limit FAILED: b p99 is 25.00 µs, limit 20.00 µs (p)",
        "Cost: b p50, sg over 3 sizes: +500.0 ns (+400.0 ns to +600.0 ns) a command",
        "4321 ns",
        "do not count",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
}

#[test]
fn a_key_of_another_type_is_named() {
    let error = comparison(|document| document["points"][0]["qd"] = "one".into()).unwrap_err().to_string();
    assert!(error.contains("golden") && error.contains("expected u64"), "{error}");
    let error = comparison(|document| document["schema"] = "lat-probe.comparison/2".into()).unwrap_err().to_string();
    assert!(error.contains("this version reads lat-probe.comparison/1"), "{error}");
}
