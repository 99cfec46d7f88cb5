//! The options of `lat-probe ab`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueHint};

use super::{compare::JudgingArgs, options::MeasureArgs};
use crate::{
    report::series::Making,
    run::Ab,
    units::{parse_count, parse_duration},
};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct AbArgs {
    /// A probe file to measure in each round; options behind it take the place of its own
    #[arg(value_name = "PROBE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub series: SeriesArgs,
    #[command(flatten)]
    pub measure: MeasureArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Series")]
pub(super) struct SeriesArgs {
    /// Shell command that makes side a, which the others are compared with; may be empty
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub a: Option<String>,
    /// Shell command that makes side b
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub b: Option<String>,
    /// A side with a name of its own; may be repeated
    #[arg(long, value_name = "NAME=CMD", value_parser = parse_side)]
    pub side: Vec<(String, String)>,
    /// Measure the first side a second time in each block, as a control: it should be the same
    #[arg(long)]
    pub aa: bool,
    /// Rounds of each side, two in each block
    #[arg(long, value_name = "N", default_value = "20", value_parser = parse_count)]
    pub rounds: u64,
    /// Shell command before each measurement, after the side was made
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub before: Option<String>,
    /// Shell command after each measurement
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub after: Option<String>,
    /// Wait before each measurement
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub settle: Duration,
    /// Go on with the series in --output
    #[arg(long)]
    pub resume: bool,
    /// Stop at half or three quarters of the rounds if the verdict is settled by then
    #[arg(long)]
    pub until_settled: bool,
    /// Begin no round after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time_budget: Option<Duration>,
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Write the comparison as JSON to this file; --output has the rounds
    #[arg(long, value_name = "FILE")]
    pub comparison: Option<PathBuf>,
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

impl From<SeriesArgs> for Ab {
    fn from(arguments: SeriesArgs) -> Self {
        let named = [("a", arguments.a), ("b", arguments.b)];
        let named = named.into_iter().filter_map(|(name, command)| Some((name.to_string(), command?)));
        let making = |(name, command)| Making { name, command, control: false };
        let mut sides: Vec<Making> = named.chain(arguments.side).map(making).collect();
        if let Some(first) = sides.first().filter(|_| arguments.aa) {
            sides.push(Making { name: format!("{} again", first.name), command: first.command.clone(), control: true });
        }
        Self {
            sides,
            rounds: arguments.rounds,
            before: arguments.before,
            after: arguments.after,
            settle: arguments.settle,
            resume: arguments.resume,
            until_settled: arguments.until_settled,
            time_budget: arguments.time_budget,
            judging: arguments.judging.into(),
            comparison: arguments.comparison,
            junit: arguments.junit,
        }
    }
}

fn parse_side(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, command)) if !name.trim().is_empty() => Ok((name.trim().into(), command.into())),
        _ => Err(format!("{text:?}: write NAME=CMD, such as thread-y='modprobe ib_srpt thread=1'")),
    }
}
