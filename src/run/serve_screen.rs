//! What a server shows: lines on stdout and stderr, and, where stderr is a terminal, a live line for each client below them.
//!
//! The numbers of a live line are a stranger's. Text is escaped before it comes here.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    peer::{Progress, progress::believable_rate},
    units::format_count,
};

/// Beyond it an ETA tells nobody anything.
const LONGEST_ETA: Duration = Duration::from_secs(99 * 24 * 3600);

/// Both streams of a server with many clients.
pub(super) struct Screen {
    bars: MultiProgress,
}

/// The live line of one client; it goes away with this value.
pub(super) struct Live<'a> {
    screen: &'a Screen,
    bar: ProgressBar,
    name: String,
    rates: Rates,
}

impl Screen {
    /// Live lines are drawn if `draw` is set and stderr is a terminal.
    pub fn new(draw: bool) -> Self {
        Self::on(if draw { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() })
    }

    pub(super) fn on(target: ProgressDrawTarget) -> Self {
        Self { bars: MultiProgress::with_draw_target(target) }
    }

    /// Writes to stdout at once, so that the lines of two clients do not mix. A reader who has left does not end the service.
    pub fn print(&self, lines: &str) {
        self.beside_bars(|| {
            let mut stdout = io::stdout().lock();
            let _ = stdout.write_all(lines.as_bytes()).and_then(|()| stdout.flush());
        });
    }

    /// Writes a line of this program to stderr; as [`Screen::print`].
    pub fn say(&self, line: &str) {
        let line = format!("lat-probe: {line}\n");
        self.beside_bars(|| {
            let _ = io::stderr().write_all(line.as_bytes());
        });
    }

    /// Lines that are drawn are taken away meanwhile. Where none are, a reader who does not read holds up nobody else.
    fn beside_bars(&self, write: impl FnOnce()) {
        if self.bars.is_hidden() { write() } else { self.bars.suspend(write) }
    }

    /// Begins a live line for a client that begins to measure.
    pub fn live(&self, name: String) -> Live<'_> {
        let bar = self.bars.add(ProgressBar::no_length());
        let style = ProgressStyle::with_template("{wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(format!("{name}: begins"));
        Live { screen: self, bar, name, rates: Rates::begin(Instant::now()) }
    }
}

impl Live<'_> {
    /// Shows how far the client is.
    pub fn show(&mut self, progress: &Progress) {
        if self.bar.is_hidden() {
            return;
        }
        let mut rates = self.rates.at(progress.done, Instant::now());
        // This end's clock has run since the queue pairs were connected, long before the first command of a client that makes
        // its memory resident first.
        rates.overall = since_warmup(progress).or(rates.overall);
        self.bar.set_message(format!("{}: {}", self.name, describe(progress, rates)));
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.screen.bars.remove(&self.bar);
    }
}

/// Rates from counts and this end's clock.
struct Rates {
    began: Instant,
    last: (Instant, u64),
}

/// Commands per second since the heartbeat before, and since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    latest: Option<f64>,
    overall: Option<f64>,
}

impl Rates {
    fn begin(now: Instant) -> Self {
        Self { began: now, last: (now, 0) }
    }

    fn at(&mut self, done: u64, now: Instant) -> Seen {
        let (before, done_before) = self.last;
        self.last = (now, done);
        Seen {
            latest: rate(done.saturating_sub(done_before), now.saturating_duration_since(before)),
            overall: rate(done, now.saturating_duration_since(self.began)),
        }
    }
}

/// The rate over the measured part, as the client's clock has it.
fn since_warmup(progress: &Progress) -> Option<f64> {
    let elapsed_ns = progress.elapsed_ns.filter(|&elapsed| elapsed > 0)?;
    believable_rate(progress.done as f64 * 1e9 / elapsed_ns as f64)
}

fn rate(commands: u64, time: Duration) -> Option<f64> {
    believable_rate(commands as f64 / time.as_secs_f64())
}

/// `44 %, ETA 56 s, 20,123/s, 1,000/s overall, 45,000 of 101,000 commands`: what matters first, since a terminal may be narrow.
/// What is not known is left out, but for the ETA.
fn describe(progress: &Progress, seen: Seen) -> String {
    let latest = progress.ops_per_s.and_then(believable_rate).or(seen.latest);
    let mut parts = Vec::new();
    // Rounded down, so that 100 % means all.
    parts.extend(progress.fraction().map(|fraction| format!("{} %", (fraction * 100.0) as u64)));
    parts.push(format!("ETA {}", eta(progress.remaining(seen.overall.or(latest)))));
    let per_s = |rate: f64| format!("{}/s", format_count(rate.round() as u64));
    parts.extend(latest.map(per_s));
    parts.extend(seen.overall.map(|rate| per_s(rate) + " overall"));
    parts.push(match progress.total.filter(|&total| total > 0) {
        // The verification command comes after those that are counted.
        Some(total) => format!("{} of {} commands", format_count(progress.done.min(total)), format_count(total)),
        None => format!("{} commands", format_count(progress.done)),
    });
    parts.join(", ")
}

