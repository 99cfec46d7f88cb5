//! A fake system tree for tests.

use super::sysfs::Sysfs;
use std::{fs, os::unix::fs::symlink, path::PathBuf};

/// A temporary folder that stands for `/`, filled by the calls on it.
pub(crate) struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.bytes(path, text.as_bytes())
    }

    pub(crate) fn bytes(self, path: &str, bytes: &[u8]) -> Self {
        fs::write(self.place(path), bytes).unwrap();
        self
    }

    pub(crate) fn folder(self, path: &str) -> Self {
        fs::create_dir_all(self.place(path)).unwrap();
        self
    }

    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.place(path)).unwrap();
        self
    }

    /// A disk of 1 GiB as sysfs shows one, in the folder `place`/block of /sys/devices.
    pub(crate) fn disk(self, place: &str, name: &str, number: &str) -> Self {
        let folder = format!("/sys/devices/{place}/block/{name}");
        self.file(&format!("{folder}/queue/logical_block_size"), "512\n")
            .file(&format!("{folder}/removable"), "0\n")
            .link(&format!("/sys/block/{name}"), &format!("../devices/{place}/block/{name}"))
            .block(&folder, name, number, 1 << 21)
    }

    /// A partition of 1 MiB, one MiB from the beginning of a disk.
    pub(crate) fn partition(self, place: &str, disk: &str, name: &str, number: &str) -> Self {
        let folder = format!("/sys/devices/{place}/block/{disk}/{name}");
        self.file(&format!("{folder}/partition"), "1\n")
            .file(&format!("{folder}/start"), "2048\n")
            .block(&folder, name, number, 2048)
    }

    fn block(self, folder: &str, name: &str, number: &str, sectors: u64) -> Self {
        let below = folder.trim_start_matches("/sys/");
        self.file(&format!("{folder}/dev"), &format!("{number}\n"))
            .file(&format!("{folder}/size"), &format!("{sectors}\n"))
            .file(&format!("{folder}/ro"), "0\n")
            .folder(&format!("{folder}/holders"))
            .link(&format!("/sys/class/block/{name}"), &format!("../../{below}"))
            .link(&format!("/sys/dev/block/{number}"), &format!("../../{below}"))
    }

    pub(crate) fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.root.path())
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.sysfs().path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }
}
