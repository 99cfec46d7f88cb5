//! What happened to the measuring thread and to its CPU between two moments.
//!
//! Take both moments outside the measuring loop and on the measuring thread: one look reads files whose length grows
//! with the machine. Its own cost is not in the difference for the thread's times and counts, but interrupts and steal
//! are those of the CPU for a few microseconds more than the thread's window.

use std::{fs::File, os::unix::fs::FileExt, time::Instant};

use super::{
    Sysfs,
    interference::{Interference, InterferenceDelta, add, difference},
};
use crate::{
    error::{Error, Result},
    schema::added_later,
};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The counters of the calling thread, and of the CPU that it is pinned to, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Before and after the files were read: a difference runs from the end of one look to the start of the next.
    opened: ThreadUsage,
    closed: ThreadUsage,
    run_queue_wait_ns: Option<u64>,
    interference: Interference,
    smi_count: Option<u64>,
}

/// Keys of [`UsageDelta`] that came within the first version of the result.
const LATER: &[&str] = &["elapsed_ns", "run_queue_wait_ns", "interrupts_by_name", "softirqs_by_name", "smi_count"];

/// What lies between two [`Usage`]s; the result's `cpu` object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transform = added_later(LATER))]
pub struct UsageDelta {
    /// Time that passed, ns: what the times below are parts of.
    pub elapsed_ns: u64,
    /// Time in user mode, ns.
    pub user_ns: u64,
    /// Time in the kernel, ns.
    pub system_ns: u64,
    /// Times that the thread gave up the processor to wait.
    pub voluntary_switches: u64,
    /// Times that the scheduler took the processor away.
    pub involuntary_switches: u64,
    /// Page faults answered without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Time that the thread could have run but its processor ran others, ns.
    pub run_queue_wait_ns: Option<u64>,
    /// Interrupts of any kind on the processor; null if the kernel doesn't show them.
    pub interrupts: Option<u64>,
    /// Interrupts by name, and what the hypervisor took.
    #[serde(flatten)]
    pub interference: InterferenceDelta,
    /// System management interrupts, which the kernel cannot see: Intel's MSR 0x34; null unless root on Intel with the
    /// `msr` module.
    pub smi_count: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ThreadUsage {
    at: Instant,
    user_ns: u64,
    system_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    minor_faults: u64,
    major_faults: u64,
}

impl Usage {
    /// The counters of the calling thread and of `cpu`, now.
    ///
    /// # Errors
    /// If `getrusage` fails, which it doesn't on Linux for the calling thread.
    pub fn now(cpu: Option<usize>) -> Result<Self> {
        Self::read(&Sysfs::default(), cpu)
    }

    /// As [`Self::now`], with the CPU's counters from the files below `sysfs`.
    ///
    /// # Errors
    /// As [`Self::now`].
    pub fn read(sysfs: &Sysfs, cpu: Option<usize>) -> Result<Self> {
        let opened = ThreadUsage::now()?;
        let interference = cpu.map(|cpu| Interference::read(sysfs, cpu)).unwrap_or_default();
        let smi_count = cpu.and_then(|cpu| smi_count(sysfs, cpu));
        let run_queue_wait_ns = run_queue_wait_ns(sysfs, "/proc/thread-self");
        Ok(Self { opened, closed: ThreadUsage::now()?, run_queue_wait_ns, interference, smi_count })
    }

    /// What happened since `earlier`, which must be of the same thread and CPU. A counter that went backwards (the
    /// kernel's steal time can, by a tick) counts as unchanged.
    pub fn since(&self, earlier: &Self) -> UsageDelta {
        let (to, from) = (&self.opened, &earlier.closed);
        let interference = self.interference.since(&earlier.interference);
        UsageDelta {
            elapsed_ns: u64::try_from(to.at.saturating_duration_since(from.at).as_nanos()).unwrap_or(u64::MAX),
            user_ns: to.user_ns.saturating_sub(from.user_ns),
            system_ns: to.system_ns.saturating_sub(from.system_ns),
            voluntary_switches: to.voluntary_switches.saturating_sub(from.voluntary_switches),
            involuntary_switches: to.involuntary_switches.saturating_sub(from.involuntary_switches),
            minor_faults: to.minor_faults.saturating_sub(from.minor_faults),
            major_faults: to.major_faults.saturating_sub(from.major_faults),
            run_queue_wait_ns: difference(self.run_queue_wait_ns, earlier.run_queue_wait_ns),
            interrupts: interference.interrupts(),
            interference,
            smi_count: difference(self.smi_count, earlier.smi_count),
        }
    }
}

impl UsageDelta {
    /// Adds what another thread of the same run used. Counters of a processor are added only if it is `another_cpu`.
    pub fn add(&mut self, other: &Self, another_cpu: bool) {
        for (sum, more) in [
            (&mut self.elapsed_ns, other.elapsed_ns),
            (&mut self.user_ns, other.user_ns),
            (&mut self.system_ns, other.system_ns),
            (&mut self.voluntary_switches, other.voluntary_switches),
            (&mut self.involuntary_switches, other.involuntary_switches),
            (&mut self.minor_faults, other.minor_faults),
            (&mut self.major_faults, other.major_faults),
        ] {
            *sum = sum.saturating_add(more);
        }
        add(&mut self.run_queue_wait_ns, other.run_queue_wait_ns);
        if another_cpu {
            add(&mut self.interrupts, other.interrupts);
            add(&mut self.smi_count, other.smi_count);
            self.interference.add(&other.interference);
        }
    }
}

impl ThreadUsage {
    fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD)
            .map_err(|errno| Error::call("this thread", "getrusage", errno.into(), ""))?;
        Ok(Self {
            at: Instant::now(),
            user_ns: nanoseconds(usage.user_time()),
            system_ns: nanoseconds(usage.system_time()),
            voluntary_switches: unsigned(usage.voluntary_context_switches()),
            involuntary_switches: unsigned(usage.involuntary_context_switches()),
            minor_faults: unsigned(usage.minor_page_faults()),
            major_faults: unsigned(usage.major_page_faults()),
        })
    }
}

