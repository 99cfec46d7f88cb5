//! The command line as a user meets it, on a machine without RDMA: exit codes, what goes to which stream, what stays of a
//! result when something goes wrong. What needs a device is tested in the lab.

mod full_disk;

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_lat-probe");

/// Options that make a run short, for tests that look at something else.
const SHORT: [&str; 4] = ["--engine", "null", "--count", "1000"];

fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(BINARY).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// The code of a program that ended by itself and without a panic.
fn code(output: &Output) -> i32 {
    assert!(!stderr(output).contains("panicked"), "{}", stderr(output));
    output.status.code().unwrap_or_else(|| panic!("ended by signal {:?}", output.status.signal()))
}

/// Asserts a failure that says all of `words` on stderr and nothing on stdout.
fn assert_refused(arguments: &[&str], expected: i32, words: &[&str]) {
    let output = run(arguments);
    assert_eq!(code(&output), expected, "{arguments:?}: {}", stderr(&output));
    assert_eq!(stdout(&output), "", "{arguments:?}");
    for word in words {
        assert!(stderr(&output).contains(word), "{arguments:?} should name {word:?}: {}", stderr(&output));
    }
}

/// Runs it in JSON mode; stdout must be one document and nothing else.
fn measured(arguments: &[&str]) -> Value {
    let output = run(arguments.iter().copied().chain(["--format", "json"]));
    assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{arguments:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn samples(result: &Value) -> u64 {
    result["points"][0]["latency_ns"]["n"].as_u64().unwrap()
}

#[test]
fn a_broken_number_is_refused_with_its_option_and_its_text() {
    for text in ["4k7", "-1", "18446744073709551616", "1.5k", "0x10", "99999999999999999999999999999999999"] {
        assert_refused(&["--engine", "rdma-read", "--bs", text], 2, &["--bs", text]);
        assert_refused(&["--engine", "null", "--count", text], 2, &["--count", text]);
        assert_refused(&["--engine", "null", "--duration", text], 2, &["--duration", text]);
    }
    for option in ["--bs", "--count", "--duration", "--qd", "--warmup", "--cpu"] {
        assert_refused(&["--engine", "null", option, ""], 2, &[option, "empty"]);
    }
    assert_refused(&["--engine", "rdma-read", "--bs", "8,,64"], 2, &["--bs", "empty"]);
    assert_refused(&["--engine", "rdma-read", "--bs", "8,4k7"], 2, &["--bs", "4k7"]);
}

#[test]
fn zero_and_too_much_are_refused_with_the_range() {
    assert_refused(&["--engine", "null", "--count", "0"], 2, &["--count 0", "1 to 9007199254740991"]);
    assert_refused(&["--engine", "null", "--duration", "0s"], 2, &["--duration"]);
    assert_refused(&["--engine", "null", "--qd", "0"], 2, &["--qd 0"]);
    assert_refused(&["--engine", "null", "--qd", "1048577"], 2, &["--qd 1048577", "1 to 1048576"]);
    assert_refused(&["--engine", "spin", "--qd", "2"], 2, &["--qd 2", "one command outstanding"]);
    assert_refused(&["--engine", "null", "--jobs", "0"], 2, &["--jobs 0"]);
    assert_refused(&["--engine", "null", "--count", "18446744073709551615"], 2, &["--count", "9007199254740991"]);
    assert_refused(&["--engine", "spin", "--delay", "0ns"], 2, &["--delay"]);
    assert_refused(&["--engine", "rdma-read", "--bs", "2G"], 2, &["--bs", "2147483648", "1G"]);
    assert_refused(&["serve", "--max-clients", "-1"], 2, &["--max-clients"]);
}

#[test]
fn a_missing_or_unknown_engine_is_refused_with_those_there_are() {
    assert_refused(&[], 2, &["--engine", "rdma-read", "null", "spin"]);
    assert_refused(&["--count", "5"], 2, &["--engine", "rdma-read"]);
    assert_refused(&["--engine", "rdma-reed"], 2, &["rdma-reed", "rdma-read", "spin"]);
    assert_refused(&["--engine", "null", "--no-such-option"], 2, &["--no-such-option"]);
}

#[test]
fn options_that_the_engine_does_not_know_are_refused() {
    assert_refused(&["--engine", "null", "--bs", "8"], 2, &["--bs", "null"]);
    assert_refused(&["--engine", "spin", "--peer", "host-b"], 2, &["--peer", "spin"]);
    assert_refused(&["--engine", "rdma-read", "--delay", "1us"], 2, &["--delay", "rdma-read"]);
    assert_refused(&["--engine", "rdma-cas", "--bs", "16"], 2, &["--bs 16", "8 bytes"]);
}

#[test]
fn an_argument_that_is_not_utf_8_is_refused() {
    for arguments in [[b"--engine".as_slice(), b"nu\xffll"], [b"--label", b"\xff\xfe"], [b"--bs", b"\xff"]] {
        let output = run(arguments.map(OsStr::from_bytes));
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(OsStr::from_bytes(b"result-\xff.json"));
    let output = run(SHORT.map(OsString::from).into_iter().chain(["--output".into(), path.clone().into()]));
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(result["schema"], "lat-probe.result/1");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left in the folder");
}

#[test]
fn an_output_that_cannot_be_written_is_found_out_before_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/result.json");
    for path in [missing.as_path(), folder.path()] {
        let started = Instant::now();
        let path = path.to_str().unwrap();
        assert_refused(&["--engine", "spin", "--duration", "1h", "--output", path], 1, &[path]);
        assert!(started.elapsed() < Duration::from_secs(60), "it measured first");
    }
    assert!(!missing.exists());
}

#[test]
fn a_full_disk_is_found_out_before_measuring_and_the_old_file_is_kept() {
    let arguments = ["--engine", "spin", "--duration", "1h", "--output", "result.json"];
    let Some(output) = full_disk::run(Path::new(BINARY), "result.json", &arguments) else { return };
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("result.json: No space left"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "old\nfill\nresult.json\n");
}

#[test]
fn a_device_that_takes_nothing_is_an_error_with_its_name() {
    if !Path::new("/dev/full").exists() {
        return eprintln!("skipped: there is no /dev/full here");
    }
    let output = run(SHORT.into_iter().chain(["--output", "/dev/full"]));
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("/dev/full: No space left"), "{}", stderr(&output));
}

#[test]
fn an_old_result_stays_when_nothing_could_be_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    fs::write(&path, "old").unwrap();
    let output = run(SHORT.into_iter().chain(["--cpu", "1023", "--output", path.to_str().unwrap()]));
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left in the folder");
}

