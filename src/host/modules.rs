//! Kernel modules that a command passes through, with what they were told: a driver's switch is often the very thing that
//! two runs differ in.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Sysfs;

const FOLDER: &str = "/sys/module";

/// Longest value of a parameter that is kept, in characters.
const LONGEST: usize = 200;

/// How names of modules on RDMA and storage paths begin.
const RELEVANT: [&str; 31] = [
    "ib_",
    "rdma",
    "iw_",
    "mlx4",
    "mlx5",
    "irdma",
    "bnxt_re",
    "efa",
    "siw",
    "hns_roce",
    "qedr",
    "ocrdma",
    "erdma",
    "mana",
    "ionic",
    "srp",
    "scst",
    "scsi_",
    "sd_mod",
    "sg",
    "target_core",
    "tcm_",
    "iscsi",
    "lpfc",
    "qla2xxx",
    "mpt3sas",
    "megaraid_sas",
    "nvme",
    "null_blk",
    "virtio_blk",
    "dm_mod",
];

/// A loaded module. What it doesn't show is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Module {
    /// Its version, where its authors keep one.
    pub version: Option<String>,
    /// Sum of its source files.
    pub srcversion: Option<String>,
    /// Parameters that can be read.
    pub parameters: BTreeMap<String, String>,
}

/// The modules on RDMA and storage paths that are loaded, or built in with parameters, by their names.
pub(super) fn modules(sysfs: &Sysfs) -> Option<BTreeMap<String, Module>> {
    let relevant = |name: &String| RELEVANT.iter().any(|beginning| name.starts_with(beginning));
    let names = sysfs.names(FOLDER)?;
    Some(names.into_iter().filter(relevant).map(|name| (name.clone(), module(sysfs, &name))).collect())
}

fn module(sysfs: &Sysfs, name: &str) -> Module {
    let folder = format!("{FOLDER}/{name}");
    let names = sysfs.names(&format!("{folder}/parameters")).unwrap_or_default();
    // Those that can only be written are left out.
    let value = |name: &String| sysfs.read(&format!("{folder}/parameters/{name}"));
    let parameters = names.iter().filter_map(|name| Some((name.clone(), value(name)?.chars().take(LONGEST).collect())));
    Module {
        version: sysfs.read_word(&format!("{folder}/version")),
        srcversion: sysfs.read_word(&format!("{folder}/srcversion")),
        parameters: parameters.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    #[test]
    fn modules_on_the_path_are_told_with_their_parameters() {
        let tree = Tree::new()
            .file("/sys/module/ib_srp/srcversion", "ABC123\n")
            .file("/sys/module/ib_srp/parameters/register_always", "Y\n")
            .file("/sys/module/ib_srp/parameters/long", &"x".repeat(1000))
            .file("/sys/module/nvme_core/version", "1.0\n")
            .file("/sys/module/snd_hda/parameters/model", "x\n");
        let modules = modules(&tree.sysfs()).unwrap();
        assert_eq!(modules.keys().collect::<Vec<_>>(), ["ib_srp", "nvme_core"]);
        let srp = &modules["ib_srp"];
        assert_eq!((srp.srcversion.as_deref(), srp.version.as_deref()), (Some("ABC123"), None));
        assert_eq!((srp.parameters["register_always"].as_str(), srp.parameters["long"].len()), ("Y", LONGEST));
        assert_eq!(modules["nvme_core"].version.as_deref(), Some("1.0"));
        assert_eq!(super::modules(&Tree::new().sysfs()), None);
    }
}
