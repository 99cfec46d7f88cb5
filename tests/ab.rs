//! `lat-probe ab` on this machine: the order of a series, its hooks, what is kept when something fails, and going on.

mod schema_check;

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use schema_check::{assert_valid, assert_valid_as};
use serde_json::Value;

/// Measurements that take a moment.
const SHORT: [&str; 8] = ["--engine", "spin", "--delay", "1us", "--count", "200", "--warmup", "5"];

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.current_dir(folder).arg("ab").args(arguments).args(SHORT).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ab(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    assert!(!stderr(output).contains("panicked"), "{}", stderr(output));
    output.status.code().unwrap_or(-1)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A hook that notes where it runs.
const NOTE: &str = "echo \"$LAT_PROBE_SIDE $LAT_PROBE_ROUND $LAT_PROBE_BLOCK $LAT_PROBE_POINT\" >> log";

#[test]
fn sides_alternate_in_mirrored_blocks_and_hooks_know_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let output = ab(
        folder.path(),
        &[
            "--a",
            NOTE,
            "--side",
            &format!("other={NOTE}"),
            "--aa",
            "--rounds",
            "4",
            "--output",
            "s.json",
            "--comparison",
            "c.json",
            "--after",
            "echo after >> log",
        ],
    );
    // The sides are equal; what can be said of them depends on the machine.
    assert!([0, 3, 4].contains(&code(&output)), "{}", stderr(&output));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.rsplitn(4, ' ').collect()).collect();
    assert_eq!(lines.len(), 24, "{log}");
    assert!(lines.iter().skip(1).step_by(2).all(|line| line == &["after"]), "{log}");
    let made: Vec<_> = lines.iter().step_by(2).collect();
    for block in made.chunks(6) {
        let sides: Vec<_> = block.iter().map(|line| line[3]).collect();
        assert!(sides.iter().eq(sides.iter().rev()), "{log}");
        assert!(["a", "other", "a again"].iter().all(|side| sides.contains(side)), "{log}");
    }
    assert_eq!(made.iter().filter(|line| line[2] == "4").count(), 3, "each side has four rounds: {log}");
    assert!(made.iter().all(|line| line[0] == "spin") && made[6][1] == "2", "{log}");

    let series = json(&folder.path().join("s.json"));
    assert_valid_as("series-1", &series);
    let rounds = series["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 12);
    rounds.iter().for_each(|round| assert_valid(&round["result"]));
    // One calibration for all.
    let rate = |round: &Value| round["result"]["clock"]["ticks_per_ns"].clone();
    assert!(rounds.iter().all(|round| rate(round) == rate(&rounds[0])));
    let comparison = json(&folder.path().join("c.json"));
    assert_valid_as("comparison-1", &comparison);
    assert_eq!((&comparison["sides"][2]["control"], &comparison["method"]["in_blocks"]), (&true.into(), &true.into()));
    // The series can be compared again.
    let mut again = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    let again = again.current_dir(folder.path()).args(["compare", "s.json", "--format", "json"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap()["points"], comparison["points"]);
}

#[test]
fn a_hook_that_fails_is_shown_and_the_series_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--a", "true", "--b", "test -e ready || { echo not ready; exit 9; }", "--rounds", "4", "--output", "s.json"];
    let output = ab(folder.path(), &arguments);
    assert_eq!(code(&output), 1);
    let said = stderr(&output);
    assert!(said.contains("exit status: 9\n  | not ready"), "{said}");
    assert!(said.contains("rounds are kept in s.json; go on with --resume"), "{said}");
    let kept = json(&folder.path().join("s.json"))["rounds"].as_array().unwrap().len();
    assert!(kept <= 1, "{kept}");
    // A series that is there is not overwritten.
    fs::write(folder.path().join("ready"), "").unwrap();
    if kept > 0 {
        let output = ab(folder.path(), &arguments);
        assert!(code(&output) == 2 && stderr(&output).contains("--resume goes on with it"), "{}", stderr(&output));
    }
    let output = ab(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert!([0, 3, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_eq!(json(&folder.path().join("s.json"))["rounds"].as_array().unwrap().len(), 8);
    // It is complete: nothing is measured again.
    let began = Instant::now();
    let output = ab(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert!([0, 3, 4].contains(&code(&output)) && began.elapsed() < Duration::from_secs(5), "{}", stderr(&output));
    // Another measurement is another series.
    let output = ab(folder.path(), &[&arguments[..], &["--resume", "--phases"]].concat());
    assert!(code(&output) == 2 && stderr(&output).contains("other measurements"), "{}", stderr(&output));
}

#[test]
fn a_signal_ends_a_series_with_its_rounds_kept() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--a", "true", "--b", "true", "--rounds", "1000", "--settle", "20ms", "--output", "s.json"];
    let child = command(folder.path(), &arguments).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let rounds =
        || fs::read_to_string(folder.path().join("s.json")).map_or(0, |text| text.matches("\"ended_by\":").count());
    while rounds() < 5 {
        assert!(Instant::now() < until, "no round is stored");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert!(json(&folder.path().join("s.json"))["rounds"].as_array().unwrap().len() >= 5);
    assert!(String::from_utf8_lossy(&output.stdout).contains("verdict"), "{:?}", output.stdout);
}

#[test]
fn a_time_budget_ends_a_series_and_one_block_has_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--a", "true", "--b", "true", "--rounds", "1000", "--output", "s.json", "--time-budget", "1s"];
    let output = ab(folder.path(), &arguments);
    assert!([0, 3, 4].contains(&code(&output)), "{}", stderr(&output));
    assert!(json(&folder.path().join("s.json"))["rounds"].as_array().unwrap().len() < 1000);
    let output = ab(folder.path(), &["--a", "true", "--b", "true", "--rounds", "2", "--output", "t.json"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("[few-rounds]"));
}

#[test]
fn without_a_file_a_series_is_compared_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let output = ab(folder.path(), &["--a", "true", "--b", "true", "--rounds", "2"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("verdict    inconclusive"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let output = ab(folder.path(), &["--a", "true", "--b", "exit 9", "--rounds", "2"]);
    assert!(code(&output) == 1 && stderr(&output).contains("no round is kept"), "{}", stderr(&output));
}

#[test]
fn what_was_settled_stays_settled_when_the_series_is_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "--a",
        "true",
        "--b",
        "true",
        "--rounds",
        "20",
        "--until-settled",
        "--min-effect",
        "1000%",
        "--output",
        "s.json",
    ];
    let rounds = || json(&folder.path().join("s.json"))["rounds"].as_array().unwrap().len();
    let output = ab(folder.path(), &arguments);
    assert_eq!((code(&output), rounds()), (0, 32), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("intervals of 97.5 %"), "{:?}", output.stdout);
    let output = ab(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert_eq!((code(&output), rounds()), (0, 32), "{}", stderr(&output));
}

#[test]
fn blocks_of_two_series_are_not_the_same_blocks() {
    let folder = tempfile::tempdir().unwrap();
    for (one, two, file) in [("w=true", "x=true", "s.json"), ("y=true", "z=true", "t.json")] {
        let output = ab(folder.path(), &["--side", one, "--side", two, "--rounds", "2", "--output", file]);
        assert_eq!(code(&output), 4, "{}", stderr(&output));
    }
    let both = Command::new(env!("CARGO_BIN_EXE_lat-probe"))
        .current_dir(folder.path())
        .args(["compare", "s.json", "t.json", "--format", "json"])
        .output()
        .unwrap();
    let comparison: Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!((&comparison["method"]["in_blocks"], comparison["sides"].as_array().unwrap().len()), (&false.into(), 4));
}

#[test]
fn what_makes_no_series_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["--a", "true", "--output", "s.json"][..], "ab needs two sides"),
        (&["--a", "true", "--b", "true", "--resume"], "--resume needs the --output FILE"),
        (&["--a", "true", "--b", "true", "--rounds", "3", "--output", "s.json"], "an even number is needed"),
        (&["--a", "true", "--b", "true", "--rounds", "0", "--output", "s.json"], "an even number is needed"),
        (&["--side", "x=true", "--side", "x=true", "--output", "s.json"], "the name is taken"),
        (&["--side", "true", "--output", "s.json"], "write NAME=CMD"),
        (&["--a", "true", "--b", "true", "--label", "x", "--output", "s.json"], "--label: each round of ab has"),
        (&["--a", "true", "--b", "true", "--resume", "--output", "none.json"], "none.json"),
    ] {
        let output = ab(folder.path(), arguments);
        assert!(code(&output) == 2 && stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
}
