//! How fio writes numbers, sizes, times and lists.

use std::time::Duration;

/// A size in bytes, or any other whole number: fio reads all of them this way, so `rate_iops=1k` is 1024.
///
/// `k` is `kb_base`. `kib` is the other one of 1000 and 1024: by default, where `k` is 1024, `kib` is 1000. The standards
/// have it the other way round; fio keeps it for old files.
///
/// # Errors
/// A sentence that quotes the text and says what was expected.
pub fn number(text: &str, kb_base: u64) -> Result<u64, String> {
    let wrong = || format!("a whole number such as 512 or 4k was expected, '{text}' was found");
    let lower = text.trim().to_ascii_lowercase();
    if let Some(hexadecimal) = lower.strip_prefix("0x") {
        // The standard library would take a sign here.
        let digits = hexadecimal.chars().all(|digit| digit.is_ascii_hexdigit()).then_some(hexadecimal);
        return digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(wrong);
    }
    if lower.ends_with('%') {
        return Err(format!("'{text}' is a part of the file: write it in bytes"));
    }
    let (digits, suffix) = lower.split_at(lower.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(lower.len()));
    if digits.is_empty() {
        return Err(wrong());
    }
    let prefix = suffix.strip_suffix('b').unwrap_or(suffix);
    let (prefix, is_other) = prefix.strip_suffix('i').map_or((prefix, false), |prefix| (prefix, true));
    let power = match prefix {
        "" if !is_other => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(wrong()),
    };
    let base = if is_other { 2024 - kb_base.clamp(1000, 1024) } else { kb_base };
    let digits = digits.parse::<u64>().ok();
    let value = base.checked_pow(power).and_then(|unit| digits?.checked_mul(unit));
    value.ok_or_else(|| format!("'{text}' is out of range (at most {})", u64::MAX))
}

/// Whether a number has a suffix that fio's manual and fio itself read differently: `4ki` is 4000 in the one and 4096 in
/// the other by default.
pub fn is_ambiguous(text: &str) -> bool {
    let lower = text.trim().to_ascii_lowercase();
    lower.ends_with('i') && lower.starts_with(|sign: char| sign.is_ascii_digit())
}

/// The part of a value that is about one direction: `READ,WRITE,TRIM`. A single one is about all, the second of two about
/// everything but reads; an empty one leaves the default.
pub fn of_direction(text: &str, writes: bool) -> Option<&str> {
    let mut parts = text.split(',').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let chosen = if writes { parts.next().unwrap_or(first) } else { first };
    (!chosen.is_empty()).then_some(chosen)
}

/// Numbers with `*` between them.
pub fn product(text: &str) -> Option<u64> {
    text.split('*').try_fold(1u64, |product, factor| product.checked_mul(number(factor, 1024).ok()?))
}

/// A time; a bare number is seconds.
///
/// # Errors
/// As [`number`].
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("a time such as 10s was expected, '{text}' was found");
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = lower.split_at(lower.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(lower.len()));
    if digits.is_empty() {
        return Err(wrong());
    }
    let nanoseconds: u64 = match unit {
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "" | "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(wrong()),
    };
    let value = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(nanoseconds));
    value.map(Duration::from_nanos).ok_or_else(|| format!("'{text}' is out of range"))
}

/// A switch: without a value it is on.
///
/// # Errors
/// As [`number`].
pub fn switch(value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(other) => Err(format!("0 or 1 was expected, '{other}' was found")),
    }
}

