//! Connecting through rdma_cm, with queue pairs of our own: the connection manager supplies the attributes of each
//! transition, we apply them. Every wait for an event has a deadline.

use std::{
    ffi::CStr,
    io, mem,
    net::SocketAddr,
    ptr,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdma_sys::*;

use super::{
    queue_pair::{QueuePair, zeroed_attributes},
    verbs::{RemoteAccess, check},
};

/// Bounds that rdma_cm passes to the other end.
#[derive(Clone, Copy, Debug)]
pub struct CmParameters {
    /// READs and atomics outstanding as initiator.
    pub initiator_depth: u8,
    /// READs and atomics answered at once.
    pub responder_depth: u8,
    /// Retries after a timeout.
    pub retry_count: u8,
    /// Retries after receiver-not-ready.
    pub rnr_retry_count: u8,
    /// What the other end may do.
    pub access: RemoteAccess,
}

/// A step that failed: its call, and why.
#[derive(Debug)]
pub struct CmError {
    /// The call, or the event that was waited for.
    pub call: &'static str,
    /// errno, or the status of the event.
    pub source: io::Error,
}

type CmResult<T> = Result<T, CmError>;

/// An event channel and the identifiers made on it.
struct Channel {
    raw: *mut rdma_event_channel,
}

/// A connection identifier. It must be dropped before the channel that it was made on.
struct Identifier {
    raw: *mut rdma_cm_id,
}

/// A listening identifier.
pub struct CmListener {
    _identifier: Identifier,
    channel: Channel,
    port: u16,
}

/// A connection, kept while the queue pair is in use: dropping it disconnects.
pub struct CmConnection {
    identifier: Identifier,
    // A listener's channel is shared by the connections it accepted, and is kept here with it.
    _listener: Option<CmListener>,
    _channel: Option<Channel>,
}

// SAFETY: librdmacm is thread-safe; the pointers are identifiers that only these types use.
unsafe impl Send for CmListener {}
// SAFETY: as above.
unsafe impl Send for CmConnection {}

impl CmListener {
    /// Listens on `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// The call that failed: ENODEV where no RDMA device has this address, ENOENT or ENOSYS without rdma_ucm.
    pub fn bind(address: SocketAddr) -> CmResult<Self> {
        let channel = Channel::new()?;
        let identifier = channel.identifier()?;
        let (mut storage, _) = raw_address(address);
        // SAFETY: the identifier is live; the address is a live local that the call copies.
        unsafe {
            let address = (&raw mut storage).cast();
            checked("rdma_bind_addr", rdma_bind_addr(identifier.raw, address))?;
            checked("rdma_listen", rdma_listen(identifier.raw, 1))?;
        }
        // SAFETY: the identifier is bound; both families keep their port at the same place.
        let port = u16::from_be(unsafe { (*identifier.raw).route.addr.src_addr_union.src_sin.sin_port });
        Ok(Self { _identifier: identifier, channel, port })
    }

    /// The port that is listened on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits for one connection and connects `queue_pair` with it. `ready` runs once the queue pair has been initialised,
    /// before the other end is told: the place to post receives.
    ///
    /// # Errors
    /// The call that failed, or ETIMEDOUT at the deadline.
    pub fn accept(
        self,
        queue_pair: &QueuePair,
        parameters: CmParameters,
        deadline: Instant,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> CmResult<CmConnection> {
        let request =
            self.channel.wait(rdma_cm_event_type::RDMA_CM_EVENT_CONNECT_REQUEST, "CONNECT_REQUEST", deadline)?;
        let identifier = Identifier { raw: request };
        initialise(&identifier, queue_pair, parameters.access)?;
        ready().map_err(|source| CmError { call: "ibv_post_recv", source })?;
        to_receive(&identifier, queue_pair, parameters)?;
        to_send(&identifier, queue_pair, parameters)?;
        let mut parameters = raw_parameters(parameters, queue_pair);
        // SAFETY: the identifier is live and has a pending request; the parameters are a live local.
        checked("rdma_accept", unsafe { rdma_accept(identifier.raw, &mut parameters) })?;
        self.channel.wait(rdma_cm_event_type::RDMA_CM_EVENT_ESTABLISHED, "ESTABLISHED", deadline)?;
        Ok(CmConnection { identifier, _listener: Some(self), _channel: None })
    }
}

impl std::fmt::Debug for CmListener {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CmListener").field("port", &self.port).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CmConnection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CmConnection").finish_non_exhaustive()
    }
}

