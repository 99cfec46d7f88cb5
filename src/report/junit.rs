//! A comparison as a JUnit report, which CI servers show: one test a point and side, failed if it is slower, skipped if
//! nothing can be told; and one for each limit.

use std::fmt::Write;

use super::comparison::{Against, Comparison, Figure, Gate, PointComparison, SidePoint};
use crate::{stats::Verdict, units::format_ns};

/// Writes the report.
pub fn render(comparison: &Comparison) -> String {
    let mut cases = String::new();
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for point in &comparison.points {
        for side in point.sides.iter().skip(1) {
            for &figure in &comparison.method.judged_figures {
                let found = side.figures.iter().find(|found| found.figure == figure);
                let against = found.and_then(|found| found.against_first.as_ref());
                let verdict = against.map_or(Verdict::Inconclusive, |against| against.verdict);
                tests += 1;
                failures += usize::from(verdict == Verdict::Slower);
                skipped += usize::from(verdict == Verdict::Inconclusive);
                write_case(&mut cases, (point, side, figure), against);
            }
        }
    }
    for gate in &comparison.gates {
        tests += 1;
        failures += usize::from(!gate.passed);
        write_gate(&mut cases, gate);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"lat-probe compare\" tests=\"{tests}\" \
         failures=\"{failures}\" skipped=\"{skipped}\">\n{cases}</testsuite>\n"
    )
}

fn write_case(cases: &mut String, what: (&PointComparison, &SidePoint, Figure), against: Option<&Against>) {
    let (point, side, figure) = what;
    let (class, name) = (escaped(&side.name), escaped(&format!("{}: {}", point.title(), figure.name())));
    let inner = against.map_or("<skipped message=\"not supported by its samples\"/>".into(), outcome);
    // Writing to a String cannot fail.
    let _ = writeln!(cases, "  <testcase classname=\"{class}\" name=\"{name}\">{inner}</testcase>");
}

fn outcome(against: &Against) -> String {
    let ns = |value: Option<f64>| {
        value.map_or("–".into(), |ns| format!("{}{}", if ns < 0.0 { "−" } else { "" }, format_ns(ns.abs())))
    };
    let shift = &against.shift;
    let said = format!(
        "shift {} (from {} to {}), verdict {}",
        ns(Some(shift.shift_ns)),
        ns(shift.low_ns),
        ns(shift.high_ns),
        against.verdict.name()
    );
    match against.verdict {
        Verdict::Slower => format!("<failure message=\"{said}\"/>"),
        Verdict::Inconclusive => format!("<skipped message=\"{said}\"/>"),
        Verdict::Same | Verdict::Faster => format!("<system-out>{said}</system-out>"),
    }
}

fn write_gate(cases: &mut String, gate: &Gate) {
    let (class, limit) = (escaped(&gate.side), format_ns(gate.limit_ns));
    let name = escaped(&format!("{}: {} at most {limit}", gate.point, gate.figure.name()));
    let said = gate.value_ns.map_or("not supported by its samples".into(), format_ns);
    let inner = if gate.passed {
        format!("<system-out>{said}</system-out>")
    } else {
        format!("<failure message=\"{said}, limit {limit}\"/>")
    };
    // Writing to a String cannot fail.
    let _ = writeln!(cases, "  <testcase classname=\"{class}\" name=\"{name}\">{inner}</testcase>");
}

/// Names come from file names and labels. A character that XML does not have, such as a bell, becomes a question mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => escaped.push('?'),
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out() {
        assert_eq!(escaped("a<b>&\"c\"\u{7}\n"), "a&lt;b&gt;&amp;&quot;c&quot;??");
    }
}
