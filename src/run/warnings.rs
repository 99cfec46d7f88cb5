//! Doubts that a finished run raises by itself. Refusals are errors elsewhere; what stands here did not stop the run.

use std::collections::BTreeSet;

use super::Placed;
use crate::{
    engine::{BlockGranted, EngineKind, Verb},
    host::{HostFacts, Trouble},
    measure::Noise,
    report::{RunResult, Warning, result::Point},
    timing::{CALIBRATION_LIMIT_PPM, ClockFacts, Source},
    units::format_size,
};

/// A drift beyond this is a doubt (100 ppm); far beyond it the clock is an error.
const DRIFT_DOUBT_PPM: f64 = 100.0;

/// A share of the median beyond which the instrument's floor matters: 5 %.
const FLOOR_SHARE: f64 = 0.05;

/// All doubts about a result.
pub(super) fn of(result: &RunResult, placed: &Placed) -> Vec<Warning> {
    let mut warnings = of_machine(&result.clock, &result.host, &result.instrument.noise, placed);
    let mut warn = |code: &str, message: String| warnings.push(Warning::new(code, message));
    for point in &result.points {
        of_point(point, &mut warn);
    }
    // Every point of a sweep raises the same doubt about the path; once is enough.
    let mut seen = Vec::new();
    warnings.retain(|warning| {
        !seen.contains(&warning.clone()) && {
            seen.push(warning.clone());
            true
        }
    });
    warnings
}

/// Doubts about clock and machine.
pub(super) fn of_machine(clock: &ClockFacts, host: &HostFacts, noise: &Noise, placed: &Placed) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: String| warnings.push(Warning::new(code, message));
    of_clock(clock, &mut warn);
    machine(host, noise, placed, &mut warn);
    warnings
}

fn of_clock(clock: &ClockFacts, warn: &mut impl FnMut(&str, String)) {
    if let (Source::Monotonic, Some(doubt)) = (clock.source, &clock.tsc_doubt) {
        let cost = clock.read_cost_ns;
        warn("clock-monotonic", format!("{doubt}: the monotonic clock is used, each read costs {cost:.0} ns"));
    }
    if clock.forced {
        let doubt = clock.tsc_doubt.as_deref().unwrap_or("its rate is not known to be steady");
        warn("clock-forced", format!("--clock tsc was obeyed although {doubt}"));
    }
    if let Some(error) = clock.calibration_error_ppm.filter(|error| error.abs() > CALIBRATION_LIMIT_PPM) {
        warn(
            "clock-calibration",
            format!("quanta's rate of the counter was off by {error:.0} ppm: the rate by CLOCK_MONOTONIC_RAW is used"),
        );
    }
    if let Some(drift) = clock.drift_ppm.filter(|drift| drift.abs() > DRIFT_DOUBT_PPM) {
        warn(
            "clock-drift",
            format!("the clock drifted by {drift:.0} ppm during the run; long latencies are off by as much"),
        );
    }
}

fn machine(host: &HostFacts, noise: &Noise, placed: &Placed, warn: &mut impl FnMut(&str, String)) {
    if let Some(hypervisor) = &host.hypervisor {
        warn("hypervisor", format!("this is a virtual machine ({hypervisor}): latencies include what the host does"));
    }
    if placed.others.is_empty() {
        warn(
            "one-cpu",
            "no processor is left beside the measuring ones: signals, progress and responders share them".into(),
        );
    }
    if let Some(governor) = host.governor.as_deref().filter(|governor| *governor != "performance") {
        warn("governor", format!("the frequency governor is {governor}; `performance` keeps the clock rate steady"));
    }
    if noise.stolen_fraction > 0.01 {
        let (share, largest) = (100.0 * noise.stolen_fraction, noise.max_gap_ns / 1000.0);
        warn(
            "noise",
            format!("{share:.1} % of the time was taken from the measuring thread, up to {largest:.0} µs at once"),
        );
    }
}

fn of_point(point: &Point, warn: &mut impl FnMut(&str, String)) {
    if let Some(share) = point.share.filter(|share| share.floor_p50 > FLOOR_SHARE)
        && point.config.engine != EngineKind::Null
    {
        let (p50, least) = (100.0 * share.floor_p50, share.unresolvable_below_ns);
        warn(
            "floor",
            format!(
                "the instrument's floor is {p50:.0} % of the p50: differences below {least:.0} ns cannot be told from its own"
            ),
        );
    }
    of_load(point, warn);
    if let Some(lost) = point.errors.get("lost_messages") {
        warn("lost-messages", format!("{lost} messages never arrived; their commands are in the figures as sent"));
    }
    let counted = point.device_counters.iter().flatten().filter(|(name, _)| Trouble::of(name).is_some());
    let counted: Vec<_> = counted.map(|(name, count)| format!("{name} {count}")).collect();
    if !counted.is_empty() {
        warn("device-trouble", format!("the device counted errors or repetitions: {}", counted.join(", ")));
    }
    if let Some(block) = &point.granted.block {
        of_block(point, block, warn);
    }
    let ends = [&point.granted.rdma, &point.granted.remote];
    if let Some(end) = ends.into_iter().flatten().find(|end| end.software) {
        let device = &end.device;
        warn("software-rdma", format!("{device} is software RDMA: the figures are the kernel's, not a NIC's"));
    }
    let responder_shares = point.config.peer_cpu.is_some_and(|cpu| point.config.cpus.contains(&cpu));
    if responder_shares {
        warn(
            "cpu-shared",
            "initiator and responder share a processor: each waits for the other to be scheduled".into(),
        );
    }
}