impl CmConnection {
    /// Connects `queue_pair` to the listener at `address`.
    ///
    /// # Errors
    /// The call that failed, the event that came instead of the one awaited, or ETIMEDOUT at the deadline.
    pub fn connect(
        address: SocketAddr,
        queue_pair: &QueuePair,
        parameters: CmParameters,
        deadline: Instant,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> CmResult<Self> {
        let channel = Channel::new()?;
        let identifier = channel.identifier()?;
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let timeout = libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX);
        let (mut storage, _) = raw_address(address);
        // SAFETY: the identifier is live; the address is a live local that the call copies.
        checked("rdma_resolve_addr", unsafe {
            rdma_resolve_addr(identifier.raw, ptr::null_mut(), (&raw mut storage).cast(), timeout)
        })?;
        channel.wait(rdma_cm_event_type::RDMA_CM_EVENT_ADDR_RESOLVED, "ADDR_RESOLVED", deadline)?;
        // SAFETY: the identifier is live and its address is resolved.
        checked("rdma_resolve_route", unsafe { rdma_resolve_route(identifier.raw, timeout) })?;
        channel.wait(rdma_cm_event_type::RDMA_CM_EVENT_ROUTE_RESOLVED, "ROUTE_RESOLVED", deadline)?;
        initialise(&identifier, queue_pair, parameters.access)?;
        ready().map_err(|source| CmError { call: "ibv_post_recv", source })?;
        let mut raw = raw_parameters(parameters, queue_pair);
        // SAFETY: the identifier is live and its route is resolved; the parameters are a live local.
        checked("rdma_connect", unsafe { rdma_connect(identifier.raw, &mut raw) })?;
        channel.wait(rdma_cm_event_type::RDMA_CM_EVENT_CONNECT_RESPONSE, "CONNECT_RESPONSE", deadline)?;
        to_receive(&identifier, queue_pair, parameters)?;
        to_send(&identifier, queue_pair, parameters)?;
        // SAFETY: the identifier is live and has received the response.
        checked("rdma_establish", unsafe { rdma_establish(identifier.raw) })?;
        Ok(Self { identifier, _listener: None, _channel: Some(channel) })
    }
}

impl Drop for CmConnection {
    fn drop(&mut self) {
        // SAFETY: the identifier is live; failing to say goodbye to a peer that is gone does no harm.
        unsafe { rdma_disconnect(self.identifier.raw) };
    }
}

impl Channel {
    fn new() -> CmResult<Self> {
        // SAFETY: no preconditions; null is checked for.
        let raw = unsafe { rdma_create_event_channel() };
        if raw.is_null() {
            return Err(CmError { call: "rdma_create_event_channel", source: io::Error::last_os_error() });
        }
        Ok(Self { raw })
    }

    fn identifier(&self) -> CmResult<Identifier> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is live and `raw` is a live local.
        checked("rdma_create_id", unsafe {
            rdma_create_id(self.raw, &mut raw, ptr::null_mut(), rdma_port_space::RDMA_PS_TCP)
        })?;
        Ok(Identifier { raw })
    }

    /// Waits for the next event, which must be `wanted`; returns the identifier that it concerns.
    fn wait(
        &self,
        wanted: rdma_cm_event_type::Type,
        name: &'static str,
        deadline: Instant,
    ) -> CmResult<*mut rdma_cm_id> {
        self.readable(name, deadline)?;
        let mut event = ptr::null_mut();
        // SAFETY: the channel is live and `event` is a live local; the event is read before it is acknowledged, once.
        let (kind, status, identifier) = unsafe {
            checked("rdma_get_cm_event", rdma_get_cm_event(self.raw, &mut event))?;
            let seen = ((*event).event, (*event).status, (*event).id);
            rdma_ack_cm_event(event);
            seen
        };
        if kind == wanted {
            return Ok(identifier);
        }
        // SAFETY: no preconditions; the library returns a static C string for every number, the bindings null without it.
        let came = unsafe { rdma_event_str(kind) };
        let came = match came.is_null() {
            true => "another event".into(),
            // SAFETY: not null, and a C string that lives as long as the library.
            false => unsafe { CStr::from_ptr(came) }.to_string_lossy(),
        };
        Err(CmError { call: name, source: io::Error::other(format!("{came} came instead (status {status})")) })
    }

    fn readable(&self, name: &'static str, deadline: Instant) -> CmResult<()> {
        // SAFETY: the descriptor belongs to the channel, which outlives this borrow.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw((*self.raw).fd) };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(CmError { call: name, source: io::Error::from_raw_os_error(libc::ETIMEDOUT) });
            }
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(descriptor, PollFlags::POLLIN)], timeout) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(CmError { call: "poll", source: errno.into() }),
            }
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: identifiers are declared before their channel in every owner, so they are gone.
        unsafe { rdma_destroy_event_channel(self.raw) };
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        // SAFETY: made by rdma_create_id or by a connection request, destroyed once; it has no queue pair of its own.
        unsafe { rdma_destroy_id(self.raw) };
    }
}

