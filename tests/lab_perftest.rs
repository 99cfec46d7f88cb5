//! perftest's `ib_read_lat` and `rdma-read` beside each other on one device, in turn. Run in the lab: `scripts/test`, or
//! `scripts/lab -- TEST-BINARY --test-threads=1`.
//!
//! The two do not measure the same span, and an emulated machine is noisy: the figures are recorded, not compared.

mod lab;

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lab::{Background, Server, measure, point};
use serde_json::{Value, json};

const ROUNDS: u16 = 5;
const COUNT: usize = 1000;
const LONGEST: Duration = Duration::from_secs(60);

/// Figures of one run, in nanoseconds.
type Figures = Value;

fn perftest(port: u16, server: Option<&str>) -> Command {
    let mut command = Command::new("ib_read_lat");
    command.args(format!("-d rxe0 -x 1 -F -s 8 -n {COUNT} -p {port}").split_whitespace()).args(server);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// One run of perftest, server and client.
fn perftest_figures(port: u16) -> Figures {
    let server = Background(perftest(port, None).spawn().expect("ib_read_lat runs"));
    let until = Instant::now() + LONGEST;
    // It says nowhere that it listens; a connection that is refused costs it nothing.
    let report = loop {
        let client = Background(perftest(port, Some("10.0.0.1")).spawn().expect("ib_read_lat runs"));
        let (code, stdout, stderr) = client.wait(LONGEST);
        if code == 0 {
            break stdout;
        }
        assert!(Instant::now() < until, "ib_read_lat: {code}: {stdout}{stderr}");
        thread::sleep(Duration::from_millis(200));
    };
    let (code, stdout, stderr) = server.wait(LONGEST);
    assert_eq!(code, 0, "the server of ib_read_lat: {stdout}{stderr}");
    parse_perftest(&report)
}

/// Reads the one row of a report: bytes, iterations, then microseconds in the order of the names below.
fn parse_perftest(report: &str) -> Figures {
    let row = report.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|row| {
        row.len() == 9 && row[0] == "8" && row[1] == COUNT.to_string() // The title has words in these places.
    });
    let row = row.unwrap_or_else(|| panic!("no row of figures: {report}"));
    let names = ["min", "max", "p50", "mean", "stdev", "p99", "p99.9"];
    let nanoseconds = row[2..].iter().map(|word| word.parse::<f64>().expect("a number of microseconds") * 1000.0);
    names.iter().zip(nanoseconds).map(|(name, value)| (name.to_string(), json!(value))).collect::<Value>()
}

/// One run of `rdma-read`.
fn own_figures(options: &str) -> Figures {
    let result = measure(&format!("--engine rdma-read --bs 8 --gid-index 1 --count {COUNT} --warmup 100 {options}"));
    let (latency, period) = (&point(&result)["latency_ns"], &point(&result)["throughput"]["period_ns"]);
    json!({
        "min": latency["min"], "max": latency["max"], "p50": latency["percentiles"]["50"], "mean": latency["mean"],
        "p99": latency["percentiles"]["99"], "mean_period": period,
    })
}

fn median(rounds: &[Value], tool: &str, figure: &str) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(|round| round[tool][figure].as_f64().unwrap()).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn the_median_row_of_a_perftest_report_is_read() {
    let report = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
        99% percentile[usec]   99.9% percentile[usec] \n 8       1000          41.50          900.12       53.25  \
        60.00  12.50  99.00  800.00\n";
    let figures = parse_perftest(report);
    assert_eq!((figures["min"].as_f64(), figures["p50"].as_f64()), (Some(41500.0), Some(53250.0)));
    assert_eq!(figures["p99"].as_f64(), Some(99000.0));
}

#[test]
fn perftest_and_rdma_read_in_turn_are_recorded_side_by_side() {
    if !lab::in_lab(1) {
        return;
    }
    let tools = ["ib_read_lat", "rdma_read_serve", "rdma_read_loopback"];
    let server = Server::start(18700, "");
    let peer = format!("--peer {}", server.address());
    let rounds: Vec<Value> = (1..=ROUNDS)
        .map(|round| {
            json!({
                "ib_read_lat": perftest_figures(18700 + round),
                "rdma_read_serve": own_figures(&peer),
                "rdma_read_loopback": own_figures(""),
            })
        })
        .collect();
    server.stop();
    let medians: Value = tools.iter().map(|tool| (tool.to_string(), json!(median(&rounds, tool, "p50")))).collect();
    let record = json!({
        "unit": "ns", "bs_bytes": 8, "count": COUNT,
        "definitions": {
            "ib_read_lat": "perftest: time from one post to the next; p50 is its t_typical, the median of these periods",
            "rdma_read_serve": "lat-probe: from hand-over until the completion was seen, polled, after 100 commands of \
                                warm-up; the other end in a second process. mean_period is hand-over to hand-over",
            "rdma_read_loopback": "the same with both ends in one process",
        },
        "rounds": rounds,
        "median_of_p50": medians,
    });
    let file = lab::out_folder().join("perftest-rounds.json");
    std::fs::write(file, serde_json::to_string_pretty(&record).unwrap()).unwrap();
    for round in &rounds {
        for tool in tools {
            for figure in ["min", "p50", "mean", "p99"] {
                assert!(round[tool][figure].as_f64().is_some_and(|value| value > 0.0), "{tool} {figure}: {round}");
            }
        }
    }
    println!("medians of p50 in ns: {}", record["median_of_p50"]);
}
