//! What happened around the commands of a point: the device's own counters, and looks at the measuring thread.

use std::collections::BTreeMap;

use super::{figures, job::Job, moments::Moments, team::Team};
use crate::{
    engine::Granted,
    host::{DeviceCounters, Sysfs, Watch, increases},
    stats::Figures,
};

/// From before the first command to after the last one.
pub(super) struct Surroundings {
    sysfs: Sysfs,
    device: Option<DeviceCounters>,
    before: BTreeMap<String, u64>,
    /// Looks over the run, which the monitor takes; none where it has no processor of its own, since there it would be what
    /// it looks for.
    pub moments: Option<Moments>,
}

impl Surroundings {
    /// Begins on the measuring thread; `now` reads the clock that stamps commands.
    pub fn begin(job: &Job, granted: &Granted, now: fn() -> u64) -> Self {
        let sysfs = Sysfs::default();
        let device = device_counters(&sysfs, granted);
        let before = device.as_ref().map(|device| device.read(&sysfs)).unwrap_or_default();
        job.signals.was_stopped(); // Before now, which is of no concern.
        let watched = job.team.is_none_or(Team::is_watched) && !job.placed.others.is_empty();
        let moments = watched.then(|| {
            let watch = Watch::current(sysfs.clone(), job.placed.cpu, device.as_ref());
            Moments::begin(watch, now, job.ticks_per_ns)
        });
        Self { sysfs, device, before, moments }
    }

    /// Says of the outliers what may have caused them.
    pub fn explain(&self, job: &Job, figures: &mut Figures) {
        if let Some(moments) = &self.moments {
            let p50_ns = figures.latency.percentiles.p50;
            let scale = figures::scale(job.plan, job.ticks_per_ns).latency;
            moments.explain(&mut figures.outliers, &figures.slowest, p50_ns, scale);
        }
    }

    /// What the device has counted since the beginning, where it counts.
    pub fn device_counters(&self) -> Option<BTreeMap<String, u64>> {
        self.device.as_ref().map(|device| increases(&device.read(&self.sysfs), &self.before))
    }
}

/// The counters of the device that commands go to, as far as it is known.
fn device_counters(sysfs: &Sysfs, granted: &Granted) -> Option<DeviceCounters> {
    if let Some(port) = &granted.rdma {
        return Some(DeviceCounters::of_port(sysfs, &port.device, port.port, port.software));
    }
    let device = granted.block.as_ref()?.device.as_ref()?;
    Some(DeviceCounters::of_disk(&device.disk))
}
