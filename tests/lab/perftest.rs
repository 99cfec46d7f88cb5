//! perftest's latency tools: one run of a client, and the one row that it prints.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::Background;

const LONGEST: Duration = Duration::from_secs(60);

/// A tool on rxe0, as server without a peer, as client with one.
pub fn command(tool: &str, port: u16, count: usize, peer: Option<&str>) -> Command {
    let mut command = Command::new(tool);
    command.args(format!("-d rxe0 -x 1 -F -s 8 -n {count} -p {port}").split_whitespace()).args(peer);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a client measured, by the names of [`FIGURES`], in nanoseconds.
pub fn measure(tool: &str, port: u16, count: usize, peer: &str) -> Vec<f64> {
    parse(&until_served(|| command(tool, port, count, Some(peer))), count)
}

/// What a client reports once its server answers.
pub fn until_served(client: impl Fn() -> Command) -> String {
    let until = Instant::now() + LONGEST;
    // A server says nowhere that it listens; a connection that is refused costs it nothing.
    loop {
        let running = Background(client().spawn().expect("perftest is installed"));
        let (code, stdout, stderr) = running.wait(LONGEST);
        if code == 0 {
            return stdout;
        }
        assert!(Instant::now() < until, "{code}: {stdout}{stderr}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// The figures of a report, in their order.
pub const FIGURES: [&str; 7] = ["min", "max", "p50", "mean", "stdev", "p99", "p99.9"];

/// Place of the smallest.
pub const MIN: usize = 0;

/// Place of the median.
pub const P50: usize = 2;

/// Reads the one row of a report: bytes, iterations, then microseconds.
pub fn parse(report: &str, count: usize) -> Vec<f64> {
    let row = report.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|row| {
        row.len() == 9 && row[0] == "8" && row[1] == count.to_string() // The title has words in these places.
    });
    let row = row.unwrap_or_else(|| panic!("no row of figures: {report}"));
    row[2..].iter().map(|word| word.parse::<f64>().expect("a number of microseconds") * 1000.0).collect()
}
