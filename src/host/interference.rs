//! What took a processor away: its interrupts and softirqs by name, and the hypervisor's share.

use std::{collections::BTreeMap, num::NonZeroU64};

use schemars::JsonSchema;
use serde::Serialize;

use super::Sysfs;

/// Counters of one processor at one moment. `None` where the kernel doesn't show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interference {
    interrupts: Option<BTreeMap<String, u64>>,
    softirqs: Option<BTreeMap<String, u64>>,
    steal_ns: Option<u64>,
}

/// What lies between two moments on one processor. A name that did not count is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterferenceDelta {
    /// Interrupts of the processor by name: the driver's for a device, the kernel's short one, such as `LOC` for the
    /// local timer, for others.
    #[schemars(with = "Option<BTreeMap<String, NonZeroU64>>")]
    pub interrupts_by_name: Option<BTreeMap<String, u64>>,
    /// Softirqs of the processor by the kernel's name: `TIMER`, `NET_RX`, `SCHED` and such.
    #[schemars(with = "Option<BTreeMap<String, NonZeroU64>>")]
    pub softirqs_by_name: Option<BTreeMap<String, u64>>,
    /// Time that the hypervisor gave to others, ns, in steps of the kernel's tick (mostly 10 ms).
    pub steal_ns: Option<u64>,
}

impl Interference {
    pub(super) fn read(sysfs: &Sysfs, cpu: usize) -> Self {
        Self {
            interrupts: sysfs.read("/proc/interrupts").and_then(|text| column(&text, cpu)),
            softirqs: sysfs.read("/proc/softirqs").and_then(|text| column(&text, cpu)),
            steal_ns: steal_ns(sysfs, cpu),
        }
    }

    /// What happened since `earlier`. A counter that went backwards counts as unchanged.
    pub(super) fn since(&self, earlier: &Self) -> InterferenceDelta {
        let named = |later: &Option<_>, earlier: &Option<_>| Some(increases(later.as_ref()?, earlier.as_ref()?));
        InterferenceDelta {
            interrupts_by_name: named(&self.interrupts, &earlier.interrupts),
            softirqs_by_name: named(&self.softirqs, &earlier.softirqs),
            steal_ns: difference(self.steal_ns, earlier.steal_ns),
        }
    }
}

impl InterferenceDelta {
    /// Interrupts of any kind.
    pub fn interrupts(&self) -> Option<u64> {
        Some(self.interrupts_by_name.as_ref()?.values().fold(0, |sum, &count| sum.saturating_add(count)))
    }

    /// Adds what happened in the time that follows.
    pub(super) fn add(&mut self, next: &Self) {
        for (sum, more) in [
            (&mut self.interrupts_by_name, &next.interrupts_by_name),
            (&mut self.softirqs_by_name, &next.softirqs_by_name),
        ] {
            if let (Some(sum), Some(more)) = (sum, more) {
                add_counts(sum, more);
            }
        }
        add(&mut self.steal_ns, next.steal_ns);
    }
}

/// The counters that rose, and by how much. One that appeared meanwhile counts from zero.
pub fn increases(later: &BTreeMap<String, u64>, earlier: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let increase = |(name, &count): (&String, &u64)| {
        let more = count.saturating_sub(earlier.get(name).copied().unwrap_or(0));
        (more > 0).then(|| (name.clone(), more))
    };
    later.iter().filter_map(increase).collect()
}

/// Adds counts by their names.
pub(super) fn add_counts(sum: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, count) in more {
        *sum.entry(name.clone()).or_default() += count;
    }
}

pub(super) fn difference(later: Option<u64>, earlier: Option<u64>) -> Option<u64> {
    Some(later?.saturating_sub(earlier?))
}

pub(super) fn add(sum: &mut Option<u64>, more: Option<u64>) {
    *sum = sum.zip(more).map(|(sum, more)| sum.saturating_add(more));
}

