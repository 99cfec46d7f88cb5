//! `lat-probe run FILE`: the measurements of a probe file or of one of fio's job files, each as if it had been typed.
//! Options behind the file's name take the place of the file's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, parser::ValueSource};

use super::{args::OutputArgs, explain, options::MeasureArgs, spec::spec};
use crate::{
    error::{Error, Result},
    probe::{Options, Plan, ProbeFile, fio},
};

/// A file as it was read, with what was typed behind its name.
pub(super) struct File {
    pub path: PathBuf,
    /// What is measured, in a line.
    pub title: String,
    /// Commands that make what the measurements need.
    pub setup: Vec<String>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// A measurement of a file, or a server for one.
pub(super) struct Step {
    /// What it is in its file: the beginning of every message about it.
    pub from: String,
    pub options: Options,
    /// Where to serve instead; the options are those of `serve` then.
    pub serve: Option<String>,
    /// What is not as the file has it, each with its place.
    pub notes: Vec<String>,
}

/// What a server can be told behind the file's name; the options of a measurement mean nothing to it.
const FOR_SERVERS: [&str; 4] = ["cpu", "device", "gid-index", "token-file"];

/// Options that exclude each other: one that was typed puts out the other one of the file.
const EXCLUSIVE: [(&str, &str); 2] = [("direct", "buffered"), ("buffered", "direct")];

/// The options of a measurement.
pub(super) fn definition() -> Command {
    MeasureArgs::augment_args(Command::new("measurement").no_binary_name(true))
}

/// The option of a measurement with this name. What is done with the result belongs to the run.
fn option<'a>(definition: &'a Command, name: &str) -> Option<&'a Arg> {
    let output = OutputArgs::augment_args(Command::new("output"));
    let found = definition.get_arguments().find(|argument| argument.get_long() == Some(name))?;
    (!output.get_arguments().any(|argument| argument.get_id() == found.get_id())).then_some(found)
}

/// Whether an option is typed without a value.
pub(super) fn is_switch(definition: &Command, name: &str, value: &str) -> bool {
    let action = definition.get_arguments().find(|argument| argument.get_long() == Some(name)).map(Arg::get_action);
    action.map_or(value == "true", |action| matches!(action, ArgAction::SetTrue))
}

impl File {
    /// Reads a file, of which only one section may be wanted.
    ///
    /// # Errors
    /// [`Error::Usage`] with the file, and the line or the option that is wrong.
    pub fn read(path: &Path, section: Option<&str>, matches: &ArgMatches) -> Result<Self> {
        let definition = definition();
        let mut file = Self::as_written(path, section, &definition)?;
        file.override_by(&typed_behind(&definition, matches), matches)?;
        for step in &mut file.steps {
            step.say_what_is_missing();
        }
        Ok(file)
    }

    fn as_written(path: &Path, section: Option<&str>, definition: &Command) -> Result<Self> {
        let read = fs::read_to_string(path);
        let text = read.map_err(|source| Error::call(path.display().to_string(), "read", source, ""))?;
        if fio::is_job_file(path, &text) {
            return Ok(Self::of_jobs(path, fio::read(path, section)?));
        }
        if section.is_some() {
            return Err(Error::Usage(format!("--section: {} is no job file of fio", path.display())));
        }
        let file = ProbeFile::read(path, &|name| option(definition, name).is_some())?;
        let step = |(index, options)| Step {
            from: format!("{}: measurement {}", path.display(), index + 1),
            options,
            serve: None,
            notes: Vec::new(),
        };
        Ok(Self {
            path: path.into(),
            title: file.title,
            setup: file.setup,
            steps: file.measurements.into_iter().enumerate().map(step).collect(),
        })
    }

    fn of_jobs(path: &Path, jobs: Vec<fio::Job>) -> Self {
        let titles: Vec<_> =
            jobs.iter().map(|job| job.description.clone().unwrap_or_else(|| job.name.clone())).collect();
        let step = |job: fio::Job| Step {
            from: format!("{}: [{}]", job.place, job.name),
            options: job.options,
            serve: job.serve,
            notes: job.notes,
        };
        let steps = jobs.into_iter().map(step).collect();
        Self { path: path.into(), title: titles.join(", "), setup: Vec::new(), steps }
    }

