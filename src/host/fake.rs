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

    pub(crate) fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.root.path())
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.sysfs().path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }
}
