//! The options of `lat-probe report`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::compare::JudgingArgs;
use crate::{error::Result, run};

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Results, comparisons (compare --output) and series (ab --output)
    #[arg(value_name = "RESULT", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The page; it is replaced as a whole
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub judging: JudgingArgs,
}

/// Writes the page, and returns what there is to say of it.
///
/// # Errors
/// As [`run::page`].
pub(super) fn report(arguments: ReportArgs) -> Result<String> {
    run::page(&arguments.files, &arguments.judging.into(), &arguments.output)
}
