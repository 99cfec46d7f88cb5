//! `--verify`, and the places that commands go to, which it shows.

use std::{fs, os::unix::fs::FileExt, path::Path};

use crate::common::{FILE_BYTES, Files, corrupt, failed, fill, is_missing, measured, run, samples, stderr, stdout};

/// One pass over a filled file, every block once.
const ONE_PASS: &str = "--target @ --buffered --verify --count 256 --warmup 0";

const ENGINES: [&str; 4] = ["psync", "pvsync2", "libaio", "io-uring"];

#[test]
fn what_a_pass_of_writes_leaves_is_the_pattern_in_every_block() {
    let files = Files::in_memory();
    for engine in ENGINES.into_iter().filter(|engine| !is_missing(engine)) {
        let path = files.zeros("file", FILE_BYTES as usize);
        let point = measured(&format!("--engine {engine} {ONE_PASS} --rw write --allow-write @"), &path);
        assert_eq!(point["verified"], "yes", "{engine}");
        assert_eq!(measured(&format!("--engine {engine} {ONE_PASS}"), &path)["verified"], "yes", "{engine}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn writes_without_verify_leave_something_that_is_not_zeros() {
    let files = Files::in_memory();
    let path = files.zeros("file", FILE_BYTES as usize);
    measured("--engine psync --target @ --buffered --count 256 --warmup 0 --rw write --allow-write @", &path);
    let bytes = fs::read(path).unwrap();
    assert!(bytes.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
}

#[test]
fn a_changed_byte_ends_the_run_with_its_position() {
    let files = Files::in_memory();
    let path = files.filled("file");
    corrupt(&path, 123_457);
    for engine in ENGINES.into_iter().filter(|engine| !is_missing(engine)) {
        let (point, said) = failed(&format!("--engine {engine} {ONE_PASS}"), &path);
        assert!(said.contains("verification failed") && said.contains("byte 123457 is 0x"), "{engine}: {said}");
        assert!(said.contains(path.to_str().unwrap()) && !said.contains("zeros"), "{engine}: {said}");
        assert_eq!((&point["verified"], &point["partial"]), (&"no".into(), &true.into()), "{engine}");
        assert!(point["ended_because"].as_str().unwrap().contains("byte 123457"), "{engine}: {point}");
        // The commands up to block 30, where the byte is.
        assert_eq!(samples(&point), 31, "{engine}");
    }
    let output = run(&format!("--engine psync {ONE_PASS}"), &path);
    assert!(stdout(&output).contains("VERIFICATION FAILED"), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn a_changed_byte_is_found_in_the_first_command_and_the_last_and_in_the_warm_up() {
    let files = Files::in_memory();
    for (at, warmup, count, expected) in [(0, 0, 256, 1), (FILE_BYTES - 1, 0, 256, 256), (5000, 10, 100, 0)] {
        let path = files.filled("file");
        corrupt(&path, at);
        let text = format!("--engine psync --target @ --buffered --verify --count {count} --warmup {warmup}");
        let (point, said) = failed(&text, &path);
        assert!(said.contains(&format!("byte {at} is")), "{text}: {said}");
        assert_eq!((samples(&point), &point["verified"]), (expected, &"no".into()), "{text}");
    }
}

#[test]
fn wrong_data_ends_even_a_run_that_goes_on_after_errors() {
    let files = Files::in_memory();
    let path = files.filled("file");
    corrupt(&path, 40_960);
    let (point, said) = failed(&format!("--engine psync --continue-on-error {ONE_PASS}"), &path);
    assert!(said.contains("byte 40960"), "{said}");
    assert_eq!((samples(&point), &point["verified"]), (11, &"no".into()));
}

#[test]
fn the_pattern_of_another_seed_is_another_one() {
    let files = Files::in_memory();
    let path = files.path("file");
    fill(&path, "--size 1M --seed 7");
    assert_eq!(measured(&format!("--engine psync {ONE_PASS} --seed 7"), &path)["config"]["block"]["seed"], 7);
    let (point, said) = failed(&format!("--engine psync {ONE_PASS} --seed 8"), &path);
    assert_eq!((samples(&point), &point["verified"]), (1, &"no".into()));
    assert!(said.contains("byte 0 is"), "{said}");
}

#[test]
fn a_file_that_was_never_filled_is_answered_with_the_command_that_fills_it() {
    let files = Files::in_memory();
    let (point, said) = failed(&format!("--engine psync {ONE_PASS}"), &files.zeros("file", 1 << 20));
    assert!(said.contains("all zeros") && said.contains("`lat-probe fill --allow-write"), "{said}");
    assert_eq!(point["verified"], "no");
}

/// Commands until the block with a changed byte is met.
fn commands_until_met(engine: &str, seed: u64, warmup: u64, path: &Path) -> u64 {
    let text = format!(
        "--engine {engine} --target @ --buffered --verify --rw randread --seed {seed} --count 20000 --warmup {warmup}"
    );
    samples(&failed(&text, path).0)
}

#[test]
fn a_seed_goes_to_the_same_places_in_every_run_and_with_every_engine() {
    let files = Files::in_memory();
    let path = files.path("file");
    let mut met = Vec::new();
    for seed in [5, 6] {
        fill(&path, &format!("--size 1M --seed {seed}"));
        corrupt(&path, 77 * 4096);
        let after = commands_until_met("psync", seed, 0, &path);
        for engine in ENGINES.into_iter().filter(|engine| !is_missing(engine)) {
            assert_eq!(commands_until_met(engine, seed, 0, &path), after, "{engine}");
        }
        // Commands of the warm-up go to the first of these places.
        assert!(after > 3, "the seed meets the block too early for this");
        assert_eq!(commands_until_met("psync", seed, 3, &path), after - 3);
        met.push(after);
    }
    assert_ne!(met[0], met[1]);
}

#[test]
fn nothing_outside_the_working_set_is_read_or_written() {
    let files = Files::in_memory();
    let path = files.filled("file");
    // Its end lies within a block, which is left out.
    let (from, to) = (256 << 10, (512 << 10) + 4096);
    let inside = fs::read(&path).unwrap()[from..to].to_vec();
    let mut bytes = vec![0xa5; FILE_BYTES as usize];
    bytes[from..to].copy_from_slice(&inside);
    fs::write(&path, &bytes).unwrap();
    for engine in ENGINES.into_iter().filter(|engine| !is_missing(engine)) {
        for rw in ["read", "randread", "write", "randwrite"] {
            let allow = if rw.ends_with("write") { "--allow-write @" } else { "" };
            let text = format!("--engine {engine} --target @ --buffered --verify --rw {rw} --count 2000 {allow}");
            let point = measured(&format!("{text} --offset {from} --size {}", to - from + 100), &path);
            let granted = &point["granted"]["block"];
            assert_eq!((&granted["offset_bytes"], &granted["size_bytes"]), (&from.into(), &(to - from).into()));
            assert!(fs::read(&path).unwrap() == bytes, "{text} changed what it should not");
        }
    }
}

#[test]
fn random_writes_reach_all_of_the_working_set() {
    let files = Files::in_memory();
    let path = files.zeros("file", FILE_BYTES as usize);
    // Of 16 places, 2000 draws miss one with a chance of 10^-54.
    let text =
        "--engine psync --target @ --buffered --rw randwrite --allow-write @ --offset 64k --size 64k --count 2000";
    measured(&format!("{text} --verify"), &path);
    let text = "--engine psync --target @ --buffered --offset 64k --size 64k --count 16 --warmup 0";
    measured(&format!("{text} --verify"), &path);
    let file = fs::File::open(&path).unwrap();
    let mut outside = [1; 64 << 10];
    for at in [0, 128 << 10] {
        file.read_exact_at(&mut outside, at).unwrap();
        assert!(outside.iter().all(|&byte| byte == 0), "something was written around byte {at}");
    }
}
