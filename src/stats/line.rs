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

impl Line {
    /// The line of H. Theil and P. K. Sen ("Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63, 1968):
    /// the slope is the median over all pairs of points, the intercept the median of what it leaves. Pairs are weighted by
    /// their distance in x (L. A. Jaeckel, 1972), since sizes are spread over powers of two and the slope between two small
    /// ones is nearly all noise.
    ///
    /// `None` for fewer than two different x.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let pairs = points
            .iter()
            .enumerate()
            .flat_map(|(index, first)| points[..index].iter().map(move |second| (first, second)));
        let mut slopes: Vec<(f64, f64)> = pairs
            .filter(|(first, second)| first.0 != second.0)
            .map(|(first, second)| ((second.1 - first.1) / (second.0 - first.0), (second.0 - first.0).abs()))
            .collect();
        slopes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = slopes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
        let mut below = 0.0;
        let (slope, _) = slopes.into_iter().find(|(_, weight)| {
            below += weight;
            below >= half
        })?;
        let left: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
        Some(Self { intercept: median(&left)?, slope })
    }
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
}
