//! Queue pairs: creation with the inline size stepped down, the way to ready-to-send, and posting.

use std::{io, mem, ptr, sync::Arc};

use rdma_sys::*;

use super::{
    address_handle::AddressHandle,
    completion::CompletionQueue,
    request::{QUEUE_KEY, ReceiveRequest, SendRequest},
    verbs::{ProtectionDomain, RemoteAccess, check, mtu_bytes, mtu_code},
};

/// Kind of queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

/// Queue sizes and inline bytes wanted.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Send requests that may be outstanding.
    pub sends: u32,
    /// Receive requests that may be outstanding.
    pub receives: u32,
    /// Payload bytes to send inline.
    pub inline_bytes: u32,
}

/// The path to the other end: the address part of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The other end's GID.
    pub gid: [u8; 16],
    /// The other end's LID; 0 on Ethernet.
    pub lid: u16,
    /// Own GID index.
    pub gid_index: u8,
    /// Own port.
    pub port: u8,
    /// Whether the path needs a global route header.
    pub global: bool,
    /// Service level, 0 to 15.
    pub service_level: u8,
    /// Traffic class, 0 to 255.
    pub traffic_class: u8,
}

/// What both ends agreed on for a connection.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The other end's queue pair number.
    pub queue_pair: u32,
    /// First packet sequence number that the other end sends.
    pub remote_sequence: u32,
    /// First packet sequence number that this end sends.
    pub local_sequence: u32,
    /// Path MTU in bytes.
    pub mtu_bytes: u32,
    /// READs and atomics outstanding as initiator.
    pub initiator_depth: u8,
    /// READs and atomics answered at once.
    pub responder_depth: u8,
    /// Code of the least time before a retry after receiver-not-ready (12 is 640 µs).
    pub min_rnr_timer_code: u8,
    /// Local ACK timeout code.
    pub timeout_code: u8,
    /// Retries after a timeout.
    pub retry_count: u8,
    /// Retries after receiver-not-ready.
    pub rnr_retry_count: u8,
}

/// What a queue pair says of itself once it is connected.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Path MTU in bytes.
    pub mtu_bytes: u32,
    /// READs and atomics outstanding as initiator.
    pub initiator_depth: u8,
    /// GID index in use.
    pub gid_index: u8,
}

/// A queue pair.
#[derive(Debug)]
pub struct QueuePair {
    raw: *mut ibv_qp,
    kind: Kind,
    post_send: PostSend,
    post_receive: PostReceive,
    inline_bytes: u32,
    domain: Arc<ProtectionDomain>,
    _send_queue: Arc<CompletionQueue>,
    _receive_queue: Arc<CompletionQueue>,
}

type PostSend = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> libc::c_int;
type PostReceive = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> libc::c_int;

