//! `lat-probe check`: what on this machine stands in the way of a measurement, or of believing it, and the command that
//! changes it.
//!
//! Nothing is changed and nothing is measured here. Commands in `fix` are meant for a root shell.

use crate::host::{
    CpuSet, HostFacts, Memory, Sysfs, cpu,
    facts::governor,
    rdma::{self, GidType, Port, RdmaDevice, RdmaSupport},
};
use std::fmt::Write;

#[path = "check_quiet.rs"]
mod quiet;

/// Locked memory below which even a small queue pair fails.
const MEMLOCK_LEAST_BYTES: u64 = 1 << 20;
/// Locked memory that is enough for the buffers of every default.
const MEMLOCK_PLENTY_BYTES: u64 = 64 << 20;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Measurements run, but numbers would be steadier or truer otherwise.
    Advice,
    /// Some engine can't run.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about, in a word.
    pub area: &'static str,
    /// How bad it is.
    pub status: Status,
    /// What was found, as a clause.
    pub message: String,
    /// The exact command or setting that changes it.
    pub fix: Option<String>,
}

/// What is looked at: the system's files, and the limits of this process that stand in none.
#[derive(Clone, Debug)]
pub struct System {
    /// The files of /proc, /sys and /dev.
    pub sysfs: Sysfs,
    /// Memory and its limits.
    pub memory: Memory,
    /// Whether the verbs library can be loaded; null in a build without RDMA engines.
    pub verbs_library: Option<bool>,
    /// The rest, with the same names as in a result.
    pub facts: HostFacts,
}

impl System {
    /// The system below `sysfs`.
    pub fn read(sysfs: Sysfs) -> Self {
        #[cfg(feature = "rdma")]
        let verbs_library = Some(crate::sys::verbs::Context::library_present());
        #[cfg(not(feature = "rdma"))]
        let verbs_library = None;
        Self { memory: Memory::read(&sysfs), verbs_library, facts: HostFacts::read(&sysfs, None), sysfs }
    }
}

impl Finding {
    fn ok(area: &'static str, message: impl Into<String>) -> Self {
        Self { area, status: Status::Ok, message: message.into(), fix: None }
    }

    fn advice(area: &'static str, message: impl Into<String>) -> Self {
        Self { status: Status::Advice, ..Self::ok(area, message) }
    }

    fn problem(area: &'static str, message: impl Into<String>) -> Self {
        Self { status: Status::Problem, ..Self::ok(area, message) }
    }

    fn fix(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }
}

/// Looks at everything that is known to spoil or prevent a measurement, what engines need first.
pub fn inspect(system: &System) -> Vec<Finding> {
    let mut findings = vec![support(&system.sysfs)];
    if system.verbs_library == Some(false) {
        let missing = Finding::problem("rdma", "libibverbs.so.1 is not installed");
        findings.push(missing.fix("apt-get install libibverbs1 ibverbs-providers librdmacm1"));
    }
    for device in rdma::devices(&system.sysfs) {
        for port in &device.ports {
            findings.push(port_state(&device, port));
            findings.extend(port.is_active().then(|| port_gid(&device, port)));
        }
    }
    findings.extend([
        memlock(&system.memory),
        io_uring(&system.sysfs),
        aio(&system.sysfs),
        governors(system),
        clocksource(system),
        isolation(system),
        smt(system),
        hypervisor(system),
        hugepages(&system.memory),
    ]);
    findings.extend(quiet::findings(system));
    findings
}

/// Prints findings as aligned plain text, each fix below its finding, with a count at the end.
pub fn render(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.area.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { area, status, message, fix } in findings {
        let status = match status {
            Status::Ok => "ok",
            Status::Advice => "advice",
            Status::Problem => "PROBLEM",
        };
        // Writing to a String can't fail.
        let _ = writeln!(text, "{status:<7}  {area:<width$}  {message}");
        if let Some(fix) = fix {
            let _ = writeln!(text, "{:<7}  {:<width$}  fix: {fix}", "", "");
        }
    }
    let count = |wanted| findings.iter().filter(|finding| finding.status == wanted).count();
    let _ = writeln!(text, "problems: {}, advice: {}", count(Status::Problem), count(Status::Advice));
    text
}

