//! Which CPUs there are, which of them this process may use, which one suits a measurement, and pinning to it.
//!
//! All numbers are kernel CPU numbers. Read [`Cpus`] before the first thread is pinned: the affinity mask belongs to the
//! thread, and a pinned thread (and every thread that it starts) sees its own CPU only.

use super::{CpuSet, Sysfs};
use crate::error::{Error, Result};
use nix::{
    sched::{sched_getaffinity, sched_getcpu, sched_setaffinity},
    unistd::Pid,
};
use std::{cmp::Reverse, io, thread};

/// The calling thread, as the affinity calls name it.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// The CPUs of this machine, as the calling thread could use them at one moment.
#[derive(Clone, Debug)]
pub struct Cpus {
    sysfs: Sysfs,
    allowed: CpuSet,
    online: Option<CpuSet>,
    present: Option<CpuSet>,
    isolated: CpuSet,
}

impl Cpus {
    /// Reads the CPUs of this machine and the affinity mask of the calling thread.
    pub fn read() -> Self {
        let sysfs = Sysfs::default();
        let isolated = isolated(&sysfs).unwrap_or_default();
        let affinity = allowed().or_else(|| online(&sysfs)).unwrap_or_default();
        let allowed = if isolated.is_empty() {
            affinity
        } else {
            with_isolated(affinity, &reachable().unwrap_or_default(), &isolated)
        };
        Self::with_allowed(sysfs, allowed)
    }

    /// The CPUs below `sysfs`, of which `allowed` may be used.
    pub fn with_allowed(sysfs: Sysfs, allowed: CpuSet) -> Self {
        let (online, present) = (online(&sysfs), present(&sysfs));
        let isolated = isolated(&sysfs).unwrap_or_default();
        Self { sysfs, allowed, online, present, isolated }
    }

    /// The CPUs that a thread of this process may be pinned to. Isolated CPUs count although the mask that a process
    /// inherits lacks them, unless taskset or a cpuset took them away.
    pub fn allowed(&self) -> &CpuSet {
        &self.allowed
    }

    /// The CPUs that [`Self::choose`] chooses from: allowed and, as far as the kernel shows it, online.
    pub fn usable(&self) -> CpuSet {
        self.online.as_ref().map_or_else(|| self.allowed.clone(), |online| self.allowed.intersect(online))
    }

    /// Checks that a thread can be pinned to `cpu`, which the user gave with `option_name`.
    ///
    /// # Errors
    /// A usage error that tells apart a CPU that doesn't exist, one that is offline, and one that this process may not
    /// use, each with its remedy.
    pub fn check_usable(&self, cpu: usize, option_name: &str) -> Result<()> {
        if let Some(present) = self.present.as_ref().filter(|present| !present.contains(cpu)) {
            return Err(Error::usage(format!(
                "{option_name}: CPU {cpu} does not exist; this machine has CPUs {present}"
            )));
        }
        if let Some(online) = self.online.as_ref().filter(|online| !online.contains(cpu)) {
            return Err(Error::usage(format!(
                "{option_name}: CPU {cpu} is offline (online: {online}). Bring it online with: \
                 echo 1 > /sys/devices/system/cpu/cpu{cpu}/online"
            )));
        }
        if !self.allowed.contains(cpu) {
            return Err(Error::usage(format!(
                "{option_name}: CPU {cpu} is not allowed for this process; taskset or a cpuset cgroup leaves it CPUs {}. \
                 Choose one of these, or start it with a wider set",
                self.allowed
            )));
        }
        Ok(())
    }

    /// Chooses a CPU for a measuring thread: not one of `avoid`, and if possible neither a hardware thread that shares a
    /// core with one of them; then one of `near` (the CPUs next to the device); then an isolated one; then the one with
    /// the highest number, since interrupts and housekeeping gather on the lowest.
    ///
    /// `None` only if every usable CPU is in `avoid`.
    pub fn choose(&self, near: Option<&CpuSet>, avoid: &CpuSet) -> Option<usize> {
        let shared: CpuSet =
            avoid.iter().flat_map(|cpu| smt_siblings(&self.sysfs, cpu).iter().collect::<Vec<_>>()).collect();
        self.usable().without(avoid).iter().min_by_key(|&cpu| {
            let far = near.is_some_and(|near| !near.contains(cpu));
            (shared.contains(cpu), far, !self.isolated.contains(cpu), Reverse(cpu))
        })
    }
}

