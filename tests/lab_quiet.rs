//! `--quiet` on a stock kernel, which allows everything: interrupts leave the measuring processor and come back, however the
//! run ends. Run in the lab: `scripts/test`, or `scripts/lab -- TEST-BINARY --test-threads=1`.

mod lab;

use std::{
    collections::BTreeMap,
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use lab::{Background, LAT_PROBE, Undo, measure, shell};
use serde_json::Value;

/// Commands that take a while; the measuring processor of this machine of two is CPU 1.
const LONG: &str = "--engine spin --delay 100us --duration 60s --cpu 1 --quiet --format json";
const SHORT: &str = "--engine spin --delay 100us --count 200 --warmup 2 --cpu 1 --quiet";

/// Longest time in which everything must be as before.
const RESTORED: Duration = Duration::from_secs(20);

/// A run that measures until it is told to end. Whoever started the lab may have had SIGHUP ignored, which is inherited.
fn start() -> Background {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", LAT_PROBE]).args(LONG.split_whitespace()).stdin(Stdio::null());
    let running = Background(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    running.wait_until_it_measures();
    running
}

/// The processors of every interrupt, by its number.
fn affinities() -> BTreeMap<u32, String> {
    let folders = fs::read_dir("/proc/irq").unwrap().flatten();
    let read = |folder: fs::DirEntry| {
        let list = fs::read_to_string(folder.path().join("smp_affinity_list")).ok()?;
        Some((folder.file_name().to_str()?.parse().ok()?, list.trim().to_string()))
    };
    folders.filter_map(read).collect()
}

/// The interrupts that changed, with where they may come now.
fn moved(before: &BTreeMap<u32, String>, now: &BTreeMap<u32, String>) -> BTreeMap<u32, String> {
    now.iter().filter(|(number, list)| before.get(number) != Some(list)).map(|(n, list)| (*n, list.clone())).collect()
}

fn assert_restored(how: &str, before: &BTreeMap<u32, String>) {
    let until = Instant::now() + RESTORED;
    while affinities() != *before {
        assert!(Instant::now() < until, "{how}: still changed: {:?}", moved(before, &affinities()));
        std::thread::sleep(Duration::from_millis(50));
    }
    // After a kill it may still be about to end.
    while !shell("pgrep -f '[l]at-probe-guardian'").stdout.is_empty() {
        assert!(Instant::now() < until, "{how}: a guardian is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn reason(result: &Value, what: &str) -> String {
    let refused = result["quiet"]["refused"].as_array().unwrap();
    let found = refused.iter().find(|entry| entry["what"] == what);
    found.map_or_else(String::new, |entry| entry["reason"].as_str().unwrap().to_string())
}

fn detail(result: &Value, what: &str) -> String {
    let applied = result["quiet"]["applied"].as_array().unwrap();
    let found = applied.iter().find(|entry| entry["what"] == what);
    found.map_or_else(String::new, |entry| entry["detail"].as_str().unwrap().to_string())
}

#[test]
fn interrupts_leave_the_processor_and_come_back_however_the_run_ends() {
    if !lab::in_lab(1) {
        return;
    }
    let before = affinities();
    for (signals, code) in
        [("INT", 130), ("TERM", 143), ("HUP", 129), ("KILL", -1), ("ABRT", -1), ("INT INT", 130), ("QUIT", -1)]
    {
        eprintln!("SIG{signals}");
        let running = start();
        let changed = moved(&before, &affinities());
        assert!(!changed.is_empty(), "{signals}: nothing was moved of {before:?}");
        assert!(changed.values().all(|list| list == "0"), "{signals}: {changed:?}");
        for signal in signals.split(' ') {
            running.signal(signal);
        }
        let (ended, _, stderr) = running.wait(RESTORED);
        assert_eq!(ended, code, "{signals}: {stderr}");
        assert_restored(signals, &before);
    }
}

#[test]
fn a_run_that_ends_by_itself_or_fails_leaves_everything_as_it_was() {
    if !lab::in_lab(1) {
        return;
    }
    let before = affinities();
    let result = measure(SHORT);
    assert!(detail(&result, "interrupt-affinity").contains("moved away from CPU 1"), "{}", result["quiet"]);
    assert_restored("the end", &before);
    let (code, message) = lab::refused("--engine psync --target /nowhere --buffered --cpu 1 --quiet");
    assert_ne!(code, 0, "{message}");
    assert_restored("a failure", &before);
}

#[test]
fn the_measures_of_the_process_are_all_allowed_here() {
    if !lab::in_lab(1) {
        return;
    }
    let result = measure(SHORT);
    for what in ["cpu-dma-latency", "locked-memory", "interrupt-affinity", "nice"] {
        assert!(!detail(&result, what).is_empty(), "{what}: {}", result["quiet"]);
    }
    assert!(reason(&result, "real-time-priority").contains("sched_rt_runtime_us=-1"), "{}", result["quiet"]);
}

#[test]
fn real_time_priority_is_taken_once_the_kernel_does_not_stop_it() {
    if !lab::in_lab(1) {
        return;
    }
    let limit = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
    let _undo = Undo::after(
        "echo -1 > /proc/sys/kernel/sched_rt_runtime_us",
        format!("echo {} > /proc/sys/kernel/sched_rt_runtime_us", limit.trim()),
    );
    let running = start();
    let id = running.0.id();
    let policy = |task: &str| String::from_utf8(shell(&format!("chrt -p {task}")).stdout).unwrap();
    let monitor = shell(&format!("grep -lx monitor /proc/{id}/task/*/comm | cut -d / -f 5"));
    let monitor = policy(String::from_utf8(monitor.stdout).unwrap().trim());
    let measuring = policy(&id.to_string());
    running.signal("INT");
    let (code, stdout, stderr) = running.wait(RESTORED);
    assert_eq!(code, 130, "{stderr}");
    assert!(measuring.contains("SCHED_FIFO") && monitor.contains("SCHED_OTHER"), "{measuring}{monitor}");
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert!(detail(&result, "real-time-priority").contains("SCHED_FIFO 1"), "{}", result["quiet"]);
    assert_eq!(reason(&result, "nice") + &detail(&result, "nice"), "");
}

#[test]
fn software_rdma_keeps_the_processor_that_its_kernel_threads_need() {
    if !lab::in_lab(1) {
        return;
    }
    for engine in ["rdma-read", "rdma-send-pingpong"] {
        let result = measure(&format!("--engine {engine} --count 50 --warmup 2 --quiet"));
        for what in ["real-time-priority", "nice"] {
            assert!(reason(&result, what).contains("rxe0 is software RDMA"), "{engine}: {}", result["quiet"]);
        }
    }
}

#[test]
fn two_quiet_runs_at_a_time_do_not_mix_up_what_they_restore() {
    if !lab::in_lab(1) {
        return;
    }
    let before = affinities();
    let running = start();
    let result = measure("--engine spin --delay 100us --count 200 --warmup 2 --cpu 0 --quiet");
    assert!(reason(&result, "interrupt-affinity").contains("another lat-probe"), "{}", result["quiet"]);
    running.signal("TERM");
    assert_eq!(running.wait(RESTORED).0, 143);
    assert_restored("two runs", &before);
}

#[test]
fn a_machine_of_one_processor_is_measured_all_the_same() {
    if !lab::in_lab(1) {
        return;
    }
    let _undo =
        Undo::after("echo 0 > /sys/devices/system/cpu/cpu1/online", "echo 1 > /sys/devices/system/cpu/cpu1/online");
    let result = measure("--engine spin --delay 100us --count 200 --warmup 2 --quiet");
    assert!(reason(&result, "interrupt-affinity").contains("no processor but CPU 0"), "{}", result["quiet"]);
    assert!(reason(&result, "real-time-priority").contains("one processor"), "{}", result["quiet"]);
}
