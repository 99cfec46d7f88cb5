//! Devices that disappear under a run: it ends at once and says so, with what it had measured. Run in the lab:
//! `scripts/test`, or `scripts/lab --with srp,nvmet,null_blk,nvme,scsi_debug -- TEST-BINARY --test-threads=1`.

mod lab;

use std::{
    thread,
    time::{Duration, Instant},
};

use lab::{
    Background, Undo,
    block::{DEVICES, in_storage_lab, kernel_name},
    measure, shell,
};
use serde_json::Value;

/// Far longer than the device stays.
const LONG: &str = "--count 1000000 --duration 30s --warmup 0 --format json";

/// A run must be over so long after its device was taken away. A wait for a command is given up after 10 s only; this
/// leaves room for what a slow machine needs to write a result.
const PROMPTLY: Duration = Duration::from_secs(8);

/// Takes a device away while an engine measures it, and looks at how that ends. Then `bring_back` runs, and a run
/// succeeds.
fn assert_ends_when_gone(options: &str, take_away: &str, bring_back: &str) {
    let run = Background::start(&format!("--engine {options} {LONG}"));
    run.wait_until_it_measures();
    thread::sleep(Duration::from_millis(300)); // Some commands must complete.
    let back = Undo::after("true", format!("{DEVICES} set -e\n{bring_back}"));
    let output = shell(take_away);
    assert!(output.status.success(), "{take_away}: {output:?}");
    let gone = Instant::now();
    let (code, stdout, stderr) = run.wait(PROMPTLY);
    eprintln!("{options}: ended {:?} after its device: {}", gone.elapsed(), stderr.trim());
    assert_eq!(code, 1, "{options}: {stderr}");
    assert!(stderr.contains("The device is gone") && !stderr.contains("panicked"), "{options}: {stderr}");
    assert!(!stderr.contains("Usually"), "{options} explains what has no other cause: {stderr}");
    let result: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{options}: {error}: {stdout}"));
    let point = lab::point(&result);
    assert_eq!((&point["partial"], &point["ended_by"]), (&true.into(), &"error".into()), "{options}");
    assert!(point["latency_ns"]["n"].as_u64().unwrap() > 0, "{options}: nothing was measured");
    drop(back);
    measure(&format!("--engine {options} --count 10 --warmup 2"));
}

#[test]
fn a_memory_device_that_is_switched_off_ends_the_run() {
    if !in_storage_lab() {
        return;
    }
    let power = |value| format!("echo {value} > /sys/kernel/config/nullb/n0/power");
    for engine in ["psync", "libaio --completion event", "io-uring"] {
        assert_ends_when_gone(&format!("{engine} --target /dev/lab/n0"), &power(0), &power(1));
    }
}

#[test]
fn a_scsi_disk_that_is_deleted_ends_the_run() {
    if !in_storage_lab() {
        return;
    }
    let device = format!("/sys/class/block/{}/device", kernel_name("/dev/lab/scsi_debug-disk"));
    let host = format!("$(basename $(dirname $(dirname $(readlink -f {device}))))");
    let host = String::from_utf8(shell(&format!("echo {host}")).stdout).unwrap();
    let scan = format!(
        "echo '- - -' > /sys/class/scsi_host/{}/scan
        wait_for publish_scsi scsi_debug scsi_debug 0",
        host.trim()
    );
    for options in ["sg --target /dev/lab/scsi_debug-sg", "io-uring --target /dev/lab/scsi_debug-disk"] {
        assert_ends_when_gone(options, &format!("echo 1 > {device}/delete"), &scan);
    }
}

#[test]
fn a_logout_from_an_srp_target_ends_the_run() {
    if !in_storage_lab() {
        return;
    }
    let log_out = "for port in /sys/class/srp_remote_ports/port-*; do echo 1 > $port/delete; done";
    // The target may still be closing the old session when the initiator has none any more, and refuses the login then.
    let log_in = "
        logged_out() { ! ls /sys/class/srp_remote_ports/port-* > /dev/null 2>&1; }
        wait_for logged_out
        wait_for sh /dev/lab/srp-login
        wait_for publish_scsi srp ib_srp 0
        wait_for publish_scsi srp-4k ib_srp 1";
    for options in ["sg --target /dev/lab/srp-sg", "libaio --target /dev/lab/srp-disk"] {
        assert_ends_when_gone(options, log_out, log_in);
    }
}

#[test]
fn an_nvme_over_rdma_controller_that_is_deleted_ends_the_run() {
    if !in_storage_lab() {
        return;
    }
    let delete = "for one in /sys/class/nvme/*; do
        if grep -q ^lab-nvmet$ $one/subsysnqn; then echo 1 > $one/delete_controller; fi
    done";
    let connect = "
        echo transport=rdma,traddr=10.0.0.$LAB_HOST,trsvcid=4420,nqn=lab-nvmet,nr_poll_queues=1 > /dev/nvme-fabrics
        wait_for publish_nvme nvmet lab-nvmet 1";
    for options in ["nvme-cmd --target /dev/lab/nvmet-ng", "io-uring --uring-iopoll --target /dev/lab/nvmet-disk"] {
        assert_ends_when_gone(options, delete, connect);
    }
}

#[test]
fn an_nvme_controller_that_is_unplugged_ends_the_run() {
    if !in_storage_lab() {
        return;
    }
    let unplug = "for one in /sys/class/nvme/*; do
        if grep -q ^nqn.2019-08.org.qemu:lab$ $one/subsysnqn; then echo 1 > $(readlink -f $one/device)/remove; fi
    done";
    let plug = "
        echo 1 > /sys/bus/pci/rescan
        wait_for publish_nvme nvme nqn.2019-08.org.qemu:lab 1
        wait_for publish_nvme nvme-4k nqn.2019-08.org.qemu:lab 2";
    for options in ["nvme-cmd --uring-iopoll --target /dev/lab/nvme-ng", "psync --target /dev/lab/nvme-disk"] {
        assert_ends_when_gone(options, unplug, plug);
    }
}
