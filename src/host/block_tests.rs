//! Tests of `block`, apart for the length of their trees.

use super::*;
use crate::host::fake::Tree;
use proptest::prelude::*;

const SCSI: &str = "pci0000:00/0000:00:05.0/host3/target3:0:0/3:0:0:0";
const SDA: &str = "/sys/devices/pci0000:00/0000:00:05.0/host3/target3:0:0/3:0:0:0/block/sda";
const NVME: &str = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";

/// A SCSI disk with one partition, and every file that facts are read from.
fn sda() -> Tree {
    let tree = Tree::new().disk(SCSI, "sda", "8:0").partition(SCSI, "sda", "sda1", "8:1");
    let queue = [
        ("physical_block_size", "4096"),
        ("rotational", "0"),
        ("scheduler", "none [mq-deadline] kyber"),
        ("io_poll", "0"),
        ("max_sectors_kb", "1280"),
        ("max_hw_sectors_kb", "32767"),
        ("max_segments", "168"),
        ("write_cache", "write back"),
    ];
    let tree = queue.into_iter().fold(tree, |tree, (file, text)| tree.file(&format!("{SDA}/queue/{file}"), text));
    let device = SDA.trim_end_matches("/block/sda");
    tree.link(&format!("{SDA}/device"), "../../../3:0:0:0")
        .link(&format!("{device}/driver"), "../../../../../../bus/scsi/drivers/sd")
        .file(&format!("{device}/model"), "RAMDISK-MCP     \n")
        .file("/sys/devices/pci0000:00/0000:00:05.0/numa_node", "1\n")
        .file("/sys/class/scsi_host/host3/proc_name", "ib_srp\n")
        .folder("/sys/class/srp_host/host3")
}

fn software(name: &str, number: &str) -> BlockDevice {
    BlockDevice::by_name(&Tree::new().disk("virtual", name, number).sysfs(), name).unwrap()
}

#[test]
fn a_scsi_disk_is_read_whole() {
    let expected = BlockDevice {
        name: "sda".into(),
        disk: "sda".into(),
        major: 8,
        minor: 0,
        size_bytes: 1 << 30,
        start_bytes: 0,
        logical_block_bytes: 512,
        physical_block_bytes: Some(4096),
        read_only: false,
        removable: false,
        rotational: Some(false),
        scheduler: Some("mq-deadline".into()),
        poll_queues: false,
        max_transfer_bytes: Some(1280 << 10),
        max_hw_transfer_bytes: Some(32767 << 10),
        max_segments: Some(168),
        driver: Some("sd".into()),
        model: Some("RAMDISK-MCP".into()),
        numa_node: Some(1),
        memory_backed: false,
        transport: Some("srp".into()),
        write_cache: Some("write back".into()),
    };
    let tree = sda();
    assert_eq!(BlockDevice::by_name(&tree.sysfs(), "sda").as_ref(), Some(&expected));
    assert_eq!(BlockDevice::by_number(&tree.sysfs(), 8, 0).as_ref(), Some(&expected));
    let text = serde_json::to_string(&expected).unwrap();
    assert_eq!(serde_json::from_str::<BlockDevice>(&text).unwrap(), expected);
}

#[test]
fn a_partition_has_its_own_place_and_the_facts_of_its_disk() {
    let tree = sda();
    let disk = BlockDevice::by_name(&tree.sysfs(), "sda").unwrap();
    let part = BlockDevice::by_number(&tree.sysfs(), 8, 1).unwrap();
    let expected =
        BlockDevice { name: "sda1".into(), minor: 1, size_bytes: 1 << 20, start_bytes: 1 << 20, ..disk.clone() };
    assert_eq!(part, expected);
    assert!(part.is_partition() && !disk.is_partition());
    assert_eq!(partitions(&tree.sysfs(), "sda"), ["sda1"]);
}

