//! What a server writes of a client that has finished, `lat-probe.served/1`: a line of JSON. [`crate::run`] fills it in.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::result::EndedBy;
use crate::{
    engine::{Convention, EngineKind},
    stats::Summary,
};

/// Name and version of the schema of one line.
pub const SERVED_SCHEMA: &str = "lat-probe.served/1";

/// One line of `lat-probe serve --format json`: a client that has finished, with its own figures and what the server found.
/// Readers ignore keys that they don't know.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = SERVED_SCHEMA, extend("$id" = "urn:lat-probe:served-1"))]
pub struct Served {
    /// Name and version of this schema.
    #[schemars(extend("const" = SERVED_SCHEMA))]
    pub schema: &'static str,
    /// When the server had the client's figures, RFC 3339, UTC.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"))]
    pub finished_at: String,
    /// Who it is.
    pub client: Who,
    /// The engine's name.
    #[schemars(with = "String", regex(pattern = "^rdma-"))]
    pub engine: EngineKind,
    /// Payload bytes of a command.
    pub bs_bytes: u64,
    /// Outstanding commands; null if the client did not say.
    pub qd: Option<u32>,
    /// What one number spans; null if the client did not say.
    pub convention: Option<Convention>,
    /// The client's latencies, as `points[].latency_ns` of a result; null if the figures cannot be those of any run.
    pub latency_ns: Option<Summary>,
    /// Commands per second, as the client says.
    #[schemars(range(min = 0))]
    pub ops_per_s: Option<f64>,
    /// Payload bytes per second, as the client says.
    #[schemars(range(min = 0))]
    pub bytes_per_s: Option<f64>,
    /// What ended the run, as the client says.
    pub ended_by: Option<EndedBy>,
    /// Why there are fewer commands than asked for, in the client's words; null if there are not.
    pub partial: Option<String>,
    /// Messages that the server's processor handled; null for one-sided commands, which pass it by.
    pub handled: Option<u64>,
    /// Whether the bytes that arrived at the server are right; null where none arrive, or none could be checked.
    pub verified: Option<bool>,
    /// What is wrong with them.
    pub problem: Option<String>,
}

/// A client.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Who {
    /// Where it came from, with the port.
    pub address: SocketAddr,
    /// What it calls itself; null if it does not say.
    pub hostname: Option<String>,
}