fn support(sysfs: &Sysfs) -> Finding {
    match rdma::support(sysfs) {
        RdmaSupport::NoKernelSupport => {
            Finding::problem("rdma", "the kernel's RDMA core is not loaded; load soft-RoCE, or use scripts/lab")
                .fix(rdma::soft_roce(sysfs))
        }
        RdmaSupport::NoDevices => {
            Finding::problem("rdma", "there is no RDMA device; add soft-RoCE, or use scripts/lab")
                .fix(rdma::soft_roce(sysfs))
        }
        RdmaSupport::NoUserAccess if !sysfs.exists("/sys/class/infiniband_verbs/abi_version") => {
            Finding::problem("rdma", "the kernel's user-space verbs are not loaded").fix("modprobe ib_uverbs")
        }
        RdmaSupport::NoUserAccess if sysfs.names("/dev/infiniband").is_none() => Finding::problem(
            "rdma",
            "there is no /dev/infiniband; a container needs it passed in (--device=/dev/infiniband)",
        ),
        RdmaSupport::NoUserAccess => Finding::problem("rdma", "this user may not open any /dev/infiniband/uverbs*")
            .fix("chmod 0666 /dev/infiniband/uverbs*"),
        RdmaSupport::Devices(1) => Finding::ok("rdma", "1 device, which this user may open"),
        RdmaSupport::Devices(n) => match rdma::user_access(sysfs).len() {
            open if open < n => Finding::advice("rdma", format!("{n} devices, of which this user may open {open}"))
                .fix("chmod 0666 /dev/infiniband/uverbs*"),
            _ => Finding::ok("rdma", format!("{n} devices, which this user may open")),
        },
    }
}

fn port_state(device: &RdmaDevice, port: &Port) -> Finding {
    let place = format!("{} port {}", device.name, port.number);
    let unknown = || "unknown".to_string();
    let state = port.state.clone().unwrap_or_else(unknown);
    if port.is_active() {
        let rate = port.rate.clone().unwrap_or_else(unknown);
        return Finding::ok("port", format!("{place} is {state}, {rate}"));
    }
    let phys_state = port.phys_state.clone().unwrap_or_else(unknown);
    let finding = Finding::problem("port", format!("{place} is {state} (physically {phys_state})"));
    if port.link_layer.as_deref() == Some("InfiniBand") {
        // A port that is initialised but not active waits for a subnet manager; a dead link needs hands.
        return if state.starts_with("2:") { finding.fix("systemctl start opensm") } else { finding };
    }
    match device.netdevs.first() {
        Some(netdev) => finding.fix(format!("ip link set {netdev} up")),
        None => finding,
    }
}

fn port_gid(device: &RdmaDevice, port: &Port) -> Finding {
    let place = format!("{} port {}", device.name, port.number);
    let netdev = device.netdevs.first().map_or("<netdev>", String::as_str);
    let address = format!("ip address add <address>/<prefix> dev {netdev}");
    let Some(gid) = rdma::choose_gid(port, None, None) else {
        return Finding::problem("gid", format!("{place} has no GID")).fix(address);
    };
    let message = format!("{place} would use GID {}: {gid}, {}", gid.index, gid.gid_type);
    match gid.gid_type {
        _ if device.is_iwarp() => Finding::ok("gid", format!("{place} is iWARP, which has no use for GIDs")),
        GidType::Ib => Finding::ok("gid", message),
        GidType::RoceV2 if !gid.address.starts_with(&[0xfe, 0x80]) => Finding::ok("gid", message),
        GidType::RoceV2 => Finding::advice("gid", format!("{message}, reachable on this link only")).fix(address),
        GidType::RoceV1 => Finding::advice("gid", format!("{message}, which isn't routed; there is no RoCE v2 one")),
    }
}

fn memlock(memory: &Memory) -> Finding {
    let Some(limit) = memory.memlock_bytes else { return Finding::ok("memlock", "unlimited") };
    if !memory.memlock_enforced {
        return Finding::ok("memlock", format!("{limit} bytes, which CAP_IPC_LOCK lifts for this user"));
    }
    let message = format!(
        "only {limit} bytes may be locked; raise it for this shell, or for good with the line \
         '* - memlock unlimited' in /etc/security/limits.conf"
    );
    let fix = "ulimit -l unlimited";
    match limit {
        MEMLOCK_PLENTY_BYTES.. => Finding::ok("memlock", format!("{limit} bytes")),
        MEMLOCK_LEAST_BYTES.. => Finding::advice("memlock", message).fix(fix),
        _ => Finding::problem("memlock", message).fix(fix),
    }
}

