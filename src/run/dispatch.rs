//! The only match over engines: which one a plan means, and where on the machine it wants to run.

use super::job::{Job, Run};
use crate::{
    engine::{EngineKind, Granted, Null, Spin},
    error::{Error, Result},
    host::CpuSet,
    probe::Plan,
    report::result::{PeerFacts, Point},
    timing::{MonotonicRaw, Source, Tsc},
};

/// A point with what its set-up knows of the other end.
pub(super) struct Measured {
    pub point: Point,
    pub peer: Option<PeerFacts>,
    /// What failed, if the point is partial.
    pub failure: Option<Error>,
}

impl From<Run> for Measured {
    fn from(run: Run) -> Self {
        Self { point: run.point, peer: None, failure: run.failure }
    }
}

/// Opens the engine of the plan and measures one point with it.
///
/// # Errors
/// What kept the first command from being issued.
pub(super) fn measure(job: &Job, bs_bytes: Option<u64>) -> Result<Measured> {
    let local = Granted::default();
    match (job.plan.engine, job.source) {
        (EngineKind::Null, _) => job.run(&mut Null, None, local, None, None).map(Measured::from),
        (EngineKind::Spin, Source::Tsc) => {
            let mut engine = Spin::<Tsc>::new(job.plan.delay, job.ticks_per_ns);
            job.run(&mut engine, None, local, None, None).map(Measured::from)
        }
        (
            EngineKind::Psync
            | EngineKind::Pvsync2
            | EngineKind::Libaio
            | EngineKind::IoUring
            | EngineKind::NvmeCmd
            | EngineKind::Sg,
            _,
        ) => super::block::measure(job, bs_bytes),
        (EngineKind::Spin, Source::Monotonic) => {
            let mut engine = Spin::<MonotonicRaw>::new(job.plan.delay, job.ticks_per_ns);
            job.run(&mut engine, None, local, None, None).map(Measured::from)
        }
        #[cfg(feature = "rdma")]
        (EngineKind::Rdma(verb), _) => super::rdma::measure(job, verb, bs_bytes.unwrap_or(0)),
        #[cfg(not(feature = "rdma"))]
        (EngineKind::Rdma(_), _) => {
            let _ = bs_bytes;
            Err(Error::Unavailable {
                what: format!("{}: this build has no RDMA engines", job.plan.engine),
                remedy: "Build with the default features (needs cmake and libclang)".into(),
            })
        }
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
