//! One end of an RDMA path: a registered buffer, completion queues and a queue pair, and the ways to connect it.

use std::{io, sync::Arc};

use super::{
    adapter::{Adapter, remote_access},
    ping_pong::OUTSTANDING,
    wire::{EndpointInfo, Request},
};
use crate::{
    engine::{BufferFacts, Completion, RdmaGranted, Transport, Verb},
    error::{Error, Result},
    host::{CpuSet, Sysfs, memory::memlock_limit},
    sys::{
        cm::CmConnection,
        completion::CompletionQueue,
        memory::{Pages, Region},
        queue_pair::{Capacity, Kind, Path, QueuePair},
        request::{LocalPlace, Operation, ReceiveRequest, RemotePlace, SendRequest},
        verbs::{MemoryRegion, RemoteAccess},
    },
};

/// Receives kept posted: ahead of a sender by more than a descheduled responder falls behind in a few milliseconds.
const RECEIVES: u32 = 512;

/// Payloads up to this size are sent inline unless `--inline` says otherwise: what common devices take.
const INLINE_BY_DEFAULT: u64 = 256;

/// The global route header that stands before each received datagram.
const GRH_BYTES: usize = 40;

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Issues the measured commands.
    Initiator,
    /// Holds the memory, answers, or just receives.
    Responder,
}

/// Where payloads lie in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Payload bytes.
    pub bytes: usize,
    /// Offset of what is sent, or of what a READ or atomic returns, of the first slot.
    pub send: usize,
    /// From one slot's to the next one's.
    pub stride: usize,
    /// Offset of what arrives from the other end; the same area unless both are in use.
    pub receive: usize,
    /// Bytes before `receive` that a datagram's header takes.
    pub header: usize,
}

impl Layout {
    fn new(request: &Request) -> Self {
        let bytes = usize::try_from(request.bs_bytes).unwrap_or(usize::MAX);
        let header = if request.options.transport == Transport::Ud { GRH_BYTES } else { 0 };
        // Both areas start at a cache line of their own, and so does each slot; the header lies before the second one.
        let stride = bytes.max(8).next_multiple_of(64);
        let receive = match request.verb {
            verb if verb.is_ping_pong() || header > 0 => bytes.next_multiple_of(64) + 64,
            _ => 0,
        };
        Self { bytes, send: 0, stride, receive, header }
    }

    /// Bytes of the whole buffer, of which only the initiator has a part for each slot. A second area, which it does not use
    /// then, is in the way of none of them.
    fn total(&self, slots: u32) -> usize {
        let sends = self.stride.saturating_mul(slots as usize - 1).saturating_add(self.bytes.max(8));
        sends.max(self.receive + self.bytes.max(8))
    }
}

/// One end of an RDMA path. The fields are declared in the order of their release.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) connection: Option<CmConnection>,
    /// The queue pair.
    pub queue_pair: Arc<QueuePair>,
    /// Completions of sends, READs, WRITEs and atomics.
    pub send_queue: Arc<CompletionQueue>,
    /// Completions of receives.
    pub receive_queue: Arc<CompletionQueue>,
    /// The registered buffer.
    pub memory: Arc<MemoryRegion>,
    /// Where payloads lie in it.
    pub layout: Layout,
    /// What is asked for.
    pub request: Request,
    role: Role,
    pub(super) adapter: Adapter,
    pub(super) packet_sequence: u32,
    pub(super) facts: RdmaGranted,
}