/// The affinity mask of the calling thread. `None` if the kernel shows it neither by call nor in /proc.
pub fn allowed() -> Option<CpuSet> {
    let mask = sched_getaffinity(THIS_THREAD).ok();
    let called = mask.map(|mask| (0..Mask::count()).filter(|&cpu| mask.is_set(cpu).unwrap_or(false)).collect());
    // The call's fixed mask is too short for a kernel of more than 1024 CPUs, which then refuses it.
    called.or_else(|| allowed_by_status(&Sysfs::default()))
}

/// The CPUs that are running.
pub fn online(sysfs: &Sysfs) -> Option<CpuSet> {
    list(sysfs, "/sys/devices/system/cpu/online")
}

/// The CPUs that are plugged in, running or not.
pub fn present(sysfs: &Sysfs) -> Option<CpuSet> {
    list(sysfs, "/sys/devices/system/cpu/present")
}

/// The CPUs that could ever be plugged in.
pub fn possible(sysfs: &Sysfs) -> Option<CpuSet> {
    list(sysfs, "/sys/devices/system/cpu/possible")
}

/// The CPUs that `isolcpus=` (or an isolated cpuset partition) keeps the scheduler off.
pub fn isolated(sysfs: &Sysfs) -> Option<CpuSet> {
    list(sysfs, "/sys/devices/system/cpu/isolated")
}

/// The CPUs that `nohz_full=` relieves of the timer tick. `None` where the kernel is built without it.
pub fn nohz_full(sysfs: &Sysfs) -> Option<CpuSet> {
    let text = sysfs.read("/sys/devices/system/cpu/nohz_full")?;
    // Kernels that could but were not told to print the null pointer.
    if text == "(null)" { Some(CpuSet::default()) } else { text.parse().ok() }
}

/// The other hardware threads of the core that `cpu` belongs to, without `cpu` itself. Empty where there are none or
/// where the kernel doesn't show them.
pub fn smt_siblings(sysfs: &Sysfs, cpu: usize) -> CpuSet {
    let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    let siblings = list(sysfs, &format!("{topology}/thread_siblings_list"))
        .or_else(|| list(sysfs, &format!("{topology}/core_cpus_list")))
        .unwrap_or_default();
    siblings.without(&CpuSet::from_iter([cpu]))
}

/// The CPUs of a NUMA node.
pub fn near_node(sysfs: &Sysfs, node: u32) -> Option<CpuSet> {
    list(sysfs, &format!("/sys/devices/system/node/node{node}/cpulist"))
}

/// Pins the calling thread to `cpu` and makes sure that it is there.
///
/// # Errors
/// If the kernel refuses, or if the mask or the running CPU read back afterwards is another.
pub fn pin_current(cpu: usize) -> Result<()> {
    check_width(cpu)?;
    if !core_affinity::set_for_current(core_affinity::CoreId { id: cpu }) {
        // The crate returns a bool; its last call was the one that failed.
        let source = io::Error::last_os_error();
        return Err(pin_error(cpu, "sched_setaffinity", source));
    }
    let wanted = CpuSet::from_iter([cpu]);
    match allowed() {
        Some(mask) if mask == wanted => {}
        mask => {
            let mask = mask.map_or_else(|| "unknown".to_string(), |mask| mask.to_string());
            let source = io::Error::other(format!("the mask reads back as {mask}"));
            return Err(pin_error(cpu, "sched_getaffinity", source));
        }
    }
    let running = sched_getcpu().map_err(|errno| pin_error(cpu, "sched_getcpu", errno.into()))?;
    if running != cpu {
        let source = io::Error::other(format!("the thread runs on CPU {running}"));
        return Err(pin_error(cpu, "sched_getcpu", source));
    }
    Ok(())
}

/// Keeps the calling thread, a helper that should stay out of the measuring thread's way, on `cpus`. The kernel may
/// narrow the set to what the process is allowed.
///
/// # Errors
/// If the kernel refuses, as it does for an empty set or one without any allowed CPU.
pub fn restrict_current(cpus: &CpuSet) -> Result<()> {
    let mut mask = Mask::new();
    for cpu in cpus.iter() {
        check_width(cpu)?;
        mask.set(cpu).map_err(|errno| restrict_error(cpus, errno.into()))?;
    }
    sched_setaffinity(THIS_THREAD, &mask).map_err(|errno| restrict_error(cpus, errno.into()))
}

