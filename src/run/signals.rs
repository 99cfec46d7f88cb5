//! SIGINT, SIGTERM and SIGHUP: the first one asks for a partial result, the second one ends the process at once. SIGCONT
//! tells that the process had been stopped.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use signal_hook::{
    consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM},
    flag,
};

use crate::{
    error::{EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED, Error, Result},
    host::Sysfs,
    measure::Stop,
};

/// The signals that came, as flags.
#[derive(Debug)]
pub struct Signals {
    received: Arc<AtomicUsize>,
    continued: Arc<AtomicBool>,
}

impl Signals {
    /// Takes over the signals for the rest of the process. SIGHUP stays ignored where `nohup` made it so.
    ///
    /// # Errors
    /// The errno of `sigaction`.
    pub fn install() -> Result<Self> {
        let received = Arc::new(AtomicUsize::new(0));
        let armed = Arc::new(AtomicBool::new(false));
        let ends = [(SIGINT, EXIT_INTERRUPTED), (SIGTERM, EXIT_TERMINATED), (SIGHUP, EXIT_HUNG_UP)];
        for (signal, code) in ends {
            if signal == SIGHUP && is_ignored(&Sysfs::default(), signal) {
                continue;
            }
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
            SIGHUP => Some(Stop::HangUp),
            _ => None,
        }
    }
}

fn is_ignored(sysfs: &Sysfs, signal: i32) -> bool {
    let status = sysfs.read("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Tree;

    #[test]
    fn a_signal_is_ignored_if_its_bit_is_set() {
        let ignores = |mask: &str| is_ignored(&Tree::new().file("/proc/self/status", mask).sysfs(), SIGHUP);
        assert!(ignores("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores("SigIgn:\t0000000000001000\n"));
        assert!(!ignores(""));
    }
}
