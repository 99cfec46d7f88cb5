//! What goes wrong on the way: a file that is cut while it is read, signals, system calls that a filter forbids.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

use crate::common::{
    BINARY, Files, arguments, assert_refusal, code, fill, is_missing, only_point, samples, stderr, stdout,
};

/// Commands that copy a MiB each take seconds together, so that something can happen to them; ones that fail do not.
const LONG: &str = "--target @ --buffered --bs 1M --count 200000 --warmup 0 --format json";
const COUNT: u64 = 200_000;

fn start(text: &str, path: &Path) -> Child {
    let mut command = Command::new(BINARY);
    command.args(arguments(text, path)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until commands are being measured: the thread that watches them is there then.
fn wait_until_measuring(child: &Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let names = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).collect::<Vec<_>>()
    };
    while !names().iter().any(|name| name.trim() == "monitor") {
        assert!(Instant::now() < deadline, "it never began to measure");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn large_file(files: &Files) -> PathBuf {
    let path = files.path("file");
    fill(&path, "--size 16M");
    path
}

/// Starts a long run and cuts its file within the first block.
fn cut_while_running(options: &str, path: &Path) -> Output {
    let child = start(&format!("{options} {LONG}"), path);
    wait_until_measuring(&child);
    fs::File::options().write(true).open(path).unwrap().set_len(1000).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_file_that_is_cut_ends_the_run_with_what_the_command_moved() {
    for (engine, call) in [
        ("psync", "pread"),
        ("libaio", "AIO pread"),
        ("libaio --qd 7", "AIO pread"),
        ("io-uring", "io_uring read"),
        ("io-uring --qd 7", "io_uring read"),
    ] {
        if is_missing(engine) {
            continue;
        }
        let files = Files::in_memory();
        let path = large_file(&files);
        let output = cut_while_running(&format!("--engine {engine}"), &path);
        assert_eq!(code(&output), 1, "{engine}: {}", stderr(&output));
        let words = [path.to_str().unwrap(), call, "of 1048576 bytes at offset", "moved ", " bytes of 1048576"];
        for word in words {
            assert!(stderr(&output).contains(word), "{engine} should name {word:?}: {}", stderr(&output));
        }
        let point = only_point(&output);
        assert_eq!((&point["partial"], &point["ended_by"]), (&true.into(), &"error".into()), "{engine}");
        assert_eq!(point["errors"], json!({"failed_commands": 1}), "{engine}");
        assert!(samples(&point) < COUNT, "{engine}");
        let command = format!("command {}: ", samples(&point));
        assert!(stderr(&output).contains(&command), "{engine} should name {command:?}: {}", stderr(&output));
    }
}

#[test]
fn a_run_that_goes_on_counts_the_commands_that_fail() {
    for engine in [
        "psync",
        "libaio --completion event",
        "libaio --qd 5",
        "io-uring",
        "io-uring --completion event",
        "io-uring --completion event --qd 5",
    ] {
        if is_missing(engine) {
            continue;
        }
        let files = Files::in_memory();
        let path = large_file(&files);
        let output = cut_while_running(&format!("--engine {engine} --continue-on-error"), &path);
        assert_eq!((code(&output), stderr(&output)), (0, ""), "{engine}");
        let point = only_point(&output);
        assert_eq!((&point["partial"], &point["ended_by"]), (&false.into(), &"count".into()), "{engine}");
        let failed = point["errors"]["failed_commands"].as_u64().unwrap();
        assert!(failed > 0, "{engine}");
        assert_eq!(samples(&point) + failed, COUNT, "{engine}");
        assert_eq!(point["errors"]["failed_commands.short_transfer"], failed, "{engine}");
    }
}

#[test]
fn a_signal_leaves_a_partial_result() {
    let engines = ["psync", "libaio --completion event", "io-uring --completion event", "io-uring --uring-sqpoll"];
    for (engine, signal, expected) in
        engines.map(|engine| (engine, Signal::SIGINT, 130)).into_iter().chain([("psync", Signal::SIGTERM, 143)])
    {
        if is_missing(engine) {
            continue;
        }
        let files = Files::in_memory();
        let path = large_file(&files);
        let output_file = files.path("result.json");
        let text = format!("--engine {engine} {LONG} --output {}", output_file.display());
        let child = start(&text, &path);
        wait_until_measuring(&child);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), stderr(&output)), (expected, ""), "{engine}");
        let point = only_point(&output);
        assert_eq!((&point["partial"], &point["ended_by"]), (&true.into(), &"signal".into()), "{engine}");
        assert!(samples(&point) < COUNT, "{engine}");
        assert_eq!(point["errors"], json!({}), "{engine}");
        assert!(fs::read(&output_file).unwrap() == output.stdout, "{engine}: the file has another result");
    }
}

/// Runs a program with a seccomp filter that answers one system call with an errno.
const FILTERED: &str = r#"
import ctypes, os, struct, sys
number, errno = int(sys.argv[1]), int(sys.argv[2])
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
filter = Filter(len(rules), ctypes.addressof(code))
zero = ctypes.c_ulong(0)
prctl = ctypes.CDLL(None).prctl
if prctl(38, ctypes.c_ulong(1), zero, zero, zero) or prctl(22, ctypes.c_ulong(2), ctypes.byref(filter), zero, zero):
    sys.exit(99)
os.execv(sys.argv[3], sys.argv[3:])
"#;

/// None where no filter can be set, which is said.
fn filtered(call: libc::c_long, errno: i32, text: &str, path: &Path) -> Option<Output> {
    let mut command = Command::new("python3");
    command.args(["-c", FILTERED, &call.to_string(), &errno.to_string(), BINARY]).args(arguments(text, path));
    let output = command.stdin(Stdio::null()).output().ok();
    let output = output.filter(|output| ![Some(99), Some(127)].contains(&output.status.code()));
    if output.is_none() {
        eprintln!("skipped: needs python3 and a kernel that takes seccomp filters");
    }
    output
}

#[test]
fn a_filter_that_forbids_a_system_call_is_told_from_a_kernel_without_it() {
    let files = Files::in_memory();
    let path = files.filled("file");
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    for (engine, call, name) in
        [("libaio", libc::SYS_io_setup, "io_setup"), ("io-uring", libc::SYS_io_uring_setup, "io_uring_setup")]
    {
        for (errno, words) in [(libc::EPERM, "Operation not permitted"), (libc::ENOSYS, "not implemented")] {
            if engine == "io-uring" && !["", "0"].contains(&disabled.trim()) {
                eprintln!("skipped: kernel.io_uring_disabled is {disabled}");
                continue;
            }
            let text = format!("--engine {engine} --target @ --buffered --count 10");
            let Some(output) = filtered(call, errno, &text, &path) else { return };
            assert_refusal(&text, &output, 77, &[name, words, "seccomp filter"]);
            let Some(output) = filtered(call, errno, "--engine psync --target @ --buffered --count 10", &path) else {
                return;
            };
            assert_eq!((code(&output), stderr(&output)), (0, ""), "psync needs no {name}");
        }
    }
    let Some(output) = filtered(libc::SYS_io_uring_setup, libc::EPERM, "engines", &path) else { return };
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("seccomp filter"), "{}", stdout(&output));
}