/// Whether the load was what was asked for.
fn of_load(point: &Point, warn: &mut impl FnMut(&str, String)) {
    let config = &point.config;
    let cpus: BTreeSet<_> = config.cpus.iter().collect();
    if cpus.len() < config.jobs as usize {
        let (jobs, cpus) = (config.jobs, cpus.len());
        warn("jobs-share-cpus", format!("{jobs} jobs share {cpus} CPUs: each waits for others to be scheduled"));
    }
    if let Some(pace) = &point.pace {
        let (rate, achieved) = (pace.rate_per_s, pace.achieved_per_s.unwrap_or(0.0));
        let interval_ns = 1e9 * f64::from(config.jobs) / rate as f64;
        if pace.late_ns.percentiles.p50.is_some_and(|late| late > interval_ns) {
            warn(
                "rate-not-kept",
                format!(
                    "{rate}/s were asked for, {achieved:.0}/s completed: commands waited for a free slot (see --qd) or for \
                     the CPU; response times count from when they were due"
                ),
            );
        }
        if pace.never_issued > 0 {
            let never = pace.never_issued;
            warn(
                "never-issued",
                format!("{never} commands were due before the end and never issued: they are in no statistic"),
            );
        }
    }
    let read_depth = point.granted.rdma.as_ref().and_then(|end| end.read_depth);
    let limited = matches!(config.engine, EngineKind::Rdma(verb) if verb == Verb::Read || verb.is_atomic());
    if let Some(granted) = read_depth.filter(|&granted| limited && u32::from(granted) < config.qd) {
        warn(
            "read-depth",
            format!("of {} commands at most {granted} are on their way: the rest wait in the send queue", config.qd),
        );
    }
    if let Some(every) = config.rdma.as_ref().map(|rdma| rdma.signal_every).filter(|&every| every > 1) {
        warn(
            "signal-every",
            format!(
                "only every {every}th command reports its completion: the others were complete before they were seen"
            ),
        );
    }
}

/// What stands between a command and the device.
fn of_block(point: &Point, block: &BlockGranted, warn: &mut impl FnMut(&str, String)) {
    let reads = point.config.rw.is_some_and(|rw| !rw.writes());
    if let Some(failed) = point.errors.get("failed_commands").filter(|_| !point.partial) {
        warn("failed-commands", format!("{failed} commands failed; they are in no statistic, see `errors`"));
    }
    if block.in_memory {
        let place = block.filesystem.as_deref().or(block.device.as_ref().map(|device| device.name.as_str()));
        let place = place.unwrap_or("its device");
        warn("in-memory", format!("the data lies in memory ({place}): the figures are the kernel's, not a device's"));
    }
    if !block.direct {
        warn("page-cache", "--buffered: commands that the page cache can answer never reach a device".into());
    }
    if let Some(unwritten) = block.unwritten_bytes.filter(|&bytes| reads && bytes > 0) {
        let (part, all) = (format_size(unwritten), format_size(block.size_bytes));
        warn(
            "unwritten",
            format!("{part} of {all} were never written: reads of them need no device. `lat-probe fill` writes them"),
        );
    }
    if let (true, Some(device)) = (block.split, &block.device) {
        let limit = device.max_transfer_bytes.map_or_else(|| "unknown".into(), format_size);
        let segments = device.max_segments.map_or_else(|| "unknown".into(), |limit| limit.to_string());
        warn(
            "split",
            format!(
                "the kernel may cut each command in several: {} takes {limit} and {segments} segments at once",
                device.name
            ),
        );
    }
    let scheduler = block.device.as_ref().and_then(|device| Some((&device.disk, device.scheduler.as_deref()?)));
    let by_block_layer = block.sg.is_none() && block.nvme.is_none() && block.direct;
    if let Some((disk, scheduler)) = scheduler.filter(|(_, name)| *name != "none" && by_block_layer) {
        warn(
            "scheduler",
            format!("the I/O scheduler {scheduler} is in the path: echo none > /sys/block/{disk}/queue/scheduler"),
        );
    }
    if block.sg.as_ref().is_some_and(|sg| sg.direct_io == Some(false)) {
        warn(
            "sg-copies",
            "the sg driver copies the data through its own pages: echo 1 > /sys/module/sg/parameters/allow_dio".into(),
        );
    }
    let thread_shares = block.uring.as_ref().and_then(|ring| ring.sqpoll_cpu);
    if thread_shares.is_some_and(|cpu| point.config.cpus.contains(&(cpu as usize))) {
        warn(
            "cpu-shared",
            "the kernel's submission thread was bound to the measuring processor: each waits for the other".into(),
        );
    }
}
