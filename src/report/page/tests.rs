use std::path::Path;

use serde_json::Value;

use super::*;
use crate::report::read;

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
