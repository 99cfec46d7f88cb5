//! What changed around a slow command: looks at a thread, its processor and its device, taken by another thread from
//! another processor while the first one measures.
//!
//! A look reads only what the kernel keeps in memory. What would interrupt the measuring processor or ask the device, such
//! as the count of system management interrupts, is left to the looks before and after a run, [`Usage`](super::Usage).

use std::{collections::BTreeMap, num::NonZeroU64};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    DeviceCounters, Sysfs,
    counters::Trouble,
    increases,
    interference::{Interference, InterferenceDelta, add, add_counts, difference},
    usage::run_queue_wait_ns,
};

/// The longest that one interrupt with what it entails is taken to last: many take a few microseconds, the slow ones
/// (a timer tick with a full queue, a network poll) some tens.
const LONGEST_INTERRUPT_NS: f64 = 100_000.0;

/// The least part of a command's excess that a counted time must cover to be called its cause.
const LEAST_PART: f64 = 0.5;

/// Whom to look at.
#[derive(Debug)]
pub struct Watch {
    sysfs: Sysfs,
    /// The folder of the thread in /proc.
    task: String,
    cpu: usize,
    device: DeviceCounters,
}

/// Counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    run_queue_wait_ns: Option<u64>,
    switches: Switches,
    faults: Faults,
    interference: Interference,
    device: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Switches {
    voluntary: Option<u64>,
    involuntary: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    minor: Option<u64>,
    major: Option<u64>,
}

/// What changed in a window of time. Null is what the kernel doesn't show; a name that did not count is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Nearby {
    /// Length of the window, ns: looks are some tens of milliseconds apart.
    #[schemars(range(min = 0))]
    pub window_ns: f64,
    /// Whether the process was stopped and continued (SIGSTOP, SIGCONT, a debugger).
    pub stopped: bool,
    /// The longest that the looking thread itself, on another processor, came late, ns: other processors lost time, too.
    pub late_ns: u64,
    /// Time that the thread could have run but its processor ran others, ns.
    pub run_queue_wait_ns: Option<u64>,
    /// Times that the thread gave up the processor to wait.
    pub voluntary_switches: Option<u64>,
    /// Times that the scheduler took the processor away.
    pub involuntary_switches: Option<u64>,
    /// Page faults answered without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for I/O.
    pub major_faults: Option<u64>,
    /// Interrupts of the processor by name, and what the hypervisor took.
    #[serde(flatten)]
    pub interference: InterferenceDelta,
    /// Counters of the device that rose, where reading them costs the device nothing.
    #[schemars(with = "BTreeMap<String, NonZeroU64>")]
    pub device_counters: BTreeMap<String, u64>,
}

/// What may have made a command slow, as far as it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The process was stopped.
    Stopped,
    /// The processor ran other threads.
    RunQueueWait,
    /// The hypervisor ran others.
    Steal,
    /// The device sent something again.
    Retransmission,
    /// The device counted an error.
    DeviceError,
    /// A page fault waited for I/O.
    MajorFault,
    /// An interrupt; only for what one can take.
    Interrupt,
}

impl Cause {
    /// The name in the result.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::RunQueueWait => "run-queue-wait",
            Self::Steal => "steal",
            Self::Retransmission => "retransmission",
            Self::DeviceError => "device-error",
            Self::MajorFault => "major-fault",
            Self::Interrupt => "interrupt",
        }
    }
}

impl Watch {
    /// Looks at the calling thread, which stays on `cpu`, and at `device` if that costs it nothing.
    pub fn current(sysfs: Sysfs, cpu: usize, device: Option<&DeviceCounters>) -> Self {
        let device = device.filter(|device| device.are_free()).cloned().unwrap_or_default();
        let task = format!("/proc/self/task/{}", nix::unistd::gettid());
        Self { sysfs, task, cpu, device }
    }

