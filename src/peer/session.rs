//! The order of a control session, as types: each step consumes the one before, so that no frame can be sent out of
//! turn.
//!
//! | step | client | server |
//! |---|---|---|
//! | open | [`Client::open`](super::Client) | [`Server::accept`](super::Server) |
//! | greet | `greet`: hello → welcome | `hello`, then `welcome` or `refuse` |
//! | exchange | `exchange`: endpoint ⇄ endpoint | `endpoint`, then `answer` |
//! | ready | `ready` ⇄ | `ready` ⇄ |
//! | run | `run`: plan →; `progress` about once a second | `run`, then `next` until the summary |
//! | done | `done`: summary →, verdict ← | `verdict` |
//!
//! The server takes hello and endpoint before it answers, so that it can refuse, and connect its side, in between. A
//! step that fails tells the other end why before it returns the error, so that both print the same reason. A failure
//! *between* two steps (no device, no memory) is passed on with [`Session::carry`] or [`Session::abort`]; a session
//! that is merely dropped shows at the other end as a closed connection.

use std::{marker::PhantomData, net::TcpStream, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    deadline::Deadline,
    frame::{Wire, printable},
    kind::Kind,
};
use crate::error::{Error, Result};

/// How long a step may take unless the caller says otherwise: creating queue pairs and registering memory takes well
/// under a second, a busy host and a slow network some more; a person who waits longer thinks that it hangs.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a running client calls [`Running::progress`](super::Running::progress): rare enough to disturb nothing.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a server waits for a sign of life. Ten missed heartbeats are a dead client, not a late one, and its slot
/// and buffer are free for the next.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client waits for the verdict: the server may have a whole buffer to verify first.
pub const VERDICT_TIMEOUT: Duration = Duration::from_secs(60);

/// A session at the given step, one of the markers in [`client`](super::client) and [`server`](super::server).
#[derive(Debug)]
pub struct Session<Step> {
    wire: Wire,
    timeout: Duration,
    step: PhantomData<Step>,
}

impl<Step> Session<Step> {
    pub(super) fn begin(stream: TcpStream, peer: impl Into<String>, timeout: Duration) -> Result<Self> {
        // No failure is told here: an end that did not open well may not know what a frame is.
        let wire = Wire::open(stream, peer, Deadline::after(timeout))?;
        Ok(Self { wire, timeout, step: PhantomData })
    }

    /// The name of the other end.
    pub fn peer(&self) -> &str {
        self.wire.peer()
    }

    /// Tells the other end that this one stops because of `error`, which came up between two steps. Takes half a second
    /// at most; the other end's own failure is not sent back to it.
    pub fn abort(self, error: &Error) {
        self.fail(&error.to_string());
    }

    /// Carries the session past work of this end: a success goes along with it, a failure aborts it.
    ///
    /// ```ignore
    /// let (greeted, queue_pair) = greeted.carry(QueuePair::create(&device))?;
    /// ```
    ///
    /// # Errors
    /// That of `local`, after the other end was told.
    pub fn carry<T>(self, local: Result<T>) -> Result<(Self, T)> {
        match local {
            Ok(value) => Ok((self, value)),
            Err(error) => {
                self.abort(&error);
                Err(error)
            }
        }
    }

    pub(super) fn fail(mut self, reason: &str) {
        self.wire.fail(reason);
    }

    pub(super) fn advance<Next>(self) -> Session<Next> {
        Session { wire: self.wire, timeout: self.timeout, step: PhantomData }
    }

    pub(super) fn send(&mut self, kind: Kind, value: &impl Serialize) -> Result<()> {
        let deadline = Deadline::after(self.timeout);
        self.wire.send(kind, value, deadline).inspect_err(|error| self.wire.fail(&error.to_string()))
    }

    pub(super) fn receive<T: DeserializeOwned>(&mut self, kind: Kind) -> Result<T> {
        let (kind, value) = self.receive_any(&[kind], self.timeout)?;
        self.understand(kind, value)
    }

    pub(super) fn receive_any(&mut self, due: &[Kind], timeout: Duration) -> Result<(Kind, Value)> {
        let deadline = Deadline::after(timeout);
        self.wire.receive(due, deadline).inspect_err(|error| self.wire.fail(&error.to_string()))
    }

    pub(super) fn understand<T: DeserializeOwned>(&mut self, kind: Kind, value: Value) -> Result<T> {
        serde_json::from_value(value).map_err(|why| {
            let (name, why) = (kind.name(), printable(&why.to_string()));
            let message = format!("its {name} in step {} cannot be understood: {why}", kind.step());
            let error = Error::peer(self.wire.peer(), message);
            self.wire.fail(&error.to_string());
            error
        })
    }

    pub(super) fn look(&mut self) -> Result<()> {
        self.wire.look().inspect_err(|error| self.wire.fail(&error.to_string()))
    }
}
