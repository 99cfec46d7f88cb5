//! What benchmarks share: memory of this process, and rounds in a word.

use std::{error::Error, fs};

/// The second number of /proc/self/statm.
pub fn resident_pages() -> Result<i64, Box<dyn Error>> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    Ok(statm.split(' ').nth(1).ok_or("/proc/self/statm has no second number")?.parse()?)
}

/// The middle one, or the larger of the middle two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The smallest and the largest, in words.
pub fn range(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    format!("{low:.2} to {high:.2}")
}
