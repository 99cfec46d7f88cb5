//! How far into a list of sorted differences the ends of an interval lie, by the distribution of the rank statistic behind
//! it. Exact for as many rounds as anybody measures, so it holds for few of them, where a bootstrap does not.
//!
//! - Two samples: J. L. Hodges and E. L. Lehmann, "Estimates of Location Based on Rank Tests", Annals of Mathematical
//!   Statistics 34 (1963); D. F. Bauer, "Constructing Confidence Sets Using Rank Statistics", JASA 67 (1972).
//! - Pairs: F. Wilcoxon's signed ranks, in the same papers.

/// Above this many values of a statistic the normal approximation takes over, whose error is far below a tenth of a
/// percent of coverage there.
const MOST_EXACT: usize = 40_000;

/// How many of the sorted differences between all pairs of two samples lie outside each end of an interval that covers the
/// shift with at least `level`. `None` if not even all of them reach that.
pub(super) fn outside_two_samples(base: usize, other: usize, level: f64) -> Option<usize> {
    let most = base.checked_mul(other)?;
    if most <= MOST_EXACT {
        return outside(&arrangements(base, other), level);
    }
    let (m, n) = (base as f64, other as f64);
    approximate(m * n / 2.0, (m * n * (m + n + 1.0) / 12.0).sqrt(), level)
}

/// As [`outside_two_samples`], for the sorted means of all pairs of `n` differences, each with itself, too.
pub(super) fn outside_pairs(n: usize, level: f64) -> Option<usize> {
    let most = n.checked_mul(n + 1)? / 2;
    if most <= MOST_EXACT {
        return outside(&signed_sums(n), level);
    }
    let n = n as f64;
    approximate(n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt(), level)
}

/// With k values of the statistic, from the smallest, no likelier together than half of what the level leaves, the ends are
/// the k-th difference from either side, so k − 1 lie outside.
fn outside(ways: &[f64], level: f64) -> Option<usize> {
    let all: f64 = ways.iter().sum();
    // A grain of rounding must not cost a rank: levels come as decimal fractions.
    let allowed = (1.0 - level) / 2.0 * all * (1.0 + 1e-9);
    let mut below = 0.0;
    let unlikely = ways.iter().take_while(|&&ways| {
        below += ways;
        below <= allowed
    });
    unlikely.count().checked_sub(1)
}

fn approximate(mean: f64, spread: f64, level: f64) -> Option<usize> {
    let unlikely = mean - normal_quantile(0.5 + level / 2.0) * spread + 0.5;
    (unlikely >= 1.0).then_some(unlikely as usize - 1)
}

/// The standard normal quantile for 0.5 ≤ p < 1, within 4.5e-4: Abramowitz and Stegun, 26.2.23.
pub(super) fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * (1.0 - p).ln()).sqrt();
    t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
}

/// In how many orders of two samples the Mann–Whitney statistic has each value: the coefficients of a Gaussian binomial.
fn arrangements(m: usize, n: usize) -> Vec<f64> {
    let mut ways = vec![0.0; m * n + 1];
    ways[0] = 1.0;
    for i in 1..=n {
        // Times (1 − q^(m+i)), divided by (1 − q^i).
        for u in (m + i..ways.len()).rev() {
            ways[u] -= ways[u - m - i];
        }
        for u in i..ways.len() {
            ways[u] += ways[u - i];
        }
    }
    ways
}

/// In how many ways signs can be given to the ranks 1 to n so that the positive ones add up to each value.
fn signed_sums(n: usize) -> Vec<f64> {
    let mut ways = vec![0.0; n * (n + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_those_of_the_tables() {
        assert_eq!(arrangements(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(arrangements(3, 2), [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
        assert_eq!(arrangements(20, 20).iter().sum::<f64>(), 137_846_528_820.0);
        assert_eq!(signed_sums(3), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
        assert_eq!(signed_sums(20).iter().sum::<f64>(), f64::from(1 << 20));
    }

    #[test]
    fn ends_are_those_of_the_tables() {
        // Critical values of U at 5 %, two-sided: 0 for 4 and 4, 2 for 5 and 5, 23 for 10 and 10, 127 for 20 and 20.
        for (n, critical) in [(4, 0), (5, 2), (10, 23), (20, 127)] {
            assert_eq!(outside_two_samples(n, n, 0.95), Some(critical), "{n}");
        }
        // Those of signed ranks: 0 for 6, 2 for 7, 8 for 10, 52 for 20.
        for (n, critical) in [(6, 0), (7, 2), (10, 8), (20, 52)] {
            assert_eq!(outside_pairs(n, 0.95), Some(critical), "{n}");
        }
    }

    #[test]
    fn too_few_rounds_have_no_interval() {
        assert_eq!((outside_two_samples(3, 3, 0.95), outside_two_samples(1, 30, 0.95)), (None, None));
        assert_eq!(
            (outside_pairs(5, 0.95), outside_pairs(0, 0.95), outside_two_samples(0, 7, 0.95)),
            (None, None, None)
        );
        assert_eq!(outside_two_samples(4, 4, 0.99), None);
    }

    #[test]
    fn the_approximation_takes_over_without_a_step() {
        let (m, n) = (200.0, 200.0);
        let exact = outside_two_samples(200, 200, 0.95).unwrap() as f64;
        let approximate = approximate(m * n / 2.0, (m * n * (m + n + 1.0) / 12.0_f64).sqrt(), 0.95).unwrap() as f64;
        assert!((exact - approximate).abs() <= 3.0, "{exact} {approximate}");
        assert!(outside_two_samples(1000, 1000, 0.95).is_some() && outside_pairs(1000, 0.999).is_some());
    }

    #[test]
    fn the_normal_quantile_is_that_of_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.8, 0.8416), (0.975, 1.9600), (0.9995, 3.2905)] {
            assert!((normal_quantile(p) - z).abs() < 5e-4, "{p}");
        }
    }
}
