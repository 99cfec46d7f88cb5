//! Data patterns: bytes that are different at every place and for every seed, so that stale or shifted data shows.

use crate::sys::memory::Region;

/// Bytes compared or written at a time.
const BLOCK: usize = 64 << 10;

/// One 8-byte word of the pattern: the finaliser of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
/// Generators", 2014).
fn word(seed: u64, index: u64) -> u64 {
    let mut mixed = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Calls `visit` with each block of the pattern and its offset, until it returns `false`.
fn blocks(seed: u64, bytes: usize, invert: bool, mut visit: impl FnMut(usize, &[u8]) -> bool) {
    let mask = if invert { u64::MAX } else { 0 };
    let mut block = vec![0u8; BLOCK.min(bytes.next_multiple_of(8))];
    for offset in (0..bytes).step_by(BLOCK) {
        for (number, chunk) in block.chunks_exact_mut(8).enumerate() {
            chunk.copy_from_slice(&(word(seed, (offset / 8 + number) as u64) ^ mask).to_le_bytes());
        }
        if !visit(offset, &block[..BLOCK.min(bytes - offset)]) {
            return;
        }
    }
}

/// Writes the pattern of `seed`.
pub fn fill(region: &Region, offset: usize, bytes: usize, seed: u64) {
    blocks(seed, bytes, false, |at, block| {
        region.copy_in(offset + at, block);
        true
    });
}

/// Writes bytes that differ from the pattern of `seed` at every single place.
pub fn poison(region: &Region, offset: usize, bytes: usize, seed: u64) {
    blocks(seed, bytes, true, |at, block| {
        region.copy_in(offset + at, block);
        true
    });
}

/// The first place where the bytes are not those of the pattern of `seed`.
pub fn first_difference(region: &Region, offset: usize, bytes: usize, seed: u64) -> Option<usize> {
    let mut found = None;
    let mut seen = vec![0u8; BLOCK.min(bytes)];
    blocks(seed, bytes, false, |at, block| {
        let seen = &mut seen[..block.len()];
        region.copy_out(offset + at, seen);
        found = block.iter().zip(seen.iter()).position(|(a, b)| a != b).map(|place| at + place);
        found.is_none()
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::Pages;

    #[test]
    fn a_filled_region_has_no_difference_and_one_wrong_byte_is_found() {
        for bytes in [0, 1, 7, 8, 4096, BLOCK, BLOCK + 3, 3 * BLOCK - 1] {
            let region = Region::new(bytes + 5, Pages::Normal, None).unwrap();
            fill(&region, 5, bytes, 42);
            assert_eq!(first_difference(&region, 5, bytes, 42), None, "{bytes}");
            if bytes > 0 {
                let mut last = [0];
                region.copy_out(5 + bytes - 1, &mut last);
                region.copy_in(5 + bytes - 1, &[!last[0]]);
                assert_eq!(first_difference(&region, 5, bytes, 42), Some(bytes - 1), "{bytes}");
            }
        }
    }

    #[test]
    fn poison_differs_everywhere() {
        let region = Region::new(100, Pages::Normal, None).unwrap();
        poison(&region, 0, 100, 7);
        for place in 0..100 {
            assert!(first_difference(&region, 0, place + 1, 7).is_some());
            let mut byte = [0];
            region.copy_out(place, &mut byte);
            region.copy_in(place, &[!byte[0]]);
        }
        assert_eq!(first_difference(&region, 0, 100, 7), None);
    }
}
