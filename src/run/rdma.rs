//! One RDMA point: both ends in this process, or this end of a session with `lat-probe serve`.

use std::{
    net::IpAddr,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use super::{
    dispatch::Measured,
    job::{Job, Run},
};
use crate::{
    engine::{
        Completion, Convention, Granted, Verb,
        rdma::{
            adapter::{Adapter, require_support},
            endpoint::{Endpoint, Role},
            explain,
            ping_pong::{SendPingPong, WritePingPong},
            requester::{Counting, Fixed, Moderated, Requester, Vary},
            responder::{Responder, Watch},
            wait::{Polling, Sleeping, SleepingDeep},
            wire::{EndpointInfo, Issued, Request, Verdict},
        },
    },
    error::{Error, Result},
    host::{CpuSet, Sysfs, cpu, rdma as host_rdma},
    peer::{Client, Deadline, PeerAddress, Running, STEP_TIMEOUT, VERDICT_TIMEOUT},
    probe::Plan,
    report::result::{EndedBy, PeerFacts, Verified},
    stats::Summary,
    sys::interrupt::Sleeper,
};

/// What a client says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub version: String,
    pub hostname: Option<String>,
    pub token: Option<String>,
    /// Processor that the client measures on, and the boot that it runs in: if that is the server's own, both are on one
    /// machine, and the responder must keep off that processor.
    pub cpu: usize,
    pub boot_id: Option<String>,
    pub request: Request,
}

/// What a server answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub version: String,
    pub hostname: Option<String>,
}

/// What a client is about to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunPlan {
    pub engine: crate::engine::EngineKind,
    pub count: Option<u64>,
    pub duration_ns: Option<u64>,
    pub warmup: u64,
}

/// What a client has done: all that a server can say of it, since one-sided commands pass its processor by. Older clients
/// tell less.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    pub issued: Issued,
    pub summary: Summary,
    pub partial: Option<String>,
    pub qd: Option<u32>,
    #[serde(default, deserialize_with = "known")]
    pub convention: Option<Convention>,
    pub ops_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
    #[serde(default, deserialize_with = "known")]
    pub ended_by: Option<EndedBy>,
}

impl Done {
    fn of(run: &Run, issued: Issued) -> Self {
        let point = &run.point;
        Self {
            issued,
            summary: point.latency_ns.clone(),
            partial: point.partial.then(|| point.ended_because.clone().unwrap_or("interrupted".into())),
            qd: Some(point.config.qd),
            convention: Some(point.convention),
            ops_per_s: point.throughput.ops_per_s,
            bytes_per_s: point.throughput.bytes_per_s,
            ended_by: Some(point.ended_by),
        }
    }
}

/// A name that only a later client has is `None`, and no reason to refuse the rest.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> std::result::Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(serde_json::Value::deserialize(deserializer)?).ok())
}

/// Time for a step of set-up: the usual one, and a second more for each 64 MiB that must be made resident.
pub(super) fn step_timeout(bs_bytes: u64) -> Duration {
    STEP_TIMEOUT + Duration::from_secs(bs_bytes >> 26)
}

/// Processors near the device that the plan will use, as far as it can be told before opening it.
pub(super) fn near_cpus(plan: &Plan) -> Option<CpuSet> {
    let mut devices = host_rdma::devices(&Sysfs::default()).into_iter();
    let device = match &plan.rdma.device {
        Some(name) => devices.find(|device| device.name == *name),
        None => devices.find(|device| device.ports.iter().any(host_rdma::Port::is_active)),
    };
    device?.local_cpus
}

/// Measures one point.
pub(super) fn measure(job: &Job, verb: Verb, bs_bytes: u64) -> Result<Measured> {
    require_support(&Sysfs::default())?; // Before a peer is bothered.
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let (completion, options) = (job.plan.completion, job.plan.rdma.clone());
    let request = Request { verb, bs_bytes, depth: job.load.qd, completion, options, seed };
    match &job.plan.peer {
        None => loopback(job, request),
        Some(peer) => with_peer(job, peer, request),
    }
}

