//! The result as a person reads it at a glance. Numbers first, then what they rest on, doubts last.

use std::fmt::{self, Write};

use super::{
    drawing::{self, Canvas, MOST_POINTS},
    load,
    result::{Point, RunResult, Verified},
    tail,
};
use crate::{
    engine::{BlockGranted, BlockOptions, Convention, Granted, RdmaGranted},
    host::{Quiet, quiet::Refused},
    stats::Summary,
    timing::Source,
    units::{format_count, format_ns, format_size},
};

/// Writes the whole report, with drawings if there is a canvas for them.
pub fn render(result: &RunResult, canvas: Option<&Canvas>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_report(&mut text, result, canvas);
    text
}

fn write_report(text: &mut String, result: &RunResult, canvas: Option<&Canvas>) -> fmt::Result {
    // What was granted stands once at the end if it is the same for all points, otherwise below each.
    let mut shown = result.points.iter().map(|point| granted(&point.granted));
    let first = shown.next().unwrap_or_default();
    let same = shown.all(|other| other == first);
    for point in &result.points {
        write_headline(text, point, result)?;
        let drawn = canvas.map(|canvas| drawing::of_point(point, result, canvas));
        write_point(text, point, &drawn.unwrap_or_default())?;
        writeln!(text)?;
        if !same {
            writeln!(text, "{}", granted(&point.granted))?;
        }
    }
    write_instrument(text, result)?;
    if same {
        text.push_str(&first);
    }
    if canvas.is_some() && result.points.len() > MOST_POINTS {
        writeln!(text, "drawings   left out: there are more than {MOST_POINTS} points")?;
    }
    for warning in &result.warnings {
        writeln!(text, "warning    {} [{}]", warning.message, warning.code)?;
    }
    Ok(())
}

fn write_headline(text: &mut String, point: &Point, result: &RunResult) -> fmt::Result {
    let config = &point.config;
    write!(text, "{}", config.engine)?;
    if let Some(bytes) = config.bs_bytes {
        write!(text, ", {}", format_size(bytes))?;
    }
    if let Some(delay) = config.delay_ns {
        write!(text, " {}", format_ns(delay as f64))?;
    }
    if let Some(block) = &config.block {
        match block.command {
            Some(command) => write!(text, ", {}", command.name())?,
            None => write!(text, ", {}", block.rw.name())?,
        }
    }
    load::write_headline(text, point)?;
    if let Some(block) = &config.block {
        write!(text, ", {}", block.target.display())?;
    }
    match &result.peer {
        Some(peer) => write!(text, ", peer {} ({})", peer.name, peer.address)?,
        None if config.rdma.is_some() => write!(text, ", loopback")?,
        None => {}
    }
    if let Some(label) = &result.label {
        write!(text, ", {label}")?;
    }
    writeln!(text)
}

fn write_point(text: &mut String, point: &Point, drawn: &str) -> fmt::Result {
    let n = format_count(point.latency_ns.n);
    write!(text, "{n} commands, {}", span(point.convention))?;
    if let Some(rate) = point.throughput.ops_per_s {
        write!(text, ", {}/s", format_count(rate.round() as u64))?;
    }
    if point.partial {
        let reason = point.ended_because.as_deref().unwrap_or("it was stopped");
        write!(text, " — partial: {reason}")?;
    }
    writeln!(text, "\n")?;
    text.push_str(&table(&[
        ("latency", Some(&point.latency_ns)),
        ("submit", point.submit_ns.as_ref()),
        ("wait", point.wait_ns.as_ref()),
        ("response", point.response_ns.as_ref()),
    ]));
    if !drawn.is_empty() {
        write!(text, "\n{drawn}")?;
    }
    load::write(text, point)?;
    tail::write(text, point)?;
    if let Some(file) = &point.samples_file {
        writeln!(text, "\nAll samples are in {file}.")?;
    }
    if let Some(block) = &point.config.block {
        return write_checked(text, point, block);
    }
    match point.verified {
        Verified::Yes => writeln!(text, "\nThe bytes of the last command were checked: they are right.")?,
        Verified::No => {
            writeln!(text, "\nVERIFICATION FAILED: the bytes that arrived are not the bytes that were sent.")?
        }
        Verified::NotChecked => writeln!(text, "\nThe bytes were not checked: the run ended before they could be.")?,
        Verified::NotApplicable => {}
    }
    Ok(())
}

