//! `lat-probe serve`: the other end, for any number of clients one after another or side by side.
//!
//! It trusts nobody: a client is admitted by address and token, what it asks for is checked like a command line, it gets
//! one buffer of bounded size with the access that its engine needs, and every wait has a deadline.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{
    Format, Signals,
    rdma::{Done, Hello, RunPlan, Welcome, beside, boot_id, hostname, judge, settle, step_timeout},
    serve_screen::{Live, Screen},
};
use crate::{
    engine::{
        EngineKind, RdmaOptions,
        rdma::{
            adapter::Adapter,
            endpoint::{Endpoint, Role},
            responder::{Responder, Watch},
            wire::{EndpointInfo, Request, Verdict},
        },
    },
    error::{EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED, Error, Result},
    host::{CpuSet, Cpus, Sysfs},
    measure::Stop,
    peer::{
        Admission, Cidr, Event, HEARTBEAT_TIMEOUT, PeerAddress, STEP_TIMEOUT, Server, Serving, frame::printable,
        server::Answered, session::Session,
    },
    report::served::{Served, Who},
    units::format_size,
};

/// How often signals are looked at while waiting for clients.
const TICK_MS: u16 = 100;

/// Clients that may be connected without having said yet who they are, beside the admitted ones.
const AT_THE_DOOR: usize = 16;

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where to listen: the first address of it that works.
    pub bind: PeerAddress,
    /// Networks that clients may come from; empty for all.
    pub allow: Vec<Cidr>,
    /// What clients must show.
    pub token: Option<String>,
    /// Clients at a time.
    pub max_clients: usize,
    /// Largest payload of one command.
    pub max_bytes: u64,
    /// Most commands that a client may have outstanding: bounds the receives that are kept for it.
    pub max_depth: u64,
    /// Device, port and GID of this end.
    pub rdma: RdmaOptions,
    /// Processor for responders.
    pub cpu: Option<usize>,
    /// Whether to end after the first client.
    pub once: bool,
    /// What stdout shows: a table for each client, or a line of JSON.
    pub format: Format,
    /// Whether progress is drawn, where stderr is a terminal.
    pub progress: bool,
}

/// What the threads of a server share.
struct Shared {
    options: ServeOptions,
    admission: Admission,
    /// Clients that have connected, admitted or not: by address alone.
    door: Admission,
    screen: Screen,
    failures: AtomicUsize,
    served: AtomicUsize,
}

/// Serves until a signal comes, or one client was served; returns the exit code.
///
/// # Errors
/// An address that cannot be listened on; no RDMA device.
pub fn serve(options: ServeOptions) -> Result<u8> {
    let signals = Signals::install()?;
    if let Some(cpu) = options.cpu {
        Cpus::read().check_usable(cpu, "--cpu")?;
    }
    // What a client would stumble over is found out now.
    let adapter = Adapter::open(&Sysfs::default(), &options.rdma, None)?;
    let listener = listen(&options.bind)?;
    let address =
        listener.local_addr().map_err(|source| Error::call(options.bind.to_string(), "getsockname", source, ""))?;
    let screen = Screen::new(options.progress);
    begin(
        &screen,
        options.format,
        &format!("serving on {address} with {}:{}", adapter.device.name, adapter.port.number),
    );
    if options.token.is_none() && options.allow.is_empty() && !address.ip().is_loopback() {
        screen.say(&format!("anyone who reaches {address} is served; --allow and --token-file restrict it"));
    }
    drop(adapter);
    let shared = Arc::new(Shared {
        admission: Admission::new(options.max_clients, options.allow.clone(), options.token.clone()),
        door: Admission::new(options.max_clients.saturating_add(AT_THE_DOOR), options.allow.clone(), None),
        screen,
        failures: AtomicUsize::new(0),
        served: AtomicUsize::new(0),
        options,
    });
    loop {
        match signals.received() {
            Some(Stop::Terminate) => return Ok(EXIT_TERMINATED),
            Some(Stop::HangUp) => return Ok(EXIT_HUNG_UP),
            Some(_) => return Ok(EXIT_INTERRUPTED),
            None => {}
        }
        if shared.options.once && shared.served.load(Relaxed) > 0 {
            return Ok(u8::from(shared.failures.load(Relaxed) > 0));
        }
        if let Some((stream, from)) = next_client(&listener)? {
            welcome_at_door(&shared, stream, from);
        }
    }
}

