//! Tests of `rdma`, apart for the length of their trees.

use super::*;
use crate::host::fake::Tree;

const RXE: &str = "/sys/class/infiniband/rxe0";
const IPV4: &str = "0000:0000:0000:0000:0000:ffff:0a00:0001";
const LINK_LOCAL: &str = "fe80:0000:0000:0000:5054:00ff:fe12:3456";
const UNIQUE_LOCAL: &str = "fd00:0000:0000:0000:0000:0000:0000:0001";
const ZERO: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

fn with_port(tree: Tree, device: &str, link_layer: &str, gids: &[(u32, &str, &str)]) -> Tree {
    let port = format!("{device}/ports/1");
    let tree = tree
        .file(&format!("{port}/state"), "4: ACTIVE\n")
        .file(&format!("{port}/phys_state"), "5: LinkUp\n")
        .file(&format!("{port}/link_layer"), &format!("{link_layer}\n"))
        .file(&format!("{port}/rate"), "100 Gb/sec (4X EDR)\n")
        .file(&format!("{port}/lid"), "0x0\n");
    gids.iter().fold(tree, |tree, (index, address, gid_type)| {
        tree.file(&format!("{port}/gids/{index}"), &format!("{address}\n"))
            .file(&format!("{port}/gid_attrs/types/{index}"), &format!("{gid_type}\n"))
            .file(&format!("{port}/gid_attrs/ndevs/{index}"), "eth0\n")
    })
}

fn rxe(gids: &[(u32, &str, &str)]) -> Tree {
    with_port(Tree::new().file(&format!("{RXE}/node_type"), "1: CA\n"), RXE, "Ethernet", gids)
}

fn chosen(gids: &[(u32, &str, &str)], local_ip: Option<&str>, wanted: Option<GidType>) -> Option<u32> {
    let devices = devices(&rxe(gids).sysfs());
    let local_ip = local_ip.map(|ip| ip.parse().unwrap());
    choose_gid(&devices[0].ports[0], local_ip, wanted).map(|gid| gid.index)
}

#[test]
fn a_machine_without_rdma_is_told_apart_by_what_is_missing() {
    let class = "/sys/class/infiniband";
    assert_eq!(support(&Tree::new().sysfs()), RdmaSupport::NoKernelSupport);
    assert_eq!(support(&Tree::new().folder(class).sysfs()), RdmaSupport::NoDevices);
    let two = Tree::new().folder(&format!("{class}/mlx5_0")).folder(&format!("{class}/mlx5_1"));
    assert_eq!(support(&two.sysfs()), RdmaSupport::NoUserAccess);
    let two = two.file("/sys/class/infiniband_verbs/abi_version", "6\n").file("/dev/infiniband/rdma_cm", "");
    assert_eq!(support(&two.sysfs()), RdmaSupport::NoUserAccess);
    let two = two.file("/dev/infiniband/uverbs1", "");
    assert_eq!(support(&two.sysfs()), RdmaSupport::Devices(2));
    assert_eq!(user_access(&two.sysfs()), ["uverbs1"]);
}

#[test]
fn this_machine_answers_for_itself() {
    let sysfs = Sysfs::default();
    let count = devices(&sysfs).len();
    match support(&sysfs) {
        RdmaSupport::Devices(n) => assert_eq!(n, count),
        RdmaSupport::NoUserAccess => assert!(count > 0),
        RdmaSupport::NoDevices | RdmaSupport::NoKernelSupport => assert_eq!(count, 0),
    }
}

#[test]
fn a_hardware_device_is_read_with_its_place() {
    let device = "/sys/class/infiniband/mlx5_0";
    let tree = Tree::new()
        .file(&format!("{device}/node_type"), "1: CA\n")
        .file(&format!("{device}/node_guid"), "506b:4b03:00c2:7a1e\n")
        .file(&format!("{device}/fw_ver"), "16.35.2000\n")
        .file(&format!("{device}/device/numa_node"), "1\n")
        .file(&format!("{device}/device/local_cpulist"), "8-15\n")
        .link(&format!("{device}/device/driver"), "../../../../bus/pci/drivers/mlx5_core")
        .folder(&format!("{device}/device/net/enp1s0f0"));
    let tree = with_port(tree, device, "InfiniBand", &[(0, LINK_LOCAL, "IB/RoCE v1")]);
    let found = devices(&tree.sysfs()).remove(0);
    assert_eq!(found.name, "mlx5_0");
    assert_eq!(found.node_guid.as_deref(), Some("506b:4b03:00c2:7a1e"));
    assert_eq!(found.fw_ver.as_deref(), Some("16.35.2000"));
    assert_eq!(found.driver.as_deref(), Some("mlx5_core"));
    assert_eq!(found.numa_node, Some(1));
    assert_eq!(found.local_cpus, "8-15".parse().ok());
    assert_eq!(found.netdevs, ["enp1s0f0", "eth0"]);
    let port = &found.ports[0];
    assert!(port.is_active() && !found.is_iwarp());
    assert_eq!((port.state.as_deref(), port.phys_state.as_deref()), (Some("4: ACTIVE"), Some("5: LinkUp")));
    assert_eq!((port.rate.as_deref(), port.lid.as_deref()), (Some("100 Gb/sec (4X EDR)"), Some("0x0")));
    assert_eq!(port.gids[0].gid_type, GidType::Ib);
}

