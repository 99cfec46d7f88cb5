//! Who else uses a block device or a file, so that a run that would overwrite data can be refused with the reason.
//!
//! The kernel shows no complete list. Callers must not take an empty answer for a proof: another process may have the
//! device open, or mount it a moment later, and what ZFS, DRBD or a mount in another container holds may be shown
//! nowhere. Opening the device with `O_EXCL` as well finds most of those; it does not find what is listed here under
//! loop devices and NVMe targets, which don't claim what they use.

use super::{
    BlockDevice, Sysfs,
    block::{folder, number, parse_number, partitions},
};
use nix::sys::stat::{major, minor};
use std::{
    ffi::OsStr,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt},
    },
    path::Path,
};

/// How many mount points a clause names. Containers can have hundreds on one device.
const POINTS_NAMED: usize = 3;

/// File systems that show a folder with the device's name while they are mounted, in whatever mount namespace.
const FOLDERS_OF_MOUNTED: [&str; 4] = ["ext4", "xfs", "f2fs", "erofs"];

/// A device whose use means that the one asked about is in use.
struct Part {
    /// The name below /dev.
    name: String,
    number: Option<(u32, u32)>,
    /// How a clause begins: `it`, `partition sda2`, `its disk sda`.
    subject: String,
}

/// A mounted file system.
struct Mount {
    number: Option<(u32, u32)>,
    point: Vec<u8>,
    /// What may be the path of a device: the source, and values of options such as xfs's `logdev`.
    sources: Vec<Vec<u8>>,
}

/// Something that works on the device or file at `path` and need not have claimed it.
struct Borrower {
    /// The clause without its object, such as `loop0 is backed by`.
    clause: String,
    path: Vec<u8>,
}

/// What says that the device is in use, one clause each; empty where nothing does.
///
/// The use of a disk is also the use of its partitions and the other way round, while two partitions of one disk don't
/// concern each other. Mounts that can't be read are a clause of their own, since nobody knows then.
pub fn users(sysfs: &Sysfs, device: &BlockDevice) -> Vec<String> {
    let mut clauses = Vec::new();
    let mounts = mounts(sysfs).unwrap_or_else(|| {
        clauses.push("/proc/self/mountinfo can't be read, so nobody knows whether it is mounted".into());
        Vec::new()
    });
    let swaps = swaps(sysfs);
    let borrowers = borrowers(sysfs);
    for part in parts(sysfs, device) {
        let Part { name, subject, .. } = &part;
        clauses.extend(mounted(sysfs, &part, &mounts));
        if swaps.iter().any(|path| part.is_at(sysfs, path)) {
            clauses.push(format!("{subject} is swap space (/proc/swaps)"));
        }
        clauses.extend(holders(sysfs, name).into_iter().map(|holder| format!("{holder} is built on {name}")));
        let borrowing = borrowers.iter().filter(|borrower| part.is_at(sysfs, &borrower.path));
        clauses.extend(borrowing.map(|borrower| format!("{} {name}", borrower.clause)));
    }
    clauses
}

/// What says that the file at `canonical_path` is in use by the kernel, one clause each; empty where nothing does. Other
/// paths to the same file, such as hard links, count as well.
pub fn file_users(sysfs: &Sysfs, canonical_path: &Path) -> Vec<String> {
    let identity = |path: &Path| sysfs.metadata(path).map(|found| (found.dev(), found.ino()));
    let own = identity(canonical_path);
    let is_it = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path));
        path == canonical_path || (path.is_absolute() && own.is_some() && identity(path) == own)
    };
    let mut clauses = Vec::new();
    if swaps(sysfs).iter().any(|path| is_it(path)) {
        clauses.push("it is a swap file (/proc/swaps)".to_string());
    }
    let borrowers = borrowers(sysfs).into_iter().filter(|borrower| is_it(&borrower.path));
    clauses.extend(borrowers.map(|borrower| format!("{} it", borrower.clause)));
    clauses
}

