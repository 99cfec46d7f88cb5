//! Which plans may take priority, and which interrupts belong to what they measure.

use super::*;
use crate::{
    engine::Completion,
    host::fake::Tree,
    probe::{BlockSpec, Spec},
};

fn plan(engine: &str, change: impl FnOnce(&mut Spec)) -> Plan {
    let mut spec = Spec::of(EngineKind::from_name(engine).unwrap());
    change(&mut spec);
    Plan::check(spec).unwrap()
}

/// A plan on a file that does not exist: only what is asked for is looked at.
fn on_file(engine: &str, change: impl FnOnce(&mut Spec)) -> Plan {
    plan(engine, |spec| {
        spec.block = BlockSpec { target: Some("/nowhere".into()), buffered: true, ..BlockSpec::default() };
        change(spec);
    })
}

fn placed(cpu: usize, peer_cpu: usize) -> Placed {
    Placed { cpu, peer_cpu, others: CpuSet::default() }
}

fn why(plan: &Plan) -> String {
    held_back(&Tree::new().sysfs(), plan, &placed(1, 0)).unwrap_or_default()
}

/// A machine with one active RDMA device, on the bus or not.
fn rdma(hardware: bool) -> Tree {
    let place = if hardware { "pci0000:00/0000:00:05.0" } else { "virtual" };
    let device = format!("/sys/devices/{place}/infiniband/x0");
    let tree = Tree::new()
        .file(&format!("{device}/ports/1/state"), "4: ACTIVE\n")
        .link("/sys/class/infiniband/x0", &format!("../../devices/{place}/infiniband/x0"));
    if !hardware {
        return tree;
    }
    tree.file("/sys/devices/pci0000:00/0000:00:05.0/msi_irqs/50", "msix\n")
        .link("/sys/devices/pci0000:00/0000:00:05.0/driver", "../../../bus/pci/drivers/x")
        .link(&format!("{device}/device"), "../../../0000:00:05.0")
}

#[test]
fn priority_is_safe_where_nothing_or_a_sleep_is_waited_for() {
    assert_eq!(why(&plan("null", |_| {})), "");
    assert_eq!(why(&plan("spin", |_| {})), "");
    for engine in ["psync", "pvsync2"] {
        assert_eq!(why(&on_file(engine, |_| {})), "", "{engine}");
    }
    for engine in ["libaio", "io-uring"] {
        assert_eq!(why(&on_file(engine, |spec| spec.completion = Completion::Event)), "", "{engine}");
    }
}

#[test]
fn priority_is_refused_where_a_polled_command_may_need_a_kernel_thread() {
    for engine in ["libaio", "io-uring"] {
        assert!(why(&on_file(engine, |_| {})).contains("complete those of /nowhere"), "{engine}");
    }
    let forced = on_file("io-uring", |spec| {
        spec.completion = Completion::Event;
        spec.block.uring_async = true;
    });
    assert!(why(&forced).starts_with("a kernel thread takes the commands"));
}

#[test]
fn software_rdma_and_a_responder_on_the_same_processor_hold_priority_back() {
    let on = |tree: &Tree, engine, placed| held_back(&tree.sysfs(), &plan(engine, |_| {}), &placed);
    assert_eq!(on(&rdma(true), "rdma-read", placed(1, 0)), None);
    assert!(on(&rdma(false), "rdma-read", placed(1, 0)).unwrap().starts_with("x0 is software RDMA"));
    assert!(on(&rdma(true), "rdma-send", placed(1, 1)).unwrap().contains("responder"));
    assert_eq!(on(&rdma(true), "rdma-read", placed(1, 1)), None);
}

#[test]
fn a_devices_interrupts_are_kept_only_where_commands_wait_for_them() {
    let kept = |completion| {
        let plan = plan("rdma-read", |spec| spec.completion = completion);
        awaited_interrupts(&rdma(true).sysfs(), &plan).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(kept(Completion::Event), [50]);
    assert_eq!(kept(Completion::Poll), Vec::<usize>::new());
    assert!(!completes_by_interrupt(&plan("null", |_| {})));
    assert!(completes_by_interrupt(&on_file("io-uring", |_| {})));
    assert!(!completes_by_interrupt(&on_file("pvsync2", |spec| {
        (spec.block.buffered, spec.block.direct, spec.block.hipri) = (false, true, true);
    })));
}

#[test]
fn the_memory_of_the_largest_point_is_counted() {
    let plan = plan("rdma-read", |spec| (spec.count, spec.bs_bytes) = (Some(1000), vec![8, 4096]));
    assert_eq!(bytes_needed(&plan), 1000 * 24 + 4 * 4096);
}
