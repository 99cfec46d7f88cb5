//! `--format fio` against fio itself: the same expressions read both.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use regex::Regex;

/// Every kind of line that a report may have. A script that reads fio's by one of these reads ours by it.
const KINDS: [(&str, &str); 21] = [
    (
        "job",
        r"^(\S+): \(g=(\d+)\): rw=(\w+), bs=\(R\) [\d.]+[KMG]?i?B-\S+, \(W\) \S+, \(T\) \S+, ioengine=(\S+), iodepth=(\d+)$",
    ),
    ("version", r"^(fio|lat-probe)-\d+\.\d+\S*$"),
    (
        "head",
        r"^(\S+): \(groupid=(\d+), jobs=(\d+)\): err=([ \d]\d): pid=(\d+): \w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$",
    ),
    (
        "rates",
        r"^  (read|write): IOPS=([\d.]+[kMG]?), BW=([\d.]+[KMG]?i?B)/s \(([\d.]+[kMG]?B)/s\)\(([\d.]+[KMG]?i?B)/(\d+)msec\)",
    ),
    (
        "range",
        r"^    (slat|clat| lat) \((nsec|usec|msec)\): min=([\d.]+k?), max=([\d.]+[kM]?), avg=([ \d]+\.\d\d), stdev=([ \d]+\.\d\d)$",
    ),
    ("description", r"^  Description  : \[(.*)\]$"),
    ("percentiles", r"^    (clat|lat) percentiles \((nsec|usec|msec)\):$"),
    ("grid", r"^     \|( [ \d]{2}\d?\.\d\dth=\[ *\d+\],?)+$"),
    (
        "bandwidth",
        r"^   bw \(( *[KM]iB)/s\): min= *(\d+), max= *(\d+), per=([\d.]+)%, avg= *([\d.]+), stdev= *([\d.]+), samples=(\d+)$",
    ),
    ("iops", r"^   iops        : min= *(\d+), max= *(\d+), avg= *([\d.]+), stdev= *([\d.]+), samples=(\d+)$"),
    ("classes in ns", r"^  lat \(nsec\)   : \d+=[\d.]+%(, \d+=[\d.]+%)*$"),
    ("classes in µs", r"^  lat \(usec\)   : \d+=[\d.]+%(, \d+=[\d.]+%)*$"),
    ("classes in ms", r"^  lat \(msec\)   : (>=)?\d+=[\d.]+%(, (>=)?\d+=[\d.]+%)*$"),
    ("cpu", r"^  cpu          : usr=([\d.]+)%, sys=([\d.]+)%, ctx=(\d+), majf=(\d+), minf=(\d+)$"),
    ("depths", r"^  IO depths    : 1=([\d.]+)%, 2=\S+%, 4=\S+%, 8=\S+%, 16=\S+%, 32=\S+%, >=64=\S+%$"),
    ("submit", r"^     submit    : 0=\S+%, 4=([\d.]+)%, 8=\S+%, 16=\S+%, 32=\S+%, 64=\S+%, >=64=\S+%$"),
    ("complete", r"^     complete  : 0=\S+%, 4=([\d.]+)%, 8=\S+%, 16=\S+%, 32=\S+%, 64=\S+%, >=64=\S+%$"),
    ("issued", r"^     issued rwts: total=(\d+),(\d+),(\d+),(\d+) short=(\d+),\d+,\d+,\d+ dropped=(\d+),\d+,\d+,\d+$"),
    ("latency", r"^     latency   : target=(\d+), window=(\d+), percentile=([\d.]+)%, depth=(\d+)$"),
    ("group", r"^Run status group (\d+) \(all jobs\):$"),
    (
        "totals",
        r"^ +(READ|WRITE): bw=([\d.]+\w+/s) \(([\d.]+\w+/s)\), \S+/s-\S+/s \(\S+/s-\S+/s\), io=([\d.]+\w+) \(([\d.]+\w+)\), run=(\d+)-(\d+)msec$",
    ),
];

/// The kind of each line that has one.
fn kinds(report: &str) -> Vec<Option<&'static str>> {
    let kinds: Vec<_> = KINDS.iter().map(|&(name, pattern)| (name, Regex::new(pattern).unwrap())).collect();
    report.lines().map(|line| kinds.iter().find(|(_, pattern)| pattern.is_match(line)).map(|&(name, _)| name)).collect()
}

/// What the expression of this kind captures in its first line.
fn captured(report: &str, kind: &str) -> Vec<String> {
    let (_, pattern) = KINDS.iter().find(|(name, _)| *name == kind).unwrap();
    let pattern = Regex::new(pattern).unwrap();
    let captures =
        report.lines().find_map(|line| pattern.captures(line)).unwrap_or_else(|| panic!("{kind}:\n{report}"));
    captures.iter().skip(1).map(|part| part.map_or("", |part| part.as_str()).trim().to_string()).collect()
}

