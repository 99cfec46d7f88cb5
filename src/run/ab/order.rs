//! The order of a series: blocks in which every side comes twice, in a random order and then in its mirror image, so that
//! neither a drift nor a habit of the machine falls on one side.

use crate::engine::block::offsets::SplitMix;

/// The sides of one block by their index: for two of them A B B A or B A A B.
pub(super) fn block(seed: u64, block: u64, sides: usize) -> Vec<usize> {
    // Blocks have generators of their own, so that a series that is taken up again goes on as it would have.
    let mut random = SplitMix(seed.wrapping_add(block.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    random.draw();
    let mut order: Vec<usize> = (0..sides).collect();
    // Fisher and Yates.
    for last in (1..sides).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    let mirrored: Vec<usize> = order.iter().rev().copied().collect();
    order.extend(mirrored);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_comes_twice_around_the_middle_of_a_block() {
        for number in 0..100 {
            let order = block(7, number, 3);
            for side in 0..3 {
                let places: Vec<_> = (0..6).filter(|&place| order[place] == side).collect();
                assert_eq!(places.iter().sum::<usize>(), 5, "{order:?}");
                assert_eq!(places.len(), 2);
            }
            assert_eq!(order, block(7, number, 3));
        }
    }

    #[test]
    fn either_side_begins_about_half_of_the_blocks() {
        let first = (0..1000).filter(|&number| block(3, number, 2)[0] == 0).count();
        assert!((400..600).contains(&first), "{first}");
        assert!((0..20).any(|number| block(3, number, 2) != block(4, number, 2)));
    }
}
