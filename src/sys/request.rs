//! Work requests, built once; the data path changes a few fields and posts them again.

use std::{mem, ptr, sync::Arc};

use rdma_sys::*;

use super::{address_handle::AddressHandle, verbs::MemoryRegion};

/// What a send request does, with the far side's address where it has one.
#[derive(Debug)]
pub enum Operation {
    /// RDMA READ.
    Read(RemotePlace),
    /// RDMA WRITE.
    Write(RemotePlace),
    /// SEND to the connected queue pair.
    Send,
    /// SEND as a datagram.
    SendTo {
        /// Path to the receiver.
        handle: Arc<AddressHandle>,
        /// The receiver's queue pair number.
        queue_pair: u32,
    },
    /// Compare and swap of 8 bytes; the values are set for each command.
    CompareSwap(RemotePlace),
    /// Fetch and add of 8 bytes; the value is set once.
    FetchAdd {
        /// Where the counter is.
        place: RemotePlace,
        /// What is added each time.
        add: u64,
    },
}

/// A place in the other end's registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemotePlace {
    /// Address there.
    pub address: u64,
    /// Its remote key.
    pub key: u32,
}

/// The key that both ends of a datagram path use; any number below 2^31 would do.
pub const QUEUE_KEY: u32 = 0x1a7_0be5;

/// The part of a registered buffer that a request reads or fills. It must stay registered while the request is in use.
#[derive(Clone, Copy, Debug)]
pub struct LocalPlace {
    address: u64,
    bytes: u32,
    key: u32,
}

impl LocalPlace {
    /// `bytes` at `offset` of a registered buffer.
    pub fn new(memory: &MemoryRegion, offset: usize, bytes: u32) -> Self {
        Self { address: memory.region().address() + offset as u64, bytes, key: memory.local_key() }
    }
}

/// A send request and its one scatter-gather entry, at an address that does not move.
pub struct SendRequest(Box<SendParts>);

struct SendParts {
    request: ibv_send_wr,
    entry: ibv_sge,
    _handle: Option<Arc<AddressHandle>>,
}

// SAFETY: the pointers inside lead into the same box, or to an address handle that the box keeps.
unsafe impl Send for SendRequest {}

impl SendRequest {
    /// Builds a signalled request for `operation` on `local`, inline if told so.
    pub fn new(operation: Operation, local: LocalPlace, inline: bool) -> Self {
        // SAFETY: all zeroes are valid for both structs: null pointers, plain numbers.
        let mut request: ibv_send_wr = unsafe { mem::zeroed() };
        request.send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
        if inline {
            request.send_flags |= ibv_send_flags::IBV_SEND_INLINE.0;
        }
        let mut kept = None;
        let rdma = |place: RemotePlace| wr_t { rdma: rdma_t { remote_addr: place.address, rkey: place.key } };
        let atomic = |place: RemotePlace, add| wr_t {
            atomic: atomic_t { remote_addr: place.address, compare_add: add, swap: 0, rkey: place.key },
        };
        match operation {
            Operation::Read(place) => (request.opcode, request.wr) = (ibv_wr_opcode::IBV_WR_RDMA_READ, rdma(place)),
            Operation::Write(place) => (request.opcode, request.wr) = (ibv_wr_opcode::IBV_WR_RDMA_WRITE, rdma(place)),
            Operation::Send => request.opcode = ibv_wr_opcode::IBV_WR_SEND,
            Operation::SendTo { handle, queue_pair } => {
                request.opcode = ibv_wr_opcode::IBV_WR_SEND;
                request.wr = wr_t { ud: ud_t { ah: handle.raw, remote_qpn: queue_pair, remote_qkey: QUEUE_KEY } };
                kept = Some(handle);
            }
            Operation::CompareSwap(place) => {
                (request.opcode, request.wr) = (ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP, atomic(place, 0));
            }
            Operation::FetchAdd { place, add } => {
                (request.opcode, request.wr) = (ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD, atomic(place, add));
            }
        }
        let entry = ibv_sge { addr: local.address, length: local.bytes, lkey: local.key };
        let mut parts = Box::new(SendParts { request, entry, _handle: kept });
        parts.request.sg_list = &mut parts.entry;
        // An entry of length 0 means 2 GiB to some devices: no bytes are said by no entry.
        parts.request.num_sge = libc::c_int::from(local.bytes > 0);
        Self(parts)
    }

    /// Makes the next post one of a slot: its completion carries the number, and its payload lies at `offset` of a registered
    /// buffer.
    #[inline(always)]
    pub fn set_slot(&mut self, slot: u32, memory: &MemoryRegion, offset: usize) {
        self.0.request.wr_id = slot.into();
        self.0.entry.addr = memory.region().address() + offset as u64;
    }

    /// Whether the next post reports its completion.
    #[inline(always)]
    pub fn set_signalled(&mut self, signalled: bool) {
        let flag = ibv_send_flags::IBV_SEND_SIGNALED.0;
        let flags = self.0.request.send_flags;
        self.0.request.send_flags = if signalled { flags | flag } else { flags & !flag };
    }

    /// Sets what a compare and swap expects and what it puts there.
    #[inline(always)]
    pub fn set_compare_swap(&mut self, expected: u64, new: u64) {
        // Only compare-and-swap requests are changed like this, so `atomic` is the field in use.
        let remote = &mut self.0.request.wr;
        remote.atomic.compare_add = expected;
        remote.atomic.swap = new;
    }

    #[inline(always)]
    pub(super) fn raw(&mut self) -> *mut ibv_send_wr {
        &mut self.0.request
    }
}

/// A receive request and its one scatter-gather entry, at an address that does not move.
pub struct ReceiveRequest(Box<ReceiveParts>);

struct ReceiveParts {
    request: ibv_recv_wr,
    entry: ibv_sge,
}

// SAFETY: the pointers inside lead into the same box.
unsafe impl Send for ReceiveRequest {}

impl ReceiveRequest {
    /// Builds a request that receives into `local`.
    pub fn new(local: LocalPlace) -> Self {
        let entry = ibv_sge { addr: local.address, length: local.bytes, lkey: local.key };
        let request = ibv_recv_wr { wr_id: 0, next: ptr::null_mut(), sg_list: ptr::null_mut(), num_sge: 0 };
        let mut parts = Box::new(ReceiveParts { request, entry });
        parts.request.sg_list = &mut parts.entry;
        parts.request.num_sge = libc::c_int::from(local.bytes > 0);
        Self(parts)
    }

    #[inline(always)]
    pub(super) fn raw(&mut self) -> *mut ibv_recv_wr {
        &mut self.0.request
    }
}
