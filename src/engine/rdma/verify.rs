//! What the bytes must be after the run, and making sure that they are those of the last command.
//!
//! One command more than the measured ones is issued at the end, untimed: before it, the area that it fills is overwritten
//! with bytes that are all wrong, or what it sends is replaced. So the bytes found afterwards can only be its own, and no
//! measured command runs on a buffer that was just touched.

use std::time::{Duration, Instant};

use super::{endpoint::Endpoint, pattern};
use crate::engine::Verb;

/// What a responder holds, for READ and for the way back.
const HELD: u64 = 0x4e1d;
/// What an initiator sends during the run.
const SENT: u64 = 0x5e47;
/// What it sends with the verification command.
const SENT_LAST: u64 = 0x1a57;

/// Time for bytes that are still on their way when the completion is seen: over an unreliable transport it only says that
/// the message has left.
const IN_FLIGHT: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Fills the initiator's buffer for the run.
    pub fn fill_initiator(&self) {
        for slot in (0..self.request.depth as usize).filter(|_| self.request.verb.carries_payload()) {
            self.fill(self.layout.send + slot * self.layout.stride, SENT);
        }
    }

    /// Fills the responder's buffer for the run: with what is read or sent back, or with zeroes for a counter or for what
    /// is to arrive.
    pub fn fill_responder(&self) {
        match self.request.verb {
            Verb::Read => self.fill(self.layout.receive, HELD),
            verb if verb.is_ping_pong() => self.fill(self.layout.send, HELD),
            _ => {}
        }
    }

    fn fill(&self, offset: usize, salt: u64) {
        pattern::fill(self.memory.region(), offset, self.pattern_bytes(), self.request.seed ^ salt);
    }

    /// Makes the initiator's buffer ready for the verification command.
    pub fn prepare_last(&self) {
        let region = self.memory.region();
        let held = self.request.seed ^ HELD;
        match self.request.verb {
            Verb::Read => pattern::poison(region, self.layout.send, self.layout.bytes, held),
            Verb::CompareSwap | Verb::FetchAdd => region.copy_in(self.layout.send, &u64::MAX.to_ne_bytes()),
            Verb::Write | Verb::Send => self.fill(self.layout.send, SENT_LAST),
            Verb::WritePingPong | Verb::SendPingPong => {
                self.fill(self.layout.send, SENT_LAST);
                pattern::poison(region, self.layout.receive, self.pattern_bytes(), held);
            }
        }
    }

    /// Checks what has arrived at the initiator, after `commands` in all. `None` where nothing arrives there.
    pub fn verify_initiator(&self, commands: u64) -> Option<Result<(), String>> {
        match self.request.verb {
            Verb::Read => Some(self.compare(self.layout.send, HELD)),
            Verb::WritePingPong | Verb::SendPingPong => Some(self.compare(self.layout.receive, HELD)),
            Verb::CompareSwap | Verb::FetchAdd => Some(self.counter(self.layout.send, commands.saturating_sub(1))),
            Verb::Write | Verb::Send => None,
        }
    }

    /// Checks what has arrived at the responder, after `commands` in all. `None` where nothing arrives there.
    pub fn verify_responder(&self, commands: u64) -> Option<Result<(), String>> {
        let until = Instant::now() + IN_FLIGHT;
        loop {
            let found = match self.request.verb {
                Verb::Read => return None,
                Verb::CompareSwap | Verb::FetchAdd => self.counter(self.layout.receive, commands),
                _ => self.compare(self.layout.receive, SENT_LAST),
            };
            if found.is_ok() || Instant::now() >= until {
                return Some(found);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Bytes that carry the pattern: all, but for the last one of a write ping-pong, which counts.
    fn pattern_bytes(&self) -> usize {
        if self.request.verb == Verb::WritePingPong { self.layout.bytes.saturating_sub(1) } else { self.layout.bytes }
    }

    fn compare(&self, offset: usize, salt: u64) -> Result<(), String> {
        let bytes = self.pattern_bytes();
        match pattern::first_difference(self.memory.region(), offset, bytes, self.request.seed ^ salt) {
            None => Ok(()),
            Some(place) => Err(format!("byte {place} of {bytes} is not what the other end sent")),
        }
    }

    fn counter(&self, offset: usize, expected: u64) -> Result<(), String> {
        let mut bytes = [0; 8];
        self.memory.region().copy_out(offset, &mut bytes);
        match u64::from_ne_bytes(bytes) {
            counter if counter == expected => Ok(()),
            counter => Err(format!("the counter is {counter}, {expected} was expected")),
        }
    }
}
