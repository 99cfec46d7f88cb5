//! Values of options as they are typed.

use std::ffi::OsStr;

use clap::{
    Arg, Command,
    builder::{PossibleValue, TypedValueParser},
};

use crate::{
    engine::EngineKind,
    peer::{DEFAULT_PORT, PeerAddress},
    report::comparison::Figure,
    units::{parse_bytes, parse_count},
};

/// A parser with the values that completion offers. What it takes stays what the parser takes, other spellings included.
#[derive(Clone)]
pub(super) struct Offering<P> {
    parser: P,
    values: fn() -> Vec<PossibleValue>,
}

impl<P: TypedValueParser> TypedValueParser for Offering<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, text: &OsStr) -> Result<Self::Value, clap::Error> {
        self.parser.parse_ref(command, argument, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter()))
    }
}

type Parse<T> = fn(&str) -> std::result::Result<T, String>;

/// An engine; its names are offered, each with what it measures.
pub(super) fn engine() -> Offering<Parse<EngineKind>> {
    let values = || EngineKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.summary())).into();
    Offering { parser: parse_engine, values }
}

/// A figure of a result.
pub(super) fn figure() -> Offering<Parse<Figure>> {
    Offering { parser: parse_figure, values: || Figure::ALL.map(|figure| PossibleValue::new(figure.name())).into() }
}

/// A path MTU; which ones exist is checked later, with all that was typed.
pub(super) fn mtu() -> Offering<Parse<u64>> {
    Offering { parser: parse_bytes, values: || ["256", "512", "1024", "2048", "4096"].map(PossibleValue::new).into() }
}

pub(super) fn engine_names() -> String {
    EngineKind::ALL.map(EngineKind::name).join(", ")
}

fn parse_engine(text: &str) -> std::result::Result<EngineKind, String> {
    EngineKind::from_name(text).ok_or_else(|| format!("there is no such engine (there are: {})", engine_names()))
}

pub(super) fn parse_figure(text: &str) -> std::result::Result<Figure, String> {
    let names = || Figure::ALL.map(Figure::name).join(", ");
    Figure::named(text).ok_or_else(|| format!("{text:?} is no figure; there are {}", names()))
}

pub(super) fn parse_peer(text: &str) -> std::result::Result<PeerAddress, String> {
    PeerAddress::parse(text, DEFAULT_PORT)
}

/// A list of sizes, as a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sizes(pub Vec<u64>);

/// Most sizes of a range.
const MAX_SIZES: usize = 1000;

pub(super) fn parse_sizes(text: &str) -> std::result::Result<Sizes, String> {
    let form = "expected FROM..TO:*FACTOR or FROM..TO:+BYTES";
    let (bounds, step) = text.split_once(':').ok_or(form)?;
    let (from, to) = bounds.split_once("..").ok_or(form)?;
    let (from, to) = (parse_bytes(from)?, parse_bytes(to)?);
    let (times, plus) = match (step.strip_prefix('*'), step.strip_prefix('+')) {
        (Some(factor), _) => (parse_count(factor)?, 0),
        (_, Some(bytes)) => (1, parse_bytes(bytes)?),
        _ => return Err(form.into()),
    };
    if times == 0 || (times == 1 && plus == 0) || (from == 0 && plus == 0) {
        return Err("the sizes do not grow".into());
    }
    let next = |&size: &u64| size.checked_mul(times).and_then(|size| size.checked_add(plus));
    let sizes: Vec<_> =
        std::iter::successors(Some(from), next).take_while(|&size| size <= to).take(MAX_SIZES + 1).collect();
    match sizes.len() {
        0 => Err("the range is empty".into()),
        1..=MAX_SIZES => Ok(Sizes(sizes)),
        _ => Err(format!("the range has more than {MAX_SIZES} sizes")),
    }
}

pub(super) fn parse_meta(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_taken_and_so_are_other_spellings() {
        let command = Command::new("x");
        let parse = |text: &str| engine().parse_ref(&command, None, OsStr::new(text)).ok();
        let offered: Vec<_> = engine().possible_values().unwrap().collect();
        assert_eq!(offered.len(), EngineKind::ALL.len());
        for (value, kind) in offered.iter().zip(EngineKind::ALL) {
            assert_eq!((parse(value.get_name()), value.get_help().is_some()), (Some(kind), true));
        }
        assert_eq!(parse("io_uring"), Some(EngineKind::IoUring));
        assert_eq!(parse("io"), None);
        for value in mtu().possible_values().unwrap() {
            assert!(mtu().parse_ref(&command, None, OsStr::new(value.get_name())).is_ok());
        }
        assert_eq!(mtu().parse_ref(&command, None, OsStr::new("4k")).ok(), Some(4096));
    }

    #[test]
    fn a_range_of_sizes_has_both_its_ends() {
        let sizes = |text| parse_sizes(text).map(|sizes| sizes.0);
        assert_eq!(sizes("2..16:*2"), Ok(vec![2, 4, 8, 16]));
        assert_eq!(sizes("4k..14k:+4k"), Ok(vec![4096, 8192, 12_288]));
        assert_eq!(sizes("8..8:*2"), Ok(vec![8]));
        assert_eq!(sizes("2..8m:*2").unwrap().len(), 23);
        for text in ["2..8", "2-8:*2", "2..8:2", "8..2:*2", "2..8:*1", "2..8:+0", "0..8:*2", "1..1g:+1"] {
            assert!(sizes(text).is_err(), "{text}");
        }
    }
}
