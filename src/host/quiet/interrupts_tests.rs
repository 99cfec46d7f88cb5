//! Tests of steering on fake trees. What the kernel refuses is tried in the lab.

use super::*;
use crate::host::fake::Tree;

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// A machine of four processors with one folder for each of the interrupts, (number, affinity, effective affinity).
fn machine(interrupts: &[(usize, &str, &str)]) -> Tree {
    let mut tree =
        Tree::new().file("/sys/devices/system/cpu/online", "0-3\n").file("/proc/irq/default_smp_affinity", "f");
    for (number, affinity, effective) in interrupts {
        tree = tree
            .file(&affinity_file(*number), &format!("{affinity}\n"))
            .file(&format!("/proc/irq/{number}/effective_affinity_list"), &format!("{effective}\n"));
    }
    tree
}

fn affinity(tree: &Tree, number: usize) -> String {
    tree.sysfs().read(&affinity_file(number)).unwrap()
}

fn steer(tree: &Tree, cpus: &str, keep: &[usize]) -> (Option<Steering>, Quiet) {
    let mut quiet = Quiet::default();
    let steering = Steering::away_from(&tree.sysfs(), &set(cpus), &keep.iter().copied().collect(), &mut quiet);
    (steering, quiet)
}

/// The name and the text of the only entry.
fn only(quiet: &Quiet) -> (&'static str, &str) {
    let applied = quiet.applied.iter().map(|entry| (entry.what, entry.detail.as_str()));
    let all: Vec<_> = applied.chain(quiet.refused.iter().map(|entry| (entry.what, entry.reason.as_str()))).collect();
    assert_eq!(all.len(), 1, "{quiet:?}");
    all[0]
}

#[test]
fn interrupts_leave_the_processor_and_come_back() {
    let tree = machine(&[(1, "0-3", "0"), (24, "3", "3"), (25, "0-1", "0"), (26, "0-2", "3")]);
    let (steering, quiet) = steer(&tree, "3", &[]);
    assert_eq!(only(&quiet), (Steering::NAME, "3 moved away from CPU 3 (IRQ 1,24,26)"));
    let now = || [1, 24, 25, 26].map(|number| affinity(&tree, number));
    assert_eq!(now(), ["0-2", "0-2", "0-1", "0-2"]);
    assert_eq!(steering.unwrap().restore(), Vec::<String>::new());
    assert_eq!(now(), ["0-3", "3", "0-1", "0-2"]);
}

#[test]
fn all_processors_of_a_run_are_left() {
    let tree = machine(&[(1, "0-3", "0"), (2, "2-3", "2"), (3, "0", "0")]);
    let (_steering, quiet) = steer(&tree, "2-3", &[]);
    assert_eq!(only(&quiet).1, "2 moved away from CPU 2-3 (IRQ 1-2)");
    assert_eq!((affinity(&tree, 1), affinity(&tree, 2)), ("0-1".into(), "0-1".into()));
}

#[test]
fn an_interrupt_without_another_processor_goes_to_none_that_is_isolated() {
    let tree = machine(&[(1, "2-3", "2"), (2, "3", "3")]).file("/sys/devices/system/cpu/isolated", "2-3\n");
    let (_steering, _) = steer(&tree, "3", &[]);
    assert_eq!((affinity(&tree, 1), affinity(&tree, 2)), ("2".into(), "0-1".into()));
}

#[test]
fn a_pipe_that_ends_without_a_word_makes_the_guardian_restore() {
    let tree = machine(&[(1, "0-3", "0"), (24, "3", "3")]);
    let (steering, _) = steer(&tree, "3", &[]);
    let mut steering = steering.unwrap();
    assert_eq!(affinity(&tree, 24), "0-2");
    // What the kernel does to a killed process: no destructor runs, and its end of the pipe is closed.
    steering.moved.clear();
    steering.guardian.pipe = None;
    assert!(steering.guardian.process.wait().unwrap().success());
    assert_eq!((affinity(&tree, 1), affinity(&tree, 24)), ("0-3".into(), "3".into()));
}

#[test]
fn a_second_run_does_not_take_the_settings_of_the_first_for_those_of_the_machine() {
    let tree = machine(&[(1, "0-3", "0")]);
    let (first, _) = steer(&tree, "3", &[]);
    let (second, quiet) = steer(&tree, "2", &[]);
    assert!(second.is_none() && only(&quiet).1.contains("another lat-probe"), "{quiet:?}");
    drop(first);
    assert!(steer(&tree, "2", &[]).0.is_some());
    assert_eq!(affinity(&tree, 1), "0-3");
}

