//! `--samples FILE`: every sample of a point, in a file that its entry in the result names.

use std::path::{Path, PathBuf};

use super::{figures, samples::Samples};
use crate::{
    error::{Error, Result},
    probe::Plan,
    report::{
        OutputFile,
        samples::{SampleFormat, of_point},
    },
};

/// Where the samples of all points go.
pub(super) struct SampleFiles {
    path: PathBuf,
    format: SampleFormat,
    points: usize,
}

/// Where those of one point go; opened before it is measured.
pub(super) struct SampleFile {
    path: PathBuf,
    format: SampleFormat,
    file: OutputFile,
}

impl SampleFiles {
    /// Of all points of the plans. `output` is the file of the result, which must be another one.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown ending, and for more samples than are kept.
    pub fn of(path: &Path, plans: &[Plan], output: Option<&Path>) -> Result<Self> {
        let format = SampleFormat::of(path)?;
        if output == Some(path) {
            return Err(Error::Usage(format!("--samples and --output both name {}", path.display())));
        }
        for plan in plans {
            if let Some(load) = plan.points.iter().find(|load| plan.kept(load) == 0) {
                let commands = plan.count.unwrap_or(u64::MAX).saturating_mul(load.jobs.into());
                let most = Plan::MOST_KEPT;
                return Err(Error::Usage(format!(
                    "--samples: {commands} commands of a point are more than the {most} whose samples are kept; \
                     use a lower --count, or leave --samples out"
                )));
            }
        }
        Ok(Self { path: path.into(), format, points: plans.iter().map(|plan| plan.points.len()).sum() })
    }

    /// Opens the file of a point.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn open(&self, index: usize) -> Result<SampleFile> {
        let path = of_point(&self.path, index, self.points);
        Ok(SampleFile { file: OutputFile::open(&path)?, path, format: self.format })
    }
}

impl SampleFile {
    /// Writes the samples of all jobs of a point, and returns the name of the file.
    ///
    /// # Errors
    /// [`Error::Output`], also where a run that only a time limited went on for longer than samples are kept. The old file is
    /// then still what it was.
    pub fn store(self, jobs: &[&Samples], plan: &Plan, ticks_per_ns: f64) -> Result<String> {
        let Some(extents) = jobs.iter().map(|samples| samples.extent()).collect::<Option<Vec<_>>>() else {
            let why = "not written: there were more commands than samples are kept, so they are in the result as a digest; \
                       give a --count or a shorter --duration";
            return Err(Error::Output { path: self.path, source: std::io::Error::other(why) });
        };
        let count = extents.iter().map(|(count, _)| count).sum();
        let origin = extents.iter().filter_map(|&(_, first)| first).min().unwrap_or(0);
        let scale = figures::scale(plan, ticks_per_ns);
        let mut rows = (0..)
            .zip(jobs.iter().copied())
            .flat_map(|(job, samples): (u32, _)| Samples::rows(samples, job, origin, scale, plan.phases));
        self.file.commit_with(|to| self.format.write(to, &mut rows, count))?;
        Ok(self.path.display().to_string())
    }
}
