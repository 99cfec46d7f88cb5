//! Options as written, wide and unchecked; `None` where nothing was said.

use std::{path::PathBuf, time::Duration};

use super::plan::range;
use crate::{
    engine::{Arrivals, Completion, EngineKind, NoData, RdmaOptions, Rw, Transport},
    error::Result,
    peer::PeerAddress,
    timing::ClockChoice,
};

/// A measurement as it was asked for.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // The options of the same names are documented in the command line.
pub struct Spec {
    pub engine: EngineKind,
    pub qd: Vec<u64>,
    pub bs_bytes: Vec<u64>,
    pub jobs: Vec<u64>,
    pub rate: Vec<u64>,
    pub arrivals: Option<Arrivals>,
    pub per_job: bool,
    pub count: Option<u64>,
    pub duration: Option<Duration>,
    pub warmup: Option<u64>,
    pub warmup_time: Option<Duration>,
    pub completion: Completion,
    pub clock: ClockChoice,
    pub phases: bool,
    pub half_rtt: bool,
    pub delay: Option<Duration>,
    pub cpu: Vec<u64>,
    pub peer_cpu: Option<u64>,
    pub peer: Option<PeerAddress>,
    pub token: Option<String>,
    pub hugepages: bool,
    pub quiet: bool,
    pub rdma: RdmaSpec,
    pub block: BlockSpec,
}

impl Spec {
    /// An engine with nothing said about it: the defaults of the command line.
    pub fn of(engine: EngineKind) -> Self {
        Self {
            engine,
            qd: Vec::new(),
            bs_bytes: Vec::new(),
            jobs: Vec::new(),
            rate: Vec::new(),
            arrivals: None,
            per_job: false,
            count: None,
            duration: None,
            warmup: None,
            warmup_time: None,
            completion: Completion::Poll,
            clock: ClockChoice::Auto,
            phases: false,
            half_rtt: false,
            delay: None,
            cpu: Vec::new(),
            peer_cpu: None,
            peer: None,
            token: None,
            hugepages: false,
            quiet: false,
            rdma: RdmaSpec::default(),
            block: BlockSpec::default(),
        }
    }
}

/// The options of the block engines as written.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // As above.
pub struct BlockSpec {
    pub target: Option<PathBuf>,
    pub rw: Option<Rw>,
    pub command: Option<NoData>,
    pub offset: Option<u64>,
    pub size: Option<u64>,
    pub seed: Option<u64>,
    pub direct: bool,
    pub buffered: bool,
    pub hipri: bool,
    pub uring_iopoll: bool,
    pub uring_sqpoll: bool,
    pub sqpoll_cpu: Option<u64>,
    pub uring_async: bool,
    pub uring_unregistered: bool,
    pub nvme_ioctl: bool,
    pub verify: bool,
    pub continue_on_error: bool,
    pub allow_write: Option<PathBuf>,
}

/// The options of the rdma engines as written.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // As above.
pub struct RdmaSpec {
    pub device: Option<String>,
    pub port: Option<u64>,
    pub gid_index: Option<u64>,
    pub mtu: Option<u64>,
    pub sl: Option<u64>,
    pub traffic_class: Option<u64>,
    pub inline: Option<u64>,
    pub read_depth: Option<u64>,
    pub signal_every: Option<u64>,
    pub timeout: Option<u64>,
    pub retry: Option<u64>,
    pub rnr_retry: Option<u64>,
    pub transport: Option<Transport>,
    pub cm: bool,
}

impl RdmaSpec {
    /// The first option that was given, by its name: none of them means anything to other engines.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let given = [
            (self.device.is_some(), "--device"),
            (self.gid_index.is_some(), "--gid-index"),
            (self.mtu.is_some(), "--mtu"),
            (self.sl.is_some(), "--sl"),
            (self.traffic_class.is_some(), "--traffic-class"),
            (self.inline.is_some(), "--inline"),
            (self.read_depth.is_some(), "--read-depth"),
            (self.signal_every.is_some(), "--signal-every"),
            (self.timeout.is_some(), "--qp-timeout"),
            (self.retry.is_some(), "--retry"),
            (self.rnr_retry.is_some(), "--rnr-retry"),
            (self.transport.is_some(), "--transport"),
            (self.cm, "--cm"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }

