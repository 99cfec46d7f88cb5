use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    engine::{Convention, Verb, rdma::wire::Issued},
    stats::Percentiles,
};

const READ: EngineKind = EngineKind::Rdma(Verb::Read);

fn who() -> Who {
    Who::new("10.0.0.2:50000".parse().unwrap(), Some("host-a"))
}

fn done() -> Done {
    let latencies: Vec<u64> = (1..=1000).map(|n| n * 100).collect();
    Done {
        issued: Issued { commands: 2001, verify: true },
        summary: Summary::of_sorted(&latencies, 1.0),
        partial: None,
        qd: Some(1),
        convention: Some(Convention::Completion),
        ops_per_s: Some(20_123.4),
        bytes_per_s: Some(160_987.2),
        ended_by: Some(EndedBy::Count),
    }
}

fn verdict() -> Verdict {
    Verdict { handled: None, verified: None, problem: None }
}

fn served(done: &Done) -> Served {
    Served::new(who(), READ, 8, done, &verdict())
}

#[test]
fn the_text_has_who_what_and_the_clients_own_table() {
    let text = served(&done()).text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "client 10.0.0.2:50000 (host-a): rdma-read, 1,000 commands");
    assert_eq!(lines[1], "  8 B, depth 1, until the completion was seen, 20,123/s, 161.0 kB/s, ended by count");
    assert!(lines[2].contains("p50") && lines[3].contains("50.00 µs") && lines.len() == 4, "{text}");
}

#[test]
fn the_verdict_and_a_partial_run_are_told() {
    let verdict = Verdict { handled: Some(34), verified: Some(true), problem: None };
    let text = Served::new(who(), READ, 8, &done(), &verdict).text();
    assert!(text.contains("rdma-read, 1,000 commands, 34 handled here, data verified\n"), "{text}");
    let wrong = Verdict { verified: Some(false), ..verdict };
    let partial = Done { partial: Some("interrupted".into()), ended_by: Some(EndedBy::Signal), ..done() };
    let text = Served::new(who(), READ, 8, &partial, &wrong).text();
    assert!(text.contains(", DATA WRONG — partial: interrupted\n") && text.contains("ended by a signal"), "{text}");
}

#[test]
fn a_client_has_a_line_of_json_that_the_schema_describes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results/schema/served-1.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let nothing = Done { qd: None, convention: None, ops_per_s: None, bytes_per_s: None, ended_by: None, ..done() };
    for done in [done(), nothing, Done { partial: Some("stalled".into()), summary: Summary::default(), ..done() }] {
        let line = served(&done).json();
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        let faults: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}: {line}");
    }
    let value: Value = serde_json::from_str(&served(&done()).json()).unwrap();
    assert_eq!(value["schema"], SERVED_SCHEMA);
    assert_eq!((&value["engine"], &value["bs_bytes"], &value["qd"]), (&json!("rdma-read"), &json!(8), &json!(1)));
    assert_eq!((&value["client"]["hostname"], &value["latency_ns"]["n"]), (&json!("host-a"), &json!(1000)));
    assert_eq!((&value["ended_by"], &value["convention"]), (&json!("count"), &json!("completion")));
}

#[test]
fn an_older_client_tells_less_and_a_later_one_more() {
    let older = json!({ "issued": { "commands": 5, "verify": true }, "summary": done().summary, "partial": null });
    let older: Done = serde_json::from_value(older).unwrap();
    let text = served(&older).text();
    assert!(text.contains("1,000 commands\n  8 B\n") && text.contains("p50"), "{text}");
    let mut later = serde_json::to_value(done()).unwrap();
    (later["ended_by"], later["convention"], later["colour"]) = (json!("boredom"), json!(7), json!("red"));
    let later: Done = serde_json::from_value(later).unwrap();
    assert_eq!((later.ended_by, later.convention, later.qd), (None, None, Some(1)));
}

#[test]
fn figures_that_no_run_can_have_are_not_shown() {
    let fine = done().summary;
    let with = |change: fn(&mut Summary)| {
        let mut summary = fine.clone();
        change(&mut summary);
        summary
    };
    for summary in [
        with(|it| it.n = u64::MAX),
        with(|it| it.min = Some(-1.0)),
        with(|it| it.max = Some(1e308)),
        with(|it| it.mean = Some(f64::NAN)),
        with(|it| it.stddev = Some(f64::INFINITY)),
        with(|it| it.percentiles.p50 = Some(1e9)),
        with(|it| it.min = Some(1e9)),
    ] {
        let served = served(&Done { summary, ..done() });
        assert_eq!(served.latency_ns, None);
        let text = served.text();
        assert!(text.contains("unknown commands") && text.contains("cannot be those of a run"), "{text}");
    }
    let rates = Done { ops_per_s: Some(1e308), bytes_per_s: Some(-1.0), ..done() };
    assert!(!served(&rates).text().contains("/s"));
    assert!(believable(&fine) && believable(&Summary::default()));
}

#[test]
fn a_clients_text_cannot_steer_the_terminal() {
    let who = Who::new("[::1]:1".parse().unwrap(), Some(&"\x1b[2J\nclient".repeat(1000)));
    assert!(!who.name().contains(char::is_control) && who.name().len() < 120, "{}", who.name());
    let partial = Done { partial: Some("no\n\x1b[2Jmore".into()), ..done() };
    let text = served(&partial).text();
    assert!(text.contains("partial: no\\n\\u{1b}[2Jmore\n"), "{text}");
    assert_eq!(Who::new("[::1]:1".parse().unwrap(), None).name(), "client [::1]:1 (unknown host)");
}

proptest! {
    #[test]
    fn no_figures_panic(n: u64, min: f64, max: f64, mean: f64, p50: f64, ops: f64, bytes: f64, qd: u32, bs: u64) {
        let percentiles = Percentiles { p50: Some(p50), ..Percentiles::default() };
        let summary = Summary { n, min: Some(min), max: Some(max), mean: Some(mean), stddev: Some(p50), percentiles };
        let done = Done { summary, qd: Some(qd), ops_per_s: Some(ops), bytes_per_s: Some(bytes), ..done() };
        let served = Served::new(who(), READ, bs, &done, &verdict());
        prop_assert!(served.text().len() < 1000);
        prop_assert!(serde_json::from_str::<Value>(&served.json()).is_ok());
    }
}
