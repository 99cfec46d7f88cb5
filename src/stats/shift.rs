//! By how much one side of a comparison differs from the other, with an interval. The unit is the round: samples within one
//! depend on each other, so thousands of them say no more about the next round than their summary does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rank::{normal_quantile, outside_pairs, outside_two_samples};

/// The power at which the least visible effect is stated.
const POWER: f64 = 0.8;

/// A shift of one side against the other; positive is slower.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shift {
    /// The Hodges–Lehmann estimate of the shift, ns; positive is slower.
    pub shift_ns: f64,
    /// Lower end of the interval, ns; null for too few rounds to have one of the level asked for.
    pub low_ns: Option<f64>,
    /// Upper end, ns.
    pub high_ns: Option<f64>,
    /// The least true shift that a series like this one would have told from none in four of five cases, about, ns: half
    /// of the interval's length, times what the power asks for on top of the level.
    pub least_visible_ns: Option<f64>,
}

impl Shift {
    /// Of rounds that were not paired: the median of all differences between a round of the one and a round of the other.
    /// `None` if a side has no round.
    ///
    /// It holds for any distribution, the same on both sides but for the shift, of rounds that could as well have come in any
    /// other order. With as many rounds on each side one may scatter five times as widely and it errs in 6.5 % of cases instead
    /// of 5 %. Where the side that scatters so has 5 rounds against 20, it errs in 16 %.
    pub fn of_two_samples(base: &[f64], other: &[f64], level: f64) -> Option<Self> {
        let differences = base.iter().flat_map(|base| other.iter().map(move |other| other - base)).collect();
        Self::of_differences(differences, outside_two_samples(base.len(), other.len(), level), level)
    }

    /// Of differences within blocks, which a drift over the series has no part in: the median of the means of all pairs of
    /// them. `None` if there is none.
    ///
    /// It holds for any symmetric distribution, which a difference within a block of random order has if the sides do not
    /// differ.
    pub fn of_blocks(differences: &[f64], level: f64) -> Option<Self> {
        let means = (0..differences.len())
            .flat_map(|first| (first..differences.len()).map(move |second| (first, second)))
            .map(|(first, second)| f64::midpoint(differences[first], differences[second]))
            .collect();
        Self::of_differences(means, outside_pairs(differences.len(), level), level)
    }

    /// Whether so many blocks have an interval of that level.
    pub fn blocks_suffice(blocks: usize, level: f64) -> bool {
        outside_pairs(blocks, level).is_some()
    }

    fn of_differences(mut differences: Vec<f64>, outside: Option<usize>, level: f64) -> Option<Self> {
        differences.sort_by(f64::total_cmp);
        let shift_ns = median_of_sorted(&differences)?;
        let ends = outside.map(|outside| (differences[outside], differences[differences.len() - 1 - outside]));
        let asked = normal_quantile(0.5 + level / 2.0);
        let least = |(low, high): (f64, f64)| (high - low) / 2.0 * (asked + normal_quantile(POWER)) / asked;
        Some(Self {
            shift_ns,
            low_ns: ends.map(|(low, _)| low),
            high_ns: ends.map(|(_, high)| high),
            least_visible_ns: ends.map(least),
        })
    }
}

/// What can be said of a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Faster, by the least effect of interest or more.
    Faster,
    /// Slower, by the least effect of interest or more.
    Slower,
    /// Less than the least effect of interest apart.
    Same,
    /// Neither can be told.
    Inconclusive,
}

impl Verdict {
    /// Judges by the interval: the same if all of it lies within `±least_ns`; slower or faster if all of it lies on one side
    /// of zero, and the estimate at `least_ns` or beyond.
    pub fn of(shift: &Shift, least_ns: f64) -> Self {
        let (Some(low), Some(high)) = (shift.low_ns, shift.high_ns) else { return Self::Inconclusive };
        if -least_ns <= low && high <= least_ns {
            Self::Same
        } else if low > 0.0 && shift.shift_ns >= least_ns {
            Self::Slower
        } else if high < 0.0 && shift.shift_ns <= -least_ns {
            Self::Faster
        } else {
            Self::Inconclusive
        }
    }

    /// Takes a direction back that the instrument cannot tell from its own spread, however sharp the interval: both sides
    /// may have met another floor. That is no proof of equality either.
    pub fn if_resolved(self, shift: &Shift, unresolvable_ns: f64) -> Self {
        match self {
            Self::Slower | Self::Faster if shift.shift_ns.abs() < unresolvable_ns => Self::Inconclusive,
            verdict => verdict,
        }
    }

    /// As it stands in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The median of values in any order; `None` for none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::block::offsets::SplitMix;

