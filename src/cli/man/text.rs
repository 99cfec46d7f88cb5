//! Pages as any roff reads them.

/// Names what is in backticks by bold type, and writes signs that roff would replace, or that are not ASCII, as their escapes.
/// Lines of control stay as they are, but for signs that are not ASCII; what defines the apostrophe stands in front once.
pub(super) fn portable(page: &str) -> String {
    // An empty line between two breaks is a space.
    let page = page.replace("\n.br\n\n.br\n", "\n.sp\n");
    let mut portable = String::with_capacity(page.len());
    let mut has_apostrophe = false;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with(".ie \\n(.g .ds Aq") {
            // It comes with its other branch; each section has both.
            let otherwise = lines.next().unwrap_or_default();
            if !has_apostrophe {
                portable.extend([line, "\n", otherwise, "\n"]);
            }
            has_apostrophe = true;
            continue;
        }
        let is_control = line.starts_with('.');
        let are_paired = line.matches('`').count() % 2 == 0;
        let mut is_open = false;
        for sign in line.chars() {
            match sign {
                '`' if !is_control && are_paired => {
                    is_open = !is_open;
                    portable.push_str(if is_open { "\\fB" } else { "\\fR" });
                }
                '`' if !is_control => portable.push_str("\\(ga"),
                '^' if !is_control => portable.push_str("\\(ha"),
                '~' if !is_control => portable.push_str("\\(ti"),
                sign if sign.is_ascii() => portable.push(sign),
                sign => portable.push_str(&format!("\\[u{:04X}]", u32::from(sign))),
            }
        }
        portable.push('\n');
    }
    portable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_survive_every_terminal() {
        assert_eq!(portable("4 µs · 2^N ~/x\n"), "4 \\[u00B5]s \\[u00B7] 2\\(haN \\(ti/x\n");
        assert_eq!(portable("see `lat\\-probe fill`; write"), "see \\fBlat\\-probe fill\\fR; write\n");
        assert_eq!(portable("one ` alone"), "one \\(ga alone\n");
        assert_eq!(portable(".SH \"A^B\""), ".SH \"A^B\"\n");
    }

    #[test]
    fn breaks_around_an_empty_line_are_a_space() {
        assert_eq!(portable("a\n.br\n\n.br\nb\n"), "a\n.sp\nb\n");
    }

    #[test]
    fn the_apostrophe_is_defined_once() {
        let start = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";
        assert_eq!(portable(&format!("{start}a\n{start}b\n")), format!("{start}a\nb\n"));
    }
}
