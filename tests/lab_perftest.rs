//! perftest's `ib_read_lat` and `rdma-read` beside each other on one device, in turn. Run in the lab: `scripts/test`, or
//! `scripts/lab -- TEST-BINARY --test-threads=1`.
//!
//! The two do not measure the same span, and an emulated machine is noisy: the figures are recorded, not compared.

mod lab;

use std::time::Duration;

use lab::{
    Background, Server, measure,
    perftest::{self, FIGURES, P50},
    point,
};
use serde_json::{Value, json};

const ROUNDS: u16 = 5;
const COUNT: usize = 1000;

/// Figures of one run, in nanoseconds.
type Figures = Value;

/// One run of perftest, server and client.
fn perftest_figures(port: u16) -> Figures {
    let tool = "ib_read_lat";
    let server = Background(perftest::command(tool, port, COUNT, None).spawn().expect("perftest is installed"));
    let figures = perftest::measure(tool, port, COUNT, "10.0.0.1");
    let (code, stdout, stderr) = server.wait(Duration::from_secs(60));
    assert_eq!(code, 0, "the server of {tool}: {stdout}{stderr}");
    FIGURES.iter().zip(figures).map(|(name, value)| (name.to_string(), json!(value))).collect()
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
    let figures = perftest::parse(report, COUNT);
    assert_eq!((FIGURES[P50], figures[P50]), ("p50", 53_250.0));
    assert_eq!((FIGURES[5], figures[5], figures.len()), ("p99", 99_000.0, FIGURES.len()));
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
