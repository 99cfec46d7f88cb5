//! What is known beforehand comes out: waits of a known time, a process that was stopped, a thread that was moved.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

fn start(arguments: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(arguments.split_whitespace()).args(["--format", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The processors that this process may use.
fn cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false)).collect()
}

/// Exit code, result and diagnostics.
fn end(child: Child) -> (i32, Value, String) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), serde_json::from_slice(&output.stdout).unwrap_or_default(), said)
}

/// Waits until commands are being measured.
fn wait_for_measuring(child: &Child) {
    let until = Instant::now() + Duration::from_secs(20);
    let tasks = format!("/proc/{}/task", child.id());
    let is_measuring = || {
        let tasks = fs::read_dir(&tasks).into_iter().flatten().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).any(|comm| comm.trim() == "monitor")
    };
    while !is_measuring() {
        assert!(Instant::now() < until, "it does not begin to measure");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The smallest step of the clock, in nanoseconds. On some virtual machines the counter moves by 20 ns at a time.
fn clock_step_ns() -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    let output = command.args(["calibrate", "--window", "1ms", "--format", "json"]).output().unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["stamps"]["step_ns"].as_f64().unwrap()
}

#[test]
fn a_wait_of_a_known_time_is_measured_to_25_ns_and_a_thousandth_beyond_floor_and_step() {
    if cfg!(debug_assertions) {
        eprintln!(
            "skipped: a build without optimisation is not what is measured with (scripts/test has a release build)"
        );
        return;
    }
    let step = clock_step_ns();
    for (delay, ns, count) in
        [("100ns", 1e2, 50_000), ("1us", 1e3, 50_000), ("10us", 1e4, 10_000), ("100us", 1e5, 2_000), ("1ms", 1e6, 300)]
    {
        let (code, result, said) = end(start(&format!("--engine spin --delay {delay} --count {count} --warmup 50")));
        assert_eq!(code, 0, "{said}");
        if result["clock"]["source"] != "tsc" {
            eprintln!("skipped: without an invariant TSC a read of the clock costs more than is asked for here");
            return;
        }
        let p50 = result["points"][0]["latency_ns"]["percentiles"]["50"].as_f64().unwrap();
        // Two reads of the clock are in every sample, and the wait itself ends at a step of it.
        let floor = result["instrument"]["floor_ns"]["percentiles"]["50"].as_f64().unwrap();
        assert!(
            p50 >= ns && p50 <= ns * 1.001 + floor + step + 25.0,
            "{delay}: p50 {p50} ns, floor {floor}, step {step}"
        );
    }
}

#[test]
fn a_process_that_was_stopped_shows_it_as_one_outlier_of_that_size_and_time() {
    let stopped = Duration::from_millis(200);
    let child = start("--engine spin --delay 10us --duration 2s --warmup 0");
    wait_for_measuring(&child);
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(300));
    let id = Pid::from_raw(child.id() as i32);
    kill(id, Signal::SIGSTOP).unwrap();
    let at = began.elapsed();
    std::thread::sleep(stopped);
    kill(id, Signal::SIGCONT).unwrap();
    let took = began.elapsed() - at;
    let (code, result, said) = end(child);
    assert_eq!(code, 0, "{said}");
    let largest = &result["points"][0]["outliers"][0];
    let (latency_ns, at_ns) = (largest["latency_ns"].as_f64().unwrap(), largest["at_ns"].as_f64().unwrap());
    // Longer only by what the scheduler and the wait before it add; the machine may be busy.
    assert!(latency_ns >= stopped.as_nanos() as f64 * 0.99, "{largest}");
    assert!(latency_ns <= took.as_nanos() as f64 + 100e6, "{largest}, stopped for {took:?}");
    assert!((at_ns - at.as_nanos() as f64).abs() < 150e6, "{largest}, stopped at {at:?}");
    assert_eq!(result["points"][0]["latency_ns"]["max"], largest["latency_ns"]);
    if cpus().len() > 1 {
        assert_eq!((&largest["cause"], &largest["nearby"]["stopped"]), (&"stopped".into(), &true.into()), "{largest}");
    }
}

#[test]
fn other_busy_threads_on_the_processor_are_found_as_the_cause() {
    let [first, _, ..] = cpus()[..] else {
        eprintln!("skipped: there is one processor, so nobody looks on");
        return;
    };
    let child = start(&format!("--engine spin --delay 10us --duration 2s --warmup 0 --cpu {first}"));
    wait_for_measuring(&child);
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(500));
    let from = began.elapsed();
    let busy = || {
        let mut here = CpuSet::new();
        here.set(first).unwrap();
        sched_setaffinity(Pid::from_raw(0), &here).unwrap();
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    };
    // Four of them wait longer for each other than whatever else is running makes anybody wait.
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(busy))));
    let to = began.elapsed();
    let (code, result, said) = end(child);
    assert_eq!(code, 0, "{said}");
    let point = &result["points"][0];
    let slow: Vec<_> =
        point["outliers"].as_array().unwrap().iter().filter(|o| o["latency_ns"].as_f64() > Some(1e6)).collect();
    let blamed: Vec<_> = slow.iter().filter(|outlier| outlier["cause"] == "run-queue-wait").collect();
    assert!(!blamed.is_empty() && 2 * blamed.len() > slow.len(), "{slow:#?}");
    // The slices of the other threads, within their time.
    let within = |outlier: &&&Value| {
        let at = outlier["at_ns"].as_f64().unwrap();
        at > from.as_nanos() as f64 - 150e6 && at < to.as_nanos() as f64 + 150e6
    };
    assert!(blamed.iter().any(within), "{from:?} to {to:?}: {blamed:#?}");
    assert!(point["cpu"]["run_queue_wait_ns"].as_f64() > Some(50e6), "{}", point["cpu"]);
}

#[test]
fn a_thread_that_is_moved_ends_the_run_with_an_error_and_a_partial_result() {
    let [first, .., last] = cpus()[..] else {
        eprintln!("skipped: there is one processor");
        return;
    };
    let child = start(&format!("--engine spin --delay 10us --duration 20s --warmup 0 --cpu {first}"));
    wait_for_measuring(&child);
    std::thread::sleep(Duration::from_millis(100));
    let mut elsewhere = CpuSet::new();
    elsewhere.set(last).unwrap();
    // The first thread of the process is the one that measures.
    sched_setaffinity(Pid::from_raw(child.id() as i32), &elsewhere).unwrap();
    let began = Instant::now();
    let (code, result, said) = end(child);
    assert_eq!(code, 1, "{said}");
    assert!(began.elapsed() < Duration::from_secs(10), "it went on for {:?}", began.elapsed());
    assert!(said.contains(&format!("moved from CPU {first} to CPU {last}")), "{said}");
    let point = &result["points"][0];
    assert_eq!((&point["partial"], &point["ended_by"]), (&true.into(), &"error".into()));
    assert!(point["latency_ns"]["n"].as_u64().unwrap() > 0);
}
