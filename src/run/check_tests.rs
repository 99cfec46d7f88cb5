//! Tests of `check` on fake trees.

use super::*;
use crate::host::{fake::Tree, memory::Hugepages};

const CPU: &str = "/sys/devices/system/cpu";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
const PORT: &str = "/sys/class/infiniband/rxe0/ports/1";
const IPV4: &str = "0000:0000:0000:0000:0000:ffff:0a00:0001";
const LINK_LOCAL: &str = "fe80:0000:0000:0000:5054:00ff:fe12:3456";

fn findings(tree: &Tree, area: &str) -> Vec<Finding> {
    let all = inspect(&System::read(tree.sysfs()));
    all.into_iter().filter(|finding| finding.area == area).collect()
}

fn only(tree: &Tree, area: &str) -> (Status, String, String) {
    let mut found = findings(tree, area);
    assert_eq!(found.len(), 1, "{found:?}");
    let Finding { status, message, fix, .. } = found.remove(0);
    (status, message, fix.unwrap_or_default())
}

fn netdev(tree: Tree, name: &str, state: &str, kind: &str) -> Tree {
    let folder = format!("/sys/class/net/{name}");
    tree.file(&format!("{folder}/operstate"), state).file(&format!("{folder}/type"), kind)
}

fn rxe(state: &str, link_layer: &str, gid: Option<(&str, &str)>) -> Tree {
    let tree = Tree::new()
        .file("/sys/class/infiniband_verbs/abi_version", "6")
        .file("/dev/infiniband/uverbs0", "")
        .file("/sys/class/infiniband/rxe0/parent", "eth0")
        .file(&format!("{PORT}/state"), state)
        .file(&format!("{PORT}/phys_state"), "3: Disabled")
        .file(&format!("{PORT}/link_layer"), link_layer);
    match gid {
        Some((address, kind)) => {
            tree.file(&format!("{PORT}/gids/1"), address).file(&format!("{PORT}/gid_attrs/types/1"), kind)
        }
        None => tree,
    }
}

fn memory(memlock_bytes: Option<u64>, memlock_enforced: bool) -> Memory {
    Memory { memlock_bytes, memlock_enforced, ..Memory::read(&Tree::new().sysfs()) }
}

#[test]
fn without_rdma_the_commands_for_soft_roce_name_the_first_device_that_is_up() {
    let (status, message, fix) = only(&Tree::new(), "rdma");
    assert_eq!(status, Status::Problem);
    assert!(fix.ends_with("netdev <netdev>") && message.contains("scripts/lab"), "{fix}");
    let tree = netdev(Tree::new().folder("/sys/class/infiniband"), "lo", "unknown", "772");
    let tree = netdev(netdev(netdev(tree, "br0", "up", "1"), "eth0", "down", "1"), "ib0", "up", "32");
    let (_, message, fix) = only(&tree, "rdma");
    assert!(message.contains("no RDMA device"));
    assert_eq!(fix, "modprobe -a rdma_rxe ib_uverbs rdma_ucm; rdma link add rxe0 type rxe netdev br0");
    let tree = netdev(tree, "eth1", "up", "1").folder("/sys/class/net/eth1/device");
    assert!(only(&tree, "rdma").2.ends_with("netdev eth1"));
}

#[test]
fn devices_that_can_not_be_opened_are_a_problem_with_its_cause() {
    let tree = Tree::new().folder("/sys/class/infiniband/mlx5_0");
    assert_eq!(only(&tree, "rdma").2, "modprobe ib_uverbs");
    let tree = tree.file("/sys/class/infiniband_verbs/abi_version", "6");
    assert!(only(&tree, "rdma").1.contains("container"));
    let tree = tree.folder("/dev/infiniband");
    assert!(only(&tree, "rdma").2.starts_with("chmod"));
    let tree = tree.file("/dev/infiniband/uverbs0", "");
    assert_eq!(only(&tree, "rdma").0, Status::Ok);
    let tree = tree.folder("/sys/class/infiniband/mlx5_1");
    assert_eq!(only(&tree, "rdma").0, Status::Advice);
    let tree = tree.file("/dev/infiniband/uverbs1", "");
    assert!(only(&tree, "rdma").1.starts_with("2 devices"));
}

