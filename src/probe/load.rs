//! The load of each measured point: how much at a time, how many at once, by how many threads, how often.

use std::time::Duration;

use serde::Serialize;

use super::{
    plan::{MAX_INTEGER, range},
    spec::Spec,
};
use crate::{
    engine::{Completion, EngineKind},
    error::{Error, Result},
};

/// Most commands outstanding in one job.
pub const MAX_DEPTH: u64 = 1 << 20;
/// Most threads that measure.
pub const MAX_JOBS: u64 = 4096;
/// Most points of one measurement: a list too many is a mistake.
const MAX_POINTS: usize = 10_000;
const MAX_RATE: u64 = 1_000_000_000;

/// Commands discarded first at depth one, where nothing was said.
const DEFAULT_WARMUP: u64 = 1000;

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Commands outstanding in each job.
    pub qd: u32,
    /// Payload bytes; none for engines that move no data.
    pub bs_bytes: Option<u64>,
    /// Threads that measure.
    pub jobs: u32,
    /// Commands per second that each job is to issue; none for as many as complete.
    pub rate: Option<u64>,
}

impl Load {
    /// Commands discarded first where nothing was said: enough to fill the window twice, since it fills up at another pace
    /// than it keeps.
    pub fn default_warmup(&self) -> u64 {
        if self.qd == 1 { DEFAULT_WARMUP } else { DEFAULT_WARMUP.max(2 * u64::from(self.qd)) }
    }
}

/// The points of a measurement: every size at every depth, with every number of jobs, at every rate.
///
/// # Errors
/// [`Error::Usage`] that names the option, the value and what is allowed.
pub(super) fn loads(spec: &Spec, sizes: &[Option<u64>]) -> Result<Vec<Load>> {
    let depths = list("--qd", &spec.qd, 1, MAX_DEPTH)?;
    let jobs = list("--jobs", &spec.jobs, 1, MAX_JOBS)?;
    for &depth in depths.iter().filter(|&&depth| depth > 1) {
        if let Some(why) = one_at_a_time(spec) {
            return Err(Error::Usage(format!("--qd {depth}: {} has one command outstanding: {why}", spec.engine)));
        }
    }
    let rates = match spec.rate.as_slice() {
        [] => vec![None],
        rates => rates.iter().map(|&rate| in_range("--rate", rate, 1, MAX_RATE).map(Some)).collect::<Result<_>>()?,
    };
    check_timetable(spec)?;
    let points = [depths.len(), jobs.len(), rates.len(), sizes.len()].iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    if points.is_none_or(|points| points > MAX_POINTS) {
        return Err(Error::Usage(format!("the lists make more than {MAX_POINTS} points")));
    }
    let mut loads = Vec::new();
    for &rate in &rates {
        for &jobs in &jobs {
            for &qd in &depths {
                // Both are within 32 bits, as `list` has checked.
                let load = |&bs_bytes| Load { qd: qd as u32, bs_bytes, jobs: jobs as u32, rate };
                loads.extend(sizes.iter().map(load));
            }
        }
    }
    Ok(loads)
}

/// Why the engine can have one command outstanding only, if it is so.
fn one_at_a_time(spec: &Spec) -> Option<&'static str> {
    match spec.engine {
        EngineKind::Psync | EngineKind::Pvsync2 | EngineKind::Sg => {
            Some("its call returns on completion. Use --jobs for more at a time, or libaio or io-uring")
        }
        EngineKind::NvmeCmd if spec.block.nvme_ioctl => {
            Some("the ioctl returns on completion. Leave --nvme-ioctl out, or use --jobs for more at a time")
        }
        EngineKind::Spin => Some("it is a wait of this thread"),
        EngineKind::Rdma(verb) if verb.is_ping_pong() => Some("the next ping waits for the pong. Use --jobs for more"),
        _ => None,
    }
}

fn check_timetable(spec: &Spec) -> Result<()> {
    if spec.rate.is_empty() {
        return if spec.arrivals.is_some() { Err(Error::usage("--arrivals is for --rate")) } else { Ok(()) };
    }
    if spec.completion == Completion::Event {
        return Err(Error::usage("--rate needs --completion poll: who sleeps for a completion misses the timetable"));
    }
    Ok(())
}

