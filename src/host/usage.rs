//! What happened to the measuring thread and to its CPU between two moments.
//!
//! Take both moments outside the measuring loop and on the measuring thread: one look reads two files whose length grows
//! with the machine. Its own cost is not in the difference for the thread's times and counts, but interrupts and steal
//! are those of the CPU for a few microseconds more than the thread's window.

use super::Sysfs;
use crate::error::{Error, Result};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};
use serde::Serialize;

/// The counters of the calling thread, and of the CPU that it is pinned to, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Before and after the files were read: a difference runs from the end of one look to the start of the next.
    opened: ThreadUsage,
    closed: ThreadUsage,
    interrupts: Option<u64>,
    steal_ns: Option<u64>,
}

/// What lies between two [`Usage`]s; the result's `cpu` object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageDelta {
    /// Time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Times that the thread gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// Times that the scheduler took the CPU away.
    pub involuntary_switches: u64,
    /// Page faults answered without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Interrupts of any kind on the CPU. `None` without a CPU or if the kernel doesn't show them.
    pub interrupts: Option<u64>,
    /// Time that the hypervisor gave to others, in nanoseconds, in steps of the kernel's tick (mostly 10 ms).
    pub steal_ns: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ThreadUsage {
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
        let interrupts = cpu.and_then(|cpu| count_interrupts(&sysfs.read("/proc/interrupts")?, cpu));
        let steal_ns = cpu.and_then(|cpu| steal_ns(sysfs, cpu));
        Ok(Self { opened, closed: ThreadUsage::now()?, interrupts, steal_ns })
    }

    /// What happened since `earlier`, which must be of the same thread and CPU. A counter that went backwards (the
    /// kernel's steal time can, by a tick) counts as unchanged.
    pub fn since(&self, earlier: &Self) -> UsageDelta {
        let (to, from) = (&self.opened, &earlier.closed);
        UsageDelta {
            user_ns: to.user_ns.saturating_sub(from.user_ns),
            system_ns: to.system_ns.saturating_sub(from.system_ns),
            voluntary_switches: to.voluntary_switches.saturating_sub(from.voluntary_switches),
            involuntary_switches: to.involuntary_switches.saturating_sub(from.involuntary_switches),
            minor_faults: to.minor_faults.saturating_sub(from.minor_faults),
            major_faults: to.major_faults.saturating_sub(from.major_faults),
            interrupts: difference(self.interrupts, earlier.interrupts),
            steal_ns: difference(self.steal_ns, earlier.steal_ns),
        }
    }
}

