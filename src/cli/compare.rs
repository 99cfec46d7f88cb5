//! The options of `lat-probe compare`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, ValueHint};

use super::values::{figure, parse_figure};
use crate::{
    error::{Error, Result},
    report::comparison::Figure,
    run::{self, Compare, ComparisonFormat, Format, Judging, LEVEL, MinEffect, Outcome, Table},
    units::{parse_bytes, parse_duration},
};

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Results, one side each: files by a quoted pattern, with a name if you like; the first side is the base
    #[arg(value_name = "[NAME=]FILES", required_unless_present = "table", value_hint = ValueHint::FilePath)]
    pub sides: Vec<String>,
    /// Read a table of rates that others have measured instead: bs_bytes, jobs, and a column for each side; a line
    /// `# control: SIDE` names one that must equal the first
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sides", "junit", "fail_above", "judge", "min_effect"])]
    pub table: Option<PathBuf>,
    /// Rows of larger blocks do not go into the cost per command (--table)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, requires = "table")]
    pub max_bytes: Option<u64>,
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Fail if a figure of the last side is above this, such as p99=20us; also for one side alone
    #[arg(long, value_name = "FIGURE=TIME", value_parser = parse_gate)]
    pub fail_above: Vec<(Figure, Duration)>,
    /// What stdout shows
    #[arg(long, value_enum, default_value_t = ComparisonFormatArg::Text)]
    pub format: ComparisonFormatArg,
    /// Write the JSON document to this file as well; it is replaced as a whole
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct JudgingArgs {
    /// Effects below this do not count, in percent of the base or as a time
    #[arg(long, value_name = "PERCENT%|TIME", default_value = "1%", value_parser = parse_min_effect)]
    pub min_effect: MinEffect,
    /// Figures that the verdict and the exit code rest on: mean, p50, p90, p99, p99.9
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "p50", value_parser = figure(), hide_possible_values = true)]
    pub judge: Vec<Figure>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ComparisonFormatArg {
    Text,
    Json,
    Markdown,
    Csv,
}

/// Compares, or reads a table.
///
/// # Errors
/// As [`run::compare`] and [`run::table`].
pub(super) fn compare(arguments: CompareArgs) -> Result<Outcome> {
    let Some(path) = arguments.table else { return run::compare(&arguments.into()) };
    let format = match arguments.format {
        ComparisonFormatArg::Text => Format::Text,
        ComparisonFormatArg::Json => Format::Json,
        ComparisonFormatArg::Markdown | ComparisonFormatArg::Csv => {
            return Err(Error::usage("--table is shown as text or json"));
        }
    };
    run::table(&Table { path, max_bytes: arguments.max_bytes, format, output: arguments.output })
}

impl From<JudgingArgs> for Judging {
    fn from(arguments: JudgingArgs) -> Self {
        let mut figures: Vec<Figure> = Vec::new();
        for figure in arguments.judge {
            if !figures.contains(&figure) {
                figures.push(figure); // One that is named twice is judged once.
            }
        }
        Self { min_effect: arguments.min_effect, figures, level: LEVEL }
    }
}

impl From<CompareArgs> for Compare {
    fn from(arguments: CompareArgs) -> Self {
        Self {
            sides: arguments.sides,
            judging: arguments.judging.into(),
            fail_above: arguments.fail_above,
            format: match arguments.format {
                ComparisonFormatArg::Text => ComparisonFormat::Plain(Format::Text),
                ComparisonFormatArg::Json => ComparisonFormat::Plain(Format::Json),
                ComparisonFormatArg::Markdown => ComparisonFormat::Markdown,
                ComparisonFormatArg::Csv => ComparisonFormat::Csv,
            },
            output: arguments.output,
            junit: arguments.junit,
        }
    }
}

fn parse_min_effect(text: &str) -> std::result::Result<MinEffect, String> {
    let Some(number) = text.strip_suffix('%') else {
        let time = parse_duration(text).map_err(|why| format!("{why}; or a share such as 1%"))?;
        return Ok(MinEffect::Ns(time.as_nanos() as f64));
    };
    match number.trim().parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(MinEffect::Percent(percent)),
        _ => Err(format!("{text:?}: a number from 0 to 1000 stands before the %")),
    }
}

fn parse_gate(text: &str) -> std::result::Result<(Figure, Duration), String> {
    let (figure, limit) =
        text.split_once('=').ok_or_else(|| format!("{text:?}: write FIGURE=TIME, such as p99=20us"))?;
    Ok((parse_figure(figure)?, parse_duration(limit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_shares_or_times() {
        assert_eq!(parse_min_effect("0.5%"), Ok(MinEffect::Percent(0.5)));
        assert_eq!(parse_min_effect("10us"), Ok(MinEffect::Ns(10_000.0)));
        for wrong in ["", "1", "-1%", "NaN%", "x%", "%", "inf%"] {
            assert!(parse_min_effect(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_gate_is_a_figure_and_a_time() {
        assert_eq!(parse_gate("p99.9=20us"), Ok((Figure::P999, Duration::from_micros(20))));
        for wrong in ["p99", "p98=1us", "p99=20", "=1us", "p99="] {
            assert!(parse_gate(wrong).is_err(), "{wrong}");
        }
    }
}
