//! The table of perftest's latency tools, a line for each point: times in microseconds, `-` for what is undefined.
//!
//! `t_typical` is the median there as well. Their conventions are not ours: see the README's table.

use std::fmt::Write;

use crate::report::stored::Stored;

pub(super) fn table(stored: &Stored) -> String {
    let mut text = String::from(
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
         99% percentile[usec]   99.9% percentile[usec] \n",
    );
    for point in &stored.points {
        let (latency, p) = (&point.latency_ns, &point.latency_ns.percentiles);
        let usec = |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| format!("{:.2}", ns / 1e3));
        let [min, max, typical, mean, stddev, p99, p99_9] =
            [latency.min, latency.max, p.p50, latency.mean, latency.stddev, p.p99, p.p99_9].map(usec);
        let bytes = point.config.bs_bytes.map_or_else(|| "-".into(), |bytes| bytes.to_string());
        let _ = write!(text, " {bytes:<7} {:<14} {min:<14} {max:<12} {typical:<16} ", latency.n);
        let _ = writeln!(text, "{mean:<14} {stddev:<15} {p99:<22} {p99_9:<7}");
    }
    text
}
