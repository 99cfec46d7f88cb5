//! Bad input to block engines and devices that fail: what is said, how it ends, and that it measures again once the cause
//! is gone. Run in the lab: `scripts/test`, or
//! `scripts/lab --with srp,nvmet,null_blk,nvme,scsi_debug -- TEST-BINARY --test-threads=1`.

mod lab;

use std::process::{Command, Stdio};

use lab::{
    LAT_PROBE, Undo, assert_refused, assert_says,
    block::{DEVICES, bsg_of, in_storage_lab, kernel_name},
    ended, measure, point, warns,
};
use serde_json::{Value, json};

const FEW: &str = "--count 20 --warmup 2";

/// A failed command at 1 MiB, after 16 of 4 KiB that succeed.
const OVER_THE_BAD_PLACE: &str = "--offset 960k --size 128k --bs 4k --count 50 --warmup 0";

/// Sectors 4660 to 4669 of scsi_debug fail when it is told so; ten sectors before them succeed.
const OVER_THE_BAD_SECTORS: &str = "--offset 2380800 --size 64k --bs 512 --count 50 --warmup 0";

fn bad_sectors() -> Undo {
    let options = |value| format!("echo {value} > /sys/bus/pseudo/drivers/scsi_debug/opts");
    Undo::after(&options(2), options(0))
}

/// Exports a device as the second namespace of the lab's NVMe over RDMA subsystem: /dev/lab/second-disk and -ng.
fn second_namespace(device: &str) -> Undo {
    let folder = "/sys/kernel/config/nvmet/subsystems/lab-nvmet/namespaces/2";
    let change = format!(
        "{DEVICES} set -e
        mkdir {folder}
        echo {device} > {folder}/device_path
        echo 1 > {folder}/enable
        wait_for publish_nvme second lab-nvmet 2"
    );
    let undo = format!(
        "{DEVICES} set -e
        node=$(readlink /dev/lab/second-ng)
        echo 0 > {folder}/enable
        rmdir {folder}
        wait_for test ! -e $node
        rm /dev/lab/second-*"
    );
    Undo::after(&change, undo)
}

