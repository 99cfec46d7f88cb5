//! The `lat-probe` binary.
fn main() {}
