//! What leaves the program: the result as data, as JSON and as text, and the warnings that go with it.

pub mod calibration;
pub mod json;
pub mod output;
pub mod result;
mod tail;
pub mod text;
pub mod warning;

pub use output::OutputFile;
pub use result::RunResult;
pub use warning::Warning;
