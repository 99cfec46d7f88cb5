//! Polling and sleeping for completions, as two types, so that the loop holds no test for the mode.

use std::sync::Arc;

use crate::{
    engine::{Done, Fault},
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

    /// Timed: as `look`, for all that is there: tells requests by their slots, and how they completed.
    fn reap<D: Done>(&mut self, done: &mut D) -> Result<(), Fault>;
}

/// Most completions that one look takes.
const MOST: usize = 16;

/// Looks into the queue from user space.
pub struct Polling {
    queue: Arc<CompletionQueue>,
    completions: [WorkCompletion; MOST],
}

/// Sleeps until the kernel reports an event, for one command at a time: armed before it, while the queue is empty.
pub struct Sleeping {
    poll: Polling,
    events: EventQueue,
}

/// Sleeps where there are other commands in flight: looks first, and arms only when there was nothing.
pub struct SleepingDeep(Sleeping);

impl Polling {
    /// Polls `queue`.
    pub fn new(queue: &Arc<CompletionQueue>) -> Self {
        Self { queue: Arc::clone(queue), completions: std::array::from_fn(|_| WorkCompletion::new()) }
    }
}

impl Sleeping {
    /// Sleeps on `queue`; `None` if it was made without events.
    pub fn new(queue: &Arc<CompletionQueue>) -> Option<Self> {
        Some(Self { poll: Polling::new(queue), events: queue.events()? })
    }
}

impl SleepingDeep {
    /// Sleeps on `queue`; `None` if it was made without events.
    pub fn new(queue: &Arc<CompletionQueue>) -> Option<Self> {
        Sleeping::new(queue).map(Self)
    }
}

impl Wait for Polling {
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn look(&mut self) -> Result<bool, Fault> {
        let [completion, ..] = &mut self.completions;
        match self.queue.poll_one(completion) {
            Ok(false) => Ok(false),
            Ok(true) => outcome(completion).map(|()| true),
            Err(errno) => Err(Fault::Poll(errno)),
        }
    }

    #[inline(always)]
    fn look_again(&mut self) -> Result<bool, Fault> {
        self.look()
    }

    #[inline(always)]
    fn reap<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        let completions = &mut self.completions[..MOST.min(D::MOST as usize)];
        let got = self.queue.poll_many(completions).map_err(Fault::Poll)?;
        for completion in completions.iter().take(got) {
            done.complete(completion.request() as u32, outcome(completion)); // A slot's number, as it was posted.
        }
        Ok(())
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

    #[inline(always)]
    fn reap<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        if self.look()? {
            done.complete(0, Ok(())); // The one command that is in flight.
        }
        Ok(())
    }
}

impl Wait for SleepingDeep {
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn look(&mut self) -> Result<bool, Fault> {
        self.0.look()
    }

    fn look_again(&mut self) -> Result<bool, Fault> {
        self.0.look_again()
    }

    #[inline(always)]
    fn reap<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        let mut told = Told { done, any: false };
        self.0.poll.reap(&mut told)?;
        if told.any {
            return Ok(());
        }
        // Armed, then looked once more: for what came in between there will be no event.
        self.0.arm()?;
        self.0.poll.reap(&mut told)?;
        if told.any || !self.0.events.sleep().map_err(Fault::Poll)? {
            return Ok(()); // Or a signal came: the loop asks whether the wait was given up.
        }
        self.0.poll.reap(&mut told)
    }
}

/// Passes completions on, and remembers whether there were any.
struct Told<'a, D> {
    done: &'a mut D,
    any: bool,
}

impl<D: Done> Done for Told<'_, D> {
    const MOST: u32 = D::MOST;

    #[inline(always)]
    fn complete(&mut self, slot: u32, outcome: Result<(), Fault>) {
        self.any = true;
        self.done.complete(slot, outcome);
    }
}

#[inline(always)]
fn outcome(completion: &WorkCompletion) -> Result<(), Fault> {
    if completion.succeeded() { Ok(()) } else { Err(failed(completion)) }
}

#[cold]
fn failed(completion: &WorkCompletion) -> Fault {
    Fault::Completion { status: completion.status(), vendor: completion.vendor() }
}
