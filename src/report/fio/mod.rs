//! The result in the layout that fio prints, for scripts and eyes that know it.
//!
//! Layout, units, widths and separators are those of fio 3.33. What the lines say stays what lat-probe measured:
//!
//! - `slat` and `clat` exist only where the hand-over was stamped (`--phases`): `slat` ends when the hand-over returns, `clat`
//!   begins there. Without it there is `lat` alone, in the range and in the percentiles. Where one call does all of a command,
//!   `slat` is all of it; fio stamps no hand-over there and says `clat` to the same time.
//! - A line whose figures were not measured is left out, and so is a figure that is undefined. A zero is a count of none.
//! - Points are measured one after the other, so each is a group of its own, as fio's are behind `stonewall`.
//! - `bw` and `iops` sum up the windows of the timeline, hundredths of the run, where fio takes half a second.
//! - The date is when the run began, in UTC.

pub(super) mod depth;
pub(super) mod latency;
pub(super) mod number;

#[cfg(test)]
mod tests;

use std::fmt::{self, Write};

use self::number::Step::{Binary, Thousand};
use super::result::{Config, EndedBy, Point, RunResult, Verified};
use crate::{
    engine::{BlockGranted, Convention, EngineKind, block::options::WaitsIn},
    units::{format_bytes, format_ns},
};

/// fio's numbers are errnos. A failure here has a reason in words and not always a number, so it gets the most general one.
const EIO: u32 = 5;
/// What fio reports where data is not what was written.
const EILSEQ: u32 = 84;

/// Writes the whole report; `pid` is the process that measured.
pub fn render(result: &RunResult, pid: u32) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_report(&mut text, result, pid);
    text
}

fn write_report(text: &mut String, result: &RunResult, pid: u32) -> fmt::Result {
    for (group, point) in result.points.iter().enumerate() {
        write_job(text, name(result, point), group, &point.config)?;
    }
    writeln!(text, "{}-{}\n", result.tool.name, result.tool.version)?;
    let date = number::date(&result.started_at);
    for (group, point) in result.points.iter().enumerate() {
        write!(text, "{}: (groupid={group}, jobs={}): ", name(result, point), point.config.jobs)?;
        match failure(point) {
            Some((number, reason)) => write!(text, "err={number:2} ({})", in_a_line(&reason))?,
            None => write!(text, "err={:2}", 0)?,
        }
        writeln!(text, ": pid={pid}: {date}")?;
        if let Some(label) = result.label.as_deref().filter(|_| result.points.len() > 1) {
            writeln!(text, "  Description  : [{}]", in_a_line(label))?;
        }
        write_point(text, point)?;
    }
    for (group, point) in result.points.iter().enumerate() {
        write_group(text, group, point)?;
    }
    write_notes(text, result)
}

/// The name of a job: the run's label, or else the engine. Several jobs are told apart by engine and size.
fn name(result: &RunResult, point: &Point) -> String {
    let engine = point.config.engine.name();
    match (&result.points[..], result.label.as_deref(), point.config.bs_bytes) {
        ([_], Some(label), _) => in_a_line(label),
        ([_], None, _) | (_, _, None) => engine.into(),
        (_, _, Some(bytes)) => format!("{engine}-{}", format_bytes(bytes)),
    }
}

/// Text from elsewhere, so that it cannot begin a line of its own.
fn in_a_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Which of fio's two directions a point is.
///
/// For RDMA it is where the payload goes, as in fio: WRITE and SEND write, READ reads, and so do atomics, which bring a value
/// back. Whatever has no payload is a read, as with fio's null engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

