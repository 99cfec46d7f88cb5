//! `lat-probe ab`: makes a side, measures it, makes the other, and so on in random blocks, until the verdict or the end.

mod hook;
mod order;

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use self::hook::Place;
use super::{
    Format, Outcome, Reporting,
    compare::{self, Judging},
    finish_document,
    session::Session,
    timestamp,
};
use crate::{
    error::{EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED, Error, Result},
    measure::Stop,
    probe::Plan,
    report::{
        OutputFile,
        comparison::Comparison,
        comparison_text, json, junit,
        series::{Making, SERIES_SCHEMA, Series, Taken},
    },
    stats::Verdict,
    units::{format_bytes, format_ns},
};

/// Error that the looks of a series may spend, as parts of what all of it may: two before the end, and the last one. Each
/// is held against its own part, so that all of them together err no more often than one would (K. K. G. Lan and D. L.
/// DeMets, "Discrete Sequential Boundaries for Clinical Trials", Biometrika 70, 1983, with a step function).
const LOOKS: [(f64, f64); 3] = [(0.5, 0.2), (0.75, 0.3), (1.0, 0.5)];

/// What to compare.
#[derive(Debug)]
pub struct Ab {
    /// The sides and how they are made; the first one is what the others are compared with.
    pub sides: Vec<Making>,
    /// Rounds a side.
    pub rounds: u64,
    /// Run before each measurement, after the side was made.
    pub before: Option<String>,
    /// Run after each measurement.
    pub after: Option<String>,
    /// A wait before each measurement.
    pub settle: Duration,
    /// Whether a series in `output` is gone on with.
    pub resume: bool,
    /// Whether to stop when the verdict is settled.
    pub until_settled: bool,
    /// No round is begun after this time.
    pub time_budget: Option<Duration>,
    /// How figures are judged.
    pub judging: Judging,
    /// Where the comparison goes as JSON.
    pub comparison: Option<PathBuf>,
    /// Where a JUnit report goes.
    pub junit: Option<PathBuf>,
}

/// Carries out a series. The rounds are in `reporting.output` after each of them.
///
/// # Errors
/// [`Error::Usage`]; [`Error::Hook`], what kept a round from being measured, [`Error::Output`]: the rounds before are kept.
pub fn ab(options: &Ab, plans: &[Plan], reporting: &Reporting) -> Result<Outcome> {
    check(options)?;
    let path = reporting.output.as_deref().ok_or_else(|| Error::usage("ab needs --output FILE for its rounds"))?;
    let mut session = Session::begin()?;
    let mut series = begin(options, plans, path)?;
    let outputs = [options.comparison.as_deref(), options.junit.as_deref()];
    let [comparison_file, junit_file] = outputs.map(|path| path.map(OutputFile::open).transpose());
    let (comparison_file, junit_file) = (comparison_file?, junit_file?);
    let run = Run { options, plans, reporting, path, points: points(plans) };
    let ended = run.rounds(&mut session, &mut series);
    if let Err(Ended::Failed(error)) = ended {
        let advice = format!("{} rounds are kept in {}; go on with --resume", series.rounds.len(), path.display());
        let _ = writeln!(std::io::stderr(), "lat-probe: {advice}");
        return Err(error);
    }
    let (level, stop) = match ended {
        Ok(level) => (level, None),
        Err(Ended::Stopped(stop)) => (options.judging.level, Some(stop)),
        Err(Ended::Failed(error)) => return Err(error),
    };
    if series.complete_blocks() == 0 {
        let stdout = format!("no block is complete: {} rounds are kept in {}\n", series.rounds.len(), path.display());
        return Ok(Outcome { stdout, failure: None, exit_code: stop.map_or(compare::EXIT_INCONCLUSIVE, signal_code) });
    }
    let comparison = run.compare(&series, level)?;
    conclude(&comparison, reporting.format, comparison_file, junit_file, stop)
}

fn conclude(
    comparison: &Comparison,
    format: Format,
    comparison_file: Option<OutputFile>,
    junit_file: Option<OutputFile>,
    stop: Option<Stop>,
) -> Result<Outcome> {
    let document = json::to_string(comparison).map_err(|source| Error::Output { path: "<stdout>".into(), source })?;
    let stdout = match format {
        Format::Json => document.clone(),
        Format::Text => comparison_text::text(comparison) + &comparison_text::sweep(comparison),
    };
    let mut outcome = finish_document(document, stdout, comparison_file, None, stop);
    if let Some(junit_file) = junit_file {
        let stored = junit_file.commit(junit::render(comparison).as_bytes());
        outcome.failure = outcome.failure.or(stored.err());
        outcome.exit_code = outcome.failure.as_ref().map_or(outcome.exit_code, Error::exit_code);
    }
    if outcome.failure.is_none() && stop.is_none() {
        outcome.exit_code = compare::exit_code(comparison);
    }
    Ok(outcome)
}

