//! What is refused before the first command: each with its exit code, the option, the value, the limit and the remedy.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixListener,
    },
    path::Path,
    process::{Command, Output},
};

use nix::{sys::stat::Mode, unistd::mkfifo};

use crate::common::{
    BINARY, FILE_BYTES, Files, arguments, assert_refusal, assert_refused, command, is_missing, measured, run,
    takes_direct,
};

const READ: &str = "--engine psync --target @ --buffered --count 10";

#[test]
fn a_target_is_needed_and_its_absence_is_said() {
    for engine in ["psync", "pvsync2", "libaio", "io-uring", "nvme-cmd", "sg"] {
        assert_refused(&format!("--engine {engine}"), Path::new(""), 2, &["--target is missing", engine]);
    }
    let missing = Path::new("/no/such/file");
    assert_refused(READ, missing, 1, &["/no/such/file", "No such file", "lsblk"]);
    assert_refused(&format!("{READ} --rw write --allow-write @"), missing, 1, &["/no/such/file", "No such file"]);
    assert!(!missing.exists());
}

#[test]
fn what_is_neither_a_file_nor_a_block_device_is_refused_and_never_waited_for() {
    let files = Files::in_memory();
    let (fifo, socket) = (files.path("fifo"), files.path("socket"));
    mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    for path in [&files.path(""), &fifo, &socket] {
        for engine in ["psync", "libaio", "io-uring", "sg", "nvme-cmd"] {
            let words = [path.to_str().unwrap(), "neither a file nor a device", "/dev/sg*"];
            assert_refused(&format!("--engine {engine} --target @"), path, 2, &words);
        }
    }
    for device in ["/dev/null", "/dev/zero"] {
        let words = [device, "is a character device", "/dev/sg*", "/dev/ng*"];
        assert_refused(READ, Path::new(device), 2, &words);
    }
}

#[test]
fn passthrough_engines_refuse_a_file() {
    let files = Files::in_memory();
    let path = files.filled("file");
    let shown = path.to_str().unwrap();
    assert_refused("--engine sg --target @", &path, 2, &[shown, "no target for the engine sg", "/dev/sg*"]);
    assert_refused("--engine nvme-cmd --target @", &path, 2, &[shown, "no target for the engine nvme-cmd", "/dev/ng*"]);
    assert_refused("--engine nvme-cmd --nvme-ioctl --target @", &path, 2, &[shown, "nvme-cmd"]);
    for option in ["--direct", "--buffered"] {
        for engine in ["sg", "nvme-cmd"] {
            assert_refused(
                &format!("--engine {engine} --target @ {option}"),
                &path,
                2,
                &[option, "block layer", engine],
            );
        }
    }
}

#[test]
fn a_file_too_small_for_one_command_is_refused_with_both_sizes() {
    let files = Files::in_memory();
    let empty = files.zeros("empty", 0);
    let fill = format!("`lat-probe fill --allow-write {} --size", empty.display());
    assert_refused(READ, &empty, 2, &["is empty", &fill]);
    let short = files.zeros("short", 100);
    assert_refused(READ, &short, 2, &[short.to_str().unwrap(), "100 bytes", "4096 bytes (--bs)"]);
    let path = files.filled("file");
    assert_refused(&format!("{READ} --bs 1048577"), &path, 2, &["1048576 bytes", "1048577 bytes (--bs)"]);
    assert_refused(&format!("{READ} --size 512"), &path, 2, &["512 bytes", "4096 bytes (--bs)"]);
    assert_refused(&format!("{READ} --offset 1044481"), &path, 2, &["4095 bytes", "4096 bytes (--bs)"]);
}

#[test]
fn sizes_and_places_out_of_range_are_refused_with_the_range() {
    let files = Files::in_memory();
    let path = files.filled("file");
    let refused = |options: &str, words: &[&str]| assert_refused(&format!("{READ} {options}"), &path, 2, words);
    refused("--bs 0", &["--bs 0", "at least one block"]);
    refused("--bs 2G", &["--bs 2147483648", "at most 1073741824 (1G)"]);
    refused("--bs 4k,0", &["--bs 0"]);
    refused("--size 0", &["--size 0", "at least one block"]);
    let words = ["--offset 1048576", "past the end", path.to_str().unwrap(), "1048576 bytes"];
    refused(&format!("--offset {FILE_BYTES}"), &words);
    refused("--offset 9007199254740991", &["--offset 9007199254740991", "past the end"]);
    refused("--size 2M", &["--size", "2097152", "beyond the limit of 1048576"]);
    refused("--offset 4k --size 1M", &["--size", "1048576", "beyond the limit of 1044480", "--offset 4096"]);
    refused("--size 9007199254740991", &["--size", "9007199254740991", "beyond the limit of 1048576"]);
    for option in ["--seed", "--offset", "--size"] {
        for value in ["9007199254740992", "18446744073709551615"] {
            refused(&format!("{option} {value}"), &[option, value, "at most 9007199254740991"]);
        }
        refused(&format!("{option} -1"), &[option, "-1"]);
        refused(&format!("{option} 18446744073709551616"), &[option, "18446744073709551616"]);
    }
}