impl Direction {
    fn of(config: &Config) -> Self {
        let writes = match config.engine {
            EngineKind::Rdma(verb) => verb.carries_payload(),
            _ => config.rw.is_some_and(|rw| rw.writes()),
        };
        if writes { Self::Write } else { Self::Read }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// fio's name of the engine, where it has the same one.
fn engine_name(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::IoUring => "io_uring",
        other => other.name(),
    }
}

/// What was asked for.
fn write_job(text: &mut String, name: String, group: usize, config: &Config) -> fmt::Result {
    let rw = config.rw.map_or(Direction::of(config).name(), |rw| rw.name());
    write!(text, "{name}: (g={group}): rw={rw}")?;
    if let Some(bytes) = config.bs_bytes {
        let size = number::bytes(bytes, Binary);
        write!(text, ", bs=(R) {size}-{size}, (W) {size}-{size}, (T) {size}-{size}")?;
    }
    writeln!(text, ", ioengine={}, iodepth={}", engine_name(config.engine), config.qd)
}

/// What went wrong, with a number for scripts that look for anything but 0.
fn failure(point: &Point) -> Option<(u32, String)> {
    let reason = || point.ended_because.clone();
    if point.verified == Verified::No {
        return Some((EILSEQ, reason().unwrap_or_else(|| "the bytes are wrong".into())));
    }
    if point.ended_by == EndedBy::Error {
        return Some((EIO, reason().unwrap_or_else(|| "failed".into())));
    }
    failed_commands(point).map(|failed| (EIO, format!("{failed} commands failed")))
}

fn failed_commands(point: &Point) -> Option<u64> {
    point.errors.get("failed_commands").copied().filter(|&failed| failed > 0)
}

fn write_point(text: &mut String, point: &Point) -> fmt::Result {
    write_rates(text, point)?;
    let phases = point.submit_ns.as_ref().zip(point.wait_ns.as_ref());
    if let Some((submit, wait)) = phases {
        latency::range(text, "slat", submit)?;
        latency::range(text, "clat", wait)?;
    }
    latency::range(text, "lat", &point.latency_ns)?;
    if let Some((_, wait)) = phases {
        latency::percentiles(text, "clat", &wait.percentiles)?;
    }
    latency::percentiles(text, "lat", &point.latency_ns.percentiles)?;
    write_windows(text, point)?;
    latency::classes(text, &point.histogram)?;
    write_cpu(text, point)?;
    depth::write(text, point)?;
    write_issued(text, point)
}

/// Time of the measured part, from the first hand-over to the last completion.
fn elapsed_ns(point: &Point) -> Option<f64> {
    let ops_per_s = point.throughput.ops_per_s.filter(|&rate| rate > 0.0)?;
    Some(point.latency_ns.n as f64 * 1e9 / ops_per_s)
}

/// That time in whole milliseconds. It is rounded up, since scripts divide by it.
fn elapsed_ms(point: &Point) -> Option<u64> {
    elapsed_ns(point).map(|ns| (ns / 1e6).ceil() as u64)
}

/// All bytes that measured commands moved.
fn moved_bytes(point: &Point) -> Option<u64> {
    point.config.bs_bytes.map(|bytes| bytes.saturating_mul(point.latency_ns.n))
}

fn write_rates(text: &mut String, point: &Point) -> fmt::Result {
    let (Some(ops_per_s), Some(ms)) = (point.throughput.ops_per_s, elapsed_ms(point)) else { return Ok(()) };
    write!(text, "  {}: IOPS={}", Direction::of(&point.config).name(), number::rate(ops_per_s))?;
    match (point.throughput.bytes_per_s, moved_bytes(point)) {
        (Some(per_s), Some(bytes)) => {
            let (binary, decimal) = (number::bandwidth(per_s, Binary), number::bandwidth(per_s, Thousand));
            writeln!(text, ", BW={binary} ({decimal})({}/{ms}msec)", number::bytes(bytes, Binary))
        }
        _ => writeln!(text, " ({ms}msec)"),
    }
}

/// Rates over the windows of the timeline, the last of which is not among them.
fn write_windows(text: &mut String, point: &Point) -> fmt::Result {
    let interval = &point.throughput.interval;
    let samples = point.timeline.len().saturating_sub(1);
    let (Some(min), Some(max), Some(mean), Some(stddev)) = (interval.min, interval.max, interval.mean, interval.stddev)
    else {
        return Ok(());
    };
    if let Some(bytes) = point.config.bs_bytes {
        let kib = |ops: f64| ops * bytes as f64 / 1024.0;
        let (unit, by) = if kib(mean) > 1024.0 * 1024.0 { ("MiB", 1024.0) } else { ("KiB", 1.0) };
        let of = |ops: f64| kib(ops) / by;
        let (least, most) = (number::whole(of(min)), number::whole(of(max)));
        // Nothing else is in the point's group.
        write!(text, "   bw ({unit:>5}/s): min={least:5}, max={most:5}, per=100.00%, ")?;
        writeln!(text, "avg={:5.2}, stdev={:5.2}, samples={samples}", of(mean), of(stddev))?;
    }
    let (least, most) = (number::whole(min), number::whole(max));
    writeln!(
        text,
        "   iops        : min={least:5}, max={most:5}, avg={mean:5.2}, stdev={stddev:5.2}, samples={samples}"
    )
}

/// The measuring thread alone: shares of the time over which they were counted, warm-up included.
fn write_cpu(text: &mut String, point: &Point) -> fmt::Result {
    let usage = &point.cpu.usage;
    if usage.elapsed_ns == 0 {
        return Ok(());
    }
    let percent = |ns: u64| 100.0 * ns as f64 / usage.elapsed_ns as f64;
    let (user, system) = (percent(usage.user_ns), percent(usage.system_ns));
    let switches = usage.voluntary_switches.saturating_add(usage.involuntary_switches);
    writeln!(
        text,
        "  cpu          : usr={user:.2}%, sys={system:.2}%, ctx={switches}, majf={}, minf={}",
        usage.major_faults, usage.minor_faults
    )
}

/// Commands by direction: read, write, trim, sync. No sample is short or dropped: either is a failure with a name.
fn write_issued(text: &mut String, point: &Point) -> fmt::Result {
    let failed = failed_commands(point);
    let issued = point.latency_ns.n.saturating_add(failed.unwrap_or(0));
    let (read, write) = match Direction::of(&point.config) {
        Direction::Read => (issued, 0),
        Direction::Write => (0, issued),
    };
    writeln!(text, "     issued rwts: total={read},{write},0,0 short=0,0,0,0 dropped=0,0,0,0")?;
    if let Some(failed) = failed {
        writeln!(text, "     errors    : total={failed}")?;
    }
    // Nothing here steers the depth by a latency.
    writeln!(text, "     latency   : target=0, window=0, percentile=100.00%, depth={}", point.config.qd)
}

/// A group's totals; there are none without payload.
fn write_group(text: &mut String, group: usize, point: &Point) -> fmt::Result {
    let known = point.throughput.bytes_per_s.zip(moved_bytes(point)).zip(elapsed_ms(point));
    let Some(((per_s, bytes), ms)) = known else { return Ok(()) };
    let label = Direction::of(&point.config).name().to_uppercase();
    let (binary, decimal) = (number::bandwidth(per_s, Binary), number::bandwidth(per_s, Thousand));
    writeln!(text, "\nRun status group {group} (all jobs):")?;
    write!(text, "{label:>7}: bw={binary} ({decimal}), {binary}-{binary} ({decimal}-{decimal}), ")?;
    writeln!(text, "io={} ({}), run={ms}-{ms}msec", number::bytes(bytes, Binary), number::bytes(bytes, Thousand))
}

/// What fio has no line for, and a reader must know all the same.
fn write_notes(text: &mut String, result: &RunResult) -> fmt::Result {
    writeln!(text)?;
    for point in &result.points {
        let name = name(result, point);
        let in_a_call = |block: &BlockGranted| matches!(block.waits_in, WaitsIn::SleepingCall | WaitsIn::PollingCall);
        if point.submit_ns.is_some() && point.granted.block.as_ref().is_some_and(in_a_call) {
            writeln!(
                text,
                "note: {name}: one call does all of a command, so slat is all of it; fio's clat is lat here"
            )?;
        }
        if point.partial {
            let reason = point.ended_because.as_deref().unwrap_or("it was stopped");
            writeln!(text, "note: {name} is partial: {}", in_a_line(reason))?;
        }
        match point.convention {
            Convention::Completion => {}
            Convention::RoundTrip => writeln!(text, "note: {name}: a latency is there and back")?,
            Convention::HalfRoundTrip => writeln!(text, "note: {name}: a latency is half of there and back")?,
        }
    }
    if let Some(p50) = result.instrument.floor_ns.percentiles.p50 {
        writeln!(text, "note: floor {} p50: what this loop shows for no command at all", format_ns(p50))?;
    }
    for warning in &result.warnings {
        writeln!(text, "note: {} [{}]", in_a_line(&warning.message), warning.code)?;
    }
    Ok(())
}
