//! HdrHistogram's formats, made from the buckets of a result, which are HdrHistogram's own: values are at most 1/1024 off.
//!
//! Percentile text: `AbstractHistogram.outputPercentileDistribution` of HdrHistogram for Java. Log: its version 1.3.

use std::{
    fmt::Write,
    iter,
    time::{Duration, UNIX_EPOCH},
};

use hdrhistogram::{
    Histogram as Hdr,
    serialization::{
        V2DeflateSerializer,
        interval_log::{IntervalLogWriterBuilder, Tag},
    },
};

use super::seconds;
use crate::{
    error::{Error, Result},
    report::{
        fio::latency::middle,
        stored::{Stored, StoredPoint},
    },
};

/// Three significant digits, for which there are 2048 steps in the first bucket.
const DIGITS: u8 = 3;
const SUB_BUCKETS: u64 = 2048;
/// Lines for each halving of the distance to 100 %, as other tools have it.
const TICKS_PER_HALF: u32 = 5;

fn histogram(point: &StoredPoint) -> Result<Hdr<u64>> {
    let buckets = &point.histogram.buckets;
    let highest = buckets.iter().map(|bucket| bucket.upper_ns).max().unwrap_or(2).max(2);
    let wrong = |why: String| Error::Usage(format!("the histogram of the result: {why}"));
    let mut hdr = Hdr::new_with_bounds(1, highest, DIGITS).map_err(|error| wrong(error.to_string()))?;
    for bucket in buckets {
        hdr.record_n(middle(bucket), bucket.count).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(hdr)
}

/// The text that HdrHistogram's plotter reads; values are nanoseconds.
pub(super) fn percentiles(point: &StoredPoint) -> Result<String> {
    let hdr = histogram(point)?;
    let mut text = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut seen = 0_u64;
    for step in hdr.iter_quantiles(TICKS_PER_HALF) {
        seen = seen.saturating_add(step.count_since_last_iteration());
        let (value, quantile) = (step.value_iterated_to() as f64, step.quantile_iterated_to());
        let _ = write!(text, "{value:12.3} {quantile:2.12} {seen:10}");
        let _ = if quantile < 1.0 { writeln!(text, " {:14.2}", 1.0 / (1.0 - quantile)) } else { writeln!(text) };
    }
    // The figures at the end are exact; those that are undefined have no number.
    let figure = |value: Option<f64>| value.map_or_else(|| "NaN".into(), |value| format!("{value:.3}"));
    let latency = &point.latency_ns;
    let buckets = iter::successors(Some(SUB_BUCKETS), |covered| covered.checked_mul(2));
    let buckets = buckets.take_while(|&covered| covered <= hdr.high()).count() + 1;
    let _ = writeln!(
        text,
        "#[Mean    = {:>12}, StdDeviation   = {:>12}]\n#[Max     = {:>12}, Total count    = {:>12}]\n\
         #[Buckets = {buckets:>12}, SubBuckets     = {SUB_BUCKETS:>12}]",
        figure(latency.mean),
        figure(latency.stddev),
        figure(latency.max),
        latency.n
    );
    Ok(text)
}

/// A log with an interval for each point, one after the other as they were measured; the tag tells them apart.
pub(super) fn log(stored: &Stored) -> Result<String> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let failed = |error: &dyn std::fmt::Debug| Error::Usage(format!("the histogram of the result: {error:?}"));
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment(&format!("[lat-probe {}, values in ns]", stored.tool.version))
        .with_start_time(UNIX_EPOCH + seconds(&stored.started_at))
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut bytes, &mut serializer)
        .map_err(|error| failed(&error))?;
    let mut begin = Duration::ZERO;
    for (index, point) in stored.points.iter().enumerate() {
        let length = Duration::try_from_secs_f64(point.elapsed_ns().unwrap_or(0.0) / 1e9).unwrap_or_default();
        let name = format!("{}-{}", point.config.engine, index + 1);
        let tag = Tag::new(&name).filter(|_| stored.points.len() > 1);
        let hdr = histogram(point)?;
        writer.write_histogram(&hdr, begin, length, tag).map_err(|error| failed(&error))?;
        begin = begin.saturating_add(length);
    }
    String::from_utf8(bytes).map_err(|error| failed(&error))
}
