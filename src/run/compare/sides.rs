//! From what was typed to sides: files by their patterns, one round each.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    error::{Error, Result},
    report::{
        read::{Round, Side, parse},
        series::{SERIES_SCHEMA, Series},
    },
};

/// Reads the sides. `[NAME=]PATTERN` each, or the file of a series, which has several; without a name it is the label that all of its rounds have, or the pattern.
///
/// # Errors
/// [`Error::Usage`]: a pattern without files, a file that is no result, a file that comes twice.
pub(super) fn read(typed: &[String]) -> Result<Vec<Side>> {
    let mut seen = HashSet::new();
    let mut runs = Runs::default();
    let (mut sides, mut series) = (Vec::new(), 0);
    for typed in typed {
        let (name, pattern) = split(typed);
        let mut rounds = Vec::new();
        for path in files(pattern)? {
            let metadata = fs::metadata(&path).map_err(|error| Error::usage(format!("{}: {error}", path.display())))?;
            if !seen.insert((metadata.dev(), metadata.ino())) {
                let path = path.display();
                return Err(Error::usage(format!(
                    "{path}: it is named twice; a run compared with itself says nothing"
                )));
            }
            let origin = path.display().to_string();
            let document = parse(&path, &origin)?;
            if document["schema"] == SERIES_SCHEMA {
                series += 1;
                sides.extend(Series::of(&origin, document)?.sides(&origin)?);
            } else {
                runs.add(&origin, &document)?;
                rounds.push(Round::of(origin, document, None)?);
            }
        }
        if rounds.is_empty() {
            continue; // A series, which has its own sides.
        }
        sides.push(Side { control: false, name: name.unwrap_or_else(|| common_label(&rounds, pattern)), rounds });
    }
    if series > 1 {
        // Block 3 of one series is not block 3 of another.
        sides.iter_mut().flat_map(|side: &mut Side| &mut side.rounds).for_each(|round| round.block = None);
    }
    for (index, side) in sides.iter().enumerate() {
        if sides[..index].iter().any(|other| other.name == side.name) {
            let name = &side.name;
            return Err(Error::usage(format!(
                "two sides are called {name}: write NAME=FILES to tell them apart, and quote a pattern, so that the shell \
                 leaves it as it is: 'before-*.json' 'after-*.json'"
            )));
        }
    }
    Ok(sides)
}

/// The runs so far, by what no two of them share: when they began, and which commands were slow at what time.
#[derive(Default)]
struct Runs(HashMap<String, String>);

impl Runs {
    /// A copy is no second round: with enough of them any difference would be sure.
    fn add(&mut self, origin: &str, document: &Value) -> Result<()> {
        let what = format!("{} {}", document["started_at"], document["points"]);
        match self.0.insert(what, origin.to_string()) {
            Some(other) => Err(Error::usage(format!("{other} and {origin} are copies of one run, which is one round"))),
            None => Ok(()),
        }
    }
}

/// A file of that very name is meant before a side's name is.
fn split(typed: &str) -> (Option<String>, &str) {
    match typed.split_once('=') {
        Some((name, pattern)) if !name.is_empty() && !name.contains('/') && !Path::new(typed).exists() => {
            (Some(name.to_string()), pattern)
        }
        _ => (None, typed),
    }
}

fn common_label(rounds: &[Round], pattern: &str) -> String {
    let label = rounds.first().and_then(|round| round.label.clone());
    label.filter(|label| rounds.iter().all(|round| round.label.as_ref() == Some(label))).unwrap_or(pattern.to_string())
}

/// The files of a pattern, in their order. One that exists as it is typed stands for itself.
fn files(pattern: &str) -> Result<Vec<PathBuf>> {
    if Path::new(pattern).exists() {
        return Ok(vec![pattern.into()]);
    }
    let found = glob::glob(pattern).map_err(|error| Error::usage(format!("{pattern}: {error}")))?;
    let found: Vec<PathBuf> = found.filter_map(std::result::Result::ok).filter(|path| path.is_file()).collect();
    if found.is_empty() {
        return Err(Error::usage(format!("{pattern}: there is no such file")));
    }
    Ok(found)
}
