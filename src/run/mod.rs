//! The order of a run: open the output, pin, calibrate, listen to the machine, measure each point, check the clock again,
//! write.

mod ab;
mod block;
mod calibrate;
pub mod check;
mod compare;
mod dispatch;
pub mod engines;
mod figures;
mod fill;
mod instrument;
mod job;
mod moments;
mod monitor;
mod page;
mod quiet;
#[cfg(feature = "rdma")]
mod rdma;
mod recorder;
mod samples;
mod samples_file;
#[cfg(feature = "rdma")]
pub mod serve;
#[cfg(feature = "rdma")]
mod serve_report;
#[cfg(feature = "rdma")]
mod serve_screen;
mod session;
mod signals;
mod surroundings;
mod sweep;
mod table;
mod team;
mod warnings;
mod watch;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    error::{EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED, Error, Result},
    host::{CpuSet, Cpus, cpu},
    measure::Stop,
    probe::{Load, Plan},
    report::{OutputFile, RunResult, drawing::Canvas, fio, json, text},
};

pub use ab::{Ab, ab};
pub use calibrate::{Calibrate, calibrate};
pub use compare::{Compare, ComparisonFormat, Judging, LEVEL, MinEffect, compare};
pub use fill::{Fill, fill};
pub use page::page;
pub use signals::Signals;
pub use table::{Table, table};

use dispatch::Measured;
use job::{Job, Shared};
use samples_file::SampleFiles;
use session::{Session, Wanted};
use sweep::Sweep;
use watch::Watch;

/// What stdout shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// What stdout shows of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultFormat {
    /// As other documents are shown, too.
    Plain(Format),
    /// The layout of fio's own report.
    Fio,
}

impl Default for ResultFormat {
    fn default() -> Self {
        Self::Plain(Format::default())
    }
}

impl ResultFormat {
    /// The format of what is no single result, which fio has no layout for.
    ///
    /// # Errors
    /// [`Error::Usage`] for fio's.
    pub(crate) fn plain(self, of: &str) -> Result<Format> {
        match self {
            Self::Plain(format) => Ok(format),
            Self::Fio => {
                Err(Error::Usage(format!("--format fio: fio has no layout for {of}; there are text and json")))
            }
        }
    }
}

/// What is shown while a measurement goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Live {
    /// Nothing.
    #[default]
    Nothing,
    /// How far it is, where stderr is a terminal.
    Progress,
    /// Figures as well, and as lines where it is none.
    Figures,
}

/// What becomes of a result.
#[derive(Clone, Debug, Default)]
pub struct Reporting {
    /// What stdout shows.
    pub format: ResultFormat,
    /// Where the JSON result goes as well.
    pub output: Option<PathBuf>,
    /// Where the samples go, by the ending of the name.
    pub samples: Option<PathBuf>,
    /// A name for the run.
    pub label: Option<String>,
    /// Facts that the user adds.
    pub meta: BTreeMap<String, String>,
    /// Whether to go on with what an earlier call has left in `output`.
    pub resume: bool,
    /// What is shown meanwhile, on stderr.
    pub live: Live,
    /// What stdout allows to draw beside the text; `None` where nothing is to be drawn.
    pub canvas: Option<Canvas>,
}

/// What a run came to, once its result is written.
#[derive(Debug)]
pub struct Outcome {
    /// The text for stdout.
    pub stdout: String,
    /// What failed, if something did; a partial result has been written all the same.
    pub failure: Option<Error>,
    /// The exit code.
    pub exit_code: u8,
}

/// Carries out plans, one after the other, and writes one result.
///
/// # Errors
/// What kept the measurement from starting, or the result from being written. A failure after the first command is in
/// [`Outcome::failure`], beside a partial result.
pub fn measure(plans: &[Plan], reporting: &Reporting) -> Result<Outcome> {
    let mut sweep = Sweep::begin(plans, reporting.output.as_deref(), reporting.resume)?;
    let output = reporting.output.as_deref().map(OutputFile::open).transpose()?;
    let output_path = reporting.output.as_deref();
    let samples = reporting.samples.as_deref().map(|path| SampleFiles::of(path, plans, output_path)).transpose()?;
    let mut session = Session::begin()?;
    let (label, meta) = (reporting.label.clone(), reporting.meta.clone());
    let wanted = Wanted { label, meta, live: reporting.live, sweep: sweep.as_mut(), samples: samples.as_ref() };
    let (result, failure) = session.run(plans, wanted)?;
    finish(result, reporting, output, sweep.as_ref(), failure, session.stopped())
}

/// Measures the points of all plans until one fails, or a signal comes. The first `done` ones are not measured any more, and
/// each of the others is `stored` as soon as it is.
///
/// # Errors
/// What kept the very first point from being measured. Later, the points before are kept, and the failure stands beside.
fn measure_all(
    plans: &[Plan],
    done: usize,
    cpus: &Cpus,
    shared: &Shared,
    mut stored: impl FnMut(&Measured) -> Result<()>,
) -> Result<(Vec<Measured>, Option<Error>)> {
    let mut measured: Vec<Measured> = Vec::new();
    let points = plans.iter().flat_map(|plan| plan.points.iter().map(move |&load| (plan, load)));
    for (index, (plan, load)) in points.enumerate().skip(done) {
        let mut point = match measure_point(plan, load, index, cpus, shared) {
            Ok(point) => point,
            Err(error) if measured.is_empty() => return Err(error),
            Err(error) => return Ok((measured, Some(error))),
        };
        let failure = point.failure.take().or(stored(&point).err());
        measured.push(point);
        if failure.is_some() || shared.signals.received().is_some() {
            return Ok((measured, failure));
        }
    }
    Ok((measured, None))
}

