//! Bytes on the control stream.
//!
//! Each direction opens with the eight bytes `LATPROBE` and the protocol number as a big-endian u32. Then come frames:
//! a big-endian u32 length, and as many bytes of JSON, an object with one key that names what it is:
//!
//! ```text
//! {"hello": ...}   {"welcome": ...}   {"progress": {"done": 5, "total": 10}}   {"fail": "the reason as text"}
//! ```
//!
//! `fail` may stand in the place of every other frame, and is the last one.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    os::fd::AsFd,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use serde_json::Value;

use super::{
    deadline::Deadline,
    kind::{Kind, place},
};
use crate::error::Error;

/// The version of this protocol; both ends must speak the same one.
pub const PROTOCOL: u32 = 1;
/// The first bytes in each direction.
pub const MAGIC: [u8; 8] = *b"LATPROBE";
/// The most that the JSON of one frame may take. Longer ones are an error on both sides, never cut.
pub const MAX_FRAME_BYTES: usize = 64 * 1024;

const OPENING_BYTES: usize = MAGIC.len() + size_of::<u32>();
const LENGTH_BYTES: usize = size_of::<u32>();
/// How much of a stranger's greeting an error shows.
const SHOWN_BYTES: usize = 16;
/// A failure text is for one line on a terminal; longer ones are cut.
const MAX_FAILURE_CHARS: usize = 4096;
/// How long a failing end waits for the other to have read the reason. A close with unread bytes resets the connection,
/// and a reset may overtake the reason.
const FAREWELL: Duration = Duration::from_millis(500);
/// A socket that has bytes gives them at once; this only bounds a false alarm.
const GLANCE: Duration = Duration::from_millis(10);
const FAIL: &str = "fail";

/// Why bytes did not move. Words are added where the step is known.
enum Fault {
    Closed,
    Late,
    Failed(io::Error),
}

/// A stream after its opening, which sends and receives frames.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    peer: String,
    /// The part of the next frame that has come. Never more than that: nothing is read ahead.
    pending: Vec<u8>,
    /// The reason for which no frame follows, whichever end gave it. Kept, so that a thread that comes late learns it
    /// too.
    ended: Option<String>,
}

impl Wire {
    /// Sends this end's opening and takes the other's. `peer` is the name that errors give to the other end.
    ///
    /// # Errors
    /// [`Error::Peer`] when the other end closes, stays silent, is no lat-probe, or speaks another protocol version.
    pub fn open(stream: TcpStream, peer: impl Into<String>, deadline: Deadline) -> Result<Self, Error> {
        let mut wire = Self { stream, peer: peer.into(), pending: Vec::new(), ended: None };
        // An accepted socket must not inherit what its listener was set to.
        wire.stream
            .set_nonblocking(false)
            .and_then(|()| wire.stream.set_nodelay(true))
            .map_err(|source| Error::call(format!("connection to {}", wire.peer), "setsockopt", source, ""))?;
        let opening = [MAGIC.as_slice(), &PROTOCOL.to_be_bytes()].concat();
        wire.write_all(&opening, deadline).map_err(|fault| wire.unsent(fault, "opening", deadline))?;
        while wire.pending.len() < OPENING_BYTES {
            wire.read_some(OPENING_BYTES, deadline).map_err(|fault| wire.lost(fault, &[Kind::Opening], deadline))?;
            // At the first wrong byte: a stranger may send less than a whole opening and then wait.
            if !wire.pending.iter().zip(&MAGIC).all(|(came, wanted)| came == wanted) {
                return Err(wire.stranger());
            }
        }
        wire.check_version()?;
        wire.pending.clear();
        Ok(wire)
    }

    /// The name that errors give to the other end.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// [`Error::Peer`]: the other end's own failure where it has sent one; a value that JSON cannot hold or that is too
    /// long; a connection that is closed, or takes no bytes until the deadline.
    pub fn send(&mut self, kind: Kind, value: &impl Serialize, deadline: Deadline) -> Result<(), Error> {
        self.check_open()?;
        let frame = encode(kind.name(), value).map_err(|why| Error::peer(&self.peer, why))?;
        self.write_all(&frame, deadline).map_err(|fault| match self.last_words() {
            Some(reason) => reason,
            None => self.unsent(fault, kind.name(), deadline),
        })
    }

    /// Receives one frame, which must be of one of the kinds in `due`.
    ///
    /// # Errors
    /// [`Error::Peer`]: the other end's own failure in its words; or that it closed, was late, or sent something else.
    pub fn receive(&mut self, due: &[Kind], deadline: Deadline) -> Result<(Kind, Value), Error> {
        self.check_open()?;
        loop {
            if let Some(body) = self.complete(due)? {
                return self.decode(due, &body);
            }
            let wanted = self.wanted();
            self.read_some(wanted, deadline).map_err(|fault| self.lost(fault, due, deadline))?;
        }
    }