/// Binds the first address that works.
fn listen(bind: &PeerAddress) -> Result<TcpListener> {
    let fail = |source| {
        let hint = "Is another server running there? Choose another address with --bind";
        Error::call(format!("--bind {bind}"), "bind", source, hint)
    };
    let addresses = bind.resolve()?;
    let listener = TcpListener::bind(&addresses[..]).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}

fn next_client(listener: &TcpListener) -> Result<Option<(TcpStream, SocketAddr)>> {
    use std::os::fd::AsFd;
    let mut waiting = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    // An interrupted or failed wait is followed by another look anyway.
    let _ = poll(&mut waiting, PollTimeout::from(TICK_MS));
    match listener.accept() {
        Ok(client) => Ok(Some(client)),
        // Nobody there, or a client that left again, or no descriptors for the moment: none of these ends a server.
        Err(_) => Ok(None),
    }
}

fn welcome_at_door(shared: &Arc<Shared>, stream: TcpStream, from: SocketAddr) {
    let place = match shared.door.admit(from.ip(), None) {
        Ok(place) => place,
        Err(reason) => {
            shared.screen.say(&format!("{from}: not let in: {reason}"));
            return;
        }
    };
    let for_client = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name("client".into()).spawn(move || {
        let (_place, shared) = (place, for_client);
        // A blocking stream from here on; every read has a deadline of its own.
        let outcome = stream
            .set_nonblocking(false)
            .map_err(|source| Error::call(from.to_string(), "fcntl", source, ""))
            .and_then(|()| client(&shared, stream, from));
        if let Err(error) = outcome {
            shared.screen.say(&format!("client {from}: {error}"));
            shared.failures.fetch_add(1, Relaxed);
        }
        shared.served.fetch_add(1, Relaxed);
    });
    if let Err(error) = spawned {
        shared.screen.say(&format!("{from}: no thread for this client: {error}"));
    }
}

/// One client from its hello to the verdict.
fn client(shared: &Shared, stream: TcpStream, from: SocketAddr) -> Result<()> {
    let local_ip = stream.local_addr().ok().map(|local| local.ip());
    let server = Server::accept(stream, from.to_string(), STEP_TIMEOUT)?;
    let (asked, hello) = server.hello::<Hello>()?;
    let admitted = shared.admission.admit(from.ip(), hello.token.as_deref());
    let checked = admitted.and_then(|ticket| shared.accept(hello.request).map(|request| (ticket, request)));
    let (_ticket, request) = match checked {
        Ok(admitted) => admitted,
        Err(reason) => {
            asked.refuse(&reason);
            return Err(Error::peer(from, format!("refused: {reason}")));
        }
    };
    let who = Who::new(from, hello.hostname.as_deref());
    let same_machine = hello.boot_id.is_some() && hello.boot_id == boot_id();
    let taken: CpuSet = same_machine.then_some(hello.cpu).into_iter().collect();
    let engine = EngineKind::Rdma(request.verb);
    let name = format!("{}: {engine}, {}", who.name(), format_size(request.bs_bytes));
    begin(&shared.screen, shared.options.format, &name);
    let welcome = Welcome { version: env!("CARGO_PKG_VERSION").into(), hostname: hostname() };
    let (offered, remote) = asked.welcome(&welcome)?.endpoint::<EndpointInfo>()?;
    let opened = Adapter::open(&Sysfs::default(), &request.options, local_ip)
        .and_then(|adapter| Endpoint::create(adapter, request, Role::Responder));
    let (offered, mut endpoint) = offered.carry(opened)?;
    endpoint.fill_responder();
    let timeout = step_timeout(endpoint.request.bs_bytes);
    let answered = if endpoint.request.options.cm {
        let fallback = local_ip.unwrap_or(from.ip());
        let (offered, (listener, address)) = offered.carry(endpoint.listen(fallback))?;
        let info = EndpointInfo { cm_address: Some(address), ..endpoint.info() };
        let answered = offered.answer(&info)?;
        answered.carry(endpoint.accept(listener, &remote, Instant::now() + timeout))?.0
    } else {
        let answered = offered.answer(&endpoint.info())?;
        answered.carry(endpoint.connect(&remote))?.0
    };
    let (done, verdict) = attend(shared, answered, &endpoint, &remote, &taken, name)?;
    let served = Served::new(who, engine, endpoint.request.bs_bytes, &done, &verdict);
    shared.screen.print(&match shared.options.format {
        Format::Text => served.text(),
        Format::Json => served.json(),
    });
    match (done.partial, verdict.problem) {
        (Some(reason), _) => Err(Error::peer(from, format!("its run is partial: {}", printable(&reason)))),
        (None, Some(problem)) => Err(Error::Verification(problem)),
        (None, None) => Ok(()),
    }
}

