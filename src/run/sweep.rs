//! A result of several points, stored after each of them, and taken up again where it was left.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::dispatch::Measured;
use crate::{
    error::{Error, Result},
    probe::Plan,
    report::{
        OutputFile, RunResult, json, read,
        result::SCHEMA,
        sweep::{SweepSession, SweepUse},
    },
};

/// A result on its way to its file.
pub(super) struct Sweep {
    path: PathBuf,
    measurements: Vec<Value>,
    /// Points that are in the file.
    points: Vec<Value>,
    /// How many of them were measured by earlier calls, each with its own instrument.
    sessions: Vec<Value>,
}

impl Sweep {
    /// Begins with what is in the file if it is to be taken up again. `None` where there is no file that could be replaced
    /// after each point, and nothing to take up.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file is of other measurements, or already complete.
    pub fn begin(plans: &[Plan], output: Option<&Path>, resume: bool) -> Result<Option<Self>> {
        let several = plans.iter().map(|plan| plan.points.len()).sum::<usize>() > 1;
        let Some(path) = output else {
            return if resume { Err(Error::usage("--resume goes on with the file of --output")) } else { Ok(None) };
        };
        let measurements: Vec<Value> = plans.iter().map(Plan::facts).collect();
        let mut sweep = Self { path: path.into(), measurements, points: Vec::new(), sessions: Vec::new() };
        if resume && path.exists() {
            sweep.take_up()?;
        }
        let replaceable = path.is_file() || !path.exists();
        Ok((several && replaceable || resume).then_some(sweep))
    }

    fn take_up(&mut self) -> Result<()> {
        let shown = self.path.display().to_string();
        let mut document = read::parse(&self.path, &shown)?;
        read::require_schema(&shown, &document, SCHEMA)?;
        if document["sweep"]["measurements"] != json!(self.measurements) {
            return Err(Error::Usage(format!(
                "{shown}: is of other measurements or options than these: repeat the command that began it"
            )));
        }
        if document["sweep"]["complete"] == json!(true) {
            return Err(Error::Usage(format!("{shown}: is complete: there is nothing to go on with")));
        }
        let points = document["points"].as_array_mut().map(std::mem::take).unwrap_or_default();
        // A point that was interrupted is measured again.
        self.points = points.into_iter().take_while(|point| point["partial"] == json!(false)).collect();
        self.sessions = document["sweep"]["sessions"].as_array().cloned().unwrap_or_default();
        Ok(())
    }

    /// Points that need not be measured any more.
    pub fn done(&self) -> usize {
        self.points.len()
    }

    /// The measurements begin, as `header` says.
    pub fn enter(&mut self, header: &RunResult) {
        self.sessions.push(json!(SweepSession {
            started_at: header.started_at.clone(),
            first_point: self.points.len(),
            clock: header.clock.clone(),
            instrument: header.instrument.clone(),
        }));
    }

    /// A point is measured: it is in the file after this.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn add(&mut self, header: &RunResult, measured: &Measured) -> Result<()> {
        let point = serde_json::to_value(&measured.point).map_err(|error| self.unwritable(error.into()))?;
        self.points.push(point);
        let document = self.document(header, false)?;
        OutputFile::open(&self.path)?.commit(document.as_bytes())
    }

    /// The whole document: all points, and what else is in `result`.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn document(&self, result: &RunResult, complete: bool) -> Result<String> {
        let mut document = serde_json::to_value(result).map_err(|error| self.unwritable(error.into()))?;
        document["points"] = json!(self.points);
        let (measurements, sessions) = (self.measurements.clone(), self.sessions.clone());
        document["sweep"] = json!(SweepUse { measurements, sessions, complete });
        json::to_string(&document).map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: std::io::Error) -> Error {
        Error::Output { path: self.path.clone(), source }
    }
}
