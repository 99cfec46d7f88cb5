//! Priority of the measuring thread over others on its processor.
//!
//! Real-time priority is a trap for a thread that polls. Kernels before 6.12 take the processor away from it for 50 ms in
//! each second (kernel.sched_rt_runtime_us), which would stand in the tail as if the device had done it. And whatever
//! shares its processor waits: a command that such a thread completes would never complete. So it is taken only where
//! neither can happen, and kernel.sched_rt_runtime_us, which is for the whole machine, is never changed here.

use std::io;

use crate::{host::Sysfs, sys::priority::Policy};

/// The first kernel whose default is to help only tasks that starve, instead of stopping real-time threads (fair server).
const FAIR_SERVER: (u32, u32) = (6, 12);

/// The lowest real-time priority: nothing else need be outdone, and interrupt threads should not be.
const LOWEST: u32 = 1;

/// The highest ordinary priority.
const NICEST: i32 = -20;

/// The calling thread at another priority; it gets its own back on drop, which must be on the same thread.
#[derive(Debug)]
pub struct Priority {
    before: Policy,
}

impl Priority {
    /// The name of real-time priority in a result.
    pub const REAL_TIME: &'static str = "real-time-priority";
    /// The name of what stands in for it.
    pub const NICE: &'static str = "nice";

    /// SCHED_FIFO for the calling thread. Whether that is safe is for the caller to ask, see [`throttled`].
    ///
    /// # Errors
    /// The reason, with errno and remedy.
    pub fn real_time(sysfs: &Sysfs) -> Result<(Self, String), String> {
        let shared = if version(&release(sysfs)).is_some_and(|version| version >= FAIR_SERVER) {
            "; what starves on its processor still gets up to 50 ms in a second (fair server)"
        } else {
            ""
        };
        let detail = format!("SCHED_FIFO {LOWEST} for the measuring thread alone{shared}");
        Self::set(Policy::fifo(LOWEST), detail, "Needs CAP_SYS_NICE, or `ulimit -r 1`")
    }

    /// Nice −20 for the calling thread.
    ///
    /// # Errors
    /// The reason, with errno and remedy.
    pub fn nice() -> Result<(Self, String), String> {
        let detail = "nice −20 for the measuring thread alone".to_string();
        Self::set(Policy::ordinary(NICEST), detail, "Needs CAP_SYS_NICE, or `ulimit -e 40`")
    }

    fn set(policy: Policy, detail: String, remedy: &str) -> Result<(Self, String), String> {
        let worded = |call: &str, error: io::Error| format!("{call}: {error}. {remedy}");
        let before = Policy::current().map_err(|error| worded("sched_getattr", error))?;
        policy.apply().map_err(|error| worded("sched_setattr", error))?;
        Ok((Self { before }, detail))
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if self.before.apply().is_err() {
            // What an rlimit allowed to take may not be given back in full: the flag that keeps it from being inherited
            // needs CAP_SYS_NICE. The ordinary priority does not.
            let _ = Policy::ordinary(0).apply();
        }
    }
}

/// Why the kernel would stop a real-time thread that polls, with the knob; `None` where it would not.
pub fn throttled(sysfs: &Sysfs) -> Option<String> {
    let number = |name: &str| sysfs.read_word(&format!("/proc/sys/kernel/{name}"))?.parse::<i64>().ok();
    let release = release(sysfs);
    let by_group = limits_groups(sysfs, &release);
    if version(&release).is_some_and(|version| version >= FAIR_SERVER) && !by_group {
        return None;
    }
    let (runtime, period) = (number("sched_rt_runtime_us"), number("sched_rt_period_us").unwrap_or(1_000_000));
    let runtime = match runtime {
        Some(runtime) if runtime < 0 || runtime >= period => return None,
        Some(runtime) => format!("{runtime} of {period} µs"),
        None => "an unknown part of the time".into(),
    };
    let why = if by_group { "is built to limit groups of real-time threads" } else { "is older than 6.12" };
    Some(format!(
        "a thread that polls would be stopped after {runtime} (kernel.sched_rt_runtime_us; this kernel {why}). \
         `sysctl kernel.sched_rt_runtime_us=-1` lifts that for the whole machine"
    ))
}

fn release(sysfs: &Sysfs) -> String {
    sysfs.read_word("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// Whether the kernel is built with CONFIG_RT_GROUP_SCHED, which keeps the old limit, as far as it can be told.
fn limits_groups(sysfs: &Sysfs, release: &str) -> bool {
    let configured = |path: String| {
        sysfs.read(&path).is_some_and(|text| text.lines().any(|line| line.trim() == "CONFIG_RT_GROUP_SCHED=y"))
    };
    sysfs.exists("/sys/fs/cgroup/cpu/cpu.rt_runtime_us")
        || configured(format!("/boot/config-{release}"))
        || configured(format!("/lib/modules/{release}/config"))
}

/// Major and minor number of a release such as `6.12.3-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    fn kernel(release: &str, runtime: &str) -> Tree {
        Tree::new()
            .file("/proc/sys/kernel/osrelease", release)
            .file("/proc/sys/kernel/sched_rt_runtime_us", runtime)
            .file("/proc/sys/kernel/sched_rt_period_us", "1000000\n")
    }

    #[test]
    fn a_kernel_without_a_fair_server_stops_a_polling_thread() {
        let reason = throttled(&kernel("6.1.0-57-amd64", "950000\n").sysfs()).unwrap();
        assert!(reason.contains("950000 of 1000000 µs") && reason.contains("sched_rt_runtime_us=-1"), "{reason}");
        assert!(throttled(&kernel("6.11.9", "950000").sysfs()).is_some());
        assert!(throttled(&kernel("5.14.0", "950000").sysfs()).is_some());
    }

    #[test]
    fn a_kernel_that_is_told_not_to_or_helps_only_the_starving_does_not() {
        assert_eq!(throttled(&kernel("6.1.0-57-amd64", "-1\n").sysfs()), None);
        assert_eq!(throttled(&kernel("6.1.0", "1000000").sysfs()), None);
        assert_eq!(throttled(&kernel("6.12.0-rc1", "950000").sysfs()), None);
        assert_eq!(throttled(&kernel("7.0", "950000").sysfs()), None);
    }

    #[test]
    fn a_kernel_that_limits_groups_or_is_not_known_is_taken_to_stop_it() {
        let grouped = kernel("6.18.1", "950000").file("/boot/config-6.18.1", "# x\nCONFIG_RT_GROUP_SCHED=y\n");
        assert!(throttled(&grouped.sysfs()).unwrap().contains("groups"));
        assert!(throttled(&Tree::new().sysfs()).is_some());
    }

    #[test]
    fn the_version_is_read_from_any_release() {
        assert_eq!(version("6.12.3-amd64"), Some((6, 12)));
        assert_eq!(version("7.0+"), Some((7, 0)));
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn a_priority_that_may_be_taken_is_given_back() {
        std::thread::spawn(|| {
            let current = || format!("{:?}", Policy::current().unwrap());
            let before = current();
            // Without the capability it is refused with the reason.
            match Priority::nice() {
                Ok((guard, detail)) => {
                    assert!(detail.contains("−20"));
                    drop(guard);
                }
                Err(reason) => assert!(reason.contains("os error") && reason.contains("CAP_SYS_NICE"), "{reason}"),
            }
            assert_eq!(current(), before);
        })
        .join()
        .unwrap();
    }
}
