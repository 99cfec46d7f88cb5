//! `lat-probe compare` on results of this binary: verdicts, what is refused, and every way it is written.

mod schema_check;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use schema_check::assert_valid_as;
use serde_json::{Value, json};

fn run(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lat-probe"));
    command.current_dir(folder).args(arguments.split_whitespace()).output().unwrap()
}

/// Exit code, stdout and stderr of a comparison.
fn compare(folder: &Path, arguments: &str) -> (i32, String, String) {
    let output = run(folder, &format!("compare {arguments}"));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let stderr = text(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    (output.status.code().unwrap(), text(&output.stdout), stderr)
}

/// A real result, whose latencies are then those that a test needs.
fn template(folder: &Path) -> Value {
    let output = run(folder, "--engine spin --delay 10us --count 1200 --warmup 10 --format json");
    serde_json::from_slice(&output.stdout).unwrap()
}

struct Series {
    folder: tempfile::TempDir,
    template: Value,
}

impl Series {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let template = template(folder.path());
        Self { folder, template }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes rounds of a side whose latencies are all `ns` and a little more from round to round.
    fn side(&self, name: &str, rounds: usize, ns: f64, change: impl Fn(&mut Value)) -> Vec<PathBuf> {
        let of = |round: usize| {
            let mut result = self.template.clone();
            let ns = ns * (1.0 + 0.0005 * (round % 3) as f64);
            let latency = &mut result["points"][0]["latency_ns"];
            for figure in ["mean", "min", "max"] {
                latency[figure] = json!(ns);
            }
            for value in latency["percentiles"].as_object_mut().unwrap().values_mut().filter(|value| !value.is_null()) {
                *value = json!(ns);
            }
            // In turn: the sides' rounds lie an hour apart.
            let minute = name.bytes().map(u32::from).sum::<u32>() % 60;
            result["started_at"] = json!(format!("2026-11-30T{round:02}:{minute:02}:00Z"));
            change(&mut result);
            let path = self.path().join(format!("{name}-{round}.json"));
            fs::write(&path, result.to_string()).unwrap();
            path
        };
        (0..rounds).map(of).collect()
    }

    fn compare(&self, arguments: &str) -> (i32, String, String) {
        compare(self.path(), arguments)
    }

    /// Asserts that it is refused with all of these words.
    fn refused(&self, arguments: &str, words: &[&str]) {
        let (code, stdout, stderr) = self.compare(arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments}: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{arguments} should say {word:?}: {stderr}");
        }
    }
}

fn json_of(series: &Series, arguments: &str) -> Value {
    let (_, stdout, stderr) = series.compare(&format!("{arguments} --format json"));
    let comparison: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert_valid_as("comparison-1", &comparison);
    comparison
}

#[test]
fn verdicts_and_exit_codes_are_those_of_the_shift() {
    let series = Series::new();
    series.side("base", 6, 10_000.0, |_| {});
    series.side("equal", 6, 10_000.0, |_| {});
    series.side("slow", 6, 10_500.0, |_| {});
    series.side("fast", 6, 9_500.0, |_| {});
    series.side("few", 2, 10_500.0, |_| {});
    for (side, code, verdict) in
        [("equal", 0, "same"), ("slow", 3, "slower"), ("fast", 0, "faster"), ("few", 4, "inconclusive")]
    {
        let (ended, stdout, stderr) = series.compare(&format!("base-*.json {side}-*.json"));
        assert_eq!(ended, code, "{side}: {stdout}{stderr}");
        assert!(stdout.contains(&format!("verdict    {verdict} (p50; effects below 1 % do not count)")), "{stdout}");
    }
    let comparison = json_of(&series, "base=base-*.json slow=slow-*.json");
    let p50 = &comparison["points"][0]["sides"][1]["figures"][1];
    assert_eq!((&p50["figure"], &p50["against_first"]["verdict"]), (&json!("p50"), &json!("slower")));
    let against = &p50["against_first"];
    let (low, high) = (against["low_ns"].as_f64().unwrap(), against["high_ns"].as_f64().unwrap());
    assert!(low <= 500.0 && 500.0 <= high && high - low < 30.0, "{against}");
    assert!((against["shift_percent"].as_f64().unwrap() - 5.0).abs() < 0.1, "{against}");
    assert!(comparison["points"][0]["sides"][1]["shift_function"].as_array().unwrap().len() >= 9);
    // What does not interest is the same.
    let (code, _, _) = series.compare("base-*.json slow-*.json --min-effect 10%");
    assert_eq!(code, 0);
    let (code, _, _) = series.compare("base-*.json slow-*.json --min-effect 1us");
    assert_eq!(code, 0);
}

