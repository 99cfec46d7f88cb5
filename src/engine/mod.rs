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
pub use null::Null;
pub use options::{BufferFacts, Completion, Granted, RdmaGranted, RdmaOptions, Transport};
pub use spin::Spin;

/// One kind of command, ready to be issued.
///
/// Everything is set up before: the methods allocate nothing, read no option, and make no call that the command itself
/// does not need. `slot` counts from 0 to depth − 1.
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

    /// Timed: one look for completions. In event mode it sleeps for them, and returns without any when a signal came.
    ///
    /// # Errors
    /// A [`Fault`] if a completion says that its command failed.
    fn poll(&mut self, done: &mut Done) -> Result<(), Fault>;

    /// The name under which a fault is counted when the run goes on: an errno's, or the status of the command set.
    fn fault_name(&self, fault: Fault) -> String {
        fault.name()
    }

    /// Says what a fault means, with a remedy where the usual cause is known.
    fn explain(&self, fault: Fault) -> String {
        fault.to_string()
    }
}

/// The completions seen by one [`Engine::poll`].
#[derive(Debug, Default)]
pub struct Done {
    completed: u32,
}

impl Done {
    /// Records that the command of one slot completed.
    #[inline(always)]
    pub fn complete(&mut self) {
        self.completed += 1;
    }

    /// Whether a completion was seen.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.completed != 0
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
