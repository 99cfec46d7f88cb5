//! Several jobs of one point: threads that begin together, and one point made of what they measured.

use std::{
    collections::BTreeSet,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use super::{
    Placed,
    dispatch::{self, Measured},
    figures,
    job::{Job, Shared},
    samples::{OUTLIERS, Samples},
    samples_file::SampleFile,
};
use crate::{
    error::{Error, Result},
    host::cpu,
    measure::Depths,
    probe::{Load, Plan},
    report::result::{EndedBy, JobRow, Point, Share, Verified},
    stats::windowed_rate,
};

/// Most jobs of which each is watched for what happens around its outliers: looking is not free.
const MOST_WATCHED: u32 = 4;

/// What the jobs of a point share while they run.
#[derive(Debug)]
pub(crate) struct Team {
    size: u32,
    /// Jobs that are ready, and whether one has given up before it was.
    ready: Mutex<(u32, bool)>,
    changed: Condvar,
    failed: AtomicBool,
}

impl Team {
    fn new(size: u32) -> Self {
        Self { size, ready: Mutex::new((0, false)), changed: Condvar::new(), failed: AtomicBool::new(false) }
    }

    /// This job is ready to measure: waits for all others. Whether they will come: one may have failed before.
    pub fn arrive(&self) -> bool {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        self.changed.notify_all();
        self.wait_for(self.size)
    }

    /// Waits until so many jobs are ready; not when one has failed.
    fn wait_for(&self, size: u32) -> bool {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        while ready.0 < size && !ready.1 {
            ready = self.changed.wait(ready).unwrap_or_else(PoisonError::into_inner);
        }
        !ready.1
    }

    /// A job has failed: the others need not go on, and nobody needs to wait for it.
    fn give_up(&self) {
        self.failed.store(true, Relaxed);
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }

    /// Whether a job has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Whether there are so few jobs that each can be watched.
    pub fn is_watched(&self) -> bool {
        self.size <= MOST_WATCHED
    }
}

/// Measures a point with a thread for each job, on the processors of `placed`, and makes one point of all.
///
/// # Errors
/// What kept a job from beginning.
pub(super) fn measure(
    plan: &Plan,
    load: Load,
    placed: &[Placed],
    shared: &Shared,
    file: Option<SampleFile>,
) -> Result<Measured> {
    let team = Team::new(load.jobs);
    let work = |index: u32, placed: &Placed| {
        let job = Job::new(plan, load, placed, shared).in_team(&team, index);
        let measured = cpu::pin_current(placed.cpu).and_then(|()| dispatch::measure(&job));
        if measured.as_ref().map_or(true, |measured| measured.failure.is_some()) {
            team.give_up();
        }
        measured
    };
    let all: Vec<Result<Measured>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, placed) in (0..load.jobs).zip(placed) {
            let work = &work;
            let thread = std::thread::Builder::new().name(format!("job {index}"));
            match thread.spawn_scoped(scope, move || work(index, placed)) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    team.give_up();
                    let hint = format!("{} jobs are wanted: see `ulimit -u`, or use fewer", load.jobs);
                    return vec![Err(Error::call("job", "pthread_create", source, hint))];
                }
            }
            // The first job claims the target for all, if it is to be written to.
            if index == 0 && !team.wait_for(1) {
                break;
            }
        }
        let join = |thread: std::thread::ScopedJoinHandle<Result<Measured>>| {
            thread.join().unwrap_or_else(|_| Err(Error::usage("the thread of a job failed")))
        };
        threads.into_iter().map(join).collect()
    });
    let (mut measured, mut failed) = (Vec::new(), None);
    for result in all {
        match result {
            Ok(job) => measured.push(job),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => join(plan, measured, shared, file),
    }
}

