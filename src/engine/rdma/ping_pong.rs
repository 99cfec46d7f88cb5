//! There and back: the initiator's data path, and the same steps in the other order for the responder.

use std::sync::Arc;

use super::{
    endpoint::Endpoint,
    explain,
    wait::{Polling, Wait},
};
use crate::{
    engine::{Done, Engine, Fault},
    sys::{
        memory::ByteCell,
        queue_pair::QueuePair,
        request::{ReceiveRequest, SendRequest},
        verbs::MemoryRegion,
    },
};

/// Send requests that may be outstanding before one must have completed: acknowledgements may come after the answer.
pub const OUTSTANDING: u32 = 64;

/// Looks for room before giving up: some seconds, longer than all retries of the default timeout take.
const LOOKS_FOR_ROOM: u64 = 1 << 28;

/// The next value of the byte that a write ping-pong watches: from 1 to 251, then 1 again, never the 0 of a fresh buffer.
/// 251 is prime, so no power-of-two period of anything else stays in step with it.
#[inline(always)]
fn after(sequence: u8) -> u8 {
    if sequence >= 251 { 1 } else { sequence + 1 }
}

/// Posts sends and sees to it that the send queue never fills up.
struct Sender {
    request: SendRequest,
    completions: Polling,
    outstanding: u32,
    queue_pair: Arc<QueuePair>,
    // The request points into it.
    _memory: Arc<MemoryRegion>,
}

impl Sender {
    fn new(endpoint: &Endpoint, request: SendRequest) -> Self {
        let (queue_pair, memory) = (Arc::clone(&endpoint.queue_pair), Arc::clone(&endpoint.memory));
        let completions = Polling::new(&endpoint.send_queue);
        Self { request, completions, outstanding: 0, queue_pair, _memory: memory }
    }

    #[inline(always)]
    fn post(&mut self) -> Result<(), Fault> {
        self.queue_pair.post_send(&mut self.request).map_err(Fault::Submit)?;
        self.outstanding += 1;
        Ok(())
    }

    /// Takes the completions that are there; whether there is room for one more send.
    #[inline(always)]
    fn reap(&mut self) -> Result<bool, Fault> {
        while self.outstanding > 0 && self.completions.look()? {
            self.outstanding -= 1;
        }
        Ok(self.outstanding < OUTSTANDING)
    }

    /// Waits until there is room: for the acknowledgement of a message that was answered long ago, so that none of the
    /// looks is spent unless the other end is gone.
    #[inline(always)]
    fn make_room(&mut self) -> Result<(), Fault> {
        for _ in 0..LOOKS_FOR_ROOM {
            if self.reap()? {
                return Ok(());
            }
        }
        Err(Fault::Submit(libc::ETIMEDOUT))
    }
}

/// RDMA WRITE there and back: each side watches the last byte of its buffer, which is written last.
pub struct WritePingPong {
    sender: Sender,
    own_flag: ByteCell,
    arrived_flag: ByteCell,
    sequence: u8,
}

impl WritePingPong {
    /// The data path of one end; `request` writes this end's sending area to the other end's receiving area.
    pub fn new(endpoint: &Endpoint, request: SendRequest) -> Self {
        let last = endpoint.layout.bytes - 1;
        let region = endpoint.memory.region();
        let own_flag = region.cell(endpoint.layout.send + last);
        let arrived_flag = region.cell(endpoint.layout.receive + last);
        Self { sender: Sender::new(endpoint, request), own_flag, arrived_flag, sequence: 1 }
    }

    /// The responder's turn: answers the ping if it has arrived; whether it had.
    #[inline(always)]
    pub fn answer(&mut self) -> Result<bool, Fault> {
        if self.arrived_flag.load() != self.sequence || !self.sender.reap()? {
            return Ok(false);
        }
        self.own_flag.store(self.sequence);
        self.sequence = after(self.sequence);
        self.sender.post()?;
        Ok(true)
    }
}

impl Engine for WritePingPong {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        self.sender.make_room()?;
        self.own_flag.store(self.sequence);
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.sender.post()
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        if self.arrived_flag.load() == self.sequence {
            self.sequence = after(self.sequence);
            done.complete(0, Ok(()));
        }
        Ok(())
    }

    fn explain(&self, _slot: u32, fault: Fault) -> String {
        explain(fault)
    }
}

/// SEND there and back: each side awaits the completion of its receive.
pub struct SendPingPong<W> {
    sender: Sender,
    receive: ReceiveRequest,
    arrivals: W,
    receives_posted: bool,
}

impl<W: Wait> SendPingPong<W> {
    /// The data path of one end, whose receives have been posted by the endpoint; `arrivals` waits on its receive queue.
    pub fn new(endpoint: &Endpoint, request: SendRequest, arrivals: W) -> Self {
        let receive = endpoint.receive_request();
        Self { sender: Sender::new(endpoint, request), receive, arrivals, receives_posted: true }
    }

    /// The responder's turn: answers the ping if it has arrived; whether it had.
    #[inline(always)]
    pub fn answer(&mut self) -> Result<bool, Fault> {
        if !self.arrivals.look()? {
            return Ok(false);
        }
        self.sender.make_room()?;
        // Armed before the answer, since the next ping may follow it at once; re-posted after it, since others are posted.
        self.arrivals.arm()?;
        self.sender.post()?;
        self.sender.queue_pair.post_receive(&mut self.receive).map_err(Fault::Submit)?;
        Ok(true)
    }

    /// Asks for the first event; before the first look.
    pub fn arm(&mut self) -> Result<(), Fault> {
        self.arrivals.arm()
    }
}

impl<W: Wait> Engine for SendPingPong<W> {
    #[inline(always)]
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        if !self.receives_posted {
            self.sender.queue_pair.post_receive(&mut self.receive).map_err(Fault::Submit)?;
            self.receives_posted = true;
        }
        self.sender.make_room()?;
        self.arrivals.arm()
    }

    #[inline(always)]
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.sender.post()
    }

    #[inline(always)]
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        if self.arrivals.look()? {
            self.receives_posted = false;
            done.complete(0, Ok(()));
        }
        Ok(())
    }

    fn explain(&self, _slot: u32, fault: Fault) -> String {
        explain(fault)
    }
}
