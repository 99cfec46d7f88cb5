//! Every block engine on devices of every kind, with the data checked. Run in the lab: `scripts/test`, or
//! `scripts/lab --with srp,nvmet,null_blk,nvme,scsi_debug -- TEST-BINARY --test-threads=1`.

mod lab;

use lab::{
    Undo,
    block::{DEVICES, bsg_of, fill, in_storage_lab},
    ended, measure, point,
};
use serde_json::Value;

/// How an engine is asked for, and where it then waits for completions.
type Way = (&'static str, &'static str);

/// Every way through the block layer that needs nothing of the device.
const WAYS: [Way; 9] = [
    ("psync", "sleeping-call"),
    ("pvsync2", "sleeping-call"),
    ("libaio", "user-poll"),
    ("libaio --completion event", "kernel-sleep"),
    ("io-uring", "user-poll"),
    ("io-uring --completion event", "kernel-sleep"),
    ("io-uring --uring-unregistered", "user-poll"),
    ("io-uring --uring-async", "user-poll"),
    ("io-uring --uring-sqpoll", "user-poll"),
];

/// Ways that need a device with queues for polled commands.
const POLLED: [Way; 4] = [
    ("psync", "sleeping-call"),
    ("pvsync2 --hipri", "polling-call"),
    ("io-uring --uring-iopoll", "kernel-poll"),
    ("io-uring --uring-iopoll --uring-sqpoll", "user-poll"),
];

/// Ways of NVMe passthrough.
const PASSTHROUGH: [Way; 7] = [
    ("nvme-cmd", "user-poll"),
    ("nvme-cmd --completion event", "kernel-sleep"),
    ("nvme-cmd --uring-iopoll", "kernel-poll"),
    ("nvme-cmd --uring-sqpoll", "user-poll"),
    ("nvme-cmd --uring-unregistered", "user-poll"),
    ("nvme-cmd --uring-iopoll --uring-sqpoll", "user-poll"),
    ("nvme-cmd --nvme-ioctl", "sleeping-call"),
];

/// What the first of a relay does.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Writes,
    Reads,
}

/// Engines write and read the beginning of one device in turn, so that each reads what another one wrote. Every writer has
/// a pattern of its own: what was there before is no right answer. The first one's node is a disk.
fn relay<'a>(runners: impl IntoIterator<Item = (Way, &'a str)>, sizes: &str, first: First) -> Vec<Value> {
    let mut writes = first == First::Writes;
    let mut seed = 1;
    let mut results = Vec::new();
    for ((engine, waits_in), target) in runners {
        if results.is_empty() && !writes {
            fill(target, "--size 512k --seed 1");
        }
        seed += u64::from(writes);
        let direction = if writes { format!("write --allow-write {target}") } else { "read".into() };
        let arguments = format!(
            "--engine {engine} --target {target} --rw {direction} --bs {sizes} --size 512k --count 16 --warmup 0 \
             --verify --seed {seed}"
        );
        let result = measure(&arguments);
        for point in result["points"].as_array().unwrap() {
            assert_eq!(point["granted"]["block"]["waits_in"], waits_in, "{arguments}");
            assert_eq!(point["granted"]["block"]["direct"], true, "{arguments}");
        }
        results.push(result);
        writes = !writes;
    }
    results
}

fn on<'a>(target: &'a str, ways: &'a [Way]) -> impl Iterator<Item = (Way, &'a str)> {
    ways.iter().map(move |way| (*way, target))
}

/// What was granted to the first point of each result, by a key.
fn granted<'a>(results: &'a [Value], key: &str) -> Vec<&'a Value> {
    results.iter().map(|result| &point(result)["granted"]["block"][key]).collect()
}

#[test]
fn on_memory_each_engine_reads_what_another_wrote() {
    if !in_storage_lab() {
        return;
    }
    relay(on("/dev/lab/n0", &WAYS), "512,4k,32k", First::Writes);
    let results = relay(on("/dev/lab/n4k", &WAYS), "4k,32k", First::Reads);
    assert_eq!(granted(&results, "block_bytes"), vec![4096; WAYS.len()]);
}

