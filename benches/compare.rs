//! How long `lat-probe compare` takes for two series of 20 rounds of a million samples, and how much memory. Run it with
//! `scripts/bench compare`.

use std::{
    error::Error,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

const ROUNDS: usize = 20;
const COMMANDS: &str = "1000000";
const REPEATS: usize = 5;
const SECONDS_AIM: f64 = 2.0;
const MEGABYTES_AIM: f64 = 500.0;

fn main() -> Result<(), Box<dyn Error>> {
    let binary = env!("CARGO_BIN_EXE_lat-probe");
    let folder = tempfile::tempdir()?;
    let mut bytes = 0;
    for round in 0..ROUNDS {
        for side in ["a", "b"] {
            let file = folder.path().join(format!("{side}-{round:02}.json"));
            let mut command = Command::new(binary);
            command.args(["--engine", "null", "--count", COMMANDS, "--output"]).arg(&file).stdout(Stdio::null());
            if !command.status()?.success() {
                return Err("lat-probe failed".into());
            }
            bytes += fs::metadata(&file)?.len();
        }
    }
    let mut seconds = Vec::new();
    for _ in 0..REPEATS {
        let began = Instant::now();
        let mut command = Command::new(binary);
        let status = command
            .current_dir(folder.path())
            .args(["compare", "a-*.json", "b-*.json"])
            .stdout(Stdio::null())
            .status()?;
        seconds.push(began.elapsed().as_secs_f64());
        if !matches!(status.code(), Some(0 | 3 | 4)) {
            return Err(format!("compare: {status}").into());
        }
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[REPEATS / 2];
    // The largest child: those that measured keep 16 MB of stamps each.
    let megabytes = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as f64 / 1024.0;
    println!("compare of 2 × {ROUNDS} rounds of {COMMANDS} samples, {:.1} MB of results", bytes as f64 / 1e6);
    println!("time       {median:.3} s, median of {REPEATS} (aim {SECONDS_AIM})");
    println!("memory     at most {megabytes:.0} MB, those that measured included (aim {MEGABYTES_AIM})");
    let record = json!({
        "rounds": ROUNDS, "commands": COMMANDS, "result_bytes": bytes, "seconds": seconds, "max_megabytes": megabytes,
        "aims": { "seconds": SECONDS_AIM, "megabytes": MEGABYTES_AIM },
    });
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&target)?;
    fs::write(target.join("compare.json"), format!("{record:#}\n"))?;
    Ok(())
}
