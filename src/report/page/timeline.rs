//! A point over its time: every sample where there are few, classes of equal length where there are many.

use crate::{
    error::{Error, Result},
    report::{samples::Row, stored::StoredPoint},
    stats::nearest_rank,
};

/// What a chart over time shows; times and latencies in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Timeline {
    /// Every sample, by its start.
    Samples(Vec<(f64, f64)>),
    /// All samples, in classes.
    Classes(Vec<Class>),
    /// What the result itself has: up to a hundred windows.
    Windows,
}

/// The samples that began within one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Where the stretch begins.
    pub at_ns: f64,
    /// Samples in it, at least one.
    pub n: usize,
    /// Smallest.
    pub min_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile; none for fewer than 100 samples.
    pub p99_ns: Option<f64>,
    /// Largest.
    pub max_ns: f64,
}

impl Timeline {
    /// Of the samples of a point, on so many places at most; `origin` names the file of them.
    ///
    /// # Errors
    /// [`Error::Usage`]: the file is damaged, or it isn't of this point.
    pub fn of(
        rows: impl Iterator<Item = Result<Row>>,
        point: &StoredPoint,
        places: usize,
        origin: &str,
    ) -> Result<Self> {
        let mut samples = Vec::new();
        for row in rows {
            let row = row?;
            if !(row.start_ns.is_finite() && row.latency_ns.is_finite()) {
                return Err(Error::Usage(format!("{origin}: sample {} has no time", samples.len())));
            }
            samples.push((row.start_ns, row.latency_ns));
        }
        let n = samples.len() as u64;
        if n != point.latency_ns.n {
            let expected = point.latency_ns.n;
            return Err(Error::Usage(format!(
                "{origin}: it has {n} samples, the result {expected} commands: they do not belong together"
            )));
        }
        // Jobs come one after the other, and at depth the order is that of completion.
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(if samples.len() <= places { Self::Samples(samples) } else { Self::Classes(classes(&samples, places)) })
    }
}

/// Samples in order of time, in `count` stretches of equal length. Those that are empty are left out; no sample is.
fn classes(samples: &[(f64, f64)], count: usize) -> Vec<Class> {
    let (Some(&(first, _)), Some(&(last, _))) = (samples.first(), samples.last()) else { return Vec::new() };
    let length_ns = (last - first) / count as f64;
    // Samples of one moment are in one class: 0 / 0 is not a number, which becomes 0.
    let index = |at_ns: f64| (((at_ns - first) / length_ns) as usize).min(count - 1);
    let chunks = samples.chunk_by(|a, b| index(a.0) == index(b.0));
    chunks
        .filter_map(|chunk| {
            let mut latencies: Vec<f64> = chunk.iter().map(|&(_, latency_ns)| latency_ns).collect();
            latencies.sort_by(f64::total_cmp);
            Some(Class {
                at_ns: first + index(chunk.first()?.0) as f64 * length_ns,
                n: latencies.len(),
                min_ns: *latencies.first()?,
                p50_ns: nearest_rank(&latencies, 50_000)?,
                p99_ns: nearest_rank(&latencies, 99_000).filter(|_| latencies.len() >= 100),
                max_ns: *latencies.last()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_sample_is_lost_and_the_largest_stays(
            mut samples in proptest::collection::vec((0.0..1e9, 0.0..1e6), 1..2000), count in 1_usize..300
        ) {
            samples.sort_by(|a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0));
            let classes = classes(&samples, count);
            prop_assert!(classes.len() <= count);
            prop_assert_eq!(classes.iter().map(|class| class.n).sum::<usize>(), samples.len());
            prop_assert!(classes.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
            let largest = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
            let of_classes = largest(classes.iter().map(|class| class.max_ns).collect());
            prop_assert_eq!(of_classes, largest(samples.iter().map(|sample| sample.1).collect()));
            prop_assert!(classes.iter().all(|class| class.min_ns <= class.p50_ns && class.p50_ns <= class.max_ns));
        }
    }

    #[test]
    fn samples_of_one_moment_are_one_class() {
        let classes = classes(&[(5.0, 1.0), (5.0, 3.0), (5.0, 2.0)], 10);
        assert_eq!(classes, [Class { at_ns: 5.0, n: 3, min_ns: 1.0, p50_ns: 2.0, p99_ns: None, max_ns: 3.0 }]);
    }
}
