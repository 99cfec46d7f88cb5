//! The commands that make a side: run by the shell, on all processors, and told where in the series they are.

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    error::{Error, Result},
    host::{CpuSet, cpu},
};

/// Lines of output that a failure shows.
const LINES: usize = 20;

/// Time between looks whether a hook has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Time that a hook has to end by itself after a signal, and once more after it got SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

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

/// Runs a command and waits for it, but not for what it leaves running in the background. What it prints goes to stderr,
/// where it cannot be taken for the comparison. Once `stopped` it has [`GRACE`] to end by itself: half of a driver's reload
/// is worse than a wait.
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
    let failed = |ended: String, output: &[u8]| {
        let output = String::from_utf8_lossy(output);
        let lines: Vec<_> = output.lines().collect();
        let tail: Vec<_> =
            lines[lines.len().saturating_sub(LINES)..].iter().map(|line| format!("\n  | {line}")).collect();
        Error::Hook { name, command: command.into(), ended, output: tail.concat() }
    };
    let cannot = |error: io::Error| failed(format!("cannot be run: {error}"), &[]);
    // A file, not a pipe: a daemon that the hook starts would hold the pipe open, and its end would never come. Both streams
    // share one place in it, which keeps their lines in order.
    let mut said = tempfile::tempfile().map_err(cannot)?;
    let (stdout, stderr) = (said.try_clone().map_err(cannot)?, said.try_clone().map_err(cannot)?);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    shell.env("LAT_PROBE_SIDE", place.side).env("LAT_PROBE_ROUND", place.round.to_string());
    shell.env("LAT_PROBE_BLOCK", place.block.to_string()).env("LAT_PROBE_POINT", place.points);
    // This thread is pinned to the measuring processor, and a daemon that a hook starts would be as well.
    let child = std::thread::scope(|scope| {
        let spawn = || {
            let _ = cpu::restrict_current(cpus); // Then it runs where the measurement does.
            shell.spawn()
        };
        scope.spawn(spawn).join().unwrap_or_else(|_| Err(io::Error::other("the thread failed")))
    });
    let status = wait(child.map_err(cannot)?, stopped).map_err(cannot)?;
    let mut output = Vec::new();
    said.seek(SeekFrom::Start(0)).and_then(|_| said.read_to_end(&mut output)).map_err(cannot)?;
    if !status.success() {
        return Err(failed(format!("ended with {status}"), &output));
    }
    let _ = io::stderr().write_all(&output); // Nobody reads it if this fails.
    Ok(())
}

fn wait(mut child: Child, stopped: &dyn Fn() -> bool) -> io::Result<ExitStatus> {
    let (mut since, mut asked): (Option<Instant>, bool) = (None, false);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stopped() {
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            if waited > 2 * GRACE {
                child.kill()?;
                return Err(io::Error::other("it did not end when it was asked to"));
            }
            if waited > GRACE && !asked {
                asked = true;
                kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM)?;
            }
        }
        std::thread::sleep(LOOK);
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
    fn a_hook_knows_where_it_is() {
        of("test \"$LAT_PROBE_SIDE $LAT_PROBE_ROUND $LAT_PROBE_BLOCK $LAT_PROBE_POINT\" = 'b 3 2 null'").unwrap();
    }

    #[test]
    fn a_hook_that_fails_shows_its_code_and_what_it_said() {
        let error = of("echo one; echo two >&2; exit 7").unwrap_err().to_string();
        assert!(error.contains("--b: `echo one; echo two >&2; exit 7` ended with exit status: 7"), "{error}");
        assert!(error.ends_with("\n  | one\n  | two"), "{error}");
    }

    #[test]
    fn what_a_hook_leaves_in_the_background_is_not_waited_for() {
        let began = Instant::now();
        of("echo started; sleep 15 & echo $! > /dev/null").unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn a_hook_that_does_not_end_after_a_signal_is_ended() {
        let place = Place { side: "b", round: 1, block: 1, points: "null" };
        let began = Instant::now();
        let error = run("--b", "exec sleep 60", &place, &CpuSet::default(), &|| true).unwrap_err().to_string();
        assert!(began.elapsed() < Duration::from_secs(20) && error.contains("SIGTERM"), "{error}");
        run("--b", "sleep 1", &place, &CpuSet::default(), &|| true).unwrap();
    }
}
