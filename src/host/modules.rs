//! Kernel modules that a command passes through, with what they were told: a driver's switch is often the very thing that
//! two runs differ in.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Sysfs;

const FOLDER: &str = "/sys/module";

/// Longest value of a parameter that is kept, in characters.
const LONGEST: usize = 200;

/// How the names of families of modules on RDMA and storage paths begin.
const FAMILIES: [&str; 26] = [
    "bnxt_re",
    "erdma",
    "hfi1",
    "hns_roce",
    "ib_",
    "ionic",
    "irdma",
    "iscsi_",
    "iw_",
    "lpfc",
    "mana_ib",
    "mlx4",
    "mlx5",
    "mpt3sas",
    "nvme",
    "ocrdma",
    "qedr",
    "qla2xxx",
    "rdma",
    "rpcrdma",
    "scsi_",
    "scst",
    "srp",
    "target_core",
    "tcm_",
    "virtio_scsi",
];

/// Modules of such paths with short names, which others begin with, too.
const NAMES: [&str; 11] =
    ["brd", "dm_mod", "efa", "loop", "mana", "megaraid_sas", "null_blk", "sd_mod", "sg", "siw", "virtio_blk"];

/// A loaded module. What it doesn't show is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Module {
    /// Its version, where its authors keep one.
    pub version: Option<String>,
    /// Sum of its source files.
    pub srcversion: Option<String>,
    /// Parameters that can be read.
    pub parameters: BTreeMap<String, String>,
}

/// The modules on RDMA and storage paths that are loaded, or built in with a version or parameters, by their names. `None`
/// where the system doesn't show its modules.
pub(super) fn modules(sysfs: &Sysfs) -> Option<BTreeMap<String, Module>> {
    let names = sysfs.names(FOLDER)?;
    Some(names.into_iter().filter(|name| is_relevant(name)).map(|name| (name.clone(), module(sysfs, &name))).collect())
}

fn is_relevant(name: &str) -> bool {
    NAMES.contains(&name) || FAMILIES.iter().any(|beginning| name.starts_with(beginning))
}

fn module(sysfs: &Sysfs, name: &str) -> Module {
    let folder = format!("{FOLDER}/{name}");
    let names = sysfs.names(&format!("{folder}/parameters")).unwrap_or_default();
    // Those that can only be written are left out.
    let value = |name: &String| sysfs.read(&format!("{folder}/parameters/{name}"));
    let parameters = names.iter().filter_map(|name| Some((name.clone(), shortened(value(name)?))));
    Module {
        version: sysfs.read_word(&format!("{folder}/version")),
        srcversion: sysfs.read_word(&format!("{folder}/srcversion")),
        parameters: parameters.collect(),
    }
}

/// A value that is cut ends with an ellipsis: two of them may differ although they look the same.
fn shortened(value: String) -> String {
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
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
        assert_eq!(
            (srp.parameters["register_always"].as_str(), srp.parameters["long"].len()),
            ("Y", LONGEST + "…".len())
        );
        assert_eq!(modules["nvme_core"].version.as_deref(), Some("1.0"));
        assert_eq!(super::modules(&Tree::new().sysfs()), None);
    }

    #[test]
    fn names_that_only_begin_like_one_are_left_out() {
        for name in ["ib_srp", "rdma_rxe", "mlx5_core", "nvmet_rdma", "loop", "sg", "siw", "dm_mod", "scsi_mod", "brd"]
        {
            assert!(is_relevant(name), "{name}");
        }
        for name in ["sgi_agp", "loopback", "efa_other", "dm_crypt", "snd_hda_intel", "ibmasm", "manager", ""] {
            assert!(!is_relevant(name), "{name}");
        }
    }

    #[test]
    fn parameters_that_cannot_be_read_are_left_out_and_values_are_cut_between_characters() {
        let tree = Tree::new()
            .folder("/sys/module/ib_srpt/parameters/no_file")
            .bytes("/sys/module/ib_srpt/parameters/no_text", &[0xff, 0xfe])
            .file("/sys/module/ib_srpt/parameters/empty", "\n")
            .file("/sys/module/ib_srpt/parameters/whole", &"µ".repeat(LONGEST))
            .file("/sys/module/ib_srpt/parameters/cut", &"µ".repeat(LONGEST + 1));
        let parameters = &modules(&tree.sysfs()).unwrap()["ib_srpt"].parameters;
        assert_eq!(parameters.keys().collect::<Vec<_>>(), ["cut", "empty", "whole"]);
        assert_eq!((parameters["empty"].as_str(), parameters["whole"].chars().count()), ("", LONGEST));
        assert_eq!(parameters["cut"], "µ".repeat(LONGEST) + "…");
    }
}
