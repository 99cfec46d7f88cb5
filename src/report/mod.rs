//! What leaves the program: the result as data, as JSON and as text, and the warnings that go with it.

pub mod calibration;
pub mod comparison;
pub mod comparison_text;
pub mod drawing;
#[cfg(test)]
mod example;
pub mod export;
pub mod fio;
pub mod json;
pub mod junit;
mod load;
pub mod output;
pub mod page;
pub mod read;
pub mod result;
pub mod samples;
pub mod schemas;
pub mod series;
pub mod served;
pub mod stored;
pub mod sweep;
pub mod table;
mod tail;
pub mod text;
pub mod warning;

pub use output::OutputFile;
pub use result::RunResult;
pub use warning::Warning;
