//! The schemas of all documents that the program writes: `lat-probe schema`.

use super::{
    calibration::CalibrationReport, comparison::Comparison, result::RunResult, series::Series, served::Served,
    table::TableReading,
};
use crate::schema::text_of;

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What a run writes.
    Result,
    /// What `calibrate` writes.
    Calibration,
    /// What `compare` writes.
    Comparison,
    /// What `ab` keeps.
    Series,
    /// What `compare --table` writes.
    Table,
    /// A line of `serve --format json`.
    Served,
}

impl Kind {
    /// The schema of this version of the program, as text.
    pub fn text(self) -> String {
        match self {
            Self::Result => text_of::<RunResult>(),
            Self::Calibration => text_of::<CalibrationReport>(),
            Self::Comparison => text_of::<Comparison>(),
            Self::Series => text_of::<Series>(),
            Self::Table => text_of::<TableReading>(),
            Self::Served => text_of::<Served>(),
        }
    }
}
