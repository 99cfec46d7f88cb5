//! Comparisons as a page shows them, in the words of the report for a terminal.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{ShownComparison, tables};
use crate::report::{
    comparison::{Comparison, PointComparison},
    comparison_text::{base_of, basis, cost, gate, interval, method, signed_ns, signed_percent},
};

/// The shift functions, a chart for each point.
pub(super) fn charts(shown: &ShownComparison) -> Vec<Value> {
    let points = shown.comparison.points.iter();
    points
        .map(|point| {
            let sides = point.sides.iter().filter(|side| !side.shift_function.is_empty());
            json!({
                "name": point.title(),
                "sides": sides.map(|side| json!({
                    "name": side.name,
                    "shifts": side.shift_function.iter().map(|at| {
                        json!([at.percentile, at.shift.shift_ns, at.shift.low_ns, at.shift.high_ns])
                    }).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            })
        })
        .collect()
}

/// All comparisons, their verdict first.
pub(super) fn tables(comparisons: &[ShownComparison]) -> Markup {
    let mut charts = 0..;
    html! {
        @for ShownComparison { origin, comparison } in comparisons {
            h3 { (origin) }
            (verdict(comparison))
            @if !comparison.warnings.is_empty() {
                div.warnings { ul { @for warning in &comparison.warnings { li { (warning.message) " " code { (warning.code) } } } } }
            }
            @for held in &comparison.gates { p.bad[!held.passed] { "Limit " (gate(held)) } }
            @for over_sizes in &comparison.costs { p { "Cost: " (cost(over_sizes)) } }
            @for point in &comparison.points {
                h4 { (point.title()) }
                (figures(point))
                div data-shift=(charts.next().unwrap_or_default()) {
                    (tables::chart("shift", "Shift at each percentile, with its interval; above 0 is slower", &[
                        ("log", "Stretch small shifts", false),
                    ]))
                }
            }
            @if !comparison.differences.is_empty() { (differences(comparison)) }
        }
    }
}

fn verdict(comparison: &Comparison) -> Markup {
    let sides: Vec<_> = comparison.sides.iter().map(|side| format!("{} ({} rounds)", side.name, side.rounds)).collect();
    html! {
        p.verdict {
            @match comparison.verdict {
                Some(verdict) => { "Verdict: " strong { (verdict.name()) } " (" (basis(&comparison.method)) ")" },
                None => "No verdict: there is one side.",
            }
        }
        p { (sides.join(", ")) ". The first is the base; " (method(&comparison.method)) "." }
    }
}

fn figures(point: &PointComparison) -> Markup {
    let Some((first, others)) = point.sides.split_first() else { return html! {} };
    html! {
        div.wide { table {
            thead { tr {
                th scope="col" { "figure" } th.number scope="col" { (first.name) } th scope="col" { "side" }
                th.number scope="col" { "median" } th.number scope="col" { "shift" } th.number scope="col" { "%" }
                th scope="col" { "interval" } th.number scope="col" { "visible" } th scope="col" { "verdict" }
            } }
            tbody {
                @for side in others {
                    @for figure in &side.figures {
                        @if let Some((base, against)) = base_of(first, figure) {
                            tr {
                                th scope="row" { (base.figure.name()) } td.number { (tables::time(Some(base.median_ns))) }
                                td { (side.name) } td.number { (tables::time(Some(figure.median_ns))) }
                                td.number { (signed_ns(against.shift.shift_ns)) }
                                td.number { (against.shift_percent.map_or("–".into(), signed_percent)) }
                                td { (interval(against)) } td.number { (tables::time(against.shift.least_visible_ns)) }
                                td { (against.verdict.name()) }
                            }
                        }
                    }
                }
            }
        } }
    }
}

fn differences(comparison: &Comparison) -> Markup {
    html! {
        details {
            summary { "What is not the same on all sides" }
            div.wide { table.facts {
                thead { tr { th scope="col" { "key" } @for side in &comparison.sides { th scope="col" { (side.name) } } } }
                tbody { @for difference in &comparison.differences {
                    tr { th scope="row" { (difference.key) } @for values in &difference.values { td { (values.join(", ")) } } }
                } }
            } }
        }
    }
}