    /// Looks, without waiting, whether the other end has failed, closed, or sent a frame while none was due.
    ///
    /// # Errors
    /// As [`Wire::receive`].
    pub fn look(&mut self) -> Result<(), Error> {
        self.check_open()?;
        let glance = Deadline::after(GLANCE);
        while self.readable() {
            match self.read_some(self.wanted(), glance) {
                Ok(()) => {}
                Err(Fault::Late) => return Ok(()),
                Err(fault) => return Err(self.lost(fault, &[], glance)),
            }
            if let Some(body) = self.complete(&[])? {
                return self.decode(&[], &body).map(|_| ());
            }
        }
        Ok(())
    }

    /// Tells the other end why this one stops, as well as that can be done, and ends the conversation. Does nothing
    /// when it has ended already: a reason that came from the other end is not sent back.
    pub fn fail(&mut self, reason: &str) {
        if self.ended.is_some() {
            return;
        }
        let reason: String = reason.chars().take(MAX_FAILURE_CHARS).collect();
        self.ended = Some(reason.clone());
        let deadline = Deadline::after(FAREWELL);
        let Ok(frame) = encode(FAIL, &reason) else { return };
        if self.write_all(&frame, deadline).is_err() || self.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        self.pending.clear();
        while self.read_some(LENGTH_BYTES + MAX_FRAME_BYTES, deadline).is_ok() {
            self.pending.clear();
        }
    }

    /// The failure that the other end sent before it closed, where it still waits here to be read.
    fn last_words(&mut self) -> Option<Error> {
        let glance = Deadline::after(GLANCE);
        while self.readable() {
            self.read_some(self.wanted(), glance).ok()?;
            if let Some(body) = self.complete(&[]).ok()? {
                let error = self.decode(&[], &body).err();
                return error.filter(|_| self.ended.is_some());
            }
        }
        None
    }

    fn check_open(&self) -> Result<(), Error> {
        self.ended.as_ref().map_or(Ok(()), |reason| Err(Error::peer(&self.peer, reason)))
    }

    fn check_version(&self) -> Result<(), Error> {
        let theirs = self.pending.last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        if theirs == PROTOCOL {
            return Ok(());
        }
        let older = if theirs < PROTOCOL { "on the peer" } else { "on this host" };
        let message =
            format!("it speaks protocol version {theirs}, this lat-probe speaks {PROTOCOL}. Update lat-probe {older}");
        Err(Error::peer(&self.peer, message))
    }

    /// The error for an end whose first bytes are not the magic.
    fn stranger(&mut self) -> Error {
        let glance = Deadline::after(GLANCE);
        while self.pending.len() < SHOWN_BYTES && self.readable() && self.read_some(SHOWN_BYTES, glance).is_ok() {}
        let shown = self.pending.escape_ascii();
        Error::peer(&self.peer, format!("it is not a lat-probe: it opens with \"{shown}\". Is the port right?"))
    }

    /// How many bytes the frame at hand takes with its length, as far as is known.
    fn wanted(&self) -> usize {
        self.pending
            .first_chunk()
            .map_or(LENGTH_BYTES, |length| LENGTH_BYTES.saturating_add(u32::from_be_bytes(*length) as usize))
    }

    /// The body of the frame at hand, once it is whole. A wrong length is seen before anything is read for it.
    fn complete(&mut self, due: &[Kind]) -> Result<Option<Vec<u8>>, Error> {
        let wanted = self.wanted();
        if self.pending.len() < LENGTH_BYTES {
            return Ok(None);
        }
        match wanted - LENGTH_BYTES {
            0 => return Err(self.broken(format!("it sent an empty frame{}", place(due)))),
            length if length > MAX_FRAME_BYTES => {
                let what = format!("it announced a frame of {length} bytes{}", place(due));
                return Err(self.broken(format!("{what}; at most {MAX_FRAME_BYTES} are allowed")));
            }
            _ if self.pending.len() < wanted => return Ok(None),
            _ => {}
        }
        let body = self.pending.split_off(LENGTH_BYTES);
        self.pending.clear();
        Ok(Some(body))
    }

