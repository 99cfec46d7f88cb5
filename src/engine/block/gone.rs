//! Whether the device behind a failed command is gone, for the words about it.
//!
//! A kernel that takes a device away fails its commands first and removes it from sysfs at last. So callers may have to
//! wait a little here, and must not do so in the measuring loop.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::host::Sysfs;

/// How long a device that does not look well may take to go. A controller over a network is given up in several steps.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a device must look well to be taken for it: some kernels fail commands before anything else shows.
const CALM: Duration = Duration::from_millis(500);

const STEP: Duration = Duration::from_millis(10);

/// What sysfs shows of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is in use as ever.
    Well,
    /// It is there. Nothing says whether it is about to go, or something says that it is.
    Doubtful,
    Gone,
}

/// Whether the block device of this number is gone.
pub(super) fn is_gone(sysfs: &Sysfs, number: (u32, u32)) -> bool {
    state(sysfs, number) == State::Gone
}

/// Whether it is gone, or goes while this waits for it; a device that stays well is soon not waited for any more.
pub(super) fn goes(sysfs: &Sysfs, number: (u32, u32)) -> bool {
    let began = Instant::now();
    loop {
        let patience = match state(sysfs, number) {
            State::Gone => return true,
            State::Doubtful => PATIENCE,
            State::Well => CALM,
        };
        if began.elapsed() >= patience {
            return false;
        }
        thread::sleep(STEP);
    }
}

fn state(sysfs: &Sysfs, (major, minor): (u32, u32)) -> State {
    let place = format!("/sys/dev/block/{major}:{minor}");
    if !sysfs.exists(&place) {
        return State::Gone;
    }
    // A disk on its way out has no size any more. One without a medium hasn't either, and stays.
    if sysfs.read(&format!("{place}/size")).as_deref() == Some("0") {
        return State::Doubtful;
    }
    let disk = if sysfs.exists(&format!("{place}/partition")) { format!("{place}/..") } else { place };
    let device = format!("{disk}/device");
    match sysfs.read(&format!("{device}/state")) {
        Some(state) => of_words(&state),
        // A device of no bus has no state but its size. Any other loses its bus on its way out.
        None if !sysfs.exists(&device) => {
            let of_no_bus = sysfs.canonical(&disk).is_some_and(|place| place.to_string_lossy().contains("/virtual/"));
            if of_no_bus { State::Well } else { State::Doubtful }
        }
        None => of_paths(sysfs, &device),
    }
}

/// By the words of SCSI devices and NVMe controllers.
fn of_words(state: &str) -> State {
    if matches!(state, "running" | "live") { State::Well } else { State::Doubtful }
}

/// By the controllers of an NVMe subsystem, which is what is behind a disk of several paths.
fn of_paths(sysfs: &Sysfs, subsystem: &str) -> State {
    let names = sysfs.names(subsystem).unwrap_or_default().into_iter().filter(|name| name.starts_with("nvme"));
    let mut states = names.filter_map(|name| sysfs.read(&format!("{subsystem}/{name}/state")));
    if states.any(|state| of_words(&state) == State::Well) { State::Well } else { State::Doubtful }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    const PLACE: &str = "pci0/host0/0:0:0:0";
    const DEVICE: &str = "/sys/devices/pci0/host0/0:0:0:0/block/sda/device";

    fn disk(state: &str) -> Tree {
        Tree::new().disk(PLACE, "sda", "8:0").file(&format!("{DEVICE}/state"), state)
    }

    #[test]
    fn a_disk_that_runs_is_well_and_so_are_its_partitions() {
        assert_eq!(state(&disk("running\n").sysfs(), (8, 0)), State::Well);
        let tree = disk("running\n").partition(PLACE, "sda", "sda1", "8:1");
        assert_eq!(state(&tree.sysfs(), (8, 1)), State::Well);
        let tree = disk("cancel\n").partition(PLACE, "sda", "sda1", "8:1");
        assert_eq!(state(&tree.sysfs(), (8, 1)), State::Doubtful);
    }

    #[test]
    fn a_disk_that_is_being_removed_is_waited_for() {
        assert_eq!(state(&disk("cancel\n").sysfs(), (8, 0)), State::Doubtful);
        let folder = DEVICE.trim_end_matches("/device");
        let tree = disk("running\n").file(&format!("{folder}/size"), "0\n");
        assert_eq!(state(&tree.sysfs(), (8, 0)), State::Doubtful);
        let link = tree.sysfs().path("/sys/dev/block/8:0");
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(2 * STEP);
                std::fs::remove_file(link).unwrap();
            });
            assert!(goes(&tree.sysfs(), (8, 0)));
        });
    }

    #[test]
    fn a_disk_of_several_paths_is_as_well_as_the_best_of_them() {
        let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
        let disk = |first: &str| {
            Tree::new()
                .disk("virtual/nvme-subsystem/nvme-subsys0", "nvme0n1", "259:0")
                .link(&format!("{subsystem}/block/nvme0n1/device"), "../..")
                .file(&format!("{subsystem}/nvme0/state"), first)
                .file(&format!("{subsystem}/nvme1/state"), "connecting\n")
        };
        assert_eq!(state(&disk("live\n").sysfs(), (259, 0)), State::Well);
        assert_eq!(state(&disk("deleting (no IO)\n").sysfs(), (259, 0)), State::Doubtful);
    }

    #[test]
    fn a_device_of_no_bus_is_well_while_it_has_a_size() {
        let tree = Tree::new().disk("virtual", "n0", "254:0");
        assert_eq!(state(&tree.sysfs(), (254, 0)), State::Well);
        assert!(!goes(&tree.sysfs(), (254, 0)));
        assert!(is_gone(&tree.sysfs(), (254, 16)));
    }
}