#[test]
fn a_file_needs_a_choice_between_direct_and_buffered() {
    let files = Files::in_memory();
    let path = files.filled("file");
    for engine in ["psync", "pvsync2", "libaio", "io-uring"] {
        let text = format!("--engine {engine} --target @");
        assert_refused(&text, &path, 2, &[path.to_str().unwrap(), "is a file", "--direct", "--buffered"]);
        assert_refused(&format!("{text} --direct --buffered"), &path, 2, &["--direct and --buffered exclude"]);
    }
}

#[test]
fn direct_access_refuses_what_is_not_whole_blocks_with_the_nearest_that_are() {
    let files = Files::on_disk();
    let path = files.filled("file");
    if !takes_direct(&path) {
        return;
    }
    let direct = "--engine psync --target @ --direct";
    let unit = measured(direct, &path)["granted"]["block"]["block_bytes"].as_u64().unwrap();
    let (odd, below, above) = (16 * unit + 1, 16 * unit, 17 * unit);
    for option in ["--bs", "--offset", "--size"] {
        let words = [&format!("{option} {odd}"), &format!("of {unit} bytes"), &format!("{below} and {above}")];
        assert_refused(&format!("{direct} {option} {odd}"), &path, 2, &words.map(|word| word.as_str()));
    }
    assert_refused(&format!("{direct} --bs 1"), &path, 2, &["--bs 1", &format!("the smallest is {unit}")]);
}

#[test]
fn options_of_one_engine_are_refused_by_the_others() {
    let files = Files::in_memory();
    let path = files.filled("file");
    let refused =
        |text: &str, words: &[&str]| assert_refused(&format!("{text} --target @ --count 10"), &path, 2, words);
    for engine in ["psync", "libaio", "io-uring"] {
        refused(&format!("--engine {engine} --hipri"), &["--hipri is for pvsync2", engine]);
    }
    for option in ["--uring-iopoll", "--uring-sqpoll", "--uring-async", "--uring-unregistered"] {
        for engine in ["psync", "pvsync2", "libaio", "sg"] {
            refused(&format!("--engine {engine} {option}"), &[option, "io-uring", engine]);
        }
        refused(&format!("--engine null {option}"), &["null"]);
    }
    refused("--engine nvme-cmd --uring-async", &["--uring-async is for io-uring", "nvme-cmd"]);
    refused("--engine io-uring --nvme-ioctl", &["--nvme-ioctl is for nvme-cmd", "io-uring"]);
    refused("--engine nvme-cmd --nvme-ioctl --uring-sqpoll", &["--uring-sqpoll", "--nvme-ioctl"]);
    for engine in ["psync", "pvsync2", "sg"] {
        let words = ["--completion has no effect", engine];
        refused(&format!("--engine {engine} --completion event"), &words);
    }
    refused("--engine null", &["--target", "null"]);
    refused("--engine psync --peer host-b", &["--peer", "psync"]);
    refused("--engine psync --half-rtt", &["--half-rtt", "psync"]);
}

#[test]
fn a_command_without_payload_takes_no_option_about_data() {
    let files = Files::in_memory();
    let path = files.filled("file");
    for (engine, name) in
        [("psync", "inquiry"), ("io-uring", "flush"), ("sg", "flush"), ("nvme-cmd", "test-unit-ready")]
    {
        let words = [&format!("--command {name}"), engine, "no such command"];
        assert_refused(&format!("--engine {engine} --target @ --command {name}"), &path, 2, &words);
    }
    for options in ["--bs 4k", "--rw read", "--verify", "--offset 4k", "--size 4k", "--seed 2", "--allow-write @"] {
        let option = options.split(' ').next().unwrap();
        let words = [&format!("{option} has no effect with --command inquiry"), "moves no data"];
        assert_refused(&format!("--engine sg --target @ --command inquiry {options}"), &path, 2, &words);
    }
}

