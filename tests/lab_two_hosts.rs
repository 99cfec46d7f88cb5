//! Two hosts with a cable between them: `serve` on one, every engine on the other. Run in the lab: `scripts/test`, or
//! `LAB_SERVE=tests/lab/two_hosts_serve.sh scripts/lab --hosts 2 -- TEST-BINARY --test-threads=1`.

mod lab;

use lab::{
    ENGINES, Undo, is_atomic, measure,
    perftest::{self, P50},
    point, shell, warns,
};
use serde_json::json;

/// The other host, as the lab names it.
fn peer() -> String {
    std::env::var("LAB_PEER").expect("the lab names the other host")
}

#[test]
fn every_engine_measures_the_other_host() {
    if !lab::in_lab(2) {
        return;
    }
    for engine in ENGINES {
        let sizes = if is_atomic(engine) { "8" } else { "8,4096,65536,1M" };
        let result = measure(&format!("--engine {engine} --bs {sizes} --count 20 --warmup 3 --peer {}", peer()));
        let granted = &point(&result)["granted"];
        assert_ne!(granted["rdma"]["gid"], granted["remote"]["gid"], "{engine}");
        assert_ne!(result["peer"]["hostname"], result["host"]["hostname"], "{engine}");
        assert!(result["peer"]["address"].as_str().unwrap().starts_with(&peer()), "{engine}");
    }
}

#[test]
fn events_and_rdma_cm_work_across_the_cable() {
    if !lab::in_lab(2) {
        return;
    }
    for engine in ["rdma-read", "rdma-send", "rdma-send-pingpong"] {
        for options in ["--completion event", "--cm"] {
            measure(&format!("--engine {engine} {options} --count 30 --warmup 3 --peer {}", peer()));
        }
    }
    measure("--engine rdma-write --cm --count 30 --warmup 3 --peer [fd00:6c61:7470::1]");
}

#[test]
fn unreliable_transports_cross_the_cable() {
    if !lab::in_lab(2) {
        return;
    }
    measure(&format!("--engine rdma-write --transport UC --count 30 --warmup 3 --peer {}", peer()));
    measure(&format!("--engine rdma-send --transport UD --count 30 --warmup 3 --peer {}", peer()));
}

/// Each engine, the tool of perftest that moves the same packets, its port, and how many of its figures make a round trip.
const RIVALS: [(&str, &str, u16, f64); 7] = [
    ("rdma-read", "ib_read_lat", 18601, 1.0),
    ("rdma-write", "ib_write_lat", 18602, 2.0),
    ("rdma-send", "ib_send_lat", 18603, 2.0),
    ("rdma-cas", "ib_atomic_lat", 18604, 1.0),
    ("rdma-faa", "ib_atomic_lat", 18604, 1.0),
    ("rdma-write-pingpong", "ib_write_lat", 18602, 2.0),
    ("rdma-send-pingpong", "ib_send_lat", 18603, 2.0),
];
const ROUNDS: usize = 3;
const COUNT: usize = 40;

/// Has what this host sends delayed, lost or both until it is dropped.
fn netem(how: &str) -> Undo {
    assert!(shell("modprobe sch_netem").status.success());
    Undo::after(&format!("tc qdisc replace dev eth0 root netem limit 10000 {how}"), "tc qdisc del dev eth0 root")
}

/// Medians of one run of an engine and of its rival, in nanoseconds of a whole round trip.
fn medians((engine, tool, port, trips): (&str, &str, u16, f64)) -> [f64; 2] {
    let result = measure(&format!("--engine {engine} --bs 8 --count {COUNT} --warmup 3 --peer {}", peer()));
    let own = point(&result)["latency_ns"]["percentiles"]["50"].as_f64().unwrap();
    [own, trips * perftest::measure(tool, port, COUNT, &peer())[P50]]
}

#[test]
fn a_delay_on_the_cable_shifts_every_engine_as_it_shifts_perftest() {
    if !lab::in_lab(2) {
        return;
    }
    // By engine, delay and round: how much later it is, and perftest.
    let mut shifts: Vec<[Vec<[f64; 2]>; 2]> = vec![Default::default(); RIVALS.len()];
    for _ in 0..ROUNDS {
        let without = RIVALS.map(medians);
        for (place, delay) in ["delay 5ms", "delay 20ms"].into_iter().enumerate() {
            let _delayed = netem(delay);
            for (engine, (with, without)) in RIVALS.map(medians).into_iter().zip(without).enumerate() {
                shifts[engine][place].push([with[0] - without[0], with[1] - without[1]]);
            }
        }
    }
    let record: Vec<_> =
        RIVALS.iter().zip(&shifts).map(|(rival, shifts)| json!([rival.0, rival.1, shifts[0], shifts[1]])).collect();
    let record = json!({ "columns": ["engine", "perftest", "[own, perftest] ns at 5 ms, by round", "at 20 ms"], "shifts": record });
    std::fs::write(lab::out_folder().join("netem.json"), format!("{record}\n")).unwrap();
    for ((engine, tool, ..), shifts) in RIVALS.iter().zip(&shifts) {
        for (delay_ms, rounds) in [5, 20].into_iter().zip(shifts) {
            let mut own: Vec<f64> = rounds.iter().map(|[own, _]| *own).collect();
            own.sort_by(f64::total_cmp);
            // What perftest shows in this boot is a range, since both share a noisy machine; the delay itself is in it.
            let theirs: Vec<f64> = rounds.iter().map(|[_, theirs]| *theirs).collect();
            let exact = f64::from(delay_ms) * 1e6;
            let (least, most) = theirs.iter().fold((exact, exact), |(low, high), &x| (low.min(x), high.max(x)));
            let median = own[ROUNDS / 2];
            assert!(
                median >= 0.95 * least && median <= 1.05 * most,
                "{engine} at {delay_ms} ms: {own:?} ns later, {tool} {theirs:?}"
            );
        }
    }
}

#[test]
fn lost_packets_show_in_the_counters_of_the_device() {
    if !lab::in_lab(2) {
        return;
    }
    let _lossy = netem("loss 2%");
    let result = measure(&format!("--engine rdma-read --bs 8 --count 1000 --warmup 3 --peer {}", peer()));
    assert!(warns(&result, "device-trouble"), "{}", result["warnings"]);
    let counters = point(&result)["device_counters"].as_object().unwrap();
    assert!(counters.keys().any(|name| name.contains("retry")), "{counters:?}");
}
