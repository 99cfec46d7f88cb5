//! Block devices as sysfs shows them: what a storage command meets on its way, and which block device is behind a
//! pass-through node.
//!
//! A name says nothing about a device: names are given out anew at every boot, and `sda` may be any disk. Callers that
//! opened a node look its facts up by the number of what they opened, not by the path they opened it with.

use super::Sysfs;
use crate::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

const CLASS: &str = "/sys/class/block";

/// The unit of sizes and offsets in sysfs, whatever the device's own block is.
const SECTOR_BYTES: u64 = 512;

/// Drivers of disks without a device below them: the name they register with the kernel, how their disks' names begin,
/// and what the driver is called.
const SOFTWARE_DRIVERS: [(&str, &str, &str); 10] = [
    ("nullb", "nullb", "null_blk"),
    ("loop", "loop", "loop"),
    ("device-mapper", "dm-", "dm"),
    ("md", "md", "md"),
    ("mdp", "md_d", "md"),
    ("zram", "zram", "zram"),
    ("ramdisk", "ram", "brd"),
    ("nbd", "nbd", "nbd"),
    ("bcache", "bcache", "bcache"),
    // The head of a multipath device, and a namespace over a network.
    ("nvme", "nvme", "nvme"),
];

/// A block device: a disk or a partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// The name below /dev, such as `sda1` or `nvme0n1`.
    pub name: String,
    /// The name of the whole disk: `sda` for `sda1`, and the same as `name` for a disk.
    pub disk: String,
    /// The first part of the device number.
    pub major: u32,
    /// The second part of the device number.
    pub minor: u32,
    /// The size in bytes. Zero for a device without a medium.
    pub size_bytes: u64,
    /// Where a partition begins in its disk, in bytes. Zero for a disk.
    pub start_bytes: u64,
    /// The smallest unit of a transfer, in bytes: a power of two, at least 512.
    pub logical_block_bytes: u64,
    /// The smallest unit that is written without reading first, in bytes.
    pub physical_block_bytes: Option<u64>,
    /// Whether the device, or the disk that it is a part of, takes no writes.
    pub read_only: bool,
    /// Whether the medium can be taken out.
    pub removable: bool,
    /// Whether the kernel takes it for spinning. It takes many virtual disks for that.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use, such as `none`.
    pub scheduler: Option<String>,
    /// Whether the driver has queues whose completions can be polled for.
    pub poll_queues: bool,
    /// The largest transfer that the kernel passes on as one command, in bytes.
    pub max_transfer_bytes: Option<u64>,
    /// The largest transfer that the hardware takes, in bytes: what pass-through commands are limited by.
    pub max_hw_transfer_bytes: Option<u64>,
    /// The most separate pieces of memory that a command can name.
    pub max_segments: Option<u64>,
    /// The kernel's driver, such as `sd`, `nvme` or `null_blk`.
    pub driver: Option<String>,
    /// The model as the device tells it.
    pub model: Option<String>,
    /// The NUMA node of the adapter; null also where the paths to one device are on several.
    pub numa_node: Option<u32>,
    /// Whether the data are in this machine's memory, or nowhere: brd, zram, null_blk, scsi_debug. What is below a loop
    /// device or behind a network is not known, and is `false`.
    pub memory_backed: bool,
    /// What carries the commands, in the kernel's words: `pcie`, `rdma`, `tcp`, `fc` or `loop` for NVMe; `srp`, `iser`,
    /// `iscsi`, `fc`, `sas`, `ata` or `usb` for SCSI.
    pub transport: Option<String>,
    /// `write back` where a completed write may be in a volatile cache, `write through` otherwise.
    pub write_cache: Option<String>,
}

impl BlockDevice {
    /// The device with this number. `None` for what is not a block device, or not shown here.
    pub fn by_number(sysfs: &Sysfs, major: u32, minor: u32) -> Option<Self> {
        Self::in_folder(sysfs, &format!("/sys/dev/block/{major}:{minor}"))
    }

    /// The device with this name below /dev. `None` also for the hidden paths of an NVMe multipath device, which have no
    /// number and can't be opened.
    pub fn by_name(sysfs: &Sysfs, name: &str) -> Option<Self> {
        is_one_name(&folder_name(name)).then(|| Self::in_folder(sysfs, &folder(name)))?
    }

    /// Whether this is a part of a disk.
    pub fn is_partition(&self) -> bool {
        self.name != self.disk
    }

