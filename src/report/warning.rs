//! Doubts about a result, each with a code that programs can match and a text that says what to do.

use serde::{Deserialize, Serialize};

/// A doubt about a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name, in kebab case.
    pub code: String,
    /// What was seen and what to do.
    pub message: String,
}

impl Warning {
    /// A warning of this code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}
