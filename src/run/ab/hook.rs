//! The commands that make a side: run by the shell, on all processors, and told where in the series they are.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::{
    error::{Error, Result},
    host::{CpuSet, cpu},
};

/// Lines of output that a failure shows.
const LINES: usize = 20;

/// Where in the series a hook runs.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub side: &'a str,
    /// The side's round, from 1.
    pub round: u64,
    /// The block, from 1.
    pub block: u64,
    /// What will be measured.
    pub points: &'a str,
}

/// Runs a command and waits for it. What it prints goes to stderr, where it cannot be taken for the comparison.
///
/// # Errors
/// [`Error::Hook`] with its exit code and the end of its output.
pub(super) fn run(name: &'static str, command: &str, place: &Place, cpus: &CpuSet) -> Result<()> {
    let failed = |ended: String, output: &[u8]| {
        let output = String::from_utf8_lossy(output);
        let lines: Vec<_> = output.lines().collect();
        let tail: Vec<_> =
            lines[lines.len().saturating_sub(LINES)..].iter().map(|line| format!("\n  | {line}")).collect();
        Error::Hook { name, command: command.into(), ended, output: tail.concat() }
    };
    let mut shell = Command::new("/bin/sh");
    // One pipe for both streams keeps their lines in order.
    shell.args(["-c", &format!("exec 2>&1\n{command}")]).stdin(Stdio::null());
    shell.env("LAT_PROBE_SIDE", place.side).env("LAT_PROBE_ROUND", place.round.to_string());
    shell.env("LAT_PROBE_BLOCK", place.block.to_string()).env("LAT_PROBE_POINT", place.points);
    // This thread is pinned to the measuring processor, and a daemon that a hook starts would be as well.
    let output = std::thread::scope(|scope| {
        let run = || {
            let _ = cpu::restrict_current(cpus); // Then it runs where the measurement does.
            shell.output()
        };
        scope.spawn(run).join().unwrap_or_else(|_| Err(std::io::Error::other("the thread failed")))
    });
    let output = output.map_err(|error| failed(format!("cannot be started: {error}"), &[]))?;
    if !output.status.success() {
        return Err(failed(format!("ended with {}", output.status), &output.stdout));
    }
    let _ = std::io::stderr().write_all(&output.stdout); // Nobody reads it if this fails.
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Result<()> {
        let place = Place { side: "b", round: 3, block: 2, points: "null" };
        run("--b", command, &place, &CpuSet::default())
    }

    #[test]
    fn a_hook_knows_where_it_is() {
        of("test \"$LAT_PROBE_SIDE $LAT_PROBE_ROUND $LAT_PROBE_BLOCK $LAT_PROBE_POINT\" = 'b 3 2 null'").unwrap();
    }

    #[test]
    fn a_hook_that_fails_shows_its_code_and_what_it_said() {
        let error = of("echo one; echo two >&2; exit 7").unwrap_err().to_string();
        assert!(error.contains("--b: `echo one; echo two >&2; exit 7` ended with exit status: 7"), "{error}");
        assert!(error.ends_with("\n  | one\n  | two"), "{error}");
    }
}
