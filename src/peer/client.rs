//! The measuring end of a session.

use std::{
    net::TcpStream,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};

use super::{kind::Kind, progress::Progress, session::Session};
use crate::error::{Error, Result};

/// The connection speaks lat-probe; the hello comes next.
#[derive(Debug)]
pub enum Opened {}
/// The server has welcomed this client; the endpoints come next.
#[derive(Debug)]
pub enum Greeted {}
/// Each end knows the other's endpoint; connecting the queue pairs comes next.
#[derive(Debug)]
pub enum Paired {}
/// Both ends are connected; the plan comes next.
#[derive(Debug)]
pub enum Ready {}
/// The plan is sent.
#[derive(Debug)]
pub enum Measuring {}

/// A client's session at its beginning.
pub type Client = Session<Opened>;

impl Session<Opened> {
    /// Opens a session on a connected stream. `peer` is the server's name in errors; `timeout` holds for each step.
    ///
    /// # Errors
    /// [`Error::Peer`] when the other end is silent, is no lat-probe or one of another protocol version.
    pub fn open(stream: TcpStream, peer: impl Into<String>, timeout: Duration) -> Result<Self> {
        Self::begin(stream, peer, timeout)
    }

    /// Sends the hello and waits for the welcome.
    ///
    /// # Errors
    /// [`Error::Peer`], as in every step below: the server's refusal in its own words, or how the exchange broke.
    pub fn greet<W: DeserializeOwned>(mut self, hello: &impl Serialize) -> Result<(Session<Greeted>, W)> {
        self.send(Kind::Hello, hello)?;
        let welcome = self.receive(Kind::Welcome)?;
        Ok((self.advance(), welcome))
    }
}

impl Session<Greeted> {
    /// Sends this end's endpoint and waits for the server's.
    ///
    /// # Errors
    /// [`Error::Peer`].
    pub fn exchange<E: DeserializeOwned>(mut self, local: &impl Serialize) -> Result<(Session<Paired>, E)> {
        self.send(Kind::Endpoint, local)?;
        let remote = self.receive(Kind::Endpoint)?;
        Ok((self.advance(), remote))
    }
}

impl Session<Paired> {
    /// Says that this end's queue pairs are connected, and waits until the server says the same.
    ///
    /// # Errors
    /// [`Error::Peer`].
    pub fn ready(mut self) -> Result<Session<Ready>> {
        self.send(Kind::Ready, &())?;
        self.receive::<()>(Kind::Ready)?;
        Ok(self.advance())
    }
}

impl Session<Ready> {
    /// Sends the plan. From here on the server expects a heartbeat.
    ///
    /// # Errors
    /// [`Error::Peer`].
    pub fn run(mut self, plan: &impl Serialize) -> Result<Running> {
        self.send(Kind::Plan, plan)?;
        Ok(Running { session: Mutex::new(self.advance()) })
    }
}

/// A client's session while commands are measured. It is shared by reference: a monitor thread beats and looks, and the
/// measuring thread, which never touches it before [`Running::done`], is not slowed down.
#[derive(Debug)]
pub struct Running {
    session: Mutex<Session<Measuring>>,
}

impl Running {
    /// The heartbeat: how far the run is.
    ///
    /// # Errors
    /// [`Error::Peer`] when the server has failed, with its reason, or is gone.
    pub fn progress(&self, progress: &Progress) -> Result<()> {
        self.lock().send(Kind::Progress, progress)
    }

    /// Looks, without waiting, whether the server has failed or gone. A server that stays connected and does nothing
    /// counts as alive.
    ///
    /// # Errors
    /// [`Error::Peer`] with the server's reason, or that it closed the connection. Every later call repeats it.
    pub fn peer_alive(&self) -> Result<()> {
        self.lock().look()
    }

    /// Sends the summary and waits for the server's verdict, for `timeout` at most.
    ///
    /// # Errors
    /// [`Error::Peer`].
    pub fn done<V: DeserializeOwned>(self, summary: &impl Serialize, timeout: Duration) -> Result<V> {
        let mut session = self.into_session();
        session.send(Kind::Summary, summary)?;
        let (kind, verdict) = session.receive_any(&[Kind::Verdict], timeout)?;
        session.understand(kind, verdict)
    }

    /// As [`Session::abort`]: tells the server why this end stops.
    pub fn abort(self, error: &Error) {
        self.into_session().abort(error);
    }

    /// No panic can leave a frame half written, so that a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Session<Measuring>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_session(self) -> Session<Measuring> {
        self.session.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