impl Part {
    fn new(sysfs: &Sysfs, name: &str, subject: String) -> Self {
        Self { name: name.to_string(), number: number(sysfs, &folder(name)), subject }
    }

    /// Whether `path` is a path of this device: by its name, through links such as those in /dev/mapper, or by the
    /// number of the node there.
    fn is_at(&self, sysfs: &Sysfs, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        // Nothing elsewhere is looked at, for a path on a network file system may not answer.
        if !path.starts_with("/dev") {
            return false;
        }
        let node = Path::new("/dev").join(&self.name);
        let has_number = || {
            let found = sysfs.metadata(path).filter(|found| found.file_type().is_block_device());
            let own = self.number.map(|(major, minor)| (u64::from(major), u64::from(minor)));
            found.is_some_and(|found| own == Some((major(found.rdev()), minor(found.rdev()))))
        };
        path == node || sysfs.canonical(path).is_some_and(|place| place == node) || has_number()
    }
}

/// The device, then what contains it or what it contains.
fn parts(sysfs: &Sysfs, device: &BlockDevice) -> Vec<Part> {
    let mut parts =
        vec![Part { name: device.name.clone(), number: Some((device.major, device.minor)), subject: "it".into() }];
    if device.is_partition() {
        parts.push(Part::new(sysfs, &device.disk, format!("its disk {}", device.disk)));
    } else {
        let names = partitions(sysfs, &device.name).into_iter();
        parts.extend(names.map(|name| Part::new(sysfs, &name, format!("partition {name}"))));
    }
    parts
}

fn mounted(sysfs: &Sysfs, part: &Part, mounts: &[Mount]) -> Option<String> {
    let subject = &part.subject;
    let mut points: Vec<String> = Vec::new();
    for mount in mounts {
        let by_number = mount.number.is_some() && mount.number == part.number;
        if by_number || mount.sources.iter().any(|source| part.is_at(sysfs, source)) {
            let point = printable(&mount.point);
            if !points.contains(&point) {
                points.push(point);
            }
        }
    }
    if points.is_empty() {
        let kind = mounted_elsewhere(sysfs, &part.name)?;
        return Some(format!("{subject} is part of a mounted {kind} file system"));
    }
    let more = match points.len().saturating_sub(POINTS_NAMED) {
        0 => String::new(),
        1 => " and 1 more place".into(),
        more => format!(" and {more} more places"),
    };
    points.truncate(POINTS_NAMED);
    Some(format!("{subject} is mounted at {}{more}", points.join(", ")))
}

/// The kind of a mounted file system that uses the device, where only the file system itself says so: it is mounted in
/// another namespace, or the device is not the one that a btrfs of several devices was mounted by.
fn mounted_elsewhere(sysfs: &Sysfs, name: &str) -> Option<&'static str> {
    let name = name.replace('/', "!");
    let kind = FOLDERS_OF_MOUNTED.into_iter().find(|kind| sysfs.exists(&format!("/sys/fs/{kind}/{name}")));
    kind.or_else(|| {
        let mut ids = sysfs.names("/sys/fs/btrfs").unwrap_or_default().into_iter();
        ids.any(|id| sysfs.exists(&format!("/sys/fs/btrfs/{id}/devices/{name}"))).then_some("btrfs")
    })
}

/// The devices that the kernel has built on the device `name`, each with its own name for itself.
fn holders(sysfs: &Sysfs, name: &str) -> Vec<String> {
    let folder = folder(name);
    let mut holders = sysfs.names(&format!("{folder}/holders")).unwrap_or_default();
    // A hidden device is a path of a multipath device. It belongs to what is asked about and is no user of it.
    holders.retain(|holder| sysfs.read(&format!("/sys/block/{holder}/hidden")).as_deref() != Some("1"));
    // A caching device has no holder, only this folder.
    if holders.is_empty() && sysfs.exists(&format!("{folder}/bcache")) {
        holders.push("bcache".into());
    }
    let named = holders.into_iter().map(|holder| match sysfs.read_word(&format!("/sys/block/{holder}/dm/name")) {
        Some(name) => format!("{holder} ({name})"),
        None => holder,
    });
    named.map(|holder| printable(holder.as_bytes())).collect()
}