#[test]
fn more_sides_and_more_figures_widen_the_intervals() {
    let series = Series::new();
    series.side("base", 6, 10_000.0, |_| {});
    series.side("n", 6, 10_000.0, |_| {});
    series.side("y", 6, 10_400.0, |_| {});
    let comparison = json_of(&series, "base-*.json n-*.json y-*.json --judge p50,p99");
    assert_eq!(comparison["method"]["judged"], 4);
    assert_eq!(comparison["method"]["level_of_each"], 1.0 - 0.05 / 4.0);
    assert_eq!((&comparison["verdict"], &comparison["sides"][2]["rounds"]), (&json!("slower"), &json!(6)));
    let (_, markdown, _) = series.compare("base-*.json n-*.json y-*.json --format markdown");
    assert_eq!(markdown.lines().count(), 3, "{markdown}");
    let columns = markdown.lines().next().unwrap().matches('|').count();
    assert!(markdown.lines().all(|line| line.matches('|').count() == columns), "{markdown}");
    let (_, csv, _) = series.compare("base-*.json n-*.json y-*.json --format csv");
    assert_eq!(csv.lines().count(), 1 + 3 * 5, "{csv}");
    assert!(csv.lines().nth(12).unwrap().contains(",y-*.json,6,"), "{csv}");
}

#[test]
fn a_difference_below_the_instruments_own_spread_has_no_direction_and_is_not_the_same() {
    let series = Series::new();
    let spread = |ns: u32| move |result: &mut Value| result["points"][0]["share"]["unresolvable_below_ns"] = json!(ns);
    series.side("base", 6, 10_000.0, spread(700));
    series.side("later", 6, 10_500.0, spread(700));
    let comparison = json_of(&series, "base-*.json later-*.json");
    assert_eq!(comparison["verdict"], "inconclusive");
    let p50 = &comparison["points"][0]["sides"][1]["figures"][1]["against_first"];
    assert_eq!((&p50["unresolvable_ns"], p50["least_effect_ns"].as_f64() < Some(110.0)), (&json!(700.0), true));
    let (code, text, _) = series.compare("base-*.json later-*.json");
    assert!(code == 4 && text.contains("the shift of p50 of later-*.json is sharp, but below 700.0 ns"), "{text}");
    // One noisy round of thirteen does not hide it.
    series.side("base", 6, 10_000.0, spread(20));
    series.side("later", 6, 10_500.0, spread(20));
    let noisy = fs::read_to_string(series.path().join("later-5.json")).unwrap();
    fs::write(
        series.path().join("later-6.json"),
        noisy.replace("\"unresolvable_below_ns\":20", "\"unresolvable_below_ns\":9000"),
    )
    .unwrap();
    assert_eq!(json_of(&series, "base-*.json later-*.json")["verdict"], "slower");
}