#[test]
fn on_scsi_disks_each_engine_reads_what_another_wrote() {
    if !in_storage_lab() {
        return;
    }
    relay(on("/dev/lab/scsi_debug-disk", &WAYS), "512,4k,32k", First::Reads);
    relay(on("/dev/lab/srp-disk", &WAYS), "512,4k,32k", First::Writes);
}

#[test]
fn on_nvme_disks_each_engine_reads_what_another_wrote() {
    if !in_storage_lab() {
        return;
    }
    relay(on("/dev/lab/nvme-disk", &WAYS), "512,4k,32k", First::Writes);
    relay(on("/dev/lab/nvmet-disk", &WAYS), "512,4k,32k", First::Reads);
}

#[test]
fn devices_with_poll_queues_are_polled() {
    if !in_storage_lab() {
        return;
    }
    for (target, first) in [
        ("/dev/lab/npoll", First::Writes),
        ("/dev/lab/npoll", First::Reads),
        ("/dev/lab/nvme-disk", First::Writes),
        ("/dev/lab/nvmet-disk", First::Reads),
    ] {
        let results = relay(on(target, &POLLED), "512,4k,32k", first);
        assert!(granted(&results, "device").iter().all(|device| device["poll_queues"] == true), "{target}");
        let iopoll: Vec<_> = granted(&results, "uring").iter().map(|ring| ring["iopoll"] == true).collect();
        assert_eq!(iopoll, [false, false, true, true], "{target}");
    }
}

#[test]
fn scsi_commands_move_the_same_data_through_every_node() {
    if !in_storage_lab() {
        return;
    }
    let block = ("psync", "sleeping-call");
    let scsi = ("sg", "sleeping-call");
    let (disk, generic, bsg) = ("/dev/lab/srp-disk", "/dev/lab/srp-sg", bsg_of("/dev/lab/srp-disk"));
    let runners = [(block, disk), (scsi, generic), (scsi, &bsg), (scsi, disk), (block, disk)];
    for first in [First::Writes, First::Reads] {
        let results = relay(runners, "512,4k,32k", first);
        assert_eq!(granted(&results[1..4], "kind"), ["sg", "bsg", "block"]);
        let versions: Vec<_> = granted(&results[1..4], "sg").iter().map(|sg| &sg["version"]).collect();
        assert_eq!(versions, [3, 4, 3]);
        let commands = match first {
            First::Writes => ["pwrite", "READ(10)", "WRITE(10)", "READ(10)", "pwrite"],
            First::Reads => ["pread", "WRITE(10)", "READ(10)", "WRITE(10)", "pread"],
        };
        assert_eq!(granted(&results, "command"), commands);
    }
    let (disk, bsg) = ("/dev/lab/srp-4k-disk", bsg_of("/dev/lab/srp-4k-disk"));
    let results = relay([(block, disk), (scsi, "/dev/lab/srp-4k-sg"), (scsi, &bsg)], "4k,32k", First::Reads);
    assert_eq!(granted(&results, "block_bytes"), [4096; 3]);
    let disk = "/dev/lab/scsi_debug-disk";
    relay([(block, disk), (scsi, "/dev/lab/scsi_debug-sg"), (block, disk)], "512,4k,32k", First::Reads);
}

#[test]
fn commands_without_payload_isolate_the_transport() {
    if !in_storage_lab() {
        return;
    }
    let bsg = bsg_of("/dev/lab/srp-disk");
    for (options, command) in [
        ("sg --target /dev/lab/srp-sg --command test-unit-ready", "TEST UNIT READY"),
        (&*format!("sg --target {bsg} --command inquiry"), "INQUIRY"),
        ("sg --target /dev/lab/scsi_debug-disk --command test-unit-ready", "TEST UNIT READY"),
        ("nvme-cmd --target /dev/lab/nvme-ng --command flush", "NVMe Flush"),
        ("nvme-cmd --target /dev/lab/nvmet-disk --command flush --nvme-ioctl", "NVMe Flush"),
    ] {
        let result = measure(&format!("--engine {options} --count 20 --warmup 2"));
        assert_eq!(point(&result)["granted"]["block"]["command"], command, "{options}");
        assert!(point(&result)["config"]["bs_bytes"].is_null(), "{options}");
    }
}

