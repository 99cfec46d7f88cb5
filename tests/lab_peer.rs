//! `lat-probe serve` in one process, the initiator in another, on one machine with rdma_rxe. Run in the lab: `scripts/test`,
//! or `scripts/lab -- TEST-BINARY --test-threads=1`.

mod lab;

use std::{
    fs,
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};

use lab::{Background, ENGINES, Server, is_atomic, measure, point, refused};
use serde_json::Value;

/// Longest time in which a failure at one end must have ended the other.
const PROMPT: Duration = Duration::from_secs(30);

#[test]
fn every_engine_measures_a_serving_peer() {
    if !lab::in_lab(1) {
        return;
    }
    let server = Server::start(18601, "");
    let peer = server.address();
    for engine in ENGINES {
        let sizes = if is_atomic(engine) { "8" } else { "8,4096,65536,1M" };
        let result = measure(&format!("--engine {engine} --bs {sizes} --count 30 --warmup 3 --peer {peer}"));
        assert_eq!(result["points"].as_array().unwrap().len(), sizes.split(',').count(), "{engine}");
        assert_eq!(result["peer"]["address"], peer);
        assert_eq!(result["peer"]["rdma"]["device"], "rxe0");
    }
    let (stdout, stderr) = server.stop();
    // The server shows the client's figures, for one-sided verbs too, and what it handled itself.
    assert!(stdout.contains("rdma-read, 30 commands") && stdout.contains("p50"), "{stdout}");
    assert!(stdout.contains("rdma-send, 30 commands, 34 handled here, data verified"), "{stdout}");
    assert!(!stderr.contains("client"), "{stderr}");
}

#[test]
fn events_and_rdma_cm_work_between_processes() {
    if !lab::in_lab(1) {
        return;
    }
    let server = Server::start(18602, "");
    let peer = server.address();
    for engine in ENGINES {
        measure(&format!("--engine {engine} --cm --count 20 --warmup 2 --peer {peer}"));
        if engine != "rdma-write-pingpong" {
            measure(&format!("--engine {engine} --completion event --count 20 --warmup 2 --peer {peer}"));
        }
    }
    measure(&format!(
        "--engine rdma-send-pingpong --cm --completion event --bs 65536 --count 10 --warmup 2 --peer {peer}"
    ));
    measure(&format!("--engine rdma-send --transport UD --bs 1024 --count 20 --warmup 2 --peer {peer}"));
    measure(&format!("--engine rdma-write --transport UC --bs 1024 --count 20 --warmup 2 --peer {peer}"));
    server.stop();
}

#[test]
fn a_peer_is_reached_by_every_form_of_address() {
    if !lab::in_lab(1) {
        return;
    }
    let server = Server::start(18603, "");
    let listing = std::process::Command::new("ip").args(["-6", "-o", "addr", "show", "dev", "v0"]).output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let local = listing.split_whitespace().find_map(|word| word.strip_suffix("/64").filter(|a| a.starts_with("fe80")));
    let zoned = format!("[{}%v0]", local.expect("v0 has a link-local address"));
    for host in ["localhost", "127.0.0.1", "10.0.0.1", "[::1]", "[fd00:6c61:7470::1]", &zoned] {
        measure(&format!("--engine rdma-read --count 20 --warmup 2 --peer {host}:18603"));
    }
    server.stop();
}

#[test]
fn only_those_who_may_are_served() {
    if !lab::in_lab(1) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let token = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (token("right", "open sesame\n"), token("wrong", "open barley\n"));
    let read = "--engine rdma-read --count 20 --warmup 2 --peer 127.0.0.1";

    let server = Server::start(18604, &format!("--token-file {right} --max-size 4k --max-depth 8"));
    measure(&format!("{read}:18604 --token-file {right}"));
    for (options, reason) in [
        (format!("--token-file {wrong}"), "token"),
        (String::new(), "token"),
        (format!("--token-file {right} --qd 9"), "a depth of 9 is beyond this server's limit of 8"),
        (format!("--token-file {right} --bs 8k"), "8192 bytes are beyond this server's limit of 4096"),
    ] {
        let (code, message) = refused(&format!("{read}:18604 {options}"));
        assert!(code == 1 && message.contains(reason), "{message}");
    }
    let (_, stderr) = server.stop();
    assert!(stderr.contains("limit of 4096"), "both ends print the same reason: {stderr}");

    let server = Server::start(18605, "--allow 10.0.0.0/8");
    refused(&format!("{read}:18605"));
    measure("--engine rdma-read --count 20 --warmup 2 --peer 10.0.0.1:18605");
    server.stop();
}