#[test]
fn the_measured_devices_own_interrupts_stay_if_they_are_to_be_kept() {
    let tree = machine(&[(1, "0-3", "0"), (24, "3", "3")]);
    let (_steering, quiet) = steer(&tree, "3", &[24]);
    assert_eq!((affinity(&tree, 1), affinity(&tree, 24)), ("0-2".into(), "3".into()));
    assert_eq!((quiet.refused[0].what, quiet.applied[0].what), (Steering::DEVICE, Steering::NAME));
    assert!(quiet.refused[0].reason.starts_with("IRQ 24 of the measured device"), "{quiet:?}");
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason_and_changes_nothing() {
    let alone = Tree::new().file("/sys/devices/system/cpu/online", "0\n").file(&affinity_file(1), "0\n");
    let (steering, quiet) = steer(&alone, "0", &[]);
    assert!(steering.is_none() && affinity(&alone, 1) == "0");
    assert_eq!(only(&quiet), (Steering::NAME, "no processor but CPU 0 is online"));
    assert_eq!(only(&steer(&Tree::new(), "0", &[]).1), (Steering::NAME, "/proc/irq is not shown here"));
    let elsewhere = machine(&[(1, "0-1", "0")]);
    assert_eq!(only(&steer(&elsewhere, "3", &[]).1).1, "no other interrupt may come to CPU 3");
}

#[test]
fn kernel_managed_interrupts_are_told_in_one_entry() {
    let error = |errno| why_fixed(&io::Error::from_raw_os_error(errno));
    assert_eq!(error(libc::EIO), "the kernel manages them (Input/output error (os error 5))");
    assert!(error(libc::ENOSPC).contains("os error 28"));
    // A folder in the place of the file refuses writing, as the kernel does for some; the others are moved.
    let tree = machine(&[(1, "0-3", "0"), (2, "0-3", "0")]);
    let mut quiet = Quiet::default();
    let begun = Steering::start(&tree.sysfs(), &set("3"), &BTreeSet::new(), &mut quiet).unwrap().unwrap();
    std::fs::remove_file(tree.sysfs().path(&affinity_file(2))).unwrap();
    let tree = tree.folder(&affinity_file(2));
    let steering = begun.steer(&set("3"), &mut quiet).unwrap();
    assert_eq!(quiet.applied[0].detail, "1 moved away from CPU 3 (IRQ 1)");
    assert_eq!(quiet.refused[0].what, Steering::FIXED);
    assert_eq!(quiet.refused[0].reason, "1 may still come to CPU 3. IRQ 2: Is a directory (os error 21)");
    drop(steering);
    assert_eq!(affinity(&tree, 1), "0-3");
}

#[test]
fn the_interrupts_of_a_device_are_those_of_the_nearest_one_above_that_has_some() {
    let tree = Tree::new()
        .file("/sys/devices/pci0000:00/irq", "9\n")
        .file("/sys/devices/pci0000:00/0000:00:02.0/irq", "11\n")
        .file("/sys/devices/pci0000:00/0000:00:02.0/msi_irqs/30", "msix\n")
        .file("/sys/devices/pci0000:00/0000:00:02.0/msi_irqs/31", "msix\n")
        .disk("pci0000:00/0000:00:02.0/virtio1", "vda", "254:0")
        .file("/sys/devices/pci0000:00/0000:00:03.0/irq", "12\n")
        .disk("pci0000:00/0000:00:03.0/ata1", "sda", "8:0")
        .disk("virtual", "dm-0", "253:0")
        .link("/sys/devices/virtual/block/dm-0/slaves/vda", "../../../../pci0000:00/0000:00:02.0/virtio1/block/vda")
        .link("/sys/devices/virtual/block/dm-0/slaves/sda", "../../../../pci0000:00/0000:00:03.0/ata1/block/sda");
    let of = |name: &str| of_device(&tree.sysfs(), &format!("/sys/class/block/{name}")).into_iter().collect::<Vec<_>>();
    assert_eq!(of("vda"), [30, 31]);
    assert_eq!(of("sda"), [12]);
    assert_eq!(of("dm-0"), [12, 30, 31]);
    assert_eq!(of("none"), Vec::<usize>::new());
}

#[test]
fn the_controllers_below_a_multipath_head_count() {
    let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    let tree = Tree::new()
        .disk("virtual/nvme-subsystem/nvme-subsys0", "x", "1:1")
        .folder(&format!("{subsystem}/nvme0n1"))
        .file("/sys/devices/pci0000:00/0000:00:04.0/msi_irqs/40", "msix\n")
        .folder("/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0")
        .link(&format!("{subsystem}/nvme0"), "../../../pci0000:00/0000:00:04.0/nvme/nvme0");
    assert_eq!(of_device(&tree.sysfs(), &format!("{subsystem}/nvme0n1")), BTreeSet::from([40]));
}

#[test]
fn irqbalance_is_seen_by_its_name() {
    let tree = Tree::new().file("/proc/1/comm", "init\n").file("/proc/self/comm", "irqbalance\n");
    assert!(!irqbalance_runs(&tree.sysfs()));
    assert!(irqbalance_runs(&tree.file("/proc/77/comm", "irqbalance\n").sysfs()));
}