fn eta(left: Option<Duration>) -> String {
    let Some(left) = left else { return "unknown".into() };
    if left > LONGEST_ETA {
        return "beyond 99 d".into();
    }
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes:02} min"),
        (days, hours, ..) => format!("{days} d {hours:02} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(done: u64, total: u64) -> Progress {
        Progress { done, total: Some(total), ..Progress::default() }
    }

    fn seen(latest: f64, overall: f64) -> Seen {
        Seen { latest: Some(latest), overall: Some(overall) }
    }

    #[test]
    fn the_rate_over_all_is_that_of_the_measured_part_if_the_client_tells_its_time() {
        let told = |elapsed_ns| since_warmup(&Progress { done: 50, elapsed_ns, ..Progress::default() });
        assert_eq!((told(Some(2 * SECOND)), told(Some(0)), told(None)), (Some(25.0), None, None));
        assert_eq!(since_warmup(&Progress { done: u64::MAX, elapsed_ns: Some(1), ..Progress::default() }), None);
    }

    #[test]
    fn a_live_line_tells_counts_rates_and_the_time_left() {
        assert_eq!(
            describe(&at(45_000, 101_000), seen(20_123.4, 1000.0)),
            "44 %, ETA 56 s, 20,123/s, 1,000/s overall, 45,000 of 101,000 commands"
        );
        // The client's own rate is the better one, since no heartbeat is late in it.
        let told = Progress { ops_per_s: Some(7.0), ..at(1, 3) };
        assert_eq!(describe(&told, seen(5.0, 1.0)), "33 %, ETA 2 s, 7/s, 1/s overall, 1 of 3 commands");
    }

    #[test]
    fn a_run_by_time_has_the_time_that_is_left() {
        let progress =
            Progress { done: 5, elapsed_ns: Some(SECOND), limit_ns: Some(100 * SECOND), ..Progress::default() };
        assert_eq!(describe(&progress, seen(5.0, 5.0)), "1 %, ETA 1 min 39 s, 5/s, 5/s overall, 5 commands");
    }

    #[test]
    fn what_nothing_tells_is_unknown() {
        let none = Seen::default();
        assert_eq!(describe(&Progress { done: 5, ..Progress::default() }, none), "ETA unknown, 5 commands");
        assert_eq!(describe(&at(5, 0), none), "ETA unknown, 5 commands");
        assert_eq!(describe(&at(5, 10), none), "50 %, ETA unknown, 5 of 10 commands");
        assert_eq!(describe(&at(5, 10), seen(0.0, 0.0)), "50 %, ETA unknown, 0/s, 0/s overall, 5 of 10 commands");
    }

    #[test]
    fn a_client_that_lies_gets_no_nonsense_printed() {
        // What the receiver of 2011 would have shown as 477.8 %.
        assert_eq!(
            describe(&at(4778, 1000), seen(1.0, 1.0)),
            "100 %, ETA 0 s, 1/s, 1/s overall, 1,000 of 1,000 commands"
        );
        for rate in [1e308, -1.0, f64::NAN, f64::INFINITY] {
            let progress = Progress { ops_per_s: Some(rate), ..at(u64::MAX, u64::MAX) };
            let text = describe(&progress, Seen::default());
            assert!(!text.contains("/s") && text.starts_with("100 %, ETA unknown, "), "{text}");
        }
        assert!(describe(&at(0, 1 << 60), seen(1.0, 1.0)).starts_with("0 %, ETA beyond 99 d, "));
    }

    #[test]
    fn rates_are_those_of_the_last_heartbeat_and_of_all() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut rates = Rates::begin(began);
        assert_eq!(rates.at(100, after(1)), seen(100.0, 100.0));
        assert_eq!(rates.at(400, after(2)), seen(300.0, 200.0));
        // A count that steps back, and no time at all.
        assert_eq!(rates.at(200, after(4)), seen(0.0, 50.0));
        assert_eq!(rates.at(300, after(4)).latest, None);
        assert_eq!(rates.at(u64::MAX, after(5)), Seen::default());
    }

    #[test]
    fn times_are_rounded_up_and_have_two_units() {
        let of = |ms| eta(Some(Duration::from_millis(ms)));
        assert_eq!([0, 1, 59_000, 60_000].map(of), ["0 s", "1 s", "59 s", "1 min 00 s"]);
        assert_eq!([3_660_000, 90_000_000].map(of), ["1 h 01 min", "1 d 01 h"]);
        assert_eq!((eta(None), eta(Some(Duration::MAX))), ("unknown".into(), "beyond 99 d".into()));
    }

    proptest! {
        #[test]
        fn a_live_line_is_short_whatever_the_numbers(
            done: u64, total: Option<u64>, elapsed_ns: Option<u64>, limit_ns: Option<u64>, told: f64, seconds: u32,
        ) {
            let progress = Progress { done, total, elapsed_ns, limit_ns, ops_per_s: Some(told) };
            let began = Instant::now();
            let seen = Rates::begin(began).at(done, began + Duration::from_secs(seconds.into()));
            let text = describe(&progress, seen);
            prop_assert!(text.len() < 200 && text.contains("ETA "), "{}", text);
        }
    }
}
