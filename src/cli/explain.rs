//! `lat-probe run --explain`: what a file becomes, as commands that can be typed, with remarks that a shell skips.

use super::probe::{File, Step, definition, is_switch};

/// The options that say what is measured; the others follow in the order of the alphabet.
const FIRST: [&str; 8] = ["engine", "target", "peer", "rw", "bs", "qd", "jobs", "count"];

/// All steps of a file.
pub(super) fn file(file: &File) -> String {
    let needs = file.setup.iter().map(|command| format!("# needs: {command}"));
    needs.chain(file.steps.iter().flat_map(step)).map(|line| line + "\n").collect()
}

fn step(step: &Step) -> Vec<String> {
    let mut lines = vec![format!("# {}", step.from)];
    lines.extend(step.notes.iter().map(|note| format!("# {note}")));
    if step.serve.is_none()
        && let Err(why) = step.plan()
    {
        // What a message says behind its first line is for a terminal.
        lines.push(format!("# this fails: {}", why.to_string().lines().next().unwrap_or_default()));
    }
    let words: Vec<_> = command(step).iter().map(|word| quoted(word)).collect();
    lines.push(format!("lat-probe {}", words.join(" ")));
    lines
}

/// The words behind the program's name.
pub(super) fn command(step: &Step) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if let Some(address) = &step.serve {
        words.extend(["serve", "--once", "--bind", address].map(String::from));
    }
    let definition = definition();
    let first = FIRST.iter().filter_map(|&name| step.options.get_key_value(name));
    let others = step.options.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    for (name, value) in first.chain(others) {
        if is_switch(&definition, name, value) {
            words.extend((value == "true").then(|| format!("--{name}")));
        } else if value.is_empty() || value.starts_with('-') {
            words.push(format!("--{name}={value}"));
        } else {
            words.extend([format!("--{name}"), value.clone()]);
        }
    }
    words
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_=./:,%+@".contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[(&str, &str)], serve: Option<&str>) -> String {
        let options = options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let step = Step { from: "f".into(), options, serve: serve.map(String::from), notes: Vec::new() };
        command(&step).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_measured_comes_first_and_switches_have_no_value() {
        let options = [("bs", "4k"), ("direct", "true"), ("engine", "psync"), ("hipri", "false"), ("rate", "5")];
        assert_eq!(of(&options, None), "--engine psync --bs 4k --direct --rate 5");
    }

    #[test]
    fn servers_are_commands_too() {
        assert_eq!(of(&[("cpu", "1")], Some("[::1]:7")), "serve --once --bind '[::1]:7' --cpu 1");
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(of(&[("target", "a b'c")], None), r"--target 'a b'\''c'");
        assert_eq!(of(&[("target", "-x")], None), "--target=-x");
        assert_eq!(of(&[("target", "")], None), "--target=");
    }
}
