//! `lat-probe fill`.

use std::{fs, path::Path};

use nix::{sys::stat::Mode, unistd::mkfifo};

use crate::common::{FILE_BYTES, Files, assert_refused, code, fill, measured, run, stderr, stdout};

/// The pattern, from its definition: words of eight bytes, by SplitMix64's finaliser from the seed and the word's number.
/// Files filled by one version are verified by another, so it must not change.
fn pattern(from: u64, to: u64, seed: u64) -> Vec<u8> {
    let mix = |mut word: u64| {
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    let byte = |at: u64| {
        let word = mix((mix(seed) ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        word.to_le_bytes()[(at % 8) as usize]
    };
    (from..to).map(byte).collect()
}

#[test]
fn a_file_is_made_only_with_a_size() {
    let files = Files::in_memory();
    let path = files.path("new");
    assert_refused("fill --allow-write @", &path, 2, &[path.to_str().unwrap(), "does not exist", "--size"]);
    assert!(!path.exists());
    let output = run("fill --allow-write @ --size 5000", &path);
    assert_eq!((code(&output), stderr(&output)), (0, ""));
    for word in [path.to_str().unwrap(), "5000 B", "seed 1"] {
        assert!(stdout(&output).contains(word), "{word:?} is missing: {}", stdout(&output));
    }
    assert!(fs::read(&path).unwrap() == pattern(0, 5000, 1));
}

#[test]
fn a_file_grows_and_never_shrinks() {
    let files = Files::in_memory();
    let path = files.path("file");
    fs::write(&path, vec![b'x'; 10_000]).unwrap();
    fill(&path, "--size 4k");
    let bytes = fs::read(&path).unwrap();
    assert!(bytes[..4096] == pattern(0, 4096, 1) && bytes[4096..] == vec![b'x'; 5904]);
    fill(&path, "--offset 12k --size 4k");
    let bytes = fs::read(&path).unwrap();
    assert!(bytes[4096..10_000] == vec![b'x'; 5904] && bytes[10_000..12_288] == vec![0; 2288]);
    assert!(bytes[12_288..] == pattern(12_288, 16_384, 1));
    fill(&path, "--seed 3");
    assert!(fs::read(&path).unwrap() == pattern(0, 16_384, 3), "all that is there");
}

#[test]
fn odd_places_and_sizes_hold_what_verify_expects() {
    for files in [Files::in_memory(), Files::on_disk()] {
        let path = files.path("file");
        fill(&path, "--offset 4096 --size 12345");
        assert_eq!(fs::metadata(&path).unwrap().len(), 4096 + 12_345);
        let read = "--engine psync --target @ --buffered --verify --warmup 0";
        let point = measured(&format!("{read} --offset 4096 --size 12288 --bs 512 --count 24"), &path);
        assert_eq!(point["verified"], "yes");
        measured(&format!("{read} --offset 4099 --size 12341 --bs 7 --count 1763"), &path);
        measured(&format!("{read} --offset 4097 --bs 12344 --count 3"), &path);
        fill(&path, "--offset 4097 --size 1 --seed 9");
        let bytes = fs::read(&path).unwrap();
        assert_eq!(
            bytes[4096..4099],
            [pattern(4096, 4097, 1), pattern(4097, 4098, 9), pattern(4098, 4099, 1)].concat()
        );
    }
}

#[test]
fn more_than_one_step_is_written_without_a_seam() {
    let files = Files::in_memory();
    let path = files.path("file");
    fill(&path, "--offset 3 --size 3000001 --seed 9007199254740991");
    assert!(fs::read(&path).unwrap()[3..] == pattern(3, 3_000_004, (1 << 53) - 1));
}

#[test]
fn what_is_not_a_file_or_a_block_device_is_refused() {
    let files = Files::in_memory();
    let fifo = files.path("fifo");
    mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    for size in ["", "--size 4k"] {
        let text = format!("fill --allow-write @ {size}");
        assert_refused(&text, &files.path(""), 2, &["neither a file nor a device"]);
        assert_refused(&text, &fifo, 2, &["neither a file nor a device"]);
        assert_refused(&text, Path::new("/dev/null"), 2, &["/dev/null", "character device"]);
        let code = if size.is_empty() { 2 } else { 1 };
        assert_refused(&text, Path::new("/no/such/folder/file"), code, &["/no/such/folder/file"]);
    }
}

#[test]
fn a_number_that_cannot_be_leaves_nothing_behind() {
    let files = Files::in_memory();
    let path = files.path("new");
    for (option, value) in [("--size", "0"), ("--size", "9007199254740992"), ("--offset", "18446744073709551615")] {
        let size = if option == "--size" { "" } else { "--size 4k" };
        assert_refused(&format!("fill --allow-write @ {size} {option} {value}"), &path, 2, &[option, value]);
    }
    let seed = "fill --allow-write @ --size 4k --seed 9007199254740992";
    assert_refused(seed, &path, 2, &["--seed 9007199254740992", "9007199254740991"]);
    assert_refused("fill --allow-write @ --size 4q", &path, 2, &["--size", "4q"]);
    assert_refused("fill --size 4k", &path, 2, &["--allow-write"]);
    assert!(!path.exists());
}

#[test]
fn a_size_that_the_file_system_cannot_hold_leaves_nothing_behind() {
    let files = Files::on_disk();
    let path = files.path("new");
    // The largest file of ext4, xfs, btrfs and others is smaller than the sum, which tmpfs would take.
    let output = run("fill --allow-write @ --offset 9007199254740991 --size 4k", &path);
    if code(&output) != 1 || !stderr(&output).contains("ftruncate: File too large") {
        return eprintln!("skipped: this file system takes files of 2^53 bytes: {}", stderr(&output));
    }
    assert!(!path.exists());
}

#[test]
fn an_empty_file_and_a_place_past_its_end_need_a_size() {
    let files = Files::in_memory();
    let empty = files.zeros("empty", 0);
    assert_refused("fill --allow-write @", &empty, 2, &["is empty", "--size"]);
    let path = files.filled("file");
    let past = format!("fill --allow-write @ --offset {FILE_BYTES}");
    assert_refused(&past, &path, 2, &["--offset 1048576", "past the end", "1048576 bytes"]);
}