#[test]
fn set_ups_that_make_other_figures_are_refused_and_others_are_listed() {
    let series = Series::new();
    series.side("base", 4, 10_000.0, |_| {});
    for (pointer, value, words) in [
        ("/points/0/convention", json!("round-trip"), ["what one number spans", "convention is"]),
        ("/points/0/config/completion", json!("event"), ["how completions are awaited", "\"event\" and \"poll\""]),
        ("/clock/source", json!("monotonic"), ["the clock must be the same", "clock.source is"]),
    ] {
        series.side("other", 4, 10_000.0, |result| *result.pointer_mut(pointer).unwrap() = value.clone());
        series.refused("base-*.json other-*.json", &words);
    }
    series.side("other", 4, 10_000.0, |result| {
        result["host"]["kernel"] = json!("7.0-patched");
        result["points"][0]["config"]["cpus"] = json!([77]);
    });
    let comparison = json_of(&series, "base-*.json other-*.json");
    let differences = comparison["differences"].as_array().unwrap();
    assert!(differences.iter().any(|it| it["key"] == "host.kernel" && it["values"][1][0] == "\"7.0-patched\""));
    assert!(comparison["warnings"].as_array().unwrap().iter().any(|it| it["code"] == "set-up-differs"));
    let quiet = json!({ "applied": [{ "what": "cpu-dma-latency", "detail": "" }], "refused": [] });
    series.side("quiet", 4, 10_000.0, |result| result["quiet"] = quiet.clone());
    let (_, text, _) = series.compare("base-*.json quiet-*.json");
    assert!(text.contains("what was quieted differs: nothing against cpu-dma-latency [set-up-differs]"), "{text}");
    series.side("deep", 4, 10_000.0, |result| result["points"][0]["config"]["qd"] = json!(32));
    series.refused(
        "base-*.json deep-*.json",
        &["no point that all runs have", "depth 32", "base-0.json has spin depth 1"],
    );
}

#[test]
fn what_is_no_result_is_refused_by_name() {
    let series = Series::new();
    series.side("base", 4, 10_000.0, |_| {});
    let files = [
        ("empty.json", "", "empty.json: the file is empty"),
        ("cut.json", "{\"schema\": \"lat-probe.res", "cut.json: not a JSON document"),
        ("foreign.json", "{\"jobs\": []}", "foreign.json: it has no `schema`"),
        (
            "newer.json",
            "{\"schema\": \"lat-probe.result/9\"}",
            "lat-probe.result/9; this version reads lat-probe.result/1",
        ),
        ("none.json", "{\"schema\": \"lat-probe.result/1\", \"points\": []}", "`points` is missing or empty"),
    ];
    for (name, text, words) in files {
        fs::write(series.path().join(name), text).unwrap();
        series.refused(&format!("base-*.json {name}"), &[words]);
    }
    series.side("partial", 4, 10_000.0, |result| result["points"][0]["partial"] = json!(true));
    series.refused("base-*.json partial-*.json", &["partial-0.json: points[0].partial: the run is not complete"]);
    series.side("nan", 4, 10_000.0, |result| result["points"][0]["latency_ns"]["mean"] = json!("NaN"));
    series.refused("base-*.json nan-*.json", &["nan-0.json: points[0].latency_ns"]);
    series.refused("base-*.json missing-*.json", &["missing-*.json: there is no such file"]);
    series.refused("base-*.json base-1.json", &["base-1.json: it is named twice"]);
    series.refused("base-*.json", &["compare needs two sides"]);
    series.refused("x=base-0.json x=base-1.json", &["two sides are called x"]);
}

#[test]
fn copies_of_one_run_and_wrong_bytes_are_refused() {
    let series = Series::new();
    series.side("base", 4, 10_000.0, |_| {});
    series.side("cand", 4, 10_500.0, |_| {});
    fs::copy(series.path().join("cand-0.json"), series.path().join("cand-copy.json")).unwrap();
    series.refused("base-*.json cand-*.json", &["cand-0.json and cand-copy.json are copies of one run"]);
    series.side("wrong", 4, 10_500.0, |result| result["points"][0]["verified"] = json!("no"));
    series.refused("base-*.json wrong-*.json", &["wrong-0.json: points[0].verified"]);
    series.side("label", 1, 10_000.0, |result| result["label"] = json!("before"));
    series.side("other", 1, 10_000.0, |result| result["label"] = json!("before"));
    series.refused("label-0.json other-0.json", &["two sides are called before", "quote a pattern"]);
}

#[test]
fn failed_commands_and_sides_that_were_not_taken_in_turn_are_doubts() {
    let series = Series::new();
    series.side("base", 4, 10_000.0, |_| {});
    series.side("cand", 4, 10_500.0, |_| {});
    let codes = |comparison: &Value| comparison["warnings"].to_string();
    let said = codes(&json_of(&series, "base-*.json cand-*.json"));
    assert!(!said.contains("not-in-turn") && !said.contains("\"errors\""), "{said}");
    series.side("after", 4, 10_500.0, |result| {
        let hour = result["started_at"].as_str().unwrap()[11..].to_string();
        result["started_at"] = json!(format!("2026-12-01T{hour}"));
        result["points"][0]["errors"] = json!({ "failed_commands": 3 });
    });
    let said = codes(&json_of(&series, "base-*.json after-*.json"));
    assert!(said.contains("all rounds of base-*.json were taken before those of after-*.json"), "{said}");
    assert!(said.contains("4 of 4 rounds of after-*.json count errors: failed_commands"), "{said}");
    let said = codes(&json_of(&series, "after-*.json base-*.json"));
    assert!(said.contains("all rounds of base-*.json were taken before those of after-*.json"), "{said}");
}

