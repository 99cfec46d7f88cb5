//! Every RDMA engine for real on rdma_rxe, both ends in one process. Run in the lab: `scripts/test`, or
//! `scripts/lab -- TEST-BINARY --test-threads=1`.

mod lab;

use lab::{ENGINES, is_atomic, measure, point, refused, warns};

/// Measures one engine at every size it has, one point each, with more options.
fn at_every_size(engine: &str, options: &str) {
    let sizes = if is_atomic(engine) { "8" } else { "1,8,64,4096,65536,1M" };
    let result = measure(&format!("--engine {engine} --bs {sizes} --count 30 --warmup 3 {options}"));
    assert!(warns(&result, "software-rdma"), "{engine} {options}");
    let bytes: Vec<_> =
        result["points"].as_array().unwrap().iter().map(|p| p["config"]["bs_bytes"].to_string()).collect();
    assert_eq!(bytes.join(","), sizes.replace("1M", "1048576"), "{engine} {options}");
}

#[test]
fn every_engine_measures_every_size_polled() {
    if lab::in_lab(1) {
        ENGINES.iter().for_each(|engine| at_every_size(engine, ""));
    }
}

#[test]
fn every_engine_with_events_measures_every_size_asleep() {
    if lab::in_lab(1) {
        let sleepers = ENGINES.iter().filter(|engine| **engine != "rdma-write-pingpong");
        sleepers.for_each(|engine| at_every_size(engine, "--completion event"));
    }
}

#[test]
fn the_completion_mode_is_granted_as_asked() {
    if !lab::in_lab(1) {
        return;
    }
    for mode in ["poll", "event"] {
        let result = measure(&format!("--engine rdma-read --count 20 --warmup 2 --completion {mode}"));
        let granted = &point(&result)["granted"];
        assert_eq!((&granted["rdma"]["completion"], &granted["remote"]["completion"]), (&mode.into(), &mode.into()));
    }
}

#[test]
fn small_payloads_go_inline_unless_told_otherwise() {
    if !lab::in_lab(1) {
        return;
    }
    for engine in ["rdma-write", "rdma-send", "rdma-write-pingpong", "rdma-send-pingpong"] {
        let inline = |options: &str| {
            let result = measure(&format!("--engine {engine} --count 20 --warmup 2 {options}"));
            point(&result)["granted"]["rdma"]["inline"].as_bool().unwrap()
        };
        assert!(inline("--bs 64"), "{engine}");
        assert!(!inline("--bs 64 --inline 0"), "{engine}");
        assert!(inline("--bs 128 --inline 128"), "{engine}");
        assert!(!inline("--bs 4096 --inline 128"), "{engine}");
    }
    let read = measure("--engine rdma-read --count 20 --warmup 2");
    assert_eq!(point(&read)["granted"]["rdma"]["inline"], false);
}

#[test]
fn a_message_may_be_empty_where_the_verb_allows_it() {
    if lab::in_lab(1) {
        for engine in ["rdma-read", "rdma-write", "rdma-send", "rdma-send-pingpong"] {
            measure(&format!("--engine {engine} --bs 0 --count 20 --warmup 2"));
        }
    }
}

#[test]
fn rdma_cm_connects_every_engine() {
    if !lab::in_lab(1) {
        return;
    }
    for engine in ENGINES {
        let result = measure(&format!("--engine {engine} --cm --count 20 --warmup 2"));
        for end in ["rdma", "remote"] {
            assert_eq!(point(&result)["granted"][end]["connected_by"], "rdma_cm", "{engine}");
        }
    }
    measure("--engine rdma-send --cm --completion event --bs 4096 --count 20 --warmup 2");
}

#[test]
fn unreliable_transports_carry_the_verbs_they_have() {
    if !lab::in_lab(1) {
        return;
    }
    for engine in ["rdma-write", "rdma-send", "rdma-write-pingpong", "rdma-send-pingpong"] {
        let result = measure(&format!("--engine {engine} --transport UC --bs 64,4096 --count 20 --warmup 2"));
        assert_eq!(point(&result)["granted"]["rdma"]["transport"], "UC", "{engine}");
    }
    for engine in ["rdma-send", "rdma-send-pingpong"] {
        let result = measure(&format!("--engine {engine} --transport ud --bs 64,4096 --count 20 --warmup 2"));
        assert_eq!(point(&result)["granted"]["rdma"]["transport"], "UD", "{engine}");
    }
    let (code, message) = refused("--engine rdma-send --transport UD --bs 4097");
    assert!(code == 2 && message.contains("4097") && message.contains("4096"), "{message}");
}

