//! Memory that stays: no page of the process, present or to come, is taken away and faulted in again.

use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};

use crate::host::{Memory, Sysfs};

/// Room for thread stacks and for what the allocator reserves for each thread, which counts although it is not used.
const SLACK_BYTES: u64 = 512 << 20;

/// All memory of the process, locked. `munlockall` on drop.
#[derive(Debug)]
pub struct LockedMemory(());

impl LockedMemory {
    /// The name in a result.
    pub const NAME: &'static str = "locked-memory";

    /// Locks all pages there are and all to come, of which there will be about `needed_bytes`.
    ///
    /// Under a limit that might be reached it is refused beforehand: later allocations would fail, and with them the run.
    ///
    /// # Errors
    /// The reason, with the limit or errno, and the remedy.
    pub fn hold(sysfs: &Sysfs, memory: &Memory, needed_bytes: u64) -> Result<(Self, String), String> {
        const REMEDY: &str = "Raise it with `ulimit -l unlimited`, or give CAP_IPC_LOCK";
        let mapped = mapped_bytes(sysfs).unwrap_or(0);
        let needed = mapped.saturating_add(needed_bytes).saturating_add(SLACK_BYTES);
        if !memory.can_lock(needed) {
            let (limit, needed) = (memory.memlock_bytes.unwrap_or(0) >> 10, needed.div_ceil(1024));
            return Err(format!(
                "the limit on locked memory is {limit} KiB (RLIMIT_MEMLOCK) and up to {needed} KiB may be needed. {REMEDY}"
            ));
        }
        match mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE) {
            Ok(()) => Ok((Self(()), "mlockall: all pages of the process stay in memory".into())),
            Err(errno) => {
                let _ = munlockall(); // Whatever it had done by then.
                Err(format!("mlockall: {}. {REMEDY}", std::io::Error::from(errno)))
            }
        }
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // It fails for no reason that the manual knows; the kernel forgets the locks with the process.
        let _ = munlockall();
    }
}

fn mapped_bytes(sysfs: &Sysfs) -> Option<u64> {
    let status = sysfs.read("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    #[test]
    fn a_limit_that_the_run_might_reach_is_refused_with_its_remedy() {
        let tree = Tree::new().file("/proc/self/status", "VmPeak:\t9 kB\nVmSize:\t    1024 kB\n");
        let memory = Memory { memlock_bytes: Some(8 << 20), ..Memory::read(&tree.sysfs()) };
        assert!(memory.memlock_enforced);
        let reason = LockedMemory::hold(&tree.sysfs(), &memory, 1 << 20).unwrap_err();
        assert!(reason.contains("8192 KiB") && reason.contains("526336 KiB"), "{reason}");
        assert!(reason.contains("ulimit -l unlimited"), "{reason}");
    }

    #[test]
    fn the_size_of_this_process_is_read() {
        assert!(mapped_bytes(&Sysfs::default()).unwrap() > 0);
        assert_eq!(mapped_bytes(&Tree::new().sysfs()), None);
    }
}
