//! What the machine does to a thread that only reads the clock: the gaps are time that any command could have lost.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{schema::LARGEST_INTEGER, timing::Counter};

/// A gap of this length, beyond what a read takes, is more than any sequence of instructions between two reads needs.
const GAP_NS: f64 = 1000.0;

/// Classes of gap lengths, each twice the one before: 1 µs to 8 s.
const CLASSES: usize = 24;

/// Gaps in a spin on the measuring processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Time listened, ns.
    #[schemars(range(min = 0))]
    pub window_ns: f64,
    /// Gaps of more than 1 µs beyond the cost of a read, between two reads of the clock.
    pub gaps_over_1us: u64,
    /// The longest gap, the time between two reads less the cost of a read, ns.
    #[schemars(range(min = 0))]
    pub max_gap_ns: f64,
    /// Share of the window that such gaps took.
    #[schemars(range(min = 0, max = 1))]
    pub stolen_fraction: f64,
    /// Gaps by length: each row is a lower bound in ns and how many were from there up to twice that; lengths without
    /// gaps are left out.
    #[schemars(schema_with = "rows_of_gaps")]
    pub gaps: Vec<(f64, u64)>,
}

fn rows_of_gaps(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "Lower bound in ns, count.",
            "type": "array",
            "prefixItems": [
                { "type": "number", "minimum": GAP_NS as u64 },
                { "type": "integer", "minimum": 1, "maximum": LARGEST_INTEGER }
            ],
            "minItems": 2,
            "maxItems": 2
        }
    })
}

/// Reads the clock for `window` on the calling thread and counts the gaps beyond the cost of a read;
/// `ticks_per_ns` must be above 0.
pub fn listen<C: Counter>(window: Duration, ticks_per_ns: f64, read_cost_ns: f64) -> Noise {
    // Rounded up: a window that is asked for is not a tick shorter.
    let window_ticks = (window.as_nanos() as f64 * ticks_per_ns).ceil() as u64;
    let gap_ticks = (GAP_NS * ticks_per_ns) as u64;
    let read_ticks = (read_cost_ns * ticks_per_ns) as u64;
    let first = C::now();
    let (mut previous, mut longest, mut stolen) = (first, 0u64, 0u64);
    let mut classes = [0u64; CLASSES];
    while previous.wrapping_sub(first) < window_ticks {
        let now = C::now();
        // An unordered read may come out a few ticks early on another core; that is no gap.
        let gap = now.saturating_sub(previous).saturating_sub(read_ticks);
        longest = longest.max(gap);
        if gap > gap_ticks {
            classes[((gap / gap_ticks.max(1)).ilog2() as usize).min(CLASSES - 1)] += 1;
            stolen += gap;
        }
        previous = now.max(previous);
    }
    let window_ns = previous.wrapping_sub(first) as f64 / ticks_per_ns;
    Noise {
        window_ns,
        gaps_over_1us: classes.iter().sum(),
        max_gap_ns: longest as f64 / ticks_per_ns,
        stolen_fraction: stolen as f64 / ticks_per_ns / window_ns,
        gaps: (0..)
            .zip(classes)
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| (GAP_NS * f64::from(1 << class), count))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::MonotonicRaw;

    #[test]
    fn the_window_is_kept_and_the_share_is_a_share() {
        let noise = listen::<MonotonicRaw>(Duration::from_millis(5), 1.0, 0.0);
        assert!(noise.window_ns >= 5e6, "{noise:?}");
        assert!((0.0..=1.0).contains(&noise.stolen_fraction), "{noise:?}");
        assert!(noise.max_gap_ns > 0.0);
        assert_eq!(noise.gaps.iter().map(|(_, count)| count).sum::<u64>(), noise.gaps_over_1us);
        assert!(noise.gaps.iter().all(|(lower, _)| *lower >= 1000.0 && *lower <= noise.max_gap_ns), "{noise:?}");
    }
}