#[test]
fn a_judged_figure_that_the_samples_do_not_support_does_not_pass() {
    let series = Series::new();
    let few = |result: &mut Value| result["points"][0]["latency_ns"]["percentiles"]["99.9"] = json!(null);
    series.side("base", 6, 10_000.0, few);
    series.side("slow", 6, 20_000.0, few);
    let (code, text, _) = series.compare("base-*.json slow-*.json --judge p99.9 --junit report.xml");
    assert!(code == 4 && text.contains("p99.9 is judged, but not every round has the samples"), "{text}");
    let junit = fs::read_to_string(series.path().join("report.xml")).unwrap();
    assert!(junit.contains("tests=\"1\" failures=\"0\" skipped=\"1\""), "{junit}");
    let (code, text, _) = series.compare("base-*.json slow-*.json --judge p50,p99.9");
    assert_eq!(code, 3, "{text}");
}

#[test]
fn fewer_rounds_that_scatter_more_are_a_doubt() {
    let series = Series::new();
    series.side("base", 12, 10_000.0, |_| {});
    series.side("wide-a", 2, 9_000.0, |_| {});
    series.side("wide-b", 2, 11_000.0, |_| {});
    series.side("even", 5, 10_000.0, |_| {});
    let said = json_of(&series, "base-*.json wide-*.json")["warnings"].to_string();
    assert!(said.contains("the 4 rounds of wide-*.json scatter by"), "{said}");
    let said = json_of(&series, "wide-*.json base-*.json")["warnings"].to_string();
    assert!(said.contains("uneven-rounds"), "{said}");
    let said = json_of(&series, "base-*.json even-*.json")["warnings"].to_string();
    assert!(!said.contains("uneven-rounds"), "{said}");
}

