//! What the charts of points are drawn from. Latencies and times in nanoseconds, to a tenth: a pixel is more.

use serde_json::{Value, json};

use super::{
    Shown, places, tables,
    timeline::{Class, Timeline},
};
use crate::{report::stored::StoredPoint, stats::Bucket};

/// Places of the percentile curve for each tenfold of 1/(1−q).
const CURVE_PLACES: f64 = 40.0;

/// All points of a result, each of whose distributions has about `most` rows at most.
pub(super) fn points(shown: &Shown, most: usize) -> Vec<Value> {
    let floor = shown.stored.instrument.floor_ns.percentiles.p50;
    shown
        .points()
        .map(|(point, timeline)| {
            let buckets = &point.histogram.buckets;
            json!({
                "name": tables::point_name(shown, point),
                "n": point.latency_ns.n,
                "floor_ns": floor.map(tenths),
                "curve": curve(buckets, point.latency_ns.max),
                "histogram": histogram(buckets, most),
                "timeline": over_time(timeline, point),
                "slowest": columns(point.outliers.iter().map(|outlier| [outlier.at_ns, outlier.latency_ns].map(tenths).map(Some))),
            })
        })
        .collect()
}

fn tenths(ns: f64) -> f64 {
    (10.0 * ns).round() / 10.0
}

/// Rows as columns.
fn columns<const N: usize>(rows: impl IntoIterator<Item = [Option<f64>; N]>) -> Value {
    let mut columns = vec![Vec::new(); N];
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    json!(columns)
}

/// The latency at each 1/(1−q): 10 is p90, 1000 is p99.9. It ends with the largest of the n samples, at n.
fn curve(buckets: &[Bucket], max_ns: Option<f64>) -> Value {
    let n: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    let (mut below, mut last_place) = (0, None);
    let mut rows = Vec::new();
    for bucket in buckets {
        // The quantiles from here to the end of the bucket have its value.
        let x = n as f64 / (n - below) as f64;
        let place = (x.log10() * CURVE_PLACES) as u64;
        if last_place != Some(place) {
            // Places differ by more than a thousandth.
            rows.push([Some((1000.0 * x).round() / 1000.0), Some(bucket.lower_ns as f64)]);
            last_place = Some(place);
        }
        below += bucket.count;
    }
    rows.pop_if(|row| row[0] >= Some(n as f64));
    rows.extend(max_ns.map(|max_ns| [Some(n as f64), Some(tenths(max_ns))]));
    columns(rows)
}

/// Lower bound and count of each bucket, in whole nanoseconds; the last row ends the last one. Where there are too many of them
/// those within `factor` are put together. The page makes classes of them, narrower ones if it is zoomed.
fn histogram(buckets: &[Bucket], most: usize) -> Value {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return json!({ "lower_ns": [], "count": [], "factor": 1.0 });
    };
    let factor = if buckets.len() > most {
        (last.upper_ns as f64 / first.lower_ns.max(1) as f64).powf(1.0 / most as f64)
    } else {
        1.0
    };
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for bucket in buckets {
        match rows.last_mut() {
            Some((lower, count)) if bucket.upper_ns as f64 <= *lower as f64 * factor => *count += bucket.count,
            _ => rows.push((bucket.lower_ns, bucket.count)),
        }
    }
    rows.push((last.upper_ns, 0));
    let (lowers, counts): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    json!({ "lower_ns": lowers, "count": counts, "factor": factor })
}

/// Columns: start, and then either the latency, or min, p50, p99, max. `kind` says which, in words.
fn over_time(timeline: &Timeline, point: &StoredPoint) -> Value {
    match timeline {
        Timeline::Samples(samples) => json!({
            "kind": "samples",
            "columns": columns(samples.iter().map(|&(at_ns, latency_ns)| [at_ns, latency_ns].map(tenths).map(Some))),
        }),
        Timeline::Classes(classes) => json!({
            "kind": "classes",
            "columns": columns(classes.iter().map(|&Class { at_ns, n: _, min_ns, p50_ns, p99_ns, max_ns }| {
                [Some(at_ns), Some(min_ns), Some(p50_ns), p99_ns, Some(max_ns)].map(|ns| ns.map(tenths))
            })),
        }),
        Timeline::Windows => json!({
            "kind": "windows",
            "columns": columns(point.timeline.iter().map(|window| {
                [Some(window.at_ns), None, window.p50_ns, window.p99_ns, window.max_ns].map(|ns| ns.map(tenths))
            })),
        }),
    }
}

/// What the timeline of a point is made of, in words.
pub(super) fn basis(timeline: &Timeline, points: usize) -> String {
    match timeline {
        Timeline::Samples(samples) => format!("every one of {} samples", samples.len()),
        Timeline::Classes(classes) => {
            format!("all samples, in {} of {} stretches of equal length", classes.len(), places(points))
        }
        Timeline::Windows => "the result's own windows, a hundred at most: no samples were stored".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(value: &Value, index: impl serde_json::value::Index) -> Vec<f64> {
        serde_json::from_value(value[index].clone()).unwrap()
    }

    proptest! {
        #[test]
        fn charts_lose_no_command_and_end_at_the_largest(
            values in proptest::collection::vec(0_u64..1 << 40, 1..500),
            most in 1_usize..600,
        ) {
            let buckets = crate::stats::histogram(&values, 1.0).buckets;
            let largest = *values.iter().max().unwrap() as f64;
            let rows = histogram(&buckets, most);
            prop_assert!(column(&rows, "count").len() <= 2 * most + 2);
            prop_assert_eq!(column(&rows, "count").iter().sum::<f64>(), values.len() as f64);
            prop_assert!(column(&rows, "lower_ns").is_sorted_by(|a, b| a < b));
            prop_assert!(*column(&rows, "lower_ns").last().unwrap() > largest);
            let curve = curve(&buckets, Some(largest));
            prop_assert!(column(&curve, 0).is_sorted_by(|a, b| a < b), "{curve}");
            prop_assert!(column(&curve, 1).is_sorted());
            prop_assert_eq!(*column(&curve, 1).last().unwrap(), largest);
        }
    }

    #[test]
    fn the_curve_has_the_value_of_each_quantile() {
        let buckets = crate::stats::histogram(&(1..=1000).collect::<Vec<_>>(), 1.0).buckets;
        let curve = curve(&buckets, Some(1000.0));
        let (x, y) = (column(&curve, 0), column(&curve, 1));
        for (x, y) in x.iter().zip(&y) {
            let rank = 1000.0 * (1.0 - 1.0 / x);
            assert!((y - rank).abs() <= 1.5, "{x} {y}");
        }
    }
}