fn initialise(identifier: &Identifier, queue_pair: &QueuePair, access: RemoteAccess) -> CmResult<()> {
    transition(identifier, queue_pair, ibv_qp_state::IBV_QPS_INIT, |attributes| {
        attributes.qp_access_flags = access.flags()
    })
}

fn to_receive(identifier: &Identifier, queue_pair: &QueuePair, parameters: CmParameters) -> CmResult<()> {
    transition(identifier, queue_pair, ibv_qp_state::IBV_QPS_RTR, |attributes| {
        attributes.max_dest_rd_atomic = parameters.responder_depth;
    })
}

fn to_send(identifier: &Identifier, queue_pair: &QueuePair, parameters: CmParameters) -> CmResult<()> {
    transition(identifier, queue_pair, ibv_qp_state::IBV_QPS_RTS, |attributes| {
        attributes.max_rd_atomic = parameters.initiator_depth;
    })
}

fn transition(
    identifier: &Identifier,
    queue_pair: &QueuePair,
    state: ibv_qp_state::Type,
    adjust: impl FnOnce(&mut ibv_qp_attr),
) -> CmResult<()> {
    let mut attributes = zeroed_attributes();
    attributes.qp_state = state;
    let mut mask = 0;
    // SAFETY: the identifier is live; attributes and mask are live locals.
    checked("rdma_init_qp_attr", unsafe { rdma_init_qp_attr(identifier.raw, &mut attributes, &mut mask) })?;
    adjust(&mut attributes);
    queue_pair.modify(&mut attributes, mask).map_err(|source| CmError { call: "ibv_modify_qp", source })
}

fn raw_parameters(parameters: CmParameters, queue_pair: &QueuePair) -> rdma_conn_param {
    // SAFETY: the struct is plain numbers and a pointer that may be null.
    let mut raw: rdma_conn_param = unsafe { mem::zeroed() };
    raw.responder_resources = parameters.responder_depth;
    raw.initiator_depth = parameters.initiator_depth;
    raw.retry_count = parameters.retry_count;
    raw.rnr_retry_count = parameters.rnr_retry_count;
    raw.qp_num = queue_pair.number();
    raw
}

/// An address as the C interface takes it.
fn raw_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: zeroes are valid for sockaddr_storage, which is large and aligned enough for both families.
    unsafe {
        let mut storage: libc::sockaddr_storage = mem::zeroed();
        let length = match address {
            SocketAddr::V4(v4) => {
                let raw: *mut libc::sockaddr_in = (&raw mut storage).cast();
                (*raw).sin_family = libc::AF_INET as libc::sa_family_t;
                (*raw).sin_port = v4.port().to_be();
                (*raw).sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let raw: *mut libc::sockaddr_in6 = (&raw mut storage).cast();
                (*raw).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*raw).sin6_port = v6.port().to_be();
                (*raw).sin6_addr.s6_addr = v6.ip().octets();
                (*raw).sin6_scope_id = v6.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, length as libc::socklen_t)
    }
}

fn checked(call: &'static str, result: libc::c_int) -> CmResult<()> {
    check(result).map_err(|source| CmError { call, source })
}
