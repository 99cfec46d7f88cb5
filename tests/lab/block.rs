//! What the tests of block engines share: the lab's storage, the names behind /dev/lab/, and filling a device.

use std::{fs, os::unix::fs::FileExt, path::Path};

use super::in_lab;

/// The topologies that these tests need.
const TOPOLOGIES: [&str; 5] = ["srp", "nvmet", "null_blk", "nvme", "scsi_debug"];

/// At the beginning of a shell script: the functions that publish devices, and a way to wait for them.
pub const DEVICES: &str = r#"
    . "$LAB_SCRIPTS/devices.sh"
    wait_for() {
        tries=400
        until "$@" 2> /dev/null; do
            tries=$((tries - 1))
            [ $tries -gt 0 ] || { echo "waited in vain for $*" >&2; exit 1; }
            sleep 0.05
        done
    }
"#;

/// Whether this runs in the lab; one without the storage fails, since a skipped test looks like a passed one.
pub fn in_storage_lab() -> bool {
    if !in_lab(1) {
        return false;
    }
    let up = std::env::var("LAB_TOPOLOGY").unwrap();
    let missing: Vec<_> = TOPOLOGIES.into_iter().filter(|name| !up.split(',').any(|up| up == *name)).collect();
    assert!(missing.is_empty(), "this lab has no {missing:?}");
    true
}

/// The kernel's name of a device, such as sda for /dev/lab/srp-disk.
pub fn kernel_name(node: &str) -> String {
    let path = fs::canonicalize(node).unwrap_or_else(|error| panic!("{node}: {error}"));
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The node of the block SCSI generic driver for a disk.
pub fn bsg_of(disk: &str) -> String {
    let folder = format!("/sys/class/block/{}/device/bsg", kernel_name(disk));
    let entry = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}")).next().unwrap().unwrap();
    let node = Path::new("/dev/bsg").join(entry.file_name());
    node.to_string_lossy().into_owned()
}

/// Writes the pattern; options are separated by spaces.
pub fn fill(target: &str, options: &str) {
    let output = super::command(&format!("fill --allow-write {target} {options}")).output().unwrap();
    assert!(output.status.success(), "fill {target} {options}: {output:?}");
}

/// Bytes of a device, as the page cache or the device has them.
pub fn bytes_at(device: &str, offset: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    let read = fs::File::open(device).and_then(|file| file.read_exact_at(&mut data, offset));
    read.unwrap_or_else(|error| panic!("{device}: {error}"));
    data
}
