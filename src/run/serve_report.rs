//! What a server says of a client that has finished: the client's own figures, with what this end found.
//!
//! The figures are a stranger's claims. They are shown if they can be true, and text is escaped.

use std::{net::SocketAddr, time::SystemTime};

use super::{rdma::Done, timestamp};
use crate::{
    engine::{EngineKind, rdma::wire::Verdict},
    peer::{frame::printable, progress::believable_rate},
    report::{
        result::EndedBy,
        served::{SERVED_SCHEMA, Served, Who},
        text,
    },
    schema::LARGEST_INTEGER,
    stats::Summary,
    units::{format_bytes_per_s, format_count, format_size},
};

/// Characters of a host name that are shown.
const NAME_CHARS: usize = 64;

impl Who {
    /// A client as it is shown; its host name is its own word.
    pub(super) fn new(address: SocketAddr, hostname: Option<&str>) -> Self {
        let shown = |name: &str| printable(name).chars().take(NAME_CHARS).collect();
        Self { address, hostname: hostname.map(shown) }
    }

    /// `client 10.0.0.2:50000 (host-a)`.
    pub(super) fn name(&self) -> String {
        format!("client {} ({})", self.address, self.hostname.as_deref().unwrap_or("unknown host"))
    }
}

impl Served {
    /// What came of a client.
    pub(super) fn new(client: Who, engine: EngineKind, bs_bytes: u64, done: &Done, verdict: &Verdict) -> Self {
        Self {
            schema: SERVED_SCHEMA,
            finished_at: timestamp(SystemTime::now()),
            client,
            engine,
            bs_bytes,
            qd: done.qd,
            convention: done.convention,
            latency_ns: believable(&done.summary).then(|| done.summary.clone()),
            ops_per_s: done.ops_per_s.and_then(believable_rate),
            bytes_per_s: done.bytes_per_s.filter(|rate| (0.0..=LARGEST_INTEGER as f64).contains(rate)),
            ended_by: done.ended_by,
            partial: done.partial.as_deref().map(printable),
            handled: verdict.handled,
            verified: verdict.verified,
            problem: verdict.problem.clone(),
        }
    }

    /// One line of JSON.
    pub(super) fn json(&self) -> String {
        // Nothing in it can fail to be JSON; a line is owed all the same.
        serde_json::to_string(self)
            .unwrap_or_else(|error| format!("{{\"schema\":\"{SERVED_SCHEMA}\",\"problem\":\"{error}\"}}"))
            + "\n"
    }

    /// For people: who, what was found, and the client's table.
    pub(super) fn text(&self) -> String {
        let n = self.latency_ns.as_ref().map_or_else(|| "unknown".into(), |summary| format_count(summary.n));
        let mut text = format!("{}: {}, {n} commands", self.client.name(), self.engine);
        if let Some(handled) = self.handled {
            text += &format!(", {} handled here", format_count(handled));
        }
        text += match self.verified {
            Some(true) => ", data verified",
            Some(false) => ", DATA WRONG",
            None => "",
        };
        if let Some(reason) = &self.partial {
            text += &format!(" — partial: {reason}");
        }
        text += &format!("\n  {}", format_size(self.bs_bytes));
        if let Some(qd) = self.qd {
            text += &format!(", depth {qd}");
        }
        if let Some(convention) = self.convention {
            text += &format!(", {}", text::span(convention));
        }
        if let Some(rate) = self.ops_per_s {
            text += &format!(", {}/s", format_count(rate.round() as u64));
        }
        if let Some(rate) = self.bytes_per_s {
            text += &format!(", {}", format_bytes_per_s(rate));
        }
        if let Some(ended_by) = self.ended_by {
            text += &format!(", ended by {}", end_name(ended_by));
        }
        text.push('\n');
        match &self.latency_ns {
            Some(summary) => text + &text::table(&[("latency", Some(summary))]),
            None => text + "  its figures cannot be those of a run, and are not shown\n",
        }
    }
}

fn end_name(ended_by: EndedBy) -> &'static str {
    match ended_by {
        EndedBy::Count => "count",
        EndedBy::Duration => "duration",
        EndedBy::Signal => "a signal",
        EndedBy::Error => "an error",
    }
}

/// Whether a run can have these figures: numbers that a result may hold, and percentiles in order between the ends.
fn believable(summary: &Summary) -> bool {
    let p = &summary.percentiles;
    let inner = [p.p1, p.p5, p.p10, p.p25, p.p50, p.p75, p.p90, p.p95, p.p99, p.p99_5, p.p99_9, p.p99_99, p.p99_999];
    let in_order = [&[summary.min][..], &inner, &[summary.max]].concat();
    let in_order: Vec<f64> = in_order.into_iter().flatten().collect();
    let sizes = in_order.iter().copied().chain(summary.mean).chain(summary.stddev);
    summary.n <= LARGEST_INTEGER
        && in_order.is_sorted()
        && sizes.into_iter().all(|value| (0.0..=LARGEST_INTEGER as f64).contains(&value))
}

#[cfg(test)]
#[path = "serve_report_tests.rs"]
mod tests;