fn lat_probe(arguments: &str, target: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.args(arguments.split_whitespace()).args(["--format", "fio"]).arg("--target").arg(target);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// fio's own report of the same, long enough for a sample of the bandwidth; `None`, with the reason printed, without fio.
fn fio(rw: &str, target: &Path) -> Option<String> {
    let mut command = Command::new("fio");
    command.args(["--name=probe", "--ioengine=psync", "--bs=4k", "--time_based", "--runtime=2"]);
    command.args(["--clat_percentiles=1", "--lat_percentiles=1", "--allow_file_create=0", "--description=x"]);
    command.arg(format!("--rw={rw}")).arg(format!("--filename={}", target.display()));
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => panic!("fio: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            eprintln!("skipped: fio: {error}");
            None
        }
    }
}

fn file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), vec![7; 1 << 20]).unwrap();
    file
}

#[test]
fn every_line_has_a_kind_or_is_a_note() {
    let report = lat_probe("--engine psync --buffered --rw randread --bs 4k --count 5000 --phases", file().path());
    let two = lat_probe("--engine psync --buffered --bs 4k,8k --count 500 --label two", file().path());
    assert_eq!(captured(&two, "description"), ["two"]);
    let report = report + &two;
    for (line, kind) in report.lines().zip(kinds(&report)) {
        assert!(kind.is_some() || line.is_empty() || line.starts_with("note: "), "{line}\n{report}");
    }
    // The millisecond classes need a slow device.
    for (kind, _) in KINDS.into_iter().filter(|(kind, _)| !kind.starts_with("classes") && *kind != "description") {
        assert!(kinds(&report).contains(&Some(kind)), "{kind}:\n{report}");
    }
    assert!(kinds(&report).into_iter().flatten().any(|kind| kind.starts_with("classes")), "{report}");
}

#[test]
fn fios_own_report_is_read_by_the_same_expressions() {
    let file = file();
    for rw in ["randread", "write"] {
        let Some(theirs) = fio(rw, file.path()) else { return };
        let allow = if rw == "write" { format!("--allow-write {}", file.path().display()) } else { String::new() };
        let options = format!("--engine psync --buffered --rw {rw} --bs 4k,8k --count 5000 --phases --label x {allow}");
        let ours = lat_probe(&options, file.path());
        let known = kinds(&theirs);
        for kind in kinds(&ours).into_iter().flatten() {
            // Whether a run has a command in a unit's classes is chance.
            assert!(known.contains(&Some(kind)) || kind.starts_with("classes"), "{kind}:\n{theirs}\n{ours}");
        }
        for kind in ["job", "issued", "latency", "depths", "submit", "complete"] {
            let (ours, theirs) = (captured(&ours, kind), captured(&theirs, kind));
            // But for the name, and for how many there were, they say the same.
            let same = |of: &[String]| match kind {
                "job" => of[1..].to_vec(),
                "issued" => of.iter().map(|count| (count == "0").to_string()).collect(),
                _ => of.to_vec(),
            };
            assert_eq!(same(&ours), same(&theirs), "{kind}");
        }
    }
}

#[test]
fn the_figures_are_those_of_the_json_result() {
    let (file, folder) = (file(), tempfile::tempdir().unwrap());
    let output = folder.path().join("result.json");
    let options =
        format!("--engine psync --buffered --bs 4k --count 5000 --label before --output {}", output.display());
    let report = lat_probe(&options, file.path());
    let result: serde_json::Value = serde_json::from_slice(&fs::read(&output).unwrap()).unwrap();
    let (point, head) = (&result["points"][0], captured(&report, "head"));
    assert_eq!(&head[..4], ["before", "0", "1", "0"]);
    assert_eq!(captured(&report, "issued")[0], "5000");
    let range = captured(&report, "range");
    // Without --phases there is no slat and no clat.
    assert!(range[0] == "lat" && !report.contains("slat") && !report.contains("clat"), "{report}");
    if range[1] == "nsec" {
        let mean: f64 = range[4].parse().unwrap();
        assert!((mean - point["latency_ns"]["mean"].as_f64().unwrap()).abs() < 0.01, "{report}");
    }
    let (cpu, usage) = (captured(&report, "cpu"), &point["cpu"]);
    let user = 100.0 * usage["user_ns"].as_f64().unwrap() / usage["elapsed_ns"].as_f64().unwrap();
    assert!((cpu[0].parse::<f64>().unwrap() - user).abs() < 0.01, "{report}\n{usage}");
}

#[test]
fn what_is_no_measurement_has_no_such_layout() {
    for arguments in ["calibrate --format fio", "ab --a true --b true --rounds 4 --engine null --format fio"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
        let output = command.args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments}");
    }
}
