//! Memory that a measurement may lock, and in what pages.

use super::Sysfs;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// What this process can have of the machine's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Soft limit on locked memory, in bytes. `None` is unlimited.
    pub memlock_bytes: Option<u64>,
    /// Whether that limit binds this process: it doesn't with `CAP_IPC_LOCK` in the first user namespace.
    pub memlock_enforced: bool,
    /// `MemAvailable`, in bytes.
    pub available_bytes: Option<u64>,
    /// The default kind of hugepages. `None` where the kernel has none.
    pub hugepages: Option<Hugepages>,
    /// The size of an ordinary page, in bytes.
    pub page_bytes: Option<u64>,
}

/// The pool of hugepages of the default size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hugepages {
    /// The size of one page, in bytes: 2 MiB on x86 unless the command line says otherwise.
    pub page_bytes: u64,
    /// Pages in the pool.
    pub total: u64,
    /// Pages of the pool that nobody uses.
    pub free: u64,
}

impl Memory {
    /// Reads the limits of this process and the state of the machine.
    pub fn read(sysfs: &Sysfs) -> Self {
        let meminfo = sysfs.read("/proc/meminfo").unwrap_or_default();
        Self {
            memlock_bytes: memlock_limit(),
            memlock_enforced: !may_exceed_memlock(sysfs),
            available_bytes: kib(&meminfo, "MemAvailable"),
            hugepages: hugepages(&meminfo),
            page_bytes: sysfs.auxiliary(libc::AT_PAGESZ),
        }
    }

    /// Whether `bytes` more can be locked, as far as the limit goes; what is locked already isn't looked at.
    pub fn can_lock(&self, bytes: u64) -> bool {
        !self.memlock_enforced || self.memlock_bytes.is_none_or(|limit| bytes <= limit)
    }
}

/// The soft limit on locked memory, in bytes; `None` is unlimited.
pub fn memlock_limit() -> Option<u64> {
    // The call fails only for an unknown resource; 0 would then promise least.
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).unwrap_or((0, 0));
    (soft != RLIM_INFINITY).then_some(soft)
}

/// The kernel asks for the capability in the first user namespace, so root in a rootless container is bound.
fn may_exceed_memlock(sysfs: &Sysfs) -> bool {
    const CAP_IPC_LOCK: u32 = 14;
    let status = sysfs.read("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capable = capabilities
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .is_some_and(|bits| bits & (1 << CAP_IPC_LOCK) != 0);
    // A kernel without user namespaces has no map.
    let map = sysfs.read("/proc/self/uid_map").unwrap_or_else(|| "0 0 4294967295".into());
    capable && map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn hugepages(meminfo: &str) -> Option<Hugepages> {
    Some(Hugepages {
        page_bytes: kib(meminfo, "Hugepagesize")?,
        total: field(meminfo, "HugePages_Total")?,
        free: field(meminfo, "HugePages_Free")?,
    })
}

fn kib(meminfo: &str, name: &str) -> Option<u64> {
    field(meminfo, name)?.checked_mul(1024)
}

fn field(meminfo: &str, name: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    const MEMINFO: &str = "MemTotal:       65536 kB\nMemAvailable:   32768 kB\nHugePages_Total:     512\n\
        HugePages_Free:      500\nHugepagesize:       2048 kB\n";

    #[test]
    fn memory_and_hugepages_are_read_in_bytes() {
        let memory = Memory::read(&Tree::new().file("/proc/meminfo", MEMINFO).sysfs());
        assert_eq!(memory.available_bytes, Some(32 << 20));
        assert_eq!(memory.hugepages, Some(Hugepages { page_bytes: 2 << 20, total: 512, free: 500 }));
    }

    #[test]
    fn what_the_kernel_does_not_show_is_none() {
        for text in ["", "MemAvailable: x kB\n", "MemAvailable:\nHugepagesize: 99999999999999999999 kB"] {
            let memory = Memory::read(&Tree::new().file("/proc/meminfo", text).sysfs());
            assert_eq!((memory.available_bytes, memory.hugepages, memory.page_bytes), (None, None, None));
        }
    }

    #[test]
    fn only_the_capability_of_the_first_namespace_lifts_the_limit() {
        let tree = |bits: &str, map: &str| {
            Tree::new().file("/proc/self/status", &format!("CapEff:\t{bits}\n")).file("/proc/self/uid_map", map)
        };
        let first = "         0          0 4294967295\n";
        assert!(may_exceed_memlock(&tree("000001ffffffffff", first).sysfs()));
        assert!(!may_exceed_memlock(&tree("0000000000000000", first).sysfs()));
        assert!(!may_exceed_memlock(&tree("000001ffffffffff", "0 1000 1\n").sysfs()));
        assert!(!may_exceed_memlock(&Tree::new().sysfs()));
    }

    #[test]
    fn a_limit_that_does_not_bind_allows_any_size() {
        let bound = Memory { memlock_bytes: Some(8 << 20), ..Memory::read(&Tree::new().sysfs()) };
        assert!(bound.memlock_enforced && bound.can_lock(8 << 20) && !bound.can_lock((8 << 20) + 1));
        assert!(Memory { memlock_enforced: false, ..bound.clone() }.can_lock(u64::MAX));
        assert!(Memory { memlock_bytes: None, ..bound }.can_lock(u64::MAX));
    }

    #[test]
    fn this_machine_has_memory_available() {
        let memory = Memory::read(&Sysfs::default());
        assert!(memory.available_bytes.unwrap() > 0 && memory.page_bytes.unwrap() >= 4096);
    }
}