#[test]
fn a_port_that_is_down_is_named_with_its_state() {
    let down = rxe("1: DOWN", "Ethernet", None);
    let (status, message, fix) = only(&down, "port");
    assert_eq!((status, message.as_str()), (Status::Problem, "rxe0 port 1 is 1: DOWN (physically 3: Disabled)"));
    assert_eq!(fix, "ip link set eth0 up");
    assert!(findings(&down, "gid").is_empty());
    assert_eq!(only(&rxe("2: INIT", "InfiniBand", None), "port").2, "systemctl start opensm");
    assert_eq!(only(&rxe("1: DOWN", "InfiniBand", None), "port").2, "");
    assert_eq!(only(&rxe("4: ACTIVE", "Ethernet", None), "port").0, Status::Ok);
}

#[test]
fn the_gid_that_would_be_used_is_judged() {
    let gid = |link_layer, gid| only(&rxe("4: ACTIVE", link_layer, gid), "gid");
    let (status, message, _) = gid("Ethernet", Some((IPV4, "RoCE v2")));
    assert_eq!((status, message.as_str()), (Status::Ok, "rxe0 port 1 would use GID 1: ::ffff:10.0.0.1, RoCE v2"));
    assert_eq!(gid("InfiniBand", Some((LINK_LOCAL, "IB/RoCE v1"))).0, Status::Ok);
    assert_eq!(gid("Ethernet", Some((IPV4, "IB/RoCE v1"))).0, Status::Advice);
    let (status, _, fix) = gid("Ethernet", Some((LINK_LOCAL, "RoCE v2")));
    assert_eq!((status, fix.as_str()), (Status::Advice, "ip address add <address>/<prefix> dev eth0"));
    assert_eq!(gid("Ethernet", None).0, Status::Problem);
    let iwarp = rxe("4: ACTIVE", "Ethernet", Some((LINK_LOCAL, "IB/RoCE v1")))
        .file("/sys/class/infiniband/rxe0/node_type", "4: RNIC");
    assert_eq!(only(&iwarp, "gid").0, Status::Ok);
}

#[test]
fn a_memlock_limit_is_judged_by_its_size_and_by_whom_it_binds() {
    assert_eq!(memlock(&memory(None, true)).status, Status::Ok);
    assert_eq!(memlock(&memory(Some(65536), false)).status, Status::Ok);
    assert_eq!(memlock(&memory(Some(64 << 20), true)).status, Status::Ok);
    assert_eq!(memlock(&memory(Some(8 << 20), true)).status, Status::Advice);
    let tight = memlock(&memory(Some(65536), true));
    assert!(tight.status == Status::Problem && tight.message.contains("65536 bytes"));
    assert!(tight.message.contains("limits.conf"));
    assert_eq!(tight.fix.as_deref(), Some("ulimit -l unlimited"));
}

#[test]
fn governors_other_than_performance_are_listed() {
    let tree = Tree::new().file(&format!("{CPU}/online"), "0-2");
    assert_eq!(only(&tree, "governor").0, Status::Ok);
    let file = |cpu: usize| format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor");
    let tree = tree.file(&file(0), "performance");
    assert_eq!(only(&tree, "governor").1, "performance");
    let tree = tree.file(&file(1), "powersave").file(&file(2), "powersave");
    let (status, message, fix) = only(&tree, "governor");
    assert!(status == Status::Advice && message.starts_with("powersave on CPUs 1-2;"), "{message}");
    assert!(fix.contains("scaling_governor"));
}

#[test]
fn a_clock_source_other_than_the_counter_is_advised_against() {
    let source = |name: &str| Tree::new().file(&format!("{CLOCK}/current_clocksource"), name);
    assert_eq!(only(&source("tsc"), "clocksource").0, Status::Ok);
    assert_eq!(only(&source("arch_sys_counter"), "clocksource").0, Status::Ok);
    assert_eq!(only(&Tree::new(), "clocksource").0, Status::Advice);
    assert_eq!(only(&source("hpet"), "clocksource").2, "");
    let tree = source("hpet").file(&format!("{CLOCK}/available_clocksource"), "hpet tsc acpi_pm \n");
    assert!(only(&tree, "clocksource").2.starts_with("echo tsc > "));
}

