//! Drawings of every width, of ordinary distributions and of the worst ones.

use super::*;
use crate::stats::histogram;
use proptest::prelude::*;

fn canvas(columns: usize) -> Canvas {
    Canvas { columns, unicode: true, color: false }
}

fn drawn(latencies: &[u64], floor_ns: Option<f64>, canvas: &Canvas) -> String {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    draw(&Summary::of_sorted(&sorted, 1.0), &histogram(&sorted, 1.0), floor_ns, canvas)
}

/// The counts of the rows of a drawing, in order.
fn counts(text: &str) -> Vec<u64> {
    let rows = text.lines().skip(1).take_while(|line| !line.is_empty());
    let count = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let at = if words[0] == "below" || words[0] == "above" { 3 } else { 2 };
        words[at].replace(',', "").parse().unwrap()
    };
    rows.map(count).collect()
}

/// A narrow body with a tail, as a device has it.
fn ordinary() -> Vec<u64> {
    let body = (0..9900u64).map(|n| 10_000 + n * n * 100 / 9900 / 9900);
    body.chain((0..99).map(|n| 12_000 + 400 * n)).chain([3_000_000]).collect()
}

/// Name and latencies.
fn worst() -> Vec<(&'static str, Vec<u64>)> {
    let many = |value, count| std::iter::repeat_n(value, count);
    vec![
        ("one", vec![7]),
        ("one of zero", vec![0]),
        ("two", vec![0, u64::MAX]),
        ("all equal", vec![137_215; 5000]),
        ("all zero", vec![0; 5000]),
        ("zero and more", (0..2000).collect()),
        ("the largest", vec![u64::MAX; 2000]),
        ("everything", (0..6400u64).map(|n| 1 << (n / 100)).collect()),
        ("one slow", many(100, 1_000_000).chain([1_000_000_000]).collect()),
        ("one fast", many(1_000_000_000, 5000).chain([1]).collect()),
        ("two modes", many(10_000, 4000).chain(many(90_000_000, 4000)).collect()),
        ("far from zero", (0..5000).map(|n| 1_000_000_000 + n).collect()),
        ("ordinary", ordinary()),
    ]
}

fn without_colors(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once('m').unwrap().1)
}

#[test]
fn no_line_is_too_long_and_no_sample_is_left_out() {
    for (name, latencies) in worst() {
        let mut sorted = latencies.clone();
        sorted.sort_unstable();
        let (summary, histogram) = (Summary::of_sorted(&sorted, 1.0), histogram(&sorted, 1.0));
        for columns in 40..=200 {
            for (unicode, color) in [(true, true), (true, false), (false, true), (false, false)] {
                let text = draw(&summary, &histogram, Some(20.0), &Canvas { columns, unicode, color });
                assert_eq!(text.contains('\x1b'), color, "{name}:\n{text}");
                let text = without_colors(&text);
                let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(longest <= columns, "{name}: {longest} instead of {columns} columns:\n{text}");
                assert!(text.lines().all(|line| line.trim_end() == line), "{name}:\n{text}");
                assert!(unicode || text.is_ascii(), "{name}:\n{text}");
                assert_eq!(counts(&text).iter().sum::<u64>(), latencies.len() as u64, "{name}:\n{text}");
                assert!(counts(&text).len() <= 15, "{name}:\n{text}");
            }
        }
    }
}

#[test]
fn without_samples_or_room_there_is_nothing() {
    assert_eq!(drawn(&[], Some(1.0), &canvas(80)), "");
    assert_eq!(drawn(&ordinary(), None, &canvas(39)), "");
    assert_ne!(drawn(&ordinary(), None, &canvas(40)), "");
}

#[test]
fn a_body_and_its_tail_are_both_seen() {
    let text = drawn(&ordinary(), None, &canvas(80));
    let counts = counts(&text);
    assert!((8..=12).contains(&counts.len()), "{text}");
    assert!(counts.iter().all(|&count| count < 7000), "{text}");
    assert!(text.contains("rows widen ×") && text.lines().nth(counts.len()).unwrap().starts_with("above "), "{text}");
}

#[test]
fn an_even_distribution_has_even_rows_with_round_edges() {
    let latencies: Vec<u64> = (0..10_000u64).map(|n| 1000 + n / 10).collect();
    let text = drawn(&latencies, None, &canvas(80));
    let starts: Vec<_> = text.lines().skip(1).take(10).map(|line| line.trim().split("  ").next().unwrap()).collect();
    let expected: Vec<_> = (10..20).map(|hundreds| format!("{hundreds}00 ns")).collect();
    assert_eq!(starts, expected, "{text}");
    assert_eq!(counts(&text), [1000; 10], "{text}");
    assert!(!text.contains("widen"), "{text}");
}

#[test]
fn a_few_of_millions_have_the_smallest_mark_and_none_has_none() {
    let mut latencies = vec![100; 1_000_000];
    latencies.extend([102, 1_000_000_000]);
    latencies.extend([108; 2000]);
    let text = drawn(&latencies, None, &canvas(80));
    let row = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
    assert!(row("102.0 ns").ends_with("<0.01 %  ▏"), "{text}");
    assert!(row("103.0 ns").ends_with("0 %"), "{text}");
    assert!(row("above ").ends_with("1   <0.01 %  ▏"), "{text}");
    let ascii = drawn(&latencies, None, &Canvas { unicode: false, ..canvas(80) });
    assert!(ascii.contains("<0.01 %  #\n") && ascii.contains("99.80 %  ####"), "{ascii}");
}

#[test]
fn marks_that_fall_together_share_a_letter_and_the_legend_has_all() {
    let text = drawn(&ordinary(), Some(20_000.0), &canvas(80));
    let lines: Vec<_> = text.lines().collect();
    let [.., axis, legend, more] = lines.as_slice() else { panic!("{text}") };
    assert!(axis.starts_with("10.00 µs ├a─") && axis.ends_with("─┤ 3000 µs"), "{text}");
    let marks: String = axis.split(['├', '┤']).nth(1).unwrap().chars().filter(char::is_ascii).collect();
    assert_eq!(marks, "abc", "{text}");
    let named = "a p50 10.03 µs, p90 10.08 µs, p99 10.10 µs   b floor 20.00 µs   c p99.9 47.60 µs";
    assert_eq!((*legend, *more), (named, "(log axis)"), "{text}");
    let far = drawn(&ordinary(), Some(9_999.0), &canvas(80));
    assert!(!far.contains("floor"), "{far}");
}

#[test]
fn a_legend_that_is_too_long_goes_on_below() {
    let text = drawn(&ordinary(), Some(20_000.0), &canvas(40));
    let legend = ["a p50 10.03 µs, p90 10.08 µs,", "p99 10.10 µs   b floor 20.00 µs", "c p99.9 47.60 µs   (log axis)"];
    assert!(text.ends_with(&format!("┤ 3000 µs\n{}\n", legend.join("\n"))), "{text}");
}

proptest! {
    #[test]
    fn whatever_was_measured_is_drawn_whole(
        latencies in proptest::collection::vec((0u32..64, 0u64..1 << 20, 1usize..300), 1..40), columns in 40usize..200,
    ) {
        let latencies: Vec<u64> = latencies
            .iter()
            .flat_map(|&(shift, value, count)| std::iter::repeat_n(value.wrapping_shl(shift), count))
            .collect();
        let text = drawn(&latencies, Some(30.0), &canvas(columns));
        prop_assert_eq!(counts(&text).iter().sum::<u64>(), latencies.len() as u64, "{}", text);
        prop_assert!(text.lines().all(|line| line.chars().count() <= columns), "{}", text);
    }
}
