//! Many commands in flight on block devices, by one thread or many. Run in the lab: `scripts/test`, or
//! `scripts/lab --with srp,nvmet,null_blk,nvme,scsi_debug -- TEST-BINARY --test-threads=1`.

mod lab;

use lab::{
    Undo, assert_refused,
    block::{fill, in_storage_lab},
    measure, point, warns,
};
use serde_json::Value;

/// The largest depth that a command was handed over at, by powers of two.
fn deepest(point: &Value) -> u64 {
    let classes = point["depth"]["outstanding"].as_array().unwrap();
    classes.iter().map(|class| class["upper"].as_u64().unwrap()).max().unwrap()
}

#[test]
fn twenty_thousand_commands_are_in_flight_on_a_device_of_memory() {
    if !in_storage_lab() {
        return;
    }
    fill("/dev/lab/n0", "--size 16m");
    for engine in ["libaio", "io-uring --uring-unregistered", "io-uring"] {
        let target = "--target /dev/lab/n0 --size 16m --bs 512 --rw randread --verify";
        let result = measure(&format!("--engine {engine} {target} --qd 20000 --count 30001"));
        let point = point(&result);
        assert_eq!(deepest(point), 32_767, "{engine}");
        let bytes = point["memory"]["bytes_per_outstanding"].as_u64().unwrap();
        assert!((512..=512 + 256).contains(&bytes), "{engine}: {bytes} bytes for each command of 512");
    }
}

#[test]
fn every_ring_and_every_wait_keeps_32_commands_in_flight() {
    if !in_storage_lab() {
        return;
    }
    for device in ["nvme-disk", "srp-disk", "scsi_debug-disk", "n0"] {
        fill(&format!("/dev/lab/{device}"), "--size 4m");
    }
    let disk = "--target /dev/lab/nvme-disk";
    let generic = "nvme-cmd --target /dev/lab/nvme-ng";
    for way in [
        format!("libaio {disk}"),
        format!("libaio --completion event {disk}"),
        format!("io-uring {disk}"),
        format!("io-uring --completion event {disk}"),
        format!("io-uring --uring-sqpoll {disk}"),
        format!("io-uring --uring-async {disk}"),
        generic.to_string(),
        format!("{generic} --completion event"),
        format!("{generic} --uring-sqpoll"),
        "io-uring --uring-iopoll --target /dev/lab/npoll --allow-write /dev/lab/npoll --rw write".to_string(),
        "libaio --target /dev/lab/srp-disk".to_string(),
        "io-uring --target /dev/lab/scsi_debug-disk".to_string(),
    ] {
        let result = measure(&format!("--engine {way} --size 4m --bs 4k --qd 32 --count 777 --warmup 64 --verify"));
        assert_eq!(deepest(point(&result)), 63, "{way}");
    }
}

#[test]
fn jobs_write_to_one_device_together_and_128_run_on_two_processors() {
    if !in_storage_lab() {
        return;
    }
    let target = "--target /dev/lab/n0 --size 16m --bs 4k";
    let writes = "--rw randwrite --allow-write /dev/lab/n0 --verify";
    measure(&format!("--engine libaio {target} {writes} --jobs 2 --qd 8 --count 200"));
    let run = format!("--engine psync {target} --jobs 128 --count 20 --warmup 5 --per-job --duration 60s");
    let result = measure(&run);
    assert!(warns(&result, "jobs-share-cpus"));
    assert_eq!(point(&result)["per_job"].as_array().unwrap().len(), 128);
}

#[test]
fn depths_beyond_a_limit_are_refused_with_limit_value_and_knob() {
    if !in_storage_lab() {
        return;
    }
    let target = "--target /dev/lab/n0 --size 16m --bs 512";
    let number = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap();
    let knob = "/proc/sys/fs/aio-max-nr";
    let _less = Undo::after(&format!("echo 1000 > {knob}"), format!("echo {} > {knob}", number.trim()));
    let words = ["needed 4096 AIO requests", "1000 are allowed", "sysctl fs.aio-max-nr="];
    assert_refused(&format!("--engine libaio {target} --qd 4096"), 77, &words);
    assert_refused(&format!("--engine io-uring {target} --qd 65537"), 2, &["65537", "65536", "smaller --qd"]);
    assert_refused(&format!("--engine io-uring --uring-sqpoll {target} --qd 40000"), 2, &["40000", "32768"]);
    assert_refused(&format!("--engine psync {target} --qd 2"), 2, &["--qd 2", "returns on completion"]);
}

#[test]
fn the_table_of_engines_by_depth_has_all_its_rows() {
    if !in_storage_lab() {
        return;
    }
    let _ramfs = Undo::after("mkdir -p /tmp/ramfs && mount -t ramfs ramfs /tmp/ramfs", "umount /tmp/ramfs");
    fill("/tmp/ramfs/file", "--size 8m");
    let result = measure("run probes/engine-depth-ramfs.json --target /tmp/ramfs/file --count 1500 --warmup 100");
    let rows: Vec<_> = result["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| {
            let (config, rate) = (&point["config"], &point["throughput"]["bytes_per_s"]);
            assert!(rate.as_f64().unwrap() > 0.0);
            (config["engine"].as_str().unwrap(), config["qd"].as_u64().unwrap())
        })
        .collect();
    let rings = [("io-uring", 1), ("io-uring", 32)];
    assert_eq!(rows, [("psync", 1), ("libaio", 1), ("libaio", 32), rings[0], rings[1], rings[0], rings[1]]);
    std::fs::write(lab::out_folder().join("engine-depth.json"), result.to_string()).unwrap();
}