fn check(options: &Ab) -> Result<()> {
    if options.sides.len() < 2 {
        return Err(Error::usage("ab needs two sides: --a CMD and --b CMD, or --a CMD and --aa"));
    }
    for (index, side) in options.sides.iter().enumerate() {
        if options.sides[..index].iter().any(|other| other.name == side.name) {
            return Err(Error::usage(format!("--side {}: the name is taken", side.name)));
        }
    }
    if options.rounds == 0 || !options.rounds.is_multiple_of(2) {
        let rounds = options.rounds;
        return Err(Error::usage(format!(
            "--rounds {rounds}: an even number is needed, each block has two of each side"
        )));
    }
    Ok(())
}

/// A new series, or the one in the file.
fn begin(options: &Ab, plans: &[Plan], path: &Path) -> Result<Series> {
    let now = SystemTime::now();
    let wanted = Series {
        schema: SERIES_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_at: timestamp(now),
        // 53 bits, which every reader of JSON keeps.
        seed: now.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64) >> 11,
        sides: options.sides.clone(),
        measurements: plans.iter().map(Plan::facts).collect(),
        rounds: Vec::new(),
    };
    if options.resume {
        let found = Series::read(path)?;
        if !found.rounds.is_empty() {
            found.require_same(&wanted, path)?;
            return Ok(found);
        }
    }
    if !options.resume && path.is_file() && Series::read(path).is_ok_and(|found| !found.rounds.is_empty()) {
        let path = path.display();
        return Err(Error::usage(format!("{path}: there is a series already: --resume goes on with it, or remove it")));
    }
    wanted.store(path)?; // What cannot be written is found out before the first hook.
    Ok(wanted)
}

/// What will be measured, in a word for each point.
fn points(plans: &[Plan]) -> String {
    let of = |plan: &Plan| {
        let engine = plan.engine.to_string();
        let size =
            |bytes: &Option<u64>| bytes.map_or(engine.clone(), |bytes| format!("{engine}/{}", format_bytes(bytes)));
        plan.points.iter().map(size).collect::<Vec<_>>()
    };
    plans.iter().flat_map(of).collect::<Vec<_>>().join(",")
}

/// Why there are no more rounds.
enum Ended {
    Stopped(Stop),
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

struct Run<'a> {
    options: &'a Ab,
    plans: &'a [Plan],
    reporting: &'a Reporting,
    path: &'a Path,
    points: String,
}