#[test]
fn two_clients_are_served_at_once() {
    if !lab::in_lab(1) {
        return;
    }
    let server = Server::start(18606, "");
    let peer = server.address();
    let start = |engine| Background::start(&format!("--engine {engine} --count 500 --warmup 10 --peer {peer}"));
    let clients = [start("rdma-read"), start("rdma-write")];
    for client in clients {
        let (code, stdout, stderr) = client.wait(Duration::from_secs(60));
        assert!(code == 0 && stdout.contains("500 commands"), "{stdout}{stderr}");
    }
    server.stop();
}

/// A long run against the server that writes its result to a file, and has begun to measure.
fn long_run(options: &str, peer: &str, output: &str) -> Background {
    let arguments = format!("{options} --count 1M --duration 300s --warmup 10 --peer {peer} --output {output}");
    let client = Background::start(&arguments);
    let until = Instant::now() + PROMPT;
    while !client.has_thread("monitor") {
        assert!(Instant::now() < until, "lat-probe {arguments} does not begin to measure");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(1));
    client
}

#[test]
fn a_killed_client_leaves_the_server_ready_for_the_next_one() {
    if !lab::in_lab(1) {
        return;
    }
    let server = Server::start(18607, "");
    for engine in ["rdma-read", "rdma-send-pingpong", "rdma-write-pingpong"] {
        let client = long_run(&format!("--engine {engine}"), &server.address(), "/dev/null");
        client.signal("KILL");
        client.wait(PROMPT);
        measure(&format!("--engine {engine} --count 20 --warmup 2 --peer {}", server.address()));
    }
    let (_, stderr) = server.stop();
    assert_eq!(stderr.matches("closed the connection").count(), 3, "{stderr}");
}

#[test]
fn a_killed_server_leaves_a_partial_result_and_a_reason() {
    if !lab::in_lab(1) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let runs = ["--engine rdma-read", "--engine rdma-send-pingpong --completion event", "--engine rdma-write-pingpong"];
    for (number, options) in runs.into_iter().enumerate() {
        let server = Server::start(18610 + number as u16, "");
        let output = folder.path().join(format!("{number}.json"));
        let client = long_run(options, &server.address(), &output.display().to_string());
        server.signal("KILL");
        let (code, _, stderr) = client.wait(PROMPT);
        assert_eq!(code, 1, "{options}: {stderr}");
        let result: Value = serde_json::from_slice(&fs::read(&output).unwrap()).unwrap();
        assert_eq!(point(&result)["partial"], true, "{options}");
        assert_eq!(point(&result)["ended_by"], "error", "{options}");
        assert_eq!(point(&result)["verified"], "not-checked", "{options}");
        assert!(point(&result)["latency_ns"]["n"].as_u64().unwrap() > 0, "{options}");
        assert!(stderr.contains("peer 127.0.0.1"), "{options}: {stderr}");
    }
}

#[test]
fn a_signal_ends_a_run_with_a_partial_and_verified_result() {
    if !lab::in_lab(1) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(18615, "");
    let engines = ["rdma-read", "rdma-send-pingpong --completion event"];
    for (engine, (signal, code)) in engines.into_iter().zip([("INT", 130), ("TERM", 143)]) {
        let output = folder.path().join(signal);
        let client = long_run(&format!("--engine {engine}"), &server.address(), &output.display().to_string());
        client.signal(signal);
        let (ended, stdout, stderr) = client.wait(PROMPT);
        assert_eq!(ended, code, "{stdout}{stderr}");
        let result: Value = serde_json::from_slice(&fs::read(&output).unwrap()).unwrap();
        let point = point(&result);
        assert_eq!((&point["ended_by"], &point["partial"]), (&"signal".into(), &true.into()));
        assert_eq!(point["verified"], "yes");
        assert!(point["latency_ns"]["n"].as_u64().unwrap() > 0);
    }
    server.stop();
}

#[test]
fn a_server_survives_whatever_is_sent_to_it_and_counts_its_clients() {
    if !lab::in_lab(1) {
        return;
    }
    let server = Server::start(18622, "--max-clients 1");
    let (peer, pause) = (server.address(), Duration::from_secs(1));
    let read = format!("--engine rdma-read --count 20 --warmup 2 --peer {peer}");
    let garbage: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"LATPROBE\0\0\0\x09",
        b"LATPROBE\0\0\0\x01\xff\xff\xff\xff",
        b"LATPROBE\0\0\0\x01\0\0\0\x02{}",
        b"",
    ];
    for bytes in garbage {
        // It may hang up at the first wrong byte.
        let _ = TcpStream::connect(&peer).unwrap().write_all(bytes);
    }
    measure(&read);
    std::thread::sleep(pause);
    let first = long_run("--engine rdma-read", &peer, "/dev/null");
    let (code, message) = refused(&read);
    assert!(code == 1 && message.contains("busy"), "{message}");
    first.signal("KILL");
    first.wait(PROMPT);
    std::thread::sleep(pause);
    measure(&read);
    let (_, stderr) = server.stop();
    assert!(stderr.contains("not a lat-probe") && stderr.contains("protocol version 9"), "{stderr}");
}