#[test]
fn a_limit_fails_on_its_own_and_junit_says_what_failed() {
    let series = Series::new();
    series.side("base", 6, 10_000.0, |_| {});
    series.side("slow", 6, 10_500.0, |_| {});
    let (code, stdout, _) = series.compare("base-0.json --fail-above p50=20us --fail-above p99=1ms");
    assert_eq!(code, 0, "{stdout}");
    let (code, stdout, _) = series.compare("base-0.json --fail-above p50=5us --fail-above p99=1ms --junit limits.xml");
    assert!(code == 3 && stdout.contains("gate       FAILED"), "{stdout}");
    let junit = fs::read_to_string(series.path().join("limits.xml")).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\" skipped=\"0\""), "{junit}");
    assert!(junit.contains("p50 at most 5000 ns\"><failure message=\"10.00 µs, limit 5000 ns\"/>"), "{junit}");
    // More percentiles than the samples support do not pass.
    let (code, stdout, _) = series.compare("base-0.json --fail-above p99.9=1us");
    assert_eq!(code, 3, "{stdout}");
    let (code, ..) = series.compare("base-*.json slow-*.json --junit report.xml --output comparison.json");
    assert_eq!(code, 3);
    let junit = fs::read_to_string(series.path().join("report.xml")).unwrap();
    assert!(junit.contains("tests=\"1\" failures=\"1\" skipped=\"0\""), "{junit}");
    assert!(junit.contains("<failure message=\"shift "), "{junit}");
    let (code, ..) = series.compare("base-0.json --fail-above p50=5us --fail-above p99=1ms --junit limits.xml");
    assert_eq!(code, 3);
    let junit = fs::read_to_string(series.path().join("limits.xml")).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\"") && junit.contains("limit 5000 ns"), "{junit}");
    let stored = fs::read_to_string(series.path().join("comparison.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap()["verdict"], "slower");
    let (code, _, stderr) = series.compare("base-*.json slow-*.json --junit no/such/folder.xml");
    assert!(code == 1 && stderr.contains("no/such/folder.xml"), "{stderr}");
}

#[test]
fn a_shift_over_sizes_is_told_as_a_cost_of_the_command_and_of_the_byte() {
    let series = Series::new();
    let sweep = |side: &str, per_command: f64, per_byte: f64| {
        series.side(side, 8, 1.0, |result| {
            let noise = result["points"][0]["latency_ns"]["mean"].as_f64().unwrap();
            let template = result["points"][0].clone();
            let point = |bytes: u64| {
                let mut point = template.clone();
                point["config"]["bs_bytes"] = json!(bytes);
                let ns = noise * 30_000.0 + per_command + (0.5 + per_byte) * bytes as f64;
                point["latency_ns"] = json!({ "n": 1200, "min": ns, "max": ns, "mean": ns, "stddev": 0,
                    "percentiles": { "50": ns } });
                point
            };
            result["points"] = [512, 4096, 65_536, 524_288].map(point).into();
        });
    };
    sweep("base", 0.0, 0.0);
    sweep("patch", 4000.0, 0.01);
    series.side("short", 8, 1.0, |result| result["points"][0]["config"]["bs_bytes"] = json!(512));
    let said = json_of(&series, "base-*.json short-*.json")["warnings"].to_string();
    assert!(said.contains("not all rounds have these points: spin 4096 bytes depth 1; "), "{said}");
    let comparison = json_of(&series, "base-*.json patch-*.json");
    let cost = &comparison["costs"][0];
    assert_eq!((&cost["side"], &cost["sizes"][3]), (&json!("patch-*.json"), &json!(524_288)));
    let near = |value: &Value, wanted: f64, within: f64| (value.as_f64().unwrap() - wanted).abs() <= within;
    assert!(near(&cost["per_command"]["shift_ns"], 4000.0, 40.0), "{cost}");
    assert!(near(&cost["per_byte"]["shift_ns"], 0.01, 0.001), "{cost}");
    assert!(cost["per_command"]["low_ns"].as_f64() <= Some(4000.0) && cost["per_command"]["high_ns"].is_number());
    let (_, text, _) = series.compare("base-*.json patch-*.json");
    assert!(text.contains("a command, +0.0100 ns"), "{text}");
}

#[test]
fn a_table_that_others_have_measured_is_read_without_a_verdict() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/tables/srp-thread-2010.csv");
    let arguments = format!("--table {} --max-bytes 64k", table.display());
    let folder = tempfile::tempdir().unwrap();
    let (code, text, stderr) = compare(folder.path(), &arguments);
    assert_eq!(code, 4, "{stderr}");
    assert!(text.contains("thread=y against before, over 3 sizes: +3922 ns a command"), "{text}");
    assert!(text.contains("verdict    inconclusive: single values have no interval"), "{text}");
    let (_, document, _) = compare(folder.path(), &format!("{arguments} --format json --output t.json"));
    assert_valid_as("table-1", &serde_json::from_str(&document).unwrap());
    assert_eq!(fs::read_to_string(folder.path().join("t.json")).unwrap(), document);
    let (code, _, stderr) = compare(folder.path(), "--table none.csv");
    assert!(code == 2 && stderr.contains("none.csv"), "{stderr}");
    let (code, ..) = compare(folder.path(), &format!("{arguments} --format csv"));
    assert_eq!(code, 2);
}

#[test]
fn the_reference_comparison_is_what_the_schema_and_the_readme_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("results/reference/srp-register-always.json")).unwrap();
    let comparison: Value = serde_json::from_str(&text).unwrap();
    assert_valid_as("comparison-1", &comparison);
    let p50 = &comparison["points"][0]["sides"][1]["figures"][1]["against_first"];
    let microseconds = |key: &str| format!("{:.1}", p50[key].as_f64().unwrap() / 1000.0);
    let [shift, low, high] = ["shift_ns", "low_ns", "high_ns"].map(microseconds);
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let said = format!("{shift} µs more a command there than with `N`, from {low} to {high} µs");
    assert!(readme.contains(&said), "the README should say {said:?}");
}
