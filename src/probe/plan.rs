//! A measurement with every check made.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    block,
    load::{self, Load},
    spec::Spec,
};
use crate::{
    engine::{Arrivals, BlockOptions, Completion, Convention, EngineKind, MAX_BS_BYTES, RdmaOptions, Transport, Verb},
    error::{Error, Result},
    host::MAX_CPUS,
    peer::PeerAddress,
    timing::ClockChoice,
};

/// Samples kept of a run that only a time limits: 256 MiB of stamps.
const KEPT_BY_DURATION: u64 = 1 << 24;

/// Largest integer that a result can hold: JSON readers keep 53 bits.
pub(super) const MAX_INTEGER: u64 = (1 << 53) - 1;

const DEFAULT_COUNT: u64 = 100_000;
const DEFAULT_DELAY: Duration = Duration::from_micros(10);
const DEFAULT_RDMA_BYTES: u64 = 8;

/// A measurement that makes sense. Whether this machine can carry it out is found out when the engine is opened.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engine.
    pub engine: EngineKind,
    /// What is measured, one point each.
    pub points: Vec<Load>,
    /// Commands to measure, if that was asked for or is the default.
    pub count: Option<u64>,
    /// Longest time to measure.
    pub duration: Option<Duration>,
    /// Commands discarded first; none for as many as suit the depth.
    pub warmup: Option<u64>,
    /// Time to go on with that at least.
    pub warmup_time: Option<Duration>,
    /// How commands of a timetable arrive.
    pub arrivals: Arrivals,
    /// Whether each job is shown by itself as well.
    pub per_job: bool,
    /// How completions are awaited.
    pub completion: Completion,
    /// The clock asked for.
    pub clock: ClockChoice,
    /// Whether submit and wait are stamped apart.
    pub phases: bool,
    /// Whether round trips are halved.
    pub half_rtt: bool,
    /// The wait of the spin engine.
    pub delay: Duration,
    /// Processors to measure on, in turn; empty for a choice.
    pub cpus: Vec<usize>,
    /// Processor of the responder.
    pub peer_cpu: Option<usize>,
    /// The other end; `None` is loopback.
    pub peer: Option<PeerAddress>,
    /// What the other end wants to be shown.
    pub token: Option<String>,
    /// Whether the machine is quieted while it is measured.
    pub quiet: bool,
    /// Choices of the rdma engines.
    pub rdma: RdmaOptions,
    /// Choices of the block engines; none for others.
    pub block: Option<BlockOptions>,
}

impl Plan {
    /// What makes this measurement another than any other, as JSON. The token, which is secret, is not in it.
    pub fn facts(&self) -> Value {
        json!({
            "engine": self.engine, "points": self.points, "count": self.count, "duration": self.duration,
            "warmup": self.warmup, "warmup_time": self.warmup_time, "arrivals": self.arrivals, "per_job": self.per_job,
            "completion": self.completion, "clock": self.clock, "phases": self.phases, "half_rtt": self.half_rtt,
            "delay": self.delay, "cpus": self.cpus, "peer_cpu": self.peer_cpu,
            "peer": self.peer.as_ref().map(ToString::to_string), "quiet": self.quiet, "rdma": self.rdma, "block": self.block,
        })
    }

    /// Checks a measurement as written.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the option, the value and what is allowed.
    pub fn check(spec: Spec) -> Result<Self> {
        if let Some(count) = spec.count.filter(|count| !(1..=MAX_INTEGER).contains(count)) {
            return Err(range("--count", count, &format!("1 to {MAX_INTEGER}")));
        }
        if spec.duration.is_some_and(|time| time.is_zero()) {
            return Err(range("--duration", 0, "longer than nothing"));
        }
        load::check_warmup(spec.warmup, spec.warmup_time)?;
        if spec.duration.is_some_and(|time| time.as_nanos() > u128::from(MAX_INTEGER)) {
            return Err(Error::usage("--duration is out of range (allowed: at most 2501h)"));
        }
        let count = match (spec.count, spec.duration) {
            (None, None) => Some(DEFAULT_COUNT),
            (count, _) => count,
        };
        let verb = match spec.engine {
            EngineKind::Rdma(verb) => Some(verb),
            _ => None,
        };
        check_engine_options(&spec, verb)?;
        let rdma = spec.rdma.resolve(spec.hugepages)?;
        let block = if spec.engine.is_block() { Some(block::resolve(&spec)?) } else { None };
        if let Some(verb) = verb {
            check_transport(spec.engine, verb, &rdma)?;
        }
        let sizes = if block.is_some() { block::points(&spec)? } else { points(spec.engine, verb, &spec.bs_bytes)? };
        let points = load::loads(&spec, &sizes)?;
        if let Some(load) = points.iter().find(|load| rdma.signal_every > load.qd) {
            return Err(range("--signal-every", rdma.signal_every.into(), &format!("1 to the depth, {}", load.qd)));
        }
        if rdma.signal_every > 1 && spec.completion == Completion::Event {
            return Err(Error::usage("--signal-every needs --completion poll"));
        }
        Ok(Self {
            engine: spec.engine,
            points,
            count,
            duration: spec.duration,
            warmup: spec.warmup,
            warmup_time: spec.warmup_time,
            arrivals: spec.arrivals.unwrap_or_default(),
            per_job: spec.per_job,
            completion: spec.completion,
            clock: spec.clock,
            phases: spec.phases,
            half_rtt: spec.half_rtt,
            delay: spec.delay.unwrap_or(DEFAULT_DELAY),
            cpus: spec.cpu.iter().map(|&cpu| cpu_number("--cpu", cpu)).collect::<Result<_>>()?,
            peer_cpu: spec.peer_cpu.map(|cpu| cpu_number("--peer-cpu", cpu)).transpose()?,
            peer: spec.peer,
            token: spec.token,
            quiet: spec.quiet,
            rdma,
            block,
        })
    }