/// The mounts that this process sees, and those that the first process sees where that may be read.
fn mounts(sysfs: &Sysfs) -> Option<Vec<Mount>> {
    let mut text = sysfs.read_bytes("/proc/self/mountinfo")?;
    text.push(b'\n');
    text.extend(sysfs.read_bytes("/proc/1/mountinfo").unwrap_or_default());
    Some(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
}

/// Reads a line of mountinfo, see proc_pid_mountinfo(5):
/// `36 35 98:0 /root /point options [optional…] - type source options`.
fn mount(line: &[u8]) -> Option<Mount> {
    // A source may be empty, so that two spaces in a row have a field between them.
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let point = unescape(fields.get(4)?);
    let number = str::from_utf8(fields.get(2)?).ok().and_then(parse_number);
    let end = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let source = unescape(fields.get(end + 2)?);
    // bcachefs joins its devices by colons, which a name such as those in /dev/disk/by-path may have too.
    let mut sources: Vec<Vec<u8>> = source.split(|byte| *byte == b':').map(<[u8]>::to_vec).collect();
    sources.push(source);
    let options = fields.get(end + 3).unwrap_or(&&b""[..]).split(|byte| *byte == b',');
    let values = options.filter_map(|option| option.splitn(2, |byte| *byte == b'=').nth(1));
    sources.extend(values.map(unescape));
    Some(Mount { number, point, sources })
}

/// The paths of swap devices and swap files.
fn swaps(sysfs: &Sysfs) -> Vec<Vec<u8>> {
    let text = sysfs.read_bytes("/proc/swaps").unwrap_or_default();
    let firsts = text.split(|byte| *byte == b'\n').filter_map(|line| line.split(u8::is_ascii_whitespace).next());
    // The line of headings doesn't begin with a path.
    firsts.filter(|first| first.starts_with(b"/")).map(unescape).collect()
}

fn borrowers(sysfs: &Sysfs) -> Vec<Borrower> {
    let names = |folder: &str| sysfs.names(folder).unwrap_or_default();
    let path_in = |file: String| Some(first_line(sysfs.read_bytes(&file)?)).filter(|path| !path.is_empty());
    let mut found = Vec::new();
    let mut add = |clause: String, file: String| {
        found.extend(path_in(file).map(|path| Borrower { clause, path }));
    };
    for name in names("/sys/block") {
        add(format!("{name} is backed by"), format!("/sys/block/{name}/loop/backing_file"));
    }
    let nvmet = "/sys/kernel/config/nvmet/subsystems";
    for subsystem in names(nvmet) {
        for id in names(&format!("{nvmet}/{subsystem}/namespaces")) {
            let folder = format!("{nvmet}/{subsystem}/namespaces/{id}");
            if sysfs.read(&format!("{folder}/enable")).as_deref() == Some("1") {
                add(format!("the NVMe target {subsystem} exports"), format!("{folder}/device_path"));
            }
        }
    }
    let scsi = "/sys/kernel/config/target/core";
    for adapter in names(scsi) {
        for name in names(&format!("{scsi}/{adapter}")) {
            let folder = format!("{scsi}/{adapter}/{name}");
            if sysfs.read(&format!("{folder}/enable")).as_deref() == Some("1") {
                add(format!("the SCSI target {adapter}/{name} exports"), format!("{folder}/udev_path"));
            }
        }
    }
    found
}

/// A path in a file of its own, which is not escaped and may end in spaces.
fn first_line(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    text.truncate(end);
    text
}

/// Decodes the octal escapes of /proc, such as `\040` for a space. What is no escape stays.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        if let [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] = rest {
            bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = after;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

/// A path or name as it can stand in a sentence on a terminal.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
#[path = "in_use_tests.rs"]
mod tests;
