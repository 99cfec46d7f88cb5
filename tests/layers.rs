//! Holds the sources to the layers of `src/lib.rs`: a file names only its own folder and lower layers. Also the few
//! other rules that no compiler checks: where `unsafe` may stand, that nothing panics, how long things may grow.
//!
//! The table in `src/lib.rs` is the only list of layers; a module that it lacks is an error.

mod lexer;

use std::{collections::BTreeMap, fs, path::Path};

use lexer::{Token, lex};

/// Aims of the design, and the limits beyond which a file or function must be taken apart.
const FILE_AIM: usize = 400;
const FILE_LIMIT: usize = 500;
const FUNCTION_AIM: usize = 70;
const FUNCTION_LIMIT: usize = 100;

/// What ends the process or the thread instead of returning an error.
const PANICS: [&str; 5] = ["panic", "todo", "unimplemented", "unreachable", "assert"];
const PANICKING_METHODS: [&str; 4] = ["unwrap", "expect", "unwrap_err", "expect_err"];

/// Layer numbers by module path: `timing` and, where a file is in another layer than its folder, `timing::tsc`.
struct Layers(BTreeMap<String, u32>);

impl Layers {
    /// Reads the table in the head comment: `//! | 7 | `main.rs`, [`cli`] | … |`.
    fn parse(lib: &str) -> Self {
        let mut layers = BTreeMap::from([("lib".to_string(), 7)]);
        for line in lib.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let Some(Ok(number)) = cells.get(1).map(|cell| cell.parse()) else { continue };
            for name in cells[2].split('`').skip(1).step_by(2) {
                layers.insert(name.trim_end_matches(".rs").to_string(), number);
            }
        }
        Self(layers)
    }

    /// The unit that a module path belongs to, and its layer.
    fn find(&self, path: &[String]) -> Option<(String, u32)> {
        let longest_first = (1..=path.len().min(2)).rev();
        longest_first.map(|length| path[..length].join("::")).find_map(|unit| Some((unit.clone(), *self.0.get(&unit)?)))
    }
}

/// `src/a/b.rs` is the module a::b, `src/a/mod.rs` is a.
fn module_of(file: &str) -> Vec<String> {
    let inner = file.trim_start_matches("src/").trim_end_matches(".rs");
    inner.split('/').filter(|part| *part != "mod").map(String::from).collect()
}

/// All problems of one file, each with its place.
fn problems(layers: &Layers, file: &str, text: &str, is_test: bool) -> Vec<String> {
    let tokens = lex(text);
    let mut found = Vec::new();
    let mut add = |line: usize, what: String| found.push(format!("{file}:{line}: {what}"));
    let module = module_of(file);
    match layers.find(&module) {
        None => add(1, format!("the module {} is not in the table of src/lib.rs", module.join("::"))),
        Some((unit, layer)) if layer < 7 => {
            for (line, path) in named_paths(&tokens, &module) {
                match layers.find(&path) {
                    Some((other, _)) if other == unit || other.split("::").next() == Some(&unit) => {}
                    Some((_, lower)) if lower < layer => {}
                    Some((other, other_layer)) => {
                        add(line, format!("{unit} (layer {layer}) names {other} (layer {other_layer})"));
                    }
                    None => add(line, format!("{} is not in the table of src/lib.rs", path.join("::"))),
                }
            }
        }
        Some(_) => {} // The top names everything.
    }
    if !file.starts_with("src/sys/") && file != "src/timing/tsc.rs" {
        for token in tokens.iter().filter(|token| token.text == "unsafe" || token.text == "unsafe_code") {
            add(token.line, format!("`{}` belongs into src/sys/ or src/timing/tsc.rs", token.text));
        }
    }
    if !is_test {
        for (line, name) in panics(&without_tests(&tokens)) {
            add(line, format!("`{name}` panics; return an error"));
        }
    }
    for (line, length) in functions(&tokens) {
        if length > FUNCTION_LIMIT {
            add(line, format!("a function of {length} lines (limit: {FUNCTION_LIMIT})"));
        } else if length > FUNCTION_AIM {
            eprintln!("note: {file}:{line}: a function of {length} lines (aim: {FUNCTION_AIM})");
        }
    }
    let lines = text.lines().count();
    if lines >= FILE_LIMIT {
        add(lines, format!("{lines} lines (limit: under {FILE_LIMIT})"));
    } else if lines >= FILE_AIM {
        eprintln!("note: {file}: {lines} lines (aim: under {FILE_AIM})");
    }
    found
}