    fn override_by(&mut self, typed: &Options, matches: &ArgMatches) -> Result<()> {
        for step in &mut self.steps {
            match step.serve {
                Some(_) => step.serve_with(typed, matches)?,
                None => step.measure_with(typed),
            }
        }
        // What may be destroyed is typed once for all jobs; those that only read have nothing to do with it.
        if typed.contains_key("allow-write") && self.steps.iter().any(Step::writes) {
            for step in self.steps.iter_mut().filter(|step| !step.writes()) {
                step.options.remove("allow-write");
            }
        }
        Ok(())
    }

    /// The servers, if that is what the file is about.
    pub fn servers(&self) -> Vec<&Step> {
        self.steps.iter().filter(|step| step.serve.is_some()).collect()
    }

    /// The plans of the measurements, in order.
    ///
    /// # Errors
    /// [`Error::Usage`] with the measurement and the option that are wrong.
    pub fn plans(&self) -> Result<Vec<Plan>> {
        self.steps.iter().map(Step::plan).collect()
    }

    /// What would be done, as commands that can be typed.
    pub fn explain(&self) -> String {
        explain::file(self)
    }
}

impl Step {
    fn writes(&self) -> bool {
        self.options.get("rw").is_some_and(|rw| rw.ends_with("write"))
    }

    fn measure_with(&mut self, typed: &Options) {
        for (given, excluded) in EXCLUSIVE {
            if typed.contains_key(given) && !typed.contains_key(excluded) {
                self.options.remove(excluded);
            }
        }
        self.options.extend(typed.clone());
    }

    fn serve_with(&mut self, typed: &Options, matches: &ArgMatches) -> Result<()> {
        let given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let of_results = ["output", "label", "meta", "format"].into_iter().find(given);
        let other = typed.keys().map(String::as_str).find(|name| !FOR_SERVERS.contains(name)).or(of_results);
        if let Some(name) = other {
            return Err(Error::Usage(format!("{}: --{name} means nothing to a server", self.from)));
        }
        self.options = typed.clone();
        Ok(())
    }

    /// Says how to make a file that is not there: fio lays it out by itself.
    fn say_what_is_missing(&mut self) {
        let (Some(target), Some(size)) = (self.options.get("target"), self.options.get("size")) else { return };
        if self.serve.is_none() && !target.starts_with("/dev/") && !Path::new(target).exists() {
            let (place, target) = (self.from.split(": ").next().unwrap_or_default(), explain::quoted(target));
            self.notes.push(format!(
                "{place}: {target} is not there; fio would lay it out, here that is `lat-probe fill --allow-write {target} \
                 --size {size}`"
            ));
        }
    }

    /// The plan, with every check made that needs no device.
    ///
    /// # Errors
    /// [`Error::Usage`] with the measurement and the option that are wrong.
    pub fn plan(&self) -> Result<Plan> {
        let named = |why: &str| Error::Usage(format!("{}: {why}", self.from));
        if self.writes() && !self.options.contains_key("allow-write") {
            let target = self.options.get("target").map_or_else(|| "PATH".into(), |target| explain::quoted(target));
            return Err(named(&format!(
                "writing destroys what is in {target}: --allow-write {target} behind the file's name says that it may"
            )));
        }
        let definition = definition();
        let typed = self.options.iter().filter_map(|(name, value)| match value.as_str() {
            "true" if is_switch(&definition, name, value) => Some(format!("--{name}")),
            "false" if is_switch(&definition, name, value) => None,
            _ => Some(format!("--{name}={value}")),
        });
        let typed: Vec<_> = typed.collect();
        let parsed = definition.try_get_matches_from(typed).and_then(|it| MeasureArgs::from_arg_matches(&it));
        let measurement = parsed.map_err(|error| {
            let said = error.to_string();
            named(said.lines().next().unwrap_or_default().trim_start_matches("error: "))
        })?;
        spec(measurement).and_then(Plan::check).map_err(|error| match error {
            Error::Usage(why) => named(&why),
            error => error,
        })
    }
}

/// What was typed behind the file's name.
fn typed_behind(definition: &Command, matches: &ArgMatches) -> Options {
    let mut typed = Options::new();
    for argument in definition.get_arguments() {
        let (id, Some(name)) = (argument.get_id().as_str(), argument.get_long()) else { continue };
        let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
        if is_given && option(definition, name).is_some() {
            let raw = matches.get_raw(id).into_iter().flatten();
            let values: Vec<_> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
            typed.insert(name.into(), if values.is_empty() { "true".into() } else { values.join(",") });
        }
    }
    typed
}