/// Makes one point of those of all jobs: figures from all samples, counters as sums.
fn join(plan: &Plan, measured: Vec<Measured>, shared: &Shared, file: Option<SampleFile>) -> Result<Measured> {
    let nothing = || Error::usage("no job has measured anything");
    let (mut samples, mut depths, mut peer, mut failure) = (Vec::new(), Depths::default(), None, None);
    let mut points = Vec::new();
    for job in measured {
        if let Some(raw) = job.raw {
            samples.push(raw.samples);
            depths.add(&raw.depths);
        }
        peer = peer.or(job.peer);
        failure = match (failure, job.failure) {
            // What the others were stopped by is no reason of their own.
            (None | Some(Error::Together), Some(error)) => Some(error),
            (failure, _) => failure,
        };
        points.push(job.point);
    }
    let rows = plan.per_job.then(|| points.iter().map(JobRow::of).collect());
    let ticks_per_ns = shared.clock.ticks_per_ns();
    let stored = file.map(|file| file.store(&samples.iter().collect::<Vec<_>>(), plan, ticks_per_ns)).transpose();
    let joined = Samples::join(samples).ok_or_else(nothing)?;
    let all = joined.figures(figures::scale(plan, ticks_per_ns));
    let mut points = points.into_iter();
    let mut point = points.next().ok_or_else(nothing)?;
    let mut seen: BTreeSet<usize> = point.config.cpus.iter().copied().collect();
    for (index, other) in (1..).zip(points) {
        add(&mut point, other, index, &mut seen);
    }
    point.outliers.sort_by(|one, other| other.latency_ns.total_cmp(&one.latency_ns));
    point.outliers.truncate(OUTLIERS);
    let noise = &shared.instrument.noise;
    point.share = Share::of(&shared.instrument.floor_ns, &all.latency);
    point.tail = all.tail(&noise.gaps, noise.window_ns);
    point.throughput = figures::throughput(&all, point.config.bs_bytes, ticks_per_ns, windowed_rate(&all.timeline));
    point.latency_ns = all.latency;
    point.submit_ns = point.submit_ns.and(all.submit);
    point.wait_ns = point.wait_ns.and(all.wait);
    point.response_ns = all.response;
    if let Some(pace) = &mut point.pace {
        pace.late_ns = all.late.unwrap_or_default();
        pace.achieved_per_s = point.throughput.ops_per_s;
    }
    point.histogram = all.histogram;
    point.timeline = all.timeline;
    point.depth = point.depth.map(|_| figures::depth_use(&depths));
    point.ended_because = failure.as_ref().map(ToString::to_string);
    point.per_job = rows;
    let mut measured = Measured { point, raw: None, peer, failure };
    measured.note_samples(stored);
    Ok(measured)
}

/// Adds another job's counters to those of the first one.
fn add(point: &mut Point, other: Point, index: u32, seen: &mut BTreeSet<usize>) {
    let new_cpu = other.config.cpus.iter().all(|&cpu| seen.insert(cpu));
    point.config.cpus.extend(other.config.cpus);
    point.cpu.usage.add(&other.cpu.usage, new_cpu);
    point.cpu.migrated |= other.cpu.migrated;
    point.memory.buffer_bytes += other.memory.buffer_bytes;
    point.memory.sample_bytes += other.memory.sample_bytes;
    for (name, count) in other.errors {
        *point.errors.entry(name).or_default() += count;
    }
    if let (Some(pace), Some(others)) = (&mut point.pace, other.pace) {
        pace.rate_per_s += others.rate_per_s;
        pace.never_issued += others.never_issued;
    }
    point.outliers.iter_mut().for_each(|outlier| outlier.job = outlier.job.or(Some(0)));
    point.outliers.extend(other.outliers.into_iter().map(|mut outlier| {
        outlier.job = Some(index);
        outlier
    }));
    point.verified = match (point.verified, other.verified) {
        (Verified::No, _) | (_, Verified::No) => Verified::No,
        (Verified::NotChecked, _) | (_, Verified::NotChecked) => Verified::NotChecked,
        (verified, _) => verified,
    };
    point.partial |= other.partial;
    point.ended_by = match (point.ended_by, other.ended_by) {
        (EndedBy::Error, _) | (_, EndedBy::Error) => EndedBy::Error,
        (EndedBy::Signal, _) | (_, EndedBy::Signal) => EndedBy::Signal,
        (ended_by, _) => ended_by,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_wait_for_each_other() {
        let team = Team::new(3);
        std::thread::scope(|scope| {
            let others = [(); 2].map(|()| scope.spawn(|| team.arrive()));
            assert!(team.wait_for(2));
            assert!(others.iter().all(|thread| !thread.is_finished()));
            assert!(team.arrive());
            assert!(others.into_iter().all(|thread| thread.join().unwrap()));
        });
    }

    #[test]
    fn nobody_waits_for_a_job_that_has_failed() {
        let team = Team::new(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| team.arrive());
            assert!(team.wait_for(1));
            team.give_up();
            assert!(!waits.join().unwrap() && team.has_failed());
        });
    }
}