    fn decode(&mut self, due: &[Kind], body: &[u8]) -> Result<(Kind, Value), Error> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|why| self.broken(format!("it sent a frame that is not JSON{}: {why}", place(due))))?;
        let only = match value {
            Value::Object(fields) if fields.len() == 1 => fields.into_iter().next(),
            _ => None,
        };
        match only {
            Some((key, Value::String(reason))) if key == FAIL => {
                let reason = printable(&reason);
                self.ended = Some(reason.clone());
                Err(Error::peer(&self.peer, reason))
            }
            Some((key, value)) => match due.iter().find(|kind| kind.name() == key) {
                Some(&kind) => Ok((kind, value)),
                None => Err(self.broken(self.out_of_turn(&key, due))),
            },
            None => Err(self.broken(format!("it sent JSON that names no step{}", place(due)))),
        }
    }

    fn out_of_turn(&self, key: &str, due: &[Kind]) -> String {
        let nothing = if due.is_empty() { ", where nothing was due" } else { "" };
        format!("it sent '{}'{}{nothing}", printable(key), place(due))
    }

    fn broken(&self, message: String) -> Error {
        Error::peer(&self.peer, message)
    }

    fn readable(&self) -> bool {
        let mut sockets = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        // An interrupted poll is no news; the next look comes soon.
        matches!(poll(&mut sockets, PollTimeout::ZERO), Ok(count) if count > 0)
    }

    /// One read, of as much as is missing from `wanted` bytes.
    fn read_some(&mut self, wanted: usize, deadline: Deadline) -> Result<(), Fault> {
        let mut chunk = [0; 4096];
        let missing = wanted.saturating_sub(self.pending.len()).min(chunk.len());
        loop {
            let remaining = deadline.remaining().ok_or(Fault::Late)?;
            self.stream.set_read_timeout(Some(remaining)).map_err(Fault::Failed)?;
            match self.stream.read(&mut chunk[..missing]) {
                Ok(0) => return Err(Fault::Closed),
                Ok(count) => {
                    self.pending.extend_from_slice(&chunk[..count]);
                    return Ok(());
                }
                Err(source) => retry_or_fault(source)?,
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let remaining = deadline.remaining().ok_or(Fault::Late)?;
            self.stream.set_write_timeout(Some(remaining)).map_err(Fault::Failed)?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(Fault::Closed),
                Ok(count) => bytes = &bytes[count..],
                Err(source) => retry_or_fault(source)?,
            }
        }
        Ok(())
    }

    /// The error for a read that brought nothing.
    fn lost(&mut self, fault: Fault, due: &[Kind], deadline: Deadline) -> Error {
        let message = match fault {
            Fault::Closed => format!("it closed the connection{}", place(due)),
            Fault::Failed(source) => format!("the connection failed{}: {source}", place(due)),
            Fault::Late => {
                let wanted = if due == [Kind::Opening] { OPENING_BYTES } else { self.wanted() };
                let came = self.pending.len();
                let what = if came == 0 { "nothing".into() } else { format!("only {came} of {wanted} bytes") };
                // The other end may yet be there: the conversation is not over before it was told so.
                return self.broken(format!("it sent {what} within {}{}", deadline.allowed(), place(due)));
            }
        };
        self.ended = Some(message.clone());
        self.broken(message)
    }

    /// The error for a write that did not get through. Part of a frame may be on its way, so that none can follow.
    fn unsent(&mut self, fault: Fault, what: &str, deadline: Deadline) -> Error {
        let message = match fault {
            Fault::Closed => format!("it closed the connection before it took this end's {what}"),
            Fault::Failed(source) => format!("the connection failed at this end's {what}: {source}"),
            Fault::Late => format!("it did not take this end's {what} within {}", deadline.allowed()),
        };
        self.ended = Some(message.clone());
        self.broken(message)
    }
}

/// Text from the other end without what would steer a terminal or fake a line in a log.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len().min(MAX_FAILURE_CHARS));
    for c in text.chars().take(MAX_FAILURE_CHARS) {
        if c.is_control() { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    safe
}

fn retry_or_fault(source: io::Error) -> Result<(), Fault> {
    match source.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Err(Fault::Closed),
        _ => Err(Fault::Failed(source)),
    }
}

fn encode(key: &str, value: &impl Serialize) -> Result<Vec<u8>, String> {
    let json = serde_json::to_vec(&BTreeMap::from([(key, value)]))
        .map_err(|why| format!("this end's {key} cannot be written as JSON: {why}"))?;
    if json.len() > MAX_FRAME_BYTES {
        return Err(format!("this end's {key} takes {} bytes, at most {MAX_FRAME_BYTES} fit into a frame", json.len()));
    }
    let mut frame = Vec::with_capacity(LENGTH_BYTES + json.len());
    frame.extend_from_slice(&(json.len() as u32).to_be_bytes());
    frame.extend_from_slice(&json);
    Ok(frame)
}