fn governors(system: &System) -> Finding {
    let online = system.facts.cpus_online.clone().unwrap_or_default();
    let known: Vec<(usize, String)> =
        online.iter().filter_map(|cpu| Some((cpu, governor(&system.sysfs, cpu)?))).collect();
    let slow: Vec<&(usize, String)> = known.iter().filter(|(_, governor)| governor != "performance").collect();
    match slow.first() {
        None if known.is_empty() => Finding::ok("governor", "this kernel doesn't set the CPU frequency"),
        None => Finding::ok("governor", "performance"),
        Some((_, first)) => {
            let cpus: CpuSet = slow.iter().map(|(cpu, _)| *cpu).collect();
            Finding::advice("governor", format!("{first} on CPUs {cpus}; the clock rate moves while measuring"))
                .fix("echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
        }
    }
}

fn clocksource(system: &System) -> Finding {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let Some(source) = &system.facts.clocksource else {
        return Finding::advice("clocksource", "the kernel doesn't show its clock source");
    };
    // Other architectures have one counter, which the kernel reads as directly.
    if matches!(source.as_str(), "tsc" | "arch_sys_counter" | "timebase" | "riscv_clocksource") {
        return Finding::ok("clocksource", source);
    }
    let finding = Finding::advice("clocksource", format!("{source}, not tsc; reading the time may cost microseconds"));
    let available = system.sysfs.read(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    if available.split_whitespace().any(|name| name == "tsc") {
        finding.fix(format!("echo tsc > {FOLDER}/current_clocksource"))
    } else {
        finding
    }
}

fn isolation(system: &System) -> Finding {
    let online = system.facts.cpus_online.clone().unwrap_or_default();
    let isolated = system.facts.isolated_cpus.clone().unwrap_or_default();
    let without_tick = system.facts.nohz_full.clone().unwrap_or_default();
    if !isolated.is_empty() {
        let ticking = isolated.without(&without_tick);
        return if ticking.is_empty() {
            Finding::ok("isolation", format!("CPUs {isolated} are isolated and without a tick"))
        } else {
            Finding::advice("isolation", format!("CPUs {isolated} are isolated, but CPUs {ticking} have a timer tick"))
                .fix(format!("on the kernel command line: nohz_full={isolated}"))
        };
    }
    let advice = Finding::advice("isolation", "no CPU is isolated; the scheduler may interrupt a measurement");
    match online.iter().next_back() {
        Some(last) if last > 0 => {
            let core: CpuSet = cpu::smt_siblings(&system.sysfs, last).iter().chain([last]).collect();
            // CPU 0 can't go without a tick, and something must be left to run the rest.
            let core = if core.contains(0) { CpuSet::from_iter([last]) } else { core };
            advice.fix(format!("on the kernel command line: isolcpus={core} nohz_full={core}"))
        }
        _ => advice,
    }
}

fn smt(system: &System) -> Finding {
    match system.facts.smt_active {
        Some(true) => Finding::advice("smt", "on; the other hardware thread of a core slows a measurement")
            .fix("echo off > /sys/devices/system/cpu/smt/control"),
        Some(false) => Finding::ok("smt", "off"),
        None => Finding::ok("smt", "not shown by this kernel"),
    }
}

fn hypervisor(system: &System) -> Finding {
    match &system.facts.hypervisor {
        Some(name) => {
            Finding::advice("hypervisor", format!("{name}; every number includes it, compare within this machine only"))
        }
        None => Finding::ok("hypervisor", "none seen"),
    }
}

fn io_uring(sysfs: &Sysfs) -> Finding {
    match sysfs.read_word("/proc/sys/kernel/io_uring_disabled").as_deref() {
        None | Some("0") => Finding::ok("io_uring", "not disabled (kernel.io_uring_disabled)"),
        Some(value) => {
            let who =
                if value == "1" { "for all but CAP_SYS_ADMIN and kernel.io_uring_group" } else { "for everybody" };
            Finding::problem("io_uring", format!("disabled {who} (kernel.io_uring_disabled is {value})"))
                .fix("sysctl kernel.io_uring_disabled=0")
        }
    }
}

fn aio(sysfs: &Sysfs) -> Finding {
    let number = |name: &str| sysfs.read_word(&format!("/proc/sys/fs/{name}"))?.parse::<u64>().ok();
    match (number("aio-nr"), number("aio-max-nr")) {
        (Some(used), Some(allowed)) if used >= allowed => {
            Finding::problem("aio", format!("all {allowed} requests are used (fs.aio-nr, fs.aio-max-nr)"))
                .fix(format!("sysctl fs.aio-max-nr={}", (allowed * 2).max(65_536)))
        }
        (Some(used), Some(allowed)) => Finding::ok("aio", format!("{used} of {allowed} requests used")),
        _ => Finding::advice("aio", "this kernel has no AIO: the engine libaio can't run"),
    }
}

fn hugepages(memory: &Memory) -> Finding {
    let Some(pool) = memory.hugepages else { return Finding::ok("hugepages", "not offered by this kernel") };
    let kib = pool.page_bytes >> 10;
    if pool.free > 0 {
        return Finding::ok("hugepages", format!("{} of {} free, {kib} KiB each", pool.free, pool.total));
    }
    let message = format!("{} of {} free, {kib} KiB each; buffers can't have them on request", pool.free, pool.total);
    Finding::advice("hugepages", message).fix(format!("sysctl vm.nr_hugepages={}", pool.total + 64))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