/// Processors such as `0-3,8`, as a comma list.
///
/// # Errors
/// As [`number`].
pub fn cpus(text: &str) -> Result<String, String> {
    const MOST: u32 = 65_536;
    let mut all = Vec::new();
    for part in text.split([',', ':']) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds = first.trim().parse::<u32>().ok().zip(last.trim().parse::<u32>().ok());
        let Some((first, last)) = bounds.filter(|&(first, last)| first <= last && last < MOST) else {
            return Err(format!("processors such as 0-3,8 were expected, '{text}' was found"));
        };
        all.extend(first..=last);
        // Each number once: a list of ranges that repeat each other stays bounded.
        all.sort_unstable();
        all.dedup();
    }
    Ok(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

/// The processors of a bit mask, as a comma list.
///
/// # Errors
/// As [`number`]; a mask without a processor.
pub fn cpu_mask(text: &str) -> Result<String, String> {
    let mask = number(text, 1024)?;
    let all: Vec<_> = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
    if all.is_empty() { Err("a mask with at least one processor was expected".into()) } else { Ok(all.join(",")) }
}

/// A time as the command line takes it.
pub fn typed_time(time: Duration) -> String {
    match (time.as_nanos() % 1_000_000_000, time.as_nanos() % 1_000_000) {
        (0, _) => format!("{}s", time.as_secs()),
        (_, 0) => format!("{}ms", time.as_millis()),
        _ => format!("{}us", time.as_micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_follow_kb_base_and_kib_is_the_other_one() {
        for (text, by_1024, by_1000) in [
            ("512", 512, 512),
            ("4k", 4096, 4000),
            ("4kb", 4096, 4000),
            ("4K", 4096, 4000),
            ("4096B", 4096, 4096),
            ("4KiB", 4000, 4096),
            ("4ki", 4000, 4096),
            ("1m", 1 << 20, 1_000_000),
            ("1mib", 1_000_000, 1 << 20),
            ("100g", 100 << 30, 100_000_000_000),
            ("2t", 2 << 40, 2_000_000_000_000),
            ("0x200", 512, 512),
        ] {
            assert_eq!((number(text, 1024), number(text, 1000)), (Ok(by_1024), Ok(by_1000)), "{text}");
        }
    }

    #[test]
    fn what_is_no_whole_number_is_refused_with_the_text() {
        for text in ["", "k", "4x", "-1", "+1", "4 k", "1.5k", "i", "4i", "4bb", "0x", "0x+1", "0xg", "(1+1)"] {
            let why = number(text, 1024).unwrap_err();
            assert!(why.contains("a whole number") && why.contains(&format!("'{text}'")), "{text}: {why}");
        }
        assert!(number("50%", 1024).unwrap_err().contains("in bytes"));
        assert!(number("99999999999p", 1024).unwrap_err().contains("out of range"));
        assert!(number("99999999999999999999999", 1024).unwrap_err().contains("out of range"));
    }

    #[test]
    fn a_bare_i_is_what_manual_and_program_disagree_on() {
        assert!(is_ambiguous("4ki") && is_ambiguous("1Mi"));
        assert!(!is_ambiguous("4k") && !is_ambiguous("4kib") && !is_ambiguous("i"));
    }

    #[test]
    fn values_for_reads_and_writes_stand_side_by_side() {
        assert_eq!((of_direction("4k", false), of_direction("4k", true)), (Some("4k"), Some("4k")));
        assert_eq!((of_direction("4k,8k", false), of_direction("4k,8k", true)), (Some("4k"), Some("8k")));
        assert_eq!((of_direction(",8k", false), of_direction("4k,,2k", true)), (None, None));
    }

    #[test]
    fn times_are_in_seconds_unless_they_say_otherwise() {
        for (text, ms) in [("10", 10_000), ("10S", 10_000), ("2m", 120_000), ("1h", 3_600_000), ("5msec", 5)] {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "soon", "1:00", "-1", "1.5s", "10 s"] {
            assert!(time(text).unwrap_err().contains("a time such as 10s"), "{text}");
        }
        assert!(time("99999999999999d").unwrap_err().contains("out of range"));
        let typed = |us| typed_time(Duration::from_micros(us));
        assert_eq!([typed(2_000_000), typed(1_500_000), typed(1_500)], ["2s", "1500ms", "1500us"]);
    }

    #[test]
    fn processors_are_lists_of_ranges_or_masks() {
        assert_eq!(cpus("0-2,8,1"), Ok("0,1,2,8".into()));
        assert_eq!(cpu_mask("0x5"), Ok("0,2".into()));
        for text in ["", "2-1", "a", "0-99999999", "1,", "-"] {
            assert!(cpus(text).unwrap_err().contains("0-3,8"), "{text}");
        }
        assert!(cpu_mask("0").is_err());
    }

    #[test]
    fn switches_are_on_without_a_value() {
        assert_eq!([switch(None), switch(Some("1")), switch(Some("0"))], [Ok(true), Ok(true), Ok(false)]);
        assert!(switch(Some("true")).unwrap_err().contains("0 or 1"));
    }

    #[test]
    fn products_are_whole() {
        assert_eq!((product("2*4096"), product("8"), product("2*x")), (Some(8192), Some(8), None));
        assert_eq!(product("9999999999999999999*9"), None);
    }
}
