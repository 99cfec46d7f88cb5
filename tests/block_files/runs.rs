//! Every engine that takes files, in every direction, on both kinds of file.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path};

use serde_json::{Value, json};

use crate::common::{FILE_BYTES, Files, code, is_missing, measured, run, samples, stderr, stdout, takes_direct};

const RW: [&str; 4] = ["read", "randread", "write", "randwrite"];

/// What must hold for a measurement of `engine`, verified, on a filled file.
fn assert_sound(engine: &str, rw: &str, path: &Path, direct: bool, waits_in: &str) -> Value {
    let writes = rw.ends_with("write");
    let mut text = format!("--engine {engine} --target @ --rw {rw} --verify --seed 1 --count 200 --warmup 20");
    text.push_str(if direct { " --direct" } else { " --buffered" });
    text.push_str(if writes { " --allow-write @" } else { "" });
    let point = measured(&text, path);

    assert_eq!((samples(&point), &point["verified"]), (200, &"yes".into()), "{text}");
    assert_eq!((&point["partial"], &point["ended_by"]), (&false.into(), &"count".into()), "{text}");
    assert_eq!(point["errors"], json!({}), "{text}");
    let latency = &point["latency_ns"];
    let figures = ["min", "max"].map(|name| latency[name].as_f64().unwrap());
    let median = latency["percentiles"]["50"].as_f64().unwrap();
    assert!(0.0 < figures[0] && figures[0] <= median && median <= figures[1], "{text}: {latency}");

    let name = engine.split_whitespace().next().unwrap();
    let (config, block) = (&point["config"], &point["config"]["block"]);
    assert_eq!((&config["engine"], &config["rw"], &config["bs_bytes"]), (&name.into(), &rw.into(), &4096.into()));
    assert_eq!((&block["seed"], &block["verify"], &block["buffered"]), (&1.into(), &true.into(), &(!direct).into()));
    assert_eq!(block["target"], path.to_str().unwrap());
    assert_eq!(block["allow_write"], if writes { block["target"].clone() } else { Value::Null });

    let granted = &point["granted"]["block"];
    let in_memory = path.starts_with("/dev/shm");
    assert_eq!((&granted["kind"], &granted["direct"]), (&"file".into(), &direct.into()), "{text}");
    assert_eq!((&granted["in_memory"], granted["filesystem"] == "tmpfs"), (&in_memory.into(), in_memory), "{text}");
    assert_eq!((&granted["offset_bytes"], &granted["size_bytes"]), (&0.into(), &FILE_BYTES.into()), "{text}");
    let unit = granted["block_bytes"].as_u64().unwrap();
    assert!(if direct { 4096 % unit == 0 } else { unit == 1 }, "{text}: in units of {unit} bytes");
    assert_eq!(granted["waits_in"], waits_in, "{text}");
    assert_eq!(granted["command"], call(name, writes), "{text}");
    assert_eq!(point["granted"]["buffer"]["bytes"], 4096, "{text}");
    point
}

fn call(engine: &str, writes: bool) -> &'static str {
    match (engine, writes) {
        ("psync", false) => "pread",
        ("psync", true) => "pwrite",
        ("pvsync2", false) => "preadv2",
        ("pvsync2", true) => "pwritev2",
        ("libaio", false) => "AIO pread",
        ("libaio", true) => "AIO pwrite",
        (_, false) => "io_uring read",
        (_, true) => "io_uring write",
    }
}

/// All directions, in memory through the page cache, and on the disk past it where that can be.
fn assert_reads_and_writes(engine: &str, waits_in: &str) -> Option<Value> {
    let name = engine.split_whitespace().next().unwrap();
    if is_missing(name) {
        return None;
    }
    let (memory, disk) = (Files::in_memory(), Files::on_disk());
    let (in_memory, on_disk) = (memory.filled("file"), disk.filled("file"));
    let direct = takes_direct(&on_disk);
    let mut last = Value::Null;
    for rw in RW {
        assert_sound(engine, rw, &in_memory, false, waits_in);
        last = assert_sound(engine, rw, &on_disk, direct, waits_in);
    }
    // Whatever was written was the pattern.
    for path in [in_memory, on_disk] {
        measured("--engine psync --target @ --buffered --verify --count 256 --warmup 0", &path);
    }
    Some(last["granted"]["block"]["uring"].clone())
}

#[test]
fn psync_reads_and_writes_files() {
    assert_eq!(assert_reads_and_writes("psync", "sleeping-call"), Some(Value::Null));
}

#[test]
fn pvsync2_reads_and_writes_files() {
    assert_eq!(assert_reads_and_writes("pvsync2", "sleeping-call"), Some(Value::Null));
}

#[test]
fn libaio_reads_and_writes_files_polled_and_asleep() {
    for (engine, waits_in) in [("libaio", "user-poll"), ("libaio --completion event", "kernel-sleep")] {
        assert!(assert_reads_and_writes(engine, waits_in).is_none_or(|ring| ring.is_null()));
    }
}

