//! What the lab tests share: running the binary inside the lab's guest, and reading its result.
#![allow(dead_code)] // Each test binary uses its own part.

pub mod block;
pub mod perftest;

use std::{
    fs,
    io::Read,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// The binary under test.
pub const LAT_PROBE: &str = env!("CARGO_BIN_EXE_lat-probe");

/// Every RDMA engine.
pub const ENGINES: [&str; 7] =
    ["rdma-read", "rdma-write", "rdma-send", "rdma-cas", "rdma-faa", "rdma-write-pingpong", "rdma-send-pingpong"];

/// Whether this runs in the lab; says so where it does not. In a lab with another number of hosts than the test wants it
/// fails, since a skipped test looks like a passed one.
pub fn in_lab(hosts: usize) -> bool {
    if std::env::var("LAB").as_deref() != Ok("1") {
        eprintln!("skipped: needs the lab with {hosts} host(s) (scripts/test runs it there)");
        return false;
    }
    assert_eq!(std::env::var("LAB_HOSTS"), Ok(hosts.to_string()), "this lab has another number of hosts");
    true
}

/// Where files are kept beyond the life of the guest.
pub fn out_folder() -> PathBuf {
    std::env::var_os("LAB_OUT").map_or_else(|| PathBuf::from("target/lab/out"), PathBuf::from)
}

/// Whether an engine is an atomic, whose only size is 8.
pub fn is_atomic(engine: &str) -> bool {
    matches!(engine, "rdma-cas" | "rdma-faa")
}

/// The binary with arguments separated by spaces.
fn command(arguments: &str) -> Command {
    eprintln!("lat-probe {arguments}");
    let mut command = Command::new("timeout");
    // Longer than any of its own deadlines: a run that needs to be killed has a wait without one.
    command.args(["--signal=ABRT", longest_s(), LAT_PROBE]).args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// Seconds after which a run is taken for hung. Where time counts instructions it leaps ahead whenever the guest waits for
/// the host, a busy one above all; there it is the lab's own deadline that ends a hung run.
fn longest_s() -> &'static str {
    if std::env::var("LAB_DETERMINISTIC").as_deref() == Ok("1") { "36000" } else { "90" }
}

/// Runs the binary with arguments separated by spaces; JSON on stdout.
pub fn run(arguments: &str) -> Output {
    let output = command(arguments).args(["--format", "json"]).output();
    output.unwrap_or_else(|error| panic!("timeout: {error}"))
}

/// Runs a measurement that must succeed, and checks what must hold for every one of them.
pub fn measure(arguments: &str) -> Value {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "lat-probe {arguments}: {}: {stderr}", output.status);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}"));
    for point in result["points"].as_array().into_iter().flatten() {
        assert_sound(arguments, point);
    }
    result
}

/// Runs something that must fail; its exit code and what it says.
pub fn refused(arguments: &str) -> (i32, String) {
    let output = run(arguments);
    assert!(!output.status.success(), "lat-probe {arguments} was expected to fail");
    assert!(output.stdout.is_empty(), "lat-probe {arguments} printed a result: {output:?}");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs a measurement; exit code, result and stderr. What is partial has a result as well.
pub fn ended(arguments: &str) -> (i32, Value, String) {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let result =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}: {stderr}"));
    (output.status.code().unwrap_or(-1), result, stderr)
}

/// Asserts that it fails with this exit code, all of these words, and no result; what it said.
pub fn assert_refused(arguments: &str, code: i32, words: &[&str]) -> String {
    let (ended, message) = refused(arguments);
    assert_says(arguments, (ended, &message), code, words);
    message
}

/// Asserts that a run ended with this exit code and said all of these words.
pub fn assert_says(arguments: &str, (ended, message): (i32, &str), code: i32, words: &[&str]) {
    assert_eq!(ended, code, "lat-probe {arguments}: {message}");
    assert!(!message.contains("panicked"), "lat-probe {arguments}: {message}");
    for word in words {
        assert!(message.contains(word), "lat-probe {arguments} should say {word:?}: {message}");
    }
}

/// What must come of checking the data: RDMA always does it, the others if they are asked to.
fn verdict(point: &Value) -> &'static str {
    if !point["granted"]["rdma"].is_null() || point["config"]["block"]["verify"] == true {
        "yes"
    } else if point["config"]["bs_bytes"].is_null() {
        "not-applicable"
    } else {
        "not-checked"
    }
}