    /// The counters now; from any thread of the process.
    pub fn look(&self) -> Moment {
        let (sysfs, task) = (&self.sysfs, &self.task);
        Moment {
            run_queue_wait_ns: run_queue_wait_ns(sysfs, task),
            switches: sysfs.read(&format!("{task}/status")).map(|text| switches(&text)).unwrap_or_default(),
            faults: sysfs.read(&format!("{task}/stat")).map(|text| faults(&text)).unwrap_or_default(),
            interference: Interference::read(sysfs, self.cpu),
            device: self.device.read(sysfs),
        }
    }
}

impl Moment {
    /// What changed since `earlier`, in a window of that length.
    pub fn since(&self, earlier: &Self, window_ns: f64) -> Nearby {
        Nearby {
            window_ns,
            stopped: false,
            late_ns: 0,
            run_queue_wait_ns: difference(self.run_queue_wait_ns, earlier.run_queue_wait_ns),
            voluntary_switches: difference(self.switches.voluntary, earlier.switches.voluntary),
            involuntary_switches: difference(self.switches.involuntary, earlier.switches.involuntary),
            minor_faults: difference(self.faults.minor, earlier.faults.minor),
            major_faults: difference(self.faults.major, earlier.faults.major),
            interference: self.interference.since(&earlier.interference),
            device_counters: increases(&self.device, &earlier.device),
        }
    }
}

impl Nearby {
    /// Adds the window that follows.
    pub fn add(&mut self, next: &Self) {
        self.window_ns += next.window_ns;
        self.stopped |= next.stopped;
        self.late_ns = self.late_ns.max(next.late_ns);
        for (sum, more) in [
            (&mut self.run_queue_wait_ns, next.run_queue_wait_ns),
            (&mut self.voluntary_switches, next.voluntary_switches),
            (&mut self.involuntary_switches, next.involuntary_switches),
            (&mut self.minor_faults, next.minor_faults),
            (&mut self.major_faults, next.major_faults),
        ] {
            add(sum, more);
        }
        self.interference.add(&next.interference);
        add_counts(&mut self.device_counters, &next.device_counters);
    }

    /// What may have made a command in this window take `excess_ns` longer than the median: only what was counted and could
    /// have taken that long. What takes most time, and is counted most exactly, comes first.
    pub fn cause(&self, excess_ns: f64) -> Option<Cause> {
        let covers = |ns: Option<u64>| ns.is_some_and(|ns| ns > 0 && ns as f64 >= LEAST_PART * excess_ns);
        let trouble = |kind| self.device_counters.keys().any(|name| Trouble::of(name) == Some(kind));
        let interrupted = self.interference.interrupts().is_some_and(|count| count > 0);
        let causes = [
            (Cause::Stopped, self.stopped && covers(Some(self.late_ns))),
            (Cause::RunQueueWait, covers(self.run_queue_wait_ns)),
            (Cause::Steal, covers(self.interference.steal_ns)),
            (Cause::Retransmission, trouble(Trouble::Retransmission)),
            (Cause::DeviceError, trouble(Trouble::DeviceError)),
            (Cause::MajorFault, self.major_faults.is_some_and(|count| count > 0)),
            (Cause::Interrupt, interrupted && excess_ns <= LONGEST_INTERRUPT_NS),
        ];
        causes.into_iter().find_map(|(cause, found)| found.then_some(cause))
    }
}

/// From a task's `status`.
fn switches(status: &str) -> Switches {
    let of = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Switches { voluntary: of("voluntary_ctxt_switches:"), involuntary: of("nonvoluntary_ctxt_switches:") }
}

