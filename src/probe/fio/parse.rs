//! The form of fio's job files: sections of keys, each key with its line. What a key means is not known here.

use std::{
    fmt,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    rc::Rc,
};

use super::values;

/// Most files that a job file includes, itself counted: more is a circle.
const MAX_FILES: usize = 64;

/// Most jobs of a file, and most keys of a job, those of global sections among them: what a file costs stays bounded.
const MAX_JOBS: usize = 1000;
const MAX_KEYS: usize = 1000;

/// What fio takes `k` for unless `kb_base` says otherwise.
const DEFAULT_KB_BASE: u64 = 1024;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: Rc<PathBuf>,
    line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file.display(), self.line)
    }
}

/// A key and what it is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// As it was written.
    pub name: String,
    /// Behind the equals sign; none if there was no such sign.
    pub value: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// What `k` stands for in its section, 1000 or 1024.
    pub kb_base: u64,
    /// A variable in its value that the environment does not have.
    pub unset: Option<String>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Between the brackets.
    pub name: String,
    /// Where it begins.
    pub place: Place,
    /// The keys of the global sections before it, then its own: later ones take the place of earlier ones.
    pub keys: Vec<Key>,
}

/// What a file refers to outside of itself.
pub struct Outside<'a> {
    /// The text of a file.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Processors online, for `$ncpus`.
    pub cpus: u64,
    /// Bytes of a page, for `$pagesize`.
    pub page_bytes: u64,
}

/// Reads the jobs of a file.
///
/// # Errors
/// File, line, and what was expected.
pub fn sections(path: &Path, outside: &Outside) -> Result<Vec<Section>, String> {
    let text = (outside.read)(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut parser = Parser { outside, global: Vec::new(), jobs: Vec::new(), current: None, files: 0 };
    parser.file(path, &text, false)?;
    parser.end_section()?;
    if parser.jobs.is_empty() {
        return Err(format!("{}: there is no job: a section such as [job1] was expected", path.display()));
    }
    Ok(parser.jobs)
}

struct Parser<'a> {
    outside: &'a Outside<'a>,
    global: Vec<Key>,
    jobs: Vec<Section>,
    /// The section that is being read; global ones too.
    current: Option<Section>,
    files: usize,
}

