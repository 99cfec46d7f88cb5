//! Writes destroy no data that somebody uses, and reach the files that they are meant for. Run in the lab: `scripts/test`,
//! or `scripts/lab --with srp,nvmet,null_blk,nvme,scsi_debug -- TEST-BINARY --test-threads=1`.

mod lab;

use std::{
    fs::File,
    os::unix::fs::OpenOptionsExt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use lab::{
    Background, Undo, assert_refused,
    block::{bsg_of, bytes_at, fill, in_storage_lab, kernel_name},
    measure, point, refused,
};

const FEW: &str = "--count 8 --warmup 0";

/// Where is written: far enough from the beginning for a mounted ext4 not to change it by itself.
const PLACE: u64 = 16 << 20;

/// What is compared there to see that nothing was written; more than [`FEW`] commands reach.
const BYTES: usize = 256 << 10;

/// No two writes have the same data, so that what an earlier one left there is never what a later one would leave.
static SEED: AtomicU64 = AtomicU64::new(100);

const MOUNT_POINT: &str = "/tmp/lat-probe-mount";

/// Makes an ext4 file system on a device and mounts it for as long as the value lives.
fn mounted(device: &str) -> Undo {
    let mount = format!(
        "set -e
        modprobe ext4
        mkfs.ext4 -q -F -b 4096 -O ^has_journal -E lazy_itable_init=1,nodiscard {device}
        mkdir -p {MOUNT_POINT}
        mount {device} {MOUNT_POINT}
        sync -f {MOUNT_POINT}"
    );
    Undo::after(&mount, format!("umount {MOUNT_POINT}"))
}

fn write(engine: &str, target: &str) -> String {
    let seed = SEED.fetch_add(1, Relaxed);
    format!(
        "--engine {engine} --target {target} --rw write --allow-write {target} --offset {PLACE} --seed {seed} {FEW}"
    )
}

/// Asserts that a write is refused with these words, and that the device is what it was.
fn assert_untouched(arguments: &str, device: &str, words: &[&str]) {
    let before = bytes_at(device, PLACE, BYTES);
    assert_refused(arguments, 2, words);
    assert!(bytes_at(device, PLACE, BYTES) == before, "{arguments}: the data on {device} changed");
}

#[test]
fn without_its_own_path_allowed_no_target_is_written() {
    if !in_storage_lab() {
        return;
    }
    let disk = format!("/dev/{}", kernel_name("/dev/lab/srp-disk"));
    for (engine, target, device) in [
        ("psync", "/dev/lab/n0", "/dev/lab/n0"),
        ("sg", "/dev/lab/srp-sg", "/dev/lab/srp-disk"),
        ("nvme-cmd", "/dev/lab/nvme-ng", "/dev/lab/nvme-disk"),
    ] {
        let arguments = format!("--engine {engine} --target {target} --rw write --offset {PLACE} {FEW}");
        assert_untouched(&arguments, device, &["would destroy the data on", &format!("--allow-write {target}")]);
    }
    // Another name of the very same disk is not what was typed.
    let arguments =
        format!("--engine psync --target {disk} --rw write --offset {PLACE} --allow-write /dev/lab/srp-disk {FEW}");
    assert_untouched(&arguments, &disk, &["--allow-write names /dev/lab/srp-disk", "both must be the same text"]);
    measure(&write("psync", &disk));
}

#[test]
fn a_mounted_disk_is_written_through_no_node() {
    if !in_storage_lab() {
        return;
    }
    let at = format!("it is mounted at {MOUNT_POINT}");
    let bsg = bsg_of("/dev/lab/srp-disk");
    for (disk, others) in [
        ("/dev/lab/n0", &[("io-uring", "/dev/lab/n0")][..]),
        ("/dev/lab/srp-disk", &[("sg", "/dev/lab/srp-sg"), ("sg", "/dev/lab/srp-disk"), ("sg", &bsg)]),
        ("/dev/lab/nvme-disk", &[("nvme-cmd", "/dev/lab/nvme-ng"), ("nvme-cmd --nvme-ioctl", "/dev/lab/nvme-disk")]),
    ] {
        let mounted = mounted(disk);
        for (engine, node) in [("psync", disk)].iter().chain(others) {
            assert_untouched(&write(engine, node), disk, &["writes are refused, it is in use", &at]);
        }
        measure(&format!("--engine psync --target {disk} {FEW}")); // Reads hurt nobody.
        drop(mounted);
        let (engine, node) = others[0];
        measure(&write(engine, node));
    }
}

#[test]
fn a_disk_is_not_written_while_its_partition_is_mounted() {
    if !in_storage_lab() {
        return;
    }
    let name = kernel_name("/dev/lab/scsi_debug-disk");
    let (disk, generic) = (format!("/dev/{name}"), "/dev/lab/scsi_debug-sg");
    let partition = format!("{disk}1");
    let _partition = Undo::after(&format!("addpart {disk} 1 2048 65536"), format!("delpart {disk} 1"));
    let mounted = mounted(&partition);
    let words = ["writes are refused", &format!("partition {name}1 is mounted at {MOUNT_POINT}")];
    for (engine, node) in [("psync", &*disk), ("sg", generic), ("sg", &bsg_of(&disk))] {
        assert_untouched(&write(engine, node), &disk, &words);
    }
    assert_untouched(&write("psync", &partition), &partition, &["it is mounted at"]);
    drop(mounted);
    measure(&write("psync", &partition));
    measure(&write("sg", generic));
}

#[test]
fn whatever_else_uses_a_device_is_named() {
    if !in_storage_lab() {
        return;
    }
    let device = "/dev/lab/n0";
    for (use_it, let_go, words) in [
        ("mkswap -q /dev/n0; swapon /dev/n0", "swapoff /dev/n0", "it is swap space (/proc/swaps)"),
        ("modprobe loop; losetup /dev/loop0 /dev/n0", "losetup -d /dev/loop0", "loop0 is backed by n0"),
        (
            "modprobe dm-mod; dmsetup create lab --noudevsync --table '0 2048 linear /dev/n0 0'",
            "dmsetup remove --noudevsync lab",
            "dm-0 (lab) is built on n0",
        ),
        ("blockdev --setro /dev/n0", "blockdev --setrw /dev/n0", "the device is read-only"),
    ] {
        let used = Undo::after(&format!("set -e; {use_it}"), let_go);
        assert_untouched(&write("psync", device), device, &["/dev/lab/n0: ", words]);
        drop(used);
    }
    let held = File::options().read(true).custom_flags(libc::O_EXCL).open(device).unwrap();
    assert_untouched(&write("psync", device), device, &["is held exclusively (open with O_EXCL says EBUSY)"]);
    drop(held);
    measure(&write("psync", device));
    let exported = "/dev/lab/nvmet-back";
    let words = ["the NVMe target lab-nvmet exports nvmet-back"];
    assert_untouched(&write("libaio", exported), exported, &words);
}

#[test]
fn filling_is_refused_as_writing_is() {
    if !in_storage_lab() {
        return;
    }
    let mounted = mounted("/dev/lab/n0");
    let before = bytes_at("/dev/lab/n0", PLACE, BYTES);
    let output = lab::shell(&format!("{} fill --allow-write /dev/lab/n0", lab::LAT_PROBE));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(&format!("it is mounted at {MOUNT_POINT}")), "{message}");
    assert!(bytes_at("/dev/lab/n0", PLACE, BYTES) == before, "the data changed");
    drop(mounted);
    fill("/dev/lab/n0", "--size 1M");
}