    fn in_folder(sysfs: &Sysfs, link: &str) -> Option<Self> {
        // The disk is the folder around the partition's, which only the real place shows.
        let place = sysfs.canonical(link)?;
        let own = place.to_str()?;
        let is_partition = sysfs.exists(&format!("{own}/partition"));
        let disk_place = if is_partition { place.parent()? } else { &place };
        let disk = disk_place.to_str()?;
        let (major, minor) = number(sysfs, own)?;
        let (disk_major, _) = number(sysfs, disk)?;
        let bytes = |file: &str| read_number(sysfs, &format!("{own}/{file}"))?.checked_mul(SECTOR_BYTES);
        let queue = |file: &str| read_number(sysfs, &format!("{disk}/queue/{file}"));
        let word = |file: &str| sysfs.read_word(&format!("{disk}/{file}"));
        let flag = |file: &str| word(file).is_some_and(|text| text == "1");
        let disk_name = disk_place.file_name()?.to_str()?.replace('!', "/");
        let driver = driver(sysfs, disk, &disk_name, disk_major);
        let controllers = controllers(sysfs, disk);
        let host = scsi_host(sysfs, disk);
        let host_driver =
            host.as_ref().and_then(|host| sysfs.read_word(&format!("/sys/class/scsi_host/{host}/proc_name")));
        Some(Self {
            name: place.file_name()?.to_str()?.replace('!', "/"),
            major,
            minor,
            size_bytes: bytes("size")?,
            start_bytes: if is_partition { bytes("start")? } else { 0 },
            logical_block_bytes: queue("logical_block_size")
                .filter(|bytes| bytes.is_power_of_two() && *bytes >= SECTOR_BYTES)?,
            physical_block_bytes: queue("physical_block_size").filter(|bytes| *bytes > 0),
            read_only: flag("ro") || sysfs.read(&format!("{own}/ro")).as_deref() == Some("1"),
            removable: flag("removable"),
            rotational: queue("rotational").map(|value| value != 0),
            scheduler: word("queue/scheduler").and_then(|list| chosen_scheduler(&list)),
            poll_queues: flag("queue/io_poll"),
            max_transfer_bytes: queue("max_sectors_kb").and_then(|kib| kib.checked_mul(1024)),
            max_hw_transfer_bytes: queue("max_hw_sectors_kb").and_then(|kib| kib.checked_mul(1024)),
            max_segments: queue("max_segments"),
            memory_backed: matches!(driver.as_deref(), Some("brd" | "zram" | "null_blk"))
                || host_driver.as_deref() == Some("scsi_debug"),
            driver,
            model: word("device/model"),
            numa_node: agreed(controllers.iter().map(|place| numa_node(sysfs, place))),
            transport: agreed(controllers.iter().map(|place| sysfs.read_word(&format!("{place}/transport"))))
                .or_else(|| scsi_transport(sysfs, disk, &host?, host_driver.as_deref())),
            write_cache: word("queue/write_cache"),
            disk: disk_name,
        })
    }
}

/// The name of the block device behind the SCSI generic node `name`, such as `sg3`. `None` for what is not a disk: a
/// tape, an enclosure, a controller.
///
/// # Errors
/// [`Error::Usage`] where there is no such node.
pub fn of_sg(sysfs: &Sysfs, name: &str) -> Result<Option<String>> {
    behind(sysfs, "/sys/class/scsi_generic", name, "SCSI generic")
}

/// The name of the block device behind the SCSI node /dev/bsg/`name`, such as `0:0:0:0`. `None` for what is not a disk.
///
/// # Errors
/// [`Error::Usage`] where there is no such node.
pub fn of_bsg(sysfs: &Sysfs, name: &str) -> Result<Option<String>> {
    behind(sysfs, "/sys/class/bsg", name, "bsg")
}

/// The name of the block device of the NVMe generic node `name`: `nvme0n1` for `ng0n1`. `None` where there is none, as for
/// a namespace with a command set that the kernel has no block device for.
pub fn of_nvme_generic(sysfs: &Sysfs, name: &str) -> Option<String> {
    let numbers = name.strip_prefix("ng")?;
    let (instance, namespace) = numbers.split_once('n')?;
    if !is_number(instance) || !is_number(namespace) {
        return None;
    }
    let block = format!("nvme{numbers}");
    sysfs.exists(&folder(&block)).then_some(block)
}

/// The folder of the block device `name`, as one of the links of the class.
pub(super) fn folder(name: &str) -> String {
    format!("{CLASS}/{}", folder_name(name))
}

/// The number in the file `dev` of a device's folder.
pub(super) fn number(sysfs: &Sysfs, folder: &str) -> Option<(u32, u32)> {
    parse_number(&sysfs.read(&format!("{folder}/dev"))?)
}

/// Reads a device number such as `8:1`.
pub(super) fn parse_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The names of the partitions of the disk `disk`, in order.
pub(super) fn partitions(sysfs: &Sysfs, disk: &str) -> Vec<String> {
    let folder = folder(disk);
    let mut names = sysfs.names(&folder).unwrap_or_default();
    names.retain(|name| sysfs.exists(&format!("{folder}/{name}/partition")));
    names.into_iter().map(|name| name.replace('!', "/")).collect()
}