impl Parser<'_> {
    fn file(&mut self, path: &Path, text: &str, is_included: bool) -> Result<(), String> {
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(format!("{}: more than {MAX_FILES} files include each other", path.display()));
        }
        let file = Rc::new(path.to_path_buf());
        for (index, line) in text.lines().enumerate() {
            let place = Place { file: Rc::clone(&file), line: index + 1 };
            // Fio ends a line at either sign, wherever it stands, also within a value.
            let line = line.split([';', '#']).next().unwrap_or_default();
            let line = line.trim_matches(|sign: char| sign.is_whitespace() || sign.is_control());
            if line.is_empty() {
                continue;
            }
            if line.starts_with('[') {
                if is_included {
                    return Err(format!("{place}: only keys were expected: an included file begins no section"));
                }
                self.begin_section(line, place)?;
            } else {
                self.key(line, path, place)?;
            }
        }
        Ok(())
    }

    fn begin_section(&mut self, line: &str, place: Place) -> Result<(), String> {
        self.end_section()?;
        let inner = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let Some(name) = inner.filter(|name| !name.is_empty()) else {
            return Err(format!("{place}: a section name in brackets such as [job1] was expected, '{line}' was found"));
        };
        self.current = Some(Section { name: name.into(), place, keys: Vec::new() });
        Ok(())
    }

    /// Closes the section that was being read. Sizes depend on its `kb_base`, wherever in it that stands.
    fn end_section(&mut self) -> Result<(), String> {
        let Some(mut section) = self.current.take() else { return Ok(()) };
        let mut kb_base = self.global.last().map_or(DEFAULT_KB_BASE, |key| key.kb_base);
        for key in section.keys.iter().filter(|key| key.name == "kb_base") {
            kb_base = match key.value.as_deref() {
                Some("1000") => 1000,
                Some("1024") => 1024,
                other => {
                    let other = other.unwrap_or_default();
                    return Err(format!("{}: kb_base: 1000 or 1024 was expected, '{other}' was found", key.place));
                }
            };
        }
        section.keys.iter_mut().for_each(|key| key.kb_base = kb_base);
        // So fio tells them: by the beginning.
        if section.name.starts_with("global") {
            self.global.append(&mut section.keys);
        } else if self.jobs.len() >= MAX_JOBS {
            return Err(format!("{}: a file of at most {MAX_JOBS} jobs was expected", section.place));
        } else {
            let own = std::mem::take(&mut section.keys);
            section.keys = self.global.iter().cloned().chain(own).collect();
            self.jobs.push(section);
        }
        Ok(())
    }

    fn key(&mut self, line: &str, path: &Path, place: Place) -> Result<(), String> {
        if self.current.is_none() {
            return Err(format!("{place}: a section such as [global] was expected before '{line}'"));
        }
        if let Some(included) = line.strip_prefix("include").filter(|rest| rest.starts_with(char::is_whitespace)) {
            return self.include(included.trim(), path, &place);
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(format!("{place}: KEY=VALUE was expected, '{line}' was found"));
        }
        let (value, unset) = match value {
            Some(value) => {
                let (value, unset) = self.substituted(value, &place)?;
                (Some(value), unset)
            }
            None => (None, None),
        };
        let key = Key { name: name.into(), value, place, kb_base: DEFAULT_KB_BASE, unset };
        let inherited = self.global.len();
        match &mut self.current {
            Some(section) if section.keys.len() + inherited < MAX_KEYS => section.keys.push(key),
            _ => return Err(format!("{}: at most {MAX_KEYS} keys were expected, global ones among them", key.place)),
        }
        Ok(())
    }

    /// Reads a file in the place of the line that names it: from the working directory, or from beside the file that
    /// names it.
    fn include(&mut self, name: &str, path: &Path, place: &Place) -> Result<(), String> {
        let mut included = PathBuf::from(name);
        let mut text = (self.outside.read)(&included);
        if matches!(&text, Err(error) if error.kind() == ErrorKind::NotFound) {
            included = path.parent().unwrap_or(Path::new("")).join(name);
            text = (self.outside.read)(&included);
        }
        let text = text.map_err(|error| format!("{place}: include: {}: {error}", included.display()))?;
        self.file(&included, &text, true).map_err(|why| format!("{place}: include: {why}"))
    }

    /// A value with what it stands for: `${NAME}` of the environment, and fio's own words. The first variable that the
    /// environment does not have is told; fio puts nothing in its place.
    fn substituted(&self, value: &str, place: &Place) -> Result<(String, Option<String>), String> {
        let (mut text, mut rest, mut unset) = (String::new(), value, None);
        while let Some((before, behind)) = rest.split_once("${") {
            let Some((name, after)) = behind.split_once('}') else {
                return Err(format!("{place}: a closing brace was expected behind '${{{behind}'"));
            };
            text.push_str(before);
            match (self.outside.variable)(name) {
                Some(found) => text.push_str(&found),
                None => unset = unset.or(Some(name.to_string())),
            }
            rest = after;
        }
        text.push_str(rest);
        if !["$ncpus", "$pagesize", "$mb_memory"].iter().any(|word| text.contains(word)) {
            return Ok((text, unset));
        }
        let text = text.replace("$ncpus", &self.outside.cpus.to_string());
        let text = text.replace("$pagesize", &self.outside.page_bytes.to_string());
        match values::product(&text) {
            Some(number) => Ok((number.to_string(), unset)),
            None => Err(format!("{place}: $ncpus or $pagesize, times a number, was expected, '{value}' was found")),
        }
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
