//! `lat-probe man`: pages from the definition that the parser has, with what no parser knows beside it: [`pages`].

mod pages;
mod text;

use std::{
    ffi::OsStr,
    fs, io,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use super::{
    args::Cli,
    exit_codes::{EXIT_CODES, MEASURING},
};
use crate::{
    error::{Error, Result},
    report::OutputFile,
    run::timestamp,
};
use pages::Extra;

/// The last second of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// The date of pages, from seconds since 1970 as SOURCE_DATE_EPOCH has them. Without it they have none, so that a program
/// always prints the same.
///
/// # Errors
/// [`Error::Usage`] for what are no seconds.
pub(super) fn date(seconds: Option<&OsStr>) -> Result<String> {
    let Some(text) = seconds else { return Ok(String::new()) };
    let seconds = text.to_str().and_then(|text| text.parse().ok()).filter(|&seconds: &u64| seconds <= LAST_SECOND);
    let Some(seconds) = seconds else {
        return Err(Error::Usage(format!("SOURCE_DATE_EPOCH={}: expected seconds since 1970", text.display())));
    };
    let time = timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
    Ok(time.split('T').next().unwrap_or_default().into())
}

/// The page of the program itself.
pub(super) fn main_page(date: &str) -> String {
    page(&definition(), date)
}

/// Writes the pages of the program and of every subcommand into a folder.
///
/// # Errors
/// A folder that is none, and a page that cannot be written; an old one is then as it was.
pub(super) fn write(folder: &Path, date: &str) -> Result<()> {
    let metadata = fs::metadata(folder)
        .and_then(|found| if found.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) });
    metadata.map_err(|source| {
        let hint = "--output needs a folder that exists; make it with mkdir -p";
        Error::call(folder.display().to_string(), "open", source, hint)
    })?;
    let definition = definition();
    for command in [&definition].into_iter().chain(definition.get_subcommands()) {
        let file = OutputFile::open(&folder.join(format!("{}.1", name(command))))?;
        file.commit(page(command, date).as_bytes())?;
    }
    Ok(())
}

/// The program with all that clap adds; `help` is explained by every page.
fn definition() -> Command {
    let mut definition = Cli::command().disable_help_subcommand(true);
    definition.build();
    definition
}

/// The page's name, such as lat-probe-serve.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// What writes a section.
type Part = fn(&Man, &mut dyn io::Write) -> io::Result<()>;

/// A whole page.
fn page(command: &Command, date: &str) -> String {
    let subcommand = if name(command) == "lat-probe" { MEASURING } else { command.get_name() };
    let extra = pages::of(subcommand);
    let source = concat!("lat-probe ", env!("CARGO_PKG_VERSION"));
    // An empty argument would let those behind it move up.
    let date = if date.is_empty() { "\"\"" } else { date };
    let usage = command.clone().render_usage().to_string();
    let command = command.clone().override_usage(usage.trim_start_matches("Usage: ").to_string());
    let man = Man::new(command.clone()).date(date).source(source).manual("User Commands");
    let mut rendered = Vec::new();
    let parts: [Part; 5] = [
        Man::render_title,
        Man::render_name_section,
        Man::render_synopsis_section,
        Man::render_description_section,
        Man::render_options_section,
    ];
    for part in parts {
        // Memory takes everything.
        let _ = part(&man, &mut rendered);
    }
    if command.has_subcommands() {
        let _ = man.render_subcommands_section(&mut rendered);
    }
    let mut roff = Roff::new();
    exit_status(&mut roff, subcommand);
    definitions(&mut roff, "ENVIRONMENT", extra.environment);
    definitions(&mut roff, "FILES", extra.files);
    examples(&mut roff, extra);
    see_also(&mut roff, subcommand, extra);
    text::portable(&(String::from_utf8_lossy(&rendered) + roff.to_roff().as_str()))
}

/// The program's own page has the codes of all subcommands.
fn exit_status(roff: &mut Roff, subcommand: &str) {
    roff.control("SH", ["EXIT STATUS"]);
    for row in EXIT_CODES.iter().filter(|row| subcommand == MEASURING || row.is_of(subcommand)) {
        let meaning = if subcommand == MEASURING { row.meaning_among_all() } else { row.meaning.into() };
        roff.control("TP", []).text([bold(row.codes)]).text([roman(meaning)]);
    }
}

fn definitions(roff: &mut Roff, heading: &str, rows: &[(&str, &str)]) {
    if !rows.is_empty() {
        roff.control("SH", [heading]);
    }
    for &(term, meaning) in rows {
        roff.control("TP", []).text([bold(term)]).text([roman(meaning)]);
    }
}

fn examples(roff: &mut Roff, extra: &Extra) {
    roff.control("SH", ["EXAMPLES"]);
    for (index, &(what, commands)) in extra.examples.iter().enumerate() {
        if index > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(what)]).control("PP", []).control("RS", ["4"]).control("EX", []);
        for line in commands.lines() {
            roff.text([roman(line)]);
        }
        roff.control("EE", []).control("RE", []);
    }
}

fn see_also(roff: &mut Roff, subcommand: &str, extra: &Extra) {
    roff.control("SH", ["SEE ALSO"]);
    let own = match subcommand {
        MEASURING => Vec::new(),
        _ => vec!["lat-probe".to_string()],
    };
    let related = extra.related.iter().map(|other| format!("lat-probe-{other}"));
    let pages: Vec<_> = own.into_iter().chain(related).map(|page| (page, "1")).collect();
    let others = extra.see_also.iter().map(|&(page, section)| (page.to_string(), section));
    let mut line = Vec::new();
    for (page, section) in pages.into_iter().chain(others) {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(page), roman(format!("({section})"))]);
    }
    roff.text(line);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
