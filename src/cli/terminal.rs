//! What the terminal on stdout allows.

use std::{
    env,
    ffi::OsString,
    io::{self, IsTerminal},
};

use crate::{report::drawing::Canvas, sys::terminal};

/// For a terminal that does not know its own width, such as a serial line.
const USUAL_COLUMNS: usize = 80;

/// `None` where stdout is no terminal, or one that only prints.
pub(super) fn canvas() -> Option<Canvas> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    canvas_of(terminal::columns(&stdout).map(usize::from), |name| env::var_os(name))
}

/// From the width that the terminal says it has, and the environment.
fn canvas_of(columns: Option<usize>, variable: impl Fn(&str) -> Option<OsString>) -> Option<Canvas> {
    // A variable that is empty is as good as none: so says POSIX of the locale, and no-color.org of its own.
    let variable =
        |name: &str| variable(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned());
    if variable("TERM").is_some_and(|name| name == "dumb") {
        return None;
    }
    let wanted = variable("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|&columns: &usize| columns > 0);
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(&variable).unwrap_or_default().to_lowercase();
    Some(Canvas {
        columns: wanted.or(columns).unwrap_or(USUAL_COLUMNS),
        unicode: locale.contains("utf-8") || locale.contains("utf8"),
        color: variable("NO_COLOR").is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(columns: Option<usize>, variables: &[(&str, &str)]) -> Option<Canvas> {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        canvas_of(columns, variable)
    }

    #[test]
    fn a_dumb_terminal_is_not_drawn_on() {
        assert_eq!(of(Some(80), &[("TERM", "dumb")]), None);
        assert!(of(Some(80), &[("TERM", "xterm")]).is_some() && of(Some(80), &[]).is_some());
    }

    #[test]
    fn the_width_is_that_of_the_environment_before_the_terminals_own() {
        let columns = |own, value| of(own, &[("COLUMNS", value)]).unwrap().columns;
        assert_eq!((columns(Some(120), "50"), columns(None, "50"), columns(Some(120), "")), (50, 50, 120));
        for no_width in ["0", "-1", "wide", "99999999999999999999999"] {
            assert_eq!((columns(Some(120), no_width), columns(None, no_width)), (120, 80), "{no_width}");
        }
    }

    #[test]
    fn the_first_variable_that_is_set_says_the_locale() {
        let unicode = |variables: &[(&str, &str)]| of(None, variables).unwrap().unicode;
        assert!(unicode(&[("LANG", "en_US.UTF-8")]) && unicode(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")]));
        assert!(
            !unicode(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")])
                && !unicode(&[("LC_CTYPE", "C"), ("LANG", "C.UTF-8")])
        );
        assert!(!unicode(&[]) && unicode(&[("LC_ALL", "C.UTF-8"), ("LANG", "C")]));
    }

    #[test]
    fn colours_can_be_refused() {
        let color = |variables: &[(&str, &str)]| of(None, variables).unwrap().color;
        assert!(color(&[]) && color(&[("NO_COLOR", "")]) && !color(&[("NO_COLOR", "1")]));
    }
}