/// The ring of an engine, with what differs from the plain one.
fn assert_ring(engine: &str, waits_in: &str, differs: &[&str]) {
    let Some(ring) = assert_reads_and_writes(engine, waits_in) else { return };
    let mut expected = json!({
        "fixed_buffer": true, "registered_file": true, "iopoll": false, "sqpoll": false, "sqpoll_cpu": null,
        "force_async": false,
    });
    for name in differs {
        expected[name] = json!(!expected[name].as_bool().unwrap());
    }
    assert_eq!(ring, expected, "{engine}");
}

#[test]
fn io_uring_reads_and_writes_files_polled_and_asleep() {
    assert_ring("io-uring", "user-poll", &[]);
    assert_ring("io-uring --completion event", "kernel-sleep", &[]);
}

#[test]
fn io_uring_reads_and_writes_files_with_nothing_registered() {
    assert_ring("io-uring --uring-unregistered", "user-poll", &["fixed_buffer", "registered_file"]);
}

#[test]
fn io_uring_reads_and_writes_files_by_worker_threads() {
    assert_ring("io-uring --uring-async", "user-poll", &["force_async"]);
    assert_ring("io-uring --uring-async --completion event", "kernel-sleep", &["force_async"]);
}

#[test]
fn io_uring_reads_and_writes_files_by_a_submission_thread() {
    assert_ring("io-uring --uring-sqpoll", "user-poll", &["sqpoll"]);
    assert_ring("io-uring --uring-sqpoll --completion event", "kernel-sleep", &["sqpoll"]);
}

#[test]
fn the_submission_thread_has_the_cpu_that_was_asked_for() {
    let usable: Vec<usize> = lat_probe::host::Cpus::read().usable().iter().collect();
    let [first, .., last] = usable[..] else {
        return eprintln!("skipped: only one CPU can be used here");
    };
    if is_missing("io-uring") {
        return;
    }
    let options = format!("--uring-sqpoll --sqpoll-cpu {last} --cpu {first} --count 20 --warmup 5 --buffered");
    let files = Files::in_memory();
    let point = measured(&format!("--engine io-uring --target @ {options}"), &files.filled("file"));
    assert_eq!(point["granted"]["block"]["uring"]["sqpoll_cpu"], last);
    assert_eq!((samples(&point), &point["config"]["cpus"]), (20, &json!([first])));
}

#[test]
fn every_engine_splits_a_command_into_submit_and_wait() {
    let files = Files::in_memory();
    let path = files.filled("file");
    for engine in ["psync", "pvsync2", "libaio", "io-uring"] {
        if is_missing(engine) {
            continue;
        }
        let point = measured(&format!("--engine {engine} --target @ --buffered --phases --count 200"), &path);
        assert_eq!((&point["submit_ns"]["n"], &point["wait_ns"]["n"]), (&200.into(), &200.into()), "{engine}");
    }
}

#[test]
fn a_list_of_sizes_measures_a_point_each() {
    let files = Files::in_memory();
    let text = "--engine psync --target @ --buffered --bs 1,512,4k,1M --count 50 --warmup 2 --verify --format json";
    let output = run(text, &files.filled("file"));
    assert_eq!((code(&output), stderr(&output)), (0, ""));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = result["points"].as_array().unwrap();
    let sizes: Vec<_> = points.iter().map(|point| point["config"]["bs_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [1, 512, 4096, 1 << 20]);
    assert!(points.iter().all(|point| point["verified"] == "yes" && samples(point) == 50));
}

#[test]
fn points_measured_before_a_refused_one_are_kept() {
    let files = Files::in_memory();
    let output = run(
        "--engine psync --target @ --buffered --bs 4k,2M --count 50 --warmup 2 --format json",
        &files.filled("file"),
    );
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("2097152 bytes (--bs)"), "{}", stderr(&output));
    assert_eq!(samples(&crate::common::only_point(&output)), 50);
}

#[test]
fn without_verify_nothing_is_checked_nor_said_to_be() {
    let files = Files::in_memory();
    let path = files.zeros("file", 1 << 20);
    for options in ["--rw read", "--rw randwrite --allow-write @"] {
        let point = measured(&format!("--engine psync --target @ --buffered --count 100 {options}"), &path);
        assert_eq!(point["verified"], "not-checked", "{options}");
    }
    let output = run("--engine psync --target @ --buffered --count 100", &path);
    assert!(!stdout(&output).contains("VERIFICATION") && !stdout(&output).contains("checked"), "{}", stdout(&output));
}

#[test]
fn a_path_that_is_not_utf_8_is_measured_and_its_result_kept() {
    let files = Files::in_memory();
    let path = files.path("").join(OsStr::from_bytes(b"file \xff"));
    fs::write(&path, [0; 8192]).unwrap();
    let point = measured("--engine psync --target @ --buffered --count 100 --rw write --allow-write @", &path);
    for target in [&point["config"]["block"]["target"], &point["granted"]["block"]["target"]] {
        assert!(target.as_str().unwrap().ends_with("/file \u{fffd}"), "{target}");
    }
}
