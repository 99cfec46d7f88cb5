//! The file system that a file is on.

use std::path::Path;

use nix::sys::statfs::statfs;

/// What a file system says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// Its usual name, or its magic number where that isn't known here.
    pub name: String,
    /// Whether its files lie in memory.
    pub in_memory: bool,
}

/// Magic numbers of linux/magic.h and of the file systems' own sources, names, and whether files lie in memory.
const KNOWN: [(u32, &str, bool); 16] = [
    (0xef53, "ext4", false), // And its ancestors, which share the number.
    (0x5846_5342, "xfs", false),
    (0x9123_683e, "btrfs", false),
    (0xf2f5_2010, "f2fs", false),
    (0x2fc1_2fc1, "zfs", false),
    (0x794c_7630, "overlay", false),
    (0x6969, "nfs", false),
    (0xfe53_4d42, "smb", false),
    (0x0102_1997, "9p", false),
    (0x6573_5546, "fuse", false),
    (0x6a65_6a63, "virtiofs", false),
    (0x4d44, "vfat", false),
    (0x7371_7368, "squashfs", false),
    (0x0102_1994, "tmpfs", true),
    (0x8584_58f6, "ramfs", true),
    (0x9584_58f6, "hugetlbfs", true),
];

impl Filesystem {
    /// That of a path; none if it can't be asked.
    pub fn of(path: &Path) -> Option<Self> {
        let magic = statfs(path).ok()?.filesystem_type().0 as u32;
        let known = KNOWN.iter().find(|(number, _, _)| *number == magic);
        Some(match known {
            Some((_, name, in_memory)) => Self { name: (*name).into(), in_memory: *in_memory },
            None => Self { name: format!("{magic:#x}"), in_memory: false },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_disks() {
        let proc = Filesystem::of(Path::new("/proc")).unwrap();
        assert_eq!((proc.name.as_str(), proc.in_memory), ("0x9fa0", false));
        let shm = Filesystem::of(Path::new("/dev/shm")).unwrap();
        assert_eq!((shm.name.as_str(), shm.in_memory), ("tmpfs", true));
        assert_eq!(Filesystem::of(Path::new("/no/such/place")), None);
    }
}