/// Runs the initiator of a connected endpoint: the match over commands and ways to wait, each a loop of its own.
fn initiate(
    job: &Job,
    endpoint: &Endpoint,
    remote: &EndpointInfo,
    granted: Granted,
    peer: Option<&Running>,
) -> Result<Run> {
    let request = endpoint.send_request(remote)?;
    let queue = match endpoint.request.verb {
        Verb::SendPingPong => &endpoint.receive_queue,
        _ => &endpoint.send_queue,
    };
    let polling = || Polling::new(queue);
    let no_channel = || Error::usage("the completion queue has no event channel");
    let sleeping = || Sleeping::new(queue).ok_or_else(no_channel);
    let sleeping_deep = || SleepingDeep::new(queue).ok_or_else(no_channel);
    let prepare_last = || endpoint.prepare_last();
    let last: Option<&dyn Fn()> = Some(&prepare_last);
    let deep = endpoint.request.depth > 1;
    match (endpoint.request.verb, endpoint.request.completion) {
        (Verb::Read | Verb::Write | Verb::Send | Verb::FetchAdd, Completion::Poll) => {
            polled(job, Requester::new(endpoint, request, polling(), Fixed), granted, last, peer)
        }
        (Verb::CompareSwap, Completion::Poll) => {
            polled(job, Requester::new(endpoint, request, polling(), Counting::default()), granted, last, peer)
        }
        (Verb::Read | Verb::Write | Verb::Send | Verb::FetchAdd, Completion::Event) if deep => {
            job.run(&mut Requester::new(endpoint, request, sleeping_deep()?, Fixed), granted, last, peer)
        }
        (Verb::CompareSwap, Completion::Event) if deep => {
            let counting = Counting::default();
            job.run(&mut Requester::new(endpoint, request, sleeping_deep()?, counting), granted, last, peer)
        }
        (Verb::Read | Verb::Write | Verb::Send | Verb::FetchAdd, Completion::Event) => {
            job.run(&mut Requester::new(endpoint, request, sleeping()?, Fixed), granted, last, peer)
        }
        (Verb::CompareSwap, Completion::Event) => {
            let counting = Counting::default();
            job.run(&mut Requester::new(endpoint, request, sleeping()?, counting), granted, last, peer)
        }
        (Verb::SendPingPong, Completion::Poll) => {
            job.run(&mut SendPingPong::new(endpoint, request, polling()), granted, last, peer)
        }
        (Verb::SendPingPong, Completion::Event) => {
            job.run(&mut SendPingPong::new(endpoint, request, sleeping()?), granted, last, peer)
        }
        (Verb::WritePingPong, _) => job.run(&mut WritePingPong::new(endpoint, request), granted, last, peer),
    }
}

/// Runs a requester that polls, of which every command reports its completion or only some.
fn polled<V: Vary>(
    job: &Job,
    mut requester: Requester<Polling, V>,
    granted: Granted,
    last: Option<&dyn Fn()>,
    peer: Option<&Running>,
) -> Result<Run> {
    match job.plan.rdma.signal_every {
        1 => job.run(&mut requester, granted, last, peer),
        every => job.run(&mut Moderated::new(requester, every, job.load.qd), granted, last, peer),
    }
}