/// The kernel's fixed-size mask, under a name that doesn't clash with our own set.
type Mask = nix::sched::CpuSet;

fn list(sysfs: &Sysfs, path: &str) -> Option<CpuSet> {
    sysfs.read(path)?.parse().ok()
}

fn allowed_by_status(sysfs: &Sysfs) -> Option<CpuSet> {
    let status = sysfs.read("/proc/thread-self/status")?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
}

/// All CPUs that this process could move itself to: a thread of its own asks for every one, and the kernel cuts that
/// down to the cpuset.
fn reachable() -> Option<CpuSet> {
    let ask = || {
        let mut mask = Mask::new();
        (0..Mask::count()).try_for_each(|cpu| mask.set(cpu)).ok()?;
        sched_setaffinity(THIS_THREAD, &mask).ok()?;
        allowed()
    };
    thread::Builder::new().spawn(ask).ok()?.join().ok()?
}

/// Adds the isolated CPUs to an inherited mask. `isolcpus=` takes them out of the mask that every process starts with,
/// although each may move there; but a mask that differs from that was narrowed on purpose, and is kept.
fn with_isolated(affinity: CpuSet, reachable: &CpuSet, isolated: &CpuSet) -> CpuSet {
    if affinity == reachable.without(isolated) { reachable.clone() } else { affinity }
}

fn check_width(cpu: usize) -> Result<()> {
    // Beyond the width of the fixed mask core_affinity would index out of bounds.
    if cpu < Mask::count() {
        return Ok(());
    }
    Err(Error::Limit {
        object: "thread affinity".into(),
        what: "CPU number",
        value: cpu as u64,
        limit: Mask::count() as u64 - 1,
        remedy: String::new(),
    })
}

fn pin_error(cpu: usize, call: &'static str, source: io::Error) -> Error {
    let allowed = allowed().map_or_else(|| "unknown".to_string(), |allowed| allowed.to_string());
    let hint = format!("The CPU must be online and in this process's taskset and cpuset (now {allowed})");
    Error::call(format!("CPU {cpu}"), call, source, hint)
}

