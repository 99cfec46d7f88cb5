//! How many commands were outstanding, and how many were handed over or completed at once, in fio's classes.

use std::fmt::{self, Write};

use crate::report::result::Point;

/// A number of commands, and how often it was seen.
pub(in crate::report) type Seen = (u32, u64);

/// Least percentage that is printed, so that what is rare does not look like nothing.
const LEAST_PERCENT: f64 = 0.1;
/// Classes of depth are called by where they begin: class 2 has 2 and 3.
pub(in crate::report) const DEPTHS: [(&str, u32); 7] =
    [("1", 1), ("2", 2), ("4", 4), ("8", 8), ("16", 16), ("32", 32), (">=64", 64)];
/// Classes of batches are called by where they end: class 4 has 1 to 4. These are where they begin.
pub(in crate::report) const BATCHES: [(&str, u32); 7] =
    [("0", 0), ("4", 1), ("8", 5), ("16", 9), ("32", 17), ("64", 33), (">=64", 65)];

/// The three lines of a point; none where its depth was not looked at.
pub(super) fn write(text: &mut String, point: &Point) -> fmt::Result {
    // At depth one each command is alone, handed over alone and completed alone.
    let alone = [(1, point.latency_ns.n)];
    match (point.config.qd, &point.depth) {
        (1, _) => lines(text, &alone, &alone, &alone),
        (_, None) => Ok(()),
        (_, Some(depth)) => {
            let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let outstanding: Vec<Seen> =
                depth.outstanding.iter().map(|class| (narrow(class.lower), class.commands)).collect();
            let completed: Vec<Seen> =
                depth.completed_batch.iter().map(|class| (narrow(class.size), class.looks)).collect();
            // Every command is handed over by itself.
            lines(text, &outstanding, &alone, &completed)
        }
    }
}

/// The three lines over what was seen.
fn lines(text: &mut String, outstanding: &[Seen], submitted: &[Seen], completed: &[Seen]) -> fmt::Result {
    writeln!(text, "  IO depths    : {}", distribution(&DEPTHS, outstanding))?;
    writeln!(text, "     submit    : {}", distribution(&BATCHES, submitted))?;
    writeln!(text, "     complete  : {}", distribution(&BATCHES, completed))
}

/// The share of each class, each of which reaches up to the next. All are 0 where nothing was seen, as fio has it.
fn distribution(classes: &[(&'static str, u32)], seen: &[Seen]) -> String {
    let shares = shares(classes, seen).into_iter();
    let shares = shares.map(|(name, percent)| {
        let percent = if percent == 0.0 { 0.0 } else { percent.max(LEAST_PERCENT) };
        format!("{name}={percent:.1}%")
    });
    shares.collect::<Vec<_>>().join(", ")
}

/// The classes with their share in percent.
pub(in crate::report) fn shares(classes: &[(&'static str, u32)], seen: &[Seen]) -> Vec<(&'static str, f64)> {
    let total: u128 = seen.iter().map(|&(_, times)| u128::from(times)).sum();
    let share = |(index, &(name, from)): (usize, &(&'static str, u32))| {
        let next = classes.get(index + 1).map_or(u64::MAX, |&(_, next)| u64::from(next));
        let inside = seen.iter().filter(|&&(number, _)| number >= from && u64::from(number) < next);
        let times: u128 = inside.map(|&(_, times)| u128::from(times)).sum();
        (name, if times == 0 { 0.0 } else { 100.0 * times as f64 / total as f64 })
    };
    classes.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outstanding_command_is_all_in_the_first_class() {
        let mut text = String::new();
        lines(&mut text, &[(1, 8192)], &[(1, 8192)], &[(1, 8192)]).unwrap();
        // As fio 3.33 prints it.
        let expected = "  IO depths    : 1=100.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_depth_is_in_the_class_that_begins_at_it_or_below() {
        let seen = [(1, 1), (2, 1), (3, 1), (4, 1), (7, 1), (8, 1), (31, 1), (63, 1), (64, 1), (u32::MAX, 1)];
        assert_eq!(distribution(&DEPTHS, &seen), "1=10.0%, 2=20.0%, 4=20.0%, 8=10.0%, 16=10.0%, 32=10.0%, >=64=20.0%");
    }

    #[test]
    fn a_batch_is_in_the_class_that_ends_at_it_or_above() {
        let seen = [(0, 1), (1, 1), (4, 1), (5, 1), (8, 1), (9, 1), (16, 1), (33, 1), (64, 1), (65, 1)];
        assert_eq!(distribution(&BATCHES, &seen), "0=10.0%, 4=20.0%, 8=20.0%, 16=20.0%, 32=0.0%, 64=20.0%, >=64=10.0%");
    }

    #[test]
    fn what_is_rare_is_not_nothing_and_what_is_empty_is() {
        assert!(
            distribution(&DEPTHS, &[(1, u64::MAX), (2, 1), (8, u64::MAX)])
                .starts_with("1=50.0%, 2=0.1%, 4=0.0%, 8=50.0%")
        );
        assert_eq!(distribution(&DEPTHS, &[]), "1=0.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%");
    }
}