    #[test]
    fn the_estimate_is_the_median_of_all_differences() {
        let shift = Shift::of_two_samples(&[1.0, 2.0, 3.0, 4.0], &[11.0, 12.0, 13.0, 24.0], 0.95).unwrap();
        // Sixteen differences: 7 8 8 9 9 9 10 10 10 11 11 12 20 21 22 23.
        assert_eq!((shift.shift_ns, shift.low_ns, shift.high_ns), (10.0, Some(7.0), Some(23.0)));
        let blocks = Shift::of_blocks(&[1.0, 2.0, 6.0], 0.95).unwrap();
        // Means: 1 1.5 2 3.5 4 6.
        assert_eq!((blocks.shift_ns, blocks.low_ns), (2.75, None));
        assert_eq!([5, 6, 1 << 20].map(|blocks| Shift::blocks_suffice(blocks, 0.95)), [false, true, true]);
        assert_eq!((Shift::of_two_samples(&[], &[1.0], 0.95), Shift::of_blocks(&[], 0.95)), (None, None));
    }

    #[test]
    fn one_round_a_side_has_a_shift_but_no_verdict() {
        let shift = Shift::of_two_samples(&[100.0], &[200.0], 0.95).unwrap();
        assert_eq!((shift.shift_ns, shift.low_ns), (100.0, None));
        assert_eq!(Verdict::of(&shift, 1.0), Verdict::Inconclusive);
    }

    #[test]
    fn equal_values_are_the_same() {
        let equal = [250.0; 6];
        let shift = Shift::of_two_samples(&equal, &equal, 0.95).unwrap();
        assert_eq!(
            (shift.shift_ns, shift.low_ns, shift.high_ns, shift.least_visible_ns),
            (0.0, Some(0.0), Some(0.0), Some(0.0))
        );
        assert_eq!((Verdict::of(&shift, 1.0), Verdict::of(&shift, 0.0)), (Verdict::Same, Verdict::Same));
        let later = Shift::of_two_samples(&equal, &[260.0; 6], 0.95).unwrap();
        assert_eq!(Verdict::of(&later, 2.5), Verdict::Slower);
    }

    #[test]
    fn a_verdict_needs_all_of_the_interval_and_the_least_effect() {
        let of = |shift_ns, low, high| {
            Verdict::of(&Shift { shift_ns, low_ns: Some(low), high_ns: Some(high), least_visible_ns: None }, 1.0)
        };
        assert_eq!(of(2.0, 0.5, 3.0), Verdict::Slower);
        assert_eq!(of(-2.0, -3.0, -0.5), Verdict::Faster);
        assert_eq!(of(0.2, -0.5, 0.9), Verdict::Same);
        assert_eq!(
            (of(0.8, 0.5, 1.2), of(2.0, -0.1, 4.0), of(0.0, -2.0, 2.0)),
            (Verdict::Inconclusive, Verdict::Inconclusive, Verdict::Inconclusive)
        );
    }

    #[test]
    fn what_the_instrument_cannot_tell_from_its_spread_has_no_direction_and_is_not_the_same() {
        let shift = Shift { shift_ns: 40.0, low_ns: Some(39.5), high_ns: Some(40.5), least_visible_ns: None };
        let of = |unresolvable_ns| Verdict::of(&shift, 8.0).if_resolved(&shift, unresolvable_ns);
        assert_eq!((of(0.0), of(40.0), of(60.0)), (Verdict::Slower, Verdict::Slower, Verdict::Inconclusive));
        let faster = Shift { shift_ns: -40.0, low_ns: Some(-40.5), high_ns: Some(-39.5), least_visible_ns: None };
        assert_eq!(Verdict::of(&faster, 8.0).if_resolved(&faster, 60.0), Verdict::Inconclusive);
        // An interval within the least effect of interest is the same, whatever the floor does.
        let small = Shift { shift_ns: 1.0, low_ns: Some(-2.0), high_ns: Some(3.0), least_visible_ns: None };
        assert_eq!(Verdict::of(&small, 8.0).if_resolved(&small, 60.0), Verdict::Same);
    }

    /// Rounds as machines make them: a level each round of its own, now and then another mode, rarely something far off.
    struct Machine {
        random: SplitMix,
        modes: f64,
        tail: f64,
    }

    impl Machine {
        fn uniform(&mut self) -> f64 {
            (self.random.draw() >> 11) as f64 / (1u64 << 53) as f64
        }

        fn round(&mut self, level_ns: f64) -> f64 {
            // The sum of twelve is about normal.
            let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
            let mode = if self.uniform() < 0.3 { self.modes * level_ns } else { 0.0 };
            let tail = if self.uniform() < 0.05 { self.tail * level_ns / self.uniform().max(0.01) } else { 0.0 };
            level_ns * (1.0 + 0.01 * normal) + mode + tail
        }

