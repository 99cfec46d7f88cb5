//! The only match over engines: which one a plan means, and where on the machine it wants to run.

use super::{
    job::{Job, Run},
    samples::Raw,
};
use crate::{
    engine::{EngineKind, Granted, Null, NullQueue, Spin},
    error::{Error, Result},
    host::CpuSet,
    probe::Plan,
    report::result::{PeerFacts, Point},
    timing::{MonotonicRaw, Source, Tsc},
};

/// A point with what its set-up knows of the other end.
pub(super) struct Measured {
    pub point: Point,
    /// What the point was computed from, where it is needed: several jobs make one point, or samples are to be stored.
    pub raw: Option<Raw>,
    pub peer: Option<PeerFacts>,
    /// What failed, if the point is partial.
    pub failure: Option<Error>,
}

impl From<Run> for Measured {
    fn from(run: Run) -> Self {
        Self { point: run.point, raw: run.raw, peer: None, failure: run.failure }
    }
}

impl Measured {
    /// Names the file that its samples were stored in. If that failed the point is there all the same.
    pub fn note_samples(&mut self, stored: Result<Option<String>>) {
        match stored {
            Ok(name) => self.point.samples_file = name,
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }
}

/// Opens the engine of the plan and measures one point with it.
///
/// # Errors
/// What kept the first command from being issued.
pub(super) fn measure(job: &Job) -> Result<Measured> {
    let local = Granted::default();
    match (job.plan.engine, job.source) {
        (EngineKind::Null, _) if job.load.qd == 1 => job.run(&mut Null, local, None, None).map(Measured::from),
        (EngineKind::Null, _) => job.run(&mut NullQueue::new(job.load.qd), local, None, None).map(Measured::from),
        (EngineKind::Spin, Source::Tsc) => {
            let mut engine = Spin::<Tsc>::new(job.plan.delay, job.ticks_per_ns);
            job.run(&mut engine, local, None, None).map(Measured::from)
        }
        (
            EngineKind::Psync
            | EngineKind::Pvsync2
            | EngineKind::Libaio
            | EngineKind::IoUring
            | EngineKind::NvmeCmd
            | EngineKind::Sg,
            _,
        ) => super::block::measure(job),
        (EngineKind::Spin, Source::Monotonic) => {
            let mut engine = Spin::<MonotonicRaw>::new(job.plan.delay, job.ticks_per_ns);
            job.run(&mut engine, local, None, None).map(Measured::from)
        }
        #[cfg(feature = "rdma")]
        (EngineKind::Rdma(verb), _) => super::rdma::measure(job, verb, job.load.bs_bytes.unwrap_or(0)),
        #[cfg(not(feature = "rdma"))]
        (EngineKind::Rdma(_), _) => Err(Error::Unavailable {
            what: format!("{}: this build has no RDMA engines", job.plan.engine),
            remedy: "Build with the default features (needs cmake and libclang)".into(),
        }),
    }
}

/// Processors near the device that the plan's engine will use.
pub(super) fn near_cpus(plan: &Plan) -> Option<CpuSet> {
    match plan.engine {
        EngineKind::Null | EngineKind::Spin => None,
        EngineKind::Psync
        | EngineKind::Pvsync2
        | EngineKind::Libaio
        | EngineKind::IoUring
        | EngineKind::NvmeCmd
        | EngineKind::Sg => super::block::near_cpus(plan),
        #[cfg(feature = "rdma")]
        EngineKind::Rdma(_) => super::rdma::near_cpus(plan),
        #[cfg(not(feature = "rdma"))]
        EngineKind::Rdma(_) => None,
    }
}
