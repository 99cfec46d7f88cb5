//! The other end's data path, for verbs that need a processor there: receive, answer, until told to stop.

use std::{
    result::Result as StdResult,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use super::{
    endpoint::Endpoint,
    ping_pong::{SendPingPong, WritePingPong},
    wait::{Polling, Sleeping, Wait},
    wire::EndpointInfo,
};
use crate::{
    engine::{Completion, Fault, Verb},
    error::{Error, Result},
    sys::{queue_pair::QueuePair, request::ReceiveRequest, verbs::MemoryRegion},
};

/// What the responder's thread shares with the one that controls it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Ends the responder.
    pub stop: AtomicBool,
    /// Messages handled so far.
    pub handled: AtomicU64,
    /// Whether initiator and responder share a processor, so that each must let the other run.
    pub shared_cpu: bool,
}

/// One kind of responder.
trait Step: Send {
    /// Before the first step: asks for the first event.
    fn arm(&mut self) -> StdResult<(), Fault>;

    /// Handles what has arrived; how many messages that was.
    fn step(&mut self) -> StdResult<u64, Fault>;
}

/// Receives, and posts the receive again.
struct Sink<W> {
    arrivals: W,
    receive: ReceiveRequest,
    queue_pair: Arc<QueuePair>,
    // The request points into it.
    _memory: Arc<MemoryRegion>,
}

impl<W: Wait> Sink<W> {
    fn new(endpoint: &Endpoint, arrivals: W) -> Self {
        let (queue_pair, memory) = (Arc::clone(&endpoint.queue_pair), Arc::clone(&endpoint.memory));
        Self { arrivals, receive: endpoint.receive_request(), queue_pair, _memory: memory }
    }
}

impl<W: Wait + Send> Step for Sink<W> {
    fn arm(&mut self) -> StdResult<(), Fault> {
        self.arrivals.arm()
    }

    fn step(&mut self) -> StdResult<u64, Fault> {
        let mut handled = 0;
        let mut arrived = self.arrivals.look()?;
        loop {
            while arrived {
                self.queue_pair.post_receive(&mut self.receive).map_err(Fault::Submit)?;
                handled += 1;
                arrived = self.arrivals.look_again()?;
            }
            // An event is only for what comes after arming; what came before it must be looked for once more.
            self.arrivals.arm()?;
            arrived = self.arrivals.look_again()?;
            if !arrived {
                return Ok(handled);
            }
        }
    }
}

impl Step for WritePingPong {
    fn arm(&mut self) -> StdResult<(), Fault> {
        Ok(())
    }

    fn step(&mut self) -> StdResult<u64, Fault> {
        self.answer().map(u64::from)
    }
}

impl<W: Wait + Send> Step for SendPingPong<W> {
    fn arm(&mut self) -> StdResult<(), Fault> {
        self.arm()
    }

    fn step(&mut self) -> StdResult<u64, Fault> {
        self.answer().map(u64::from)
    }
}

/// The responder of one endpoint, ready to run on a thread of its own.
pub struct Responder(Box<Serve>);

type Serve = dyn FnOnce(&Watch) -> StdResult<(), Fault> + Send;

impl Responder {
    /// Makes the responder of a connected endpoint; `None` for verbs that need none.
    ///
    /// # Errors
    /// `ibv_create_ah` with its errno, for datagrams that are answered.
    pub fn new(endpoint: &Endpoint, remote: &EndpointInfo) -> Result<Option<Self>> {
        let request = || endpoint.send_request(remote);
        let polling = || Polling::new(&endpoint.receive_queue);
        let sleeping = || {
            Sleeping::new(&endpoint.receive_queue).ok_or_else(|| Error::usage("the receive queue has no event channel"))
        };
        Ok(match (endpoint.request.verb, endpoint.request.completion) {
            (Verb::Send, Completion::Poll) => Some(Self::of(Sink::new(endpoint, polling()))),
            (Verb::Send, Completion::Event) => Some(Self::of(Sink::new(endpoint, sleeping()?))),
            (Verb::SendPingPong, Completion::Poll) => {
                Some(Self::of(SendPingPong::new(endpoint, request()?, polling())))
            }
            (Verb::SendPingPong, Completion::Event) => {
                Some(Self::of(SendPingPong::new(endpoint, request()?, sleeping()?)))
            }
            (Verb::WritePingPong, _) => Some(Self::of(WritePingPong::new(endpoint, request()?))),
            (Verb::Read | Verb::Write | Verb::CompareSwap | Verb::FetchAdd, _) => None,
        })
    }

    /// Handles messages until told to stop. A responder that sleeps for events must be woken to notice.
    ///
    /// # Errors
    /// The fault of the first message that failed.
    pub fn run(self, watch: &Watch) -> StdResult<(), Fault> {
        (self.0)(watch)
    }

    /// One compiled loop for each kind: the answer to a ping is part of what the initiator measures.
    fn of(step: impl Step + 'static) -> Self {
        Self(Box::new(move |watch| serve(step, watch)))
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Responder")
    }
}

fn serve<S: Step>(mut step: S, watch: &Watch) -> StdResult<(), Fault> {
    step.arm()?;
    let mut handled = 0;
    loop {
        let arrived = step.step()?;
        if arrived > 0 {
            handled += arrived;
            watch.handled.store(handled, Relaxed);
        } else if watch.stop.load(Relaxed) {
            return Ok(());
        } else if watch.shared_cpu {
            std::thread::yield_now();
        }
    }
}
