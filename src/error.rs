//! The one error type of the crate, and the exit code that each kind of error ends the program with.
//!
//! Every variant is printed as one plain sentence that names the object, what was asked of it, the number, and a remedy
//! where the usual cause is known. In the measuring loop nothing of this is used: a fault there is a small `Copy` value
//! (`engine::Fault`), and words are added outside.

use std::{io, path::PathBuf};

/// What went wrong, worded for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line, or a file it names, asks for something that cannot be meant. Exit code 2.
    #[error("{0}")]
    Usage(String),

    /// This machine lacks something that the engine needs; the remedy says how to get it. Exit code 77.
    #[error("{what}. {remedy}")]
    Unavailable {
        /// What is missing, as a clause.
        what: String,
        /// The commands or steps that would bring it, as a sentence.
        remedy: String,
    },

    /// A value is beyond what the device or the system allows. Exit code 2.
    #[error("{object}: {what} {value} is beyond the limit of {limit}{}", sentence(.remedy))]
    Limit {
        /// The device, option or resource that has the limit.
        object: String,
        /// What was asked for, for example `block size in bytes`.
        what: &'static str,
        /// The value asked for.
        value: u64,
        /// The largest value allowed.
        limit: u64,
        /// What to do, or empty.
        remedy: String,
    },

    /// A system or library call failed. Exit code 1.
    #[error("{object}: {call}: {source}{}", sentence(.hint))]
    Call {
        /// What the call was made on: a device, a path, a peer.
        object: String,
        /// The call's own name.
        call: &'static str,
        /// The errno, as the system words it.
        source: io::Error,
        /// The usual cause and its remedy, or empty.
        hint: String,
    },

    /// The other end, or the way to it, failed. Exit code 1.
    #[error("peer {peer}: {message}")]
    Peer {
        /// The address as the user gave it, or as it connected.
        peer: String,
        /// What happened, and in which step.
        message: String,
    },

    /// A measured command failed; the samples before it are kept in a partial result. Exit code 1.
    #[error("command {index}: {message}")]
    Command {
        /// Index of the command that failed, counted from the first one of the phase it ran in.
        index: u64,
        /// The fault in words.
        message: String,
    },

    /// No measured command completed for so long that the wait was given up. Exit code 1.
    #[error("no command completed within {seconds} s: a message was lost, or the other end stopped answering")]
    Stalled {
        /// The deadline, in seconds.
        seconds: u64,
    },

    /// Another job of the same point failed, so that this one was stopped. Exit code 1.
    #[error("it was stopped, since another job of the point failed")]
    Together,

    /// The bytes that arrived are not the bytes that were sent. Exit code 1.
    #[error("verification failed: {0}")]
    Verification(String),

    /// The measuring thread was moved to another processor. Exit code 1.
    #[error(
        "the measuring thread was moved from CPU {from} to CPU {to}: stamps of two processors don't compare. Something \
         changed its affinity, or took the CPU offline"
    )]
    Migrated {
        /// Where it began.
        from: usize,
        /// Where it was found.
        to: usize,
    },

    /// A command that makes a side of a comparison failed. Exit code 1.
    #[error("{name}: `{command}` {ended}{output}")]
    Hook {
        /// The option, or that it makes a side.
        name: &'static str,
        /// The command.
        command: String,
        /// How it ended.
        ended: String,
        /// The end of what it printed, each line on one of its own.
        output: String,
    },

    /// The clock cannot be trusted. Exit code 1.
    #[error("clock: {0}")]
    Clock(String),

    /// A result or report could not be written. Exit code 1.
    #[error("{}: {source}", .path.display())]
    Output {
        /// The file, or `<stdout>`.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The result type of everything that can fail outside the measuring loop.
pub type Result<T> = std::result::Result<T, Error>;

/// Exit code of a process that SIGINT ended after its partial result was written.
pub const EXIT_INTERRUPTED: u8 = 130;
/// Exit code of a process that SIGHUP ended after its partial result was written.
pub const EXIT_HUNG_UP: u8 = 129;
/// Exit code of a process that SIGTERM ended after its partial result was written.
pub const EXIT_TERMINATED: u8 = 143;

impl Error {
    /// A usage error from anything that can be printed.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// A failed call on `object`, with errno taken from `source` and a remedy in `hint` (empty for none).
    pub fn call(object: impl Into<String>, call: &'static str, source: io::Error, hint: impl Into<String>) -> Self {
        Self::Call { object: object.into(), call, source, hint: hint.into() }
    }

    /// A failure at, or on the way to, the other end.
    pub fn peer(peer: impl ToString, message: impl Into<String>) -> Self {
        Self::Peer { peer: peer.to_string(), message: message.into() }
    }

    /// The process exit code for this error: 2 for usage and limits, 77 for what this machine lacks, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Limit { .. } => 2,
            Self::Unavailable { .. } => 77,
            _ => 1,
        }
    }
}

/// Puts a remedy behind the sentence it belongs to, or nothing where there is none.
fn sentence(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!(". {remedy}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_error_names_object_call_number_and_remedy() {
        let error = Error::call("/dev/sg3", "SG_IO", io::Error::from_raw_os_error(1), "Needs CAP_SYS_RAWIO");
        assert_eq!(error.to_string(), "/dev/sg3: SG_IO: Operation not permitted (os error 1). Needs CAP_SYS_RAWIO");
    }

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        assert_eq!(Error::usage("x").exit_code(), 2);
        assert_eq!(Error::Unavailable { what: "x".into(), remedy: "y".into() }.exit_code(), 77);
        assert_eq!(Error::Clock("x".into()).exit_code(), 1);
    }
}
