//! `lat-probe run FILE`: the measurements of a probe file, each as if it had been typed. Options behind the file's name
//! take the place of the file's own.

use std::path::Path;

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, parser::ValueSource};

use super::args::{MeasureArgs, OutputArgs};
use crate::{
    error::{Error, Result},
    probe::{Options, ProbeFile},
};

/// The measurements of a file in order, with what was typed behind its name.
///
/// # Errors
/// [`Error::Usage`] with the file, and the measurement and the option that are wrong.
pub(super) fn measurements(path: &Path, matches: &ArgMatches) -> Result<(ProbeFile, Vec<MeasureArgs>)> {
    let definition = MeasureArgs::augment_args(Command::new("measurement").no_binary_name(true));
    let output = OutputArgs::augment_args(Command::new("output"));
    let belongs_to_run = |id: &str| output.get_arguments().any(|argument| argument.get_id() == id);
    let option = |name: &str| {
        let found = definition.get_arguments().find(|argument| argument.get_long() == Some(name))?;
        (!belongs_to_run(found.get_id().as_str())).then_some(found)
    };
    let file = ProbeFile::read(path, &|name| option(name).is_some())?;
    let mut overrides = Options::new();
    for argument in definition.get_arguments() {
        let (id, Some(name)) = (argument.get_id().as_str(), argument.get_long()) else { continue };
        if !belongs_to_run(id) && matches.value_source(id) == Some(ValueSource::CommandLine) {
            let raw = matches.get_raw(id).into_iter().flatten();
            let typed: Vec<_> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
            overrides.insert(name.into(), if typed.is_empty() { "true".into() } else { typed.join(",") });
        }
    }
    let mut all = Vec::new();
    for (index, measurement) in file.measurements.iter().enumerate() {
        let mut options = measurement.clone();
        options.extend(overrides.clone());
        let typed = options.iter().filter_map(|(name, value)| {
            let is_switch = option(name).is_some_and(|found| matches!(found.get_action(), ArgAction::SetTrue));
            match (is_switch, value.as_str()) {
                (true, "true") => Some(format!("--{name}")),
                (true, "false") => None,
                _ => Some(format!("--{name}={value}")),
            }
        });
        let parsed = definition.clone().try_get_matches_from(typed).and_then(|it| MeasureArgs::from_arg_matches(&it));
        all.push(parsed.map_err(|error| {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Error::Usage(format!("{}: measurement {}: {first}", path.display(), index + 1))
        })?);
    }
    Ok((file, all))
}