#[test]
fn a_partition_of_a_read_only_disk_is_read_only() {
    let tree = sda().file(&format!("{SDA}/ro"), "1\n");
    assert!(BlockDevice::by_name(&tree.sysfs(), "sda1").unwrap().read_only);
    let tree = sda().file(&format!("{SDA}/sda1/ro"), "1\n");
    assert!(BlockDevice::by_name(&tree.sysfs(), "sda1").unwrap().read_only);
    assert!(!BlockDevice::by_name(&tree.sysfs(), "sda").unwrap().read_only);
}

#[test]
fn what_is_not_shown_is_none() {
    let found = software("sdz", "65:144");
    assert_eq!((found.physical_block_bytes, found.rotational, found.scheduler), (None, None, None));
    assert_eq!((found.max_transfer_bytes, found.max_hw_transfer_bytes, found.max_segments), (None, None, None));
    assert_eq!((found.driver, found.model, found.numa_node), (None, None, None));
    assert_eq!((found.transport, found.write_cache, found.poll_queues), (None, None, false));
}

#[test]
fn drivers_without_hardware_are_told_by_name() {
    let cases = [
        ("nullb0", "null_blk", true),
        ("ram3", "brd", true),
        ("zram0", "zram", true),
        ("loop7", "loop", false),
        ("dm-12", "dm", false),
        ("md127", "md", false),
        ("nvme1n1", "nvme", false),
    ];
    for (name, driver, memory_backed) in cases {
        let found = software(name, "259:3");
        assert_eq!((found.driver.as_deref(), found.memory_backed), (Some(driver), memory_backed), "{name}");
    }
}

#[test]
fn a_null_block_device_of_any_name_is_told_by_its_major_number() {
    let devices = "Character devices:\n251 nvme\n\nBlock devices:\n  8 sd\n251 nullb\n259 blkext\n";
    let tree = Tree::new().disk("virtual", "scratch", "251:0").file("/proc/devices", devices);
    let found = BlockDevice::by_name(&tree.sysfs(), "scratch").unwrap();
    assert_eq!((found.driver.as_deref(), found.memory_backed), (Some("null_blk"), true));
}

#[test]
fn a_simulated_scsi_disk_is_memory() {
    let tree = sda().file("/sys/class/scsi_host/host3/proc_name", "scsi_debug\n");
    assert!(BlockDevice::by_name(&tree.sysfs(), "sda").unwrap().memory_backed);
}

#[test]
fn scsi_transports_are_told_by_the_host_or_the_way_to_it() {
    let way = |place: &str, class: Option<&str>, driver: &str| {
        let tree = Tree::new().disk(place, "sdb", "8:16").file("/sys/class/scsi_host/host4/proc_name", driver);
        let device = format!("/sys/devices/{place}/block/sdb/device");
        let tree = tree.link(&device, "../..");
        let tree = if let Some(class) = class { tree.folder(&format!("/sys/class/{class}/host4")) } else { tree };
        BlockDevice::by_name(&tree.sysfs(), "sdb").unwrap().transport
    };
    let plain = "platform/host4/session1/target4:0:0/4:0:0:1";
    assert_eq!(way(plain, Some("iscsi_host"), "iscsi_tcp").as_deref(), Some("iscsi"));
    assert_eq!(way(plain, Some("iscsi_host"), "iscsi_iser").as_deref(), Some("iser"));
    assert_eq!(
        way("pci/host3/vport-3:0-0/host4/rport-4:0-1/target4:0:1/4:0:1:0", Some("fc_host"), "qla2xxx").as_deref(),
        Some("fc")
    );
    assert_eq!(way("pci/ata1/host4/target4:0:0/4:0:0:0", None, "ahci").as_deref(), Some("ata"));
    assert_eq!(way("pci/usb2/2-1/2-1:1.0/host4/target4:0:0/4:0:0:0", None, "usb-storage").as_deref(), Some("usb"));
    assert_eq!(way("pci/virtio1/host4/target4:0:0/4:0:0:0", None, "").as_deref(), None);
}

