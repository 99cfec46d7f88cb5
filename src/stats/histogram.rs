//! A log-linear histogram: buckets of constant relative width, none left out.

use std::borrow::Cow;

use hdrhistogram::Histogram as Hdr;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::schema::LARGEST_INTEGER;

/// Half-open bucket of whole nanoseconds, `lower_ns` included and `upper_ns` not; written as `[lower, upper, count]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value that falls into it.
    pub lower_ns: u64,
    /// Smallest value above it.
    pub upper_ns: u64,
    /// Samples in it.
    pub count: u64,
}

/// Distribution in log-linear buckets of whole nanoseconds; only those that hold samples, in order. A bucket is at most
/// 1/1024 of its lower bound wide, or 1 ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// Each [lower_ns, upper_ns, count]: lower included, upper not.
    pub buckets: Vec<Bucket>,
}

/// Longest time that has a bucket of its own: 2^53 − 1 ns, over a hundred days.
pub(super) const HIGHEST_NS: u64 = (1 << 53) - 1;

/// Sorts latencies in ticks into buckets of nanoseconds, each rounded to the nearest one;
/// `ticks_per_ns` must be above 0.
pub fn histogram(latencies: &[u64], ticks_per_ns: f64) -> Histogram {
    // Three significant digits: HdrHistogram then keeps 1024 linear steps in each power of two.
    let Ok(mut hdr) = Hdr::<u64>::new_with_bounds(1, HIGHEST_NS, 3) else {
        return Histogram::default(); // Not reached: the bounds above are valid ones.
    };
    for &ticks in latencies {
        hdr.saturating_record((ticks as f64 / ticks_per_ns).round() as u64);
    }
    let buckets = hdr.iter_recorded().map(|step| {
        let lower_ns = hdr.lowest_equivalent(step.value_iterated_to());
        Bucket { lower_ns, upper_ns: hdr.next_non_equivalent(lower_ns), count: step.count_at_value() }
    });
    Histogram { buckets: buckets.collect() }
}

impl Serialize for Bucket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.lower_ns, self.upper_ns, self.count).serialize(serializer)
    }
}

impl JsonSchema for Bucket {
    fn schema_name() -> Cow<'static, str> {
        "Bucket".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let ns = |what: &str, largest: u64| json!({ "description": what, "type": "integer", "minimum": 0, "maximum": largest });
        json_schema!({
            "description": "[lower_ns, upper_ns, count].",
            "type": "array",
            "prefixItems": [
                ns("Smallest value in the bucket, ns.", HIGHEST_NS),
                ns("Smallest value above it, ns.", HIGHEST_NS + 1),
                { "description": "Samples in it.", "type": "integer", "minimum": 1, "maximum": LARGEST_INTEGER }
            ],
            "minItems": 3,
            "maxItems": 3
        })
    }
}

impl<'de> Deserialize<'de> for Bucket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (lower_ns, upper_ns, count) = Deserialize::deserialize(deserializer)?;
        Ok(Self { lower_ns, upper_ns, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_sample_is_in_the_bucket_that_names_it(values in proptest::collection::vec(0u64..1 << 45, 0..300)) {
            let buckets = histogram(&values, 1.0).buckets;
            prop_assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), values.len() as u64);
            prop_assert!(buckets.windows(2).all(|pair| pair[0].upper_ns <= pair[1].lower_ns));
            for bucket in buckets {
                let inside = values.iter().filter(|&&value| bucket.lower_ns <= value && value < bucket.upper_ns).count();
                prop_assert_eq!(inside as u64, bucket.count);
                prop_assert!(bucket.upper_ns - bucket.lower_ns <= 1 + bucket.lower_ns / 1024);
            }
        }
    }
}
