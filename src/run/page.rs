//! `lat-probe report`: stored results and comparisons on one page.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::compare::{self, Judging};
use crate::{
    error::{Error, Result},
    report::{
        OutputFile,
        comparison::{COMPARISON_SCHEMA, Comparison},
        page::{Page, Shown, ShownComparison, Timeline, places},
        read,
        result::SCHEMA,
        samples,
        series::{SERIES_SCHEMA, Series},
        stored::{Stored, StoredPoint},
    },
    units::format_bytes,
};

/// Files above this are slow in a browser.
const LARGE_BYTES: usize = 5 << 20;

/// Writes the page; what it returns is for the person who asked for it.
///
/// # Errors
/// [`Error::Usage`] with the file and what is wrong with it; [`Error::Output`].
pub fn page(files: &[PathBuf], judging: &Judging, output: &Path) -> Result<String> {
    if files.iter().any(|file| file == output) {
        return Err(Error::Usage(format!("--output {}: is one of the results", output.display())));
    }
    let sink = OutputFile::open(output)?;
    let mut page = Page::default();
    let mut results = Vec::new();
    for file in files {
        let origin = file.display().to_string();
        let document = read::parse(file, &origin)?;
        let of_schema = |schema| document["schema"] == schema;
        if of_schema(COMPARISON_SCHEMA) {
            page.comparisons.push(ShownComparison { comparison: Comparison::of(&origin, document)?, origin });
        } else if of_schema(SERIES_SCHEMA) {
            let sides = Series::of(&origin, document)?.sides(&origin)?;
            page.comparisons.push(ShownComparison { comparison: compare::of_sides(&sides, judging)?, origin });
        } else {
            let stored = Stored::of(&origin, as_result(&origin, &document)?)?;
            results.push((file, document, stored));
        }
    }
    let places = places(results.iter().map(|(_, _, stored)| stored.points.len()).sum());
    for (file, document, stored) in results {
        let timelines = stored.points.iter().map(|point| timeline(file, point, places, &mut page.notes));
        let timelines = timelines.collect::<Result<_>>()?;
        page.results.push(Shown { origin: file.display().to_string(), document, stored, timelines });
    }
    let text = page.render();
    sink.commit(text.as_bytes())?;
    let mut said: String = page.notes.iter().map(|note| format!("{note}\n")).collect();
    let large = if text.len() > LARGE_BYTES { ": it may be slow in a browser; give it fewer points" } else { "" };
    said.push_str(&format!("{}: {}{large}\n", output.display(), format_bytes(text.len() as u64)));
    Ok(said)
}

/// A document that is none of the three has the schemas named that would do.
fn as_result(origin: &str, document: &Value) -> Result<Value> {
    read::require_schema(origin, document, SCHEMA).map_err(|error| match document["schema"].as_str() {
        Some(_) => Error::Usage(format!("{error}, {COMPARISON_SCHEMA} and {SERIES_SCHEMA}")),
        None => error,
    })?;
    Ok(document.clone())
}

/// From the samples where there are some; a file of them that has gone is told, one that is damaged is an error.
fn timeline(result: &Path, point: &StoredPoint, places: usize, notes: &mut Vec<String>) -> Result<Timeline> {
    let Some(name) = &point.samples_file else { return Ok(Timeline::Windows) };
    match samples::find(result, name) {
        Ok(path) => Timeline::of(samples::read(&path)?, point, places, &path.display().to_string()),
        Err(error) => {
            notes.push(format!("{error}: its timeline is that of the result's windows"));
            Ok(Timeline::Windows)
        }
    }
}
