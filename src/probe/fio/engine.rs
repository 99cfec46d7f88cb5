//! fio's engines by their names, and what they are here.

use super::{
    keys::{Keys, Result},
    parse::Place,
};

/// An engine.
pub(super) struct Engine {
    /// fio's name of it.
    pub fio: String,
    /// The name here; `rdma` where the verb is yet to be found out.
    pub ours: &'static str,
    /// Where it is named.
    pub place: Place,
}

const NAMES: &str = "sync, psync, vsync, pvsync, pvsync2, libaio, io_uring, io_uring_cmd, sg, null, rdma, syslet-rw";

impl Engine {
    /// The engine that a job names; fio's default is psync.
    ///
    /// # Errors
    /// File, line, and the engines that there are.
    pub fn take(keys: &mut Keys) -> Result<Self> {
        let (fio, place) = keys.text("ioengine")?.unwrap_or_else(|| ("psync".into(), keys.place().clone()));
        let (ours, note) = match fio.as_str() {
            "psync" => ("psync", ""),
            "sync" => ("psync", "sync is measured as psync: pread instead of lseek and read"),
            "vsync" => ("psync", "vsync is measured as psync: pread of one buffer instead of lseek and readv"),
            "pvsync" => ("psync", "pvsync is measured as psync: pread of one buffer instead of preadv"),
            "pvsync2" => ("pvsync2", ""),
            "libaio" | "linuxaio" | "aio" => ("libaio", ""),
            "io_uring" => ("io-uring", ""),
            "io_uring_cmd" => ("nvme-cmd", ""),
            "syslet-rw" => ("io-uring", "syslets never entered Linux: io_uring, which took their place, is measured"),
            "sg" => ("sg", ""),
            "null" => ("null", ""),
            "rdma" => ("rdma", ""),
            _ => return Err(format!("{place}: ioengine: one of {NAMES} was expected, '{fio}' was found")),
        };
        if !note.is_empty() {
            keys.note(&place, note);
        }
        if ours != "rdma" {
            keys.set("engine", ours);
        }
        Ok(Self { fio, ours, place })
    }

    pub fn is_rdma(&self) -> bool {
        self.ours == "rdma"
    }

    /// Whether it reads or writes a file or device.
    pub fn is_block(&self) -> bool {
        !matches!(self.ours, "rdma" | "null")
    }

    pub fn is_ring(&self) -> bool {
        matches!(self.ours, "io-uring" | "nvme-cmd")
    }

    /// Whether its call returns on completion, so that nothing else can be outstanding.
    pub fn is_sync(&self) -> bool {
        matches!(self.ours, "psync" | "pvsync2")
    }

    pub fn passes_by_the_block_layer(&self) -> bool {
        matches!(self.ours, "sg" | "nvme-cmd")
    }
}