#[test]
fn a_closed_pipe_on_stdout_is_an_error_and_the_file_is_complete() {
    for format in ["text", "json"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let arguments = SHORT.into_iter().chain(["--format", format, "--output", path.to_str().unwrap()]);
        let mut child = start(arguments);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains("<stdout>"), "{}", stderr(&output));
        let result: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(samples(&result), 1000);
    }
    for arguments in [vec!["--help"], vec!["engines"], vec!["check"]] {
        let mut child = start(&arguments);
        drop(child.stdout.take());
        code(&child.wait_with_output().unwrap());
    }
}

#[test]
fn an_rdma_engine_without_a_device_says_how_to_get_one() {
    if fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some()) {
        return eprintln!("skipped: this machine has an RDMA device");
    }
    let words: &[&str] = if cfg!(feature = "rdma") {
        &["modprobe", "rdma_rxe", "rdma link add rxe0 type rxe netdev", "scripts/lab"]
    } else {
        &["no RDMA engines", "default features"]
    };
    for engine in ["rdma-read", "rdma-write", "rdma-send", "rdma-cas", "rdma-faa", "rdma-send-pingpong"] {
        assert_refused(&["--engine", engine, "--qd", "1"], 77, words);
    }
    assert_refused(&["serve", "--bind", "127.0.0.1"], 77, words);
}

#[test]
fn an_absent_cpu_and_a_forbidden_one_have_their_own_messages() {
    let with = |cpu| SHORT.into_iter().chain(["--cpu", cpu]).collect::<Vec<_>>();
    assert_refused(&with("1023"), 2, &["--cpu", "1023", "does not exist"]);
    assert_refused(&with("100000"), 2, &["--cpu", "100000", "out of range"]);
    // The test's own set may be narrow already.
    let usable: Vec<usize> = lat_probe::host::Cpus::read().usable().iter().collect();
    let [first, .., last] = usable[..] else {
        return eprintln!("skipped: only one CPU can be used here");
    };
    let taskset =
        Command::new("taskset").args(["-c", &first.to_string(), BINARY]).args(with(&last.to_string())).output();
    let Ok(output) = taskset else { return eprintln!("skipped: there is no taskset here") };
    assert_eq!((code(&output), stdout(&output)), (2, ""));
    assert!(stderr(&output).contains("not allowed"), "{}", stderr(&output));
}

fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Child {
    let mut command = Command::new(BINARY);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until the program would catch `signal`: before that it would just be killed.
fn wait_until_caught(child: &Child, signal: Signal) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal as i32 - 1)) != 0 {
            return;
        }
        assert!(Instant::now() < deadline, "it never took over the signal");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Signals a long run after `patience`; checks all that must hold, and returns how many samples were taken until then.
