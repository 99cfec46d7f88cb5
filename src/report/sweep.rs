//! How a result of several points came about that was stored after each of them: its `sweep` object.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::result::Instrument;
use crate::{schema::TIMESTAMP, timing::ClockFacts};

/// A result of several points on its way.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweepUse {
    /// What was asked for; `--resume` goes on only with the same.
    pub measurements: Vec<Value>,
    /// The calls that measured it, each with its own instrument; the document's is that of the last one.
    #[schemars(with = "Vec<SweepSession>")]
    pub sessions: Vec<Value>,
    /// Whether all points are there.
    pub complete: bool,
}

/// One call that measured points of a sweep.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweepSession {
    /// When it began, RFC 3339, UTC.
    #[schemars(regex(pattern = TIMESTAMP))]
    pub started_at: String,
    /// The first point that it measured, from 0.
    pub first_point: usize,
    /// The clock that was granted to it.
    pub clock: ClockFacts,
    /// What the instrument itself cost in it.
    pub instrument: Instrument,
}
