//! What a reader of a result must know about the machine to believe or to repeat it; the result's `host` object.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    CpuSet, Sysfs, cpu,
    modules::{Module, modules},
};

/// The machine as far as it bears on latency. What it doesn't show is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transform = crate::schema::added_later(&["modules"]))]
pub struct HostFacts {
    /// The host's name.
    pub hostname: Option<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// The kernel's build, as `uname -v` prints it: number, preemption model, date.
    pub kernel_version: Option<String>,
    /// The distribution's name for itself.
    pub os: Option<String>,
    /// The processor's name.
    pub cpu_model: Option<String>,
    /// The running microcode's revision.
    pub microcode: Option<String>,
    /// Running processors as a list such as `0-3,8`.
    pub cpus_online: Option<CpuSet>,
    /// What the kernel runs under: `kvm`, `qemu`, `xen`, `vmware` and such, or `unknown` if it only says that it does;
    /// null on bare metal.
    pub hypervisor: Option<String>,
    /// The kernel's clock source, `tsc` where it trusts the counter.
    pub clocksource: Option<String>,
    /// Frequency governor of the measuring processor.
    pub governor: Option<String>,
    /// Whether the processor may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// Whether two hardware threads of a core are running.
    pub smt_active: Option<bool>,
    /// Processors that the scheduler leaves alone, as a list; empty if there are none.
    pub isolated_cpus: Option<CpuSet>,
    /// Processors without a timer tick, as a list; empty if there are none, null if the kernel is built without it.
    pub nohz_full: Option<CpuSet>,
    /// The words of the kernel's command line that bear on latency: isolation, mitigations, idle states.
    pub cmdline: Option<Vec<String>>,
    /// Kernel modules on RDMA and storage paths, by name, with their parameters.
    pub modules: Option<BTreeMap<String, Module>>,
}

impl HostFacts {
    /// Reads the machine below `sysfs`; the governor is that of `cpu`, or of CPU 0.
    pub fn read(sysfs: &Sysfs, cpu: Option<usize>) -> Self {
        let cpuinfo = sysfs.read("/proc/cpuinfo").unwrap_or_default();
        Self {
            hostname: sysfs.read_word("/proc/sys/kernel/hostname"),
            kernel: sysfs.read_word("/proc/sys/kernel/osrelease"),
            kernel_version: sysfs.read_word("/proc/sys/kernel/version"),
            os: os_name(sysfs),
            cpu_model: cpuinfo_field(&cpuinfo, "model name").or_else(|| cpuinfo_field(&cpuinfo, "cpu")),
            microcode: cpuinfo_field(&cpuinfo, "microcode"),
            cpus_online: cpu::online(sysfs),
            hypervisor: hypervisor(sysfs, &cpuinfo),
            clocksource: sysfs.read_word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: governor(sysfs, cpu.unwrap_or(0)),
            turbo: turbo(sysfs),
            smt_active: flag(sysfs, "/sys/devices/system/cpu/smt/active"),
            isolated_cpus: cpu::isolated(sysfs),
            nohz_full: cpu::nohz_full(sysfs),
            cmdline: sysfs.read("/proc/cmdline").map(|line| latency_words(&line)),
            modules: modules(sysfs),
        }
    }
}

/// The frequency governor of `cpu`. `None` where the kernel doesn't set the frequency, as in most virtual machines.
pub fn governor(sysfs: &Sysfs, cpu: usize) -> Option<String> {
    sysfs.read_word(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
}

/// The first value of `name` in the text of `/proc/cpuinfo`.
fn cpuinfo_field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        (key.trim() == name && !value.is_empty()).then(|| value.to_string())
    })
}

