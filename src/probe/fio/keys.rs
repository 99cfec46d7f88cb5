//! The keys of one job while they are turned into options: each is taken once, and what is left over is known in the end.

use std::{collections::BTreeMap, time::Duration};

use super::{
    known::{self, Fate},
    parse::{Key, Place, Section},
    values,
};
use crate::{probe::Options, units::format_bytes};

pub(super) type Result<T> = std::result::Result<T, String>;

/// The keys of a job that nothing was made of yet, and what was made of the others.
pub(super) struct Keys<'a> {
    pub section: &'a Section,
    pub notes: Vec<String>,
    pub options: Options,
    left: BTreeMap<String, Key>,
}

/// Pairs of keys that set the same thing: the later one holds.
const SAME_THING: [(&str, &str); 2] = [("direct", "buffered"), ("cpus_allowed", "cpumask")];

impl<'a> Keys<'a> {
    pub fn of(section: &'a Section) -> Self {
        let (mut left, mut notes) = (BTreeMap::new(), Vec::new());
        for key in &section.keys {
            let name = known::one_name(&key.name);
            for (one, other) in SAME_THING {
                if name == one {
                    left.remove(other);
                } else if name == other {
                    left.remove(one);
                }
            }
            left.insert(name.to_string(), key.clone());
        }
        for key in left.values() {
            if let Some(unset) = &key.unset {
                notes.push(format!("{}: {}: the environment has no {unset}: it is left out", key.place, key.name));
            }
        }
        Self { section, notes, options: Options::new(), left }
    }

    pub fn place(&self) -> &'a Place {
        &self.section.place
    }

    /// Says something about a line.
    pub fn note(&mut self, place: &Place, text: &str) {
        self.notes.push(format!("{place}: {text}"));
    }

    pub fn set(&mut self, option: &str, value: impl ToString) {
        self.options.insert(option.into(), value.to_string());
    }

    pub fn set_bytes(&mut self, option: &str, bytes: u64) {
        self.set(option, format_bytes(bytes));
    }

    pub fn set_time(&mut self, option: &str, time: Duration) {
        self.set(option, values::typed_time(time));
    }

    pub fn take(&mut self, name: &str) -> Option<Key> {
        self.left.remove(name)
    }

    /// A key with its value as `parse` understands it.
    ///
    /// # Errors
    /// File, line, key, and what was expected.
    pub fn with<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T>) -> Result<Option<(T, Place)>> {
        let Some(key) = self.take(name) else { return Ok(None) };
        let Some(value) = key.value.as_deref().filter(|value| !value.is_empty()) else {
            return Err(format!("{}: {}: a value was expected behind `=`", key.place, key.name));
        };
        match parse(value) {
            Ok(value) => Ok(Some((value, key.place))),
            Err(why) => Err(format!("{}: {}: {why}", key.place, key.name)),
        }
    }

    pub fn text(&mut self, name: &str) -> Result<Option<(String, Place)>> {
        self.with(name, |text| Ok(text.to_string()))
    }

    /// A whole number, with the prefixes that hold in its section.
    pub fn number(&mut self, name: &str) -> Result<Option<(u64, Place)>> {
        self.number_of(name, |text| Some(text))
    }

    /// As [`Keys::number`], of the part of the value that `choose` finds. Where a key leaves that part out, the one before it
    /// still holds.
    pub fn number_of(&mut self, name: &str, choose: impl Fn(&str) -> Option<&str>) -> Result<Option<(u64, Place)>> {
        let says = |key: &&Key| {
            let value = key.value.as_deref().unwrap_or_default();
            known::one_name(&key.name) == name && (value.is_empty() || choose(value).is_some())
        };
        let Some(found) = self.left.get(name) else { return Ok(None) };
        let holds = if says(&found) { Some(found) } else { self.section.keys.iter().rev().find(says) };
        let Some(key) = holds.cloned() else {
            self.left.remove(name);
            return Ok(None);
        };
        self.left.insert(name.into(), key.clone());
        let text = key.value.as_deref().and_then(&choose).unwrap_or_default();
        let Some((number, place)) = self.with(name, |_| values::number(text, key.kb_base))? else { return Ok(None) };
        if values::is_ambiguous(text) {
            let read = format_bytes(number);
            self.note(
                &place,
                &format!("{name}: read as {read}, as fio's manual has it; fio takes ki for k. Write kib"),
            );
        }
        Ok(Some((number, place)))
    }

    /// A number that is at least one.
    pub fn positive(&mut self, name: &str) -> Result<Option<u64>> {
        match self.number(name)? {
            Some((0, place)) => Err(format!("{place}: {name}: at least 1 was expected, '0' was found")),
            found => Ok(found.map(|(number, _)| number)),
        }
    }

    pub fn time(&mut self, name: &str) -> Result<Option<Duration>> {
        // No time is no limit.
        let found = self.with(name, values::time)?.map(|(time, _)| time);
        Ok(found.filter(|time| !time.is_zero()))
    }

    pub fn switch(&mut self, name: &str) -> Result<Option<(bool, Place)>> {
        let Some(key) = self.take(name) else { return Ok(None) };
        match values::switch(key.value.as_deref()) {
            Ok(on) => Ok(Some((on, key.place))),
            Err(why) => Err(format!("{}: {}: {why}", key.place, key.name)),
        }
    }

    pub fn is_on(&mut self, name: &str) -> Result<bool> {
        Ok(self.switch(name)?.is_some_and(|(on, _)| on))
    }

    /// Judges the keys that nothing was made of. The content of what is written counts only if `writes`.
    ///
    /// # Errors
    /// The first key, in the order of lines, that cannot be left out.
    pub fn judge_rest(&mut self, ioengine: &str, writes: bool) -> Result<()> {
        for key in self.section.keys.clone() {
            let name = known::one_name(&key.name).to_string();
            if self.left.get(&name) != Some(&key) {
                continue; // Taken, or another one has taken its place.
            }
            self.left.remove(&name);
            let Key { name: typed, place, value, .. } = key;
            let changes = |remedy: &str| {
                Err(format!("{place}: {typed}: it changes what is measured, and is not supported. {remedy}"))
            };
            match known::fate(&name) {
                Fate::Changes(unless, _) if value.as_deref().is_some_and(|value| unless.contains(&value)) => {}
                Fate::Changes(_, remedy) => return changes(remedy),
                Fate::Content if writes => return changes("lat-probe chooses what it writes. Remove the line"),
                Fate::Missed(what) => self.note(&place, &format!("{typed}: {what}")),
                Fate::OtherEngine => return Err(format!("{place}: {typed}: ioengine={ioengine} has no such key")),
                Fate::Unknown => return Err(format!("{place}: {typed}: unknown key")),
                Fate::Harmless | Fate::Content => {}
            }
        }
        Ok(())
    }

    /// Looks over the keys of a job that measures nothing: all but unknown ones have no effect.
    ///
    /// # Errors
    /// The first key that fio does not have.
    pub fn skip_rest(&self) -> Result<()> {
        for key in &self.section.keys {
            if known::fate(known::one_name(&key.name)) == Fate::Unknown {
                return Err(format!("{}: {}: unknown key", key.place, key.name));
            }
        }
        Ok(())
    }
}