fn interrupted(signal: Signal, expected: i32, patience: Duration) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let long =
        ["--engine", "spin", "--delay", "1ms", "--warmup", "10", "--count", "1M", "--format", "json", "--output"];
    let child = start(long.into_iter().chain([path.to_str().unwrap()]));
    wait_until_caught(&child, signal);
    thread::sleep(patience);
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), expected, "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let point = &result["points"][0];
    assert_eq!((&point["partial"], &point["ended_by"]), (&true.into(), &"signal".into()));
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap(), result);
    samples(&result)
}

#[test]
fn a_signal_ends_a_run_with_a_partial_result() {
    for (signal, expected) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        // Set-up takes a second, more on a busy machine: a signal that came too early is sent again later.
        let mut waits = [0, 2, 6, 12, 24].map(Duration::from_secs).into_iter();
        assert!(waits.any(|patience| interrupted(signal, expected, patience) > 0), "{signal}: no sample was kept");
    }
}

#[test]
fn a_count_is_kept_exactly() {
    for count in [1, 2, 63, 64, 65, 4321] {
        let result = measured(&["--engine", "null", "--count", &count.to_string(), "--warmup", "7"]);
        let point = &result["points"][0];
        assert_eq!((samples(&result), &point["ended_by"], &point["partial"]), (count, &"count".into(), &false.into()));
        assert_eq!((&point["config"]["count"], &point["config"]["warmup"]), (&count.into(), &7.into()));
    }
}

#[test]
fn the_first_limit_reached_ends_the_run() {
    let started = Instant::now();
    let long = ["--engine", "spin", "--delay", "50us", "--duration", "300ms"];
    let result = measured(&long);
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(result["points"][0]["ended_by"], "duration");
    // Commands of at least 50 µs, and one chunk more at most.
    assert!((1..=6400).contains(&samples(&result)), "{} samples", samples(&result));
    let by_count = measured(&["--engine", "spin", "--delay", "50us", "--duration", "1h", "--count", "20"]);
    assert_eq!((samples(&by_count), &by_count["points"][0]["ended_by"]), (20, &"count".into()));
}

#[test]
fn a_known_delay_is_never_measured_as_less() {
    for clock in ["auto", "monotonic"] {
        let arguments = ["--engine", "spin", "--delay", "20us", "--count", "500", "--clock", clock];
        for phases in [&[][..], &["--phases"]] {
            let result = measured(&[&arguments[..], phases].concat());
            // A tick of rounding is less than a nanosecond.
            let min_ns = result["points"][0]["latency_ns"]["min"].as_f64().unwrap();
            assert!(min_ns >= 19_999.0, "--clock {clock} {phases:?}: {min_ns} ns");
            assert_eq!(result["points"][0]["wait_ns"].is_object(), !phases.is_empty());
            assert!(clock == "auto" || result["clock"]["source"] == clock);
        }
    }
}

#[test]
fn a_label_and_facts_are_kept_in_the_result() {
    let result = measured(&[&SHORT[..], &["--label", "before λ", "--meta", "fw=1.2=3", "--meta", "slot=4"]].concat());
    assert_eq!(result["label"], "before λ");
    assert_eq!((&result["meta"]["fw"], &result["meta"]["slot"]), (&"1.2=3".into(), &"4".into()));
    assert_refused(&[&SHORT[..], &["--meta", "novalue"]].concat(), 2, &["--meta", "KEY=VALUE"]);
}

#[test]
fn a_table_goes_to_stdout_and_nothing_to_stderr() {
    let output = run(SHORT);
    assert_eq!((code(&output), stderr(&output)), (0, ""));
    for word in ["null, depth 1", "1,000 commands", "p50", "floor", "clock"] {
        assert!(stdout(&output).contains(word), "{word:?} is missing:\n{}", stdout(&output));
    }
}

#[test]
fn help_and_the_looks_at_the_machine_work_everywhere() {
    for (arguments, words) in [
        (vec!["--help"], ["--engine", "Exit codes"]),
        (vec!["serve", "--help"], ["--bind", "--token-file"]),
        (vec!["--version"], ["lat-probe", env!("CARGO_PKG_VERSION")]),
        (vec!["engines"], ["rdma-read", "spin"]),
        (vec!["check"], ["clocksource", "memlock"]),
    ] {
        let output = run(&arguments);
        assert_eq!((code(&output), stderr(&output)), (0, ""), "{arguments:?}");
        assert!(words.iter().all(|word| stdout(&output).contains(word)), "{arguments:?}: {}", stdout(&output));
    }
}

