//! Probe files: measurements that belong together, kept under version control and run as they are.
//!
//! Options have the names of the command line without the hyphens in front. Whether a value makes sense is decided where
//! the command line's is; here only the form is checked, so that an unknown key is found with its line and column.

use std::{collections::BTreeMap, path::Path};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor},
};

use crate::error::{Error, Result};

/// Name and version of the form.
pub const PROBE_SCHEMA: &str = "lat-probe.probe/1";

/// Option names and values, as they would be typed.
pub type Options = BTreeMap<String, String>;

/// A probe file whose form is right.
#[derive(Debug, PartialEq, Eq)]
pub struct ProbeFile {
    /// What is measured, in a line.
    pub title: String,
    /// Where the question comes from.
    pub source: Option<String>,
    /// Commands that make what the measurements need.
    pub setup: Vec<String>,
    /// The options of each measurement, those for all of them included.
    pub measurements: Vec<Options>,
}

impl ProbeFile {
    /// Reads a file; `knows` tells the options that a measurement can have.
    ///
    /// # Errors
    /// [`Error::Usage`] with file, line and column.
    pub fn read(path: &Path, knows: &dyn Fn(&str) -> bool) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::call(path.display().to_string(), "read", source, ""))?;
        Self::parse(&text, knows).map_err(|why| Error::Usage(format!("{}: {why}", path.display())))
    }

    fn parse(text: &str, knows: &dyn Fn(&str) -> bool) -> std::result::Result<Self, String> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let file = FileSeed { knows }.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
        deserializer.end().map_err(|error| error.to_string())?;
        Ok(file)
    }
}

struct FileSeed<'a> {
    knows: &'a dyn Fn(&str) -> bool,
}

impl<'de> DeserializeSeed<'de> for FileSeed<'_> {
    type Value = ProbeFile;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<ProbeFile, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileSeed<'_> {
    type Value = ProbeFile;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "an object with schema, title, source, setup, defaults and measurements")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<ProbeFile, A::Error> {
        let (mut schema, mut title, mut source) = (None, None, None);
        let (mut setup, mut defaults, mut measurements) = (Vec::new(), Options::new(), Vec::new());
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("the key '{key}' is there twice")));
            }
            match key.as_str() {
                "schema" => {
                    let name = map.next_value::<String>()?;
                    if name != PROBE_SCHEMA {
                        return Err(A::Error::custom(format!(
                            "schema '{name}' is not known here, only {PROBE_SCHEMA}"
                        )));
                    }
                    schema = Some(name);
                }
                "title" => title = Some(map.next_value()?),
                "source" => source = map.next_value()?,
                "setup" => setup = map.next_value()?,
                "defaults" => defaults = map.next_value_seed(OptionsSeed { knows: self.knows })?,
                "measurements" => measurements = map.next_value_seed(ListSeed { knows: self.knows })?,
                _ => return Err(A::Error::custom(format!("unknown key '{key}'"))),
            }
            seen.push(key);
        }
        schema.ok_or_else(|| A::Error::missing_field("schema"))?;
        if measurements.is_empty() {
            return Err(A::Error::custom("there are no measurements"));
        }
        for measurement in &mut measurements {
            for (name, value) in &defaults {
                measurement.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        Ok(ProbeFile { title: title.ok_or_else(|| A::Error::missing_field("title"))?, source, setup, measurements })
    }
}

struct ListSeed<'a> {
    knows: &'a dyn Fn(&str) -> bool,
}

impl<'de> DeserializeSeed<'de> for ListSeed<'_> {
    type Value = Vec<Options>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Vec<Options>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_> {
    type Value = Vec<Options>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of measurements")
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Vec<Options>, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element_seed(OptionsSeed { knows: self.knows })? {
            all.push(one);
        }
        Ok(all)
    }
}

struct OptionsSeed<'a> {
    knows: &'a dyn Fn(&str) -> bool,
}

impl<'de> DeserializeSeed<'de> for OptionsSeed<'_> {
    type Value = Options;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Options, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OptionsSeed<'_> {
    type Value = Options;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object of options as on the command line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Options, A::Error> {
        let mut options = Options::new();
        while let Some(name) = map.next_key::<String>()? {
            if !(self.knows)(&name) {
                return Err(A::Error::custom(format!("unknown option '{name}'")));
            }
            let value = map.next_value::<Value>()?;
            if options.insert(name.clone(), value.0).is_some() {
                return Err(A::Error::custom(format!("the option '{name}' is there twice")));
            }
        }
        Ok(options)
    }
}

/// A value as it would be typed: a text, a whole number, true, or a list of the first two.
struct Value(String);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a text, a whole number, true or false, or a list of texts and numbers")]
        enum Typed {
            Text(String),
            Number(u64),
            Switch(bool),
            List(Vec<Typed>),
        }
        fn typed(value: Typed) -> String {
            match value {
                Typed::Text(text) => text,
                Typed::Number(number) => number.to_string(),
                Typed::Switch(on) => on.to_string(),
                Typed::List(list) => list.into_iter().map(typed).collect::<Vec<_>>().join(","),
            }
        }
        Typed::deserialize(deserializer).map(|value| Self(typed(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<ProbeFile, String> {
        ProbeFile::parse(text, &|name| ["engine", "bs", "count", "verify"].contains(&name))
    }

    const HEAD: &str = r#""schema": "lat-probe.probe/1", "title": "t""#;

    #[test]
    fn defaults_go_to_every_measurement_that_does_not_say_otherwise() {
        let text = format!(
            r#"{{ {HEAD}, "defaults": {{ "bs": ["4k", 512], "count": 10 }},
                "measurements": [ {{ "engine": "psync", "verify": true }}, {{ "engine": "sg", "count": 20 }} ] }}"#
        );
        let file = parse(&text).unwrap();
        let options =
            |index: usize| file.measurements[index].iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>();
        assert_eq!(options(0), ["bs=4k,512", "count=10", "engine=psync", "verify=true"]);
        assert_eq!(options(1), ["bs=4k,512", "count=20", "engine=sg"]);
    }

    #[test]
    fn what_is_wrong_is_found_with_line_and_column() {
        let wrong = |rest: &str| parse(&format!("{{ {HEAD},\n{rest} }}")).unwrap_err();
        let unknown = wrong("\"measurements\": [\n { \"engin\": \"psync\" } ]");
        assert!(unknown.contains("unknown option 'engin' at line 3 column"), "{unknown}");
        assert!(wrong("\"color\": 1").contains("unknown key 'color' at line 2"));
        assert!(wrong("\"measurements\": [ { \"bs\": 1.5 } ]").contains("expected a text, a whole number"));
        assert!(wrong("\"measurements\": [ { \"bs\": 1, \"bs\": 2 } ]").contains("twice"));
        assert!(wrong("\"title\": \"again\"").contains("twice"));
        assert!(wrong("\"measurements\": []").contains("no measurements"));
        assert!(parse("").unwrap_err().contains("line 1"));
        assert!(parse("[]").unwrap_err().contains("an object with schema"));
        assert!(parse(r#"{ "schema": "lat-probe.probe/2" }"#).unwrap_err().contains("not known here"));
        assert!(parse(r#"{ "title": "t", "measurements": [ {} ] }"#).unwrap_err().contains("schema"));
        assert!(parse(&format!("{{ {HEAD}, \"measurements\": [ {{}} ] }} x")).unwrap_err().contains("trailing"));
    }
}
