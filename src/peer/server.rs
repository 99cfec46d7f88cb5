//! The serving end of a session.

use std::{net::TcpStream, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::{kind::Kind, progress::Progress, session::Session};
use crate::error::Result;

/// The connection speaks lat-probe; the client's hello comes next.
#[derive(Debug)]
pub enum Accepted {}
/// The hello is here; a welcome or a refusal is due.
#[derive(Debug)]
pub enum Asked {}
/// The client is welcome; its endpoint comes next.
#[derive(Debug)]
pub enum Welcomed {}
/// The client's endpoint is here; this end's is due.
#[derive(Debug)]
pub enum Offered {}
/// Each end knows the other's endpoint; connecting the queue pairs comes next.
#[derive(Debug)]
pub enum Answered {}
/// Both ends are connected; the plan comes next.
#[derive(Debug)]
pub enum Connected {}
/// The client measures.
#[derive(Debug)]
pub enum Measured {}

/// A server's session at its beginning.
pub type Server = Session<Accepted>;
/// A server's session while the client measures.
pub type Serving = Session<Measured>;

/// What a running client says next.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<D> {
    /// It is alive, and this far.
    Progress(Progress),
    /// It has measured; this is its summary, and [`Serving::verdict`] is due.
    Done(D),
}

impl Session<Accepted> {
    /// Opens a session on an accepted stream. `peer` is the client's name in errors; `timeout` holds for each step.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer), as in every step below: the client's failure in its own words, or
    /// how the exchange broke.
    pub fn accept(stream: TcpStream, peer: impl Into<String>, timeout: Duration) -> Result<Self> {
        Self::begin(stream, peer, timeout)
    }

    /// Waits for the client's hello.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer).
    pub fn hello<H: DeserializeOwned>(mut self) -> Result<(Session<Asked>, H)> {
        let hello = self.receive(Kind::Hello)?;
        Ok((self.advance(), hello))
    }
}

impl Session<Asked> {
    /// Takes the client and tells it what it is granted.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer).
    pub fn welcome(mut self, welcome: &impl Serialize) -> Result<Session<Welcomed>> {
        self.send(Kind::Welcome, welcome)?;
        Ok(self.advance())
    }

    /// Sends the client away with a reason, which it prints as it is.
    pub fn refuse(self, reason: &str) {
        self.fail(reason);
    }
}

impl Session<Welcomed> {
    /// Waits for the client's endpoint.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer).
    pub fn endpoint<E: DeserializeOwned>(mut self) -> Result<(Session<Offered>, E)> {
        let remote = self.receive(Kind::Endpoint)?;
        Ok((self.advance(), remote))
    }
}

impl Session<Offered> {
    /// Sends this end's endpoint.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer).
    pub fn answer(mut self, local: &impl Serialize) -> Result<Session<Answered>> {
        self.send(Kind::Endpoint, local)?;
        Ok(self.advance())
    }
}

impl Session<Answered> {
    /// Says that this end's queue pairs are connected, and waits until the client says the same.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer).
    pub fn ready(mut self) -> Result<Session<Connected>> {
        self.send(Kind::Ready, &())?;
        self.receive::<()>(Kind::Ready)?;
        Ok(self.advance())
    }
}

impl Session<Connected> {
    /// Waits for the client's plan.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer).
    pub fn run<R: DeserializeOwned>(mut self) -> Result<(Serving, R)> {
        let plan = self.receive(Kind::Plan)?;
        Ok((self.advance(), plan))
    }
}

impl Session<Measured> {
    /// Waits for the client's next sign of life, for `silence` at most
    /// ([`HEARTBEAT_TIMEOUT`](super::session::HEARTBEAT_TIMEOUT)).
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer) when it failed, closed, or was silent; the session is over then.
    pub fn next<D: DeserializeOwned>(&mut self, silence: Duration) -> Result<Event<D>> {
        let (kind, value) = self.receive_any(&[Kind::Progress, Kind::Summary], silence)?;
        if kind == Kind::Summary {
            return self.understand(kind, value).map(Event::Done);
        }
        self.understand(kind, value).map(Event::Progress)
    }

    /// Ends the session with this end's word on the summary.
    ///
    /// # Errors
    /// [`Error::Peer`](crate::error::Error::Peer).
    pub fn verdict(mut self, verdict: &impl Serialize) -> Result<()> {
        self.send(Kind::Verdict, verdict)
    }
}
