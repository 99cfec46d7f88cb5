//! Numbers and dates as fio writes them.

/// The step from one unit prefix to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// k, M, G: 1000.
    Thousand,
    /// Ki, Mi, Gi: 1024.
    Binary,
}

/// Characters of a rate or a size, the decimal point included.
const WIDTH: usize = 4;
/// The same of the ends of a range of latencies.
const END_WIDTH: usize = 6;

/// Commands per second.
pub(super) fn rate(per_s: f64) -> String {
    short(whole(per_s), WIDTH, Step::Thousand)
}

/// The smallest or largest latency.
pub(super) fn end(value: f64) -> String {
    short(whole(value), END_WIDTH, Step::Thousand)
}

/// A size: `32.0MiB` or `33.6MB`.
pub(super) fn bytes(bytes: u64, step: Step) -> String {
    short(bytes, WIDTH, step) + "B"
}

/// A bandwidth: `3200MiB/s` or `3355MB/s`.
pub(super) fn bandwidth(bytes_per_s: f64, step: Step) -> String {
    bytes(whole(bytes_per_s), step) + "/s"
}

/// The nearest whole number; negative values, which nothing measured has, are 0.
pub(in crate::report) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Divides until the whole part fits into `width` characters, and fills what is left of them with decimals.
fn short(value: u64, width: usize, step: Step) -> String {
    let (step, prefixes) = match step {
        Step::Thousand => (1000, ["", "k", "M", "G", "T", "P"]),
        Step::Binary => (1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi"]),
    };
    let (mut whole, mut rest, mut prefix) = (value, None, 0);
    while whole.to_string().len() > width && prefix + 1 < prefixes.len() {
        rest = Some(whole % step);
        whole /= step;
        prefix += 1;
    }
    let name = prefixes[prefix];
    let Some(rest) = rest else { return format!("{whole}{name}") };
    let decimals = width.saturating_sub(whole.to_string().len() + 1);
    format!("{:.decimals$}{name}", whole as f64 + rest as f64 / step as f64)
}

/// A time as RFC 3339 writes it, in the form of C's `ctime`: `Tue Dec  1 15:08:12 2026`. What is no such time stays as it is.
pub(in crate::report) fn date(rfc_3339: &str) -> String {
    ctime(rfc_3339).unwrap_or_else(|| rfc_3339.into())
}

fn ctime(text: &str) -> Option<String> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    // Tomohiko Sakamoto's: days of a year before each month, January and February counted to the year before.
    const BEFORE: [usize; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut parts = day.splitn(3, '-');
    let mut next = |most: usize| parts.next()?.parse::<usize>().ok().filter(|&part| part <= most);
    let (year, month, day) = (next(9999)?, next(12)?, next(31)?);
    let name = MONTHS.get(month.checked_sub(1)?)?;
    let counted = if month < 3 { year.checked_sub(1)? } else { year };
    let weekday = (counted + counted / 4 - counted / 100 + counted / 400 + BEFORE[month - 1] + day) % 7;
    Some(format!("{} {name} {day:2} {time} {year}", DAYS[weekday]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_and_rates_have_the_characters_that_fio_gives_them() {
        // All of these stand in reports of fio 3.33.
        for (number, text) in [(33_554_432, "32.0MiB"), (16_777_216, "16.0MiB"), (4096, "4096B"), (65_536, "64.0KiB")] {
            assert_eq!(bytes(number, Step::Binary), text);
        }
        assert_eq!(
            (bytes(33_554_432, Step::Thousand), bytes(242_294_784, Step::Thousand)),
            ("33.6MB".into(), "242MB".into())
        );
        assert_eq!(bandwidth(3_355_443_200.0, Step::Binary), "3200MiB/s");
        assert_eq!(bandwidth(3_355_443_200.0, Step::Thousand), "3355MB/s");
        assert_eq!([819_200.0, 19_712.0, 5_461_333.0, 9999.0].map(rate), ["819k", "19.7k", "5461k", "9999"]);
        assert_eq!([451.0, 269_292.0, 1_200_399.0].map(end), ["451", "269292", "1200.4k"]);
    }

    #[test]
    fn a_decimal_that_rounds_up_carries_over() {
        assert_eq!(rate(99_990.0), "100.0k");
        assert_eq!(rate(1_999_999.0), "2000k");
    }

    #[test]
    fn dates_are_those_of_ctime() {
        assert_eq!(date("2026-12-01T15:08:12Z"), "Tue Dec  1 15:08:12 2026");
        assert_eq!(date("1970-01-01T00:00:00Z"), "Thu Jan  1 00:00:00 1970");
        assert_eq!(date("2000-02-29T23:59:59Z"), "Tue Feb 29 23:59:59 2000");
        for text in ["", "yesterday", "2026-00-01T00:00:00Z", "2026-13-01T00:00:00Z", "99999-01-01T00:00:00Z"] {
            assert_eq!(date(text), text);
        }
    }

    proptest! {
        #[test]
        fn no_number_panics(value: u64, real: f64) {
            for step in [Step::Thousand, Step::Binary] {
                let _ = (bytes(value, step), bandwidth(real, step));
            }
            let _ = (rate(real), end(real));
        }

        #[test]
        fn no_date_panics(text in "\\PC*", year: usize, month: u8, day: u8) {
            let _ = (date(&text), date(&format!("{year}-{month}-{day}T0Z")));
        }
    }
}
