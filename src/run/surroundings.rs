//! What happened around the commands of a point: the device's own counters, and looks at the measuring thread.

use std::collections::BTreeMap;

use super::{figures, job::Job, moments::Moments};
use crate::{
    engine::Granted,
    host::{DeviceCounters, Sysfs, Watch, increases},
    report::result::Point,
    timing::Stamps,
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
        let moments = (!job.placed.others.is_empty()).then(|| {
            let watch = Watch::current(sysfs.clone(), job.placed.cpu, device.as_ref());
            Moments::begin(watch, now, job.ticks_per_ns)
        });
        Self { sysfs, device, before, moments }
    }

    /// Adds to a point what was counted, and to its outliers what may have caused them.
    pub fn explain<S: Stamps>(&self, job: &Job, point: &mut Point, samples: &[S]) {
        point.device_counters = self.device.as_ref().map(|device| increases(&device.read(&self.sysfs), &self.before));
        if let Some(moments) = &self.moments {
            let p50_ns = point.latency_ns.percentiles.p50;
            moments.explain(&mut point.outliers, samples, p50_ns, figures::scale(job).latency);
        }
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