    /// Samples kept one by one, of all jobs together: 1 GiB of stamps. Longer runs are digested, in constant memory.
    pub const MOST_KEPT: u64 = 1 << 26;

    /// Samples that each job of a point keeps one by one.
    pub fn kept(&self, load: &Load) -> u64 {
        let jobs = u64::from(load.jobs);
        match self.count {
            Some(count) if count.saturating_mul(jobs) <= Self::MOST_KEPT => count,
            Some(_) => 0,
            None => KEPT_BY_DURATION / jobs,
        }
    }

    /// Commands discarded first.
    pub fn warmup(&self, load: &Load) -> u64 {
        self.warmup.unwrap_or_else(|| load.default_warmup())
    }

    /// What one number of this plan spans.
    pub fn convention(&self) -> Convention {
        if self.half_rtt { Convention::HalfRoundTrip } else { self.engine.convention() }
    }
}

/// Refuses options that the engine does not know, rather than ignoring them.
fn check_engine_options(spec: &Spec, verb: Option<Verb>) -> Result<()> {
    let unknown = |option: &str| Err(Error::Usage(format!("{option} means nothing to the engine {}", spec.engine)));
    if spec.half_rtt && spec.engine.convention() != Convention::RoundTrip {
        return Err(Error::Usage(format!("--half-rtt is for ping-pong engines; {} is timed one way", spec.engine)));
    }
    if spec.delay.is_some() && spec.engine != EngineKind::Spin {
        return unknown("--delay");
    }
    if spec.delay.is_some_and(|delay| delay.is_zero() || delay > Duration::from_secs(60)) {
        return Err(Error::usage("--delay must be from 1ns to 60s"));
    }
    let Some(verb) = verb else {
        let given = [
            (spec.peer.is_some(), "--peer"),
            (spec.token.is_some(), "--token-file"),
            (spec.peer_cpu.is_some(), "--peer-cpu"),
            (spec.completion == Completion::Event && !spec.engine.is_block(), "--completion event"),
            (!spec.bs_bytes.is_empty() && !spec.engine.is_block(), "--bs"),
            (spec.hugepages && !spec.engine.is_block(), "--hugepages"),
        ];
        let first = given.into_iter().find_map(|(given, name)| given.then_some(name));
        let first = first.or(spec.rdma.first_given());
        let first = if spec.engine.is_block() { first } else { first.or(spec.block.first_given()) };
        return first.map_or(Ok(()), unknown);
    };
    if let Some(option) = spec.block.first_given() {
        return unknown(option);
    }
    if spec.token.is_some() && spec.peer.is_none() {
        return Err(Error::usage("--token-file is for --peer; a loopback asks nobody"));
    }
    if verb == Verb::WritePingPong && spec.completion == Completion::Event {
        return Err(Error::usage(
            "--completion event: rdma-write-pingpong watches memory, which raises no event. Use rdma-send-pingpong",
        ));
    }
    if spec.peer_cpu.is_some() && (spec.peer.is_some() || !verb.needs_responder()) {
        return Err(Error::Usage(format!(
            "--peer-cpu is for the responder thread of a loopback; {} has none here",
            if spec.peer.is_some() { "a run with --peer" } else { spec.engine.name() }
        )));
    }
    Ok(())
}

fn check_transport(engine: EngineKind, verb: Verb, rdma: &RdmaOptions) -> Result<()> {
    if !verb.exists_on(rdma.transport) {
        let transport = rdma.transport.name();
        return Err(Error::Usage(format!("--transport {transport}: {engine} does not exist on {transport}")));
    }
    if rdma.cm && rdma.transport != Transport::Rc {
        return Err(Error::Usage(format!("--cm connects RC queue pairs only, not {}", rdma.transport.name())));
    }
    if rdma.cm && rdma.gid_index.is_some() {
        return Err(Error::usage("--gid-index has no effect with --cm: rdma_cm chooses the GID by the route"));
    }
    if rdma.signal_every > 1 && verb.is_ping_pong() {
        return Err(Error::Usage(format!("--signal-every: {engine} waits for every answer")));
    }
    if rdma.inline_bytes.is_some() && !verb.carries_payload() {
        return Err(Error::Usage(format!("--inline: the initiator of {engine} sends no payload")));
    }
    Ok(())
}