// SAFETY: libibverbs is thread-safe for every object.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Makes a queue pair. An inline size that the device refuses is stepped down by bisection to the largest one that it
    /// takes; what it granted is in [`QueuePair::inline_bytes`].
    ///
    /// # Errors
    /// The errno of `ibv_create_qp` with no inline bytes at all.
    pub fn new(
        domain: &Arc<ProtectionDomain>,
        kind: Kind,
        capacity: Capacity,
        send_queue: &Arc<CompletionQueue>,
        receive_queue: &Arc<CompletionQueue>,
    ) -> io::Result<Self> {
        let create =
            |inline_bytes| Self::create(domain, kind, Capacity { inline_bytes, ..capacity }, send_queue, receive_queue);
        if let Ok(queue_pair) = create(capacity.inline_bytes) {
            return Ok(queue_pair);
        }
        let mut best = create(0)?;
        let (mut taken, mut refused) = (0, capacity.inline_bytes);
        while refused - taken > 1 {
            let middle = taken + (refused - taken) / 2;
            match create(middle) {
                Ok(queue_pair) => (best, taken) = (queue_pair, middle),
                Err(_) => refused = middle,
            }
        }
        Ok(best)
    }

    fn create(
        domain: &Arc<ProtectionDomain>,
        kind: Kind,
        capacity: Capacity,
        send_queue: &Arc<CompletionQueue>,
        receive_queue: &Arc<CompletionQueue>,
    ) -> io::Result<Self> {
        // SAFETY: all zeroes are valid for the struct; the queues and the domain are live; null is checked for.
        let (raw, granted) = unsafe {
            let mut attributes: ibv_qp_init_attr = mem::zeroed();
            attributes.send_cq = send_queue.raw;
            attributes.recv_cq = receive_queue.raw;
            attributes.cap.max_send_wr = capacity.sends;
            attributes.cap.max_recv_wr = capacity.receives;
            attributes.cap.max_send_sge = 1;
            attributes.cap.max_recv_sge = 1;
            attributes.cap.max_inline_data = capacity.inline_bytes;
            attributes.qp_type = match kind {
                Kind::Rc => ibv_qp_type::IBV_QPT_RC,
                Kind::Uc => ibv_qp_type::IBV_QPT_UC,
                Kind::Ud => ibv_qp_type::IBV_QPT_UD,
            };
            (ibv_create_qp(domain.raw, &mut attributes), attributes.cap.max_inline_data)
        };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        Self::adopt(raw, kind, granted, domain, send_queue, receive_queue)
    }

    fn adopt(
        raw: *mut ibv_qp,
        kind: Kind,
        inline_bytes: u32,
        domain: &Arc<ProtectionDomain>,
        send_queue: &Arc<CompletionQueue>,
        receive_queue: &Arc<CompletionQueue>,
    ) -> io::Result<Self> {
        // SAFETY: the queue pair was just made on this open context, whose operations stay the same while it is open.
        let operations = unsafe { &(*domain.context.raw).ops };
        let (Some(post_send), Some(post_receive)) = (operations.post_send, operations.post_recv) else {
            // SAFETY: made above and not handed out.
            unsafe { ibv_destroy_qp(raw) };
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        };
        Ok(Self {
            raw,
            kind,
            post_send,
            post_receive,
            inline_bytes,
            domain: Arc::clone(domain),
            _send_queue: Arc::clone(send_queue),
            _receive_queue: Arc::clone(receive_queue),
        })
    }

    /// The queue pair's number, which the other end needs.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair is live.
        unsafe { (*self.raw).qp_num }
    }

    /// Largest payload that the device takes inline, in bytes.
    pub fn inline_bytes(&self) -> u32 {
        self.inline_bytes
    }

    /// Reset → init: from now on receives can be posted.
    ///
    /// # Errors
    /// The errno of `ibv_modify_qp`.
    pub fn initialise(&self, port: u8, access: RemoteAccess) -> io::Result<()> {
        let mut attributes = zeroed_attributes();
        attributes.qp_state = ibv_qp_state::IBV_QPS_INIT;
        attributes.port_num = port;
        let mut mask =
            ibv_qp_attr_mask::IBV_QP_STATE | ibv_qp_attr_mask::IBV_QP_PKEY_INDEX | ibv_qp_attr_mask::IBV_QP_PORT;
        if self.kind == Kind::Ud {
            attributes.qkey = QUEUE_KEY;
            mask |= ibv_qp_attr_mask::IBV_QP_QKEY;
        } else {
            attributes.qp_access_flags = access.flags();
            mask |= ibv_qp_attr_mask::IBV_QP_ACCESS_FLAGS;
        }
        self.modify(&mut attributes, mask.0 as libc::c_int)
    }

    /// Init → ready to receive → ready to send, with what both ends agreed on.
    ///
    /// # Errors
    /// The errno of `ibv_modify_qp`; EINVAL for an MTU that is not one of the five.
    pub fn connect(&self, path: &Path, connection: &Connection) -> io::Result<()> {
        use ibv_qp_attr_mask as mask;
        let mut attributes = zeroed_attributes();
        attributes.qp_state = ibv_qp_state::IBV_QPS_RTR;
        let mut set = mask::IBV_QP_STATE;
        if self.kind != Kind::Ud {
            attributes.path_mtu =
                mtu_code(connection.mtu_bytes).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            attributes.dest_qp_num = connection.queue_pair;
            attributes.rq_psn = connection.remote_sequence;
            attributes.ah_attr = address(path);
            set |= mask::IBV_QP_PATH_MTU | mask::IBV_QP_DEST_QPN | mask::IBV_QP_RQ_PSN | mask::IBV_QP_AV;
        }
        if self.kind == Kind::Rc {
            attributes.max_dest_rd_atomic = connection.responder_depth;
            attributes.min_rnr_timer = connection.min_rnr_timer_code;
            set |= mask::IBV_QP_MAX_DEST_RD_ATOMIC | mask::IBV_QP_MIN_RNR_TIMER;
        }
        self.modify(&mut attributes, set.0 as libc::c_int)?;

        let mut attributes = zeroed_attributes();
        attributes.qp_state = ibv_qp_state::IBV_QPS_RTS;
        attributes.sq_psn = connection.local_sequence;
        let mut set = mask::IBV_QP_STATE | mask::IBV_QP_SQ_PSN;
        if self.kind == Kind::Rc {
            attributes.timeout = connection.timeout_code;
            attributes.retry_cnt = connection.retry_count;
            attributes.rnr_retry = connection.rnr_retry_count;
            attributes.max_rd_atomic = connection.initiator_depth;
            set |= mask::IBV_QP_TIMEOUT | mask::IBV_QP_RETRY_CNT | mask::IBV_QP_RNR_RETRY;
            set |= mask::IBV_QP_MAX_QP_RD_ATOMIC;
        }
        self.modify(&mut attributes, set.0 as libc::c_int)
    }

    /// The path of datagrams to the other end.
    ///
    /// # Errors
    /// The errno of `ibv_create_ah`.
    pub fn datagram_path(&self, path: &Path) -> io::Result<Arc<AddressHandle>> {
        AddressHandle::new(&self.domain, address(path))
    }

    /// Moves the queue pair to the error state: whatever is outstanding completes as flushed.
    ///
    /// # Errors
    /// The errno of `ibv_modify_qp`.
    pub fn stop(&self) -> io::Result<()> {
        let mut attributes = zeroed_attributes();
        attributes.qp_state = ibv_qp_state::IBV_QPS_ERR;
        self.modify(&mut attributes, ibv_qp_attr_mask::IBV_QP_STATE.0 as libc::c_int)
    }

    pub(super) fn modify(&self, attributes: &mut ibv_qp_attr, mask: libc::c_int) -> io::Result<()> {
        // SAFETY: the queue pair is live; exactly the fields named in the mask are read.
        check(unsafe { ibv_modify_qp(self.raw, attributes, mask) })
    }

    /// What the queue pair was really set to, whoever connected it.
    ///
    /// # Errors
    /// The errno of `ibv_query_qp`.
    pub fn state(&self) -> io::Result<State> {
        let mut attributes = zeroed_attributes();
        let wanted =
            ibv_qp_attr_mask::IBV_QP_PATH_MTU | ibv_qp_attr_mask::IBV_QP_MAX_QP_RD_ATOMIC | ibv_qp_attr_mask::IBV_QP_AV;
        // SAFETY: both structs are live locals for which zeroes are valid; the queue pair is live.
        unsafe {
            let mut initial: ibv_qp_init_attr = mem::zeroed();
            check(ibv_query_qp(self.raw, &mut attributes, wanted.0 as libc::c_int, &mut initial))?;
        }
        Ok(State {
            mtu_bytes: mtu_bytes(attributes.path_mtu),
            initiator_depth: attributes.max_rd_atomic,
            gid_index: attributes.ah_attr.grh.sgid_index,
        })
    }

    /// Hands a request to the device.
    ///
    /// # Errors
    /// The errno of the provider's post.
    #[inline(always)]
    pub fn post_send(&self, request: &mut SendRequest) -> Result<(), i32> {
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair is live, the request and its entry stay where they are while this borrow lasts, which is
        // as long as the provider reads them; the buffer behind the entry outlives the queue pair in every owner.
        match unsafe { (self.post_send)(self.raw, request.raw(), &mut bad) } {
            0 => Ok(()),
            errno => Err(errno.wrapping_abs()),
        }
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// The errno of the provider's post.
    #[inline(always)]
    pub fn post_receive(&self, request: &mut ReceiveRequest) -> Result<(), i32> {
        let mut bad = ptr::null_mut();
        // SAFETY: as in `post_send`.
        match unsafe { (self.post_receive)(self.raw, request.raw(), &mut bad) } {
            0 => Ok(()),
            errno => Err(errno.wrapping_abs()),
        }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed once; the queues and the domain go after it.
        unsafe { ibv_destroy_qp(self.raw) };
    }
}

pub(super) fn zeroed_attributes() -> ibv_qp_attr {
    // SAFETY: the struct is plain numbers, for which all zeroes are valid.
    unsafe { mem::zeroed() }
}

fn address(path: &Path) -> ibv_ah_attr {
    // SAFETY: the struct is plain numbers and a GID, for which all zeroes are valid.
    let mut attributes: ibv_ah_attr = unsafe { mem::zeroed() };
    attributes.dlid = path.lid;
    attributes.sl = path.service_level;
    attributes.port_num = path.port;
    if path.global {
        attributes.is_global = 1;
        attributes.grh.dgid = ibv_gid { raw: path.gid };
        attributes.grh.sgid_index = path.gid_index;
        attributes.grh.hop_limit = 64; // 1 would confine RoCE v2 to one subnet.
        attributes.grh.traffic_class = path.traffic_class;
    }
    attributes
}
