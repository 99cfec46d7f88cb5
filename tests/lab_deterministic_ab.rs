//! A/B comparisons of known differences, and of a real driver's switch, on counted instructions. Run in the lab:
//! `scripts/test`, or `scripts/lab --deterministic --with null_blk,srp -- TEST-BINARY --test-threads=1`.

mod lab;

use std::process::{Command, Stdio};

use lab::{LAT_PROBE, block::DEVICES, out_folder};
use serde_json::Value;

/// Runs a series with a control; the comparison.
fn ab(name: &str, sides: &[(&str, &str)], arguments: &str) -> Value {
    let output = out_folder().join(format!("{name}.json"));
    let _ = std::fs::remove_file(&output);
    let mut command = Command::new(LAT_PROBE);
    command.arg("ab").args(arguments.split_whitespace()).args(["--aa", "--format", "json", "--clock", "tsc"]);
    for (side, making) in sides {
        command.args(["--side", &format!("{side}={making}")]);
    }
    command.arg("--output").arg(&output).stdin(Stdio::null());
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(matches!(ended.status.code(), Some(0 | 3 | 4)), "{name}: {}: {said}", ended.status);
    serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{name}: {error}: {said}"))
}

/// The figure of a point on a side, against the first side.
fn against<'a>(comparison: &'a Value, point: usize, side: &str, figure: &str) -> &'a Value {
    let sides = comparison["points"][point]["sides"].as_array().unwrap();
    let side = sides.iter().find(|found| found["name"] == side).unwrap();
    let figures = side["figures"].as_array().unwrap();
    &figures.iter().find(|found| found["figure"] == figure).unwrap()["against_first"]
}

fn ns(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// Has the device complete each command after another time.
fn delay(ns: u32) -> String {
    format!(
        "{DEVICES} cd /sys/kernel/config/nullb/n200us; echo 0 > power; echo {ns} > completion_nsec; echo 1 > power
         wait_for test -b /dev/n200us"
    )
}

#[test]
fn a_device_that_is_ten_microseconds_slower_is_found_so_and_an_equal_one_is_the_same() {
    if !lab::in_lab(1) {
        return;
    }
    let comparison = ab(
        "ab-null_blk",
        &[("200us", &delay(200_000)), ("210us", &delay(210_000))],
        "--rounds 12 --engine psync --target /dev/lab/n200us --rw randread --count 100 --warmup 20",
    );
    let settled = ab(
        "ab-settled",
        &[("200us", &delay(200_000)), ("210us", &delay(210_000))],
        "--rounds 24 --until-settled --engine psync --target /dev/lab/n200us --rw randread --count 100 --warmup 20",
    );
    lab::shell(&delay(200_000));
    // Half of the blocks, six, are too few for the level of the first look, which leaves its part to the second one, after nine
    // of twelve.
    assert_eq!((&settled["verdict"], &settled["sides"][0]["rounds"]), (&"slower".into(), &18.into()), "{settled:#}");
    assert!((ns(&settled["method"], "level") - 0.975).abs() < 1e-9, "{}", settled["method"]);
    let slower = against(&comparison, 0, "210us", "p50");
    assert_eq!(slower["verdict"], "slower", "{slower}");
    // The timer of the kernel has its own grain.
    assert!(ns(slower, "low_ns") <= 10_250.0 && ns(slower, "high_ns") >= 9_750.0, "{slower}");
    assert!((ns(slower, "shift_ns") - 10_000.0).abs() < 500.0, "{slower}");
    assert_eq!(against(&comparison, 0, "200us again", "p50")["verdict"], "same", "{comparison:#}");
    assert_eq!(comparison["verdict"], "slower");
}

/// Logs out, loads the initiator anew and logs in again.
fn register_always(value: char) -> String {
    format!(
        "{DEVICES} for port in /sys/class/srp_remote_ports/port-*; do echo 1 > $port/delete; done
         no_port() {{ ! ls -d /sys/class/srp_remote_ports/port-* > /dev/null 2>&1; }}
         wait_for no_port
         wait_for modprobe -r ib_srp
         modprobe ib_srp ch_count=1 register_always={value}
         wait_for test -e /sys/class/infiniband_srp/srp-rxe0-1/add_target
         sh /dev/lab/srp-login
         wait_for publish_scsi srp ib_srp 0
         wait_for publish_scsi srp-4k ib_srp 1
         wait_for dd if=/dev/lab/srp-disk of=/dev/null bs=4k count=16 iflag=direct"
    )
}

#[test]
fn a_switch_of_the_srp_driver_is_found_and_each_of_its_sides_equals_itself() {
    if !lab::in_lab(1) {
        return;
    }
    let (y, n) = (register_always('Y'), register_always('N'));
    let measured =
        "--rounds 12 --engine psync --target /dev/lab/srp-disk --direct --rw randread --count 200 --warmup 100";
    let comparison = ab("ab-srp", &[("n", &n), ("y", &y)], measured);
    let found = against(&comparison, 0, "y", "p50");
    println!("register_always=y against n: {found}");
    assert_eq!(found["verdict"], "slower", "{found}");
    let percent = ns(found, "shift_percent");
    assert!((1.0..5.0).contains(&percent), "{found}");
    assert_eq!(against(&comparison, 0, "n again", "p50")["verdict"], "same", "{comparison:#}");
    let differences = comparison["differences"].as_array().unwrap();
    let switch = differences.iter().find(|it| it["key"] == "host.modules.ib_srp.parameters.register_always");
    assert!(
        switch.is_some_and(|it| it["values"][0][0] == "\"N\"" && it["values"][1][0] == "\"Y\""),
        "{differences:#?}"
    );
    let comparison = ab("ab-srp-y", &[("y", &y)], measured);
    let same = against(&comparison, 0, "y again", "p50");
    println!("register_always=y against y: {same}");
    assert_eq!(same["verdict"], "same", "{same}");
}
