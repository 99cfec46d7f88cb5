//! The result of `lat-probe calibrate`, `lat-probe.calibration/1`: what the instrument costs, and what the machine does.

use std::fmt::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    result::Tool,
    text::{table, write_quiet},
    warning::Warning,
};
use crate::{
    engine::EngineKind,
    host::{HostFacts, Quiet},
    measure::Noise,
    schema::{TIMESTAMP, added_later},
    stats::Summary,
    timing::{ClockFacts, Source},
    units::{format_count, format_ns},
};

/// Name and version of the schema.
pub const CALIBRATION_SCHEMA: &str = "lat-probe.calibration/1";

/// What the instrument costs on a machine, and what the machine does to it: `lat-probe calibrate`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = CALIBRATION_SCHEMA, extend("$id" = "urn:lat-probe:calibration-1"), transform = added_later(&["quiet"]))]
pub struct CalibrationReport {
    /// Name and version of this schema.
    #[schemars(extend("const" = CALIBRATION_SCHEMA))]
    pub schema: &'static str,
    /// The program.
    pub tool: Tool,
    /// When it began, RFC 3339, UTC.
    #[schemars(regex(pattern = TIMESTAMP))]
    pub started_at: String,
    /// The machine as far as it bears on latency. What it doesn't show is null.
    pub host: HostFacts,
    /// The processor that was measured on.
    pub cpu: usize,
    /// The clock that was granted, with its drift over all of the calibration.
    pub clock: ClockFacts,
    /// Reads of the clock.
    pub stamps: Stamps,
    /// How long a sleep of 1 µs takes, ns: what waiting by the timer instead of by polling would cost.
    pub sleep_ns: Summary,
    /// The shortest path through the loop of each engine that needs no device.
    pub floors: Vec<Floor>,
    /// Gaps in a spin on the measuring processor.
    pub noise: Noise,
    /// What `--quiet` did while it was measured; null or absent where it was not asked for. Each measure stands in one of
    /// the two lists.
    pub quiet: Option<Quiet>,
    /// Doubts about the result.
    pub warnings: Vec<Warning>,
}

/// Reads of the clock.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stamps {
    /// A start stamp and the stop stamp behind it, with nothing between, ns.
    pub pair_ns: Summary,
    /// The smallest step by which the clock was seen to move, ns.
    #[schemars(range(min = 0))]
    pub step_ns: f64,
    /// Pairs that were looked at for order.
    pub looked_at: u64,
    /// Pairs whose second stamp was below the first one.
    pub backwards: u64,
    /// The same between two processors that handed stamps to each other; null with a single processor.
    pub across: Option<Across>,
}

/// Order of stamps between two processors.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Across {
    /// The other processor.
    pub cpu: usize,
    /// Stamps that were handed over.
    pub looked_at: u64,
    /// Stamps taken after one was received that were below it.
    pub backwards: u64,
    /// The least time from a stamp to the one taken after it was received, ns.
    #[schemars(range(min = 0))]
    pub least_ns: f64,
}

/// The shortest path through one engine's loop.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Floor {
    /// The engine.
    #[schemars(with = "String", extend("enum" = ["psync", "pvsync2", "libaio", "io-uring", "null"]))]
    pub engine: EngineKind,
    /// What its command was.
    pub command: &'static str,
    /// Latency, ns; null where the engine cannot run here.
    pub latency_ns: Option<Summary>,
    /// Why it cannot.
    pub unavailable: Option<String>,
}

/// Writes the report for people.
pub fn render(report: &CalibrationReport) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_report(&mut text, report);
    text
}

fn write_report(text: &mut String, report: &CalibrationReport) -> fmt::Result {
    let clock = &report.clock;
    let source = if clock.source == Source::Tsc { "tsc" } else { "monotonic" };
    write!(
        text,
        "clock      {source}, {:.6} ticks a ns, steps of {}",
        clock.ticks_per_ns,
        format_ns(report.stamps.step_ns)
    )?;
    for (name, value) in [("calibration error", clock.calibration_error_ppm), ("drift", clock.drift_ppm)] {
        if let Some(ppm) = value {
            write!(text, ", {name} {ppm:.1} ppm")?;
        }
    }
    let Stamps { looked_at, backwards, across, .. } = &report.stamps;
    write!(
        text,
        "\norder      {backwards} of {} pairs went backwards on CPU {}",
        format_count(*looked_at),
        report.cpu
    )?;
    match across {
        Some(across) => {
            let (looked_at, least) = (format_count(across.looked_at), format_ns(across.least_ns));
            let Across { cpu, backwards, .. } = across;
            writeln!(text, ", {backwards} of {looked_at} to and from CPU {cpu} (the closest: {least})")?;
        }
        None => writeln!(text, "; there is no other CPU to compare with")?,
    }
    let noise = &report.noise;
    let (window, longest) = (format_ns(noise.window_ns), format_ns(noise.max_gap_ns));
    let stolen = 100.0 * noise.stolen_fraction;
    writeln!(
        text,
        "noise      {} gaps over 1 µs in {window}, longest {longest}, {stolen:.3} % of the time",
        noise.gaps_over_1us
    )?;
    for (lower, count) in &noise.gaps {
        writeln!(text, "           {count:>9} from {} up to twice that", format_ns(*lower))?;
    }
    write_quiet(text, report.quiet.as_ref())?;
    writeln!(text)?;
    let floors: Vec<_> = report.floors.iter().map(|floor| (floor.engine.name(), floor.latency_ns.as_ref())).collect();
    let mut rows = vec![("stamps", Some(&report.stamps.pair_ns))];
    rows.extend(floors);
    rows.push(("sleep 1us", Some(&report.sleep_ns)));
    text.push_str(&table(&rows));
    writeln!(text, "\nstamps     a start and a stop stamp, with nothing between")?;
    for Floor { engine, command, unavailable, .. } in &report.floors {
        match unavailable {
            Some(why) => writeln!(text, "{:<10} cannot run here: {why}", engine.name())?,
            None => writeln!(text, "{:<10} {command}", engine.name())?,
        }
    }
    for warning in &report.warnings {
        writeln!(text, "warning    {} [{}]", warning.message, warning.code)?;
    }
    Ok(())
}
