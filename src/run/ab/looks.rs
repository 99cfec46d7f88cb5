//! When a series that may end early is looked at, and what each look may err.
//!
//! Each look is held against its own part of the error, so that all of them together err no more often than one would (K. K. G.
//! Lan and D. L. DeMets, "Discrete Sequential Boundaries for Clinical Trials", Biometrika 70, 1983, with a step function).

use crate::{report::series::Series, stats::Shift};

/// Looks as shares of all blocks, with the parts of the error that they may spend.
const LOOKS: [(f64, f64); 3] = [(0.5, 0.2), (0.75, 0.3), (1.0, 0.5)];

/// The looks at a series.
pub(super) struct Looks {
    /// Blocks by then, and the error that the look may spend.
    looks: Vec<(u64, f64)>,
    error: f64,
}

impl Looks {
    /// The looks at a series of `all` blocks, each of which judges `judged` intervals. One with too few blocks for an interval
    /// of its level could not settle anything: it leaves its part to the next. That depends on no figure, so it costs nothing.
    pub fn of(all: u64, full: f64, judged: usize) -> Self {
        let error = 1.0 - full;
        let (mut looks, mut left) = (Vec::new(), 0.0);
        for (share, part) in LOOKS {
            left += part * error;
            let blocks = (share * all as f64).ceil() as u64;
            if blocks < all && Shift::blocks_suffice(blocks as usize, 1.0 - left / judged.max(1) as f64) {
                looks.push((blocks, left));
                left = 0.0;
            }
        }
        looks.push((all, left));
        Self { looks, error }
    }

    /// The level of the look that is due after a block, if one is.
    pub fn level_after(&self, blocks: u64) -> Option<f64> {
        self.looks.iter().find(|(due, _)| *due == blocks).map(|(_, error)| 1.0 - error)
    }

    /// The level of a series that ends, at its end or for another reason than its figures: looks that settled nothing have
    /// spent their part.
    pub fn level_left(&self, series: &Series) -> f64 {
        self.left_after(series.complete_blocks())
    }

    fn left_after(&self, blocks: u64) -> f64 {
        let earlier = self.looks.split_last().map_or(&[][..], |(_, earlier)| earlier);
        let spent: f64 = earlier.iter().filter(|(due, _)| *due <= blocks).map(|(_, error)| error).sum();
        1.0 - (self.error - spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::block::offsets::SplitMix, stats::Verdict};

    fn due(all: u64, judged: usize) -> Vec<(u64, f64)> {
        let looks = Looks::of(all, 0.95, judged);
        (1..=all).filter_map(|blocks| Some((blocks, looks.level_after(blocks)?))).collect()
    }

    #[test]
    fn looks_that_could_not_settle_anything_leave_their_part_to_the_next() {
        let near = |found: &[(u64, f64)], wanted: &[(u64, f64)]| {
            let same = found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-9);
            assert!(same, "{found:?} instead of {wanted:?}");
        };
        near(&due(16, 1), &[(8, 0.99), (12, 0.985), (16, 0.975)]);
        // Five blocks have no interval of 99 %.
        near(&due(10, 1), &[(8, 0.975), (10, 0.975)]);
        near(&due(10, 5), &[(10, 0.95)]);
        near(&due(1, 1), &[(1, 0.95)]);
    }

    #[test]
    fn what_ends_early_for_other_reasons_has_what_the_looks_before_left() {
        let looks = Looks::of(16, 0.95, 1);
        let left: Vec<f64> = [7, 8, 11, 12, 16].map(|blocks| looks.left_after(blocks)).into();
        let wanted = [0.95, 0.96, 0.96, 0.975, 0.975];
        assert!(left.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{left:?}");
    }

    #[test]
    fn looking_early_tells_equal_sides_apart_no_more_often_than_stated_and_ends_early_for_others() {
        let mut random = SplitMix(11);
        let mut normal = || (0..12).map(|_| (random.draw() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0;
        let series = 1000;
        for (all, first) in [(10, 8), (16, 8)] {
            let looks = Looks::of(all, 0.95, 1);
            let mut run = |effect: f64| {
                let mut differences = Vec::new();
                for blocks in 1..=all {
                    differences.push(normal() + effect);
                    let Some(level) = looks.level_after(blocks) else { continue };
                    let verdict = Shift::of_blocks(&differences, level).map(|shift| Verdict::of(&shift, 0.0));
                    if verdict.is_some_and(|verdict| verdict != Verdict::Inconclusive) {
                        return (verdict, blocks);
                    }
                }
                (None, all)
            };
            let alarms = (0..series).filter(|_| run(0.0).0.is_some()).count();
            // 5 %, and three standard deviations of a count of a thousand.
            assert!(alarms <= 50 + 21, "{alarms} of {series}");
            let found: Vec<_> = (0..series).map(|_| run(3.0)).collect();
            assert!(found.iter().filter(|(verdict, _)| *verdict == Some(Verdict::Slower)).count() >= 990);
            assert!(found.iter().filter(|(_, blocks)| *blocks == first).count() >= 900, "it should have ended early");
        }
    }
}
