//! Doubts about a result, each with a code that programs can match and a text that says what to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::STABLE_NAME;

/// A doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name, in kebab case.
    #[schemars(regex(pattern = STABLE_NAME))]
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
