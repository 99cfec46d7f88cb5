//! A robust line through points of which some may be far off: cost per command and cost per byte.

use super::median;

/// y = intercept + slope · x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// At x = 0, in the unit of y.
    pub intercept: f64,
    /// In units of y for each one of x.
    pub slope: f64,
}

/// What covers the parts of a line, each by itself, as (low, high). `None` where the points are too few for the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineIntervals {
    /// Of the intercept.
    pub intercept: Option<(f64, f64)>,
    /// Of the slope.
    pub slope: Option<(f64, f64)>,
}

/// With up to so many points every order of theirs is looked at: 40,320.
const MOST_EXACT: usize = 8;
/// Above, so many random ones.
const DRAWN: usize = 20_000;
/// Any would do; the same points have the same interval each time.
const SEED: u64 = 1;

impl Line {
    /// The line of H. Theil and P. K. Sen ("Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63, 1968):
    /// the slope is the median over all pairs of points, the intercept the median of what it leaves. Pairs are weighted by
    /// their distance in x (L. A. Jaeckel, "Estimating Regression Coefficients by Minimizing the Dispersion of the Residuals",
    /// Annals of Mathematical Statistics 43, 1972), since sizes are spread over powers of two and the slope between two small
    /// ones is nearly all noise.
    ///
    /// The price is leverage: the pairs with the largest of sizes that double have more than half of all weight, so a wrong
    /// value there, and only there, tilts the line.
    ///
    /// `None` for fewer than two different x.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let slopes = weighted_slopes(points);
        let all: f64 = slopes.iter().map(|(_, weight)| weight).sum();
        // From below and from above: where half of the weight falls between two slopes, the middle of both is meant, so
        // that a line turned upside down is the same one.
        let low = past(slopes.iter(), all / 2.0)?;
        let high = past(slopes.iter().rev(), all / 2.0)?;
        let slope = f64::midpoint(low, high);
        Some(Self { intercept: median(&left(points, slope))?, slope })
    }

    /// What covers slope and intercept with at least `level`, judged by how the points scatter around the line. It says
    /// nothing of errors that all points share.
    ///
    /// Slope: the slopes that a rank test does not reject (G. L. Sievers, "Weighted Rank Statistics for Simple Linear
    /// Regression", JASA 73, 1978), the statistic being the sum of weights of pairs that rise, less that of those that fall.
    /// With these weights it is Σ x·(2·rank − n − 1), whose distribution over all orders of the residuals is taken exactly up
    /// to eight points, and from random orders above (M. Dwass, "Modified Randomization Tests for Nonparametric Hypotheses",
    /// Annals of Mathematical Statistics 28, 1957). At 95 % it takes five points.
    ///
    /// Intercept: each slope of an interval with half of the error leaves an interval of the median by the sign test with the
    /// other half; all of them together cover it, by Bonferroni's inequality. It is wide, but assumes no symmetry. At 95 % it
    /// takes seven points, and no x below zero.
    pub fn intervals(points: &[(f64, f64)], level: f64) -> LineIntervals {
        let half = f64::midpoint(level, 1.0);
        LineIntervals { slope: slope_interval(points, level), intercept: intercept_interval(points, half) }
    }
}

/// The slopes of all pairs in order, with their weights.
fn weighted_slopes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let pairs =
        points.iter().enumerate().flat_map(|(index, first)| points[..index].iter().map(move |second| (first, second)));
    let mut slopes: Vec<(f64, f64)> = pairs
        .filter(|(first, second)| first.0 != second.0)
        .map(|(first, second)| ((second.1 - first.1) / (second.0 - first.0), (second.0 - first.0).abs()))
        .collect();
    slopes.sort_by(|a, b| a.0.total_cmp(&b.0));
    slopes
}

