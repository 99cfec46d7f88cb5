//! The part of `check` about noise: what `--quiet` holds off while it measures, and what only the machine's owner can.

use super::{Finding, System};
use crate::host::{
    Sysfs,
    quiet::{irqbalance_runs, priority},
};

const CPUS: &str = "/sys/devices/system/cpu";

/// A wake-up from idle that takes no longer than this is not worth a word, in microseconds.
const SHALLOW_US: u64 = 2;

/// Idle states, frequency beyond the nominal one, interrupts, priority.
pub(super) fn findings(system: &System) -> [Finding; 4] {
    let sysfs = &system.sysfs;
    [idle(sysfs), turbo(system), interrupts(sysfs), real_time(sysfs)]
}

fn idle(sysfs: &Sysfs) -> Finding {
    let folder = format!("{CPUS}/cpu0/cpuidle");
    let Some(states) = sysfs.names(&folder) else {
        return Finding::ok("idle", "this kernel doesn't choose idle states");
    };
    let enabled =
        states.iter().filter(|state| sysfs.read(&format!("{folder}/{state}/disable")).as_deref() != Some("1"));
    let latency = |state: &String| {
        let latency_us: u64 = sysfs.read(&format!("{folder}/{state}/latency"))?.parse().ok()?;
        Some((latency_us, sysfs.read_word(&format!("{folder}/{state}/name")).unwrap_or_else(|| state.clone())))
    };
    match enabled.filter_map(latency).max() {
        Some((latency_us, name)) if latency_us > SHALLOW_US => {
            let message =
                format!("an idle CPU needs up to {latency_us} µs to wake up ({name}); --quiet holds that off");
            let fix = "measure with --quiet as root, or on the kernel command line: intel_idle.max_cstate=0 processor.max_cstate=1";
            Finding::advice("idle", message).fix(fix)
        }
        _ => Finding::ok("idle", format!("no idle state takes more than {SHALLOW_US} µs to leave")),
    }
}

fn turbo(system: &System) -> Finding {
    match system.facts.turbo {
        Some(true) => {
            let fix = if system.sysfs.exists(&format!("{CPUS}/intel_pstate/no_turbo")) {
                format!("echo 1 > {CPUS}/intel_pstate/no_turbo")
            } else {
                format!("echo 0 > {CPUS}/cpufreq/boost")
            };
            Finding::advice("turbo", "on; the clock rate depends on load and temperature").fix(fix)
        }
        Some(false) => Finding::ok("turbo", "off"),
        None => Finding::ok("turbo", "not shown by this kernel"),
    }
}

fn interrupts(sysfs: &Sysfs) -> Finding {
    if irqbalance_runs(sysfs) {
        let message = "irqbalance is running; it may move interrupts to the measuring CPU, those of --quiet back too";
        return Finding::advice("interrupts", message).fix("systemctl stop irqbalance");
    }
    Finding::ok("interrupts", "irqbalance is not running; --quiet moves them away from the measuring CPU")
}

fn real_time(sysfs: &Sysfs) -> Finding {
    match priority::throttled(sysfs) {
        Some(reason) => {
            Finding::advice("priority", format!("--quiet takes nice −20, not real-time priority: {reason}"))
        }
        None => Finding::ok("priority", "--quiet takes real-time priority where commands do not need others to run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::fake::Tree, run::check::Status};

    fn state(tree: Tree, number: usize, name: &str, latency_us: &str, disable: &str) -> Tree {
        let folder = format!("{CPUS}/cpu0/cpuidle/state{number}");
        tree.file(&format!("{folder}/name"), name)
            .file(&format!("{folder}/latency"), latency_us)
            .file(&format!("{folder}/disable"), disable)
    }

    #[test]
    fn the_deepest_idle_state_that_is_not_disabled_is_named() {
        assert_eq!(idle(&Tree::new().sysfs()).status, Status::Ok);
        let tree = state(state(Tree::new(), 0, "POLL\n", "0\n", "0\n"), 1, "C1\n", "2\n", "0\n");
        assert_eq!(idle(&tree.sysfs()).status, Status::Ok);
        let tree = state(state(tree, 2, "C6\n", "133\n", "0\n"), 3, "C8\n", "890\n", "1\n");
        let finding = idle(&tree.sysfs());
        assert!(finding.status == Status::Advice && finding.message.contains("133 µs to wake up (C6)"), "{finding:?}");
        assert!(finding.fix.unwrap().contains("--quiet"));
    }

    #[test]
    fn turbo_comes_with_the_knob_of_its_driver() {
        let of = |tree: Tree| turbo(&System::read(tree.sysfs()));
        assert_eq!(of(Tree::new()).status, Status::Ok);
        let intel = of(Tree::new().file(&format!("{CPUS}/intel_pstate/no_turbo"), "0\n"));
        assert_eq!(intel.fix.as_deref(), Some("echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"));
        let other = of(Tree::new().file(&format!("{CPUS}/cpufreq/boost"), "1\n"));
        assert_eq!(other.fix.as_deref(), Some("echo 0 > /sys/devices/system/cpu/cpufreq/boost"));
        assert_eq!(of(Tree::new().file(&format!("{CPUS}/cpufreq/boost"), "0\n")).message, "off");
    }

    #[test]
    fn irqbalance_and_throttling_are_named_with_their_remedy() {
        let tree = Tree::new().file("/proc/9/comm", "irqbalance\n").file("/proc/sys/kernel/osrelease", "6.1.0\n");
        let found = findings(&System::read(tree.sysfs()));
        assert_eq!(found[2].fix.as_deref(), Some("systemctl stop irqbalance"));
        assert!(found[3].message.contains("sched_rt_runtime_us=-1"), "{found:?}");
        let quiet = Tree::new().file("/proc/sys/kernel/osrelease", "6.12.1\n");
        assert!(findings(&System::read(quiet.sysfs())).iter().all(|finding| finding.status == Status::Ok));
    }
}
