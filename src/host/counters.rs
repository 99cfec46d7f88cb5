//! What a device counts by itself: packets sent again, errors, commands. By the drivers' own names, which differ.

use std::collections::BTreeMap;

use super::Sysfs;

/// The fields of a disk's `stat` that count finished commands.
const STAT_FIELDS: [(usize, &str); 3] = [(0, "read_ios"), (4, "write_ios"), (15, "flush_ios")];

/// Where the counters of a device are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Name and place of counters with a file each.
    files: Vec<(String, String)>,
    /// Place of a disk's `stat`.
    stat: Option<String>,
    /// Whether reading them asks nothing of a device.
    free: bool,
}

impl DeviceCounters {
    /// Those of an RDMA port: the standard ones and the driver's. A NIC may have to be asked for them; `software` devices
    /// just count in memory.
    pub fn of_port(sysfs: &Sysfs, device: &str, port: u8, software: bool) -> Self {
        let in_folder = |folder: &str| {
            let folder = format!("/sys/class/infiniband/{device}/ports/{port}/{folder}");
            let names = sysfs.names(&folder).unwrap_or_default();
            // How long the kernel keeps the counters, which is no counter.
            let names = names.into_iter().filter(|name| name != "lifespan");
            names.map(|name| (name.clone(), format!("{folder}/{name}"))).collect::<Vec<_>>()
        };
        let files = ["counters", "hw_counters"].into_iter().flat_map(in_folder).collect();
        Self { files, stat: None, free: software }
    }

    /// Those of a disk: commands of any user that finished, and the errors of SCSI disks.
    pub fn of_disk(disk: &str) -> Self {
        let folder = format!("/sys/block/{disk}");
        let error = |name: &str| (name.to_string(), format!("{folder}/device/{name}"));
        Self { files: vec![error("ioerr_cnt"), error("iotmo_cnt")], stat: Some(format!("{folder}/stat")), free: true }
    }

    /// Whether they can be read in the course of a measurement without disturbing the device.
    pub fn are_free(&self) -> bool {
        self.free
    }

    /// Their values now; those that cannot be read are left out.
    pub fn read(&self, sysfs: &Sysfs) -> BTreeMap<String, u64> {
        let value = |(name, path): &(String, String)| Some((name.clone(), number(&sysfs.read(path)?)?));
        let mut values: BTreeMap<_, _> = self.files.iter().filter_map(value).collect();
        if let Some(stat) = self.stat.as_ref().and_then(|path| sysfs.read(path)) {
            let fields: Vec<&str> = stat.split_whitespace().collect();
            let field = |(place, name): (usize, &str)| Some((name.to_string(), fields.get(place)?.parse().ok()?));
            values.extend(STAT_FIELDS.into_iter().filter_map(field));
        }
        values
    }
}

/// What a counter that rose says of commands, judged by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Something was lost, refused or late, and sent again.
    Retransmission,
    /// A command failed or timed out in the device.
    DeviceError,
}

impl Trouble {
    /// The trouble that a counter of this name tells of, if it does.
    pub fn of(name: &str) -> Option<Self> {
        // Names of rxe, mlx5, mlx4, irdma, bnxt_re, efa and the standard port counters.
        const AGAIN: [&str; 8] =
            ["retrans", "retry", "rnr", "seq_err", "out_of_seq", "ack_timeout", "duplicate", "rexmit"];
        const FAILED: [&str; 5] = ["ioerr_cnt", "iotmo_cnt", "link_downed", "_errors", "symbol_error"];
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        if has(&AGAIN) { Some(Self::Retransmission) } else { has(&FAILED).then_some(Self::DeviceError) }
    }
}

/// SCSI shows its counters in hexadecimal.
fn number(text: &str) -> Option<u64> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    #[test]
    fn a_port_counts_by_the_standard_and_by_the_driver() {
        let port = "/sys/class/infiniband/rxe0/ports/1";
        let tree = Tree::new()
            .file(&format!("{port}/counters/port_rcv_errors"), "3\n")
            .file(&format!("{port}/hw_counters/lifespan"), "10\n")
            .file(&format!("{port}/hw_counters/rcvd_rnr_err"), "4\n")
            .file(&format!("{port}/hw_counters/odd"), "N/A (no PMA)\n");
        let counters = DeviceCounters::of_port(&tree.sysfs(), "rxe0", 1, true);
        let values: Vec<_> = counters.read(&tree.sysfs()).into_iter().collect();
        assert_eq!(values, [("port_rcv_errors".to_string(), 3), ("rcvd_rnr_err".to_string(), 4)]);
        assert!(counters.are_free());
        assert!(!DeviceCounters::of_port(&tree.sysfs(), "mlx5_0", 1, false).are_free());
    }

    #[test]
    fn a_disk_counts_commands_and_errors() {
        let tree = Tree::new()
            .file("/sys/block/sda/device/ioerr_cnt", "0x1f\n")
            .file("/sys/block/sda/stat", "  10 1 80 5  20 1 160 9  0 7 7 0 0 0 0  3 1\n");
        let values: Vec<_> = DeviceCounters::of_disk("sda").read(&tree.sysfs()).into_iter().collect();
        let expected = [("flush_ios", 3), ("ioerr_cnt", 31), ("read_ios", 10), ("write_ios", 20)];
        assert_eq!(values, expected.map(|(name, value)| (name.to_string(), value)));
    }

    #[test]
    fn trouble_is_told_by_the_name() {
        for name in
            ["rcvd_rnr_err", "local_ack_timeout_err", "packet_seq_err", "completer_retry_err", "out_of_sequence"]
        {
            assert_eq!(Trouble::of(name), Some(Trouble::Retransmission), "{name}");
        }
        for name in ["ioerr_cnt", "iotmo_cnt", "port_rcv_errors", "symbol_error"] {
            assert_eq!(Trouble::of(name), Some(Trouble::DeviceError), "{name}");
        }
        for name in ["read_ios", "port_xmit_data", "sent_pkts", "ack_deferred", "port_xmit_wait"] {
            assert_eq!(Trouble::of(name), None, "{name}");
        }
    }
}