#[test]
fn a_server_for_one_client_ends_with_its_outcome() {
    if !lab::in_lab(1) {
        return;
    }
    let once = |port: u16| Background::start(&format!("serve --once --bind 127.0.0.1:{port}"));
    let server = once(18620);
    std::thread::sleep(Duration::from_secs(1));
    measure("--engine rdma-read --count 20 --warmup 2 --peer 127.0.0.1:18620");
    assert_eq!(server.wait(PROMPT).0, 0);
    let server = once(18621);
    std::thread::sleep(Duration::from_secs(1));
    drop(std::net::TcpStream::connect("127.0.0.1:18621").unwrap());
    assert_eq!(server.wait(PROMPT).0, 1);
}

#[test]
fn a_one_sided_clients_figures_are_shown_by_the_server_too() {
    if !lab::in_lab(1) {
        return;
    }
    let server = Server::start(18624, "--format json");
    let result = measure(&format!("--engine rdma-read --bs 4k --count 200 --warmup 10 --peer {}", server.address()));
    std::thread::sleep(Duration::from_millis(500)); // The client has its verdict before the server has told of it.
    let (stdout, stderr) = server.stop();
    let served: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    assert_eq!(served["schema"], "lat-probe.served/1");
    assert_eq!((&served["engine"], &served["bs_bytes"], &served["qd"]), (&"rdma-read".into(), &4096.into(), &1.into()));
    assert_eq!((&served["ended_by"], &served["convention"]), (&"count".into(), &"completion".into()));
    assert!(served["partial"].is_null() && served["handled"].is_null() && served["problem"].is_null(), "{served}");
    let (told, measured) = (&served["latency_ns"], &point(&result)["latency_ns"]);
    assert_eq!(told["n"], 200);
    for place in ["/min", "/mean", "/max", "/percentiles/50", "/percentiles/99"] {
        let of = |latency: &Value| latency.pointer(place).and_then(Value::as_f64).unwrap();
        assert!((of(told) - of(measured)).abs() < 1e-3, "{place}: {told} {measured}");
    }
    for rate in ["ops_per_s", "bytes_per_s"] {
        let (told, measured) = (served[rate].as_f64().unwrap(), point(&result)["throughput"][rate].as_f64().unwrap());
        assert!((told / measured - 1.0).abs() < 1e-9, "{rate}: {told} {measured}");
    }
    assert!(stderr.contains("serving on") && stderr.contains("rdma-read, 4 KiB"), "{stderr}");
}

#[test]
fn a_server_on_a_terminal_draws_how_far_a_one_sided_client_is() {
    if !lab::in_lab(1) {
        return;
    }
    let serve = format!("{} serve --once --bind 127.0.0.1:18625", env!("CARGO_BIN_EXE_lat-probe"));
    let mut script = std::process::Command::new("script");
    script.args(["-qefc", &serve, "/dev/null"]).env("TERM", "xterm").stdin(std::process::Stdio::null());
    script.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let server = match script.spawn() {
        Ok(script) => Background(script),
        Err(error) => return eprintln!("skipped: script, which makes a terminal: {error}"),
    };
    std::thread::sleep(Duration::from_secs(2));
    // By count and by time; the time comes first.
    measure("--engine rdma-read --duration 5s --warmup 100 --peer 127.0.0.1:18625");
    let (code, screen, _) = server.wait(PROMPT);
    assert_eq!(code, 0, "{screen}");
    let drawn: Vec<u64> =
        screen.split(" %, ETA ").filter_map(|before| before.rsplit(' ').next()?.parse().ok()).collect();
    assert!(drawn.iter().any(|percent| (1..100).contains(percent)), "{drawn:?}: {screen}");
    assert!(drawn.is_sorted() && drawn.iter().all(|&percent| percent <= 100), "{drawn:?}");
    // What matters less, the rate over all and the count, is cut off at the end of this narrow terminal.
    assert!(screen.contains("rdma-read, 8 B: ") && screen.contains("/s, "), "{screen}");
    assert!(screen.contains("ended by duration") && screen.contains("p99.9"), "{screen}");
}
