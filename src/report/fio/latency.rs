//! Lines about latencies: the range, the grid of percentiles, the classes of the histogram.

use std::fmt::{self, Write};

use super::number;
use crate::stats::{Bucket, Histogram, Percentiles, Summary};

/// Entries of a line of classes.
const CLASSES_A_LINE: usize = 5;
/// Least percentage that is printed, so that what is rare does not look like nothing.
const LEAST_PERCENT: f64 = 0.01;
/// Upper ends of the classes in each unit, which is also how they are called.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// A unit with its length in nanoseconds.
type Unit = (&'static str, f64);
const NSEC: Unit = ("nsec", 1.0);
const USEC: Unit = ("usec", 1e3);
const MSEC: Unit = ("msec", 1e6);

/// fio's choice: a coarser unit only where the smallest value still has four digits in it, and the largest six.
fn unit(min_ns: f64, max_ns: f64, spread_ns: f64) -> Unit {
    match () {
        () if min_ns > 2e6 && max_ns > 99_999_999.0 && spread_ns > 1e6 => MSEC,
        () if min_ns > 2e3 && max_ns > 99_999.0 && spread_ns > 1e3 => USEC,
        () => NSEC,
    }
}

/// `clat (usec): min=40, max=1241, avg=51.80, stdev=27.89`; nothing for no samples.
pub(super) fn range(text: &mut String, name: &str, summary: &Summary) -> fmt::Result {
    let (Some(min), Some(max), Some(mean)) = (summary.min, summary.max, summary.mean) else { return Ok(()) };
    let (unit, ns) = unit(min, max, summary.stddev.unwrap_or(0.0));
    let (from, to) = (number::end(min / ns), number::end(max / ns));
    write!(text, "    {name:>4} ({unit}): min={from}, max={to}, avg={:5.2}", mean / ns)?;
    match summary.stddev {
        Some(stddev) => writeln!(text, ", stdev={:5.2}", stddev / ns),
        None => writeln!(text),
    }
}

/// The grid. It has those of fio's percentiles that a result has, and 25 and 75: all of them are samples, and none is read
/// off a histogram. What the samples do not support is left out.
pub(super) fn percentiles(text: &mut String, name: &str, percentiles: &Percentiles) -> fmt::Result {
    let p = percentiles;
    let all = [
        (1.0, p.p1),
        (5.0, p.p5),
        (10.0, p.p10),
        (25.0, p.p25),
        (50.0, p.p50),
        (75.0, p.p75),
        (90.0, p.p90),
        (95.0, p.p95),
        (99.0, p.p99),
        (99.5, p.p99_5),
        (99.9, p.p99_9),
        (99.99, p.p99_99),
    ];
    let known: Vec<_> = all.into_iter().filter_map(|(percent, value)| Some((percent, value?))).collect();
    let (Some(&(_, least)), Some(&(_, most))) = (known.first(), known.last()) else { return Ok(()) };
    let (unit, ns) = unit(least, most, f64::INFINITY);
    let width = number::whole(most / ns).to_string().len().max(5);
    // Lines of at most 80 characters, of which 7 are taken; an entry has 12 besides the value.
    let in_a_line = ((80 - 7) / (width + 12)).max(1);
    writeln!(text, "    {name} percentiles ({unit}):")?;
    for line in known.chunks(in_a_line) {
        let entry = |&(percent, value): &(f64, f64)| format!(" {percent:5.2}th=[{:width$}]", number::whole(value / ns));
        let entries: Vec<_> = line.iter().map(entry).collect();
        let more = if line.last() == known.last() { "" } else { "," };
        writeln!(text, "     |{}{more}", entries.join(","))?;
    }
    Ok(())
}

/// Shares of the samples by class: `lat (usec)   : 50=46.83%, 100=52.71%`. Class 50 has what is below 50 and not in the class
/// before.
///
/// A bucket of the histogram across the end of a class counts where the bucket's middle is. Below 2048 ns there is none, since
/// buckets are 1 ns wide there; elsewhere a class may end up to 1/2048 earlier or later than its name says.
pub(super) fn classes(text: &mut String, histogram: &Histogram) -> fmt::Result {
    for (unit, classes) in class_shares(histogram) {
        let seen = classes.iter().filter(|(_, percent)| *percent > 0.0);
        let shown: Vec<_> = seen.map(|(name, percent)| format!("{name}={:.2}%", percent.max(LEAST_PERCENT))).collect();
        for line in shown.chunks(CLASSES_A_LINE) {
            writeln!(text, "  lat ({unit}sec)   : {}", line.join(", "))?;
        }
    }
    Ok(())
}

/// The classes of each unit with their share in percent, as [`classes`] has them; all are 0 for no samples.
pub(in crate::report) fn class_shares(histogram: &Histogram) -> [(&'static str, Vec<(String, f64)>); 3] {
    let count = |buckets: &mut dyn Iterator<Item = &Bucket>| buckets.fold(0_u64, |sum, b| sum.saturating_add(b.count));
    let total = count(&mut histogram.buckets.iter()).max(1);
    [("n", 1), ("u", 1_000), ("m", 1_000_000)].map(|(unit, factor)| {
        // A unit begins where the one before ends: its first class has no zero to begin at.
        let mut from = if factor == 1 { 0 } else { factor };
        let mut ends: Vec<_> = CLASSES.iter().map(|end| (end.to_string(), end * factor)).collect();
        if unit == "m" {
            ends.extend([("2000".into(), 2000 * factor), (">=2000".into(), u64::MAX)]);
        }
        let share = |(name, end)| {
            let inside = count(&mut histogram.buckets.iter().filter(|bucket| (from..end).contains(&middle(bucket))));
            from = end;
            (name, 100.0 * inside as f64 / total as f64)
        };
        (unit, ends.into_iter().map(share).collect())
    })
}

/// The middle of a bucket, in nanoseconds.
pub(in crate::report) fn middle(bucket: &Bucket) -> u64 {
    bucket.lower_ns + bucket.upper_ns.saturating_sub(bucket.lower_ns) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram;

    fn summary(ns: impl IntoIterator<Item = u64>) -> Summary {
        let mut sorted: Vec<u64> = ns.into_iter().collect();
        sorted.sort_unstable();
        Summary::of_sorted(&sorted, 1.0)
    }

    fn text(write: impl Fn(&mut String) -> fmt::Result) -> String {
        let mut text = String::new();
        write(&mut text).unwrap();
        text
    }

    #[test]
    fn a_range_has_fios_unit_and_widths() {
        let of = |name, ns: Vec<u64>| text(|text| range(text, name, &summary(ns.clone())));
        assert_eq!(
            of("clat", vec![500, 269_292]),
            "    clat (nsec): min=500, max=269292, avg=134896.00, stdev=190064.65\n"
        );
        assert_eq!(of("lat", vec![3_000, 203_000]), "     lat (usec): min=3, max=203, avg=103.00, stdev=141.42\n");
        assert_eq!(
            of("slat", vec![3_000_000, 203_000_000]),
            "    slat (msec): min=3, max=203, avg=103.00, stdev=141.42\n"
        );
        assert_eq!(of("lat", vec![0, 2]), "     lat (nsec): min=0, max=2, avg= 1.00, stdev= 1.41\n");
    }

    #[test]
    fn what_is_undefined_is_left_out_of_a_range() {
        assert_eq!(text(|text| range(text, "lat", &summary([7]))), "     lat (nsec): min=7, max=7, avg= 7.00\n");
        assert_eq!(text(|text| range(text, "lat", &summary([]))), "");
    }

    #[test]
    fn the_grid_has_four_entries_a_line_and_three_of_long_ones() {
        let grid = text(|text| percentiles(text, "clat", &summary((1..=20_000).map(|n| n * 10)).percentiles));
        let lines: Vec<_> = grid.lines().collect();
        assert_eq!(lines[0], "    clat percentiles (nsec):");
        assert_eq!(lines[1], "     |  1.00th=[  2000],  5.00th=[ 10000], 10.00th=[ 20000], 25.00th=[ 50000],");
        assert_eq!(lines[3], "     | 99.00th=[198000], 99.50th=[199000], 99.90th=[199800], 99.99th=[199980]");
        let grid = text(|text| percentiles(text, "lat", &summary((1..=1_000).map(|n| n * n * 2)).percentiles));
        assert!(grid.lines().nth(1).unwrap().ends_with("10.00th=[  20000],"), "{grid}");
        let grid = text(|text| percentiles(text, "lat", &summary((1..=1_000).map(|n| n * 1_000_000)).percentiles));
        assert!(grid.starts_with("    lat percentiles (msec):\n     |  1.00th=[   10],"), "{grid}");
    }

    #[test]
    fn a_percentile_that_the_samples_do_not_support_is_not_in_the_grid() {
        let grid = text(|text| percentiles(text, "lat", &summary(1..=100).percentiles));
        assert!(grid.ends_with(" 99.00th=[   99]\n") && !grid.contains("99.50th"), "{grid}");
        assert_eq!(text(|text| percentiles(text, "lat", &summary([5]).percentiles)), "");
    }

    #[test]
    fn a_class_has_what_is_below_its_name_and_above_the_one_before() {
        let of = |ns: &[u64]| text(|text| classes(text, &histogram(ns, 1.0)));
        assert_eq!(of(&[0, 1, 2, 999]), "  lat (nsec)   : 2=50.00%, 4=25.00%, 1000=25.00%\n");
        assert_eq!(of(&[999, 1000, 1999, 2000]), "  lat (nsec)   : 1000=25.00%\n  lat (usec)   : 2=50.00%, 4=25.00%\n");
        assert_eq!(of(&[1_990_000, 2_100_000_000]), "  lat (msec)   : 2=50.00%, >=2000=50.00%\n");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn a_bucket_across_the_end_of_a_class_counts_where_its_middle_is() {
        // Its end is in the lower half.
        let bucket = histogram(&[250_000], 1.0).buckets[0];
        assert_eq!((bucket.lower_ns, bucket.upper_ns), (249_984, 250_112));
        assert_eq!(text(|text| classes(text, &histogram(&[249_990], 1.0))), "  lat (usec)   : 500=100.00%\n");
        assert_eq!(text(|text| classes(text, &histogram(&[249_980], 1.0))), "  lat (usec)   : 250=100.00%\n");
    }

    #[test]
    fn five_classes_are_in_a_line_and_what_is_rare_is_not_nothing() {
        let mut ns = vec![1; 100_000];
        ns.extend([3, 9, 19, 49, 99]);
        let text = text(|text| classes(text, &histogram(&ns, 1.0)));
        assert_eq!(
            text,
            "  lat (nsec)   : 2=100.00%, 4=0.01%, 10=0.01%, 20=0.01%, 50=0.01%\n  lat (nsec)   : 100=0.01%\n"
        );
    }
}