/// The first slope with which the weights, added up, reach `enough`.
fn past<'a>(slopes: impl Iterator<Item = &'a (f64, f64)>, enough: f64) -> Option<f64> {
    let mut below = 0.0;
    let mut slopes = slopes.skip_while(|(_, weight)| {
        below += weight;
        below < enough
    });
    slopes.next().map(|(slope, _)| *slope)
}

fn left(points: &[(f64, f64)], slope: f64) -> Vec<f64> {
    points.iter().map(|(x, y)| y - slope * x).collect()
}

fn slope_interval(points: &[(f64, f64)], level: f64) -> Option<(f64, f64)> {
    let slopes = weighted_slopes(points);
    let all: f64 = slopes.iter().map(|(_, weight)| weight).sum();
    let xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    let limit = limit(&xs, level)?;
    // From a slope below all others to the one past which the statistic is within the limit: each slope that is passed
    // takes its weight from those that rise and gives it to those that fall. Rounding must not cost a pair.
    let enough = (all - limit) / 2.0 - all * 1e-12;
    // Where all weight may lie outside, no slope is ever rejected.
    (enough > 0.0).then_some(())?;
    Some((past(slopes.iter(), enough)?, past(slopes.iter().rev(), enough)?))
}

/// The largest value of the statistic that is not rejected. `None` if none is, or if there is no statistic.
fn limit(xs: &[f64], level: f64) -> Option<f64> {
    let (mut values, observed) = if xs.len() <= MOST_EXACT { (of_all_orders(xs), 0) } else { (of_some_orders(xs), 1) };
    values.sort_by(f64::total_cmp);
    // The order that was found counts as one of those drawn, which keeps the error within what the level leaves. A grain of rounding
    // must not cost a rank: levels come as decimal fractions.
    let allowed = (1.0 - level) / 2.0 * (values.len() + observed) as f64 * (1.0 + 1e-9);
    let rejected = (allowed as usize).checked_sub(observed)?;
    values.len().checked_sub(1 + rejected).map(|index| values[index])
}

/// The statistic of values with these x in the order in which they stand, from the smallest.
fn statistic(xs: &[f64]) -> f64 {
    let last = xs.len() as f64 - 1.0;
    xs.iter().enumerate().map(|(place, x)| x * (2.0 * place as f64 - last)).sum()
}

/// By B. R. Heap, "Permutations by Interchanges", The Computer Journal 6 (1963).
fn of_all_orders(xs: &[f64]) -> Vec<f64> {
    let mut xs = xs.to_vec();
    let mut counts = vec![0; xs.len()];
    let mut values = vec![statistic(&xs)];
    let mut place = 1;
    while place < xs.len() {
        if counts[place] < place {
            xs.swap(if place % 2 == 0 { 0 } else { counts[place] }, place);
            values.push(statistic(&xs));
            counts[place] += 1;
            place = 1;
        } else {
            counts[place] = 0;
            place += 1;
        }
    }
    values
}

/// Shuffled as by R. A. Fisher and F. Yates, with the numbers of splitmix64 (G. L. Steele and others, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014).
fn of_some_orders(xs: &[f64]) -> Vec<f64> {
    let mut xs = xs.to_vec();
    let mut state = SEED;
    let mut below = |end: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * end as u128) >> 64) as usize
    };
    let drawn = (0..DRAWN).map(|_| {
        for place in (1..xs.len()).rev() {
            xs.swap(place, below(place + 1));
        }
        statistic(&xs)
    });
    drawn.collect()
}

/// `level` is that of each of its two steps.
fn intercept_interval(points: &[(f64, f64)], level: f64) -> Option<(f64, f64)> {
    // With no x below zero a steeper line leaves less of every point, so the ends are those of the steepest and the flattest.
    if points.iter().any(|(x, _)| *x < 0.0) {
        return None;
    }
    let (flattest, steepest) = slope_interval(points, level)?;
    let outside = outside_signs(points.len(), level)?;
    let nth = |slope: f64, index: usize| {
        let mut left = left(points, slope);
        left.sort_by(f64::total_cmp);
        left[index]
    };
    Some((nth(steepest, outside), nth(flattest, points.len() - 1 - outside)))
}