        /// Verdicts of series that alternate A B B A while the machine drifts by 2 % over each of them.
        fn blocks(&mut self, blocks: u32, effect: f64) -> Verdict {
            let drift = |place: u32| 1.0 + 0.02 * f64::from(place) / f64::from(4 * blocks);
            let differences: Vec<f64> = (0..blocks)
                .map(|block| {
                    let b_first = self.random.draw() % 2 == 1;
                    let sides = [b_first, !b_first, !b_first, b_first];
                    (0..4)
                        .zip(sides)
                        .map(|(place, is_b)| {
                            let level_ns = 10_000.0 * drift(4 * block + place);
                            if is_b { self.round(level_ns * (1.0 + effect)) / 2.0 } else { -self.round(level_ns) / 2.0 }
                        })
                        .sum()
                })
                .collect();
            Verdict::of(&Shift::of_blocks(&differences, 0.95).unwrap(), 100.0)
        }
    }

    const SERIES: usize = 1000;

    fn count(verdicts: impl Iterator<Item = Verdict>, wanted: &[Verdict]) -> usize {
        verdicts.filter(|verdict| wanted.contains(verdict)).count()
    }

    #[test]
    fn two_equal_sides_are_told_apart_no_more_often_than_stated() {
        for (modes, tail) in [(0.0, 0.0), (0.1, 0.0), (0.0, 0.2), (0.1, 0.2)] {
            let mut machine = Machine { random: SplitMix(1), modes, tail };
            let series = (0..SERIES).map(|_| {
                let sides = [(); 2].map(|()| (0..10).map(|_| machine.round(10_000.0)).collect::<Vec<_>>());
                Verdict::of(&Shift::of_two_samples(&sides[0], &sides[1], 0.95).unwrap(), 0.0)
            });
            let alarms = count(series, &[Verdict::Faster, Verdict::Slower]);
            // 5 %, and three standard deviations of a count of a thousand.
            assert!(alarms <= 50 + 21, "{alarms} of {SERIES} with modes {modes}, tail {tail}");
            let alarms = count((0..SERIES).map(|_| machine.blocks(6, 0.0)), &[Verdict::Faster, Verdict::Slower]);
            assert!(alarms <= 50 + 21, "{alarms} of {SERIES} in blocks with modes {modes}, tail {tail}");
        }
    }

    #[test]
    fn a_shift_of_two_percent_is_found_although_the_machine_drifts_by_as_much() {
        let mut machine = Machine { random: SplitMix(2), modes: 0.0, tail: 0.0 };
        let slower = count((0..SERIES).map(|_| machine.blocks(10, 0.02)), &[Verdict::Slower]);
        assert!(slower >= 950, "{slower} of {SERIES}");
        let faster = count((0..SERIES).map(|_| machine.blocks(10, -0.02)), &[Verdict::Faster]);
        assert!(faster >= 950, "{faster} of {SERIES}");
    }

    #[test]
    fn the_interval_covers_the_true_shift_as_often_as_it_says_and_the_least_effect_is_seen() {
        let mut machine = Machine { random: SplitMix(3), modes: 0.1, tail: 0.1 };
        let (mut covered, mut least) = (0, Vec::new());
        for _ in 0..SERIES {
            let base: Vec<f64> = (0..8).map(|_| machine.round(10_000.0)).collect();
            let other: Vec<f64> = (0..8).map(|_| machine.round(10_000.0) + 500.0).collect();
            let shift = Shift::of_two_samples(&base, &other, 0.95).unwrap();
            covered += usize::from(shift.low_ns.unwrap() <= 500.0 && 500.0 <= shift.high_ns.unwrap());
            least.extend(shift.least_visible_ns);
        }
        assert!(covered >= 950 - 21, "{covered} of {SERIES}");
        // On a machine without modes and tails a shift of the least visible size is seen about as often as stated.
        let mut machine = Machine { random: SplitMix(4), modes: 0.0, tail: 0.0 };
        let mut series = |effect_ns: f64| {
            let base: Vec<f64> = (0..10).map(|_| machine.round(10_000.0)).collect();
            let other: Vec<f64> = (0..10).map(|_| machine.round(10_000.0) + effect_ns).collect();
            Shift::of_two_samples(&base, &other, 0.95).unwrap()
        };
        let effect_ns = median(&(0..SERIES).filter_map(|_| series(0.0).least_visible_ns).collect::<Vec<_>>()).unwrap();
        let seen = (0..SERIES).filter(|_| series(effect_ns).low_ns > Some(0.0)).count();
        assert!((700..=900).contains(&seen), "{seen} of {SERIES} at {effect_ns} ns");
    }
}