#[test]
fn isolation_is_advised_for_the_last_core() {
    let online = |list: &str| Tree::new().file(&format!("{CPU}/online"), list);
    let siblings = |cpu: usize| format!("{CPU}/cpu{cpu}/topology/thread_siblings_list");
    assert_eq!(only(&online("0"), "isolation").2, "");
    let fix = |list: &str| format!("on the kernel command line: isolcpus={list} nohz_full={list}");
    assert_eq!(only(&online("0-7").file(&siblings(7), "3,7"), "isolation").2, fix("3,7"));
    assert_eq!(only(&online("0-1").file(&siblings(1), "0-1"), "isolation").2, fix("1"));
    let isolated = online("0-7").file(&format!("{CPU}/isolated"), "6-7");
    let (status, message, fix) = only(&isolated, "isolation");
    assert!(status == Status::Advice && message.contains("timer tick") && fix.ends_with("nohz_full=6-7"));
    assert_eq!(only(&isolated.file(&format!("{CPU}/nohz_full"), "6-7"), "isolation").0, Status::Ok);
}

#[test]
fn smt_and_hypervisor_are_named() {
    let tree = Tree::new().file(&format!("{CPU}/smt/active"), "1").file("/sys/hypervisor/type", "xen");
    let (status, _, fix) = only(&tree, "smt");
    assert_eq!((status, fix.as_str()), (Status::Advice, "echo off > /sys/devices/system/cpu/smt/control"));
    assert!(only(&tree, "hypervisor").1.starts_with("xen;"));
    assert_eq!(only(&Tree::new().file(&format!("{CPU}/smt/active"), "0"), "smt").1, "off");
    assert_eq!(only(&Tree::new(), "hypervisor").0, Status::Ok);
}

#[test]
fn an_empty_pool_of_hugepages_is_advised_to_grow() {
    let pool = |free| Hugepages { page_bytes: 2 << 20, total: 8, free };
    let with = |hugepages| super::hugepages(&Memory { hugepages, ..memory(None, false) });
    assert_eq!(with(None).status, Status::Ok);
    assert_eq!(with(Some(pool(8))).message, "8 of 8 free, 2048 KiB each");
    assert_eq!(with(Some(pool(0))).fix.as_deref(), Some("sysctl vm.nr_hugepages=72"));
}

#[test]
fn findings_are_printed_in_columns_with_the_fix_below() {
    let text = render(&[
        Finding::ok("smt", "off"),
        Finding::advice("governor", "powersave").fix("cpupower"),
        Finding::problem("rdma", "none"),
    ]);
    let expected = "ok       smt       off\n\
        advice   governor  powersave\n\
        \x20                  fix: cpupower\n\
        PROBLEM  rdma      none\n\
        problems: 1, advice: 1\n";
    assert_eq!(text, expected);
    assert_eq!(render(&[]), "problems: 0, advice: 0\n");
}

#[test]
fn this_machine_can_be_inspected() {
    let findings = inspect(&System::read(Sysfs::default()));
    println!("{}", render(&findings));
    assert!(findings.len() >= 8);
}

#[test]
fn what_keeps_rings_and_aio_away_comes_with_the_knob() {
    let tree = Tree::new()
        .file("/proc/sys/kernel/io_uring_disabled", "2\n")
        .file("/proc/sys/fs/aio-nr", "65536\n")
        .file("/proc/sys/fs/aio-max-nr", "65536\n");
    let sysfs = tree.sysfs();
    for (finding, fix) in
        [(io_uring(&sysfs), "sysctl kernel.io_uring_disabled=0"), (aio(&sysfs), "sysctl fs.aio-max-nr=131072")]
    {
        assert_eq!((finding.status, finding.fix.as_deref()), (Status::Problem, Some(fix)), "{}", finding.message);
    }
    assert_eq!(io_uring(&Tree::new().sysfs()).status, Status::Ok);
    assert_eq!(aio(&Tree::new().sysfs()).status, Status::Advice);
    let free = Tree::new().file("/proc/sys/fs/aio-nr", "0").file("/proc/sys/fs/aio-max-nr", "65536");
    assert_eq!(aio(&free.sysfs()).message, "0 of 65536 requests used");
}
