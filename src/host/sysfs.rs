//! The one way to the files of /proc, /sys and /dev: below a root that tests replace by a tree of their own.
//!
//! A file that is missing, unreadable or not text is `None`. Callers must not take `None` for a zero or an empty value:
//! kernels, containers and architectures differ in what they show.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the system's own files are: `/`, or a fake tree in a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self { root: PathBuf::from("/") }
    }
}

impl Sysfs {
    /// The files below `root`, which stands for `/`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The real place of the absolute path `path`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file without white space around it.
    pub fn read(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_string())
    }

    /// As [`Self::read`], with an empty file counted as missing: many drivers show one for a value they don't have.
    pub fn read_word(&self, path: &str) -> Option<String> {
        self.read(path).filter(|text| !text.is_empty())
    }

    /// The bytes of a file, such as `/proc/self/auxv`.
    pub fn read_bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.path(path)).ok()
    }

    /// The names in a folder, in order of their numbers where they end in one (`uverbs2` before `uverbs10`). `None` when
    /// the folder is missing, which callers tell apart from an empty one.
    pub fn names(&self, path: &str) -> Option<Vec<String>> {
        let mut names: Vec<String> = fs::read_dir(self.path(path))
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        Some(names)
    }

    /// The last part of what a symbolic link points to, such as the driver's name behind `device/driver`.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.file_name()?.to_str().map(str::to_string)
    }

    /// The absolute path of what is at `path`, with every link followed. `None` also for what lies outside the root.
    pub fn canonical(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let place = fs::canonicalize(self.place(path.as_ref())).ok()?;
        let below = place.strip_prefix(fs::canonicalize(&self.root).ok()?).ok()?;
        Some(Path::new("/").join(below))
    }

    /// The identity, kind and size of what is at `path`, with links followed.
    pub fn metadata(&self, path: impl AsRef<Path>) -> Option<fs::Metadata> {
        fs::metadata(self.place(path.as_ref())).ok()
    }

    /// Whether something is at `path`.
    pub fn exists(&self, path: &str) -> bool {
        let path: &Path = &self.path(path);
        path.exists()
    }

    /// As [`Self::path`], for paths that need not be text.
    fn place(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// An entry of the auxiliary vector that the kernel gave this process: `AT_PAGESZ`, `AT_CLKTCK`.
    pub fn auxiliary(&self, key: u64) -> Option<u64> {
        const WORD: usize = size_of::<usize>();
        let bytes = self.read_bytes("/proc/self/auxv")?;
        let (words, _) = bytes.as_chunks::<WORD>();
        let words: Vec<u64> = words.iter().map(|word| usize::from_ne_bytes(*word) as u64).collect();
        words.chunks_exact(2).find(|pair| pair[0] == key).map(|pair| pair[1])
    }
}

/// Splits a trailing number off a name, so that names sort as people count.
fn natural(name: &str) -> (&str, u128, &str) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name[stem.len()..].parse().unwrap_or(0), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    #[test]
    fn missing_files_are_none() {
        let tree = Tree::new();
        let sysfs = tree.sysfs();
        assert_eq!(sysfs.read("/proc/cpuinfo"), None);
        assert_eq!(sysfs.names("/sys/class/infiniband"), None);
        assert_eq!(sysfs.link_name("/sys/class/net/eth0/device/driver"), None);
        assert_eq!(sysfs.auxiliary(libc::AT_PAGESZ), None);
        assert!(!sysfs.exists("/proc"));
    }

    #[test]
    fn text_is_trimmed_and_an_empty_word_is_none() {
        let tree = Tree::new().file("/sys/a", " one two\n").file("/sys/b", "\n");
        assert_eq!(tree.sysfs().read("/sys/a").as_deref(), Some("one two"));
        assert_eq!(tree.sysfs().read("/sys/b").as_deref(), Some(""));
        assert_eq!(tree.sysfs().read_word("/sys/b"), None);
    }

    #[test]
    fn a_file_that_is_not_text_is_none() {
        let tree = Tree::new().bytes("/sys/a", &[0xff, 0xfe]);
        assert_eq!(tree.sysfs().read("/sys/a"), None);
    }

    #[test]
    fn names_are_sorted_as_people_count() {
        let tree = Tree::new().file("/sys/c/n10", "").file("/sys/c/n2", "").file("/sys/c/lo", "");
        assert_eq!(tree.sysfs().names("/sys/c"), Some(vec!["lo".into(), "n2".into(), "n10".into()]));
    }

    #[test]
    fn links_give_the_name_they_point_to() {
        let tree = Tree::new().link("/sys/d/driver", "../../bus/pci/drivers/mlx5_core");
        assert_eq!(tree.sysfs().link_name("/sys/d/driver").as_deref(), Some("mlx5_core"));
    }

    #[test]
    fn canonical_paths_are_below_the_root_and_have_no_links() {
        let tree =
            Tree::new().file("/sys/devices/b/sda/dev", "8:0").link("/sys/class/block/sda", "../../devices/b/sda");
        let tree = tree.link("/sys/class/block/out", "/");
        let sysfs = tree.sysfs();
        assert_eq!(sysfs.canonical("/sys/class/block/sda").as_deref(), Some(Path::new("/sys/devices/b/sda")));
        assert_eq!(sysfs.canonical("/"), Some(PathBuf::from("/")));
        assert_eq!(sysfs.canonical("/sys/class/block/out"), None);
    }

    #[test]
    fn the_auxiliary_vector_of_this_process_has_its_page_size() {
        let size = Sysfs::default().auxiliary(libc::AT_PAGESZ).unwrap();
        assert!(size.is_power_of_two() && size >= 4096, "{size}");
    }
}