/// Runs a measurement as nobody, in one more group; exit code and stderr.
fn as_nobody(group: &str, arguments: &str) -> (i32, String) {
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid", group, "--clear-groups", LAT_PROBE])
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs a measurement that must break off after `done` commands, with all of these words in stderr and in the result.
fn assert_breaks_off(arguments: &str, done: u64, words: &[&str]) {
    let (code, result, message) = ended(arguments);
    assert_says(arguments, (code, &message), 1, words);
    let point = point(&result);
    let why = point["ended_because"].as_str().unwrap_or_default();
    assert!(message.contains(why) && why.starts_with(&format!("command {done}: ")), "{arguments}: {why}: {message}");
    assert_eq!(
        (&point["partial"], &point["ended_by"], &point["latency_ns"]["n"], &point["errors"]),
        (&true.into(), &"error".into(), &done.into(), &json!({ "failed_commands": 1 })),
        "{arguments}"
    );
}

/// Runs a measurement of `count` commands of which `failed` fail with this name, and that goes on.
fn assert_goes_on(arguments: &str, count: u64, failed: u64, name: &str) -> Value {
    let (code, result, message) = ended(&format!("{arguments} --continue-on-error"));
    assert_eq!(code, 0, "{arguments}: {message}");
    let point = point(&result);
    let errors: Value = [("failed_commands".to_string(), failed), (format!("failed_commands.{name}"), failed)]
        .into_iter()
        .map(|(name, count)| (name, json!(count)))
        .collect();
    assert_eq!(point["errors"], errors, "{arguments}");
    assert_eq!(point["latency_ns"]["n"], count - failed, "a failed command has no latency: {arguments}");
    assert_eq!((&point["ended_by"], &point["partial"]), (&"count".into(), &false.into()), "{arguments}");
    result
}

#[test]
fn sizes_and_places_that_the_device_has_not_are_refused_with_those_it_has() {
    if !in_storage_lab() {
        return;
    }
    let whole = |target: &str, block: u32| format!("{target} takes multiples of its logical block of {block} bytes");
    for (options, words) in [
        ("psync --target /dev/lab/n0 --bs 1000", ["--bs 1000", &*whole("/dev/lab/n0", 512), "512 and 1024"]),
        ("io-uring --target /dev/lab/n4k --bs 512", ["--bs 512", &whole("/dev/lab/n4k", 4096), "smallest is 4096"]),
        ("sg --target /dev/lab/srp-4k-sg --bs 512", ["--bs 512", &whole("/dev/lab/srp-4k-sg", 4096), "is 4096"]),
        ("nvme-cmd --target /dev/lab/nvme-4k-ng --bs 6k", ["--bs 6144", "block of 4096", "4096 and 8192"]),
        ("libaio --target /dev/lab/n0 --offset 100", ["--offset 100", "512 bytes only", "the smallest is 512"]),
        ("sg --target /dev/lab/srp-sg --offset 64M", ["--offset 67108864", "past the end", "67108864 bytes"]),
        ("nvme-cmd --target /dev/lab/nvme-ng --offset 127M --size 2M", ["2097152", "limit of 1048576", "--offset"]),
    ] {
        assert_refused(&format!("--engine {options}"), 2, &words);
    }
}

#[test]
fn a_command_is_as_long_as_the_device_takes_in_one_piece() {
    if !in_storage_lab() {
        return;
    }
    let beyond = "queue/max_hw_sectors_kb";
    for (options, limit) in [
        ("sg --target /dev/lab/srp-sg --bs 1M", 524_288),
        ("sg --target /dev/lab/srp-disk --bs 1M", 524_288),
        ("nvme-cmd --target /dev/lab/nvme-ng --bs 132k", 131_072),
        ("nvme-cmd --nvme-ioctl --target /dev/lab/nvme-disk --bs 256k", 131_072),
        ("nvme-cmd --target /dev/lab/nvmet-ng --bs 2M", 1_048_576),
    ] {
        assert_refused(&format!("--engine {options}"), 2, &["--bs", &format!("limit of {limit}"), beyond]);
    }
    measure("--engine nvme-cmd --target /dev/lab/nvme-ng --bs 128k --count 3 --warmup 1");
    // The block layer cuts what is longer.
    let result = measure("--engine psync --target /dev/lab/nvme-disk --bs 256k --count 3 --warmup 1");
    assert_eq!(point(&result)["granted"]["block"]["split"], true);
    let result = measure("--engine sg --target /dev/lab/srp-disk --bs 48k --count 3 --warmup 1");
    assert_eq!(point(&result)["granted"]["block"]["split"], false);
}

#[test]
fn too_many_segments_are_told_with_their_limit_and_large_pages_help() {
    if !in_storage_lab() {
        return;
    }
    let segments = "at most 12 segments in one command (queue/max_segments)";
    let large = "--bs 512k --count 3 --warmup 0";
    assert_breaks_off(&format!("--engine sg --target /dev/lab/srp-sg {large}"), 0, &[segments, "scatter_elem_sz"]);
    let block = format!("--engine sg --target /dev/lab/srp-disk {large}");
    assert_breaks_off(&block, 0, &[segments, "48 KiB are sure to fit", "--hugepages"]);
    let pages = |number| format!("echo {number} > /proc/sys/vm/nr_hugepages");
    let _reserved = Undo::after(&pages(8), pages(0));
    measure(&format!("{block} --hugepages"));
}

#[test]
fn an_engine_on_the_wrong_kind_of_node_is_told_the_right_one() {
    if !in_storage_lab() {
        return;
    }
    let generic = kernel_name("/dev/lab/nvme-ng");
    let disk = format!("use /dev/{}", kernel_name("/dev/lab/srp-disk"));
    for (options, words) in [
        ("sg --target /dev/lab/n0", ["/dev/lab/n0", "is not a SCSI device"]),
        ("sg --target /dev/lab/nvme-disk", ["/dev/lab/nvme-disk", "is not a SCSI device"]),
        ("sg --target /dev/lab/nvme-ng", ["no target for the engine sg", "/dev/sg*"]),
        ("psync --target /dev/lab/srp-sg", ["no target for the engine psync", &disk]),
        ("nvme-cmd --target /dev/lab/nvme-disk", [&format!("/dev/{generic}"), "--nvme-ioctl"]),
        ("nvme-cmd --nvme-ioctl --target /dev/lab/n0", ["/dev/lab/n0", "is not an NVMe namespace"]),
        ("io-uring --target /dev/null", ["/dev/null", "a character device, but neither SCSI"]),
    ] {
        assert_refused(&format!("--engine {options}"), 2, &words);
    }
}

#[test]
fn polling_a_device_without_poll_queues_is_refused_with_the_way_to_some() {
    if !in_storage_lab() {
        return;
    }
    for (options, words) in [
        (
            "io-uring --uring-iopoll --target /dev/lab/n0",
            ["--uring-iopoll: /dev/n0 has no poll queues", "poll_queues=1"],
        ),
        ("pvsync2 --hipri --target /dev/lab/n0", ["--hipri: /dev/n0 has no poll queues", "configfs"]),
        ("pvsync2 --hipri --target /dev/lab/srp-disk", ["has no poll queues", "nr_poll_queues"]),
    ] {
        assert_refused(&format!("--engine {options}"), 77, &words);
    }
}

#[test]
fn without_room_for_aio_requests_the_numbers_are_told() {
    if !in_storage_lab() {
        return;
    }
    let limit = "/proc/sys/fs/aio-max-nr";
    let before = std::fs::read_to_string(limit).unwrap();
    let _none = Undo::after(&format!("echo 0 > {limit}"), format!("echo {} > {limit}", before.trim()));
    let words = ["needed 1 AIO request", "0 are used, 0 are allowed (fs.aio-max-nr)", "sysctl fs.aio-max-nr="];
    assert_refused("--engine libaio --target /dev/lab/n0", 77, &words);
}

#[test]
fn a_user_without_privileges_is_told_the_group_and_measures_as_its_member() {
    if !in_storage_lab() {
        return;
    }
    let nodes = ["n0", "srp-sg", "nvme-ng"].map(|name| format!("/dev/{}", kernel_name(&format!("/dev/lab/{name}"))));
    let nodes = nodes.join(" ");
    let _open = Undo::after(&format!("chgrp disk {nodes} && chmod 660 {nodes}"), format!("chmod 600 {nodes}"));
    for options in ["psync --target /dev/lab/n0", "sg --target /dev/lab/srp-sg", "nvme-cmd --target /dev/lab/nvme-ng"] {
        let arguments = format!("--engine {options} {FEW}");
        let (code, message) = as_nobody("65534", &arguments);
        assert_says(&arguments, (code, &message), 1, &["Permission denied", "group `disk`", "mode is 0660"]);
        let (code, message) = as_nobody("disk", &arguments);
        if options.starts_with("nvme-cmd") {
            // This kernel wants more than the node's permissions for it.
            assert_says(&arguments, (code, &message), 1, &["Permission denied", "run as root", "before Linux 6.2"]);
        } else {
            assert_eq!(code, 0, "{arguments}: {message}");
        }
    }
}

#[test]
fn a_failed_command_ends_the_run_or_is_counted_apart() {
    if !in_storage_lab() {
        return;
    }
    for engine in ["psync", "pvsync2", "libaio", "io-uring --completion event", "io-uring --uring-async"] {
        let arguments = format!("--engine {engine} --target /dev/lab/nbad {OVER_THE_BAD_PLACE}");
        assert_breaks_off(&arguments, 16, &["/dev/lab/nbad", "at offset 1048576", "Input/output error (os error 5)"]);
        // Command 16 fails, and 48 when the working set has begun anew.
        assert_goes_on(&arguments, 50, 2, "EIO");
    }
}

#[test]
fn a_scsi_device_says_itself_what_is_wrong() {
    if !in_storage_lab() {
        return;
    }
    let (disk, generic) = ("/dev/lab/scsi_debug-disk", "/dev/lab/scsi_debug-sg");
    let bad = bad_sectors();
    let sense = ["READ(10) of 512 bytes at offset 2385920", "MEDIUM ERROR (sense key 3)", "at LBA 4660"];
    for node in [generic, disk, &bsg_of(disk)] {
        assert_breaks_off(&format!("--engine sg --target {node} {OVER_THE_BAD_SECTORS}"), 10, &sense);
    }
    let result =
        assert_goes_on(&format!("--engine sg --target {generic} {OVER_THE_BAD_SECTORS}"), 50, 10, "medium_error");
    assert_eq!(point(&result)["device_counters"]["ioerr_cnt"], 10, "{}", point(&result)["device_counters"]);
    assert!(warns(&result, "device-trouble"), "{}", result["warnings"]);
    let nearby = &point(&result)["outliers"][0]["nearby"];
    assert_eq!(nearby["device_counters"]["ioerr_cnt"], 10, "{nearby}");
    let words = ["at offset 2385920", "No data available (os error 61)", "medium error"];
    assert_breaks_off(&format!("--engine psync --target {disk} {OVER_THE_BAD_SECTORS}"), 10, &words);
    drop(bad);

    let protect = |value| format!("echo {value} > /sys/module/scsi_debug/parameters/wp");
    let protected = Undo::after(&protect(1), protect(0));
    let write = |engine, node| format!("--engine {engine} --target {node} --rw write --allow-write {node} {FEW}");
    let (code, _, message) = ended(&write("sg", generic));
    assert_says("sg", (code, &message), 1, &["WRITE(10)", "DATA PROTECT (sense key 7)", "write protected"]);
    let (code, _, message) = ended(&write("psync", disk));
    assert_says("psync", (code, &message), 1, &["pwrite", "Remote I/O error (os error 121)", "write-protected"]);
    drop(protected);
    measure(&write("sg", generic));
}

#[test]
fn an_nvme_status_is_told_in_words() {
    if !in_storage_lab() {
        return;
    }
    let on_second = |options: &str| format!("--engine nvme-cmd --target /dev/lab/second-ng {options}");
    {
        let _failing = second_namespace("/dev/nbad");
        let words = ["NVMe Read of 4096 bytes at offset 1048576", "Internal Error (generic command status 0x06)"];
        for way in ["", "--nvme-ioctl", "--completion event"] {
            assert_breaks_off(&on_second(&format!("{way} {OVER_THE_BAD_PLACE}")), 16, &words);
        }
        assert_goes_on(&on_second(OVER_THE_BAD_PLACE), 50, 2, "internal_error");
    }
    let _of_scsi = second_namespace(&format!("/dev/{}", kernel_name("/dev/lab/scsi_debug-disk")));
    let _bad = bad_sectors();
    // This is what the kernel's target makes of a medium error.
    let words = ["Access Denied (media and data integrity error 0x86)", "at offset 2385920"];
    assert_breaks_off(&on_second(OVER_THE_BAD_SECTORS), 10, &words);
}