/// Measures one point, the one with this index, with one job on this thread or with a team of them.
fn measure_point(plan: &Plan, load: Load, index: usize, cpus: &Cpus, shared: &Shared) -> Result<Measured> {
    let placed = place(plan, load.jobs, cpus)?;
    let watch = (shared.live == Live::Figures).then(Watch::new);
    let shared = &Shared { watch: watch.as_ref(), ..*shared };
    let file = shared.samples.map(|files| files.open(index)).transpose()?;
    let [alone] = placed.as_slice() else { return team::measure(plan, load, &placed, shared, file) };
    let mut measured = dispatch::measure(&Job::new(plan, load, alone, shared))?;
    if let (Some(file), Some(raw)) = (file, measured.raw.take()) {
        measured.note_samples(file.store(&[&raw.samples], plan, shared.clock.ticks_per_ns()).map(Some));
    }
    Ok(measured)
}

fn finish(
    result: RunResult,
    reporting: &Reporting,
    output: Option<OutputFile>,
    sweep: Option<&Sweep>,
    failure: Option<Error>,
    stop: Option<Stop>,
) -> Result<Outcome> {
    let document = match sweep {
        Some(sweep) => sweep.document(&result, failure.is_none() && stop.is_none())?,
        None => json::to_string(&result)
            .map_err(|source| Error::Output { path: reporting.output.clone().unwrap_or("<stdout>".into()), source })?,
    };
    let text = match reporting.format {
        ResultFormat::Plain(Format::Json) => document.clone(),
        ResultFormat::Plain(Format::Text) => text::render(&result, reporting.canvas.as_ref()),
        ResultFormat::Fio => fio::render(&result, std::process::id()),
    };
    Ok(finish_document(document, text, output, failure, stop))
}

/// Stores a document, and says how the run ended.
fn finish_document(
    document: String,
    stdout: String,
    output: Option<OutputFile>,
    failure: Option<Error>,
    stop: Option<Stop>,
) -> Outcome {
    // A result that cannot be stored is still shown.
    let stored = output.map_or(Ok(()), |output| output.commit(document.as_bytes()));
    let failure = failure.or(stored.err());
    let exit_code = match (&failure, stop) {
        (Some(error), _) => error.exit_code(),
        (None, Some(Stop::Terminate)) => EXIT_TERMINATED,
        (None, Some(Stop::HangUp)) => EXIT_HUNG_UP,
        (None, Some(_)) => EXIT_INTERRUPTED,
        (None, None) => 0,
    };
    Outcome { stdout, failure, exit_code }
}

/// Where the threads of a job run.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// Processor of the measuring thread.
    pub cpu: usize,
    /// Processor of the responder, where it is in this process.
    pub peer_cpu: usize,
    /// Processors for everything else; empty if there is no other.
    pub others: CpuSet,
}

/// Chooses processors for each job, and pins this thread, which is the measuring one where there is only one, to the first.
fn place(plan: &Plan, jobs: u32, cpus: &Cpus) -> Result<Vec<Placed>> {
    let placed = choose(plan, jobs, cpus)?;
    if let Some(first) = placed.first() {
        cpu::pin_current(first.cpu)?;
    }
    Ok(placed)
}

/// The processors that the plans will be measured on, as far as they can be had.
fn measuring_cpus(plans: &[Plan], cpus: &Cpus) -> CpuSet {
    let most = |plan: &Plan| plan.points.iter().map(|load| load.jobs).max().unwrap_or(1);
    let placed = plans.iter().filter_map(|plan| choose(plan, most(plan), cpus).ok());
    placed.flatten().map(|placed| placed.cpu).collect()
}

/// Chooses processors, near the device where there is one: each job gets its own as long as there are any, then they are
/// shared in turn.
fn choose(plan: &Plan, jobs: u32, cpus: &Cpus) -> Result<Vec<Placed>> {
    plan.cpus.iter().try_for_each(|&cpu| cpus.check_usable(cpu, "--cpu"))?;
    plan.peer_cpu.iter().try_for_each(|&cpu| cpus.check_usable(cpu, "--peer-cpu"))?;
    let near = dispatch::near_cpus(plan);
    let mut chosen = plan.cpus.clone();
    let mut taken: CpuSet = plan.peer_cpu.into_iter().collect();
    while plan.cpus.is_empty() && chosen.len() < jobs as usize {
        let Some(cpu) = cpus.choose(near.as_ref(), &taken) else { break };
        chosen.push(cpu);
        taken = taken.iter().chain([cpu]).collect();
    }
    if chosen.is_empty() {
        chosen.push(cpus.choose(None, &CpuSet::default()).unwrap_or(0));
    }
    let of_jobs: Vec<usize> = chosen.iter().copied().cycle().take(jobs as usize).collect();
    let taken: CpuSet = of_jobs.iter().copied().collect();
    let peer_cpu = plan.peer_cpu.or_else(|| cpus.choose(near.as_ref(), &taken));
    let others = cpus.usable().without(&taken);
    let placed = |cpu| Placed { cpu, peer_cpu: peer_cpu.unwrap_or(cpu), others: others.clone() };
    Ok(of_jobs.into_iter().map(placed).collect())
}

/// RFC 3339 in UTC, to the second. The civil date is Howard Hinnant's `civil_from_days`.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn timestamps_are_rfc_3339() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_796_083_199), "2026-11-30T23:59:59Z");
    }
}