/// Every path that starts at `crate`, `super` or `self`, resolved from the root, with groups taken apart.
fn named_paths(tokens: &[Token], module: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut inline = Vec::new(); // Inline modules around this point, with the depth of their brace.
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].text {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inline.pop_if(|(_, begin)| *begin == depth);
            }
            "mod" if tokens.get(at + 2).is_some_and(|token| token.text == "{") => {
                inline.push((tokens[at + 1].text, depth));
            }
            "crate" | "super" | "self" if tokens.get(at + 1).is_some_and(|token| token.text == "::") => {
                let mut here = module.to_vec();
                here.extend(inline.iter().map(|(name, _)| name.to_string()));
                at = take_path(tokens, at, here, &mut found);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Follows one path or one branch of a group from `at`, and returns where it ends.
fn take_path(tokens: &[Token], mut at: usize, mut path: Vec<String>, found: &mut Vec<(usize, Vec<String>)>) -> usize {
    let line = tokens[at].line;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" | "*" => {}
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = match tokens[at].text {
                        "," => at + 1,
                        _ => take_path(tokens, at, path.clone(), found),
                    };
                }
                return at + 1;
            }
            name if token.is_name() => path.push(name.to_string()),
            _ => break,
        }
        at += 1;
        match tokens.get(at).map(|token| token.text) {
            Some("::") => at += 1,
            Some("as") => at += 2, // The name that follows is a local one.
            _ => break,
        }
        if tokens[at - 1].text != "::" {
            break;
        }
    }
    // A path that ends at the root itself, such as `crate::{self}`, names nothing yet.
    if !path.is_empty() {
        found.push((line, path));
    }
    at.max(1)
}

/// The tokens that are left without the items behind `#[cfg(test)]`.
fn without_tests<'a>(tokens: &'a [Token<'a>]) -> Vec<&'a Token<'a>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let marked = tokens[at..].len() >= MARK.len() && tokens[at..].iter().zip(MARK).all(|(a, b)| a.text == b);
        if !marked {
            kept.push(&tokens[at]);
            at += 1;
            continue;
        }
        let mut depth = 0;
        at += MARK.len();
        while at < tokens.len() {
            match tokens[at].text {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(tokens[at - 1].text, ";" | "}") {
                break;
            }
        }
    }
    kept
}

fn panics(tokens: &[&Token]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for window in tokens.windows(2) {
        let (name, next) = (window[0].text, window[1].text);
        let is_macro = next == "!" && PANICS.iter().any(|panic| name == *panic || name == format!("{panic}_eq"));
        if is_macro || (window[0].text == "." && PANICKING_METHODS.contains(&next)) {
            found.push((window[0].line, if is_macro { format!("{name}!") } else { next.to_string() }));
        }
    }
    found
}

/// First line and length of every function with a body.
fn functions(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        let mut depth = 0;
        for end in &tokens[at..] {
            match end.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                ";" if depth == 0 => break,
                _ => continue,
            }
            if depth <= 0 {
                found.push((token.line, end.line - token.line + 1));
                break;
            }
        }
    }
    found
}

/// Files that only tests are compiled from: those declared behind `#[cfg(test)]`, and all below them.
fn is_test_file(file: &str, declared: &[String]) -> bool {
    declared.iter().any(|path| file == format!("{path}.rs") || file.starts_with(&format!("{path}/")))
}

fn test_modules(file: &str, text: &str) -> Vec<String> {
    let folder = match file.rsplit_once('/') {
        Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder.to_string(),
        _ => file.trim_end_matches(".rs").to_string(),
    };
    let beside = file.rsplit_once('/').map_or("", |(beside, _)| beside);
    let mut lines = text.lines().map(str::trim);
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            continue;
        }
        let next = lines.next().unwrap_or_default();
        if let Some(path) = next.strip_prefix("#[path = \"").and_then(|path| path.strip_suffix(".rs\"]")) {
            found.push(format!("{beside}/{path}"));
        } else if let Some(name) = next.split_once("mod ").and_then(|(_, name)| name.strip_suffix(';')) {
            found.push(format!("{folder}/{name}"));
        }
    }
    found
}

