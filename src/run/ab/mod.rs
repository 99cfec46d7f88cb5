//! `lat-probe ab`: makes a side, measures it, makes the other, and so on in random blocks, until the verdict or the end.

mod hook;
mod looks;
mod order;

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use self::{hook::Place, looks::Looks};
use super::{
    Format, Live, Outcome, Reporting,
    compare::{self, Judging, conclude},
    session::{Session, Wanted},
    timestamp,
};
use crate::{
    error::{EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED, Error, Result},
    measure::Stop,
    probe::{Load, Plan},
    report::{
        OutputFile,
        comparison::Comparison,
        comparison_text,
        series::{Making, SERIES_SCHEMA, Series, Taken},
    },
    stats::Verdict,
    units::{format_bytes, format_ns},
};

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

/// Carries out a series. The rounds are in `reporting.output`, if there is one, after each of them.
///
/// # Errors
/// [`Error::Usage`]; [`Error::Hook`], what kept a round from being measured, [`Error::Output`]: the rounds before are kept.
pub fn ab(options: &Ab, plans: &[Plan], reporting: &Reporting) -> Result<Outcome> {
    check(options)?;
    if reporting.label.is_some() {
        return Err(Error::usage(
            "--label: each round of ab has the name of its side; --meta KEY=VALUE is kept as well",
        ));
    }
    if reporting.samples.is_some() {
        return Err(Error::usage(
            "--samples: ab keeps the results of its rounds; measure by itself what is to be looked at",
        ));
    }
    let format = reporting.format.plain("a comparison")?;
    let path = reporting.output.as_deref();
    let mut session = Session::begin()?;
    let mut series = begin(options, plans, path)?;
    let outputs = [options.comparison.as_deref(), options.junit.as_deref()];
    let [comparison_file, junit_file] = outputs.map(|path| path.map(OutputFile::open).transpose());
    let (comparison_file, junit_file) = (comparison_file?, junit_file?);
    let run = Run { options, plans, reporting, path, points: points(plans) };
    let ended = run.rounds(&mut session, &mut series);
    if let Err(Ended::Failed(error)) = ended {
        let _ = writeln!(std::io::stderr(), "lat-probe: {}", kept(&series, path));
        return Err(error);
    }
    let (level, stop) = match ended {
        Ok(level) => (level, None),
        Err(Ended::Stopped(stop)) => {
            (run.looks().map_or(options.judging.level, |looks| looks.level_left(&series)), Some(stop))
        }
        Err(Ended::Failed(error)) => return Err(error),
    };
    if series.complete_blocks() == 0 {
        let stdout = format!("no block is complete: {}\n", kept(&series, path));
        return Ok(Outcome { stdout, failure: None, exit_code: stop.map_or(conclude::EXIT_INCONCLUSIVE, signal_code) });
    }
    let comparison = run.compare(&series, level)?;
    let show = |document: &str| match format {
        Format::Json => document.to_string(),
        Format::Text => comparison_text::text(&comparison) + &comparison_text::sweep(&comparison),
    };
    conclude::conclude(&comparison, show, comparison_file, junit_file, stop)
}

fn kept(series: &Series, path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("{} rounds are kept in {}; go on with --resume", series.rounds.len(), path.display()),
        None => "no round is kept, since there was no --output FILE".into(),
    }
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
fn begin(options: &Ab, plans: &[Plan], path: Option<&Path>) -> Result<Series> {
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
    let Some(path) = path else {
        if options.resume {
            return Err(Error::usage("--resume needs the --output FILE of the series"));
        }
        return Ok(wanted);
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
        let word = |load: &Load| {
            let mut word = plan.engine.to_string();
            let mut add = |text: String| word.push_str(&text);
            load.bs_bytes.into_iter().for_each(|bytes| add(format!("/{}", format_bytes(bytes))));
            (load.qd > 1).then(|| add(format!("/qd{}", load.qd)));
            (load.jobs > 1).then(|| add(format!("/jobs{}", load.jobs)));
            load.rate.into_iter().for_each(|rate| add(format!("/rate{rate}")));
            word
        };
        plan.points.iter().map(word).collect::<Vec<_>>()
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
    path: Option<&'a Path>,
    points: String,
}

impl Run<'_> {
    /// Takes the rounds that are left, and stores each. The level at which the series is to be judged.
    fn rounds(&self, session: &mut Session, series: &mut Series) -> std::result::Result<f64, Ended> {
        let (began, looks) = (Instant::now(), self.looks());
        while series.complete_blocks() < self.options.rounds / 2 {
            let block = series.complete_blocks();
            let order = order::block(series.seed, block, series.sides.len());
            let next = series.rounds.len() % order.len();
            // Before a block, so that a series that is taken up again is looked at as well.
            if let Some(level) = looks.as_ref().filter(|_| next == 0).and_then(|looks| looks.level_after(block))
                && self.compare(series, level)?.verdict.is_some_and(|verdict| verdict != Verdict::Inconclusive)
            {
                return Ok(level);
            }
            if self.options.time_budget.is_some_and(|budget| began.elapsed() >= budget) {
                break;
            }
            self.round(session, series, block, order[next])?;
        }
        Ok(looks.map_or(self.options.judging.level, |looks| looks.level_left(series)))
    }

    /// When the series is looked at, if it may end early.
    fn looks(&self) -> Option<Looks> {
        let Ab { sides, judging, rounds, until_settled, .. } = self.options;
        let points: usize = self.plans.iter().map(|plan| plan.points.len()).sum();
        let asked = sides.iter().skip(1).filter(|side| !side.control).count().max(1);
        until_settled.then(|| Looks::of(rounds / 2, judging.level, points * asked * judging.figures.len()))
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
        let (label, live) = (Some(making.name.clone()), self.reporting.live);
        let (result, failure) = session.run(self.plans, Wanted { label, meta, live, ..Wanted::default() })?;
        if let Some(stop) = session.stopped() {
            return Err(Ended::Stopped(stop)); // What was measured of this round is not all of it.
        }
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        self.say(&making.name, round, &result);
        let origin = self.path.unwrap_or(Path::new("<series>"));
        let result = serde_json::to_value(&result)
            .map_err(|error| Error::Output { path: origin.into(), source: error.into() })?;
        series.rounds.push(Taken { block, side: making.name.clone(), result });
        self.path.map_or(Ok(()), |path| series.store(path))?;
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
        if self.reporting.live == Live::Nothing {
            return;
        }
        let p50 = result.points.first().and_then(|point| point.latency_ns.percentiles.p50);
        let rounds = self.options.rounds;
        let _ = writeln!(std::io::stderr(), "{side} {round}/{rounds}: p50 {}", p50.map_or("–".into(), format_ns));
    }

    fn compare(&self, series: &Series, level: f64) -> Result<Comparison> {
        let sides = series.sides(&self.path.map_or("series".into(), |path| path.display().to_string()))?;
        compare::of_sides(&sides, &Judging { level, ..self.options.judging.clone() })
    }
}

fn signal_code(stop: Stop) -> u8 {
    match stop {
        Stop::Terminate => EXIT_TERMINATED,
        Stop::HangUp => EXIT_HUNG_UP,
        _ => EXIT_INTERRUPTED,
    }
}
