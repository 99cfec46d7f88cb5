//! What the exit code says: one table for the help text and the man pages. A test holds the README to it.

/// Some exit codes, and what they mean.
pub(super) struct ExitCode {
    pub codes: &'static str,
    pub meaning: &'static str,
    /// The subcommands that can end so, [`MEASURING`] for a measurement without one; empty for all.
    pub of: &'static [&'static str],
}

/// Stands for the program without a subcommand.
pub(super) const MEASURING: &str = "";

/// All exit codes, in the order in which they are listed.
pub(super) const EXIT_CODES: [ExitCode; 7] = [
    ExitCode { codes: "0", meaning: "done", of: &[] },
    ExitCode { codes: "1", meaning: "failed", of: &[] },
    ExitCode { codes: "2", meaning: "usage", of: &[] },
    ExitCode { codes: "3", meaning: "slower, or above a limit", of: &["ab", "compare"] },
    ExitCode { codes: "4", meaning: "inconclusive", of: &["ab", "compare"] },
    ExitCode {
        codes: "77",
        meaning: "this machine lacks what the engine needs; the message says what to do",
        of: &[MEASURING, "run", "ab", "serve", "calibrate"],
    },
    ExitCode {
        codes: "130, 143, 129",
        meaning: "ended by SIGINT, SIGTERM or SIGHUP; the partial result is written",
        of: &[MEASURING, "run", "ab", "serve", "calibrate"],
    },
];

impl ExitCode {
    /// Whether this subcommand can end so.
    pub fn is_of(&self, subcommand: &str) -> bool {
        self.of.is_empty() || self.of.contains(&subcommand)
    }

    /// The meaning, with the subcommands where a plain measurement never ends so.
    pub fn meaning_among_all(&self) -> String {
        if self.is_of(MEASURING) { self.meaning.into() } else { format!("{}: {}", self.of.join(", "), self.meaning) }
    }
}

/// The table as the help text has it.
pub(super) fn help() -> String {
    let width = EXIT_CODES.iter().map(|row| row.codes.len()).max().unwrap_or(0);
    let row = |row: &ExitCode| format!("\n  {:width$}  {}", row.codes, row.meaning_among_all());
    format!("Exit codes:{}", EXIT_CODES.iter().map(row).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED};

    #[test]
    fn the_readme_has_the_same_table() {
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
        let section = readme.split("\n## Exit codes\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let plain = section.replace('`', "");
        let rows: Vec<_> = plain.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        let expected = EXIT_CODES.map(|row| format!("| {} | {} |", row.codes, row.meaning_among_all()));
        assert_eq!(rows, expected);
    }

    #[test]
    fn signals_have_the_codes_that_runs_end_with() {
        let codes = format!("{EXIT_INTERRUPTED}, {EXIT_TERMINATED}, {EXIT_HUNG_UP}");
        assert!(EXIT_CODES.iter().any(|row| row.codes == codes && row.is_of(MEASURING)));
    }

    #[test]
    fn only_comparisons_can_be_inconclusive() {
        let with_4 = |subcommand| EXIT_CODES.iter().any(|row| row.codes == "4" && row.is_of(subcommand));
        assert!(with_4("ab") && with_4("compare") && !with_4(MEASURING) && !with_4("serve"));
        assert!(help().contains("ab, compare: inconclusive"), "{}", help());
    }
}
