//! Running the binary on a file, and the files.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

pub const BINARY: &str = env!("CARGO_BIN_EXE_lat-probe");

/// Size of the files that most tests use.
pub const FILE_BYTES: u64 = 1 << 20;

/// Files in a folder that is gone with the test.
pub struct Files(TempDir);

impl Files {
    /// On a file system in memory.
    pub fn in_memory() -> Self {
        Self::below(Path::new("/dev/shm"))
    }

    /// On whatever the sources are built on.
    pub fn on_disk() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    fn below(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let own = tempfile::tempdir_in(folder).unwrap();
        // Also for a user that a test changes to.
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self(own)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with the pattern of `fill`, of [`FILE_BYTES`].
    pub fn filled(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fill(&path, "--size 1M");
        path
    }

    /// A file of `bytes` zeros.
    pub fn zeros(&self, name: &str, bytes: usize) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, vec![0; bytes]).unwrap();
        path
    }
}

/// Arguments separated by spaces, with `@` for the path, which may have spaces itself.
pub fn arguments(text: &str, path: &Path) -> Vec<OsString> {
    text.split_whitespace().map(|word| if word == "@" { path.into() } else { word.into() }).collect()
}

/// The binary with a deadline far beyond any of its own, so that a test which would hang fails instead.
pub fn command(text: &str, path: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=ABRT", "120", BINARY]).args(arguments(text, path)).stdin(Stdio::null());
    command
}

pub fn run(text: &str, path: &Path) -> Output {
    command(text, path).output().unwrap()
}

pub fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

pub fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// The code of a program that ended by itself and without a panic.
pub fn code(output: &Output) -> i32 {
    assert!(!stderr(output).contains("panicked"), "{}", stderr(output));
    output.status.code().unwrap_or_else(|| panic!("ended by {}", output.status))
}

/// Asserts a failure that says all of `words` on stderr and nothing on stdout.
pub fn assert_refusal(what: &str, output: &Output, expected: i32, words: &[&str]) {
    assert_eq!(code(output), expected, "{what}: {}", stderr(output));
    assert_eq!(stdout(output), "", "{what}");
    for word in words {
        assert!(stderr(output).contains(word), "{what} should name {word:?}: {}", stderr(output));
    }
}

/// Runs what must be refused.
pub fn assert_refused(text: &str, path: &Path, expected: i32, words: &[&str]) {
    assert_refusal(text, &run(text, path), expected, words);
}

/// The only point of a result on stdout.
pub fn only_point(output: &Output) -> Value {
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(output), stderr(output)));
    assert_eq!(result["points"].as_array().map(Vec::len), Some(1), "{}", result["points"]);
    result["points"][0].clone()
}

/// Runs a measurement that must succeed; its point.
pub fn measured(text: &str, path: &Path) -> Value {
    let output = run(&format!("{text} --format json"), path);
    assert_eq!((code(&output), stderr(&output)), (0, ""), "{text}");
    only_point(&output)
}

/// Runs a measurement that must fail after it began; its point, and what it says.
pub fn failed(text: &str, path: &Path) -> (Value, String) {
    let output = run(&format!("{text} --format json"), path);
    assert_eq!(code(&output), 1, "{text}: {}", stderr(&output));
    (only_point(&output), stderr(&output).into())
}

/// Samples of a point.
pub fn samples(point: &Value) -> u64 {
    point["latency_ns"]["n"].as_u64().unwrap()
}

/// `lat-probe fill`, which must succeed.
pub fn fill(path: &Path, options: &str) {
    let output = run(&format!("fill --allow-write @ {options}"), path);
    assert_eq!((code(&output), stderr(&output)), (0, ""), "fill {options}");
}

/// Changes one byte of a file.
pub fn corrupt(path: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0xff], at).unwrap();
}

/// Whether the engine cannot be had here, as in a container that forbids it; says so then.
pub fn is_missing(engine: &str) -> bool {
    let files = Files::in_memory();
    let output = run(&format!("--engine {engine} --target @ --buffered --count 1"), &files.zeros("probe", 4096));
    let missing =
        code(&output) == 77 && ["io_setup", "io_uring_setup"].iter().any(|call| stderr(&output).contains(call));
    if missing {
        eprintln!("skipped: {engine}: {}", stderr(&output));
    }
    missing
}

/// Whether the file takes direct access; says so if it does not.
pub fn takes_direct(path: &Path) -> bool {
    let output = run("--engine psync --target @ --direct --count 1", path);
    let refused = code(&output) != 0;
    if refused {
        assert!(stderr(&output).contains("--buffered"), "{}", stderr(&output));
        eprintln!("skipped: --direct: {}", stderr(&output));
    }
    !refused
}
