//! Engines: one kind of command each, behind one small trait that the measuring loop is compiled against.
//!
//! To add an engine: one file here, one variant of [`EngineKind`], one arm in `run::dispatch`, one probe, one test.

pub mod block;
mod kind;
mod null;
mod options;
#[cfg(feature = "rdma")]
pub mod rdma;
mod spin;

pub use block::options::{BlockGranted, BlockOptions, NoData, Rw, UringOptions};
pub use kind::{Convention, EngineKind, MAX_BS_BYTES, Needs, Verb};
pub use null::{Null, NullQueue};
pub use options::{Arrivals, BufferFacts, Completion, Granted, RdmaGranted, RdmaOptions, Transport};
pub use spin::Spin;

/// One kind of command, ready to be issued.
///
/// Everything is set up before: the methods allocate nothing, read no option, and make no call that the command itself
/// does not need. `slot` counts from 0 to depth − 1; a slot is submitted again only after its completion was told.
pub trait Engine {
    /// Untimed, before each command: the next offset, a re-posted receive.
    ///
    /// # Errors
    /// A [`Fault`] if the command cannot be issued.
    fn prepare(&mut self, slot: u32) -> Result<(), Fault>;

    /// Timed: hands the command over.
    ///
    /// # Errors
    /// A [`Fault`] if it was refused; no completion will come for it.
    fn submit(&mut self, slot: u32) -> Result<(), Fault>;

    /// Timed: one look for completions, which are told to `done`, [`Done::MOST`] at most. In event mode it sleeps for them, and
    /// returns without any when a signal came.
    ///
    /// # Errors
    /// A [`Fault`] if the look itself failed. A command that failed is a completion like any other.
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault>;

    /// Untimed, after `prepare`: no command may follow this one for now, so that it must report its completion, and with it
    /// those of the commands before it. For engines whose commands do not all report.
    fn conclude(&mut self, _slot: u32) {}

    /// Memory that the engine keeps for each slot, in bytes, its data not included.
    fn slot_bytes(&self) -> usize {
        0
    }

    /// The name under which a fault is counted when the run goes on: an errno's, or the status of the command set.
    fn fault_name(&self, fault: Fault) -> String {
        fault.name()
    }

    /// Says what a fault of the command in a slot means, with a remedy where the usual cause is known.
    fn explain(&self, _slot: u32, fault: Fault) -> String {
        fault.to_string()
    }
}

/// Takes the completions seen by one [`Engine::poll`].
pub trait Done {
    /// Completions that it has room for.
    const MOST: u32;

    /// The command of a slot completed, and how.
    fn complete(&mut self, slot: u32, outcome: Result<(), Fault>);
}

/// Room for the one completion that there can be at depth one.
#[derive(Debug, Default)]
pub struct One(Option<Result<(), Fault>>);

impl One {
    /// How the command completed, if it has.
    #[inline(always)]
    pub fn outcome(&self) -> Option<Result<(), Fault>> {
        self.0
    }
}

impl Done for One {
    const MOST: u32 = 1;

    #[inline(always)]
    fn complete(&mut self, _slot: u32, outcome: Result<(), Fault>) {
        self.0 = Some(outcome);
    }
}

/// Why a command failed: small, `Copy`, and without words, since it is made in the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Handing the command over failed with this errno.
    #[error("submit failed with errno {0}")]
    Submit(i32),
    /// Looking for completions failed with this errno.
    #[error("poll failed with errno {0}")]
    Poll(i32),
    /// A completion arrived with this status, which is not success.
    #[error("completed with status {status} (vendor error {vendor:#x})")]
    Completion {
        /// The status as the engine's interface numbers it.
        status: u32,
        /// The device's own code.
        vendor: u32,
    },
    /// The command failed with this errno.
    #[error("failed with errno {0}")]
    Failed(i32),
    /// The command moved only this many bytes.
    #[error("moved only {0} bytes")]
    Short(u32),
    /// The data is not what it should be.
    #[error("brought other bytes than were expected")]
    Data,
    /// The wait was given up: no completion within the deadline, or the run was stopped while waiting.
    #[error("no completion came")]
    Abandoned,
}

impl Fault {
    /// The name of the errno, or of the kind of fault.
    pub fn name(self) -> String {
        match self {
            Self::Submit(errno) | Self::Poll(errno) | Self::Failed(errno) => {
                format!("{:?}", nix::errno::Errno::from_raw(errno))
            }
            Self::Completion { status, .. } => format!("status_{status}"),
            Self::Short(_) => "short_transfer".into(),
            Self::Data => "corrupt".into(),
            Self::Abandoned => "abandoned".into(),
        }
    }
}