#[test]
fn an_interrupted_list_of_points_is_kept_and_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweep.json");
    let path = file.to_str().unwrap();
    let sweep = ["--engine", "spin", "--delay", "1ms", "--count", "400", "--jobs", "1,2", "--output", path];
    let mut child = Command::new(BINARY).args(sweep).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The first point is in the file as soon as it is measured, while the second one is.
    let read = || serde_json::from_slice::<Value>(&fs::read(&file).unwrap_or_default()).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(20);
    while read()["points"].as_array().is_none_or(Vec::is_empty) {
        assert!(Instant::now() < until, "no point was stored");
        thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let first = read()["points"][0].clone();
    assert_eq!((&read()["sweep"]["complete"], &first["partial"]), (&Value::from(false), &Value::from(false)));
    // Other options are another measurement.
    assert_refused(&["--engine", "null", "--resume", "--output", path], 2, &["other measurements"]);
    assert_eq!(code(&run(sweep.iter().copied().chain(["--resume"]))), 0);
    let whole = read();
    assert_eq!((whole["points"].as_array().unwrap().len(), &whole["points"][0]), (2, &first));
    assert_eq!((&whole["points"][1]["partial"], &whole["sweep"]["complete"]), (&false.into(), &true.into()));
    assert_eq!(whole["sweep"]["sessions"].as_array().unwrap().len(), 2);
    assert_refused(&[&sweep[..], &["--resume"]].concat(), 2, &["is complete"]);
}

#[test]
fn sizes_are_a_range_and_lists_make_every_combination() {
    let result = measured(&["--engine", "null", "--qd", "1,8", "--jobs", "1,2", "--count", "50"]);
    let points = result["points"].as_array().unwrap();
    let loads: Vec<_> = points.iter().map(|point| (&point["config"]["jobs"], &point["config"]["qd"])).collect();
    let loads: Vec<_> = loads.iter().map(|(jobs, qd)| (jobs.as_u64().unwrap(), qd.as_u64().unwrap())).collect();
    assert_eq!(loads, [(1, 1), (1, 8), (2, 1), (2, 8)]);
    for (range, words) in [("2..8", "FROM..TO"), ("8..2:*2", "empty"), ("2..8:*1", "do not grow"), ("0..8:*2", "grow")]
    {
        assert_refused(&["--engine", "psync", "--target", "/dev/null", "--sizes", range], 2, &["--sizes", words]);
    }
}

#[test]
fn a_warm_up_lasts_as_long_as_was_asked_and_is_in_no_statistic() {
    let result =
        measured(&["--engine", "spin", "--delay", "1ms", "--count", "5", "--warmup", "0", "--warmup-time", "300ms"]);
    let point = &result["points"][0];
    assert_eq!((samples(&result), &point["config"]["warmup_time_ns"]), (5, &300_000_000.into()));
    assert!(point["cpu"]["elapsed_ns"].as_f64().unwrap() > 300e6, "{}", point["cpu"]);
}

#[test]
fn a_hundred_and_twenty_eight_jobs_make_one_point_of_all_their_commands() {
    let result = measured(&["--engine", "null", "--jobs", "128", "--count", "300", "--warmup", "0", "--per-job"]);
    let point = &result["points"][0];
    assert_eq!((&point["latency_ns"]["n"], point["per_job"].as_array().unwrap().len()), (&38_400.into(), 128));
    let codes: Vec<_> = result["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
    let cpus = thread::available_parallelism().unwrap().get();
    assert_eq!(codes.iter().any(|code| **code == "jobs-share-cpus"), cpus < 128, "{codes:?}");
}

#[test]
fn a_stop_of_800_ms_shows_in_the_response_of_every_command_that_was_due_in_it() {
    let arguments = ["--engine", "null", "--rate", "5000", "--duration", "8s", "--format", "json"];
    let child = Command::new(BINARY).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_raw(child.id() as i32);
    thread::sleep(Duration::from_millis(5000));
    kill(pid, Signal::SIGSTOP).unwrap();
    thread::sleep(Duration::from_millis(800));
    kill(pid, Signal::SIGCONT).unwrap();
    let result: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    let point = &result["points"][0];
    // 4,000 of the 40,000 commands were due in those 800 ms: a tenth, of which the last ones waited for hardly any time.
    let (service, response) = (&point["latency_ns"]["percentiles"], &point["response_ns"]["percentiles"]);
    assert!(point["latency_ns"]["n"].as_f64().unwrap() > 36_000.0, "{}", point["latency_ns"]);
    assert!(response["95"].as_f64().unwrap() > 100e6 && response["99"].as_f64().unwrap() > 250e6, "{response}");
    assert!(service["99"].as_f64().unwrap() < 50e6, "{service}");
    assert_eq!((&point["loop"], &point["pace"]["rate_per_s"]), (&"open".into(), &5000.into()));
}
