//! `lat-probe man` and `lat-probe completions` as a user meets them: what goes where, what is refused, and that examples in the
//! pages which need no device do run. How readers and shells take them is tested with the package, tests/package_script.py.

mod full_disk;

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

const BINARY: &str = env!("CARGO_BIN_EXE_lat-probe");

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).env_remove("SOURCE_DATE_EPOCH").stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// Asserts a failure that says all of `words` on stderr and nothing on stdout.
fn assert_refused(output: &Output, expected: i32, words: &[&str]) {
    assert_eq!((output.status.code(), stdout(output)), (Some(expected), ""), "{}", stderr(output));
    assert!(words.iter().all(|word| stderr(output).contains(word)), "{words:?}: {}", stderr(output));
    assert!(!stderr(output).contains("panicked"), "{}", stderr(output));
}

#[test]
fn the_page_of_the_program_goes_to_stdout_and_all_pages_into_a_folder() {
    let main = run(&["man"]);
    assert_eq!((main.status.code(), stderr(&main)), (Some(0), ""));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let all = run(&["man", "--output", path]);
    assert_eq!((all.status.code(), stderr(&all), stdout(&all)), (Some(0), "", ""));
    assert_eq!(fs::read_to_string(folder.path().join("lat-probe.1")).unwrap(), stdout(&main));
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    let subcommands = ["-ab", "-calibrate", "-check", "-compare", "-completions", "-engines", "-fill", "-man", "-run"];
    for subcommand in subcommands.into_iter().chain(["-serve", ""]) {
        assert!(names.contains(&format!("lat-probe{subcommand}.1").into()), "{subcommand}: {names:?}");
    }
}

#[test]
fn a_shell_that_is_unknown_is_refused_with_those_there_are() {
    assert_refused(&run(&["completions", "tcsh"]), 2, &["tcsh", "bash, elvish, fish, powershell, zsh"]);
    assert_refused(&run(&["completions"]), 2, &["<SHELL>"]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run(&["completions", shell]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
        assert!(stdout(&output).contains("signal-every"), "{shell}");
    }
}

#[test]
fn a_folder_that_is_none_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, file) = (folder.path().join("no/such"), folder.path().join("file"));
    fs::write(&file, "mine").unwrap();
    let of = |path: &Path| run(&["man", "--output", path.to_str().unwrap()]);
    assert_refused(&of(&missing), 1, &[missing.to_str().unwrap(), "No such file", "mkdir -p"]);
    assert_refused(&of(&file), 1, &[file.to_str().unwrap(), "not a directory", "needs a folder"]);
    assert_eq!((missing.exists(), fs::read_to_string(&file).unwrap()), (false, "mine".into()));
}

#[test]
fn a_date_that_is_none_is_refused() {
    let output = Command::new(BINARY).arg("man").env("SOURCE_DATE_EPOCH", "today").output().unwrap();
    assert_refused(&output, 2, &["SOURCE_DATE_EPOCH=today", "seconds"]);
}

#[test]
fn a_reader_that_has_left_and_a_full_device_are_errors() {
    for arguments in [&["man"][..], &["completions", "zsh"]] {
        let full = fs::File::options().write(true).open("/dev/full");
        let Ok(full) = full else { return eprintln!("skipped: there is no /dev/full here") };
        let output = Command::new(BINARY).args(arguments).stdout(full).output().unwrap();
        assert_refused(&output, 1, &["<stdout>", "No space left"]);
        let mut child = Command::new(BINARY);
        let mut child = child.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_refused(&child.wait_with_output().unwrap(), 1, &["<stdout>"]);
    }
}

#[test]
fn a_full_disk_leaves_the_old_page() {
    let Some(output) = full_disk::run(Path::new(BINARY), "lat-probe.1", &["man", "--output", "."]) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("lat-probe.1: No space left"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "old\nfill\nlat-probe.1\n");
}

/// The commands of a page's examples, as the page has them.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("\n.EX\n").skip(1).filter_map(|block| block.split("\n.EE").next());
    // A backslash at the end of a line is doubled, like any other one.
    let plain = |block: &str| block.replace("\\\\", "\u{1}").replace("\\*(Aq", "'").replace("\\(ti", "~");
    blocks.map(|block| plain(block).replace('\\', "").replace('\u{1}', "\\")).collect()
}

#[test]
fn examples_that_need_no_device_run_in_the_order_of_their_page() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&["man", "--output", folder.path().to_str().unwrap()]).status.code(), Some(0));
    let mut ran = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let page = entry.unwrap().path();
        let examples = examples(&fs::read_to_string(&page).unwrap());
        assert!(!examples.is_empty(), "{}", page.display());
        let scratch = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/probes"), scratch.path().join("probes"))
            .unwrap();
        for example in examples {
            let needs_more = ["rdma-", "/dev/", "serve", "man -l"].iter().any(|word| example.contains(word));
            if needs_more {
                continue;
            }
            let bin = Path::new(BINARY).parent().unwrap().display();
            let script = format!("PATH={bin}:$PATH\nset -e\n{example}");
            let output = Command::new("bash").args(["-c", &script]).current_dir(scratch.path()).output().unwrap();
            // A comparison may end with any verdict.
            let is_verdict = example.contains("lat-probe ab") || example.contains("lat-probe compare");
            let is_expected = output.status.success() || (is_verdict && matches!(output.status.code(), Some(3 | 4)));
            assert!(is_expected, "{}: {example}\n{}", page.display(), stderr(&output));
            ran += 1;
        }
    }
    assert!(ran >= 12, "{ran}");
}