fn os_name(sysfs: &Sysfs) -> Option<String> {
    let text = sysfs.read("/etc/os-release").or_else(|| sysfs.read("/usr/lib/os-release"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = value.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_string())
}

fn turbo(sysfs: &Sysfs) -> Option<bool> {
    let disabled = flag(sysfs, "/sys/devices/system/cpu/intel_pstate/no_turbo");
    disabled.map(|disabled| !disabled).or_else(|| flag(sysfs, "/sys/devices/system/cpu/cpufreq/boost"))
}

fn flag(sysfs: &Sysfs, path: &str) -> Option<bool> {
    match sysfs.read(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Names what the kernel runs under: what it says itself, then what the firmware's vendor gives away, then the bare fact
/// that the processor admits to be virtual.
fn hypervisor(sysfs: &Sysfs, cpuinfo: &str) -> Option<String> {
    sysfs
        .read_word("/sys/hypervisor/type")
        .or_else(|| firmware_hypervisor(sysfs).map(str::to_string))
        .or_else(|| device_tree_hypervisor(sysfs))
        .or_else(|| {
            let flags = cpuinfo_field(cpuinfo, "flags")?;
            flags.split_whitespace().any(|flag| flag == "hypervisor").then(|| "unknown".to_string())
        })
}

fn firmware_hypervisor(sysfs: &Sysfs) -> Option<&'static str> {
    let vendor = sysfs.read("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = sysfs.read("/sys/class/dmi/id/product_name").unwrap_or_default();
    match (vendor.as_str(), product.as_str()) {
        // The clouds' bare-metal machines carry the same vendor.
        (_, product) if product.ends_with(".metal") || product.contains(".metal-") => None,
        (_, "KVM") => Some("kvm"),
        ("QEMU", _) => Some("qemu"),
        ("VMware, Inc.", _) => Some("vmware"),
        ("innotek GmbH", _) | (_, "VirtualBox") => Some("virtualbox"),
        ("Xen", _) => Some("xen"),
        ("Microsoft Corporation", "Virtual Machine") => Some("hyper-v"),
        ("Amazon EC2", _) => Some("amazon"),
        (_, "Google Compute Engine") => Some("google"),
        (_, product) if product.starts_with("Parallels") => Some("parallels"),
        ("Bochs", _) => Some("bochs"),
        _ => None,
    }
}

/// On Arm a guest finds its hypervisor in the device tree, such as `linux,kvm`.
fn device_tree_hypervisor(sysfs: &Sysfs) -> Option<String> {
    let text = sysfs.read("/proc/device-tree/hypervisor/compatible")?;
    // A device tree holds a list of strings, each with a zero behind it.
    let first = text.split('\0').next()?;
    let name = first.rsplit(',').next()?;
    (!name.is_empty()).then(|| name.to_string())
}

fn latency_words(cmdline: &str) -> Vec<String> {
    const KEYS: [&str; 9] = [
        "isolcpus",
        "nohz_full",
        "nohz",
        "rcu_nocbs",
        "mitigations",
        "idle",
        "intel_idle.max_cstate",
        "processor.max_cstate",
        "cpuidle.off",
    ];
    let is_kept = |word: &&str| KEYS.contains(&word.split('=').next().unwrap_or(word));
    // What stands behind the two dashes is for init, not for the kernel.
    cmdline.split_whitespace().take_while(|word| *word != "--").filter(is_kept).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    const CPU: &str = "/sys/devices/system/cpu";
    const VIRTUAL: &str = "processor\t: 0\nmodel name\t: Xeon\nmicrocode\t: 0x2b\nflags\t\t: fpu hypervisor lm\n";

    fn facts(tree: &Tree) -> HostFacts {
        HostFacts::read(&tree.sysfs(), Some(2))
    }

    fn under(vendor: &str, product: &str, cpuinfo: &str) -> Option<String> {
        let tree = Tree::new()
            .file("/sys/class/dmi/id/sys_vendor", vendor)
            .file("/sys/class/dmi/id/product_name", product)
            .file("/proc/cpuinfo", cpuinfo);
        facts(&tree).hypervisor
    }

    #[test]
    fn an_empty_tree_is_all_null() {
        let json = serde_json::to_value(facts(&Tree::new())).unwrap();
        assert_eq!(json.as_object().unwrap().len(), 16);
        assert!(json.as_object().unwrap().values().all(serde_json::Value::is_null), "{json}");
    }

    #[test]
    fn a_whole_tree_is_read() {
        let tree = Tree::new()
            .file("/proc/sys/kernel/hostname", "node7\n")
            .file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
            .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n")
            .file("/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n")
            .file("/proc/cpuinfo", "model name\t: Xeon\nmodel name\t: other\nmicrocode\t: 0x2b\nflags\t\t: fpu lm\n")
            .file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
            .file(&format!("{CPU}/cpu2/cpufreq/scaling_governor"), "performance\n")
            .file(&format!("{CPU}/intel_pstate/no_turbo"), "1\n")
            .file(&format!("{CPU}/smt/active"), "0\n")
            .file(&format!("{CPU}/online"), "0-7\n")
            .file(&format!("{CPU}/isolated"), "\n")
            .file(&format!("{CPU}/nohz_full"), "2-3\n")
            .file("/proc/cmdline", "quiet isolcpus=2-3 root=/dev/sda token=x idle=poll idler=1 -- idle=x\n");
        let json = serde_json::to_value(facts(&tree)).unwrap();
        let expected = serde_json::json!({
            "hostname": "node7", "kernel": "6.1.0-18-amd64", "kernel_version": "#1 SMP PREEMPT_DYNAMIC",
            "os": "Debian GNU/Linux 12", "cpu_model": "Xeon", "microcode": "0x2b", "cpus_online": "0-7",
            "hypervisor": null, "clocksource": "tsc", "governor": "performance", "turbo": false, "smt_active": false,
            "isolated_cpus": "", "nohz_full": "2-3", "cmdline": ["isolcpus=2-3", "idle=poll"],
            "modules": null
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn hypervisors_are_named_by_the_firmware() {
        for (vendor, product, name) in [
            ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "qemu"),
            ("Red Hat", "KVM", "kvm"),
            ("VMware, Inc.", "VMware7,1", "vmware"),
            ("innotek GmbH", "VirtualBox", "virtualbox"),
            ("Xen", "HVM domU", "xen"),
            ("Microsoft Corporation", "Virtual Machine", "hyper-v"),
            ("Amazon EC2", "c7i.large", "amazon"),
            ("Google", "Google Compute Engine", "google"),
            ("Parallels", "Parallels ARM Virtual Machine", "parallels"),
            ("Bochs", "Bochs", "bochs"),
            ("Acme", "Thing", "unknown"),
        ] {
            assert_eq!(under(vendor, product, VIRTUAL).as_deref(), Some(name), "{vendor} {product}");
        }
    }

    #[test]
    fn bare_metal_has_no_hypervisor() {
        assert_eq!(under("Dell Inc.", "PowerEdge R750", "flags\t: fpu lm\n"), None);
        assert_eq!(under("Microsoft Corporation", "Surface", "flags\t: fpu lm\n"), None);
        assert_eq!(under("Amazon EC2", "c5.metal", "flags\t: fpu lm\n"), None);
        assert_eq!(under("Amazon EC2", "c7i.metal-24xl", "flags\t: fpu lm\n"), None);
    }

    #[test]
    fn the_kernels_own_word_comes_first() {
        let xen = Tree::new().file("/sys/hypervisor/type", "xen\n").file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
        assert_eq!(facts(&xen).hypervisor.as_deref(), Some("xen"));
        let arm = Tree::new().file("/proc/device-tree/hypervisor/compatible", "linux,kvm\0");
        assert_eq!(facts(&arm).hypervisor.as_deref(), Some("kvm"));
    }

    #[test]
    fn other_spellings_of_the_same_facts_are_read() {
        let tree = Tree::new()
            .file(&format!("{CPU}/cpufreq/boost"), "1\n")
            .file(&format!("{CPU}/smt/active"), "maybe\n")
            .file("/usr/lib/os-release", "PRETTY_NAME=Alpine\n")
            .file("/proc/cpuinfo", "cpu\t\t: POWER9\n");
        let facts = facts(&tree);
        assert_eq!((facts.turbo, facts.smt_active), (Some(true), None));
        assert_eq!((facts.os.as_deref(), facts.cpu_model.as_deref()), (Some("Alpine"), Some("POWER9")));
    }

    #[test]
    fn this_machine_has_a_kernel_and_cpus() {
        let facts = HostFacts::read(&Sysfs::default(), None);
        assert!(facts.kernel.is_some() && facts.cpus_online.is_some_and(|cpus| !cpus.is_empty()));
    }
}