#[test]
fn half_a_round_trip_is_half_of_a_round_trip() {
    if !lab::in_lab(1) {
        return;
    }
    for engine in ["rdma-write-pingpong", "rdma-send-pingpong"] {
        let half = measure(&format!("--engine {engine} --half-rtt --count 50 --warmup 5"));
        assert_eq!(point(&half)["convention"], "half-round-trip");
        // At depth one a period is at least a round trip: the samples that were halved fit into it twice.
        let (p50, period) =
            (&point(&half)["latency_ns"]["percentiles"]["50"], &point(&half)["throughput"]["period_ns"]);
        assert!(2.0 * p50.as_f64().unwrap() <= 1.2 * period.as_f64().unwrap(), "{engine}: {p50} {period}");
        let full = measure(&format!("--engine {engine} --count 20 --warmup 2"));
        assert_eq!(point(&full)["convention"], "round-trip");
    }
    assert_eq!(refused("--engine rdma-read --half-rtt").0, 2);
}

#[test]
fn phases_split_the_latency_into_submit_and_wait() {
    if !lab::in_lab(1) {
        return;
    }
    for engine in ["rdma-read", "rdma-send"] {
        let result = measure(&format!("--engine {engine} --phases --count 50 --warmup 5"));
        let mean = |key: &str| point(&result)[key]["mean"].as_f64().unwrap();
        let difference = mean("submit_ns") + mean("wait_ns") - mean("latency_ns");
        assert!(difference.abs() < 1.0, "{engine}: {difference}");
        assert!(mean("submit_ns") > 0.0 && mean("wait_ns") > 0.0);
    }
}

#[test]
fn path_options_are_granted_as_asked() {
    if !lab::in_lab(1) {
        return;
    }
    let options = "--mtu 1024 --read-depth 4 --sl 3 --traffic-class 104 --qp-timeout 16 --retry 5 --rnr-retry 6";
    let result = measure(&format!("--engine rdma-read --bs 4096 --count 20 --warmup 2 --device rxe0:1 {options}"));
    let granted = &point(&result)["granted"]["rdma"];
    for (key, value) in [("mtu_bytes", 1024), ("read_depth", 4), ("service_level", 3), ("traffic_class", 104)] {
        assert_eq!(granted[key], value, "{key}");
    }
    for index in [0, 1] {
        let result = measure(&format!("--engine rdma-write --count 20 --warmup 2 --gid-index {index}"));
        assert_eq!(point(&result)["granted"]["rdma"]["gid_index"], index);
    }
}

#[test]
fn a_time_limit_ends_the_run() {
    if !lab::in_lab(1) {
        return;
    }
    let result = measure("--engine rdma-write --duration 500ms --warmup 10");
    assert_eq!(point(&result)["ended_by"], "duration");
    assert!(point(&result)["latency_ns"]["n"].as_u64().unwrap() > 10);
}

#[test]
fn a_forced_counter_is_marked_and_the_fallback_says_what_it_costs() {
    if !lab::in_lab(1) {
        return;
    }
    let forced = measure("--engine rdma-read --clock tsc --count 20 --warmup 2");
    assert_eq!(forced["clock"]["source"], "tsc");
    if forced["clock"]["forced"] == true {
        assert!(warns(&forced, "clock-forced"));
        let fallback = measure("--engine rdma-read --count 20 --warmup 2");
        assert_eq!(fallback["clock"]["source"], "monotonic");
        assert!(warns(&fallback, "clock-monotonic"));
    }
}

#[test]
fn pinning_is_reported_and_the_responder_has_a_processor_of_its_own() {
    if !lab::in_lab(1) {
        return;
    }
    let result = measure("--engine rdma-send-pingpong --cpu 0 --peer-cpu 1 --count 20 --warmup 2");
    let config = &point(&result)["config"];
    assert_eq!((&config["cpus"][0], &config["peer_cpu"]), (&0.into(), &1.into()));
    assert!(!warns(&result, "cpu-shared"));
    let shared = measure("--engine rdma-send-pingpong --cpu 0 --peer-cpu 0 --count 20 --warmup 2");
    assert!(warns(&shared, "cpu-shared"));
}