/// The column of `cpu` in the text of `/proc/interrupts` or `/proc/softirqs`, which have columns for some CPUs only.
fn column(text: &str, cpu: usize) -> Option<BTreeMap<String, u64>> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next()?.split_whitespace().collect();
    let title = format!("CPU{cpu}");
    let column = columns.iter().position(|column| *column == title)?;
    let mut counts = BTreeMap::new();
    for line in lines {
        let Some((label, rest)) = line.split_once(':') else { continue };
        let label = label.trim();
        // Counts of the whole machine stand in the first column as if they were CPU 0's.
        if matches!(label, "ERR" | "Err" | "MIS") {
            continue;
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let numbers: Vec<u64> = words.iter().map_while(|count| count.parse().ok()).take(columns.len()).collect();
        if let (true, Some(&count)) = (numbers.len() == columns.len(), numbers.get(column)) {
            // Vectors may share a name, and a name may be missing.
            *counts.entry(name(label, &words[numbers.len()..])).or_default() += count;
        }
    }
    Some(counts)
}

/// What stands behind the kind of trigger is the driver's own name for a numbered vector: `PCI-MSI 524288-edge nvme0q1`.
fn name(label: &str, description: &[&str]) -> String {
    let is_trigger = |word: &&str| {
        let kind = word.rsplit('-').next().unwrap_or(word);
        ["edge", "level", "fasteoi"].iter().any(|known| kind.eq_ignore_ascii_case(known))
    };
    let begin = description.iter().position(is_trigger).map_or(0, |place| place + 1);
    let driver = description[begin..].join(" ");
    if label.starts_with(|c: char| c.is_ascii_digit()) && !driver.is_empty() { driver } else { label.to_string() }
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
    use crate::host::fake::Tree;

    const INTERRUPTS: &str = "            CPU0       CPU2\n\
        \x20 0:         33          1   IO-APIC   2-edge      timer\n\
        \x2024:          2          3   PCI-MSI 524288-edge      nvme0q1\n\
        \x2025:          4          5   PCI-MSI 524289-edge      nvme0q1\n\
        \x2026:          0          7   GICv3  27 Level     arch timer\n\
        \x2027:          0          9\n\
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

    fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|&(name, count)| (name.to_string(), count)).collect()
    }

    #[test]
    fn interrupts_are_those_below_the_title_of_the_column_by_the_drivers_name() {
        let expected = [("27", 9), ("LOC", 2_000_000), ("NMI", 7), ("arch timer", 7), ("nvme0q1", 8), ("timer", 1)];
        assert_eq!(column(INTERRUPTS, 2), Some(counts(&expected)));
        assert_eq!(column(INTERRUPTS, 0).unwrap()["timer"], 33);
        assert_eq!((column(INTERRUPTS, 1), column("", 0)), (None, None));
    }

    #[test]
    fn softirqs_have_their_own_names() {
        let text = "                    CPU0       CPU1\n          HI:          1          2\n      NET_RX:          3          4\n";
        assert_eq!(column(text, 1), Some(counts(&[("HI", 2), ("NET_RX", 4)])));
    }

    #[test]
    fn counts_of_the_whole_machine_are_not_those_of_a_single_cpu() {
        let text = "           CPU0\n  1:         10   IO-APIC   1-edge\nERR:          3\nMIS:          4\n";
        assert_eq!(column(text, 0), Some(counts(&[("1", 10)])));
    }

    #[test]
    fn only_what_rose_is_named() {
        let at = |pairs: &[(&str, u64)], steal_ns| Interference {
            interrupts: Some(counts(pairs)),
            softirqs: None,
            steal_ns: Some(steal_ns),
        };
        let (earlier, later) = (at(&[("LOC", 5), ("NMI", 2)], 20), at(&[("LOC", 9), ("NMI", 2), ("new", 1)], 10));
        let mut delta = later.since(&earlier);
        assert_eq!(delta.interrupts_by_name, Some(counts(&[("LOC", 4), ("new", 1)])));
        assert_eq!((delta.interrupts(), &delta.softirqs_by_name, delta.steal_ns), (Some(5), &None, Some(0)));
        delta.add(&later.since(&earlier));
        assert_eq!(delta.interrupts_by_name, Some(counts(&[("LOC", 8), ("new", 2)])));
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
}
