//! How many commands were in flight, and how many completions came at a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Powers of two that a depth can lie between.
const CLASSES: usize = 32;
/// Most completions of a look that are told apart.
const BATCHES: usize = 16;

/// Counted while a window of commands is measured: an addition for each command, and one for each look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    by_class: [u64; CLASSES],
    by_batch: [u64; BATCHES],
}

/// Commands by the number in flight right after each was handed over, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DepthClass {
    /// From this depth on.
    #[schemars(range(min = 1))]
    pub lower: u64,
    /// Up to this one.
    #[schemars(range(min = 1))]
    pub upper: u64,
    /// Commands.
    #[schemars(range(min = 1))]
    pub commands: u64,
}

/// Looks by the number of completions that they found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchClass {
    /// Completions found.
    #[schemars(range(min = 1, max = BATCHES))]
    pub size: u64,
    /// Looks that found so many.
    #[schemars(range(min = 1))]
    pub looks: u64,
}

impl Depths {
    /// A command was handed over, and `depth` are in flight with it.
    #[inline(always)]
    pub fn issued(&mut self, depth: usize) {
        let class = (usize::BITS - 1 - (depth | 1).leading_zeros()) as usize;
        self.by_class[class.min(CLASSES - 1)] += 1;
    }

    /// A look found `count` completions, at least one.
    #[inline(always)]
    pub fn completed(&mut self, count: usize) {
        self.by_batch[count.clamp(1, BATCHES) - 1] += 1;
    }

    /// Adds what another thread of the run has counted.
    pub fn add(&mut self, other: &Self) {
        self.by_class.iter_mut().zip(other.by_class).for_each(|(own, other)| *own += other);
        self.by_batch.iter_mut().zip(other.by_batch).for_each(|(own, other)| *own += other);
    }

    /// Depths in powers of two; those that did not occur are left out.
    pub fn depths(&self) -> Vec<DepthClass> {
        let class = |(class, &commands): (usize, &u64)| {
            let lower = 1 << class;
            DepthClass { lower, upper: 2 * lower - 1, commands }
        };
        self.by_class.iter().enumerate().map(class).filter(|class| class.commands > 0).collect()
    }

    /// Completions at a time; numbers that did not occur are left out.
    pub fn batches(&self) -> Vec<BatchClass> {
        let class = |(size, &looks)| BatchClass { size, looks };
        (1..).zip(&self.by_batch).map(class).filter(|class| class.looks > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_classed_by_powers_of_two_and_batches_by_their_size() {
        let mut depths = Depths::default();
        [1, 2, 3, 4, 20_000].into_iter().for_each(|depth| depths.issued(depth));
        [1, 16, 16].into_iter().for_each(|count| depths.completed(count));
        let mut both = Depths::default();
        both.add(&depths);
        let classes: Vec<_> = both.depths().iter().map(|class| (class.lower, class.upper, class.commands)).collect();
        assert_eq!(classes, [(1, 1, 1), (2, 3, 2), (4, 7, 1), (16_384, 32_767, 1)]);
        let batches: Vec<_> = both.batches().iter().map(|class| (class.size, class.looks)).collect();
        assert_eq!(batches, [(1, 1), (16, 2)]);
    }
}