impl Endpoint {
    /// Makes one end, not yet connected.
    ///
    /// # Errors
    /// Limits and values that do not fit each other; the verbs call that failed, with the usual cause.
    pub fn create(adapter: Adapter, request: Request, role: Role) -> Result<Self> {
        request.check()?;
        adapter.check(&request)?;
        let name = adapter.device.name.clone();
        let fail = |call: &'static str, hint: &str| {
            let (name, hint) = (name.clone(), hint.to_string());
            move |source: io::Error| Error::call(name, call, source, hint)
        };
        let layout = Layout::new(&request);
        let depth = if role == Role::Initiator { request.depth } else { 1 };
        let memory = Arc::new(register(&adapter, &request, layout.total(depth), role)?);
        let events = request.completion == Completion::Event;
        let receives = receives(&adapter, &request);
        let queue = |entries, events| {
            CompletionQueue::new(&adapter.context, entries, events).map_err(fail("ibv_create_cq", ""))
        };
        let sends = OUTSTANDING.max(depth);
        let send_queue = queue(sends, events)?;
        let receive_queue = queue(receives, events)?;
        let wanted_inline = wanted_inline(&request);
        let capacity = Capacity { sends, receives, inline_bytes: wanted_inline };
        let kind = match request.options.transport {
            Transport::Rc => Kind::Rc,
            Transport::Uc => Kind::Uc,
            Transport::Ud => Kind::Ud,
        };
        let queue_pair = QueuePair::new(&adapter.domain, kind, capacity, &send_queue, &receive_queue)
            .map_err(fail("ibv_create_qp", "Does the device support this transport?"))?;
        let granted_inline = queue_pair.inline_bytes();
        if let Some(asked) = request.options.inline_bytes
            && asked > granted_inline
            && role == Role::Initiator
        {
            let (object, what) = (format!("{name}: queue pair"), "inline size in bytes");
            let (value, limit, remedy) = (asked.into(), granted_inline.into(), String::new());
            return Err(Error::Limit { object, what, value, limit, remedy });
        }
        let facts = facts(&adapter, &request, queue_pair.number(), granted_inline, wanted_inline);
        // 24 bits, different for both ends, so that packets of an earlier queue pair of the same number do not fit.
        let salt = if role == Role::Initiator { 0x5eed } else { 0xacce55 };
        let packet_sequence = (request.seed ^ u64::from(queue_pair.number()) << 7 ^ salt) as u32 & 0xff_ffff;
        let queue_pair = Arc::new(queue_pair);
        let endpoint = Self {
            connection: None,
            queue_pair,
            send_queue,
            receive_queue,
            memory,
            layout,
            request,
            role,
            adapter,
            packet_sequence,
            facts,
        };
        if !endpoint.request.options.cm {
            let initialised = endpoint.queue_pair.initialise(endpoint.adapter.port_number(), endpoint.access());
            initialised.map_err(fail("ibv_modify_qp (INIT)", ""))?;
            endpoint.post_receives().map_err(fail("ibv_post_recv", ""))?;
        }
        Ok(endpoint)
    }

    /// This end as the other one needs to know it.
    pub fn info(&self) -> EndpointInfo {
        EndpointInfo {
            facts: self.facts.clone(),
            gid: self.adapter.gid.address,
            lid: self.adapter.facts.lid,
            packet_sequence: self.packet_sequence,
            initiator_depth: self.adapter.limits.initiator_depth,
            responder_depth: self.adapter.limits.responder_depth,
            address: self.memory.region().address() + self.layout.receive as u64,
            key: self.memory.remote_key(),
            cm_address: None,
        }
    }

    /// What was granted to this end so far; complete once it is connected.
    pub fn facts(&self) -> &RdmaGranted {
        &self.facts
    }

    /// Processors near the device.
    pub fn near(&self) -> Option<&CpuSet> {
        self.adapter.device.local_cpus.as_ref()
    }

    /// The buffer of this end.
    pub fn buffer(&self) -> BufferFacts {
        let region = self.memory.region();
        BufferFacts { bytes: region.len() as u64, page_bytes: region.page_bytes() as u64, numa_node: region.node() }
    }

    /// The request that this end sends again and again.
    ///
    /// # Errors
    /// `ibv_create_ah` with its errno, for datagrams.
    pub fn send_request(&self, remote: &EndpointInfo) -> Result<SendRequest> {
        let place = RemotePlace { address: remote.address, key: remote.key };
        let operation = match self.request.verb {
            Verb::Read => Operation::Read(place),
            Verb::Write | Verb::WritePingPong => Operation::Write(place),
            Verb::CompareSwap => Operation::CompareSwap(place),
            Verb::FetchAdd => Operation::FetchAdd { place, add: 1 },
            Verb::Send | Verb::SendPingPong if self.request.options.transport == Transport::Ud => {
                let handle = self.queue_pair.datagram_path(&self.path(remote)).map_err(|source| {
                    Error::call(&self.facts.device, "ibv_create_ah", source, "Does the GID fit the path to the peer?")
                })?;
                Operation::SendTo { handle, queue_pair: remote.facts.queue_pair }
            }
            Verb::Send | Verb::SendPingPong => Operation::Send,
        };
        let bytes = u32::try_from(self.layout.bytes).unwrap_or(u32::MAX);
        Ok(SendRequest::new(operation, LocalPlace::new(&self.memory, self.layout.send, bytes), self.facts.inline))
    }

    /// The receive that this end posts again and again: always into the same area, since one message is under way.
    pub fn receive_request(&self) -> ReceiveRequest {
        let bytes = u32::try_from(self.layout.bytes + self.layout.header).unwrap_or(u32::MAX);
        ReceiveRequest::new(LocalPlace::new(&self.memory, self.layout.receive - self.layout.header, bytes))
    }

    pub(super) fn post_receives(&self) -> io::Result<()> {
        if !self.request.verb.needs_receives() || (self.role == Role::Initiator && !self.request.verb.is_ping_pong()) {
            return Ok(());
        }
        let mut receive = self.receive_request();
        for _ in 0..receives(&self.adapter, &self.request) {
            self.queue_pair.post_receive(&mut receive).map_err(io::Error::from_raw_os_error)?;
        }
        Ok(())
    }

    pub(super) fn access(&self) -> RemoteAccess {
        access(&self.adapter, &self.request, self.role)
    }

    pub(super) fn path(&self, remote: &EndpointInfo) -> Path {
        Path {
            gid: remote.gid,
            lid: remote.lid,
            gid_index: u8::try_from(self.adapter.gid.index).unwrap_or(u8::MAX),
            port: self.adapter.port_number(),
            global: self.adapter.facts.ethernet || self.request.options.gid_index.is_some(),
            service_level: self.request.options.service_level,
            traffic_class: self.request.options.traffic_class,
        }
    }
}