/// How many of `n` sorted values lie outside each end of an interval that covers their median with at least `level`.
fn outside_signs(n: usize, level: f64) -> Option<usize> {
    let allowed = (1.0 - level) / 2.0 * (1.0 + 1e-9);
    let (mut share, mut below) = (0.5_f64.powi(i32::try_from(n).ok()?), 0.0);
    let unlikely = (0..n).take_while(|&heads| {
        below += share;
        share *= (n - heads) as f64 / (heads + 1) as f64;
        below <= allowed
    });
    unlikely.count().checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_give_the_line_whatever_one_of_them_does() {
        let mut points: Vec<_> = [512.0, 1024.0, 4096.0, 65536.0, 524288.0].map(|x| (x, 4000.0 + 0.5 * x)).into();
        let exact = Line { intercept: 4000.0, slope: 0.5 };
        assert_eq!(Line::through(&points), Some(exact));
        points[1].1 = 1e9;
        assert_eq!(Line::through(&points), Some(exact));
    }

    #[test]
    fn noise_of_small_sizes_does_not_tilt_the_line() {
        let points = [(512.0, 3900.0), (1024.0, 4100.0), (2048.0, 3950.0), (524288.0, 4000.0)];
        let line = Line::through(&points).unwrap();
        assert!(line.slope.abs() < 3e-4 && (line.intercept - 3950.0).abs() < 60.0, "{line:?}");
    }

    #[test]
    fn what_has_no_line_is_none() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(Line::through(&[(0.0, 2.0), (2.0, 6.0)]), Some(Line { intercept: 2.0, slope: 2.0 }));
        assert_eq!(Line::through(&[(0.0, 5.0), (1.0, 5.0), (9.0, 5.0)]), Some(Line { intercept: 5.0, slope: 0.0 }));
    }

    #[test]
    fn a_line_turned_upside_down_is_the_same_line() {
        // The two slopes, 0 and 1, have the same weight.
        let points = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)];
        let turned = points.map(|(x, y)| (x, -y));
        let (line, turned) = (Line::through(&points).unwrap(), Line::through(&turned).unwrap());
        assert_eq!((line.slope, turned.slope, line.intercept, turned.intercept), (0.5, -0.5, 0.0, 0.0));
    }

    /// With even distances the statistic is Spearman's: all weight, less the sum of squared differences of ranks.
    #[test]
    fn limits_are_those_of_spearmans_tables() {
        // Critical values at 5 %, two-sided: 1 for 5, 0.886 for 6, 0.786 for 7, 0.738 for 8. Squares go by twos.
        for (n, rejected) in [(5, 0.0), (6, 4.0), (7, 12.0), (8, 22.0)] {
            let xs: Vec<f64> = (0..n).map(f64::from).collect();
            assert_eq!(limit(&xs, 0.95), Some(statistic(&xs) - rejected - 2.0), "{n}");
        }
        // From random orders: 0.700 for 9, within one step.
        let xs: Vec<f64> = (0..9).map(f64::from).collect();
        assert!((limit(&xs, 0.95).unwrap() - (statistic(&xs) - 38.0)).abs() <= 2.0, "{:?}", limit(&xs, 0.95));
    }

    #[test]
    fn every_order_is_looked_at_once() {
        let mut values = of_all_orders(&[1.0, 2.0, 4.0]);
        values.sort_by(f64::total_cmp);
        assert_eq!(values, [-6.0, -4.0, -2.0, 2.0, 4.0, 6.0]);
        assert_eq!(
            (of_all_orders(&[1.0; 8]).len(), of_all_orders(&[]).len(), of_all_orders(&[1.0]).len()),
            (40_320, 1, 1)
        );
    }

    #[test]
    fn the_interval_of_a_slope_is_that_found_by_hand() {
        // Five points: only the two extreme orders are rejected, so the ends are the least and the largest of all slopes.
        let five = [(0.0, 0.0), (1.0, 2.0), (2.0, 2.0), (3.0, 3.0), (4.0, 8.0)];
        assert_eq!(Line::intervals(&five, 0.95), LineIntervals { slope: Some((0.0, 5.0)), intercept: None });
        // Six, of weight 35 and limit 29: the ends are where weights add up to 3. The slopes to the last point are 5, 3,
        // 7/3, 2 and 9/5, all others are 1, and 5 and 3 have weights 1 and 2.
        let six = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0), (5.0, 9.0)];
        assert_eq!(Line::intervals(&six, 0.95).slope, Some((1.0, 3.0)));
    }

    #[test]
    fn the_interval_of_an_intercept_is_that_found_by_hand() {
        // Seven points: the signs are all the same in 1 of 128 cases, within the 1.25 % of a side, so the ends are the least
        // of what the steepest slope leaves and the largest of what the flattest one leaves.
        let seven: Vec<_> = (0..7).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x))).collect();
        let exact = LineIntervals { intercept: Some((3.0, 3.0)), slope: Some((2.0, 2.0)) };
        assert_eq!(Line::intervals(&seven, 0.95), exact);
        assert_eq!(
            (outside_signs(6, 0.975), outside_signs(7, 0.975), outside_signs(20, 0.95)),
            (None, Some(0), Some(5))
        );
        let mut bent = seven.clone();
        bent[6].1 = 21.0;
        // The slopes to the last point are 18/6, 16/5, 14/4, 12/3, 10/2, 8 and so on; all others are 2.
        let LineIntervals { intercept, slope } = Line::intervals(&bent, 0.95);
        let (_, steepest) = slope_interval(&bent, 0.975).unwrap();
        assert!(slope.unwrap().1 <= steepest && steepest <= 8.0, "{slope:?} {steepest}");
        // Of the points on the line the sixth is left least by it; the flattest one, 2, leaves 9 of the last.
        assert_eq!(intercept, Some((13.0 - 5.0 * steepest, 9.0)));
        let shifted: Vec<_> = seven.iter().map(|(x, y)| (x - 1.0, *y)).collect();
        assert_eq!(Line::intervals(&shifted, 0.95).intercept, None);
    }

    #[test]
    fn too_few_points_have_no_interval() {
        for n in 0..5 {
            let points: Vec<_> = (0..n).map(|x| (f64::from(x), f64::from(x * x))).collect();
            assert_eq!(Line::intervals(&points, 0.95), LineIntervals { intercept: None, slope: None }, "{n}");
        }
        assert_eq!(Line::intervals(&[(1.0, 2.0); 9], 0.95), LineIntervals { intercept: None, slope: None });
        assert_eq!(Line::intervals(&[(1.0, 2.0); 5], 0.95).slope, None);
        assert_eq!(limit(&[0.0, 1.0, 2.0, 3.0, 4.0], 0.999), Some(20.0));
    }

    #[test]
    fn intervals_cover_the_line_as_often_as_they_say() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1 << 24) as f64
        };
        let (mut slopes, mut intercepts) = (0, 0);
        let series = 300;
        for _ in 0..series {
            // A long tail on one side, with median zero, on sizes that double.
            let mut error = || 100.0 * (-(1.0 - uniform()).ln() - 2_f64.ln());
            let points: Vec<_> =
                (0..7).map(|i| f64::from(512 << i)).map(|x| (x, 4000.0 + 0.01 * x + error())).collect();
            let LineIntervals { intercept, slope } = Line::intervals(&points, 0.95);
            slopes += usize::from(slope.is_some_and(|(low, high)| low <= 0.01 && 0.01 <= high));
            intercepts += usize::from(intercept.is_some_and(|(low, high)| low <= 4000.0 && 4000.0 <= high));
        }
        assert!(slopes >= series * 93 / 100 && intercepts >= series * 95 / 100, "{slopes} {intercepts} of {series}");
    }
}
