//! Bad input and broken surroundings on a real RDMA stack: what it says, how it ends, and that it measures again once the
//! cause is gone. Run in the lab: `scripts/test`, or `scripts/lab -- TEST-BINARY --test-threads=1`.
//!
//! Tests here take the device away from under everybody else. Whatever one changes is undone by a guard, so that a failed
//! assertion spoils no later test.

mod lab;

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lab::{LAT_PROBE, Undo, assert_refused, assert_says, measure, point, shell};

const READ: &str = "--engine rdma-read --count 20 --warmup 2";

/// Longest time in which a peer that fails must have been given up: the step's deadline, and a slow machine's start.
const GIVEN_UP: Duration = Duration::from_secs(30);

/// Brings rxe0 back as the lab has made it, whatever is missing. A link that goes down loses its IPv6 addresses.
const RESTORE_RXE: &str = "
    ip link set v0 mtu 9000 up
    ip -6 addr show dev v0 | grep -q fd00:6c61:7470::1 || ip addr add fd00:6c61:7470::1/64 dev v0 nodad
    [ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev v0
    tries=300
    until cd /sys/class/infiniband/rxe0/ports/1 && grep -q ACTIVE state && cat gids/0 gids/1 gids/2 gids/3 > /tmp/gids &&
        grep -q :ffff:0a00: /tmp/gids && grep -q ^fd00:6c61:7470: /tmp/gids &&
        ip -6 addr show dev v0 | grep fe80 | grep -vq tentative
    do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || exit 1
        sleep 0.05
    done";

/// Runs a measurement as nobody, with a limit on locked memory; exit code and message.
fn as_nobody(memlock_bytes: &str, arguments: &str) -> (i32, String) {
    let output = Command::new("prlimit")
        .arg(format!("--memlock={memlock_bytes}"))
        .args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", LAT_PROBE])
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What a subcommand prints; it succeeds.
fn printed(subcommand: &str) -> String {
    let output = Command::new(LAT_PROBE).arg(subcommand).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{subcommand}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The limit that a message names.
fn limit_in(message: &str) -> u64 {
    let (_, behind) = message.split_once("beyond the limit of ").unwrap_or_else(|| panic!("no limit: {message}"));
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no limit: {message}"))
}

/// Listens as something that is no lat-probe and says `opening` to whoever comes; its address.
fn pretender(opening: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The client may hang up at the first wrong byte; reading on until it does keeps a reset from overtaking it.
        let _ = stream.write_all(opening);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    address
}

#[test]
fn an_unknown_device_or_port_is_named_with_those_there_are() {
    if !lab::in_lab(1) {
        return;
    }
    assert_refused(&format!("{READ} --device mlx9_0"), 2, &["mlx9_0", "there are: rxe0"]);
    assert_refused(&format!("{READ} --device rxe0:2"), 2, &["rxe0", "no port 2", "there are: 1"]);
    measure(&format!("{READ} --device rxe0:1"));
}

#[test]
fn a_gid_index_in_a_hole_lists_the_valid_ones() {
    if !lab::in_lab(1) {
        return;
    }
    for index in [100, 255] {
        let words = [&format!("--gid-index {index}"), "valid: 0: fe80::", "1: ::ffff:10.0.0.1 (RoCE v2)"];
        assert_refused(&format!("{READ} --gid-index {index}"), 2, &words);
    }
    // One that does not fit the table's numbers is refused, not wrapped into one that does.
    assert_refused(&format!("{READ} --gid-index 256"), 2, &["--gid-index 256", "0 to 255"]);
    let result = measure(&format!("{READ} --gid-index 0"));
    assert_eq!(point(&result)["granted"]["rdma"]["gid_index"], 0);
}

#[test]
fn a_port_that_is_down_is_named_with_its_state() {
    if !lab::in_lab(1) {
        return;
    }
    let down = Undo::after("ip link set v0 down", RESTORE_RXE);
    for device in ["", "--device rxe0", "--device rxe0:1"] {
        assert_refused(&format!("{READ} {device}"), 77, &["rxe0:1", "DOWN", "ip link set"]);
    }
    let check = printed("check");
    assert!(check.contains("PROBLEM") && check.contains("rxe0 port 1 is 1: DOWN"), "{check}");
    assert!(check.contains("fix: ip link set v0 up"), "{check}");
    let engines = printed("engines");
    assert!(engines.contains("rxe0:1 is 1: DOWN"), "{engines}");
    drop(down);
    measure(READ);
}

#[test]
fn without_any_device_the_commands_that_bring_one_are_named_and_work() {
    if !lab::in_lab(1) {
        return;
    }
    const ANEW: &str = "[ ! -e /sys/class/infiniband/rxe0 ] || rdma link delete rxe0";
    let restore: &'static str = format!("{ANEW}\n{RESTORE_RXE}").leak();
    let gone = Undo::after("rdma link delete rxe0", restore);
    let words = ["no RDMA device", "modprobe -a rdma_rxe ib_uverbs rdma_ucm", "rdma link add rxe0", "scripts/lab --"];
    let message = assert_refused(READ, 77, &words);
    assert_refused(&format!("{READ} --device rxe0"), 77, &["no RDMA device"]);

    let commands = message.split('`').nth(1).unwrap_or_else(|| panic!("no commands: {message}"));
    let check = printed("check");
    assert!(check.contains("there is no RDMA device") && check.contains(&format!("fix: {commands}")), "{check}");
    let engines = printed("engines");
    assert!(engines.contains("an RDMA device (no RDMA device)") && !engines.contains("rxe0:1"), "{engines}");
    assert!(engines.lines().any(|line| line.starts_with("null ") && line.contains(" yes ")), "{engines}");

    let output = shell(commands);
    assert!(output.status.success() && printed("check").contains("1 device"), "{commands}: {output:?}");
    drop(gone);
    measure(READ);
}

#[test]
fn check_and_engines_show_the_device_that_is_there() {
    if !lab::in_lab(1) {
        return;
    }
    let check = printed("check");
    for words in ["1 device, which this user may open", "rxe0 port 1 is 4: ACTIVE", "GID 1: ::ffff:10.0.0.1, RoCE v2"] {
        assert!(check.contains(words), "check should say {words:?}: {check}");
    }
    let engines = printed("engines");
    for engine in lab::ENGINES {
        let line = engines.lines().find(|line| line.split_whitespace().next() == Some(engine));
        assert!(line.is_some_and(|line| line.contains(" yes ")), "{engine}: {engines}");
    }
    assert!(engines.contains("has rxe0:1"), "{engines}");
}

#[test]
fn a_message_may_be_as_long_as_the_device_allows_and_no_longer() {
    if !lab::in_lab(1) {
        return;
    }
    let message = assert_refused("--engine rdma-read --bs 1G", 2, &["rxe0:1", "message size in bytes 1073741824"]);
    let limit = limit_in(&message);
    assert_refused(&format!("--engine rdma-write --bs {}", limit + 1), 2, &[&format!("limit of {limit}")]);
    measure(&format!("--engine rdma-write --bs {limit} --count 2 --warmup 1"));

    let datagram = "--engine rdma-send --transport UD --count 20 --warmup 2 --bs";
    assert_refused(&format!("{datagram} 4097"), 2, &["datagram size in bytes 4097", "limit of 4096", "one MTU"]);
    assert_refused(&format!("{datagram} 1025 --mtu 1024"), 2, &["datagram size in bytes 1025", "limit of 1024"]);
    measure(&format!("{datagram} 4096"));
}

#[test]
fn inline_size_and_read_depth_beyond_the_device_are_refused_with_the_limit() {
    if !lab::in_lab(1) {
        return;
    }
    let write = "--engine rdma-write --count 20 --warmup 2 --inline";
    let limit = limit_in(&assert_refused(&format!("{write} 1M"), 2, &["rxe0", "inline size in bytes 1048576"]));
    assert_refused(&format!("{write} {}", limit + 1), 2, &[&format!("limit of {limit}")]);
    let result = measure(&format!("{write} {limit} --bs {limit}"));
    assert_eq!(point(&result)["granted"]["rdma"]["inline"], true);

    let limit = limit_in(&assert_refused(&format!("{READ} --read-depth 255"), 2, &["rxe0:1", "read depth 255"]));
    assert_refused(&format!("{READ} --read-depth {}", limit + 1), 2, &[&format!("limit of {limit}")]);
    let result = measure(&format!("{READ} --read-depth {limit}"));
    assert_eq!(point(&result)["granted"]["rdma"]["read_depth"], limit);
}

#[test]
fn an_mtu_beyond_the_active_one_is_refused_with_the_limit() {
    if !lab::in_lab(1) {
        return;
    }
    let small = Undo::after("ip link set v0 mtu 1500", RESTORE_RXE);
    assert_refused(&format!("{READ} --mtu 4096"), 2, &["rxe0:1", "MTU in bytes 4096", "limit of 1024", "active MTU"]);
    assert_eq!(point(&measure(&format!("{READ} --bs 4k")))["granted"]["rdma"]["mtu_bytes"], 1024);
    drop(small);
    assert_eq!(point(&measure(&format!("{READ} --bs 4k --mtu 4096")))["granted"]["rdma"]["mtu_bytes"], 4096);
}

#[test]
fn too_little_lockable_memory_is_told_with_bytes_wanted_and_limit() {
    if !lab::in_lab(1) {
        return;
    }
    let _open = Undo::after("chmod 666 /dev/infiniband/uverbs*", "chmod 666 /dev/infiniband/uverbs*");
    let large = format!("{READ} --bs 1M");
    let (code, message) = as_nobody("65536", &large);
    assert_says(&large, (code, &message), 1, &["rxe0", "1048576 bytes", "limit is 65536 bytes", "ulimit -l"]);
    let (code, message) = as_nobody("unlimited", READ);
    assert_eq!(code, 0, "a user without privileges measures: {message}");
}

#[test]
fn a_user_who_may_not_open_the_device_is_told_what_to_do() {
    if !lab::in_lab(1) {
        return;
    }
    let closed = Undo::after("chmod 600 /dev/infiniband/uverbs*", "chmod 666 /dev/infiniband/uverbs*");
    let (code, message) = as_nobody("unlimited", READ);
    assert_says(READ, (code, &message), 77, &["cannot open /dev/infiniband/uverbs", "readable and writable"]);
    drop(closed);
    let mode = std::fs::metadata("/dev/infiniband/uverbs0").unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
}

#[test]
fn hugepages_are_used_where_reserved_and_asked_for_where_not() {
    if !lab::in_lab(1) {
        return;
    }
    let pages = "/proc/sys/vm/nr_hugepages";
    assert_eq!(std::fs::read_to_string(pages).unwrap().trim(), "0");
    assert_refused(&format!("{READ} --hugepages"), 1, &["buffer of 8 bytes", "mmap", "sysctl vm.nr_hugepages"]);
    let _reserved = Undo::after("echo 64 > /proc/sys/vm/nr_hugepages", "echo 0 > /proc/sys/vm/nr_hugepages");
    for size in ["8", "1M"] {
        let result = measure(&format!("{READ} --hugepages --bs {size}"));
        let buffer = &point(&result)["granted"]["buffer"];
        assert_eq!((&buffer["page_bytes"], &buffer["bytes"]), (&(2 << 20).into(), &(2 << 20).into()), "{buffer}");
    }
}

#[test]
fn a_peer_that_cannot_be_reached_is_told_apart_by_the_cause() {
    if !lab::in_lab(1) {
        return;
    }
    for (peer, words) in [
        ("127.0.0.1:18699", ["127.0.0.1:18699 refused the connection", "`lat-probe serve` running"]),
        ("[::1]:18699", ["[::1]:18699 refused the connection", "`lat-probe serve` running"]),
        ("192.0.2.1", ["192.0.2.1:18520 is unreachable", "no connection"]),
        ("10.0.0.99", ["10.0.0.99:18520 is unreachable", "no connection"]),
        ("lat-probe.invalid", ["the name 'lat-probe.invalid' could not be resolved", "peer lat-probe.invalid:18520"]),
        ("[fe80::1%nosuch0]", ["could not be resolved", "network interface 'nosuch0'"]),
    ] {
        let started = Instant::now();
        assert_refused(&format!("{READ} --peer {peer}"), 1, &words);
        assert!(started.elapsed() < GIVEN_UP, "{peer}: {:?}", started.elapsed());
    }
}

#[test]
fn a_peer_that_stays_silent_is_given_up_within_the_deadline() {
    if !lab::in_lab(1) {
        return;
    }
    // Never accepted: the kernel completes the connection all the same.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let started = Instant::now();
    let arguments = format!("{READ} --peer {}", listener.local_addr().unwrap());
    assert_refused(&arguments, 1, &["it sent nothing within 10 s"]);
    assert!(started.elapsed() < GIVEN_UP, "{:?}", started.elapsed());
}

#[test]
fn a_peer_that_is_something_else_is_told_by_what_it_says() {
    if !lab::in_lab(1) {
        return;
    }
    let not = "it is not a lat-probe";
    for (opening, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], [not, "HTTP/1.1"]),
        (b"SSH-2.0-OpenSSH_9.2\r\n", [not, "SSH-2.0"]),
        (b"LATPROBE\0\0\0\x02", ["protocol version 2", "Update lat-probe on this host"]),
        (b"LATPROBE\0\0\0\0", ["protocol version 0", "Update lat-probe on the peer"]),
    ] {
        let address = pretender(opening);
        assert_refused(&format!("{READ} --peer {address}"), 1, &[&format!("peer {address}"), words[0], words[1]]);
    }
}