/// Both ends in this process: two queue pairs on one device, a thread for the responder only where the verb needs one.
fn loopback(job: &Job, request: Request) -> Result<Measured> {
    let sysfs = Sysfs::default();
    let adapter = |role| Endpoint::create(Adapter::open(&sysfs, &request.options, None)?, request.clone(), role);
    let mut responder = adapter(Role::Responder)?;
    let mut initiator = adapter(Role::Initiator)?;
    responder.fill_responder();
    initiator.fill_initiator();
    connect_loopback(&mut initiator, &mut responder)?;
    let (local, remote) = (initiator.info(), responder.info());
    let granted = Granted {
        block: None,
        buffer: Some(initiator.buffer()),
        rdma: Some(initiator.facts().clone()),
        remote: Some(responder.facts().clone()),
    };
    let watch = Watch { shared_cpu: job.placed.peer_cpu == job.placed.cpu, ..Watch::default() };
    let other = Responder::new(&responder, &local)?;
    let (run, handled) = beside(other, &watch, job.placed.peer_cpu, || {
        let run = initiate(job, &initiator, &remote, granted, None)?;
        settle(&responder, run.issued, &watch);
        Ok(run)
    })?;
    let issued = Issued { commands: run.issued, verify: run.last_completed };
    let verdict = judge(&responder, issued, handled, &watch);
    Ok(conclude(run, &initiator, verdict, None))
}

fn connect_loopback(initiator: &mut Endpoint, responder: &mut Endpoint) -> Result<()> {
    let (local, mut remote) = (initiator.info(), responder.info());
    if !initiator.request.options.cm {
        responder.connect(&local)?;
        return initiator.connect(&remote);
    }
    let deadline = Instant::now() + STEP_TIMEOUT;
    let (listener, address) = responder.listen(IpAddr::from([127, 0, 0, 1]))?;
    remote.cm_address = Some(address);
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| responder.accept(listener, &local, deadline));
        let connected = initiator.connect_cm(&remote, deadline);
        let accepted = accepted.join().unwrap_or_else(|_| Err(Error::usage("the accepting thread failed")));
        connected.and(accepted)
    })
}

