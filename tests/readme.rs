//! The README keeps its word: what it prints as commands runs or at least parses, and what it names exists.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const BINARY: &str = env!("CARGO_BIN_EXE_lat-probe");

fn readme() -> String {
    fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap()
}

/// The text of the fenced blocks that are marked so.
fn blocks(mark: &str) -> Vec<String> {
    let text = readme();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(opening) = lines.find(|line| line.starts_with("```")) {
        let block: Vec<_> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        if opening.trim_start_matches('`').trim() == mark {
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

/// `PATH` with the folder of the binary under test first.
fn path() -> std::ffi::OsString {
    let folder = Path::new(BINARY).parent().unwrap().to_path_buf();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([folder].into_iter().chain(env::split_paths(&others))).unwrap()
}

fn finds(program: &str) -> bool {
    env::split_paths(&path()).any(|folder| folder.join(program).is_file())
}

fn shell(script: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(folder).env("PATH", path()).stdin(Stdio::null());
    command
}

/// Puts the data that commands name into the folder where they run.
fn link_data(folder: &Path) {
    for top in ["probes", "results"] {
        symlink(Path::new(ROOT).join(top), folder.join(top)).unwrap();
    }
}

#[test]
fn the_blocks_marked_to_run_do_run() {
    let blocks = blocks("sh run");
    assert!(blocks.len() >= 3, "{} blocks", blocks.len());
    for block in blocks {
        if block.contains("jq ") && !finds("jq") {
            eprintln!("skipped, for want of jq:\n{block}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        link_data(folder.path());
        let Output { status, stdout, stderr } = shell(&block, folder.path()).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{block}\n{status}\n{stdout}\n{stderr}");
        assert!(!stdout.trim().is_empty(), "{block}\nprinted nothing");
        assert!(!stdout.lines().any(|line| line == "null"), "{block}\nprinted null:\n{stdout}");
    }
}

/// Every command in the README that begins with the binary's name, also those within another one; but for those that a test
/// runs by a shell.
fn commands() -> Vec<String> {
    let blocks = blocks("sh");
    let lines = blocks.iter().flat_map(|block| block.lines());
    lines
        .filter_map(|line| {
            let begin = line.find("lat-probe ")?;
            let rest = line[begin..].trim_end_matches('\'');
            // Where it stands behind a pipe or within a path, it is the same program.
            Some(rest.split(" | ").next().unwrap_or(rest).to_string())
        })
        .collect()
}

fn wait_or_end(child: &mut Child, longest: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + longest;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn every_lat_probe_command_parses() {
    let commands = commands();
    assert!(commands.len() >= 10, "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "0123456789abcdef0123456789abcdef\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    link_data(folder.path());
    for command in commands {
        // No name is looked up and no stranger is called: where there is a device, the peer refuses at once.
        let words = command.split_whitespace().skip(1).scan(false, |is_peer, word| {
            let word = if *is_peer && !word.starts_with('[') { "127.0.0.1:1" } else { word };
            *is_peer = word == "--peer";
            Some(word)
        });
        let mut process = Command::new(BINARY);
        process
            .args(words)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = process.spawn().unwrap();
        // One that still runs has parsed: a server, or a long measurement.
        let Some(status) = wait_or_end(&mut child, Duration::from_secs(20)) else { continue };
        let message = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        assert!(!message.contains("panicked"), "{command}\n{message}");
        assert_ne!(status.code(), Some(2), "{command}\n{message}");
    }
}

/// What stands in backticks and looks like a path of this repository. What a build or a run makes is not in it.
fn named_paths() -> Vec<PathBuf> {
    let text = readme();
    let spans =
        text.lines().filter(|line| !line.starts_with("```")).flat_map(|line| line.split('`').skip(1).step_by(2));
    let tops = ["src", "scripts", "tests", "results", "benches", "probes"];
    let is_path = |span: &&str| {
        let first = span.split('/').next().unwrap_or_default();
        let is_file =
            ["README", "CHANGELOG", "CONTRIBUTING", "LICENSE", "Cargo."].iter().any(|name| span.starts_with(name));
        is_file || (span.contains('/') && tops.contains(&first))
    };
    spans.filter(is_path).filter_map(|span| span.split_whitespace().next()).map(PathBuf::from).collect()
}

#[test]
fn every_path_that_is_named_exists() {
    let paths = named_paths();
    assert!(paths.len() >= 15, "{paths:?}");
    for path in paths {
        assert!(Path::new(ROOT).join(&path).exists(), "{} is named in the README", path.display());
    }
}

#[test]
fn every_script_that_a_block_runs_is_executable() {
    let blocks = blocks("sh");
    let scripts: Vec<_> = blocks
        .iter()
        .flat_map(|block| block.lines())
        .filter_map(|line| line.split_whitespace().next().filter(|word| word.starts_with("scripts/")))
        .collect();
    assert!(scripts.contains(&"scripts/quickstart") && scripts.contains(&"scripts/test"), "{scripts:?}");
    for script in scripts {
        let mode = fs::metadata(Path::new(ROOT).join(script)).unwrap().permissions().mode();
        assert!(mode & 0o111 != 0, "{script} is not executable");
    }
}