/// What holds for a complete point, whatever was asked for.
fn assert_sound(arguments: &str, point: &Value) {
    let latency = &point["latency_ns"];
    assert_eq!(point["verified"], verdict(point), "{arguments}");
    assert_eq!(point["errors"], serde_json::json!({}), "{arguments}");
    assert_eq!(point["partial"], false, "{arguments}");
    if point["ended_by"] == "count" {
        let (count, jobs) = (&point["config"]["count"], &point["config"]["jobs"]);
        assert_eq!(latency["n"].as_u64().unwrap(), count.as_u64().unwrap() * jobs.as_u64().unwrap(), "{arguments}");
    }
    let mut last = latency["min"].as_f64().unwrap();
    assert!(last > 0.0, "{arguments}: {latency}");
    for q in ["1", "5", "10", "25", "50", "75", "90", "95", "99", "99.5", "99.9", "99.99", "99.999"] {
        if let Some(value) = latency["percentiles"][q].as_f64() {
            assert!(value >= last, "{arguments}: p{q} is below the one before: {latency}");
            last = value;
        }
    }
    assert!(latency["max"].as_f64().unwrap() >= last, "{arguments}: {latency}");
    let counted: u64 = point["histogram"]["buckets"].as_array().unwrap().iter().map(|b| b[2].as_u64().unwrap()).sum();
    assert_eq!(latency["n"], counted, "{arguments}");
    if let Some(rdma) = point["granted"]["rdma"].as_object() {
        assert_eq!(rdma["device"], "rxe0", "{arguments}");
        assert_eq!(rdma["gid_type"], "RoCE v2", "{arguments}");
        assert_eq!(rdma["software"], true, "{arguments}");
    }
}

/// The first point of a result.
pub fn point(result: &Value) -> &Value {
    &result["points"][0]
}

/// Whether the result carries a warning of this code.
pub fn warns(result: &Value, code: &str) -> bool {
    result["warnings"].as_array().into_iter().flatten().any(|warning| warning["code"] == code)
}

/// Runs a shell script.
pub fn shell(script: &str) -> Output {
    Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap()
}

/// Undoes a change to the machine when the test ends, well or not.
pub struct Undo(String);

impl Undo {
    /// Changes the machine now and undoes it later, both by shell commands.
    pub fn after(change: &str, undo: impl Into<String>) -> Self {
        let guard = Self(undo.into()); // First, since a change may fail half-way.
        let output = shell(change);
        assert!(output.status.success(), "{change}: {output:?}");
        guard
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let output = shell(&self.0);
        // A panic while another one unwinds would abort, and hide the first.
        if !output.status.success() && !thread::panicking() {
            panic!("{}: {output:?}", self.0);
        }
    }
}

/// A process that ends with the test.
pub struct Background(pub Child);

impl Background {
    /// Starts the binary with arguments separated by spaces.
    pub fn start(arguments: &str) -> Self {
        let mut command = Command::new(LAT_PROBE);
        command.args(arguments.split_whitespace()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap_or_else(|error| panic!("{LAT_PROBE}: {error}")))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// Whether a thread of this name is running in it: `monitor` is there while commands are measured.
    pub fn has_thread(&self, name: &str) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).into_iter().flatten().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).any(|comm| comm.trim() == name)
    }

    /// Waits until commands are measured.
    pub fn wait_until_it_measures(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.has_thread("monitor") {
            assert!(Instant::now() < until, "it does not measure");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end; exit code (or −1 after a signal), stdout, stderr.
    pub fn wait(mut self, longest: Duration) -> (i32, String, String) {
        let until = Instant::now() + longest;
        // Read meanwhile: what does not fit into a pipe would hold it up.
        let stdout = drain(self.0.stdout.take().unwrap());
        let stderr = drain(self.0.stderr.take().unwrap());
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "still running after {longest:?}");
            std::thread::sleep(Duration::from_millis(20));
        };
        (status.code().unwrap_or(-1), stdout.join().unwrap(), stderr.join().unwrap())
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `lat-probe serve` on a port of its own, ready for clients.
pub struct Server {
    process: Background,
    port: u16,
}

impl Server {
    /// Starts a server with more options, separated by spaces.
    pub fn start(port: u16, options: &str) -> Self {
        let process = Background::start(&format!("serve --bind [::]:{port} {options}"));
        let server = Self { process, port };
        let until = Instant::now() + Duration::from_secs(20);
        while !listens(port) {
            assert!(Instant::now() < until, "the server does not listen on {port}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Its address on this machine, for `--peer`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Ends it by SIGINT; what it had printed.
    pub fn stop(self) -> (String, String) {
        self.process.signal("INT");
        let (code, stdout, stderr) = self.process.wait(Duration::from_secs(20));
        assert_eq!(code, 130, "{stdout}{stderr}");
        (stdout, stderr)
    }
}

/// Whether something listens on the port: asked of the kernel, so that no connection is spent on it.
fn listens(port: u16) -> bool {
    let wanted = format!(":{port:04X} ");
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines()).any(|line| {
        let mut words = line.split_whitespace();
        words.nth(1).is_some_and(|local| format!("{local} ").ends_with(&wanted)) && words.nth(1) == Some("0A")
    })
}