fn points(engine: EngineKind, verb: Option<Verb>, asked: &[u64]) -> Result<Vec<Option<u64>>> {
    let Some(verb) = verb else { return Ok(vec![None]) };
    if asked.is_empty() {
        return Ok(vec![Some(DEFAULT_RDMA_BYTES)]);
    }
    let check = |&bytes: &u64| {
        if verb.is_atomic() && bytes != 8 {
            return Err(range("--bs", bytes, &format!("8 for {engine}: an atomic is 8 bytes")));
        }
        if verb == Verb::WritePingPong && bytes == 0 {
            return Err(range("--bs", bytes, &format!("at least 1 for {engine}: its last byte is what is watched")));
        }
        if bytes > MAX_BS_BYTES {
            return Err(range("--bs", bytes, &format!("at most {MAX_BS_BYTES} (1G)")));
        }
        Ok(Some(bytes))
    };
    asked.iter().map(check).collect()
}

fn cpu_number(option: &str, value: u64) -> Result<usize> {
    match usize::try_from(value) {
        Ok(cpu) if cpu < MAX_CPUS => Ok(cpu),
        _ => Err(range(option, value, &format!("0 to {}", MAX_CPUS - 1))),
    }
}

pub(super) fn range(option: &str, value: u64, allowed: &str) -> Error {
    Error::Usage(format!("{option} {value} is out of range (allowed: {allowed})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::RdmaSpec;

    fn spec(engine: &str) -> Spec {
        Spec::of(EngineKind::from_name(engine).unwrap())
    }

    fn refusal(spec: Spec) -> String {
        Plan::check(spec).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_those_of_the_manual() {
        let plan = Plan::check(spec("rdma-read")).unwrap();
        let load = Load { qd: 1, bs_bytes: Some(8), jobs: 1, rate: None };
        assert_eq!((plan.kept(&load), plan.warmup(&load)), (100_000, 1000));
        assert_eq!((plan.points, plan.count), (vec![load], Some(100_000)));
        assert_eq!(plan.rdma, RdmaOptions::default());
        assert_eq!(Plan::check(spec("null")).unwrap().points, [Load { bs_bytes: None, ..load }]);
    }

    #[test]
    fn a_time_limit_alone_lifts_the_default_count() {
        let plan = Plan::check(Spec { duration: Some(Duration::from_secs(1)), ..spec("null") }).unwrap();
        assert_eq!((plan.count, plan.kept(&plan.points[0])), (None, KEPT_BY_DURATION));
    }

    #[test]
    fn zero_and_too_much_are_refused_with_the_range() {
        assert!(refusal(Spec { count: Some(0), ..spec("null") }).contains("--count 0"));
        assert!(refusal(Spec { count: Some(u64::MAX), ..spec("null") }).contains("1 to 9007199254740991"));
        assert!(refusal(Spec { duration: Some(Duration::ZERO), ..spec("null") }).contains("--duration"));
        assert!(refusal(Spec { bs_bytes: vec![8, (1 << 30) + 1], ..spec("rdma-read") }).contains("1073741825"));
        assert!(refusal(Spec { cpu: vec![u64::MAX], ..spec("null") }).contains("--cpu"));
    }

    #[test]
    fn options_that_mean_nothing_to_the_engine_are_refused() {
        assert!(refusal(Spec { bs_bytes: vec![8], ..spec("null") }).contains("--bs means nothing"));
        assert!(refusal(Spec { delay: Some(Duration::from_micros(1)), ..spec("null") }).contains("--delay"));
        assert!(refusal(Spec { half_rtt: true, ..spec("rdma-read") }).contains("ping-pong"));
        let rdma = RdmaSpec { mtu: Some(1024), ..RdmaSpec::default() };
        assert!(refusal(Spec { rdma, ..spec("spin") }).contains("--mtu means nothing"));
    }

    #[test]
    fn a_verb_is_refused_on_a_transport_without_it() {
        let on = |engine, transport| {
            let rdma = RdmaSpec { transport: Some(transport), ..RdmaSpec::default() };
            Plan::check(Spec { rdma, ..spec(engine) }).is_ok()
        };
        assert!(on("rdma-write", Transport::Uc) && on("rdma-send", Transport::Ud));
        assert!(!on("rdma-read", Transport::Uc) && !on("rdma-write", Transport::Ud) && !on("rdma-faa", Transport::Uc));
    }

    #[test]
    fn sizes_fit_the_verb() {
        assert!(refusal(Spec { bs_bytes: vec![4], ..spec("rdma-cas") }).contains("8 bytes"));
        assert!(refusal(Spec { bs_bytes: vec![0], ..spec("rdma-write-pingpong") }).contains("at least 1"));
        assert_eq!(Plan::check(Spec { bs_bytes: vec![0], ..spec("rdma-read") }).unwrap().points[0].bs_bytes, Some(0));
    }
}