fn access(adapter: &Adapter, request: &Request, role: Role) -> RemoteAccess {
    if role == Role::Responder || request.verb.is_ping_pong() {
        return remote_access(request.verb);
    }
    // iWARP carries out a READ as a write by the other end into the initiator's buffer.
    RemoteAccess { write: adapter.device.is_iwarp() && request.verb == Verb::Read, ..RemoteAccess::default() }
}

/// Receives to keep posted: twice as many as can be on their way, where the device has room for them.
fn receives(adapter: &Adapter, request: &Request) -> u32 {
    let wanted = if request.verb.needs_receives() { RECEIVES.max(request.depth.saturating_mul(2)) } else { 1 };
    wanted.min(adapter.limits.queue_entries).min(adapter.limits.completion_entries)
}

fn register(adapter: &Adapter, request: &Request, bytes: usize, role: Role) -> Result<MemoryRegion> {
    let pages = if request.options.hugepages { Pages::Huge } else { Pages::Normal };
    let region = Region::new(bytes, pages, adapter.device.numa_node).map_err(|source| {
        let hint = match pages {
            Pages::Huge => "Reserve 2 MiB pages: `sysctl vm.nr_hugepages=N`",
            Pages::Normal => "",
        };
        Error::call(format!("buffer of {bytes} bytes"), "mmap", source, hint)
    })?;
    let wanted = region.len();
    MemoryRegion::new(&adapter.domain, region, access(adapter, request, role)).map_err(|source| {
        let hint = match memlock_limit() {
            Some(limit) => format!(
                "{wanted} bytes are wanted, the memlock limit is {limit} bytes: raise it (`ulimit -l unlimited`, or \
                 memlock in /etc/security/limits.conf)"
            ),
            None => format!("{wanted} bytes are wanted"),
        };
        Error::call(&adapter.device.name, "ibv_reg_mr", source, hint)
    })
}

fn wanted_inline(request: &Request) -> u32 {
    if !request.verb.carries_payload() {
        return 0;
    }
    request.options.inline_bytes.unwrap_or(if request.bs_bytes <= INLINE_BY_DEFAULT {
        u32::try_from(request.bs_bytes).unwrap_or(0)
    } else {
        0
    })
}

fn facts(
    adapter: &Adapter,
    request: &Request,
    queue_pair: u32,
    granted_inline: u32,
    wanted_inline: u32,
) -> RdmaGranted {
    let options = &request.options;
    // A device may grant more than was asked for; inline is used only where it was wanted.
    let inline = request.verb.carries_payload()
        && wanted_inline > 0
        && request.bs_bytes > 0
        && request.bs_bytes <= u64::from(granted_inline.min(wanted_inline));
    RdmaGranted {
        hostname: Sysfs::default().read_word("/proc/sys/kernel/hostname"),
        device: adapter.device.name.clone(),
        driver: adapter.device.driver.clone(),
        firmware: adapter.device.fw_ver.clone(),
        software: adapter.is_software(),
        port: adapter.port_number(),
        link_layer: if adapter.facts.ethernet { "Ethernet" } else { "InfiniBand" }.into(),
        numa_node: adapter.device.numa_node,
        gid_index: adapter.gid.index,
        gid: adapter.gid.to_string(),
        gid_type: adapter.gid.gid_type.to_string(),
        mtu_bytes: options.mtu_bytes.unwrap_or(adapter.facts.mtu_bytes),
        transport: options.transport,
        connected_by: if options.cm { "rdma_cm" } else { "exchange" }.into(),
        service_level: options.service_level,
        traffic_class: options.traffic_class,
        inline_limit_bytes: granted_inline,
        inline,
        read_depth: None,
        completion: request.completion,
        queue_pair,
    }
}
