//! `lat-probe engines`: what there is, what each needs, and whether this machine has it.

use std::fmt::Write;

use crate::engine::{EngineKind, Needs};

/// One line an engine.
pub fn render() -> String {
    let rdma = rdma_state();
    let mut text = String::new();
    for kind in EngineKind::ALL {
        let (available, needs) = match kind.needs() {
            Needs::Nothing => (true, "nothing".to_string()),
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

#[cfg(feature = "rdma")]
fn rdma_state() -> Result<String, String> {
    use crate::{
        engine::{RdmaOptions, rdma::adapter::Adapter},
        host::Sysfs,
    };
    match Adapter::open(&Sysfs::default(), &RdmaOptions::default(), None) {
        Ok(adapter) => Ok(format!("{}:{}", adapter.device.name, adapter.port.number)),
        // The remedy is what `lat-probe check` is for; here the first clause is enough.
        Err(crate::error::Error::Unavailable { what, .. }) => Err(what),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "rdma"))]
fn rdma_state() -> Result<String, String> {
    Err("this build has no RDMA engines".into())
}
