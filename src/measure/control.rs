//! The few words shared between the measuring thread and the one that watches it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

/// Why a run is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stop {
    /// SIGINT.
    Interrupt = 1,
    /// SIGTERM.
    Terminate,
    /// No command completed within the deadline.
    Stalled,
    /// The other end is gone.
    PeerGone,
    /// SIGHUP.
    HangUp,
    /// Another job of the run has failed.
    Together,
}

/// Written by the watching thread, read by the measuring one between chunks, and while a look finds no completion.
///
/// The two directions lie in separate cache lines, so that counting progress does not disturb the wait.
#[derive(Debug, Default)]
pub struct Control {
    orders: Orders,
    progress: Progress,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Orders {
    stop: AtomicU8,
    abandon: AtomicBool,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Progress {
    done: AtomicU64,
}

impl Control {
    /// Asks for a stop at the end of the chunk; the first reason given stays.
    pub fn request(&self, stop: Stop) {
        // The first reason is the cause, later ones are its consequences; losing that race is fine.
        let _ = self.orders.stop.compare_exchange(0, stop as u8, Relaxed, Relaxed);
    }

    /// Gives up the wait for the command in flight; meant to follow [`Control::request`].
    pub fn abandon(&self) {
        self.orders.abandon.store(true, Relaxed);
    }

    /// Whether the wait for the command in flight was given up.
    #[inline(always)]
    pub fn abandoned(&self) -> bool {
        self.orders.abandon.load(Relaxed)
    }

    /// Why to stop, once a stop was asked for.
    pub fn stop(&self) -> Option<Stop> {
        match self.orders.stop.load(Relaxed) {
            1 => Some(Stop::Interrupt),
            2 => Some(Stop::Terminate),
            3 => Some(Stop::Stalled),
            4 => Some(Stop::PeerGone),
            5 => Some(Stop::HangUp),
            6 => Some(Stop::Together),
            _ => None,
        }
    }

    /// Counts completed commands, warm-up included.
    pub fn advance(&self, commands: u64) {
        self.progress.done.fetch_add(commands, Relaxed);
    }

    /// Completed commands so far, warm-up included.
    pub fn done(&self) -> u64 {
        self.progress.done.load(Relaxed)
    }
}