#[test]
fn the_cpu_of_the_submission_thread_is_checked() {
    let files = Files::in_memory();
    let path = files.filled("file");
    let ring = "--engine io-uring --target @ --buffered --count 10";
    assert_refused(&format!("{ring} --sqpoll-cpu 0"), &path, 2, &["--sqpoll-cpu is for --uring-sqpoll"]);
    for cpu in ["8192", "18446744073709551615"] {
        let words = [&format!("--sqpoll-cpu {cpu}"), "0 to 8191"];
        assert_refused(&format!("{ring} --uring-sqpoll --sqpoll-cpu {cpu}"), &path, 2, &words);
    }
    if !is_missing("io-uring") {
        let words = ["--sqpoll-cpu 8191", "does not exist"];
        assert_refused(&format!("{ring} --uring-sqpoll --sqpoll-cpu 8191"), &path, 2, &words);
    }
}

#[test]
fn polled_completion_needs_direct_access_and_a_device_with_poll_queues() {
    let files = Files::on_disk();
    let path = files.filled("file");
    for (engine, option) in [("io-uring", "--uring-iopoll"), ("pvsync2", "--hipri")] {
        let text = format!("--engine {engine} --target @ --count 10 {option}");
        assert_refused(&format!("{text} --buffered"), &path, 2, &[option, "needs direct access"]);
        if !takes_direct(&path) {
            continue;
        }
        let granted = measured("--engine psync --target @ --direct --count 10", &path)["granted"]["block"].clone();
        if granted["device"]["poll_queues"] == true {
            eprintln!("skipped: {option}: the device below {} has poll queues", path.display());
            continue;
        }
        assert_refused(&format!("{text} --direct"), &path, 77, &[option, "no poll queues", "queue"]);
    }
    let both = "--engine io-uring --target @ --direct --uring-iopoll --completion event";
    assert_refused(both, &path, 2, &["--uring-iopoll", "--completion event"]);
}

#[test]
fn writes_need_the_same_path_twice_and_nothing_is_changed_without() {
    let files = Files::in_memory();
    let path = files.filled("file");
    let before = fs::read(&path).unwrap();
    let shown = path.to_str().unwrap();
    for rw in ["write", "randwrite"] {
        for engine in ["psync", "pvsync2", "libaio", "io-uring"] {
            let text = format!("--engine {engine} --target @ --buffered --rw {rw}");
            let remedy = format!("--allow-write {shown}");
            assert_refused(&text, &path, 2, &["would destroy the data", &remedy]);
            let words = ["--allow-write names /another/file", shown, "same text"];
            assert_refused(&format!("{text} --allow-write /another/file"), &path, 2, &words);
        }
    }
    for (target, allowed) in [("file", "./file"), ("./file", "file")] {
        let text = format!("--engine psync --target {target} --buffered --rw write --allow-write {allowed}");
        let output = command(&text, &path).current_dir(files.path("")).output().unwrap();
        let names = format!("--allow-write names {allowed}");
        assert_refusal(&text, &output, 2, &[&names, &format!("target is {target}"), "same text"]);
    }
    for rw in ["", "--rw read", "--rw randread"] {
        assert_refused(&format!("{READ} {rw} --allow-write @"), &path, 2, &["--allow-write has no effect"]);
    }
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
}

/// Runs the binary as a user for whom the mode of a file counts; none if that can't be done here.
fn as_nobody(text: &str, path: &Path) -> Option<Output> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return Some(run(text, path));
    }
    let nobody = |arguments: Vec<_>| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", BINARY]).args(arguments).output().ok()
    };
    if !nobody(vec!["--version".into()]).is_some_and(|output| output.status.success()) {
        eprintln!("skipped: this is root, and cannot become somebody else who reaches {BINARY}");
        return None;
    }
    nobody(arguments(text, path))
}

#[test]
fn a_file_that_the_user_may_not_touch_is_refused_with_its_mode() {
    let files = Files::in_memory();
    let path = files.filled("file");
    let before = fs::read(&path).unwrap();
    let shown = path.to_str().unwrap();
    let write = format!("{READ} --rw write --allow-write @");
    for (mode, text) in [(0o000, READ), (0o444, &write), (0o444, "fill --allow-write @")] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let Some(output) = as_nobody(text, &path) else { return };
        let words = [shown, "open: Permission denied", "Needs root", "chmod", &format!("its mode is {mode:04o}")];
        assert_refusal(text, &output, 1, &words);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
}

#[test]
fn a_folder_that_the_user_may_not_search_is_named_as_the_reason() {
    let files = Files::in_memory();
    let folder = files.path("folder");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("file");
    fs::write(&path, [0; 4096]).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    let output = as_nobody(READ, &path);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let Some(output) = output else { return };
    assert_refusal(READ, &output, 1, &[path.to_str().unwrap(), "Permission denied", "search permission"]);
}
