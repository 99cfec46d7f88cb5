//! `lat-probe fill`: writes the pattern that `--verify` expects.

use std::{fs::File, path::PathBuf};

use crate::{
    engine::{
        BlockOptions, EngineKind, Rw,
        block::{options::TargetKind, pattern, setup, target::Target},
    },
    error::{Error, Result},
    host::Sysfs,
    probe::check_extent,
    sys::file::pwrite,
    units::format_size,
};

/// Bytes written at a time.
const STEP_BYTES: u64 = 1 << 20;

/// What to fill.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The target, named by the user as what may be destroyed.
    pub path: PathBuf,
    /// Where to begin, in bytes.
    pub offset_bytes: u64,
    /// How much to write; all that is there if nothing is said.
    pub size_bytes: Option<u64>,
    /// Seed of the pattern; 1 if nothing is said.
    pub seed: Option<u64>,
}

/// Writes the pattern and makes it durable; says what was done.
///
/// # Errors
/// The refusals of any write, and what went wrong while writing.
pub fn fill(fill: &Fill) -> Result<String> {
    check_extent(Some(fill.offset_bytes), fill.size_bytes, fill.seed)?;
    let seed = fill.seed.unwrap_or(1);
    let options = BlockOptions {
        target: fill.path.clone(),
        rw: Rw::Write,
        offset_bytes: fill.offset_bytes,
        size_bytes: fill.size_bytes,
        seed,
        buffered: Some(true),
        allow_write: Some(fill.path.clone()),
        ..BlockOptions::default()
    };
    let sysfs = Sysfs::default();
    make_room(fill, &sysfs, &options)?;
    let target = Target::open(&sysfs, &options, EngineKind::Psync, Some(1), false)?;
    let file = target.file()?;
    let shown = fill.path.display();
    let (mut at, end) = (target.offset_bytes, target.offset_bytes + target.size_bytes);
    let mut buffer = setup::buffer(STEP_BYTES.min(end - at), 1, false, None)?;
    while at < end {
        if end - at < u64::from(buffer.bytes()) {
            buffer = setup::buffer(end - at, 1, false, None)?;
        }
        let bytes = buffer.bytes() as usize;
        pattern::fill(buffer.region(), 0, bytes, at, seed);
        match pwrite(&file, &buffer, at) {
            Ok(0) => return Err(Error::Usage(format!("{shown}: took no more bytes at {at}"))),
            Ok(moved) => at += u64::from(moved),
            Err(libc::EINTR) => {}
            Err(errno) => {
                let source = std::io::Error::from_raw_os_error(errno);
                return Err(Error::call(
                    shown.to_string(),
                    "pwrite",
                    source,
                    format!("{at} bytes were written before it"),
                ));
            }
        }
    }
    file.sync_all().map_err(|source| Error::call(shown.to_string(), "fsync", source, ""))?;
    let what = if target.kind == TargetKind::File { "file" } else { "device" };
    Ok(format!(
        "{shown}: {} of the {what} hold the pattern of seed {seed}, from byte {} on\n",
        format_size(target.size_bytes),
        target.offset_bytes
    ))
}

/// Makes a file that isn't there, and lets one grow that nobody uses; nothing is ever cut.
fn make_room(fill: &Fill, sysfs: &Sysfs, options: &BlockOptions) -> Result<()> {
    let shown = fill.path.display().to_string();
    let failed = |call, source| Error::call(shown.clone(), call, source, "");
    let length = match std::fs::metadata(&fill.path) {
        Ok(found) => found.is_file().then_some(found.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return create(fill, failed),
        Err(source) => return Err(failed("stat", source)),
    };
    match (length, fill.size_bytes) {
        (Some(length), Some(size)) if length < fill.offset_bytes + size => {
            Target::check_writable(sysfs, options)?;
            let file = File::options().write(true).open(&fill.path).map_err(|source| failed("open", source))?;
            file.set_len(fill.offset_bytes + size).map_err(|source| failed("ftruncate", source))
        }
        _ => Ok(()),
    }
}

/// Makes the file; one that cannot have its size is not left behind.
fn create(fill: &Fill, failed: impl Fn(&'static str, std::io::Error) -> Error) -> Result<()> {
    let Some(size) = fill.size_bytes else {
        return Err(Error::Usage(format!(
            "{}: does not exist. With --size BYTES it is made, as a file of that size",
            fill.path.display()
        )));
    };
    let file = File::create_new(&fill.path).map_err(|source| failed("open", source))?;
    file.set_len(fill.offset_bytes + size).map_err(|source| {
        // It is empty; what failed is the better thing to report.
        let _ = std::fs::remove_file(&fill.path);
        failed("ftruncate", source)
    })
}