/// What one number spans, in words.
pub fn span(convention: Convention) -> &'static str {
    match convention {
        Convention::Completion => "until the completion was seen",
        Convention::RoundTrip => "there and back",
        Convention::HalfRoundTrip => "half of there and back",
    }
}

/// What became of the data of a block engine, and of the commands that failed.
fn write_checked(text: &mut String, point: &Point, block: &BlockOptions) -> fmt::Result {
    match (point.verified, block.rw.writes()) {
        (Verified::Yes, false) => writeln!(text, "\nThe bytes of every command were checked: they are right.")?,
        (Verified::Yes, true) => writeln!(text, "\nThe last block was read back: it is right.")?,
        (Verified::No, _) => writeln!(text, "\nVERIFICATION FAILED: the bytes are not those of the pattern.")?,
        (Verified::NotChecked, _) if block.verify => {
            writeln!(text, "\nThe bytes were not checked: the run ended before they could be.")?;
        }
        _ => {}
    }
    if let Some(failed) = point.errors.get("failed_commands").filter(|_| block.continue_on_error) {
        let names = point
            .errors
            .iter()
            .filter_map(|(name, count)| Some(format!("{} {count}", name.strip_prefix("failed_commands.")?)));
        writeln!(text, "\n{failed} commands failed and are in no figure: {}.", names.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

/// A table of summaries, one row each; rows without a summary are left out.
pub fn table(rows: &[(&str, Option<&Summary>)]) -> String {
    let columns = ["min", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean", "stddev"];
    let mut text = format!("{:>9}", "");
    for column in columns {
        let _ = write!(text, " {column:>9}");
    }
    text.push('\n');
    for (name, summary) in rows {
        let Some(summary) = summary else { continue };
        let p = &summary.percentiles;
        let values = [summary.min, p.p50, p.p90, p.p99, p.p99_9, p.p99_99, summary.max, summary.mean, summary.stddev];
        let _ = write!(text, "{name:>9}");
        for value in values {
            let _ = write!(text, " {:>9}", value.map_or_else(|| "–".into(), format_ns));
        }
        text.push('\n');
    }
    text
}

fn write_instrument(text: &mut String, result: &RunResult) -> fmt::Result {
    let floor = &result.instrument.floor_ns;
    if let Some(p50) = floor.percentiles.p50 {
        write!(text, "floor      {} p50", format_ns(p50))?;
        if let Some(p99) = floor.percentiles.p99 {
            write!(text, ", {} p99", format_ns(p99))?;
        }
        let alone = result.points.iter().all(|point| point.config.qd == 1);
        write!(
            text,
            ": what {} shows for no command at all",
            if alone { "this loop" } else { "the loop of depth one" }
        )?;
        let first = result.points.first().and_then(|point| point.latency_ns.percentiles.p50);
        if let Some(command) = first.filter(|&command| command > 0.0) {
            write!(text, " ({:.2} % of the p50 above)", 100.0 * p50 / command)?;
        }
        writeln!(text)?;
    }
    let clock = &result.clock;
    let name = match clock.source {
        Source::Tsc if clock.forced => "tsc (forced)",
        Source::Tsc => "tsc",
        Source::Monotonic => "monotonic",
    };
    write!(text, "clock      {name}, {} a read", format_ns(clock.read_cost_ns))?;
    if let Some(drift) = clock.drift_ppm {
        write!(text, ", drift {drift:.1} ppm over the run")?;
    }
    writeln!(text)?;
    let noise = &result.instrument.noise;
    writeln!(
        text,
        "noise      {} gaps over 1 µs in {}, largest {}, {:.3} % of the time stolen",
        noise.gaps_over_1us,
        format_ns(noise.window_ns),
        format_ns(noise.max_gap_ns),
        100.0 * noise.stolen_fraction
    )?;
    write_quiet(text, result.quiet.as_ref())?;
    let cpus: Vec<_> = result.points.iter().flat_map(|point| &point.config.cpus).collect();
    if let Some(cpu) = cpus.first() {
        let kernel = result.host.kernel.as_deref().unwrap_or("unknown kernel");
        write!(text, "host       CPU {cpu}, {kernel}")?;
        if let Some(hypervisor) = &result.host.hypervisor {
            write!(text, ", in a virtual machine ({hypervisor})")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

/// What `--quiet` did: a line for all that is in force, and one for each refusal.
pub(super) fn write_quiet(text: &mut String, quiet: Option<&Quiet>) -> fmt::Result {
    let Some(quiet) = quiet else { return Ok(()) };
    let applied: Vec<_> = quiet.applied.iter().map(|applied| applied.what).collect();
    let applied = if applied.is_empty() { "nothing".into() } else { applied.join(", ") };
    writeln!(text, "quiet      {applied}")?;
    for Refused { what, reason } in &quiet.refused {
        writeln!(text, "           not {what}: {reason}")?;
    }
    Ok(())
}

/// What was granted, as lines.
fn granted(granted: &Granted) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_granted(&mut text, granted);
    text
}

fn write_granted(text: &mut String, granted: &Granted) -> fmt::Result {
    if let Some(block) = &granted.block {
        write_target(text, block)?;
    }
    for (name, end) in [("path", &granted.rdma), ("far end", &granted.remote)] {
        if let Some(end) = end {
            write_end(text, name, end)?;
        }
    }
    if let Some(buffer) = &granted.buffer {
        write!(text, "buffer     {} in pages of {}", format_size(buffer.bytes), format_size(buffer.page_bytes))?;
        if let Some(node) = buffer.numa_node {
            write!(text, " on NUMA node {node}")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

/// The block path: what is behind the target, then how commands go there.
fn write_target(text: &mut String, block: &BlockGranted) -> fmt::Result {
    write!(text, "target     ")?;
    if let Some(name) = &block.filesystem {
        write!(text, "file on {name}")?;
        if block.in_memory {
            write!(text, " (memory)")?;
        }
    }
    if let Some(device) = &block.device {
        let on = if block.filesystem.is_some() { " on " } else { "" };
        write!(text, "{on}{}", device.name)?;
        for part in [&device.driver, &device.transport, &device.model].into_iter().flatten() {
            write!(text, ", {part}")?;
        }
        if let Some(scheduler) = device.scheduler.as_ref().filter(|_| block.direct) {
            write!(text, ", scheduler {scheduler}")?;
        }
    }
    if block.filesystem.is_none() && block.device.is_none() {
        write!(text, "{}", block.target.display())?;
    }
    writeln!(text)?;
    write!(text, "command    {}, {}", block.command, block.waits_in.describe())?;
    if block.size_bytes > 0 {
        let cache = if block.direct { "direct" } else { "through the page cache" };
        write!(text, ", {cache}, {} from byte {}", format_size(block.size_bytes), block.offset_bytes)?;
    }
    if let Some(ring) = &block.uring {
        let registered = if ring.registered_file { "file and buffer registered" } else { "nothing registered" };
        write!(text, ", {registered}")?;
        for (on, name) in [(ring.iopoll, "IOPOLL"), (ring.sqpoll, "SQPOLL"), (ring.force_async, "forced to a worker")] {
            if on {
                write!(text, ", {name}")?;
            }
        }
    }
    if let Some(sg) = &block.sg {
        write!(text, ", SG_IO version {}", sg.version)?;
    }
    if let Some(nvme) = &block.nvme {
        write!(text, ", namespace {} by {}", nvme.namespace, nvme.via)?;
    }
    writeln!(text)
}

fn write_end(text: &mut String, name: &str, end: &RdmaGranted) -> fmt::Result {
    write!(text, "{name:<10} {}:{}, {}", end.device, end.port, end.transport.name())?;
    write!(text, " over {} (GID {}: {})", end.gid_type, end.gid_index, end.gid)?;
    write!(text, ", MTU {}", end.mtu_bytes)?;
    if let Some(depth) = end.read_depth {
        write!(text, ", read depth {depth}")?;
    }
    let inline = if end.inline { "payload inline" } else { "payload from memory" };
    writeln!(text, ", {inline}, by {}", end.connected_by)
}

#[cfg(test)]
mod tests {
    use super::{super::example, *};

    #[test]
    fn a_table_has_a_column_for_each_figure_and_a_dash_for_what_is_undefined() {
        let summary = Summary::of_sorted(&(1..=200).map(|n| n * 100).collect::<Vec<u64>>(), 1.0);
        let text = table(&[("latency", Some(&summary)), ("submit", None)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[1].contains("10.00 µs") && lines[1].contains('–'), "{text}");
        assert_eq!(lines[0].chars().count(), lines[1].chars().count());
    }

    /// The report of the example, as it was before there were drawings.
    const PLAIN: &str = "\
psync, 4 KiB, depth 1, before
1,000 commands, until the completion was seen, 50,000/s

                min       p50       p90       p99     p99.9    p99.99       max      mean    stddev
  latency   2000 ns  19.96 µs  34.36 µs  37.60 µs  37.93 µs         –  37.96 µs  19.98 µs  10.40 µs
   submit   1000 ns   1499 ns   1899 ns   1989 ns   1998 ns         –   1999 ns   1500 ns  288.8 ns
     wait   1000 ns  18.46 µs  32.47 µs  35.62 µs  35.93 µs         –  35.97 µs  18.48 µs  10.11 µs

The bytes were not checked: the run ended before they could be.

floor      31.00 ns p50: what this loop shows for no command at all (0.16 % of the p50 above)
clock      tsc, 20.00 ns a read
noise      0 gaps over 1 µs in 0.00 ns, largest 0.00 ns, 0.000 % of the time stolen
host       CPU 1, unknown kernel
";

    #[test]
    fn without_a_canvas_the_report_is_plain() {
        assert_eq!(render(&example::result(), None), PLAIN);
    }

    #[test]
    fn a_drawing_stands_behind_the_figures_and_changes_nothing_else() {
        let canvas = Canvas { columns: 80, unicode: true, color: true };
        let text = render(&example::result(), Some(&canvas));
        let begin = text[..text.find("from  commands").unwrap()].rfind("\n\n").unwrap() + 1;
        let end = begin + text[begin..].find("(log axis)\n").unwrap() + "(log axis)\n".len();
        assert_eq!(format!("{}{}", &text[..begin], &text[end..]), PLAIN, "{text}");
        assert!(text[..begin].ends_with(" 10.11 µs\n"), "{text}");
    }

    #[test]
    fn many_points_have_no_drawings_and_that_is_said_where_there_could_be_some() {
        let result = |points: usize| {
            let mut result = example::result();
            result.points = (0..points).flat_map(|_| example::result().points).collect();
            result
        };
        let canvas = Canvas { columns: 80, unicode: true, color: false };
        let drawn = |points| render(&result(points), Some(&canvas)).matches("(log axis)").count();
        assert_eq!([1, 2, 3, 4].map(drawn), [1, 2, 3, 0]);
        let said = "drawings   left out: there are more than 3 points\n";
        assert_eq!(render(&result(4), Some(&canvas)).replace(said, ""), render(&result(4), None));
        assert!(render(&result(4), Some(&canvas)).contains(said));
    }
}
