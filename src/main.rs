//! The `lat-probe` binary: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    lat_probe::cli::main()
}
