//! What a report says about load that is more than one command after the other.

use std::fmt::{self, Write};

use super::{
    result::{PaceUse, Point},
    text::table,
};
use crate::{
    engine::Arrivals,
    units::{format_count, format_ns},
};

/// Jobs, and what was wanted of each, for the headline.
pub(super) fn write_headline(text: &mut String, point: &Point) -> fmt::Result {
    let config = &point.config;
    write!(text, ", depth {}", config.qd)?;
    if config.jobs > 1 {
        write!(text, ", {} jobs", config.jobs)?;
    }
    if let Some(rate) = config.rate_per_s {
        write!(text, ", {}/s{}", format_count(rate), if config.jobs > 1 { " each" } else { "" })?;
    }
    Ok(())
}

/// The timetable, the window, and each job, where there are such.
pub(super) fn write(text: &mut String, point: &Point) -> fmt::Result {
    if let Some(pace) = &point.pace {
        write_pace(text, pace)?;
    }
    if let Some(depth) = &point.depth {
        let all: u64 = depth.outstanding.iter().map(|class| class.commands).sum();
        let share = |commands: u64| 100.0 * commands as f64 / all.max(1) as f64;
        let classes = depth.outstanding.iter().map(|class| match (class.lower, class.upper) {
            (lower, upper) if lower == upper => format!("{lower} ({:.1} %)", share(class.commands)),
            (lower, upper) => format!("{lower}–{upper} ({:.1} %)", share(class.commands)),
        });
        let classes: Vec<_> = classes.collect();
        let looks: u64 = depth.completed_batch.iter().map(|class| class.looks).sum();
        let found: u64 = depth.completed_batch.iter().map(|class| class.size * class.looks).sum();
        write!(text, "\nIn flight: {}; completions at a time: ", classes.join(", "))?;
        write!(text, "{:.1} on average", found as f64 / looks.max(1) as f64)?;
        match point.memory.bytes_per_outstanding {
            Some(bytes) => writeln!(text, "; memory for each: {} bytes.", format_count(bytes))?,
            None => writeln!(text, ".")?,
        }
    }
    let Some(rows) = &point.per_job else { return Ok(()) };
    let names: Vec<_> = rows.iter().enumerate().map(|(index, _)| format!("job {index}")).collect();
    let rows: Vec<_> = names.iter().zip(rows).map(|(name, row)| (name.as_str(), Some(&row.latency_ns))).collect();
    text.push('\n');
    text.push_str(&table(&rows));
    Ok(())
}

fn write_pace(text: &mut String, pace: &PaceUse) -> fmt::Result {
    let how = match pace.arrivals {
        Arrivals::Fixed => "evenly",
        Arrivals::Poisson => "at random",
    };
    write!(text, "\nDue {how}, {}/s; handed over late by ", format_count(pace.rate_per_s))?;
    let late = |value: Option<f64>| value.map_or_else(|| "–".into(), format_ns);
    writeln!(text, "{} p50, {} max.", late(pace.late_ns.percentiles.p50), late(pace.late_ns.max))
}