#[test]
fn a_software_device_is_near_its_network_device() {
    let tree = rxe(&[(0, IPV4, "RoCE v2")])
        .file(&format!("{RXE}/parent"), "eth0\n")
        .file("/sys/class/net/eth0/device/numa_node", "0\n")
        .file("/sys/devices/system/node/node0/cpulist", "0-3\n");
    let found = devices(&tree.sysfs()).remove(0);
    assert_eq!((found.driver, found.fw_ver), (None, None));
    assert_eq!(found.netdevs, ["eth0"]);
    assert_eq!((found.numa_node, found.local_cpus), (Some(0), "0-3".parse().ok()));
}

#[test]
fn node_minus_one_is_no_node() {
    let tree = rxe(&[]).file(&format!("{RXE}/device/numa_node"), "-1\n");
    let found = devices(&tree.sysfs()).remove(0);
    assert_eq!((found.numa_node, found.local_cpus), (None, None));
}

#[test]
fn a_device_without_files_is_a_name() {
    let found = devices(&Tree::new().folder(&format!("{RXE}/ports/x")).folder(&format!("{RXE}/ports/2")).sysfs());
    assert_eq!((found.len(), found[0].name.as_str(), found[0].ports.len()), (1, "rxe0", 1));
    assert!(!found[0].ports[0].is_active());
    assert_eq!(choose_gid(&found[0].ports[0], None, None), None);
}

#[test]
fn an_iwarp_device_is_known_by_its_node_type() {
    let tree = Tree::new().file("/sys/class/infiniband/siw0/node_type", "4: RNIC\n");
    assert!(devices(&tree.sysfs())[0].is_iwarp());
}

#[test]
fn holes_in_the_gid_table_are_skipped() {
    let tree = rxe(&[(0, ZERO, "RoCE v2"), (2, LINK_LOCAL, "RoCE v2"), (10, IPV4, "IB/RoCE v1"), (11, "x", "RoCE v2")])
        .file(&format!("{RXE}/ports/1/gids/3"), IPV4)
        .file(&format!("{RXE}/ports/1/gids/y"), IPV4);
    let found = devices(&tree.sysfs()).remove(0);
    let gids: Vec<_> = found.ports[0].gids.iter().map(|gid| (gid.index, gid.to_string(), gid.gid_type)).collect();
    assert_eq!(
        gids,
        [(2, "fe80::5054:ff:fe12:3456".into(), GidType::RoceV2), (10, "::ffff:10.0.0.1".into(), GidType::RoceV1)]
    );
    assert_eq!(found.ports[0].gids[0].netdev.as_deref(), Some("eth0"));
}

#[test]
fn the_gid_of_the_local_address_is_chosen_in_its_second_version() {
    let other = "0000:0000:0000:0000:0000:ffff:0a00:0002";
    let gids = [
        (0, LINK_LOCAL, "IB/RoCE v1"),
        (1, LINK_LOCAL, "RoCE v2"),
        (2, IPV4, "IB/RoCE v1"),
        (3, IPV4, "RoCE v2"),
        (4, other, "RoCE v2"),
        (5, UNIQUE_LOCAL, "RoCE v2"),
    ];
    assert_eq!(chosen(&gids, Some("10.0.0.2"), None), Some(4));
    assert_eq!(chosen(&gids, Some("::ffff:10.0.0.2"), None), Some(4));
    assert_eq!(chosen(&gids, Some("fd00::1"), None), Some(5));
    assert_eq!(chosen(&gids, Some("fe80::5054:ff:fe12:3456"), None), Some(1));
    assert_eq!(chosen(&gids, Some("192.168.0.1"), None), Some(3));
    assert_eq!(chosen(&gids, Some("10.0.0.1"), Some(GidType::RoceV1)), Some(2));
    assert_eq!(chosen(&gids, None, None), Some(3));
    assert_eq!(chosen(&gids, None, Some(GidType::Ib)), None);
}

#[test]
fn without_ipv4_a_routable_address_comes_before_a_link_local_one_and_that_before_version_one() {
    let gids = [(0, IPV4, "IB/RoCE v1"), (1, LINK_LOCAL, "RoCE v2"), (2, UNIQUE_LOCAL, "RoCE v2")];
    assert_eq!(chosen(&gids, None, None), Some(2));
    assert_eq!(chosen(&gids[..2], None, None), Some(1));
    assert_eq!(chosen(&gids[..1], None, None), Some(0));
    assert_eq!(chosen(&[], None, None), None);
}

#[test]
fn on_infiniband_the_first_gid_is_chosen() {
    let gids = [(0, LINK_LOCAL, "IB/RoCE v1"), (1, UNIQUE_LOCAL, "IB/RoCE v1")];
    let tree = with_port(Tree::new(), RXE, "InfiniBand", &gids);
    let found = devices(&tree.sysfs()).remove(0);
    let gid = choose_gid(&found.ports[0], "fd00::1".parse().ok(), None).unwrap();
    assert_eq!((gid.index, gid.gid_type), (0, GidType::Ib));
    assert_eq!(GidType::Ib.to_string(), "InfiniBand");
}
