//! Tests of `in_use`, apart for the length of their trees.

use super::*;
use crate::host::fake::Tree;
use proptest::prelude::*;

const SDA: &str = "/sys/devices/pci/block/sda";
const NOTHING: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n";

/// The disk `sda` with the partitions `sda1`, `sda2`, and the disk `sdb`. Nothing is in use.
fn idle() -> Tree {
    Tree::new()
        .disk("pci", "sda", "8:0")
        .partition("pci", "sda", "sda1", "8:1")
        .partition("pci", "sda", "sda2", "8:2")
        .disk("pci", "sdb", "8:16")
        .file("/proc/self/mountinfo", NOTHING)
        .file("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
}

fn mounting(lines: &str) -> Tree {
    idle().file("/proc/self/mountinfo", &format!("{NOTHING}{lines}\n"))
}

fn swapping(path: &str) -> Tree {
    idle().file("/proc/swaps", &format!("Filename Type Size Used Priority\n{path} \tfile\t8388604\t0\t-2\n"))
}

fn of(tree: &Tree, name: &str) -> Vec<String> {
    users(&tree.sysfs(), &BlockDevice::by_name(&tree.sysfs(), name).unwrap())
}

#[test]
fn an_idle_device_has_no_users() {
    let tree = idle();
    for name in ["sda", "sda1", "sda2", "sdb"] {
        assert_eq!(of(&tree, name), [""; 0], "{name}");
    }
}

#[test]
fn a_mounted_partition_is_a_user_of_its_disk_and_not_of_its_sibling() {
    let tree = mounting("41 27 8:2 / /home rw shared:5 master:1 - ext4 /dev/sda2 rw");
    assert_eq!(of(&tree, "sda2"), ["it is mounted at /home"]);
    assert_eq!(of(&tree, "sda"), ["partition sda2 is mounted at /home"]);
    assert_eq!(of(&tree, "sda1"), [""; 0]);
    assert_eq!(of(&tree, "sdb"), [""; 0]);
}

#[test]
fn a_mounted_disk_is_a_user_of_its_partitions() {
    let tree = mounting("41 27 8:0 / /data rw - xfs /dev/root rw");
    assert_eq!(of(&tree, "sda1"), ["its disk sda is mounted at /data"]);
}

#[test]
fn a_mount_with_an_anonymous_number_is_found_by_its_source() {
    let line = |source: &str| mounting(&format!("41 27 0:40 /@ /btrfs rw - btrfs {source} rw,space_cache"));
    assert_eq!(of(&line("/dev/sda2"), "sda"), ["partition sda2 is mounted at /btrfs"]);
    let link = line("/dev/mapper/home").file("/dev/sda2", "").link("/dev/mapper/home", "../sda2");
    assert_eq!(of(&link, "sda2"), ["it is mounted at /btrfs"]);
    // `sda2` is no part of `sda22`, and no device of an overlay of that name.
    assert_eq!(of(&line("/dev/sda22"), "sda2"), [""; 0]);
    assert_eq!(of(&line("sda2"), "sda2"), [""; 0]);
}

#[test]
fn further_devices_of_a_mount_are_found() {
    let log = mounting("41 27 9:0 / /data rw - xfs /dev/md0 rw,logdev=/dev/sda1,noquota");
    assert_eq!(of(&log, "sda1"), ["it is mounted at /data"]);
    let joined = mounting("41 27 0:41 / /data rw - bcachefs /dev/sda1:/dev/sdb rw");
    assert_eq!(of(&joined, "sdb"), ["it is mounted at /data"]);
    let btrfs = idle().folder("/sys/fs/btrfs/features").file("/sys/fs/btrfs/0c1d-2e/devices/sdb", "");
    assert_eq!(of(&btrfs, "sdb"), ["it is part of a mounted btrfs file system"]);
    assert_eq!(of(&btrfs, "sda"), [""; 0]);
}

#[test]
fn a_mount_that_only_another_namespace_has_is_found() {
    let tree = idle().folder("/sys/fs/ext4/features").folder("/sys/fs/ext4/sda1");
    assert_eq!(of(&tree, "sda"), ["partition sda1 is part of a mounted ext4 file system"]);
    let tree = tree.file("/proc/1/mountinfo", "41 27 8:1 / /srv rw - ext4 /dev/sda1 rw\n");
    assert_eq!(of(&tree, "sda"), ["partition sda1 is mounted at /srv"]);
}

#[test]
fn many_mount_points_are_counted() {
    let lines = |n: usize| (0..n).map(|i| format!("4{i} 27 8:16 / /m{i} rw - ext4 /dev/sdb rw\n")).collect::<String>();
    assert_eq!(of(&mounting(&lines(3)), "sdb"), ["it is mounted at /m0, /m1, /m2"]);
    assert_eq!(of(&mounting(&lines(4)), "sdb"), ["it is mounted at /m0, /m1, /m2 and 1 more place"]);
    assert_eq!(of(&mounting(&lines(9)), "sdb"), ["it is mounted at /m0, /m1, /m2 and 6 more places"]);
    let twice = "41 27 8:16 / /m rw - ext4 /dev/sdb rw\n42 41 8:16 / /m rw - ext4 /dev/sdb rw\n";
    assert_eq!(of(&mounting(twice), "sdb"), ["it is mounted at /m"]);
}

#[test]
fn escapes_are_decoded_and_nothing_reaches_the_terminal_raw() {
    let tree = mounting(r"41 27 8:16 / /my\040disk\012\134x rw - ext4 /dev/sdb rw");
    assert_eq!(of(&tree, "sdb"), [r"it is mounted at /my disk\n\x"]);
    assert_eq!(unescape(br"\040\134040\"), br" \040\");
    assert_eq!(unescape(br"\9\04\400\377"), b"\\9\\04\\400\xff");
}

#[test]
fn a_mount_point_that_is_not_text_hides_no_mount() {
    let tree =
        idle().bytes("/proc/self/mountinfo", b"1 1 8:16 / /a\xff rw - ext4 /dev/sdb rw\n2 1 8:1 / /b rw - ext4  rw\n");
    assert_eq!(of(&tree, "sdb"), ["it is mounted at /a\u{fffd}"]);
    assert_eq!(of(&tree, "sda1"), ["it is mounted at /b"]);
}

#[test]
fn unknown_mounts_are_no_clean_answer() {
    let tree = Tree::new().disk("pci", "sda", "8:0");
    assert_eq!(of(&tree, "sda"), ["/proc/self/mountinfo can't be read, so nobody knows whether it is mounted"]);
}

#[test]
fn swap_space_is_found_by_path_and_link() {
    let tree = swapping("/dev/sda1");
    assert_eq!(of(&tree, "sda1"), ["it is swap space (/proc/swaps)"]);
    assert_eq!(of(&tree, "sda"), ["partition sda1 is swap space (/proc/swaps)"]);
    assert_eq!(of(&tree, "sda2"), [""; 0]);
    let link = swapping(r"/dev/my\040swap").file("/dev/sdb", "").link("/dev/my swap", "sdb");
    assert_eq!(of(&link, "sdb"), ["it is swap space (/proc/swaps)"]);
}

#[test]
fn holders_are_named_with_the_name_that_people_know() {
    let tree = idle()
        .folder(&format!("{SDA}/sda2/holders/dm-0"))
        .file("/sys/block/dm-0/dm/name", "vg-root\n")
        .folder(&format!("{SDA}/holders/md0"))
        .folder("/sys/devices/pci/block/sdb/bcache");
    assert_eq!(of(&tree, "sda2"), ["dm-0 (vg-root) is built on sda2", "md0 is built on sda"]);
    assert_eq!(of(&tree, "sda"), ["md0 is built on sda", "dm-0 (vg-root) is built on sda2"]);
    assert_eq!(of(&tree, "sda1"), ["md0 is built on sda"]);
    assert_eq!(of(&tree, "sdb"), ["bcache is built on sdb"]);
}

#[test]
fn hidden_paths_of_a_multipath_device_are_no_users() {
    let tree = idle().folder("/sys/devices/pci/block/sdb/holders/nvme0c0n1").file("/sys/block/nvme0c0n1/hidden", "1\n");
    assert_eq!(of(&tree, "sdb"), [""; 0]);
}

#[test]
fn loop_devices_and_targets_are_users_of_what_they_work_on() {
    let nvmet = "/sys/kernel/config/nvmet/subsystems/nqn.test/namespaces";
    let scsi = "/sys/kernel/config/target/core/iblock_0";
    let tree = idle()
        .file("/sys/block/loop0/loop/backing_file", "/dev/sda2\n")
        .file(&format!("{nvmet}/1/device_path"), "/dev/sdb\n")
        .file(&format!("{nvmet}/1/enable"), "1\n")
        .file(&format!("{nvmet}/2/device_path"), "/dev/sda1\n")
        .file(&format!("{nvmet}/2/enable"), "0\n")
        .file(&format!("{scsi}/disk/udev_path"), "/dev/sdb\n")
        .file(&format!("{scsi}/disk/enable"), "1\n");
    assert_eq!(of(&tree, "sda"), ["loop0 is backed by sda2"]);
    assert_eq!(of(&tree, "sdb"), ["the NVMe target nqn.test exports sdb", "the SCSI target iblock_0/disk exports sdb"]);
    assert_eq!(of(&tree, "sda1"), [""; 0]);
}

#[test]
fn files_are_in_use_as_swap_and_as_disks() {
    let tree = swapping(r"/var/swap\040file")
        .file("/sys/block/loop0/loop/backing_file", "/images/a b \n")
        .file("/sys/block/loop1/loop/backing_file", "/images/gone (deleted)\n");
    let of = |path: &str| file_users(&tree.sysfs(), Path::new(path));
    assert_eq!(of("/var/swap file"), ["it is a swap file (/proc/swaps)"]);
    assert_eq!(of("/images/a b "), ["loop0 is backed by it"]);
    assert_eq!(of("/images/a b"), [""; 0]);
    assert_eq!(of("/images/other"), [""; 0]);
}

#[test]
fn another_path_to_a_file_in_use_is_found() {
    let tree = swapping("/swap").file("/swap", "").file("/other", "");
    let sysfs = tree.sysfs();
    std::fs::hard_link(sysfs.path("/swap"), sysfs.path("/link")).unwrap();
    assert_eq!(file_users(&sysfs, Path::new("/link")), ["it is a swap file (/proc/swaps)"]);
    assert_eq!(file_users(&sysfs, Path::new("/other")), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn odd_lines_neither_panic_nor_hide_the_others(
        odd in prop_oneof!["\\PC{0,60}", "[-0-9:/ a\\\\]{0,60}", "( -){0,9}( [0-9]{0,24}:[0-9]{0,24}){0,9}"]
    ) {
        let mount = "41 27 8:16 / /data rw - ext4 /dev/sdb rw";
        let odd_then = format!("{odd}\n{mount}\n{odd}\n");
        let swaps = format!("{odd}\n/dev/sdb partition 1 0 -2\n{odd}\n");
        let tree = mounting(&odd_then).file("/proc/swaps", &swaps).file("/sys/block/loop0/loop/backing_file", &odd);
        let clauses = of(&tree, "sdb");
        prop_assert!(clauses.iter().any(|clause| clause.starts_with("it is mounted at /data")), "{:?}", clauses);
        prop_assert!(clauses.contains(&"it is swap space (/proc/swaps)".to_string()), "{:?}", clauses);
        let _ = file_users(&tree.sysfs(), Path::new(&odd));
    }

    #[test]
    fn any_bytes_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let escaped: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        prop_assert_eq!(unescape(escaped.as_bytes()), bytes.clone());
        prop_assert!(!printable(&unescape(&bytes)).contains(char::is_control));
    }
}

#[test]
fn the_device_of_the_root_folder_is_mounted() {
    let device = std::fs::metadata("/").unwrap().dev();
    let (major, minor) = (major(device) as u32, minor(device) as u32);
    let sysfs = Sysfs::default();
    let Some(found) = BlockDevice::by_number(&sysfs, major, minor) else {
        eprintln!("skipped: / is on {major}:{minor}, which is no block device");
        return;
    };
    let clauses = users(&sysfs, &found);
    assert!(clauses.iter().any(|clause| clause.starts_with("it is mounted at ")), "{found:?}: {clauses:?}");
}
