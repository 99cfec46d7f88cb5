//! Two hosts with a cable between them: `serve` on one, every engine on the other. Run in the lab: `scripts/test`, or
//! `scripts/lab --hosts 2 -- TEST-BINARY --test-threads=1`.

mod lab;

use lab::{ENGINES, is_atomic, measure, point};

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
