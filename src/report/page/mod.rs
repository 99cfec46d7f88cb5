//! One page for a browser that holds all it needs: tables, which are complete without scripts, and charts by uPlot.
//!
//! The page loads nothing. Its policy forbids it to, and lets run only the two scripts that stand in it, by their hashes.
//! `uplot/` is the npm package uplot, unchanged: CONTRIBUTING.md says how to renew it.

mod charts;
mod comparison;
mod tables;
mod timeline;

#[cfg(test)]
mod tests;

use base64::{Engine, prelude::BASE64_STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    comparison::Comparison,
    stored::{Stored, StoredPoint},
};

pub use timeline::Timeline;

const UPLOT: &str = include_str!("uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("uplot/LICENSE");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// Places on all timelines together, and about as many rows of all distributions. A page of them stays below 5 MB, and a screen
/// has fewer.
const PLACES: usize = 60_000;

/// A point has between so many places on its timeline, or rows of its distribution, and so many.
const PLACES_OF_POINT: std::ops::RangeInclusive<usize> = 50..=10_000;

/// A result, with what the page shows of it beside its figures.
#[derive(Debug)]
pub struct Shown {
    /// Its file.
    pub origin: String,
    /// The whole document.
    pub document: Value,
    /// What was read of it.
    pub stored: Stored,
    /// The timeline of each point.
    pub timelines: Vec<Timeline>,
}

impl Shown {
    fn points(&self) -> impl Iterator<Item = (&StoredPoint, &Timeline)> {
        self.stored.points.iter().zip(&self.timelines)
    }
}

/// A comparison, with its file.
#[derive(Debug)]
pub struct ShownComparison {
    /// Its file.
    pub origin: String,
    /// What was read, or made of a series.
    pub comparison: Comparison,
}

/// Everything on a page.
#[derive(Debug, Default)]
pub struct Page {
    /// Results, in the order given.
    pub results: Vec<Shown>,
    /// Comparisons, in the order given.
    pub comparisons: Vec<ShownComparison>,
    /// What could not be shown as it should, in words.
    pub notes: Vec<String>,
}

/// How many places on its timeline, and rows of its distribution, each of `points` may have.
pub fn places(points: usize) -> usize {
    (PLACES / points.max(1)).clamp(*PLACES_OF_POINT.start(), *PLACES_OF_POINT.end())
}

impl Page {
    /// The page as HTML.
    pub fn render(&self) -> String {
        let most = places(self.points().count());
        let data = json!({
            "points": self.results.iter().flat_map(|shown| charts::points(shown, most)).collect::<Vec<_>>(),
            "comparisons": self.comparisons.iter().flat_map(comparison::charts).collect::<Vec<_>>(),
        });
        let style = format!("{UPLOT_STYLE}\n{STYLE}");
        let scripts = [UPLOT, SCRIPT];
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy(&style, &scripts));
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title()) " – lat-probe" }
                    style { (PreEscaped(style)) }
                }
                body {
                    (self.body())
                    script id="data" type="application/json" { (PreEscaped(inert(&data.to_string()))) }
                    @for script in scripts { script { (PreEscaped(script)) } }
                }
            }
        };
        page.into_string()
    }

    /// All points, each with its result.
    fn points(&self) -> impl Iterator<Item = (&Shown, &StoredPoint, &Timeline)> {
        let of = |shown| Shown::points(shown).map(move |(point, timeline)| (shown, point, timeline));
        self.results.iter().flat_map(of)
    }

    fn title(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for name in self.results.iter().map(tables::name).chain(self.comparisons.iter().map(|it| it.origin.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.as_slice() {
            [first, .., last] if names.len() > 3 => format!("{first} … {last}"),
            _ => names.join(", "),
        }
    }

    fn body(&self) -> Markup {
        let mut tabs: Vec<(&str, &str, Markup)> = Vec::new();
        if !self.results.is_empty() {
            tabs.push(("summary", "Summary", tables::summary(self)));
            tabs.push(("timeline", "Timeline", tables::timeline(self)));
            tabs.push(("instrument", "Instrument", tables::instrument(self)));
        }
        if !self.comparisons.is_empty() {
            tabs.push(("comparison", "Comparison", comparison::tables(&self.comparisons)));
        }
        html! {
            header {
                h1 { (self.title()) }
                button #theme type="button" hidden { "Dark" }
            }
            noscript { p { "Charts need JavaScript. The tables below are complete without." } }
            div #tabs role="tablist" aria-label="Parts of the report" hidden {
                @for (id, name, _) in &tabs {
                    button id={ "tab-" (id) } type="button" role="tab" aria-controls=(id) { (name) }
                }
            }
            main {
                @for (id, name, content) in &tabs {
                    section id=(id) role="tabpanel" aria-label=(name) tabindex="-1" {
                        h2 { (name) }
                        (content)
                    }
                }
            }
            footer {
                p { "Written by lat-probe " (env!("CARGO_PKG_VERSION")) ". Charts: uPlot." }
                details { summary { "uPlot's licence" } pre { (UPLOT_LICENSE) } }
            }
        }
    }
}

/// Nothing is loaded from anywhere, and nothing runs but what stands in the page.
fn policy(style: &str, scripts: &[&str]) -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    let scripts: Vec<_> = scripts.iter().map(|script| hash(script)).collect();
    format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}; script-src {}",
        hash(style),
        scripts.join(" ")
    )
}

/// JSON that no text in it can end the script element of: within strings `<` may be written so.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}
