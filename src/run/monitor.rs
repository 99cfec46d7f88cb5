//! The thread that watches a measurement from another processor: signals, stalls, the other end, progress.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::Sender,
    },
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Live, Signals, moments::Moments, team::Team, watch::Watch};
use crate::{
    error::Error,
    host::{CpuSet, cpu},
    measure::{Control, Stop},
    peer::{HEARTBEAT_INTERVAL, Progress, Running},
    stats::Scale,
    sys::interrupt::Sleeper,
};

/// How often the monitor looks.
const TICK: Duration = Duration::from_millis(50);

/// A wait for the command in flight after a signal, before it is given up.
const GRACE: Duration = Duration::from_secs(1);

/// Progress is drawn for anything that takes longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two looks at figures: they are computed anew for each.
const REFRESH: Duration = Duration::from_millis(250);

/// What the monitor watches, and how.
pub(crate) struct Monitor<'a> {
    /// Shared with the measuring thread.
    pub control: &'a Control,
    /// Signals of the process.
    pub signals: &'a Signals,
    /// The measuring thread.
    pub sleeper: Sleeper,
    /// Commands in all, warm-up included, where that is known.
    pub total: Option<u64>,
    /// Commands of the warm-up.
    pub warmup: u64,
    /// Time limit of the measured part.
    pub duration: Option<Duration>,
    /// Longest time without a completed command.
    pub stall: Duration,
    /// What is shown.
    pub live: Live,
    /// Figures so far with their scale, where they are shown.
    pub watch: Option<(&'a Watch, Scale)>,
    /// The other end, if there is one.
    pub peer: Option<&'a Running>,
    /// The other jobs of the point, if there are any.
    pub team: Option<&'a Team>,
    /// Processors that this thread may run on; empty for no choice.
    pub cpus: &'a CpuSet,
}

/// What moves from tick to tick.
struct Seen {
    started: Instant,
    done: u64,
    moved: Instant,
    /// When the warm-up was over.
    measured: Option<Instant>,
    stopping: Option<Instant>,
    /// The last heartbeat, and what was done by then.
    beat: (Instant, u64),
    bar: Option<ProgressBar>,
    /// When figures were last shown.
    shown: Instant,
    peer_failure: Option<Error>,
}

impl Monitor<'_> {
    /// Watches until `finished`, and takes looks; returns why the other end is gone, if it is. Says by `away` that it has left
    /// the measuring processor.
    pub fn watch(&self, finished: &AtomicBool, mut moments: Option<&mut Moments>, away: Sender<()>) -> Option<Error> {
        if !self.cpus.is_empty() {
            // Running on the measuring processor would only disturb; it is no reason to give up.
            let _ = cpu::restrict_current(self.cpus);
        }
        let _ = away.send(()); // Who started this thread waits for it.
        let now = Instant::now();
        let mut seen = Seen {
            started: now,
            done: 0,
            moved: now,
            measured: None,
            stopping: None,
            beat: (now, 0),
            bar: None,
            shown: now,
            peer_failure: None,
        };
        loop {
            let slept = Instant::now();
            if !finished.load(Relaxed) {
                std::thread::park_timeout(TICK);
            }
            let ends = finished.load(Relaxed);
            // Also at the end, however short the run was: what comes after the last look is not seen.
            if let Some(moments) = &mut moments {
                moments.look(slept.elapsed().saturating_sub(TICK), self.signals.was_stopped());
            }
            if ends {
                break;
            }
            self.tick(&mut seen);
        }
        if let Some(bar) = seen.bar {
            bar.finish_and_clear();
        }
        seen.peer_failure
    }

    fn tick(&self, seen: &mut Seen) {
        let now = Instant::now();
        let done = self.control.done();
        if done != seen.done {
            (seen.done, seen.moved) = (done, now);
        }
        if done >= self.warmup {
            seen.measured.get_or_insert(now);
        }
        if let Some(stop) = self.signals.received() {
            self.control.request(stop);
        }
        if seen.peer_failure.is_none()
            && let Some(error) = self.look_at_peer(seen, now)
        {
            seen.peer_failure = Some(error);
            self.control.request(Stop::PeerGone);
        }
        if self.team.is_some_and(Team::has_failed) {
            self.control.request(Stop::Together);
        }
        if now - seen.moved > self.stall {
            self.control.request(Stop::Stalled);
        }
        if let Some(stop) = self.control.stop() {
            self.give_up(seen, stop, now);
        }
        self.draw(seen, now);
    }

    /// Gives up the command in flight when it can no longer be expected to complete. The thread is woken at every tick,
    /// since it may have fallen asleep just after the last one.
    fn give_up(&self, seen: &mut Seen, stop: Stop, now: Instant) {
        let since = *seen.stopping.get_or_insert(now);
        let grace = match stop {
            Stop::Interrupt | Stop::Terminate | Stop::HangUp => GRACE,
            Stop::Stalled | Stop::PeerGone | Stop::Together => Duration::ZERO,
        };
        if now - since.max(seen.moved) >= grace {
            self.control.abandon();
            self.sleeper.wake();
        }
    }

    fn look_at_peer(&self, seen: &mut Seen, now: Instant) -> Option<Error> {
        let peer = self.peer?;
        let (before, done_before) = seen.beat;
        let since = now - before;
        if since < HEARTBEAT_INTERVAL {
            return peer.peer_alive().err();
        }
        seen.beat = (now, seen.done);
        let ops_per_s = seen.done.saturating_sub(done_before) as f64 / since.as_secs_f64();
        peer.progress(&Progress { ops_per_s: Some(ops_per_s), ..self.progress_of(seen, now) }).err()
    }

    /// How far the run is: from counts alone, since the samples are the measuring thread's.
    fn progress_of(&self, seen: &Seen, now: Instant) -> Progress {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Progress {
            done: seen.done,
            total: self.total,
            elapsed_ns: seen.measured.map(|measured| nanoseconds(now - measured)),
            limit_ns: self.duration.map(nanoseconds),
            ops_per_s: None,
        }
    }

    fn draw(&self, seen: &mut Seen, now: Instant) {
        let elapsed = now - seen.started;
        if self.live == Live::Nothing || elapsed < PATIENCE {
            return;
        }
        let message = match self.watch {
            Some((watch, scale)) => {
                let terminal = io::stderr().is_terminal();
                if now - seen.shown < if terminal { REFRESH } else { PATIENCE } {
                    return;
                }
                seen.shown = now;
                if !terminal {
                    let _ = writeln!(io::stderr(), "lat-probe: {}", watch.line(scale)); // Nobody reads it if this fails.
                    return;
                }
                watch.line(scale)
            }
            None => format!("{} commands", seen.done),
        };
        let fraction = self.progress_of(seen, now).fraction();
        let bar = seen.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(1000);
            let style = ProgressStyle::with_template("{wide_bar} {percent:>3} % {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        bar.set_position((fraction.unwrap_or(0.0) * 1000.0) as u64);
        bar.set_message(message);
    }
}