/// Time of the warm-up.
pub(super) fn check_warmup(warmup: Option<u64>, time: Option<Duration>) -> Result<()> {
    if let Some(warmup) = warmup.filter(|&warmup| warmup > MAX_INTEGER) {
        return Err(range("--warmup", warmup, &format!("at most {MAX_INTEGER}")));
    }
    if time.is_some_and(|time| time.as_nanos() > u128::from(MAX_INTEGER)) {
        return Err(Error::usage("--warmup-time is out of range (allowed: at most 2501h)"));
    }
    Ok(())
}

/// A list of numbers; one if nothing was said.
fn list(option: &str, values: &[u64], least: u64, most: u64) -> Result<Vec<u64>> {
    let values = if values.is_empty() { &[1] } else { values };
    values.iter().map(|&value| in_range(option, value, least, most)).collect()
}

fn in_range(option: &str, value: u64, least: u64, most: u64) -> Result<u64> {
    if (least..=most).contains(&value) { Ok(value) } else { Err(range(option, value, &format!("{least} to {most}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(engine: &str) -> Spec {
        Spec::of(EngineKind::from_name(engine).unwrap())
    }

    fn refusal(spec: Spec) -> String {
        loads(&spec, &[None]).unwrap_err().to_string()
    }

    #[test]
    fn lists_make_a_point_of_every_combination() {
        let spec = Spec { qd: vec![1, 32], jobs: vec![1, 2], rate: vec![100], ..spec("null") };
        let loads = loads(&spec, &[Some(8), Some(16)]).unwrap();
        assert_eq!(loads.len(), 8);
        assert_eq!(loads[0], Load { qd: 1, bs_bytes: Some(8), jobs: 1, rate: Some(100) });
        assert_eq!(loads[7], Load { qd: 32, bs_bytes: Some(16), jobs: 2, rate: Some(100) });
    }

    #[test]
    fn engines_that_block_refuse_a_deeper_queue_with_the_reason() {
        for engine in ["psync", "pvsync2", "sg", "spin", "rdma-send-pingpong", "rdma-write-pingpong"] {
            let refused = refusal(Spec { qd: vec![1, 2], ..spec(engine) });
            assert!(refused.contains("--qd 2") && refused.contains("one command outstanding"), "{refused}");
        }
        for engine in ["null", "libaio", "io-uring", "nvme-cmd", "rdma-read", "rdma-cas"] {
            assert!(loads(&Spec { qd: vec![20_000], ..spec(engine) }, &[None]).is_ok(), "{engine}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        assert!(refusal(Spec { qd: vec![0], ..spec("null") }).contains("--qd 0"));
        assert!(refusal(Spec { qd: vec![u64::MAX], ..spec("null") }).contains("1 to 1048576"));
        assert!(refusal(Spec { jobs: vec![5000], ..spec("null") }).contains("1 to 4096"));
        assert!(refusal(Spec { rate: vec![0], ..spec("null") }).contains("--rate 0"));
        assert!(refusal(Spec { qd: vec![1; 101], jobs: vec![1; 101], ..spec("null") }).contains("points"));
    }

    #[test]
    fn a_timetable_is_not_for_sleepers_and_arrivals_are_for_a_timetable() {
        let event = Spec { rate: vec![1], completion: Completion::Event, ..spec("libaio") };
        assert!(refusal(event).contains("misses the timetable"));
        assert!(refusal(Spec { arrivals: Some(crate::engine::Arrivals::Poisson), ..spec("null") }).contains("--rate"));
    }

    #[test]
    fn the_warm_up_fills_the_window_unless_told_otherwise() {
        let load = |qd| Load { qd, bs_bytes: None, jobs: 1, rate: None };
        assert_eq!(
            (load(1).default_warmup(), load(64).default_warmup(), load(20_000).default_warmup()),
            (1000, 1000, 40_000)
        );
    }
}
