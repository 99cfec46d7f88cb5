//! The commands that make a side: run by the shell, on all processors, and told where in the series they are.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use crate::{
    error::{Error, Result},
    host::{CpuSet, cpu},
};

/// Lines of output that a failure shows.
const LINES: usize = 20;

/// Longest time of a hook: a reboot of a target is in it, a prompt that nobody answers is not.
const LONGEST: Duration = Duration::from_secs(3600);

/// Time that a hook has to end when it is told to.
const GRACE: Duration = Duration::from_secs(2);

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

/// Runs a command and waits for it, or until `stopped`, which ends it with all that it has started. What it prints goes to
/// stderr, where it cannot be taken for the comparison.
///
/// # Errors
/// [`Error::Hook`] with its exit code and the end of its output.
pub(super) fn run(
    name: &'static str,
    command: &str,
    place: &Place,
    cpus: &CpuSet,
    stopped: &dyn Fn() -> bool,
) -> Result<()> {
    let failed = |ended: String, output: &str| {
        let lines: Vec<_> = output.lines().collect();
        let tail: Vec<_> =
            lines[lines.len().saturating_sub(LINES)..].iter().map(|line| format!("\n  | {line}")).collect();
        Error::Hook { name, command: command.into(), ended, output: tail.concat() }
    };
    let (mut child, mut file) =
        start(command, place, cpus).map_err(|error| failed(format!("cannot be started: {error}"), ""))?;
    let ended = wait(&mut child, stopped).map_err(|error| failed(format!("cannot be waited for: {error}"), ""))?;
    let mut output = Vec::new();
    // What cannot be read back is not worth an error of its own.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut output));
    if stopped() || ended.success() {
        let _ = io::stderr().write_all(&output); // Nobody reads it if this fails.
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output);
    let late = if ended.signal().is_some() { format!(" (hooks have {} s)", LONGEST.as_secs()) } else { String::new() };
    Err(failed(format!("ended with {ended}{late}"), &output))
}

/// Starts the shell in a process group of its own. Its output goes to a file: a daemon that it leaves behind would keep a
/// pipe open for ever.
fn start(command: &str, place: &Place, cpus: &CpuSet) -> io::Result<(Child, File)> {
    let file = tempfile::tempfile()?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    shell.process_group(0);
    shell.env("LAT_PROBE_SIDE", place.side).env("LAT_PROBE_ROUND", place.round.to_string());
    shell.env("LAT_PROBE_BLOCK", place.block.to_string()).env("LAT_PROBE_POINT", place.points);
    // This thread is pinned to the measuring processor, and a daemon that a hook starts would be as well.
    let child = std::thread::scope(|scope| {
        let spawn = || {
            let _ = cpu::restrict_current(cpus); // Otherwise it runs where the measurement does.
            shell.spawn()
        };
        scope.spawn(spawn).join().unwrap_or_else(|_| Err(io::Error::other("the thread failed")))
    })?;
    Ok((child, file))
}

/// Waits for the end, and brings it about when that is due.
fn wait(child: &mut Child, stopped: &dyn Fn() -> bool) -> io::Result<ExitStatus> {
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let began = Instant::now();
    let mut told: Option<Instant> = None;
    loop {
        if let Some(ended) = child.try_wait()? {
            return Ok(ended);
        }
        match told {
            None if stopped() || began.elapsed() > LONGEST => {
                told = Some(Instant::now());
                let _ = killpg(group, Signal::SIGTERM); // It may have ended by itself.
            }
            Some(since) if since.elapsed() > GRACE => {
                let _ = killpg(group, Signal::SIGKILL);
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Result<()> {
        let place = Place { side: "b", round: 3, block: 2, points: "null" };
        run("--b", command, &place, &CpuSet::default(), &|| false)
    }

    #[test]
    fn a_hook_ends_when_the_series_is_stopped_and_a_daemon_does_not_keep_it() {
        let place = Place { side: "b", round: 1, block: 1, points: "null" };
        let began = Instant::now();
        run("--b", "sleep 60 & sleep 60", &place, &CpuSet::default(), &|| began.elapsed() > Duration::from_millis(50))
            .unwrap();
        let began_deaf = Instant::now();
        let is_deaf = || began_deaf.elapsed() > Duration::from_millis(300);
        run("--b", "trap '' TERM; sleep 60; sleep 60", &place, &CpuSet::default(), &is_deaf).unwrap();
        assert!(began_deaf.elapsed() > GRACE, "{:?}", began_deaf.elapsed());
        of("sleep 20 &").unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
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
