//! SIGINT and SIGTERM: the first one asks for a partial result, the second one ends the process at once. SIGCONT tells
//! that the process had been stopped.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use signal_hook::{
    consts::{SIGCONT, SIGINT, SIGTERM},
    flag,
};

use crate::{
    error::{EXIT_INTERRUPTED, EXIT_TERMINATED, Error, Result},
    measure::Stop,
};

/// The signals that came, as flags.
#[derive(Debug)]
pub struct Signals {
    received: Arc<AtomicUsize>,
    continued: Arc<AtomicBool>,
}

impl Signals {
    /// Takes over the signals for the rest of the process.
    ///
    /// # Errors
    /// The errno of `sigaction`.
    pub fn install() -> Result<Self> {
        let received = Arc::new(AtomicUsize::new(0));
        let armed = Arc::new(AtomicBool::new(false));
        for (signal, code) in [(SIGINT, EXIT_INTERRUPTED), (SIGTERM, EXIT_TERMINATED)] {
            // The order matters: the first signal finds the shutdown not armed yet, and arms it.
            flag::register_conditional_shutdown(signal, i32::from(code), Arc::clone(&armed))
                .and_then(|_| flag::register(signal, Arc::clone(&armed)))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&received), signal as usize))
                .map_err(|source| Error::call(format!("signal {signal}"), "sigaction", source, ""))?;
        }
        let continued = Arc::new(AtomicBool::new(false));
        flag::register(SIGCONT, Arc::clone(&continued))
            .map_err(|source| Error::call("SIGCONT", "sigaction", source, ""))?;
        Ok(Self { received, continued })
    }

    /// Whether the process was stopped and continued since the last time that this was asked.
    pub fn was_stopped(&self) -> bool {
        self.continued.swap(false, Relaxed)
    }

    /// The signal that came, as a reason to stop.
    pub fn received(&self) -> Option<Stop> {
        match self.received.load(Relaxed) as i32 {
            SIGINT => Some(Stop::Interrupt),
            SIGTERM => Some(Stop::Terminate),
            _ => None,
        }
    }
}