    /// Checks the ranges and fills in what was not said.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) with the option, the value and the range.
    pub fn resolve(&self, hugepages: bool) -> Result<RdmaOptions> {
        let defaults = RdmaOptions::default();
        let small = |name, value: Option<u64>, low: u8, high: u8, default: u8| match value {
            None => Ok(default),
            Some(value) => match u8::try_from(value) {
                Ok(small) if (low..=high).contains(&small) => Ok(small),
                _ => Err(range(name, value, &format!("{low} to {high}"))),
            },
        };
        let optional =
            |name, value: Option<u64>, low, high| value.map(|value| small(name, Some(value), low, high, 0)).transpose();
        if let Some(mtu) = self.mtu
            && ![256, 512, 1024, 2048, 4096].contains(&mtu)
        {
            return Err(range("--mtu", mtu, "256, 512, 1024, 2048 or 4096"));
        }
        Ok(RdmaOptions {
            device: self.device.clone(),
            port: optional("--device DEV:PORT", self.port, 1, 255)?,
            gid_index: optional("--gid-index", self.gid_index, 0, 255)?.map(u32::from),
            mtu_bytes: self.mtu.map(|mtu| mtu as u32),
            service_level: small("--sl", self.sl, 0, 15, defaults.service_level)?,
            traffic_class: small("--traffic-class", self.traffic_class, 0, 255, defaults.traffic_class)?,
            inline_bytes: self
                .inline
                .map(|bytes| u32::try_from(bytes).map_err(|_| range("--inline", bytes, &format!("0 to {}", u32::MAX))))
                .transpose()?,
            read_depth: optional("--read-depth", self.read_depth, 1, 255)?,
            signal_every: self.signal_every.map_or(Ok(1), |every| match u32::try_from(every) {
                Ok(every) if every > 0 => Ok(every),
                _ => Err(range("--signal-every", every, "1 to the depth")),
            })?,
            timeout_code: small("--qp-timeout", self.timeout, 0, 31, defaults.timeout_code)?,
            retry_count: small("--retry", self.retry, 0, 7, defaults.retry_count)?,
            rnr_retry_count: small("--rnr-retry", self.rnr_retry, 0, 7, defaults.rnr_retry_count)?,
            transport: self.transport.unwrap_or_default(),
            cm: self.cm,
            hugepages,
        })
    }
}

impl BlockSpec {
    /// As [`RdmaSpec::first_given`].
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let given = [
            (self.target.is_some(), "--target"),
            (self.rw.is_some(), "--rw"),
            (self.command.is_some(), "--command"),
            (self.offset.is_some(), "--offset"),
            (self.size.is_some(), "--size"),
            (self.seed.is_some(), "--seed"),
            (self.direct, "--direct"),
            (self.buffered, "--buffered"),
            (self.hipri, "--hipri"),
            (self.verify, "--verify"),
            (self.continue_on_error, "--continue-on-error"),
            (self.allow_write.is_some(), "--allow-write"),
        ];
        let given = given.into_iter().find_map(|(given, name)| given.then_some(name));
        given.or(self.first_of_uring()).or(self.nvme_ioctl.then_some("--nvme-ioctl"))
    }

    /// The first option about a ring.
    pub(super) fn first_of_uring(&self) -> Option<&'static str> {
        let given = [
            (self.uring_iopoll, "--uring-iopoll"),
            (self.uring_sqpoll, "--uring-sqpoll"),
            (self.sqpoll_cpu.is_some(), "--sqpoll-cpu"),
            (self.uring_async, "--uring-async"),
            (self.uring_unregistered, "--uring-unregistered"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }
}