impl Run<'_> {
    /// Takes the rounds that are left, and stores each. The level of the last look at them.
    fn rounds(&self, session: &mut Session, series: &mut Series) -> std::result::Result<f64, Ended> {
        let (began, all) = (Instant::now(), self.options.rounds / 2);
        let full = self.options.judging.level;
        let mut level = if self.options.until_settled { look_level(full, LOOKS[LOOKS.len() - 1].1) } else { full };
        let sides = series.sides.len();
        while series.complete_blocks() < all {
            if self.options.time_budget.is_some_and(|budget| began.elapsed() >= budget) {
                break;
            }
            let block = series.complete_blocks();
            let order = order::block(series.seed, block, sides);
            let side = order[series.rounds.len() % order.len()];
            self.round(session, series, block, side)?;
            if self.options.until_settled
                && series.rounds.len().is_multiple_of(order.len())
                && let Some(at) = look_after(series.complete_blocks(), all, full)
                && self.compare(series, at)?.verdict.is_some_and(|verdict| verdict != Verdict::Inconclusive)
            {
                level = at;
                break;
            }
        }
        Ok(level)
    }

    /// Makes a side, measures it and stores the round.
    fn round(
        &self,
        session: &mut Session,
        series: &mut Series,
        block: u64,
        side: usize,
    ) -> std::result::Result<(), Ended> {
        let making = series.sides[side].clone();
        let round = series.rounds.iter().filter(|taken| taken.side == making.name).count() as u64 + 1;
        let place = Place { side: &making.name, round, block: block + 1, points: &self.points };
        let cpus = session.cpus().usable().clone();
        let run_hook = |name, command: &str, session: &Session| {
            let ended = if command.is_empty() {
                Ok(())
            } else {
                hook::run(name, command, &place, &cpus, &|| session.stopped().is_some())
            };
            match (session.stopped(), ended) {
                (Some(stop), _) => Err(Ended::Stopped(stop)), // The hook may have failed of the same signal.
                (None, ended) => ended.map_err(Ended::from),
            }
        };
        run_hook("side", &making.command, session)?;
        run_hook("--before", self.options.before.as_deref().unwrap_or(""), session)?;
        self.settle(session)?;
        let mut meta = self.reporting.meta.clone();
        meta.extend(BTreeMap::from([
            ("side".to_string(), making.name.clone()),
            ("block".into(), (block + 1).to_string()),
        ]));
        let (result, failure) = session.run(self.plans, Some(making.name.clone()), meta, self.reporting.progress)?;
        if let Some(stop) = session.stopped() {
            return Err(Ended::Stopped(stop)); // What was measured of this round is not all of it.
        }
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        self.say(&making.name, round, &result);
        let result = serde_json::to_value(&result)
            .map_err(|error| Error::Output { path: self.path.into(), source: error.into() })?;
        series.rounds.push(Taken { block, side: making.name.clone(), result });
        series.store(self.path)?;
        run_hook("--after", self.options.after.as_deref().unwrap_or(""), session)
    }

    fn settle(&self, session: &Session) -> std::result::Result<(), Ended> {
        let until = Instant::now() + self.options.settle;
        loop {
            if let Some(stop) = session.stopped() {
                return Err(Ended::Stopped(stop));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    fn say(&self, side: &str, round: u64, result: &crate::report::RunResult) {
        if !self.reporting.progress {
            return;
        }
        let p50 = result.points.first().and_then(|point| point.latency_ns.percentiles.p50);
        let rounds = self.options.rounds;
        let _ = writeln!(std::io::stderr(), "{side} {round}/{rounds}: p50 {}", p50.map_or("–".into(), format_ns));
    }

    fn compare(&self, series: &Series, level: f64) -> Result<Comparison> {
        let sides = series.sides(&self.path.display().to_string())?;
        compare::of_sides(&sides, &Judging { level, ..self.options.judging.clone() })
    }
}

/// The level of a look that may spend a part of the error of all of them.
fn look_level(full: f64, part: f64) -> f64 {
    1.0 - (1.0 - full) * part
}

/// The level of the look that is due after a block, if one is.
fn look_after(blocks: u64, all: u64, full: f64) -> Option<f64> {
    let due = |&(share, part): &(f64, f64)| ((share * all as f64).ceil() as u64 == blocks).then_some(part);
    LOOKS.iter().rev().find_map(due).map(|part| look_level(full, part))
}

fn signal_code(stop: Stop) -> u8 {
    match stop {
        Stop::Terminate => EXIT_TERMINATED,
        Stop::HangUp => EXIT_HUNG_UP,
        _ => EXIT_INTERRUPTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::block::offsets::SplitMix, stats::Shift};

    #[test]
    fn looks_are_at_half_three_quarters_and_the_end() {
        let due: Vec<u64> = (1..=10).filter(|&blocks| look_after(blocks, 10, 0.95).is_some()).collect();
        assert_eq!(due, [5, 8, 10]);
        let spent: f64 = due.iter().filter_map(|&blocks| look_after(blocks, 10, 0.95)).map(|level| 1.0 - level).sum();
        assert!((spent - 0.05).abs() < 1e-9, "{spent}");
        // Where looks fall together, the last one counts, which may spend most.
        assert_eq!(look_after(1, 1, 0.95), Some(look_level(0.95, 0.5)));
    }

    #[test]
    fn a_series_that_looks_early_tells_equal_sides_apart_no_more_often_than_stated_and_stops_early_for_others() {
        let mut random = SplitMix(11);
        let mut normal = || (0..12).map(|_| (random.draw() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0;
        let (series, all) = (1000, 16);
        let mut run = |effect: f64| {
            let mut differences = Vec::new();
            for blocks in 1..=all {
                differences.push(normal() + effect);
                let Some(level) = look_after(blocks, all, 0.95) else { continue };
                let verdict = Shift::of_blocks(&differences, level).map(|shift| Verdict::of(&shift, 0.0));
                if verdict.is_some_and(|verdict| verdict != Verdict::Inconclusive) {
                    return (verdict, blocks);
                }
            }
            (None, all)
        };
        let alarms = (0..series).filter(|_| run(0.0).0.is_some()).count();
        // 5 %, and three standard deviations of a count of a thousand.
        assert!(alarms <= 50 + 21, "{alarms} of {series}");
        let found: Vec<_> = (0..series).map(|_| run(3.0)).collect();
        assert!(found.iter().filter(|(verdict, _)| *verdict == Some(Verdict::Slower)).count() >= 990);
        assert!(found.iter().filter(|(_, blocks)| *blocks == 8).count() >= 900, "it should have stopped at half");
    }
}
