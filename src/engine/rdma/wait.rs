//! Polling and sleeping for completions, as two types, so that the loop holds no test for the mode.

use std::sync::Arc;

use crate::{
    engine::Fault,
    sys::completion::{CompletionQueue, EventQueue, WorkCompletion},
};

/// A way to await completions of one queue.
pub trait Wait {
    /// Untimed, before each command, while the queue is empty.
    fn arm(&mut self) -> Result<(), Fault>;

    /// Timed: one look; whether a completion was there. One that reports a failure is a fault.
    fn look(&mut self) -> Result<bool, Fault>;

    /// One look that never sleeps, for what else has arrived.
    fn look_again(&mut self) -> Result<bool, Fault>;
}

/// Looks into the queue from user space.
pub struct Polling {
    queue: Arc<CompletionQueue>,
    completion: WorkCompletion,
}

/// Sleeps until the kernel reports an event.
pub struct Sleeping {
    poll: Polling,
    events: EventQueue,
}

impl Polling {
    /// Polls `queue`.
    pub fn new(queue: &Arc<CompletionQueue>) -> Self {
        Self { queue: Arc::clone(queue), completion: WorkCompletion::new() }
    }
}

impl Sleeping {
    /// Sleeps on `queue`; `None` if it was made without events.
    pub fn new(queue: &Arc<CompletionQueue>) -> Option<Self> {
        Some(Self { poll: Polling::new(queue), events: queue.events()? })
    }
}

impl Wait for Polling {
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn look(&mut self) -> Result<bool, Fault> {
        match self.queue.poll_one(&mut self.completion) {
            Ok(false) => Ok(false),
            Ok(true) if self.completion.succeeded() => Ok(true),
            Ok(true) => Err(failed(&self.completion)),
            Err(errno) => Err(Fault::Poll(errno)),
        }
    }

    #[inline(always)]
    fn look_again(&mut self) -> Result<bool, Fault> {
        self.look()
    }
}

impl Wait for Sleeping {
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Fault> {
        self.events.arm().map_err(Fault::Poll)
    }

    #[inline(always)]
    fn look(&mut self) -> Result<bool, Fault> {
        if !self.events.sleep().map_err(Fault::Poll)? {
            return Ok(false); // A signal: the loop asks whether the wait was given up.
        }
        if self.poll.look()? {
            return Ok(true);
        }
        // The event was for a completion that an earlier look had taken. Arm anew, then look once more, since one may have
        // come in between, for which there will be no event.
        self.arm()?;
        self.poll.look()
    }

    #[inline(always)]
    fn look_again(&mut self) -> Result<bool, Fault> {
        self.poll.look()
    }
}

#[cold]
fn failed(completion: &WorkCompletion) -> Fault {
    Fault::Completion { status: completion.status(), vendor: completion.vendor() }
}
