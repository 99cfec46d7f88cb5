//! What the text report draws on a terminal: a pseudo-terminal here, by util-linux's `script`.

use std::process::{Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_lat-probe");

/// What decides on a drawing; everything else is the machine's.
const VARIABLES: [&str; 7] = ["TERM", "COLUMNS", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "CLICOLOR_FORCE"];

const NULL: &str = "--engine null --count 20000 --progress never";

fn shell(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
    command.envs([("TERM", "xterm"), ("LANG", "C.UTF-8")]).envs(variables.iter().copied());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: {program} is not here: {error}");
            return None;
        }
    };
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}: {shown}{}", String::from_utf8_lossy(&output.stderr));
    Some(shown.replace("\r\n", "\n"))
}

/// What a terminal of 90 columns shows.
fn on_terminal(arguments: &str, variables: &[(&str, &str)]) -> Option<String> {
    // The width is set where it is asked for: at the terminal. `script` without one of its own makes one of no width.
    let command = format!("stty cols 90 && {BINARY} {arguments}");
    shell("script", &["-qec", &command, "/dev/null"], variables)
}

fn without_colors(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once('m').unwrap().1)
}

/// The lines of all drawings: from a head of rows to the end of its axis' legend.
fn drawn(report: &str) -> Vec<String> {
    let report = without_colors(report);
    let (mut lines, mut gaps) = (Vec::new(), 2);
    for line in report.lines() {
        if line.trim_start().starts_with("from  ") {
            gaps = 0;
        }
        gaps += usize::from(line.is_empty());
        if gaps < 2 {
            lines.push(line.to_string());
        }
    }
    lines
}

/// The sum of the counts of all rows.
fn counted(lines: &[String]) -> u64 {
    let rows = lines.iter().filter(|line| line.contains(" %"));
    let count = |line: &String| {
        let words: Vec<_> = line.split_whitespace().collect();
        let label = if matches!(words[0], "below" | "above") { 3 } else { 2 };
        words[label].replace(',', "").parse::<u64>().unwrap()
    };
    rows.map(count).sum()
}

fn longest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn a_terminal_shows_the_distribution_and_where_the_percentiles_are() {
    let Some(report) = on_terminal(NULL, &[]) else { return };
    let lines = drawn(&report);
    assert!(lines.len() > 5 && counted(&lines) == 20_000, "{report}");
    assert!(report.contains("\x1b[36m█") && report.contains("├"), "{report}");
    let legend = &lines[lines.len() - 2..].join(" ");
    assert!(["p50", "p90", "p99", "p99.9", "(log axis)"].iter().all(|name| legend.contains(name)), "{report}");
    // It asked for the width: the axis is as wide as the terminal.
    assert_eq!(longest(&lines), 90, "{report}");
}

#[test]
fn a_pipe_has_the_report_and_nothing_else() {
    let plain = shell(BINARY, &NULL.split(' ').collect::<Vec<_>>(), &[("COLUMNS", "90")]).unwrap();
    let heads: Vec<_> = plain.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(heads[0], "null, depth 1", "{plain}");
    // The table, which ends the figures, is followed by sentences and by the instrument's lines.
    assert!(plain.contains("\n  latency ") && plain.contains("\nfloor      "), "{plain}");
    assert!(!plain.contains("\x1b") && drawn(&plain).is_empty() && !plain.contains("log axis"), "{plain}");
    // With a terminal on stderr alone, too.
    let command = format!("{BINARY} {NULL} | cat");
    let Some(piped) = shell("script", &["-qec", &command, "/dev/null"], &[]) else { return };
    assert!(!piped.contains("\x1b") && drawn(&piped).is_empty(), "{piped}");
}

#[test]
fn colours_are_left_out_where_they_are_refused() {
    let Some(report) = on_terminal(NULL, &[("NO_COLOR", "1")]) else { return };
    assert!(!report.contains('\x1b') && counted(&drawn(&report)) == 20_000, "{report}");
    let Some(report) = on_terminal(NULL, &[("NO_COLOR", "")]) else { return };
    assert!(report.contains("\x1b["), "{report}");
}

#[test]
fn the_environment_says_how_wide_it_may_be() {
    let Some(report) = on_terminal(NULL, &[("COLUMNS", "50")]) else { return };
    let lines = drawn(&report);
    assert!(longest(&lines) == 50 && counted(&lines) == 20_000, "{report}");
    let Some(report) = on_terminal(NULL, &[("COLUMNS", "no number")]) else { return };
    assert_eq!(longest(&drawn(&report)), 90, "{report}");
}

#[test]
fn there_is_no_drawing_where_it_would_break() {
    for variables in [("COLUMNS", "20"), ("COLUMNS", "39"), ("TERM", "dumb")] {
        let Some(report) = on_terminal(NULL, &[variables]) else { return };
        assert!(report.contains("\nfloor ") && drawn(&report).is_empty(), "{variables:?}: {report}");
        assert!(!report.contains('\x1b') && !report.contains("log axis"), "{variables:?}: {report}");
    }
}

#[test]
fn a_terminal_for_ascii_has_a_drawing_in_ascii() {
    for variables in [&[("LC_ALL", "C")][..], &[("LC_CTYPE", "POSIX")], &[("LANG", "")]] {
        let Some(report) = on_terminal(NULL, variables) else { return };
        let lines = drawn(&report);
        assert!(counted(&lines) == 20_000 && lines.iter().all(|line| line.is_ascii()), "{report}");
        assert!(lines.iter().any(|line| line.ends_with("###")), "{report}");
    }
}

#[test]
fn a_few_points_are_drawn_each_and_many_are_not() {
    let Some(report) = on_terminal("--engine null --count 5000 --jobs 1 --qd 1,2,4", &[]) else { return };
    assert_eq!(drawn(&report).iter().filter(|line| line.contains("from  ")).count(), 3, "{report}");
    assert_eq!(counted(&drawn(&report)), 15_000, "{report}");
    let Some(report) = on_terminal("--engine null --count 5000 --jobs 1 --qd 1,2,4,8", &[]) else { return };
    assert!(drawn(&report).is_empty() && !report.contains('\x1b'), "{report}");
    assert!(report.contains("\ndrawings   left out: there are more than 3 points\n"), "{report}");
}

#[test]
fn other_formats_are_documents_on_a_terminal_as_well() {
    for format in ["json", "fio"] {
        let Some(report) = on_terminal(&format!("{NULL} --format {format}"), &[]) else { return };
        assert!(!report.contains('\x1b') && !report.contains("log axis"), "{report}");
    }
}