/// Runs `work` while `responder`, if there is one, runs on a thread of its own, pinned to `cpu`; ends it afterwards.
pub(super) fn beside<T>(
    responder: Option<Responder>,
    watch: &Watch,
    cpu: usize,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Option<String>)> {
    let Some(responder) = responder else { return work().map(|done| (done, None)) };
    let ended = AtomicBool::new(false);
    let (ready, started) = mpsc::channel();
    std::thread::scope(|scope| {
        let answer = || {
            let prepared = cpu::pin_current(cpu)
                .and_then(|()| Sleeper::current().map_err(|source| Error::call("SIGURG", "sigaction", source, "")));
            let pinned = prepared.is_ok();
            let _ = ready.send(prepared); // The receiver waits for it.
            let result = if pinned { responder.run(watch) } else { Ok(()) };
            ended.store(true, Relaxed);
            result
        };
        let thread = std::thread::Builder::new().name("responder".into());
        let thread = thread
            .spawn_scoped(scope, answer)
            .map_err(|source| Error::call("responder", "pthread_create", source, ""))?;
        let sleeper = started.recv().unwrap_or_else(|_| Err(Error::usage("the responder's thread failed")))?;
        let done = work();
        watch.stop.store(true, Relaxed);
        while !ended.load(Relaxed) && !thread.is_finished() {
            sleeper.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        let fault = thread.join().ok().and_then(std::result::Result::err);
        done.map(|done| (done, fault.map(explain)))
    })
}

/// Lets the responder handle what is still on its way, for a second at most: a message that an unreliable transport lost
/// never comes.
pub(super) fn settle(responder: &Endpoint, issued: u64, watch: &Watch) {
    let until = Instant::now() + Duration::from_secs(1);
    while responder.request.verb.needs_responder() && watch.handled.load(Relaxed) < issued && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the responder's end finds once the initiator is done.
pub(super) fn judge(responder: &Endpoint, issued: Issued, fault: Option<String>, watch: &Watch) -> Verdict {
    let handled = responder.request.verb.needs_responder().then(|| watch.handled.load(Relaxed));
    let checked = if issued.verify { responder.verify_responder(issued.commands) } else { None };
    let problem = checked.clone().and_then(std::result::Result::err).or(fault.filter(|_| issued.verify));
    Verdict { handled, verified: checked.map(|checked| checked.is_ok()), problem }
}

/// Adds to a run what both ends found out about the bytes.
fn conclude(mut run: Run, initiator: &Endpoint, verdict: Verdict, peer: Option<PeerFacts>) -> Measured {
    if run.last_completed {
        let here = initiator.verify_initiator(run.issued).and_then(std::result::Result::err);
        let problem = here.map(|problem| format!("{problem} (at this end)"));
        let problem = problem.or(verdict.problem.map(|problem| format!("{problem} (at the other end)")));
        if problem.is_some() || verdict.verified == Some(false) {
            run.point.verified = Verified::No;
            run.failure = run.failure.or(Some(Error::Verification(problem.unwrap_or_default())));
        }
        if let Some(lost) = verdict.handled.map(|handled| run.issued.saturating_sub(handled)).filter(|&lost| lost > 0) {
            run.point.errors.insert("lost_messages".into(), lost);
        }
    }
    Measured { point: run.point, raw: run.raw, peer, failure: run.failure }
}

/// This end of a session with a serving peer.
fn with_peer(job: &Job, peer: &PeerAddress, request: Request) -> Result<Measured> {
    let timeout = step_timeout(request.bs_bytes);
    let (stream, address) = peer.connect(Deadline::after(STEP_TIMEOUT))?;
    let local_ip = stream.local_addr().ok().map(|local| local.ip());
    let client = Client::open(stream, peer.to_string(), timeout)?;
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").into(),
        hostname: hostname(),
        token: job.plan.token.clone(),
        cpu: job.placed.cpu,
        boot_id: boot_id(),
        request: request.clone(),
    };
    let (greeted, welcome) = client.greet::<Welcome>(&hello)?;
    let opened = Adapter::open(&Sysfs::default(), &request.options, local_ip)
        .and_then(|adapter| Endpoint::create(adapter, request, Role::Initiator));
    let (greeted, mut initiator) = greeted.carry(opened)?;
    initiator.fill_initiator();
    let (paired, remote) = greeted.exchange::<EndpointInfo>(&initiator.info())?;
    let connected = if initiator.request.options.cm {
        initiator.connect_cm(&remote, Instant::now() + timeout)
    } else {
        initiator.connect(&remote)
    };
    let (paired, ()) = paired.carry(connected)?;
    let plan = job.plan;
    let running = paired.ready()?.run(&RunPlan {
        engine: plan.engine,
        count: plan.count,
        duration_ns: plan.duration.map(|time| time.as_nanos() as u64),
        warmup: plan.warmup(&job.load),
    })?;
    let mut far = remote.facts.clone();
    far.mtu_bytes = initiator.facts().mtu_bytes; // Each end had offered its own; this is what was agreed.
    let granted = Granted {
        buffer: Some(initiator.buffer()),
        block: None,
        rdma: Some(initiator.facts().clone()),
        remote: Some(far.clone()),
    };
    let mut run = match initiate(job, &initiator, &remote, granted, Some(&running)) {
        Ok(run) => run,
        Err(error) => {
            running.abort(&error);
            return Err(error);
        }
    };
    let issued = Issued { commands: run.issued, verify: run.last_completed };
    let verdict = running.done::<Verdict>(&Done::of(&run, issued), VERDICT_TIMEOUT + timeout).unwrap_or_else(|error| {
        // The measurement stands; that nobody judged the bytes is said.
        run.failure.get_or_insert(error);
        run.last_completed = false;
        if run.point.verified == Verified::Yes {
            run.point.verified = Verified::NotChecked;
        }
        Verdict { handled: None, verified: None, problem: None }
    });
    let facts = PeerFacts {
        name: peer.to_string(),
        address: address.to_string(),
        hostname: welcome.hostname,
        version: welcome.version,
        rdma: Some(far),
    };
    Ok(conclude(run, &initiator, verdict, Some(facts)))
}

/// What tells this boot of this machine from any other.
pub(super) fn boot_id() -> Option<String> {
    Sysfs::default().read_word("/proc/sys/kernel/random/boot_id")
}

pub(super) fn hostname() -> Option<String> {
    Sysfs::default().read_word("/proc/sys/kernel/hostname")
}