/// A name as sysfs spells it, where a file can't have a slash in its name: `cciss!c0d0`.
fn folder_name(name: &str) -> String {
    name.replace('/', "!")
}

/// Whether `name` can be the name of a file in a folder, and of none elsewhere.
fn is_one_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_number(sysfs: &Sysfs, path: &str) -> Option<u64> {
    sysfs.read(path)?.parse().ok()
}

fn behind(sysfs: &Sysfs, class: &str, name: &str, kind: &str) -> Result<Option<String>> {
    let folder = format!("{class}/{name}");
    if !is_one_name(name) || !sysfs.exists(&folder) {
        return Err(Error::usage(format!("{name}: there is no such {kind} device in {class}")));
    }
    let names = sysfs.names(&format!("{folder}/device/block")).unwrap_or_default();
    Ok(names.into_iter().next().map(|name| name.replace('!', "/")))
}

/// The scheduler in brackets, or the only one of a list without brackets.
fn chosen_scheduler(list: &str) -> Option<String> {
    let mut words = list.split_whitespace();
    let bracketed = words.clone().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let chosen = bracketed.or_else(|| words.next().filter(|_| words.next().is_none()))?;
    Some(chosen.to_string())
}

fn driver(sysfs: &Sysfs, disk: &str, name: &str, major: u32) -> Option<String> {
    // An NVMe namespace belongs to a controller, which has no driver; the device below the controller has.
    let links = [format!("{disk}/device/driver"), format!("{disk}/device/device/driver")];
    if let Some(driver) = links.iter().find_map(|link| sysfs.link_name(link)) {
        return Some(driver);
    }
    // What the major number is registered for comes first: null_blk and md disks can be given any name.
    let registered = registered_name(sysfs, major);
    let stem = &name[..name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len())];
    let by_number = SOFTWARE_DRIVERS.iter().find(|(number_of, ..)| registered.as_deref() == Some(number_of));
    let by_name = || SOFTWARE_DRIVERS.iter().find(|(_, begin, _)| *begin == stem);
    by_number.or_else(by_name).map(|(.., driver)| driver.to_string())
}

/// What a block device's major number is registered for in /proc/devices.
fn registered_name(sysfs: &Sysfs, major: u32) -> Option<String> {
    let text = sysfs.read("/proc/devices")?;
    let lines = text.lines().skip_while(|line| line.trim() != "Block devices:").skip(1);
    let mut pairs = lines.filter_map(|line| line.trim().split_once(' '));
    pairs.find(|(number, _)| number.parse() == Ok(major)).map(|(_, name)| name.to_string())
}

/// The folders of what drives the disk: the one device below it, or the controllers of an NVMe subsystem with several
/// paths.
fn controllers(sysfs: &Sysfs, disk: &str) -> Vec<String> {
    let device = format!("{disk}/device");
    let names = sysfs.names(&device).unwrap_or_default();
    let paths = names.iter().filter(|name| name.starts_with("nvme")).map(|name| format!("{device}/{name}"));
    let paths: Vec<String> = paths.filter(|path| sysfs.exists(&format!("{path}/transport"))).collect();
    if paths.is_empty() { vec![device] } else { paths }
}

/// The value that all have. `None` where they differ or one is missing.
fn agreed<T: PartialEq>(mut values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

/// The NUMA node of the nearest device on the way up that has one: the adapter's, mostly.
fn numa_node(sysfs: &Sysfs, place: &str) -> Option<u32> {
    let place = sysfs.canonical(place)?;
    let mut folders = place.ancestors().take_while(|folder| folder.starts_with("/sys"));
    folders.find_map(|folder| sysfs.read(folder.join("numa_node").to_str()?))?.parse().ok()
}

/// The SCSI host that the disk hangs on, such as `host3`. With several on the way, as for a virtual Fibre Channel port,
/// the nearest to the disk.
fn scsi_host(sysfs: &Sysfs, disk: &str) -> Option<String> {
    let place = sysfs.canonical(format!("{disk}/device"))?;
    let mut names = place.iter().filter_map(|name| name.to_str());
    names.rfind(|name| is_numbered(name, "host")).map(str::to_string)
}

fn scsi_transport(sysfs: &Sysfs, disk: &str, host: &str, host_driver: Option<&str>) -> Option<String> {
    if host_driver == Some("iscsi_iser") {
        return Some("iser".into());
    }
    let has_class = |kind: &&str| sysfs.exists(&format!("/sys/class/{kind}_host/{host}"));
    let is_on_the_way =
        |kind: &&str| Path::new(disk).iter().any(|name| name.to_str().is_some_and(|n| is_numbered(n, kind)));
    let by_class = ["srp", "iscsi", "fc", "sas"].into_iter().find(has_class);
    by_class.or_else(|| ["ata", "usb"].into_iter().find(is_on_the_way)).map(str::to_string)
}

/// Whether `name` is `stem` and a number.
fn is_numbered(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem).is_some_and(is_number)
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