#[test]
fn an_nvme_namespace_takes_transport_and_driver_from_its_controller() {
    let place = "pci0000:00/0000:00:04.0/nvme/nvme0";
    let controller = format!("/sys/devices/{place}");
    let tree = Tree::new()
        .disk(place, "nvme0n1", "259:0")
        .link(&format!("{controller}/block/nvme0n1/device"), "../../../nvme0")
        .link(&format!("{controller}/device"), "../../../0000:00:04.0")
        .link("/sys/devices/pci0000:00/0000:00:04.0/driver", "../../../bus/pci/drivers/nvme")
        .file("/sys/devices/pci0000:00/0000:00:04.0/numa_node", "-1\n")
        .file(&format!("{controller}/transport"), "pcie\n")
        .file(&format!("{controller}/numa_node"), "0\n")
        .file(&format!("{controller}/block/nvme0n1/queue/io_poll"), "1\n");
    let found = BlockDevice::by_name(&tree.sysfs(), "nvme0n1").unwrap();
    assert_eq!((found.transport.as_deref(), found.driver.as_deref()), (Some("pcie"), Some("nvme")));
    assert_eq!((found.numa_node, found.poll_queues), (Some(0), true));
}

fn multipath(transports: [&str; 2]) -> Tree {
    let tree = Tree::new().disk("virtual/nvme-subsystem/nvme-subsys0", "nvme0n1", "259:1");
    let tree = tree.link(&format!("{NVME}/block/nvme0n1/device"), "../../../nvme-subsys0");
    transports.into_iter().enumerate().fold(tree, |tree, (number, transport)| {
        let controller = format!("/sys/devices/virtual/nvme-fabrics/ctl/nvme{number}");
        tree.file(&format!("{controller}/transport"), transport)
            .file(&format!("{controller}/numa_node"), &number.to_string())
            .link(&format!("{NVME}/nvme{number}"), &format!("../../nvme-fabrics/ctl/nvme{number}"))
    })
}

#[test]
fn a_multipath_namespace_has_the_facts_that_its_paths_agree_on() {
    let facts = |tree: Tree| {
        let found = BlockDevice::by_name(&tree.sysfs(), "nvme0n1").unwrap();
        (found.transport, found.numa_node, found.driver)
    };
    assert_eq!(facts(multipath(["rdma", "rdma"])), (Some("rdma".into()), None, Some("nvme".into())));
    assert_eq!(facts(multipath(["rdma", "tcp"])), (None, None, Some("nvme".into())));
}

#[test]
fn a_hidden_path_is_no_device() {
    let hidden = "/sys/devices/virtual/nvme0/nvme0c0n1";
    let tree = Tree::new().file(&format!("{hidden}/hidden"), "1\n").file(&format!("{hidden}/size"), "2048\n");
    let tree = tree.link("/sys/class/block/nvme0c0n1", "../../devices/virtual/nvme0/nvme0c0n1");
    assert_eq!(BlockDevice::by_name(&tree.sysfs(), "nvme0c0n1"), None);
}

#[test]
fn names_with_slashes_are_found_and_given_as_below_dev() {
    let tree = Tree::new().disk("pci", "cciss!c0d0", "104:0").partition("pci", "cciss!c0d0", "cciss!c0d0p1", "104:1");
    let part = BlockDevice::by_name(&tree.sysfs(), "cciss/c0d0p1").unwrap();
    assert_eq!((part.name.as_str(), part.disk.as_str()), ("cciss/c0d0p1", "cciss/c0d0"));
    assert_eq!(partitions(&tree.sysfs(), "cciss/c0d0"), ["cciss/c0d0p1"]);
}

#[test]
fn names_that_lead_elsewhere_find_nothing() {
    for name in ["", ".", "..", "../block/sda", "/sda", "sdb", "sda\0"] {
        assert_eq!(BlockDevice::by_name(&sda().sysfs(), name), None, "{name:?}");
        assert_eq!(of_sg(&sda().sysfs(), name).unwrap_err().exit_code(), 2, "{name:?}");
    }
}

