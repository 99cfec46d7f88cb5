//! What is known of the slowest commands, in sentences.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use super::result::Point;
use crate::{
    host::Cause,
    stats::{Outlier, Tail},
    units::format_count,
};

/// Writes what the machine alone would have done to the tail, and what happened around the slowest commands.
pub(super) fn write(text: &mut String, point: &Point) -> fmt::Result {
    if let Some(tail) = &point.tail {
        write_gaps(text, tail)?;
    }
    if let Some(sentence) = causes(&point.outliers) {
        let line = if point.tail.is_some() { "" } else { "\n" };
        writeln!(text, "{line}{sentence}")?;
    }
    Ok(())
}

fn write_gaps(text: &mut String, tail: &Tail) -> fmt::Result {
    let (commands, percentile) = (format_count(tail.commands), tail.percentile);
    let explained = 100.0 * tail.explained_fraction;
    write!(text, "\nOf the {commands} commands above p{percentile}, this CPU's own gaps as heard before the run ")?;
    if tail.gaps_heard == 0 {
        writeln!(text, "explain none (one gap would be {:.0} %).", 100.0 * tail.resolution_fraction)
    } else {
        writeln!(text, "would make {explained:.0} % by themselves.")
    }
}

/// What may have caused the slowest commands; `None` where nobody looked.
fn causes(outliers: &[Outlier]) -> Option<String> {
    let watched = outliers.iter().filter(|outlier| outlier.nearby.is_some());
    let mut counts: BTreeMap<Option<Cause>, usize> = BTreeMap::new();
    watched.for_each(|outlier| *counts.entry(outlier.cause).or_default() += 1);
    let all: usize = counts.values().sum();
    let unexplained = counts.remove(&None).unwrap_or(0);
    if all == 0 {
        return None;
    }
    if unexplained == all {
        return Some(format!("Nothing that was counted explains the {all} slowest."));
    }
    let mut parts: Vec<String> =
        counts.iter().filter_map(|(cause, count)| Some(format!("{} {count}", cause.as_ref()?.name()))).collect();
    if unexplained > 0 {
        parts.push(format!("nothing that was counted {unexplained}"));
    }
    Some(format!("What may have caused the {all} slowest: {}.", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Nearby;

    fn outlier(nearby: bool, cause: Option<Cause>) -> Outlier {
        let nearby = nearby.then(Nearby::default);
        Outlier { index: 0, job: None, at_ns: 0.0, latency_ns: 1.0, nearby, cause }
    }

    #[test]
    fn causes_are_counted_and_what_nothing_explains_is_said() {
        let of = |list: &[(bool, Option<Cause>)]| {
            causes(&list.iter().map(|&(nearby, cause)| outlier(nearby, cause)).collect::<Vec<_>>())
        };
        let (waited, interrupted) = (Some(Cause::RunQueueWait), Some(Cause::Interrupt));
        let all = of(&[(true, interrupted), (true, waited), (true, None), (true, waited)]);
        let expected = "What may have caused the 4 slowest: run-queue-wait 2, interrupt 1, nothing that was counted 1.";
        assert_eq!(all.as_deref(), Some(expected));
        assert_eq!(of(&[(true, None)]).as_deref(), Some("Nothing that was counted explains the 1 slowest."));
        assert_eq!((of(&[(false, None)]), of(&[])), (None, None));
    }
}
