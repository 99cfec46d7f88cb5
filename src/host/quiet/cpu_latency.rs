//! Idle states: the kernel keeps processors out of those that take time to leave, as long as a file is open.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Write},
};

use crate::host::Sysfs;

/// Where the kernel takes the longest delay of a wake-up that somebody can bear.
const PATH: &str = "/dev/cpu_dma_latency";

/// The wish for no delay at all, in force while the file is open: the kernel forgets it even when the process is killed.
#[derive(Debug)]
pub struct CpuLatency {
    _file: File,
}

impl CpuLatency {
    /// The name in a result.
    pub const NAME: &'static str = "cpu-dma-latency";

    /// Asks for a delay of 0 µs.
    ///
    /// # Errors
    /// The reason, with errno and remedy.
    pub fn hold(sysfs: &Sysfs) -> Result<(Self, String), String> {
        let opened = OpenOptions::new().write(true).open(sysfs.path(PATH));
        // Exactly four bytes are a number; any other length would be read as text.
        let written = opened.and_then(|mut file| file.write_all(&0i32.to_ne_bytes()).map(|()| file));
        match written {
            Ok(file) => Ok((Self { _file: file }, format!("{PATH} held at 0 µs"))),
            Err(error) => {
                let remedy = match error.kind() {
                    ErrorKind::NotFound => "A container needs it passed in (--device=/dev/cpu_dma_latency)",
                    ErrorKind::PermissionDenied => "Needs root",
                    _ => "A container must allow writing to it",
                };
                Err(format!("{PATH}: {error}. {remedy}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    #[test]
    fn four_zero_bytes_are_written() {
        let tree = Tree::new().file(PATH, "");
        let (_guard, detail) = CpuLatency::hold(&tree.sysfs()).unwrap();
        assert_eq!(tree.sysfs().read_bytes(PATH), Some(vec![0; 4]));
        assert_eq!(detail, "/dev/cpu_dma_latency held at 0 µs");
    }

    #[test]
    fn a_missing_node_is_refused_with_the_way_to_get_it() {
        let reason = CpuLatency::hold(&Tree::new().sysfs()).unwrap_err();
        assert!(reason.contains("os error 2") && reason.contains("--device"), "{reason}");
    }
}