fn sources(folder: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push((path.to_str().unwrap().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_file_keeps_the_rules() {
    let layers = Layers::parse(&fs::read_to_string("src/lib.rs").unwrap());
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    assert!(files.len() > 50, "only {} files were found", files.len());
    let declared: Vec<String> = files.iter().flat_map(|(file, text)| test_modules(file, text)).collect();
    let found: Vec<String> =
        files.iter().flat_map(|(file, text)| problems(&layers, file, text, is_test_file(file, &declared))).collect();
    assert!(found.is_empty(), "{} problems:\n{}", found.len(), found.join("\n"));
}

/// The checker on a snippet that stands for a file.
fn check(file: &str, text: &str) -> Vec<String> {
    problems(&Layers::parse(&fs::read_to_string("src/lib.rs").unwrap()), file, text, false)
}

#[test]
fn the_table_is_read_whole() {
    let layers = Layers::parse(&fs::read_to_string("src/lib.rs").unwrap());
    let of = |path: &str| layers.find(&path.split("::").map(String::from).collect::<Vec<_>>()).unwrap().1;
    assert_eq!((of("error"), of("sys::verbs"), of("timing::tsc"), of("timing::clock")), (0, 1, 1, 2));
    assert_eq!((of("engine::rdma"), of("stats"), of("report"), of("run"), of("main")), (3, 4, 5, 6, 7));
}

#[test]
fn a_lower_layer_may_not_name_a_higher_one_in_any_spelling() {
    for text in [
        "use crate::run::Signals;",
        "use crate::{\n    error::Error,\n    run::{self, Signals},\n};",
        "fn f() -> crate::run::Outcome { todo() }",
        "use super::super::run;",
        "use super::super::{error::Error, run as r};",
        "mod inner { use super::super::super::run::Outcome; }",
        "mod inner { mod deep {} } use super::super::run;",
    ] {
        let found = check("src/host/memory.rs", text);
        assert!(!found.is_empty(), "{text}");
        assert!(found.iter().all(|what| what.contains("host (layer 2) names run (layer 6)")), "{found:?}");
    }
}

#[test]
fn neighbours_of_one_layer_do_not_name_each_other() {
    assert!(check("src/stats/summary.rs", "use crate::measure::Limits;")[0].contains("names measure"));
    assert!(check("src/error.rs", "use crate::units::parse_bytes;")[0].contains("names units"));
    assert!(check("src/timing/tsc.rs", "use super::clock::Tsc;")[0].contains("names timing"));
}

#[test]
fn the_own_folder_lower_layers_and_other_crates_may_be_named() {
    for text in [
        "use super::{CpuSet, Sysfs};",
        "use crate::{error::{Error, Result}, host::cpu, units};",
        "use std::{fs, io::{self, Write}};",
        "fn f(self) -> Self { self.run.crate_name() }",
        "// use crate::run;\n/* crate::run */ const X: &str = \"crate::run\";",
        "#[cfg(test)] mod tests { use super::*; fn f() { super::g(); } }",
    ] {
        assert_eq!(check("src/host/memory.rs", text), [""; 0], "{text}");
    }
    assert_eq!(check("src/timing/clock.rs", "use super::tsc;"), [""; 0]);
}

#[test]
fn a_module_without_a_layer_is_an_error() {
    assert!(check("src/other/thing.rs", "")[0].contains("not in the table"));
    assert!(check("src/run/mod.rs", "use crate::other::Thing;")[0].contains("not in the table"));
}

#[test]
fn unsafe_has_its_places() {
    let text = "#![allow(unsafe_code)]\nfn f() { unsafe { g() } }";
    assert_eq!(check("src/host/memory.rs", text).len(), 2);
    assert_eq!(check("src/sys/memory.rs", text).len(), 0);
    assert_eq!(check("src/timing/tsc.rs", text).len(), 0);
    assert_eq!(check("src/host/memory.rs", "// unsafe\nconst X: &str = \"unsafe\";").len(), 0);
}

#[test]
fn panics_are_found_outside_tests_only() {
    for text in ["fn f() { g().unwrap(); }", "fn f() { g()\n.expect(\"x\"); }", "fn f() { panic!(\"x\") }", "todo!()"] {
        assert_eq!(check("src/host/memory.rs", text).len(), 1, "{text}");
    }
    for text in [
        "fn f() { g().unwrap_or(0); debug_assert!(true); }",
        "#[cfg(test)]\nmod tests { fn f() { g().unwrap(); } }",
        "#[cfg(test)]\nfn f() -> [u8; 2] { g().unwrap() }",
        "fn f() { let quote = '\"'; g(\"panic!()\"); let r = r#\"\".unwrap()\"#; }",
    ] {
        assert_eq!(check("src/host/memory.rs", text), [""; 0], "{text}");
    }
    let after = "#[cfg(test)]\nmod tests { fn f() {} }\nfn g() { h().unwrap(); }";
    assert_eq!(check("src/host/memory.rs", after).len(), 1);
}

#[test]
fn test_files_are_those_that_are_declared_so() {
    let declared = test_modules("src/peer/mod.rs", "mod frame;\n#[cfg(test)]\npub(crate) mod tests;\n");
    assert_eq!(declared, ["src/peer/tests"]);
    assert!(is_test_file("src/peer/tests/mod.rs", &declared) && is_test_file("src/peer/tests.rs", &declared));
    assert!(!is_test_file("src/peer/frame.rs", &declared));
    assert_eq!(test_modules("src/run/check.rs", "#[cfg(test)]\nmod x;"), ["src/run/check/x"]);
    let elsewhere = "#[cfg(test)]\n#[path = \"check_tests.rs\"]\nmod tests;";
    assert_eq!(test_modules("src/run/check.rs", elsewhere), ["src/run/check_tests"]);
}

#[test]
fn lengths_have_limits() {
    let long = |lines: usize| format!("fn f() {{\n{}}}", "g();\n".repeat(lines - 2));
    assert_eq!(check("src/run/mod.rs", &long(100)).len(), 0);
    assert!(check("src/run/mod.rs", &long(101))[0].contains("a function of 101 lines"));
    assert_eq!(check("src/run/mod.rs", &"\n".repeat(499)).len(), 0);
    assert!(check("src/run/mod.rs", &"\n".repeat(500))[0].contains("500 lines"));
}
