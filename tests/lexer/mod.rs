//! Just enough of Rust's lexical grammar to tell code from comments and strings.

/// A name, a number, `::`, or one character of punctuation.
pub struct Token<'a> {
    pub text: &'a str,
    pub line: usize,
}

impl Token<'_> {
    pub fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// The tokens of a source text, without comments, strings, characters and lifetimes.
pub fn lex(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest);
        let (taken, is_code) = match length {
            0 if rest.starts_with("::") => (2, true),
            0 if is_word(first) => (rest.find(|c| !is_word(c)).unwrap_or(rest.len()), true),
            0 => (first.len_utf8(), true),
            length => (length, false),
        };
        let (text, after) = rest.split_at(taken);
        if is_code {
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Bytes at the start of `rest` that are no code; 0 if there is code.
fn skipped(rest: &str) -> usize {
    let to = |end: Option<usize>| end.unwrap_or(rest.len());
    match rest.as_bytes() {
        [b' ' | b'\n' | b'\t' | b'\r', ..] => 1,
        [b'/', b'/', ..] => to(rest.find('\n')),
        [b'/', b'*', ..] => to(rest.find("*/").map(|at| at + 2)),
        [b'"', ..] => 1 + quoted(&rest[1..], '"'),
        [b'b', b'"', ..] => 2 + quoted(&rest[2..], '"'),
        [b'r', b'"' | b'#', ..] => raw(rest, 1),
        [b'b', b'r', b'"' | b'#', ..] => raw(rest, 2),
        [b'\'', b'\\', ..] => 1 + quoted(&rest[1..], '\''),
        [b'\'', ..] => {
            // A character has its second quote right behind it; a lifetime has none.
            let mut characters = rest.char_indices().skip(2);
            match characters.next() {
                Some((at, '\'')) => at + 1,
                _ => to(rest[1..].find(|c| !is_word(c)).map(|at| at + 1)),
            }
        }
        _ => 0,
    }
}

/// Length up to and with the closing quote.
fn quoted(inner: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    inner.len()
}

/// Length of a raw string whose hashes start at `prefix`; 0 if it is none, as in `r#type`.
fn raw(rest: &str, prefix: usize) -> usize {
    let hashes = rest[prefix..].bytes().take_while(|byte| *byte == b'#').count();
    let body = prefix + hashes + 1;
    if rest.as_bytes().get(body - 1) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len())
}
