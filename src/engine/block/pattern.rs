//! The pattern of `lat-probe fill`: every eight bytes tell their own place, so that data read from anywhere can be
//! checked, and a block that came from somewhere else is noticed.

use super::offsets::mix;
use crate::sys::memory::Region;

/// Bytes of a step: what is copied out of or into a buffer at a time.
const STEP: usize = 4096;

/// Bytes that are not those of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where on the target, in bytes.
    pub at: u64,
    /// The byte that should be there.
    pub expected: u8,
    /// The byte that is.
    pub found: u8,
    /// Whether the whole command brought zeros only, as from blocks that were never written.
    pub zeros: bool,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { at, expected, found, zeros } = self;
        write!(formatter, "byte {at} is {found:#04x}, but the pattern has {expected:#04x} there")?;
        if *zeros {
            formatter
                .write_str("; the block is all zeros. Write the pattern with `lat-probe fill --allow-write PATH`")?;
        }
        Ok(())
    }
}

/// Writes the pattern for `[offset, offset + bytes)` of the target into a buffer, from `place` on.
pub fn fill(region: &Region, place: usize, bytes: usize, offset: u64, seed: u64) {
    for_steps(bytes, |at, length| {
        let mut step = [0; STEP];
        pattern(&mut step[..length], offset + at as u64, seed);
        region.copy_in(place + at, &step[..length]);
    });
}

/// Compares what a buffer holds from `place` on with the pattern.
///
/// # Errors
/// The first byte that differs.
pub fn check(region: &Region, place: usize, bytes: usize, offset: u64, seed: u64) -> Result<(), Mismatch> {
    let mut first = None;
    let mut zeros = true;
    for_steps(bytes, |at, length| {
        let (mut wanted, mut found) = ([0; STEP], [0; STEP]);
        pattern(&mut wanted[..length], offset + at as u64, seed);
        region.copy_out(place + at, &mut found[..length]);
        zeros &= found[..length].iter().all(|&byte| byte == 0);
        if first.is_none() && wanted[..length] != found[..length] {
            let differs = wanted.iter().zip(&found).position(|(wanted, found)| wanted != found).unwrap_or(0);
            first = Some((offset + (at + differs) as u64, wanted[differs], found[differs]));
        }
    });
    first.map_or(Ok(()), |(at, expected, found)| Err(Mismatch { at, expected, found, zeros }))
}

/// Makes sure that what was in a buffer can't be taken for what a command brings.
pub fn wipe(region: &Region, place: usize, bytes: usize) {
    for_steps(bytes, |at, length| region.copy_in(place + at, &[0; STEP][..length]));
}

fn for_steps(bytes: usize, mut step: impl FnMut(usize, usize)) {
    for at in (0..bytes).step_by(STEP) {
        step(at, STEP.min(bytes - at));
    }
}

/// The bytes of the pattern from `offset` on; words of eight bytes lie at multiples of eight.
fn pattern(bytes: &mut [u8], offset: u64, seed: u64) {
    let key = mix(seed); // Two seeds next to each other must not have the same words at two places.
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        let word = mix((key ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
        let from = (at % 8) as usize;
        let length = rest.len().min(8 - from);
        let (now, later) = rest.split_at_mut(length);
        now.copy_from_slice(&word[from..from + length]);
        rest = later;
        at += length as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::Pages;

    #[test]
    fn what_was_filled_is_right_and_anything_else_is_not() {
        let region = Region::new(10_000, Pages::Normal, None).unwrap();
        fill(&region, 0, 10_000, 512, 3);
        assert_eq!(check(&region, 0, 10_000, 512, 3), Ok(()));
        assert!(check(&region, 0, 10_000, 1024, 3).is_err(), "another place");
        assert!(check(&region, 0, 10_000, 512, 4).is_err(), "another seed");
        let mut byte = [0];
        region.copy_out(9_000, &mut byte);
        region.copy_in(9_000, &[byte[0] ^ 1]);
        let wrong = check(&region, 0, 10_000, 512, 3).unwrap_err();
        assert_eq!((wrong.at, wrong.expected, wrong.found, wrong.zeros), (9_512, byte[0], byte[0] ^ 1, false));
    }

    #[test]
    fn the_pattern_depends_on_the_place_alone_and_not_on_how_it_is_cut() {
        let mut whole = [0; 64];
        pattern(&mut whole, 1000, 9);
        let mut parts = [0; 64];
        let (left, right) = parts.split_at_mut(13);
        pattern(left, 1000, 9);
        pattern(right, 1013, 9);
        assert_eq!(whole, parts);
    }

    #[test]
    fn a_block_of_zeros_is_said_to_be_one() {
        let region = Region::new(512, Pages::Normal, None).unwrap();
        fill(&region, 0, 512, 0, 1);
        wipe(&region, 0, 512);
        let wrong = check(&region, 0, 512, 0, 1).unwrap_err();
        assert!(wrong.zeros && wrong.to_string().contains("lat-probe fill"), "{wrong}");
    }
}