fn restrict_error(cpus: &CpuSet, source: io::Error) -> Error {
    let hint = "At least one of the CPUs must be online and in this process's cpuset";
    Error::call(format!("CPUs {cpus}"), "sched_setaffinity", source, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    const CPU: &str = "/sys/devices/system/cpu";

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// Eight CPUs, 0-3 and 4-7 the hardware threads of four cores.
    fn eight(online: &str, isolated: &str) -> Tree {
        let mut tree = Tree::new()
            .file(&format!("{CPU}/present"), "0-7\n")
            .file(&format!("{CPU}/online"), online)
            .file(&format!("{CPU}/isolated"), isolated);
        for cpu in 0..8 {
            let siblings = format!("{},{}", cpu % 4, cpu % 4 + 4);
            tree = tree.file(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"), &siblings);
        }
        tree
    }

    fn chosen(tree: &Tree, allowed: &str, near: Option<&str>, avoid: &str) -> Option<usize> {
        let cpus = Cpus::with_allowed(tree.sysfs(), set(allowed));
        cpus.choose(near.map(set).as_ref(), &set(avoid))
    }

    #[test]
    fn absent_offline_and_forbidden_cpus_are_told_apart() {
        let tree = eight("0-5\n", "\n");
        let cpus = Cpus::with_allowed(tree.sysfs(), set("0-3"));
        let message = |cpu| cpus.check_usable(cpu, "--cpu").unwrap_err().to_string();
        assert!(cpus.check_usable(3, "--cpu").is_ok());
        assert_eq!(message(9), "--cpu: CPU 9 does not exist; this machine has CPUs 0-7");
        assert!(message(6).contains("offline") && message(6).contains("/sys/devices/system/cpu/cpu6/online"));
        assert!(message(4).contains("leaves it CPUs 0-3") && message(4).contains("taskset"), "{}", message(4));
        assert_eq!(cpus.check_usable(9, "--cpu").unwrap_err().exit_code(), 2);
    }

    #[test]
    fn the_highest_usable_cpu_is_chosen() {
        let tree = eight("0-5\n", "\n");
        assert_eq!(chosen(&tree, "0-7", None, ""), Some(5));
        assert_eq!(chosen(&tree, "0-3", None, ""), Some(3));
    }

    #[test]
    fn a_cpu_near_the_device_comes_before_an_isolated_one() {
        let tree = eight("0-7\n", "1,6\n");
        assert_eq!(chosen(&tree, "0-7", None, ""), Some(6));
        assert_eq!(chosen(&tree, "0-7", Some("0-3"), ""), Some(1));
        assert_eq!(chosen(&tree, "0-7", Some("2-3"), ""), Some(3));
        assert_eq!(chosen(&tree, "0-7", Some("32-63"), ""), Some(6));
    }

    #[test]
    fn avoided_cores_are_shared_only_when_nothing_else_is_left() {
        let tree = eight("0-7\n", "\n");
        assert_eq!(chosen(&tree, "0-7", None, "7"), Some(6));
        assert_eq!(chosen(&tree, "0-7", None, "3"), Some(6));
        assert_eq!(chosen(&tree, "3,7", None, "3"), Some(7));
        assert_eq!(chosen(&tree, "3,7", None, "3,7"), None);
    }

    #[test]
    fn a_tree_without_files_leaves_the_allowed_set() {
        assert_eq!(chosen(&Tree::new(), "0-1", None, "1"), Some(0));
        assert!(Cpus::with_allowed(Tree::new().sysfs(), set("0-1")).check_usable(1, "--cpu").is_ok());
    }

    #[test]
    fn lists_of_the_kernel_are_read_from_the_tree() {
        let tree = eight("0-5\n", "2\n")
            .file(&format!("{CPU}/possible"), "0-127\n")
            .file(&format!("{CPU}/nohz_full"), " (null)\n")
            .file(&format!("{CPU}/cpu9/topology/core_cpus_list"), "8-9\n")
            .file("/sys/devices/system/node/node1/cpulist", "4-7\n")
            .file("/proc/thread-self/status", "Name:\tx\nCpus_allowed_list:\t0-5\n");
        let sysfs = tree.sysfs();
        assert_eq!(possible(&sysfs), Some(set("0-127")));
        assert_eq!(nohz_full(&sysfs), Some(set("")));
        assert_eq!(smt_siblings(&sysfs, 7), set("3"));
        assert_eq!(smt_siblings(&sysfs, 9), set("8"));
        assert_eq!(near_node(&sysfs, 1), Some(set("4-7")));
        assert_eq!(near_node(&sysfs, 2), None);
        assert_eq!(allowed_by_status(&sysfs), Some(set("0-5")));
        assert_eq!(nohz_full(&Tree::new().sysfs()), None);
    }

    #[test]
    fn isolated_cpus_are_allowed_unless_the_mask_was_narrowed() {
        let (all, isolated) = (set("0-7"), set("6-7"));
        assert_eq!(with_isolated(set("0-5"), &all, &isolated), all);
        assert_eq!(with_isolated(set("0-1"), &all, &isolated), set("0-1"));
        assert_eq!(with_isolated(set("0-3"), &set("0-3"), &isolated), set("0-3"));
        assert_eq!(with_isolated(set("0-5"), &CpuSet::default(), &isolated), set("0-5"));
    }

    #[test]
    fn a_thread_is_pinned_to_each_cpu_it_may_use() {
        let cpus = Cpus::read();
        thread::spawn(move || {
            for cpu in cpus.usable().iter() {
                pin_current(cpu).unwrap();
                assert_eq!(allowed(), Some(CpuSet::from_iter([cpu])));
            }
            restrict_current(cpus.allowed()).unwrap();
            assert_eq!(allowed().as_ref(), Some(cpus.allowed()));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn pinning_to_an_absent_cpu_is_an_error_with_the_allowed_set() {
        let error = pin_current(1023).unwrap_err().to_string();
        assert!(error.starts_with("CPU 1023: sched_setaffinity: ") && error.contains("(now "), "{error}");
        assert!(pin_current(usize::MAX).unwrap_err().to_string().contains("limit of 1023"));
        assert!(restrict_current(&CpuSet::default()).is_err());
        assert!(restrict_current(&CpuSet::from_iter([4000])).is_err());
    }

    #[test]
    fn every_cpu_that_may_be_used_here_is_reachable() {
        let reachable = reachable().unwrap();
        assert!(allowed().unwrap().without(&reachable).is_empty());
    }
}
