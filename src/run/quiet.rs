//! `--quiet`: which measures suit the plans of a run, in which order they are taken, and their end.
//!
//! They come before the clock is calibrated and the machine listened to, so that the noise in the result is that of the
//! machine as it was measured on.

use std::collections::BTreeSet;

use super::Placed;
use crate::{
    engine::{Completion, EngineKind, block::target::Target},
    host::{
        BlockDevice, CpuSet, Memory, Quiet, Sysfs,
        quiet::{CpuLatency, LockedMemory, Priority, Steering, interrupts, priority},
        rdma::{self, RdmaDevice},
    },
    probe::{Load, Plan},
    report::Warning,
};

/// Bytes kept of one command at most.
const SAMPLE_BYTES: u64 = 24;

/// The measures in force. Dropping it undoes them, on whatever path a run ends.
#[derive(Debug, Default)]
pub(super) struct Quieted {
    report: Quiet,
    // In the order in which they are dropped: nothing is restored at a priority that keeps others away.
    priority: Option<Priority>,
    interrupts: Option<Steering>,
    _memory: Option<LockedMemory>,
    _idle: Option<CpuLatency>,
}

impl Quieted {
    /// Takes the measures that concern the process and the machine, for runs on the processors `cpus`. To be called before
    /// this thread is pinned, since a helper process begins where it is.
    pub fn begin(plans: &[Plan], cpus: &CpuSet) -> Self {
        let sysfs = Sysfs::default();
        let mut report = Quiet::default();
        let idle = report.note(CpuLatency::NAME, CpuLatency::hold(&sysfs));
        let keep: BTreeSet<usize> = plans.iter().flat_map(|plan| awaited_interrupts(&sysfs, plan)).collect();
        let interrupts = Steering::away_from(&sysfs, cpus, &keep, &mut report);
        let needed = plans.iter().map(bytes_needed).max().unwrap_or(0);
        let memory = report.note(LockedMemory::NAME, LockedMemory::hold(&sysfs, &Memory::read(&sysfs), needed));
        Self { report, priority: None, interrupts, _memory: memory, _idle: idle }
    }

    /// Raises the priority of the calling thread, the measuring one, as far as is safe for all `plans`.
    pub fn raise(mut self, plans: &[Plan], placed: &Placed) -> Self {
        let sysfs = Sysfs::default();
        let report = &mut self.report;
        if let Some(why) = plans.iter().find_map(|plan| held_back(&sysfs, plan, placed)) {
            report.refuse(Priority::REAL_TIME, format!("{why}; with priority over it, commands would wait for ever"));
            report.refuse(Priority::NICE, format!("{why}; with priority over it, commands would take longer"));
            return self;
        }
        let unsafe_here = if placed.others.is_empty() {
            Some("there is one processor, and the thread that watches for signals and stalls needs it too".into())
        } else {
            priority::throttled(&sysfs)
        };
        let real_time = unsafe_here.map_or_else(|| Priority::real_time(&sysfs), Err);
        self.priority = report.note(Priority::REAL_TIME, real_time);
        if self.priority.is_none() {
            self.priority = report.note(Priority::NICE, Priority::nice());
        }
        self
    }

    /// In the place of [`Self::raise`] where the measuring thread must let others on its processor run.
    pub fn stay_fair(mut self) -> Self {
        const WHY: &str = "some floors are of commands that a kernel thread on the same processor may complete";
        self.report.refuse(Priority::REAL_TIME, WHY);
        self.report.refuse(Priority::NICE, WHY);
        self
    }

    /// Undoes everything; what was done, and a doubt about what could not be undone.
    pub fn end(mut self) -> (Quiet, Option<Warning>) {
        drop(self.priority.take());
        let failed = self.interrupts.take().map(Steering::restore).unwrap_or_default();
        let warning = (!failed.is_empty()).then(|| {
            let message = format!("interrupts could not be put back where they were: {}", failed.join("; "));
            Warning::new("quiet-not-undone", message)
        });
        (std::mem::take(&mut self.report), warning)
    }
}

/// Memory that a point will map at most, as far as it can be told beforehand.
fn bytes_needed(plan: &Plan) -> u64 {
    let of = |load: &Load| {
        let samples = plan.kept(load).saturating_mul(SAMPLE_BYTES);
        let data = load.bs_bytes.unwrap_or(0).saturating_mul(load.qd.into()).saturating_mul(4);
        samples.saturating_add(data).saturating_mul(load.jobs.into())
    };
    plan.points.iter().map(of).max().unwrap_or(0)
}