impl ThreadUsage {
    fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD)
            .map_err(|errno| Error::call("this thread", "getrusage", errno.into(), ""))?;
        Ok(Self {
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

fn difference(later: Option<u64>, earlier: Option<u64>) -> Option<u64> {
    Some(later?.saturating_sub(earlier?))
}

/// Sums the column of `cpu` in the text of `/proc/interrupts`, which has columns for online CPUs only.
fn count_interrupts(text: &str, cpu: usize) -> Option<u64> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next()?.split_whitespace().collect();
    let title = format!("CPU{cpu}");
    let column = columns.iter().position(|column| *column == title)?;
    let counts = lines.filter_map(|line| {
        let (label, counts) = line.split_once(':')?;
        // Counts of the whole machine stand in the first column as if they were CPU 0's.
        if matches!(label.trim(), "ERR" | "Err" | "MIS") {
            return None;
        }
        let counts: Vec<u64> = counts.split_whitespace().map_while(|count| count.parse().ok()).collect();
        if counts.len() < columns.len() { None } else { counts.get(column).copied() }
    });
    Some(counts.fold(0, u64::saturating_add))
}

/// The stolen time of `cpu` from `/proc/stat`, which counts in the user-visible tick of the auxiliary vector.
fn steal_ns(sysfs: &Sysfs, cpu: usize) -> Option<u64> {
    const STEAL: usize = 8;
    let title = format!("cpu{cpu}");
    let stat = sysfs.read("/proc/stat")?;
    let fields = stat.lines().map(|line| line.split_whitespace());
    let ticks: u64 = fields
        .filter_map(|mut fields| if fields.next()? == title { fields.nth(STEAL - 1) } else { None })
        .next()?
        .parse()
        .ok()?;
    let ticks_per_second = sysfs.auxiliary(libc::AT_CLKTCK)?;
    ticks.checked_mul(1_000_000_000)?.checked_div(ticks_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{cpu, fake::Tree};

    const INTERRUPTS: &str = "            CPU0       CPU2\n\
        \x20 0:         33          1   IO-APIC   2-edge      timer\n\
        \x20NMI:          5          7   Non-maskable interrupts\n\
        \x20LOC:    1000000    2000000   Local timer interrupts\n\
        \x20ERR:          9\n\
        \x20MIS:          9\n";

    fn tick(ticks_per_second: usize) -> Vec<u8> {
        [libc::AT_PAGESZ as usize, 4096, libc::AT_CLKTCK as usize, ticks_per_second, 0, 0]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    #[test]
    fn interrupts_are_summed_by_the_title_of_the_column() {
        assert_eq!(count_interrupts(INTERRUPTS, 0), Some(1_000_038));
        assert_eq!(count_interrupts(INTERRUPTS, 2), Some(2_000_008));
        assert_eq!(count_interrupts(INTERRUPTS, 1), None);
        assert_eq!(count_interrupts("", 0), None);
    }

    #[test]
    fn counts_of_the_whole_machine_are_not_those_of_a_single_cpu() {
        let text = "           CPU0\n  1:         10   IO-APIC   1-edge\nERR:          3\nMIS:          4\n";
        assert_eq!(count_interrupts(text, 0), Some(10));
    }

    #[test]
    fn steal_is_scaled_by_the_tick() {
        let stat = "cpu  0 0 0 0 0 0 0 99 0 0\ncpu1 1 2 3 4 5 6 7 42 0 0\ncpu10 0 0 0 0 0 0 0 1 0 0\nctxt 7\n";
        let tree = Tree::new().file("/proc/stat", stat).bytes("/proc/self/auxv", &tick(100));
        assert_eq!(steal_ns(&tree.sysfs(), 1), Some(420_000_000));
        assert_eq!(steal_ns(&tree.sysfs(), 10), Some(10_000_000));
        assert_eq!(steal_ns(&tree.sysfs(), 0), None);
        let odd = Tree::new().file("/proc/stat", stat).bytes("/proc/self/auxv", &tick(0));
        assert_eq!(steal_ns(&odd.sysfs(), 1), None);
        assert_eq!(steal_ns(&Tree::new().file("/proc/stat", "cpu1 1 2 3\n").sysfs(), 1), None);
    }

    #[test]
    fn a_cpu_without_files_has_null_counters() {
        let sysfs = Tree::new().sysfs();
        let (earlier, later) = (Usage::read(&sysfs, Some(0)).unwrap(), Usage::read(&sysfs, Some(0)).unwrap());
        let json = serde_json::to_value(later.since(&earlier)).unwrap();
        assert!(json["interrupts"].is_null() && json["steal_ns"].is_null());
        assert_eq!(json.as_object().unwrap().len(), 8);
    }

    #[test]
    fn a_counter_that_went_backwards_counts_as_unchanged() {
        let sysfs = Tree::new().sysfs();
        let earlier = Usage { steal_ns: Some(20), interrupts: Some(5), ..Usage::read(&sysfs, None).unwrap() };
        let later = Usage { steal_ns: Some(10), interrupts: Some(9), ..earlier.clone() };
        let delta = later.since(&earlier);
        assert_eq!((delta.steal_ns, delta.interrupts), (Some(0), Some(4)));
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
    fn a_look_does_not_count_its_own_cost() {
        let looks: Vec<Usage> = (0..20).map(|_| Usage::now(Some(0)).unwrap()).collect();
        let total = |usage: &ThreadUsage| usage.user_ns + usage.system_ns;
        let own: u64 = looks.iter().map(|look| total(&look.closed) - total(&look.opened)).sum();
        let between = |pair: &[Usage]| pair[1].since(&pair[0]);
        let between: u64 = looks.windows(2).map(between).map(|delta| delta.user_ns + delta.system_ns).sum();
        assert!(between <= own, "{between} ns between looks that took {own} ns");
    }
}