#[test]
fn nobody_mounts_a_device_while_it_is_written() {
    if !in_storage_lab() {
        return;
    }
    drop(mounted("/dev/lab/n0"));
    let long = "--rw write --offset 32M --count 1000000 --duration 20s --warmup 0";
    let running = Background::start(&format!("--engine psync --target /dev/lab/n0 --allow-write /dev/lab/n0 {long}"));
    running.wait_until_it_measures();
    let output = lab::shell(&format!("mount /dev/n0 {MOUNT_POINT}"));
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("busy"), "{output:?}");
    running.signal("INT");
    assert_eq!(running.wait(Duration::from_secs(10)).0, 130);
}

#[test]
fn files_on_ext4_are_measured_directly_and_through_the_page_cache() {
    if !in_storage_lab() {
        return;
    }
    let _mounted = mounted("/dev/lab/n0");
    let file = &format!("{MOUNT_POINT}/data");
    fill(file, "--size 1M");
    for (access, direct) in [("--direct", true), ("--buffered", false)] {
        for engine in ["psync", "pvsync2", "libaio", "io-uring"] {
            let arguments =
                format!("--engine {engine} --target {file} {access} --verify --bs 4k,32k --count 16 --warmup 0");
            let granted = &point(&measure(&arguments))["granted"]["block"].clone();
            assert_eq!((&granted["direct"], &granted["filesystem"]), (&direct.into(), &"ext4".into()), "{arguments}");
            assert_eq!((&granted["unwritten_bytes"], &granted["kind"]), (&0.into(), &"file".into()), "{arguments}");
            assert_eq!(granted["device"]["name"], "n0", "{arguments}");
        }
        measure(&format!(
            "--engine io-uring --target {file} --rw randwrite --allow-write {file} {access} --verify {FEW}"
        ));
    }
    let (code, message) = refused(&format!("--engine psync --target {file}"));
    assert!(code == 2 && message.contains("--direct") && message.contains("--buffered"), "{code}: {message}");
    assert_refused(&format!("--engine psync --direct --target {file} --bs 100"), 2, &["--bs 100", "512"]);
}

#[test]
fn a_file_that_was_never_written_is_told_from_one_that_was() {
    if !in_storage_lab() {
        return;
    }
    let _mounted = mounted("/dev/lab/n0");
    let file = &format!("{MOUNT_POINT}/sparse");
    File::create(file).and_then(|sparse| sparse.set_len(2 << 20)).unwrap();
    let read = |options: &str| format!("--engine psync --target {file} --direct {FEW} {options}");
    let unwritten = |options: &str| point(&measure(&read(options)))["granted"]["block"]["unwritten_bytes"].clone();
    assert_eq!(unwritten(""), 2 << 20);
    fill(file, "--offset 1M --size 1M");
    assert_eq!(unwritten(""), 1 << 20);
    assert_eq!(unwritten("--offset 1M --verify"), 0);
    let (code, _, message) = lab::ended(&read("--verify"));
    assert!(code == 1 && message.contains("all zeros"), "{code}: {message}");
}
