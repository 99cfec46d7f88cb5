//! fio's job files, as they are. Each job becomes the options of a measurement, or a server. What cannot be carried over is
//! an error with its line; what differs but leaves the figures alone, and what the reader of a figure should know, is a
//! note.
//!
//! What fio does was found in its manual, in the sources of its `rdma` engine, and by asking fio 3.33. Whether a value makes
//! sense to an engine is decided where the command line's is.

mod block;
mod engine;
mod job;
mod keys;
mod known;
mod parse;
mod rdma;
mod values;

use std::{fs, path::Path};

pub use job::Job;
pub use parse::Place;

use crate::{
    error::{Error, Result},
    sys::memory::page_bytes,
};
use parse::{Outside, Section};

/// Whether a file is a job file rather than a probe file: by the end of its name, or because the first thing in it is a
/// section.
pub fn is_job_file(path: &Path, text: &str) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '#']));
    matches!(ending, Some("fio" | "job" | "ini")) || lines.next().is_some_and(|line| line.starts_with('['))
}

/// Reads the jobs of a file, or the one named `section`.
///
/// # Errors
/// [`Error::Usage`] with file, line and what was expected; jobs that cannot be carried out one after the other.
pub fn read(path: &Path, section: Option<&str>) -> Result<Vec<Job>> {
    let outside = Outside {
        read: &|path| fs::read_to_string(path),
        variable: &|name| std::env::var(name).ok(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
        page_bytes: page_bytes() as u64,
    };
    jobs(path, section, &outside).map_err(Error::Usage)
}

fn jobs(path: &Path, section: Option<&str>, outside: &Outside) -> std::result::Result<Vec<Job>, String> {
    let all = parse::sections(path, outside)?;
    let wanted: Vec<&Section> = all.iter().filter(|found| section.is_none_or(|name| name == found.name)).collect();
    if wanted.is_empty() {
        let names = all.iter().map(|section| section.name.as_str()).collect::<Vec<_>>().join(", ");
        let section = section.unwrap_or_default();
        return Err(format!("{}: --section {section}: one of these was expected: {names}", path.display()));
    }
    let mut jobs: Vec<Job> = Vec::with_capacity(wanted.len());
    for section in wanted {
        let before = jobs.last().map(|job| job.name.as_str());
        jobs.push(job::job(section, before)?);
    }
    one_after_the_other(&jobs)?;
    Ok(jobs)
}

/// Refuses jobs that fio would carry out at the same time, and both ends of a connection in one run.
fn one_after_the_other(jobs: &[Job]) -> std::result::Result<(), String> {
    let Some(first) = jobs.first() else { return Ok(()) };
    if let Some(other) = jobs.iter().find(|job| job.serve.is_some() != first.serve.is_some()) {
        let (server, client) = if first.serve.is_some() { (first, other) } else { (other, first) };
        return Err(format!(
            "{}: [{}] is a server and [{}] is none: carry out each on its own host, or in its own terminal, with \
             --section NAME",
            other.place, server.name, client.name
        ));
    }
    match jobs.iter().skip(1).find(|job| !job.waits) {
        None => Ok(()),
        Some(later) => Err(format!(
            "{}: [{}] would run at the same time as the job before it: lat-probe carries out one after the other. Add \
             `stonewall` to it, or choose one with --section NAME",
            later.place, later.name
        )),
    }
}

#[cfg(test)]
mod tests;
