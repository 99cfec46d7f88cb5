//! Sets of CPU numbers in the kernel's own list notation.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::{borrow::Cow, collections::BTreeSet, fmt, str::FromStr};

/// One more than the highest CPU number that is believed: the most that any kernel can be built for (x86 `MAXSMP`,
/// powerpc). It keeps a list such as `0-4294967295` from filling the memory.
pub const MAX_CPUS: usize = 8192;

/// A set of kernel CPU numbers, read and printed as the kernel does (`0-3,8,10-11`), in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs that are in both sets.
    pub fn intersect(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs of this set that are not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<T: IntoIterator<Item = usize>>(cpus: T) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = String;

    /// Reads a kernel CPU list. White space around it is ignored and an empty list is the empty set, since that is how
    /// the kernel prints one.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut cpus = BTreeSet::new();
        let list = text.trim();
        for part in list.split(',').filter(|_| !list.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (parse_cpu(list, first)?, parse_cpu(list, last)?);
            if first > last {
                return Err(format!("'{list}' has the range '{part}', which runs backwards"));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

fn parse_cpu(list: &str, digits: &str) -> Result<usize, String> {
    // `parse` alone would take a plus sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("'{list}' is not a CPU list such as 0-3,8"));
    }
    match digits.parse() {
        Ok(cpu) if cpu < MAX_CPUS => Ok(cpu),
        _ => Err(format!("'{list}' has the CPU {digits}, which is out of range (at most {})", MAX_CPUS - 1)),
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| *next == last + 1) {
                last = next;
            }
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl JsonSchema for CpuSet {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CpuSet".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl Serialize for CpuSet {
    /// The list notation: short on large machines, and the form that taskset and isolcpus take.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(set("0-3,8,10-11\n").iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8, 10, 11]);
        assert!(set("\n").is_empty());
        assert_eq!(set("5-5").len(), 1);
    }

    #[test]
    fn lists_are_printed_as_the_kernel_does() {
        assert_eq!(CpuSet::from_iter([11, 3, 2, 1, 0, 8, 10]).to_string(), "0-3,8,10-11");
        assert_eq!(CpuSet::default().to_string(), "");
        assert_eq!(serde_json::to_string(&set("0,1")).unwrap(), "\"0-1\"");
    }

    #[test]
    fn broken_lists_are_refused_with_the_text() {
        for text in ["a", "1,", ",1", "1-", "-1", "+1", "1--2", "1-2-3", "1;2", "0x1", "(null)", "1, 2"] {
            assert!(text.parse::<CpuSet>().unwrap_err().contains(text), "{text}");
        }
        assert!("3-1".parse::<CpuSet>().unwrap_err().contains("backwards"));
    }

    #[test]
    fn wide_values_are_refused() {
        assert_eq!(set("8191").len(), 1);
        for text in ["8192", "0-4294967295", "99999999999999999999999", "0-18446744073709551615"] {
            assert!(text.parse::<CpuSet>().unwrap_err().contains("out of range"), "{text}");
        }
    }

    #[test]
    fn sets_intersect_and_subtract() {
        assert_eq!(set("0-5").intersect(&set("4-9")), set("4-5"));
        assert_eq!(set("0-5").without(&set("4-9")), set("0-3"));
        assert!(set("0-5").contains(5) && !set("0-5").contains(6));
    }

    proptest! {
        #[test]
        fn a_printed_set_reads_back(cpus in proptest::collection::btree_set(0..MAX_CPUS, 0..64)) {
            let set = CpuSet(cpus);
            prop_assert_eq!(set.to_string().parse(), Ok(set));
        }

        #[test]
        fn no_text_panics(text in "\\PC*", list in "[0-9,-]{0,40}") {
            let _ = (text.parse::<CpuSet>(), list.parse::<CpuSet>());
        }
    }
}