/// Answers the client's commands until it is done, and judges the bytes.
fn attend(
    shared: &Shared,
    session: Session<Answered>,
    endpoint: &Endpoint,
    remote: &EndpointInfo,
    taken: &CpuSet,
    name: String,
) -> Result<(Done, Verdict)> {
    let (session, responder) = session.carry(Responder::new(endpoint, remote))?;
    let cpus = Cpus::read();
    let cpu = shared.options.cpu.or_else(|| cpus.choose(endpoint.near(), taken)).or(taken.iter().next()).unwrap_or(0);
    let watch = Watch { shared_cpu: taken.contains(cpu) || cpus.usable().len() < 2, ..Watch::default() };
    // The responder runs before the client may begin, so that no command waits for a thread to start.
    let ((serving, done), fault) = beside(responder, &watch, cpu, || {
        let (mut serving, _plan) = session.ready()?.run::<RunPlan>()?;
        let done = follow(&mut serving, shared.screen.live(name))?;
        settle(endpoint, done.issued.commands, &watch);
        Ok((serving, done))
    })?;
    let verdict = judge(endpoint, done.issued, fault, &watch);
    serving.verdict(&verdict)?;
    Ok((done, verdict))
}

/// Shows how far the client is, until it is done.
fn follow(serving: &mut Serving, mut live: Live) -> Result<Done> {
    loop {
        match serving.next::<Done>(HEARTBEAT_TIMEOUT)? {
            Event::Progress(progress) => live.show(&progress),
            Event::Done(done) => return Ok(done),
        }
    }
}

/// What begins is told where stdout is for people; where it is for programs, they get what has finished.
fn begin(screen: &Screen, format: Format, line: &str) {
    match format {
        Format::Text => screen.print(&format!("{line}\n")),
        Format::Json => screen.say(line),
    }
}

impl Shared {
    /// The request as this end carries it out: with its own device, within its own bounds.
    fn accept(&self, request: Request) -> std::result::Result<Request, String> {
        request.check().map_err(|error| error.to_string())?;
        let most = self.options.max_bytes;
        if request.bs_bytes > most {
            let asked = request.bs_bytes;
            return Err(format!("{asked} bytes are beyond this server's limit of {most}; its --max-size raises it"));
        }
        let most = self.options.max_depth;
        if u64::from(request.depth) > most {
            let asked = request.depth;
            return Err(format!(
                "a depth of {asked} is beyond this server's limit of {most}; its --max-depth raises it"
            ));
        }
        let RdmaOptions { device, port, gid_index, .. } = self.options.rdma.clone();
        let options = RdmaOptions { device, port, gid_index, inline_bytes: None, ..request.options };
        Ok(Request { options, ..request })
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
