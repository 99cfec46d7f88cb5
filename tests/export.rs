//! `lat-probe export`: files, samples, and what is no result. That real readers take the formats is tested by
//! `exports_script.py`.

mod full_disk;

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

fn lat_probe(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn done(folder: &Path, arguments: &str) -> String {
    let output = lat_probe(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str, code: i32) -> String {
    let output = lat_probe(folder, arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
    message
}

/// A folder with a result and its samples.
fn measured() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    done(folder.path(), "--engine spin --delay 1us --count 1000 --phases --samples s.npy --output r.json");
    folder
}

#[test]
fn samples_go_from_one_format_to_another() {
    let folder = measured();
    done(folder.path(), "export --to csv r.json --output s.csv");
    let text = fs::read_to_string(folder.path().join("s.csv")).unwrap();
    assert_eq!(text.lines().count(), 1001);
    done(folder.path(), "export --to npy r.json --output again.npy");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("again.npy"), read("s.npy"));
    let said = done(folder.path(), "export --to fio-log r.json --output spin");
    assert_eq!(said, "spin_lat.1.log\nspin_slat.1.log\nspin_clat.1.log\n");
    let log = fs::read_to_string(folder.path().join("spin_lat.1.log")).unwrap();
    let values: Vec<Vec<&str>> = log.lines().map(|line| line.split(", ").collect()).collect();
    assert!(
        values.len() == 1000 && values.iter().all(|line| line.len() == 6 && line[2..] == ["0", "0", "0", "0x0000"])
    );
    assert!(values.iter().all(|line| line[1].parse::<u64>().unwrap() >= 1000));
}

#[test]
fn a_result_comes_from_stdin_as_well() {
    let folder = measured();
    let mut child = Command::new(env!("CARGO_BIN_EXE_lat-probe"))
        .args(["export", "--to", "perftest", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let result = fs::read(folder.path().join("r.json")).unwrap();
    child.stdin.take().unwrap().write_all(&result).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("t_typical[usec]") && text.lines().nth(1).unwrap().starts_with(" -       1000 "), "{text}");
}

#[test]
fn what_is_no_result_is_named_with_what_is_wrong() {
    let folder = measured();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let whole = fs::read_to_string(folder.path().join("r.json")).unwrap();
    write("empty.json", "");
    write("cut.json", &whole[..whole.len() / 2]);
    write("foreign.json", "{\"fio version\": \"fio-3.33\"}");
    write("newer.json", &whole.replacen("lat-probe.result/1", "lat-probe.result/2", 1));
    for (name, what) in [
        ("empty.json", "the file is empty"),
        ("cut.json", "not a JSON document"),
        ("foreign.json", "no result of lat-probe"),
        ("newer.json", "this version reads lat-probe.result/1"),
        ("missing.json", "No such file"),
    ] {
        let message = refused(folder.path(), &format!("export --to hgrm {name}"), 2);
        assert!(message.contains(&format!("{name}: ")) && message.contains(what), "{message}");
    }
}

#[test]
fn samples_that_are_gone_or_damaged_or_of_another_run_leave_the_old_file() {
    let folder = measured();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("old.csv"), "old").unwrap();
    let export = |code| refused(folder.path(), "export --to csv r.json --output old.csv", code);
    let whole = fs::read(path("s.npy")).unwrap();
    fs::write(path("s.npy"), &whole[..whole.len() - 1]).unwrap();
    assert!(export(1).contains("s.npy: cut off after 999 of 1000 samples"));
    done(folder.path(), "--engine null --count 10 --samples s.npy");
    assert!(export(1).contains("has 10, the result 1000 commands: they do not belong together"));
    fs::remove_file(path("s.npy")).unwrap();
    assert!(export(2).contains("its samples are in s.npy"));
    done(folder.path(), "--engine null --count 10 --output r.json");
    assert!(export(2).contains("names no file of samples"));
    assert_eq!(fs::read_to_string(path("old.csv")).unwrap(), "old");
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let folder = measured();
    assert!(refused(folder.path(), "export --to npy r.json", 2).contains("name it by --output FILE"));
    assert!(refused(folder.path(), "export --to hgrm r.json --output r.json", 2).contains("is the result itself"));
    assert!(refused(folder.path(), "export --to hgrm r.json --output /dev/full", 1).contains("No space left"));
    assert!(refused(folder.path(), "export --to hgrm r.json --output no/x", 1).contains("no/x"));
    assert!(refused(folder.path(), "export --to hgrm r.json --point 2", 2).contains("points 1 to 1"));
    assert!(refused(folder.path(), "export --to pdf r.json", 2).contains("pdf"));
}

#[test]
fn a_full_disk_leaves_the_old_export_and_the_old_page() {
    let folder = measured();
    let binary = Path::new(env!("CARGO_BIN_EXE_lat-probe"));
    let result = folder.path().join("r.json");
    let result = result.to_str().unwrap();
    for (file, arguments) in [
        ("r.hgrm", &["export", "--to", "hgrm", result, "--output", "r.hgrm"][..]),
        ("s.csv", &["export", "--to", "csv", result, "--output", "s.csv"]),
        ("r.html", &["report", result, "-o", "r.html"]),
    ] {
        let Some(output) = full_disk::run(binary, file, arguments) else { return };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{file}: No space left")), "{said}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("old\nfill\n{file}\n"));
    }
}
