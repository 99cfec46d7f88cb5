//! Two hosts with a cable between them: `serve` on one, every engine on the other. Run in the lab: `scripts/test`, or
//! `LAB_SERVE='sh tests/lab/two_hosts_serve.sh' scripts/lab --hosts 2 -- TEST-BINARY --test-threads=1`.

mod lab;

use std::{process::Command, time::Duration};

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

/// Median of one of perftest's tools in milliseconds, there and back; what it does at the other end is in
/// `two_hosts_serve.sh`.
fn perftest(tool: &str, port: u16) -> f64 {
    let mut words = tool.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["-d", "rxe0", "-x", "1", "-F", "-n", "30", "-s", "8", "-p", &port.to_string(), &peer()]);
    // The server that ended with the client before needs a moment to begin anew.
    let run = || Some(command.output().ok()?).filter(|output| output.status.success());
    let mut run = run;
    let output = (0..20).find_map(|_| {
        run().or_else(|| {
            std::thread::sleep(Duration::from_millis(300));
            None
        })
    });
    let text = String::from_utf8(output.unwrap_or_else(|| panic!("{tool} failed")).stdout).unwrap();
    let row =
        text.lines().rev().find(|line| line.split_whitespace().next() == Some("8")).unwrap_or_else(|| panic!("{text}"));
    let median_us: f64 = row.split_whitespace().nth(4).unwrap().parse().unwrap();
    // Its writes and sends are halves of a round trip.
    let halves = if tool.contains("write") || tool.contains("send") { 2.0 } else { 1.0 };
    median_us * halves / 1000.0
}

fn median_ms(engine: &str) -> f64 {
    let result = measure(&format!("--engine {engine} --bs 8 --count 30 --warmup 3 --peer {}", peer()));
    point(&result)["latency_ns"]["percentiles"]["50"].as_f64().unwrap() / 1e6
}

/// Delays everything that leaves this host; none takes the delay away.
fn delay(ms: Option<u32>) {
    let command = match ms {
        Some(ms) => format!("tc qdisc replace dev eth0 root netem delay {ms}ms"),
        None => "tc qdisc del dev eth0 root".into(),
    };
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
}

#[test]
fn a_delay_on_the_cable_shifts_every_engine_by_as_much_as_perftest() {
    // A command that waits for one answer is delayed once, whatever it is. perftest has no tool that waits for the
    // completion of one write or send; READ stands in for it.
    const PAIRS: [(&str, &str, u16); 7] = [
        ("rdma-read", "ib_read_lat", 18601),
        ("rdma-write", "ib_read_lat", 18601),
        ("rdma-send", "ib_read_lat", 18601),
        ("rdma-cas", "ib_atomic_lat -A CMP_AND_SWAP", 18604),
        ("rdma-faa", "ib_atomic_lat -A FETCH_AND_ADD", 18605),
        ("rdma-write-pingpong", "ib_write_lat", 18602),
        ("rdma-send-pingpong", "ib_send_lat", 18603),
    ];
    // Without any delay the medians of neighbouring runs differ by some tenths of a millisecond here, each.
    const NOISE_MS: f64 = 0.6;
    if !lab::in_lab(2) {
        return;
    }
    assert!(Command::new("modprobe").arg("sch_netem").status().unwrap().success());
    let all = || {
        let mut tools = std::collections::BTreeMap::new();
        PAIRS
            .map(|(engine, tool, port)| (median_ms(engine), *tools.entry(tool).or_insert_with(|| perftest(tool, port))))
    };
    let before = all();
    let mut record = Vec::new();
    for ms in [5, 20] {
        delay(Some(ms));
        let after = all();
        delay(None);
        for (((engine, tool, _), before), after) in PAIRS.iter().zip(before).zip(after) {
            let (ours, theirs) = (after.0 - before.0, after.1 - before.1);
            record.push(serde_json::json!({ "engine": engine, "rival": tool, "delay_ms": ms, "shift_ms": ours, "rival_shift_ms": theirs }));
        }
    }
    let record = serde_json::Value::from(record);
    std::fs::write(lab::out_folder().join("netem.json"), format!("{record:#}\n")).unwrap();
    eprintln!("{record:#}");
    for row in record.as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let (ours, theirs) = (number("shift_ms"), number("rival_shift_ms"));
        assert!((ours - theirs).abs() <= 0.05 * theirs + NOISE_MS, "{row}");
        assert!(ours >= number("delay_ms") - NOISE_MS, "{row}");
    }
}
