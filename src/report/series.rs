//! The file of a series, `lat-probe.series/1`: written after every round, so that an interruption loses none.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    OutputFile, json,
    read::{Round, Side, parse, require_schema},
};
use crate::error::{Error, Result};

/// Name and version of the schema.
pub const SERIES_SCHEMA: &str = "lat-probe.series/1";

/// The rounds of a comparison so far: `lat-probe ab`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = SERIES_SCHEMA, extend("$id" = "urn:lat-probe:series-1"))]
pub struct Series {
    /// Name and version of this schema.
    #[schemars(extend("const" = SERIES_SCHEMA))]
    pub schema: String,
    /// The version of lat-probe that began it.
    pub version: String,
    /// When it began, RFC 3339, UTC.
    pub started_at: String,
    /// Seed of the order within blocks.
    pub seed: u64,
    /// The sides, and the shell commands that make them.
    #[schemars(length(min = 2))]
    pub sides: Vec<Making>,
    /// What is measured in each round, as it was asked for; a series is only taken up again with the same.
    #[schemars(with = "Vec<Map<String, Value>>", length(min = 1))]
    pub measurements: Vec<Value>,
    /// Rounds in the order in which they were taken.
    pub rounds: Vec<Taken>,
}

/// How a side is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Making {
    /// Its name.
    pub name: String,
    /// The command, by the shell.
    pub command: String,
    /// Whether it equals the first one, as a control.
    pub control: bool,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// Its block, from 0; in each one every side comes twice.
    pub block: u64,
    /// The name of its side.
    pub side: String,
    /// A lat-probe.result/1.
    #[schemars(with = "Map<String, Value>")]
    pub result: Value,
}

impl Series {
    /// Reads what an earlier call has left.
    ///
    /// # Errors
    /// [`Error::Usage`] with the file and what is wrong.
    pub fn read(path: &Path) -> Result<Self> {
        let origin = path.display().to_string();
        Self::of(&origin, parse(path, &origin)?)
    }

    /// A series from a document that is at hand.
    ///
    /// # Errors
    /// As [`Series::read`].
    pub fn of(origin: &str, document: Value) -> Result<Self> {
        require_schema(origin, &document, SERIES_SCHEMA)?;
        serde_json::from_value(document).map_err(|error| Error::usage(format!("{origin}: {error}")))
    }

    /// Writes all of it in place of the file.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn store(&self, path: &Path) -> Result<()> {
        let document = json::to_string(self).map_err(|source| Error::Output { path: path.into(), source })?;
        OutputFile::open(path)?.commit(document.as_bytes())
    }

    /// Refuses to go on with another series.
    ///
    /// # Errors
    /// [`Error::Usage`] with what is not the same.
    pub fn require_same(&self, wanted: &Self, path: &Path) -> Result<()> {
        let differ = |what: &str, there: &Value, here: &Value| {
            let path = path.display();
            Error::usage(format!("--resume: {path} has other {what} than were asked for: {there} instead of {here}"))
        };
        if self.sides != wanted.sides {
            return Err(differ("sides", &json!(self.sides), &json!(wanted.sides)));
        }
        if self.measurements != wanted.measurements {
            return Err(differ("measurements", &json!(self.measurements), &json!(wanted.measurements)));
        }
        Ok(())
    }

    /// The sides with the rounds of complete blocks, for a comparison.
    ///
    /// # Errors
    /// As [`Round::of`].
    pub fn sides(&self, origin: &str) -> Result<Vec<Side>> {
        let complete = self.complete_blocks();
        let side = |making: &Making| {
            let mine = self.rounds.iter().enumerate();
            let mine = mine.filter(|(_, taken)| taken.side == making.name && taken.block < complete);
            let rounds = mine.map(|(index, taken)| {
                Round::of(format!("{origin}, round {}", index + 1), taken.result.clone(), Some(taken.block))
            });
            Ok(Side { name: making.name.clone(), control: making.control, rounds: rounds.collect::<Result<_>>()? })
        };
        self.sides.iter().map(side).collect()
    }

    /// Blocks in which every side has its two rounds; only the last one can lack some.
    pub fn complete_blocks(&self) -> u64 {
        (self.rounds.len() / (2 * self.sides.len()).max(1)) as u64
    }
}
