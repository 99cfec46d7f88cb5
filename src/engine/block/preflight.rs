//! What can be known to be wrong before the first command: sizes, alignment, limits. Pure, so that every refusal is tested.

use crate::{
    error::{Error, Result},
    units::format_bytes,
};

/// What a target offers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// All of it, in bytes.
    pub bytes: u64,
    /// The unit of places and sizes, in bytes.
    pub block_bytes: u64,
    /// Whether it is a file, which can be made longer.
    pub is_file: bool,
}

/// The working set in bytes, from its beginning, in whole commands of `bs_bytes`.
///
/// # Errors
/// [`Error::Usage`] or [`Error::Limit`] that name the value and what is allowed.
pub(super) fn working_set(extent: Extent, offset: u64, size: Option<u64>, bs_bytes: u64) -> Result<(u64, u64)> {
    let Extent { name, bytes, is_file, .. } = extent;
    if bytes == 0 {
        let remedy = if is_file {
            format!("`lat-probe fill --allow-write {name} --size 64M` gives it some")
        } else {
            "There may be no medium, or the device is not set up".into()
        };
        return Err(Error::Usage(format!("{name}: is empty, there is nothing to read or to overwrite. {remedy}")));
    }
    if bs_bytes == 0 {
        return Err(Error::usage("--bs 0 is out of range (allowed: at least one block)"));
    }
    aligned("--bs", bs_bytes, extent)?;
    aligned("--offset", offset, extent)?;
    if let Some(size) = size {
        aligned("--size", size, extent)?;
    }
    if offset >= bytes {
        return Err(Error::Usage(format!("--offset {offset} is past the end of {name}, which has {bytes} bytes")));
    }
    let left = bytes - offset;
    if size.is_some_and(|size| size > left) {
        return Err(Error::Limit {
            object: name.into(),
            what: "working set in bytes (--size)",
            value: size.unwrap_or(0),
            limit: left,
            remedy: format!("That is what lies behind --offset {offset}"),
        });
    }
    let size = size.unwrap_or(left);
    if size < bs_bytes {
        return Err(Error::Usage(format!(
            "{name}: its working set of {size} bytes is shorter than one command of {bs_bytes} bytes (--bs)"
        )));
    }
    Ok((offset, size - size % bs_bytes))
}

/// Refuses what is not a whole number of blocks, with the nearest values that are.
fn aligned(option: &str, value: u64, extent: Extent) -> Result<()> {
    let (name, block) = (extent.name, extent.block_bytes.max(1));
    if value.is_multiple_of(block) {
        return Ok(());
    }
    let below = value - value % block;
    let nearest = match below {
        0 => format!("the smallest is {block}"),
        _ => format!("the nearest are {below} and {}", below.saturating_add(block)),
    };
    Err(Error::Usage(format!(
        "{option} {value}: {name} takes multiples of its logical block of {block} bytes only; {nearest}"
    )))
}

/// Refuses a command that the device does not take in one piece.
pub(super) fn within_transfer_limit(name: &str, bs_bytes: u64, limit: Option<u64>) -> Result<()> {
    match limit {
        Some(limit) if bs_bytes > limit => Err(Error::Limit {
            object: name.into(),
            what: "transfer in bytes (--bs)",
            value: bs_bytes,
            limit,
            remedy: format!(
                "The driver takes at most {} in one command (queue/max_hw_sectors_kb)",
                format_bytes(limit)
            ),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Extent = Extent { name: "/dev/sdx", bytes: 1 << 20, block_bytes: 512, is_file: false };

    fn refusal(extent: Extent, offset: u64, size: Option<u64>, bs_bytes: u64) -> String {
        working_set(extent, offset, size, bs_bytes).unwrap_err().to_string()
    }

    #[test]
    fn the_working_set_is_all_by_default_and_whole_commands_always() {
        assert_eq!(working_set(DISK, 0, None, 4096).unwrap(), (0, 1 << 20));
        assert_eq!(working_set(DISK, 512, None, 4096).unwrap(), (512, (1 << 20) - 4096));
        assert_eq!(working_set(DISK, 0, Some(10_240), 4096).unwrap(), (0, 8192));
    }

    #[test]
    fn blocks_need_not_be_powers_of_two() {
        let disk = Extent { bytes: 528 * 1000, block_bytes: 528, ..DISK };
        assert_eq!(working_set(disk, 528, None, 528 * 8).unwrap(), (528, 528 * 992));
        assert!(refusal(disk, 0, None, 4096).contains("528 bytes only; the nearest are 3696 and 4224"));
        let disk = Extent { bytes: 520 * 1000, block_bytes: 520, ..DISK };
        assert!(refusal(disk, 0, None, 512).contains("the smallest is 520"));
        let disk = Extent { block_bytes: 4096, ..DISK };
        assert!(refusal(disk, 0, None, 512).contains("the smallest is 4096"));
    }

    #[test]
    fn each_refusal_names_the_value_and_the_limit() {
        assert!(refusal(DISK, 0, None, 1000).contains("--bs 1000"));
        assert!(refusal(DISK, 100, None, 512).contains("--offset 100"));
        assert!(refusal(DISK, 0, Some(700), 512).contains("--size 700"));
        assert!(refusal(DISK, 1 << 20, None, 512).contains("past the end of /dev/sdx, which has 1048576 bytes"));
        assert!(refusal(DISK, 512, Some(1 << 20), 512).contains("1048576 is beyond the limit of 1048064"));
        assert!(refusal(DISK, 0, Some(512), 4096).contains("shorter than one command"));
        assert!(refusal(DISK, 0, None, 0).contains("--bs 0"));
        assert!(refusal(Extent { bytes: 0, ..DISK }, 0, None, 512).contains("is empty"));
        assert!(refusal(Extent { bytes: 0, is_file: true, ..DISK }, 0, None, 512).contains("lat-probe fill"));
        let file = Extent { bytes: 100, block_bytes: 1, is_file: true, ..DISK };
        assert!(refusal(file, 0, None, 512).contains("100 bytes is shorter than one command of 512"));
    }

    #[test]
    fn a_transfer_beyond_the_limit_names_both() {
        let error = within_transfer_limit("/dev/sg1", 1 << 20, Some(524_288)).unwrap_err();
        assert!(error.to_string().contains("1048576 is beyond the limit of 524288"), "{error}");
        assert!(within_transfer_limit("/dev/sg1", 524_288, Some(524_288)).is_ok());
        assert!(within_transfer_limit("/dev/sg1", u64::MAX, None).is_ok());
    }
}