#[test]
fn beyond_two_tebibytes_scsi_commands_have_sixteen_bytes() {
    if !in_storage_lab() {
        return;
    }
    let reload = |options: &str| {
        format!(
            "{DEVICES} set -e
            modprobe -r scsi_debug
            modprobe scsi_debug dev_size_mb=64 sector_size=512 delay=0 {options}
            wait_for publish_scsi scsi_debug scsi_debug 0"
        )
    };
    // The sectors of 3000 GiB share the 64 MiB of memory.
    let _large = Undo::after(&reload("virtual_gb=3000"), reload(""));
    let place = "--offset 2500G --size 512k --count 16 --warmup 0 --verify";
    let (disk, generic) = ("/dev/lab/scsi_debug-disk", "/dev/lab/scsi_debug-sg");
    let written =
        measure(&format!("--engine sg --target {generic} --rw write --allow-write {generic} {place} --bs 32k"));
    assert_eq!(point(&written)["granted"]["block"]["command"], "WRITE(16)");
    measure(&format!("--engine psync --target {disk} {place}"));
    let read = measure(&format!("--engine sg --target {} {place}", bsg_of(disk)));
    assert_eq!(point(&read)["granted"]["block"]["command"], "READ(16)");
}

#[test]
fn nvme_commands_move_the_same_data_as_the_block_layer() {
    if !in_storage_lab() {
        return;
    }
    let block = ("psync", "sleeping-call");
    for (name, first) in [("nvme", First::Writes), ("nvmet", First::Reads)] {
        let (disk, generic) = (format!("/dev/lab/{name}-disk"), format!("/dev/lab/{name}-ng"));
        // The ioctl works on the block node as well.
        let runners =
            [(block, &*disk)].into_iter().chain(on(&generic, &PASSTHROUGH)).chain(on(&disk, &PASSTHROUGH[6..]));
        let results = relay(runners, "512,4k,32k", first);
        let via: Vec<_> = granted(&results, "nvme").iter().map(|nvme| nvme["via"].as_str().unwrap_or("-")).collect();
        assert_eq!(via[0], "-");
        assert!(via[1..7].iter().all(|via| *via == "io_uring") && via[7..] == ["ioctl", "ioctl"], "{via:?}");
    }
    let runners = [(block, "/dev/lab/nvme-4k-disk"), (PASSTHROUGH[0], "/dev/lab/nvme-4k-ng")];
    let results =
        relay(runners.into_iter().chain(on("/dev/lab/nvme-4k-ng", &PASSTHROUGH[6..])), "4k,32k", First::Reads);
    assert_eq!(point(&results[1])["granted"]["block"]["nvme"]["namespace"], 2);
}

#[test]
fn data_of_another_pattern_is_no_right_answer() {
    if !in_storage_lab() {
        return;
    }
    fill("/dev/lab/n0", "--size 64k --seed 7");
    for (options, words) in [("--seed 7 --offset 32k", "all zeros"), ("--seed 8", "byte 0 is ")] {
        let size = if options.contains("offset") { "--size 128k" } else { "--size 64k" };
        fill_with_zeros("/dev/lab/n0", 64 << 10, 128 << 10);
        let (code, result, message) =
            ended(&format!("--engine io-uring --target /dev/lab/n0 --verify {options} {size} --count 50 --warmup 0"));
        assert_eq!((code, &point(&result)["verified"]), (1, &"no".into()), "{options}: {message}");
        assert!(message.contains("verification failed: /dev/lab/n0") && message.contains(words), "{message}");
    }
}

fn fill_with_zeros(device: &str, from: u64, bytes: usize) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(device).unwrap();
    file.write_all_at(&vec![0; bytes], from).and_then(|()| file.sync_all()).unwrap();
}

#[test]
fn no_engine_is_faster_than_the_device() {
    if !in_storage_lab() {
        return;
    }
    let devices = [("n200us", 200_000.0), ("n500us", 500_000.0), ("n1ms", 1_000_000.0)];
    for ((engine, _), (device, at_least)) in WAYS.iter().zip(devices.iter().cycle()) {
        let result =
            measure(&format!("--engine {engine} --target /dev/lab/{device} --rw randread --count 30 --warmup 2"));
        let min = point(&result)["latency_ns"]["min"].as_f64().unwrap();
        assert!(min >= *at_least, "{engine} on {device}: {min} ns");
    }
}