/// Whether the commands of a plan complete by an interrupt of their device, wherever they are waited for. Polled verbs do
/// not, and neither do commands whose queue the kernel polls.
fn completes_by_interrupt(plan: &Plan) -> bool {
    match (&plan.block, plan.engine) {
        (Some(block), _) => !block.hipri && !block.uring.iopoll,
        (None, EngineKind::Rdma(_)) => plan.completion == Completion::Event,
        (None, _) => false,
    }
}

/// Interrupts that belong to the path that is measured: on another processor they would make it another path.
fn awaited_interrupts(sysfs: &Sysfs, plan: &Plan) -> BTreeSet<usize> {
    if !completes_by_interrupt(plan) {
        return BTreeSet::new();
    }
    let folders = match &plan.block {
        Some(block) => vec![match Target::device_behind(sysfs, &block.target) {
            Some(device) => format!("/sys/class/block/{}", device.disk),
            // A SCSI device that is no disk has only its generic node.
            None => {
                format!("/sys/class/scsi_generic/{}", block.target.file_name().unwrap_or_default().to_string_lossy())
            }
        }],
        None => {
            let devices = rdma_devices(sysfs, plan).into_iter();
            devices.map(|device| format!("/sys/class/infiniband/{}", device.name)).collect()
        }
    };
    folders.iter().flat_map(|folder| interrupts::of_device(sysfs, folder)).collect()
}

/// What on the measuring processor completes commands while the measuring thread polls for them, so that priority over it
/// would stop both; `None` if nothing does.
fn held_back(sysfs: &Sysfs, plan: &Plan, placed: &Placed) -> Option<String> {
    match plan.engine {
        EngineKind::Null | EngineKind::Spin => None,
        EngineKind::Rdma(verb) => {
            if plan.peer.is_none() && verb.needs_responder() && placed.cpu == placed.peer_cpu {
                return Some("the responder's thread shares the measuring processor".into());
            }
            let software = rdma_devices(sysfs, plan).into_iter().find(RdmaDevice::is_software);
            software
                .map(|device| format!("{} is software RDMA: kernel threads on any processor do its work", device.name))
        }
        _ => held_back_by_block(sysfs, plan),
    }
}

/// As [`held_back`], for block engines. One that sleeps for each command leaves the processor to whoever completes it. One
/// that polls is safe where the device's own interrupt, or the poll itself, completes the command.
fn held_back_by_block(sysfs: &Sysfs, plan: &Plan) -> Option<String> {
    let block = plan.block.as_ref()?;
    let sleeps = match plan.engine {
        EngineKind::Psync | EngineKind::Pvsync2 => !block.hipri,
        EngineKind::Sg => true,
        EngineKind::NvmeCmd if block.nvme_ioctl => true,
        _ => plan.completion == Completion::Event && !block.uring.iopoll,
    };
    if block.uring.sqpoll || block.uring.force_async {
        return Some("a kernel thread takes the commands, and may run on the measuring processor".into());
    }
    let is_node = std::fs::metadata(&block.target).is_ok_and(|found| !found.is_file());
    let device = Target::device_behind(sysfs, &block.target);
    let by_hardware = is_node && block.buffered != Some(true) && device.as_ref().is_some_and(is_pcie);
    (!sleeps && !by_hardware).then(|| {
        let target = block.target.display();
        format!(
            "commands are polled for, and a kernel thread on the measuring processor may complete those of {target}"
        )
    })
}

/// Whether commands go straight to an adapter on the bus, without a layer that may hand them to a thread.
fn is_pcie(device: &BlockDevice) -> bool {
    device.transport.as_deref() == Some("pcie")
}

/// The RDMA devices that the plan may use: the one that is named, or all that are active, since the peer's network has a say.
fn rdma_devices(sysfs: &Sysfs, plan: &Plan) -> Vec<RdmaDevice> {
    let mut devices = rdma::devices(sysfs);
    devices.retain(|device| match &plan.rdma.device {
        Some(name) => device.name == *name,
        None => device.ports.iter().any(rdma::Port::is_active),
    });
    devices
}

#[cfg(test)]
#[path = "quiet_tests.rs"]
mod tests;
