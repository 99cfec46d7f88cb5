//! Sizes and times as people write them, and as they are printed.
//!
//! Values are parsed wide and checked for range afterwards, so that no text, however long, wraps into a valid number.

use std::time::Duration;

/// Parses a byte size: a whole number with an optional suffix. `k K Ki KiB` mean 1024 and `kB KB` mean 1000; the same
/// for `M` and `G`; a bare `B` means bytes.
///
/// # Errors
/// A sentence that quotes the text and says what is allowed: for an empty text, a sign, a fraction, an unknown suffix, or
/// a value beyond 2^64−1.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, suffix) = split_number(text);
    let number = parse_digits(text, digits, "a size such as 8, 4k or 1M")?;
    let factor = match suffix {
        "" | "B" => 1,
        "k" | "K" | "Ki" | "KiB" => 1 << 10,
        "kB" | "KB" => 1_000,
        "m" | "M" | "Mi" | "MiB" => 1 << 20,
        "mB" | "MB" => 1_000_000,
        "g" | "G" | "Gi" | "GiB" => 1 << 30,
        "gB" | "GB" => 1_000_000_000,
        _ => {
            return Err(format!(
                "'{text}' has the unknown suffix '{suffix}' (allowed: k K Ki KiB = 1024, kB KB = 1000, the same for M and G)"
            ));
        }
    };
    narrow(text, number.checked_mul(factor))
}

/// Parses a whole number of things, with the same suffixes as [`parse_bytes`] meaning powers of 1000 for `k`, `M`, `G`.
///
/// # Errors
/// As [`parse_bytes`].
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (digits, suffix) = split_number(text);
    let number = parse_digits(text, digits, "a whole number such as 100000 or 1M")?;
    let factor = match suffix {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(format!("'{text}' has the unknown suffix '{suffix}' (allowed: k = 1000, M, G)")),
    };
    narrow(text, number.checked_mul(factor))
}

/// Parses a time: a whole number with one of `ns us ms s m h`.
///
/// # Errors
/// As [`parse_bytes`]; a number without a unit is refused, since seconds and milliseconds are both common habits.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (digits, suffix) = split_number(text);
    let number = parse_digits(text, digits, "a time such as 500ms or 10s")?;
    let factor = match suffix {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(format!("'{text}' has no unit (allowed: ns us ms s m h)")),
        _ => return Err(format!("'{text}' has the unknown unit '{suffix}' (allowed: ns us ms s m h)")),
    };
    narrow(text, number.checked_mul(factor)).map(Duration::from_nanos)
}

/// Prints a byte size the way [`parse_bytes`] reads it: `8`, `4k`, `1M`; what is not a whole multiple stays in bytes.
pub fn format_bytes(bytes: u64) -> String {
    for (shift, suffix) in [(30, "G"), (20, "M"), (10, "k")] {
        if bytes != 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Prints a byte size for reading: `8 B`, `4 KiB`, `1 MiB`.
pub fn format_size(bytes: u64) -> String {
    let short = format_bytes(bytes);
    match short.strip_suffix(['k', 'M', 'G']) {
        Some(number) => format!("{number} {}iB", short[number.len()..].to_uppercase()),
        None => format!("{short} B"),
    }
}

/// Prints a bandwidth for reading: `800 B/s`, `6.8 kB/s`, `3.3 GB/s`; here k is 1000.
pub fn format_bytes_per_s(rate: f64) -> String {
    let (value, unit) = match rate.abs() {
        magnitude if magnitude < 999.5 => return format!("{rate:.0} B/s"),
        magnitude if magnitude < 999.95e3 => (rate / 1e3, "kB/s"),
        magnitude if magnitude < 999.95e6 => (rate / 1e6, "MB/s"),
        _ => (rate / 1e9, "GB/s"),
    };
    format!("{value:.1} {unit}")
}

/// Prints nanoseconds with four significant digits at least and a unit that a person reads at a glance.
pub fn format_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        magnitude if magnitude < 10_000.0 => (ns, "ns"),
        magnitude if magnitude < 10_000_000.0 => (ns / 1e3, "µs"),
        magnitude if magnitude < 10_000_000_000.0 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let decimals = match value.abs() {
        magnitude if magnitude < 100.0 => 2,
        magnitude if magnitude < 1000.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Prints a whole number with a comma between groups of three digits.
pub fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn parse_digits(text: &str, digits: &str, wanted: &str) -> Result<u128, String> {
    if digits.is_empty() {
        let found = if text.is_empty() {
            "the text is empty".to_string()
        } else {
            format!("'{text}' does not start with a digit")
        };
        return Err(format!("{found} (expected {wanted})"));
    }
    // 30 digits fit u128 with any factor above; more than that is out of range whatever follows.
    if digits.trim_start_matches('0').len() > 25 {
        return Err(out_of_range(text));
    }
    digits.parse().map_err(|_| out_of_range(text))
}

fn narrow(text: &str, value: Option<u128>) -> Result<u64, String> {
    value.and_then(|wide| u64::try_from(wide).ok()).ok_or_else(|| out_of_range(text))
}

fn out_of_range(text: &str) -> String {
    format!("'{text}' is out of range (at most {})", u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_read_as_the_manual_says() {
        for (text, bytes) in
            [("0", 0), ("8", 8), ("4k", 4096), ("4K", 4096), ("4Ki", 4096), ("4KiB", 4096), ("4kB", 4000)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_bytes("1M"), Ok(1 << 20));
        assert_eq!(parse_bytes("1GB"), Ok(1_000_000_000));
    }

    #[test]
    fn broken_sizes_are_quoted_with_the_reason() {
        for text in [
            "",
            "4k7",
            "-1",
            "1.5k",
            "k",
            "0x10",
            "18446744073709551616",
            "99999999999999999999999999999999",
            "17179869184G",
        ] {
            let message = parse_bytes(text).unwrap_err();
            assert!(text.is_empty() || message.contains(text), "{message}");
        }
        assert!(parse_bytes("18446744073709551616").unwrap_err().contains("out of range"));
    }

    #[test]
    fn a_time_needs_its_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7200)));
        assert!(parse_duration("10").unwrap_err().contains("no unit"));
    }

    #[test]
    fn nanoseconds_are_printed_at_a_glance() {
        assert_eq!(format_ns(31.25), "31.25 ns");
        assert_eq!(format_ns(9_999.0), "9999 ns");
        assert_eq!(format_ns(77_472.0), "77.47 µs");
        assert_eq!(format_ns(12_000_000.0), "12.00 ms");
    }

    #[test]
    fn bandwidths_are_printed_at_a_glance() {
        let printed = [0.0, 999.0, 999.9, 6_792.0, 999_950.0, 3_016_500_000.0].map(format_bytes_per_s);
        assert_eq!(printed, ["0 B/s", "999 B/s", "1.0 kB/s", "6.8 kB/s", "1.0 MB/s", "3.0 GB/s"]);
    }

    #[test]
    fn sizes_are_printed_with_their_unit() {
        assert_eq!(
            [0, 8, 4096, 1 << 20, 3 << 30, 1000].map(format_size),
            ["0 B", "8 B", "4 KiB", "1 MiB", "3 GiB", "1000 B"]
        );
    }

    #[test]
    fn counts_are_grouped_by_three() {
        assert_eq!(format_count(7), "7");
        assert_eq!(format_count(100_000), "100,000");
        assert_eq!(format_count(1_234_567), "1,234,567");
    }

    proptest! {
        #[test]
        fn a_printed_size_reads_back(bytes: u64) {
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (parse_bytes(&text), parse_count(&text), parse_duration(&text));
        }
    }
}