#[test]
fn scsi_nodes_lead_to_their_disks() {
    let tree = sda()
        .link("/sys/class/scsi_generic/sg3/device", &format!("../../../devices/{SCSI}"))
        .link("/sys/class/bsg/3:0:0:0/device", &format!("../../../devices/{SCSI}"))
        .folder("/sys/class/scsi_generic/sg4/device/scsi_tape")
        .folder("/sys/class/bsg/host3");
    let sysfs = tree.sysfs();
    assert_eq!(of_sg(&sysfs, "sg3").unwrap().as_deref(), Some("sda"));
    assert_eq!(of_bsg(&sysfs, "3:0:0:0").unwrap().as_deref(), Some("sda"));
    assert_eq!(of_sg(&sysfs, "sg4").unwrap(), None);
    assert_eq!(of_bsg(&sysfs, "host3").unwrap(), None);
    let message = of_sg(&sysfs, "sg5").unwrap_err().to_string();
    assert_eq!(message, "sg5: there is no such SCSI generic device in /sys/class/scsi_generic");
}

#[test]
fn nvme_generic_nodes_lead_to_namespaces_that_have_a_block_device() {
    let sysfs = multipath(["tcp", "tcp"]);
    let sysfs = sysfs.sysfs();
    assert_eq!(of_nvme_generic(&sysfs, "ng0n1").as_deref(), Some("nvme0n1"));
    for name in ["ng0n2", "ng0", "ngn1", "ng0n", "nvme0n1", "ng0n1/..", "ng+0n1", ""] {
        assert_eq!(of_nvme_generic(&sysfs, name), None, "{name:?}");
    }
}

#[test]
fn the_scheduler_in_brackets_is_the_one_in_use() {
    for (list, chosen) in [
        ("[none] mq-deadline", Some("none")),
        ("none [kyber]", Some("kyber")),
        ("none", Some("none")),
        ("none kyber", None),
        ("", None),
    ] {
        assert_eq!(chosen_scheduler(list).as_deref(), chosen, "{list}");
    }
}

#[test]
fn sizes_that_make_no_sense_are_no_device() {
    for (file, text) in [
        ("size", "-1"),
        ("size", "18446744073709551615"),
        ("dev", "8"),
        ("dev", "8:x"),
        ("queue/logical_block_size", "0"),
    ] {
        let tree = sda().file(&format!("{SDA}/{file}"), text);
        assert_eq!(BlockDevice::by_name(&tree.sysfs(), "sda"), None, "{file} {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_content_panics(
        text in prop_oneof!["\\PC{0,20}", "[0-9:\\[\\] ]{0,20}", "[0-9]{1,24}"],
        file in prop::sample::select(vec!["dev", "size", "ro", "sda1/start", "queue/scheduler", "queue/max_sectors_kb"]),
    ) {
        let tree = sda().file(&format!("{SDA}/{file}"), &text).file("/proc/devices", &format!("Block devices:\n{text}\n"));
        let sysfs = tree.sysfs();
        let _ = (BlockDevice::by_name(&sysfs, "sda1"), BlockDevice::by_name(&sysfs, "sda"));
        let _ = (BlockDevice::by_name(&sysfs, &text), of_sg(&sysfs, &text), of_nvme_generic(&sysfs, &text));
    }
}

#[test]
fn every_block_device_of_this_machine_is_read() {
    let sysfs = Sysfs::default();
    for name in sysfs.names(CLASS).unwrap_or_default() {
        // A hidden path has no number, and a device may go at any time.
        let Some((major, minor)) = number(&sysfs, &folder(&name)) else { continue };
        let found = BlockDevice::by_name(&sysfs, &name);
        if !sysfs.exists(&folder(&name)) {
            continue;
        }
        let found = found.unwrap_or_else(|| panic!("{name} is not read"));
        assert_eq!((found.major, found.minor), (major, minor), "{name}");
        assert_eq!(BlockDevice::by_number(&sysfs, major, minor), Some(found), "{name}");
    }
}
