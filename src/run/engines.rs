//! `lat-probe engines`: what there is, what each needs, and whether this machine has it.

use std::fmt::Write;

use crate::{
    engine::{EngineKind, Needs, block::setup},
    error::Error,
    host::Sysfs,
};

/// One line an engine.
pub fn render() -> String {
    let rdma = rdma_state();
    let sysfs = Sysfs::default();
    let mut text = String::new();
    for kind in EngineKind::ALL {
        let (available, needs) = match kind.needs() {
            Needs::Nothing => (true, "nothing".to_string()),
            Needs::BlockTarget => (true, "a file or a block device".into()),
            Needs::IoUring => match setup::ring_support(&sysfs) {
                Ok(()) => (true, "a file or a block device, and io_uring".into()),
                Err(error) => (false, format!("io_uring ({})", clause(error))),
            },
            Needs::NvmeNamespace => nodes(&sysfs, "nvme-generic", "an NVMe namespace"),
            Needs::ScsiDevice => nodes(&sysfs, "scsi_generic", "a SCSI device"),
            Needs::RdmaDevice => match &rdma {
                Ok(device) => (true, format!("an RDMA device (has {device})")),
                Err(missing) => (false, format!("an RDMA device ({missing})")),
            },
        };
        let mark = if available { "yes" } else { "no" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<20} {mark:<4} {}", kind.name(), kind.summary());
        let _ = writeln!(text, "{:<20} {:<4} needs {needs}", "", "");
    }
    text
}

/// Whether nodes of a class are there, and the first of them.
fn nodes(sysfs: &Sysfs, class: &str, what: &str) -> (bool, String) {
    match sysfs.names(&format!("/sys/class/{class}")).unwrap_or_default().first() {
        Some(first) => (true, format!("{what} (has /dev/{first})")),
        None => (false, format!("{what} (there is none in /sys/class/{class})")),
    }
}

/// The first clause of an error: what it lacks, without the remedy.
fn clause(error: Error) -> String {
    match error {
        Error::Unavailable { what, .. } => what,
        error => error.to_string(),
    }
}

#[cfg(feature = "rdma")]
fn rdma_state() -> Result<String, String> {
    use crate::engine::{RdmaOptions, rdma::adapter::Adapter};
    match Adapter::open(&Sysfs::default(), &RdmaOptions::default(), None) {
        Ok(adapter) => Ok(format!("{}:{}", adapter.device.name, adapter.port.number)),
        // The remedy is what `lat-probe check` is for; here the first clause is enough.
        Err(error) => Err(clause(error)),
    }
}

#[cfg(not(feature = "rdma"))]
fn rdma_state() -> Result<String, String> {
    Err("this build has no RDMA engines".into())
}
