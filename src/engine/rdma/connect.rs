//! Connecting an endpoint: with what the two ends have told each other, or through rdma_cm.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    time::Instant,
};

use super::{adapter::same_gid_type, endpoint::Endpoint, wire::EndpointInfo};
use crate::{
    engine::Transport,
    error::{Error, Result},
    sys::{
        cm::{CmConnection, CmError, CmListener, CmParameters},
        queue_pair::Connection,
    },
};

/// Code of the least wait after receiver-not-ready: 640 µs.
const MIN_RNR_TIMER_CODE: u8 = 12;

impl Endpoint {
    /// Connects with what the two ends have told each other.
    ///
    /// # Errors
    /// GIDs of different types, and `ibv_modify_qp` with its errno.
    pub fn connect(&mut self, remote: &EndpointInfo) -> Result<()> {
        let options = &self.request.options;
        if self.adapter.facts.ethernet {
            same_gid_type(self.adapter.gid.gid_type, &remote.facts.gid_type)?;
        }
        let connection = Connection {
            queue_pair: remote.facts.queue_pair,
            remote_sequence: remote.packet_sequence,
            local_sequence: self.packet_sequence,
            mtu_bytes: self.facts.mtu_bytes.min(remote.facts.mtu_bytes),
            initiator_depth: agreed_depth(
                options.read_depth,
                self.adapter.limits.initiator_depth,
                remote.responder_depth,
            ),
            responder_depth: agreed_depth(
                options.read_depth,
                self.adapter.limits.responder_depth,
                remote.initiator_depth,
            ),
            min_rnr_timer_code: MIN_RNR_TIMER_CODE,
            timeout_code: options.timeout_code,
            retry_count: options.retry_count,
            rnr_retry_count: options.rnr_retry_count,
        };
        self.queue_pair.connect(&self.path(remote), &connection).map_err(|source| {
            let hint = "Do GID, MTU and service level fit the path to the peer?";
            Error::call(&self.facts.device, "ibv_modify_qp", source, hint)
        })?;
        self.facts.mtu_bytes = connection.mtu_bytes;
        self.read_back()
    }

    /// Listens for rdma_cm at this end's address: the one of its GID, or `fallback`'s where a GID is no IP address.
    ///
    /// # Errors
    /// The rdma_cm call that failed.
    pub fn listen(&self, fallback: IpAddr) -> Result<(CmListener, SocketAddr)> {
        let gid = Ipv6Addr::from(self.adapter.gid.address);
        let address = match gid.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None if self.adapter.facts.ethernet && !gid.is_unicast_link_local() => IpAddr::V6(gid),
            None => fallback,
        };
        let listener =
            CmListener::bind(SocketAddr::new(address, 0)).map_err(|error| self.cm_error(error, "listening"))?;
        let address = SocketAddr::new(address, listener.port());
        Ok((listener, address))
    }

    /// Accepts the other end's connection through rdma_cm.
    ///
    /// # Errors
    /// The rdma_cm call that failed, or the event that did not come in time.
    pub fn accept(&mut self, listener: CmListener, remote: &EndpointInfo, deadline: Instant) -> Result<()> {
        let accepted = listener.accept(&self.queue_pair, self.cm_parameters(remote), deadline, || self.post_receives());
        self.connection = Some(accepted.map_err(|error| self.cm_error(error, "accepting"))?);
        self.read_back()
    }

    /// Connects through rdma_cm to where the other end listens.
    ///
    /// # Errors
    /// The rdma_cm call that failed, or the event that did not come in time.
    pub fn connect_cm(&mut self, remote: &EndpointInfo, deadline: Instant) -> Result<()> {
        let Some(address) = remote.cm_address else {
            return Err(Error::usage("--cm: the peer does not listen for rdma_cm"));
        };
        let parameters = self.cm_parameters(remote);
        let connected = CmConnection::connect(address, &self.queue_pair, parameters, deadline, || self.post_receives());
        self.connection = Some(connected.map_err(|error| self.cm_error(error, "connecting"))?);
        self.read_back()
    }

    fn cm_parameters(&self, remote: &EndpointInfo) -> CmParameters {
        let options = &self.request.options;
        let limits = &self.adapter.limits;
        CmParameters {
            initiator_depth: agreed_depth(options.read_depth, limits.initiator_depth, remote.responder_depth),
            responder_depth: agreed_depth(options.read_depth, limits.responder_depth, remote.initiator_depth),
            retry_count: options.retry_count,
            rnr_retry_count: options.rnr_retry_count,
            access: self.access(),
        }
    }

    /// Reports what the queue pair really is, rather than what it was told.
    fn read_back(&mut self) -> Result<()> {
        if self.request.options.transport == Transport::Ud {
            return Ok(()); // Datagrams have no path of their own; each carries its address.
        }
        let state =
            self.queue_pair.state().map_err(|source| Error::call(&self.facts.device, "ibv_query_qp", source, ""))?;
        self.facts.mtu_bytes = state.mtu_bytes;
        self.facts.read_depth = (self.request.options.transport == Transport::Rc).then_some(state.initiator_depth);
        let index = u32::from(state.gid_index);
        if self.adapter.facts.ethernet
            && let Some(gid) = self.adapter.port.gids.iter().find(|gid| gid.index == index)
        {
            (self.facts.gid_index, self.facts.gid, self.facts.gid_type) =
                (index, gid.to_string(), gid.gid_type.to_string());
        }
        Ok(())
    }

    fn cm_error(&self, error: CmError, step: &str) -> Error {
        let hint = match error.source.raw_os_error() {
            Some(libc::ENODEV | libc::EADDRNOTAVAIL) => "No RDMA device has this address; check its network device",
            Some(libc::ENOSYS | libc::ENOENT) => "rdma_cm is missing: `modprobe rdma_ucm` and librdmacm1",
            Some(libc::ETIMEDOUT) => "The other end did not answer",
            _ => "",
        };
        Error::call(format!("{}: {step} through rdma_cm", self.facts.device), error.call, error.source, hint)
    }
}

/// READs and atomics outstanding: what is asked for, or what both ends can do.
fn agreed_depth(asked: Option<u8>, own: u8, other: u8) -> u8 {
    asked.unwrap_or(own).min(own).min(other)
}
