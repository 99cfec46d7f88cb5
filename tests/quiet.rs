//! `--quiet` on this machine, whatever it allows: every measure is either in force or refused with a reason, and none of
//! them outlives the run. What becomes of interrupts is tested in the lab.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

mod schema_check;
use schema_check::{assert_valid, assert_valid_as};

const BINARY: &str = env!("CARGO_BIN_EXE_lat-probe");

/// Measures that every quiet run names, once each.
const MEASURES: [&str; 4] = ["cpu-dma-latency", "interrupt-affinity", "locked-memory", "real-time-priority"];

/// Two quiet runs at a time would see each other.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lat_probe(arguments: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

fn measured(arguments: &str) -> Value {
    let output = lat_probe(arguments).args(["--format", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{arguments}");
    json(&output)
}

fn names(quiet: &Value, list: &str) -> Vec<String> {
    quiet[list].as_array().unwrap().iter().map(|entry| entry["what"].as_str().unwrap().to_string()).collect()
}

fn is_applied(result: &Value, what: &str) -> bool {
    names(&result["quiet"], "applied").iter().any(|name| name == what)
}

fn assert_every_measure_once(quiet: &Value) {
    let (applied, refused) = (names(quiet, "applied"), names(quiet, "refused"));
    let count = |what: &str| applied.iter().chain(&refused).filter(|name| *name == what).count();
    for what in MEASURES {
        assert_eq!(count(what), 1, "{what}: {quiet}");
    }
    let stands_in = usize::from(refused.iter().any(|name| name == "real-time-priority"));
    assert_eq!(count("nice"), stands_in, "{quiet}");
}

/// A quiet run that lasts until it is told to end.
struct Running(Child);

impl Running {
    fn start() -> Self {
        let arguments = "--engine spin --delay 100us --duration 60s --quiet --format json";
        // Where the tests run under nohup, SIGHUP is ignored, which is inherited.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", BINARY]).args(arguments.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Self(command.spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(20);
        while running.task("monitor").is_none() {
            assert!(Instant::now() < until, "it does not measure");
            std::thread::sleep(Duration::from_millis(10));
        }
        running
    }

    fn folder(&self) -> String {
        format!("/proc/{}", self.0.id())
    }

    /// The folder of the thread of this name.
    fn task(&self, name: &str) -> Option<String> {
        let tasks = fs::read_dir(format!("{}/task", self.folder())).ok()?.flatten();
        let mut folders = tasks.map(|task| task.path().display().to_string());
        folders.find(|folder| fs::read_to_string(format!("{folder}/comm")).is_ok_and(|comm| comm.trim() == name))
    }

    /// Nice value and policy of the thread of this name.
    fn scheduling(&self, name: &str) -> (i64, i64) {
        let stat = fs::read_to_string(format!("{}/stat", self.task(name).unwrap())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        // Fields 19 and 41 of proc_pid_stat(5); the first one here is the third.
        (fields[16].parse().unwrap(), fields[38].parse().unwrap())
    }

    fn holds(&self, path: &str) -> bool {
        let open = fs::read_dir(format!("{}/fd", self.folder())).unwrap().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| target.to_str() == Some(path))
    }

    fn locked_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("{}/status", self.folder())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Ends it by a signal; exit code and result.
    fn end(self, signal: Signal) -> (Option<i32>, Value) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
        let output = self.0.wait_with_output().unwrap();
        (output.status.code(), json(&output))
    }
}

/// The delay of a wake-up that the kernel holds to now, in µs; none where this user may not know.
fn wake_up_limit() -> Option<i32> {
    use std::io::Read;
    let mut bytes = [0; 4];
    fs::File::open("/dev/cpu_dma_latency").ok()?.read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

#[test]
fn every_measure_is_applied_or_refused_and_the_result_is_valid() {
    let _turn = alone();
    let result = measured("--engine null --count 1000 --quiet");
    assert_valid(&result);
    assert_every_measure_once(&result["quiet"]);
    assert_eq!(result["points"][0]["latency_ns"]["n"], 1000);
}

#[test]
fn nothing_is_done_or_said_unless_asked_for() {
    let result = measured("--engine null --count 1000");
    assert_eq!(result["quiet"], Value::Null);
    let output = lat_probe("--engine null --count 1000").output().unwrap();
    assert!(!text(&output.stdout).contains("quiet"), "{}", text(&output.stdout));
}

#[test]
fn the_text_has_a_line_for_what_was_applied_and_one_for_each_refusal() {
    let _turn = alone();
    let output = lat_probe("--engine null --count 1000 --quiet").output().unwrap();
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(printed.lines().filter(|line| line.starts_with("quiet      ")).count(), 1, "{printed}");
    let all = MEASURES.iter().all(|what| printed.matches(what).count() >= 1);
    assert!(all, "{printed}");
}

#[test]
fn measures_are_in_force_while_it_measures_and_gone_afterwards() {
    let _turn = alone();
    let before = wake_up_limit();
    let running = Running::start();
    let (main, monitor) = (running.scheduling("lat-probe"), running.scheduling("monitor"));
    let (held, locked, limit) = (running.holds("/dev/cpu_dma_latency"), running.locked_kib(), wake_up_limit());
    let (code, result) = running.end(Signal::SIGINT);
    assert_eq!(code, Some(130));
    assert_valid(&result);
    assert_every_measure_once(&result["quiet"]);
    assert_eq!(held, is_applied(&result, "cpu-dma-latency"));
    assert_eq!(locked > 0, is_applied(&result, "locked-memory"), "{locked} KiB");
    if is_applied(&result, "real-time-priority") {
        assert_eq!(main.1, 1, "SCHED_FIFO");
    } else if is_applied(&result, "nice") {
        assert_eq!(main, (-20, 0));
    }
    assert_eq!(monitor, (0, 0), "the monitor has ordinary priority");
    if held {
        assert_eq!(limit.unwrap_or(0), 0);
        assert_eq!(wake_up_limit(), before);
    }
}

#[test]
fn a_hang_up_ends_a_run_with_a_partial_result() {
    let _turn = alone();
    let (code, result) = Running::start().end(Signal::SIGHUP);
    assert_eq!(code, Some(129));
    assert_eq!((&result["points"][0]["ended_by"], &result["points"][0]["partial"]), (&"signal".into(), &true.into()));
}

#[test]
fn without_privileges_all_is_refused_with_a_remedy_and_it_measures_all_the_same() {
    let _turn = alone();
    // The folder of the build may be closed to strangers.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("lat-probe");
    fs::copy(BINARY, &copy).unwrap();
    let drop_all = if fs::metadata("/proc/self").unwrap().uid() == 0 {
        "setpriv --reuid 65534 --regid 65534 --clear-groups"
    } else {
        ""
    };
    let run = |format: &str| {
        let script = format!(
            "cd /; ulimit -l 64; exec {drop_all} {} --engine null --count 1000 --quiet --format {format}",
            copy.display()
        );
        let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{script}: {}", text(&output.stderr));
        output
    };
    let result = json(&run("json"));
    assert_valid(&result);
    assert_every_measure_once(&result["quiet"]);
    assert_eq!(names(&result["quiet"], "applied"), Vec::<String>::new());
    assert_eq!(result["points"][0]["latency_ns"]["n"], 1000);
    for entry in result["quiet"]["refused"].as_array().unwrap() {
        let reason = entry["reason"].as_str().unwrap();
        let words = ["root", "Raise", "CAP_", "sysctl", "container", "one processor", "no processor", "not shown"];
        assert!(words.iter().any(|word| reason.contains(word)), "{entry}");
    }
    let output = run("text");
    let printed = text(&output.stdout);
    assert!(printed.contains("\nquiet      nothing\n"), "{printed}");
    for what in MEASURES {
        assert!(printed.contains(&format!("           not {what}: ")), "{what}: {printed}");
    }
}

#[test]
fn a_probe_file_may_ask_for_it_for_all_of_its_measurements() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let run = |second: &str| {
        let path = folder.path().join("probe.json");
        let probe = format!(
            r#"{{ "schema": "lat-probe.probe/1", "title": "t", "defaults": {{ "count": 100, "engine": "null" }},
                 "measurements": [ {{ "quiet": true }}, {{ {second} }} ] }}"#
        );
        fs::write(&path, probe).unwrap();
        lat_probe(&format!("run {} --format json", path.display())).output().unwrap()
    };
    let both = run("\"quiet\": true");
    assert_eq!(both.status.code(), Some(0), "{}", text(&both.stderr));
    assert_every_measure_once(&json(&both)["quiet"]);
    let one = run("");
    assert_eq!(one.status.code(), Some(2));
    assert!(text(&one.stderr).contains("--quiet must be the same"), "{}", text(&one.stderr));
}

#[test]
fn a_calibration_can_be_quiet_too() {
    let _turn = alone();
    let report = measured("calibrate --window 1ms --quiet");
    assert_valid_as("calibration-1", &report);
    assert_every_measure_once(&report["quiet"]);
    assert_eq!(measured("calibrate --window 1ms")["quiet"], Value::Null);
}
