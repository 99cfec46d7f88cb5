//! The pages hold what a reader expects, and their examples are real.

use std::process::Command as Process;

use clap::Parser;

use super::{super::args, *};
use crate::{cli::spec::spec, probe::Plan};

fn pages() -> Vec<(String, String)> {
    let definition = definition();
    let commands = [&definition].into_iter().chain(definition.get_subcommands());
    commands.map(|command| (name(command).to_string(), page(command, "2026-01-02"))).collect()
}

#[test]
fn every_subcommand_has_a_page_with_every_section() {
    let pages = pages();
    assert_eq!(pages.len(), Cli::command().get_subcommands().count() + 1);
    for (name, page) in &pages {
        assert!(page.contains(&format!(".TH {name} 1 2026-01-02 \"lat-probe 0")), "{page}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "EXAMPLES", "\"SEE ALSO\""] {
            let whole = page.matches(&format!("\n.SH {section}\n")).count();
            assert_eq!(whole, 1, "{name}: {section}\n{page}");
        }
        assert!(page.is_ascii(), "{name}");
    }
}

#[test]
fn options_stand_under_their_headings_and_engines_under_their_option() {
    let (_, main) = pages().remove(0);
    let section =
        |heading: &str| main.split(&format!(".SH {heading}\n")).nth(1).unwrap().split("\n.SH").next().unwrap();
    assert!(section("OPTIONS").contains("\\fB\\-\\-engine\\fR"));
    assert!(section("OPTIONS").contains("rdma\\-read: RDMA READ, until its completion"));
    assert!(section("\"FILES AND BLOCK DEVICES\"").contains("\\fB\\-\\-hipri\\fR"));
    assert!(section("RDMA").contains("\\fB\\-\\-gid\\-index\\fR"));
    assert!(section("OUTPUT").contains("\\fB\\-\\-label\\fR"));
    assert!(section("SUBCOMMANDS").contains("lat\\-probe\\-serve(1)"));
    assert!(section("\"EXIT STATUS\"").contains("inconclusive"), "the main page has all codes");
}

#[test]
fn pages_that_are_referred_to_exist() {
    let pages = pages();
    for (name, page) in &pages {
        let see_also = page.split(".SH \"SEE ALSO\"\n").nth(1).unwrap().replace('\\', "");
        let named: Vec<_> = see_also
            .split("fB")
            .skip(1)
            .filter_map(|it| it.split("fR").next())
            .filter(|it| it.starts_with("lat-"))
            .collect();
        assert!(
            !named.is_empty() && named.iter().all(|named| pages.iter().any(|(page, _)| page == named)),
            "{named:?}"
        );
        assert!(!named.contains(&name.as_str()), "{name} refers to itself");
    }
}

#[test]
fn a_date_is_taken_from_seconds_only() {
    let of = |text: &str| date(Some(OsStr::new(text)));
    assert_eq!(date(None).unwrap(), "");
    assert_eq!(of("1796083199").unwrap(), "2026-11-30");
    for wrong in ["", "-1", "2026-01-01", "253402300800", "99999999999999999999"] {
        let error = of(wrong).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(&format!("SOURCE_DATE_EPOCH={wrong}:")), "{error}");
    }
    assert!(main_page("").contains(".TH lat-probe 1 \"\" \"lat-probe 0"));
}

/// Every lat-probe command of an example, as the words that a shell makes of it.
fn commands(script: &str) -> Vec<Vec<String>> {
    // Pipes and redirections are left to the shell, so what is called prints where nothing else does.
    let shell = format!("exec 9>&1; lat-probe() {{ printf '%s\\037' lat-probe \"$@\" >&9; echo >&9; }}\n{script}");
    let folder = tempfile::tempdir().unwrap();
    let output = Process::new("bash").args(["-c", &shell]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("lat-probe\u{1f}"));
    lines.map(|line| line.trim_end_matches('\u{1f}').split('\u{1f}').map(String::from).collect()).collect()
}

#[test]
fn every_example_parses_and_every_measurement_can_be_meant() {
    let mut measurements = 0;
    for command in [&definition()].into_iter().chain(definition().get_subcommands()) {
        let subcommand = if name(command) == "lat-probe" { "" } else { command.get_name() };
        let extra = pages::of(subcommand);
        assert!(!extra.examples.is_empty(), "{subcommand} has no example");
        for (_, script) in extra.examples {
            let commands = commands(script);
            assert!(!commands.is_empty(), "{script}");
            for words in commands {
                let parsed = Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
                let measure = match parsed.command {
                    None => parsed.measure,
                    Some(args::Command::Ab(arguments)) => arguments.measure,
                    Some(_) => continue,
                };
                measurements += 1;
                Plan::check(spec(measure).unwrap()).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            }
        }
    }
    assert!(measurements >= 10, "{measurements}");
}