/// From a task's `stat`, whose second field is a name in brackets that may hold anything.
fn faults(stat: &str) -> Faults {
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let of = |place: usize| fields.get(place).and_then(|field| field.parse().ok());
    Faults { minor: of(7), major: of(9) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    fn tree(wait: u64, switches: u64, reads: u64) -> Tree {
        let task = format!("/proc/self/task/{}", nix::unistd::gettid());
        Tree::new()
            .file(&format!("{task}/schedstat"), &format!("100 {wait} 3\n"))
            .file(
                &format!("{task}/status"),
                &format!("Name:\tx\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t4\n"),
            )
            .file(&format!("{task}/stat"), "12 (a) b) R 1 2 3 4 5 6 70 8 90 10 11\n")
            .file("/proc/interrupts", &format!("   CPU0 CPU1\nLOC: 5 {} Local timer interrupts\n", 10 * switches))
            .file("/sys/block/sda/stat", &format!("{reads} 0 0 0 0 0 0 0 0 0 0\n"))
    }

    fn look(tree: &Tree) -> Moment {
        Watch::current(tree.sysfs(), 1, Some(&DeviceCounters::of_disk("sda"))).look()
    }

    #[test]
    fn a_window_has_what_changed_in_it() {
        let (earlier, later) = (look(&tree(1_000, 1, 50)), look(&tree(5_000, 3, 57)));
        assert_eq!((earlier.faults.minor, earlier.faults.major), (Some(70), Some(90)));
        let mut nearby = later.since(&earlier, 5e7);
        assert_eq!((nearby.run_queue_wait_ns, nearby.voluntary_switches), (Some(4_000), Some(2)));
        assert_eq!((nearby.involuntary_switches, nearby.major_faults), (Some(0), Some(0)));
        assert_eq!(nearby.interference.interrupts(), Some(20));
        assert_eq!(nearby.device_counters, BTreeMap::from([("read_ios".to_string(), 7)]));
        nearby.add(&later.since(&earlier, 5e7));
        assert_eq!((nearby.window_ns, nearby.run_queue_wait_ns), (1e8, Some(8_000)));
        assert_eq!((nearby.interference.interrupts(), nearby.device_counters["read_ios"]), (Some(40), 14));
    }

    #[test]
    fn a_machine_that_shows_nothing_has_nothing_nearby() {
        let moment = look(&Tree::new());
        let nearby = moment.since(&moment, 1e6);
        assert_eq!((nearby.run_queue_wait_ns, nearby.minor_faults, nearby.cause(1e3)), (None, None, None));
    }

    #[test]
    fn a_cause_is_what_was_counted_and_could_have_taken_that_long() {
        let nothing = || Nearby { run_queue_wait_ns: Some(0), ..Nearby::default() };
        assert_eq!(nothing().cause(1e6), None);
        let waited = Nearby { run_queue_wait_ns: Some(600_000), ..nothing() };
        assert_eq!((waited.cause(1e6), waited.cause(2e6)), (Some(Cause::RunQueueWait), None));
        let stopped = Nearby { stopped: true, late_ns: 200_000_000, ..nothing() };
        assert_eq!((stopped.cause(2e8), stopped.cause(1e9)), (Some(Cause::Stopped), None));
        let late = Nearby { late_ns: 200_000_000, ..nothing() };
        assert_eq!(late.cause(2e8), None);
        let counted = |name: &str| Nearby { device_counters: BTreeMap::from([(name.into(), 1)]), ..nothing() };
        assert_eq!(counted("rcvd_rnr_err").cause(1e6), Some(Cause::Retransmission));
        assert_eq!((counted("ioerr_cnt").cause(1e6), counted("read_ios").cause(1e6)), (Some(Cause::DeviceError), None));
        assert_eq!(Nearby { major_faults: Some(1), ..nothing() }.cause(1e6), Some(Cause::MajorFault));
        let mut interrupted = nothing();
        interrupted.interference.interrupts_by_name = Some(BTreeMap::from([("LOC".into(), 12)]));
        assert_eq!((interrupted.cause(2e4), interrupted.cause(2e6)), (Some(Cause::Interrupt), None));
        interrupted.interference.steal_ns = Some(10_000_000);
        assert_eq!(interrupted.cause(2e6), Some(Cause::Steal));
    }
}