fn nanoseconds(time: TimeVal) -> u64 {
    let (seconds, microseconds) = (unsigned(time.tv_sec()), unsigned(time.tv_usec()));
    seconds.saturating_mul(1_000_000_000).saturating_add(microseconds.saturating_mul(1000))
}

fn unsigned(counter: libc::c_long) -> u64 {
    u64::try_from(counter).unwrap_or(0)
}

/// Time that the task in `folder` waited for a processor, in nanoseconds, from the second field of its `schedstat`.
pub(super) fn run_queue_wait_ns(sysfs: &Sysfs, folder: &str) -> Option<u64> {
    sysfs.read(&format!("{folder}/schedstat"))?.split_whitespace().nth(1)?.parse().ok()
}

/// The count of system management interrupts since the machine was reset.
fn smi_count(sysfs: &Sysfs, cpu: usize) -> Option<u64> {
    const MSR_SMI_COUNT: u64 = 0x34;
    let registers = File::open(sysfs.path(&format!("/dev/cpu/{cpu}/msr"))).ok()?;
    let mut value = [0; 8];
    registers.read_exact_at(&mut value, MSR_SMI_COUNT).ok()?;
    // The upper half is reserved.
    Some(u64::from_ne_bytes(value) & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{cpu, fake::Tree};

    #[test]
    fn a_cpu_without_files_has_null_counters() {
        let sysfs = Tree::new().sysfs();
        let (earlier, later) = (Usage::read(&sysfs, Some(0)).unwrap(), Usage::read(&sysfs, Some(0)).unwrap());
        let json = serde_json::to_value(later.since(&earlier)).unwrap();
        for key in
            ["interrupts", "interrupts_by_name", "softirqs_by_name", "steal_ns", "run_queue_wait_ns", "smi_count"]
        {
            assert!(json[key].is_null(), "{key}");
        }
        assert_eq!(json.as_object().unwrap().len(), 13);
    }

    #[test]
    fn a_counter_that_went_backwards_counts_as_unchanged() {
        let sysfs = Tree::new().sysfs();
        let earlier = Usage { run_queue_wait_ns: Some(20), ..Usage::read(&sysfs, None).unwrap() };
        let later = Usage { run_queue_wait_ns: Some(10), ..earlier.clone() };
        assert_eq!(later.since(&earlier).run_queue_wait_ns, Some(0));
    }

    #[test]
    fn the_smi_count_is_the_register_of_its_number() {
        let mut registers = vec![0; 0x34];
        registers.extend([7, 0, 0, 0, 9, 9, 9, 9, 1]);
        let tree = Tree::new().bytes("/dev/cpu/3/msr", &registers);
        assert_eq!((smi_count(&tree.sysfs(), 3), smi_count(&tree.sysfs(), 0)), (Some(7), None));
        assert_eq!(smi_count(&Tree::new().bytes("/dev/cpu/3/msr", &registers[..0x36]).sysfs(), 3), None);
    }

    #[test]
    fn a_wait_for_the_cpu_is_read_from_the_tasks_own_file() {
        let tree = Tree::new().file("/proc/thread-self/schedstat", "1000 2345 67\n").file("/proc/7/schedstat", "5\n");
        assert_eq!(run_queue_wait_ns(&tree.sysfs(), "/proc/thread-self"), Some(2345));
        assert_eq!(run_queue_wait_ns(&tree.sysfs(), "/proc/7"), None);
    }

    #[test]
    fn page_faults_of_this_thread_are_counted_here() {
        let cpu = cpu::online(&Sysfs::default()).and_then(|online| online.iter().next());
        let earlier = Usage::now(cpu).unwrap();
        let pages = vec![1_u8; 64 << 20];
        let later = Usage::now(cpu).unwrap();
        let delta = later.since(&earlier);
        assert!(delta.minor_faults > 0 && delta.user_ns + delta.system_ns > 0, "{delta:?} {}", pages.len());
    }

    #[test]
    fn the_time_between_two_looks_passes_for_the_thread_too() {
        let earlier = Usage::now(None).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let delta = Usage::now(None).unwrap().since(&earlier);
        assert!(delta.elapsed_ns >= 20_000_000, "{delta:?}");
    }

    #[test]
    fn a_look_does_not_count_its_own_cost() {
        let looks: Vec<Usage> = (0..20).map(|_| Usage::now(Some(0)).unwrap()).collect();
        let total = |usage: &ThreadUsage| usage.user_ns + usage.system_ns;
        let own: u64 = looks.iter().map(|look| total(&look.closed) - total(&look.opened)).sum();
        let between = |pair: &[Usage]| pair[1].since(&pair[0]);
        let between: u64 = looks.windows(2).map(between).map(|delta| delta.user_ns + delta.system_ns).sum();
        assert!(between <= own, "{between} ns between looks that took {own} ns");
    }
}
