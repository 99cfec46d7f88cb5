//! The histogram: about ten rows over the body of the distribution, and what lies outside of it in two more.
//!
//! Latencies often have a narrow body and a long tail. Rows of one width would show either of them alone, and so would
//! rows on a log axis, since a body 1 % wide is one row there. So rows begin narrow, at the smallest latency, and widen.

use super::{BAR, Canvas};
use crate::{
    stats::{Bucket, Histogram},
    units::{format_count, format_ns},
};

/// Rows that widen; of one width there are up to `MOST_ROWS`, so that the width can be a round one.
const ROWS: u32 = 10;
const MOST_ROWS: u128 = 12;

/// A bar has at least so many cells, and if percentages stand beside, as many as the second number.
const LEAST_BAR: usize = 4;
const BAR_BESIDE_PERCENT: usize = 10;

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Counts of whole buckets between edges.
#[derive(Debug, PartialEq)]
pub(super) struct Rows {
    /// In order, at least two. A row begins at one, which belongs to it, and ends at the next one.
    edges: Vec<u64>,
    /// One for each row between two edges.
    counts: Vec<u64>,
    below: u64,
    above: u64,
    /// How much wider than the one before it each row is, about, if they widen.
    ratio: Option<f64>,
}

impl Rows {
    /// `None` for no samples.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let buckets = &histogram.buckets;
        let body = Body::of(buckets)?;
        let ratio = body.ratio();
        let edges = tidy(ratio.map_or_else(|| body.even_edges(), |ratio| body.widening_edges(ratio)), buckets);
        let mut rows = Self { counts: vec![0; edges.len() - 1], edges, below: 0, above: 0, ratio };
        for bucket in buckets {
            let row = rows.edges.partition_point(|&edge| edge <= bucket.lower_ns).checked_sub(1);
            let count = match row {
                None => &mut rows.below,
                Some(row) => rows.counts.get_mut(row).unwrap_or(&mut rows.above),
            };
            *count += bucket.count;
        }
        Some(rows)
    }

    /// Label and count of each row that is shown.
    fn labelled(&self, canvas: &Canvas) -> Vec<(String, u64)> {
        let label = |ns: u64| canvas.time(ns as f64);
        let mut rows: Vec<_> =
            self.edges.iter().zip(&self.counts).map(|(&edge, &count)| (label(edge), count)).collect();
        if self.below > 0 {
            rows.insert(0, (format!("below {}", label(self.edges[0])), self.below));
        }
        if let Some(&end) = self.edges.last().filter(|_| self.above > 0) {
            rows.push((format!("above {}", label(end)), self.above));
        }
        rows
    }

    /// `None` where there is no room for bars.
    pub fn draw(&self, canvas: &Canvas) -> Option<String> {
        let rows = self.labelled(canvas);
        let all: u64 = rows.iter().map(|(_, count)| count).sum();
        let largest = rows.iter().map(|&(_, count)| count).max()?;
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let label_width = widest(&mut rows.iter().map(|(label, _)| label.chars().count()));
        let count_width = widest(&mut rows.iter().map(|&(_, count)| format_count(count).len())).max("commands".len());
        let room = canvas.columns.checked_sub(label_width + count_width + 4).filter(|&room| room >= LEAST_BAR)?;
        let percent_width = ">99.99 %  ".len();
        let with_percent = room >= percent_width + BAR_BESIDE_PERCENT;
        let bar_width = if with_percent { room - percent_width } else { room };

        let mut text = format!("{:>label_width$}  {:>count_width$}", "from", "commands");
        let widens =
            self.ratio.map(|ratio| format!("  rows widen {}{ratio:.1}", if canvas.unicode { '×' } else { 'x' }));
        text.extend(widens.filter(|widens| widens.chars().count() <= room + 2));
        text.push('\n');
        for (label, count) in rows {
            let percent = if with_percent { format!("  {:>8}", percent(count, all)) } else { String::new() };
            let bar = canvas.paint(&bar(count, largest, bar_width, canvas.unicode), BAR);
            let count = format_count(count);
            text.push_str(format!("{label:>label_width$}  {count:>count_width$}{percent}  {bar}").trim_end());
            text.push('\n');
        }
        Some(text)
    }
}

/// A share that is 0 % or 100 % only if it is none or all.
fn percent(count: u64, all: u64) -> String {
    let percent = 100.0 * count as f64 / all.max(1) as f64;
    match percent {
        _ if count == 0 => "0 %".into(),
        _ if count == all => "100 %".into(),
        percent if percent < 0.01 => "<0.01 %".into(),
        percent if percent > 99.99 => ">99.99 %".into(),
        percent => format!("{percent:.2} %"),
    }
}

/// A bar of `width` cells for the largest count. However few, some are shown by the smallest mark, and none by none.
fn bar(count: u64, largest: u64, width: usize, unicode: bool) -> String {
    let least = u64::from(count > 0) as usize;
    let parts = |each: usize| {
        let parts = (count as f64 / largest.max(1) as f64 * (width * each) as f64).round() as usize;
        parts.clamp(least, width * each)
    };
    if !unicode {
        return "#".repeat(parts(1));
    }
    let eighths = parts(8);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// What the rows are to show, in whole nanoseconds.
struct Body {
    /// The first one.
    start: u64,
    /// Behind the last one.
    end: u64,
    /// Below it are three quarters of the commands.
    quarters: u64,
    /// Width of a bucket there. Narrower rows would be empty now and then for no reason but the buckets'.
    grain: u64,
}

impl Body {
    fn of(buckets: &[Bucket]) -> Option<Self> {
        let (first, last) = (buckets.first()?, buckets.last()?);
        let n: u64 = buckets.iter().map(|bucket| bucket.count).sum();
        let at = |per_mille: u64| {
            let rank = (u128::from(n) * u128::from(per_mille)).div_ceil(1000);
            let mut seen = 0;
            let reached = buckets.iter().find(|bucket| {
                seen += u128::from(bucket.count);
                seen >= rank
            });
            *reached.unwrap_or(last)
        };
        let (low, quarters) = (at(50), at(750));
        let grain = (quarters.upper_ns - quarters.lower_ns).max(1);
        // A few that are far faster than all others would move these out of the narrow rows.
        let (gap, spread) = (low.lower_ns - first.lower_ns, quarters.lower_ns - low.lower_ns);
        let near = u128::from(gap) <= 2 * u128::from(spread) + 4 * u128::from(grain);
        let start = if near { first.lower_ns } else { at(10).lower_ns };
        // The last thousandth is shown in full where that costs little; fewer than a thousand have none.
        let most = if n < 1000 { last.upper_ns } else { at(999).upper_ns };
        let whole = u128::from(last.upper_ns - start) * 2 <= u128::from(most - start) * 3;
        let end = if whole { last.upper_ns } else { most };
        Some(Self { start, end, quarters: quarters.upper_ns, grain })
    }

    /// Three quarters of the commands are to have about four rows.
    fn first_width(&self) -> u64 {
        ((self.quarters - self.start) / 4 / self.grain * self.grain).max(self.grain)
    }

    /// By how much rows must widen so that [`ROWS`] of them reach the end; `None` if they need not.
    fn ratio(&self) -> Option<f64> {
        let wanted = (self.end - self.start) as f64 / self.first_width() as f64;
        let reach = |ratio: f64| (0..ROWS as i32).map(|row| ratio.powi(row)).sum::<f64>();
        if wanted <= 1.5 * f64::from(ROWS) {
            return None;
        }
        let (mut low, mut high) = (1.0, wanted);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if reach(middle) < wanted { low = middle } else { high = middle }
        }
        Some(high)
    }

    fn widening_edges(&self, ratio: f64) -> Vec<u64> {
        let mut edges = vec![self.start / self.grain * self.grain];
        let (mut width, mut edge) = (self.first_width() as f64, self.start as f64);
        for _ in 1..ROWS {
            edge += width;
            width *= ratio;
            edges.push(((edge / self.grain as f64).round() as u64).saturating_mul(self.grain));
        }
        edges.retain(|&edge| edge < self.end);
        edges.push(self.end);
        edges
    }

    /// Edges at multiples of a round number, or of the buckets' width where that is hardly smaller.
    fn even_edges(&self) -> Vec<u64> {
        let grain = u128::from(self.grain);
        let round =
            (0..20).flat_map(|power| [10, 15, 20, 25, 30, 40, 50, 60, 80].map(|digits| digits * 10u128.pow(power)));
        let round = round.filter(|step| step % 10 == 0).map(|step| step / 10).filter(|&step| step > 4 * grain);
        let mut steps = (1..=4).map(|times| times * grain).chain(round);
        let (start, end) = (u128::from(self.start), u128::from(self.end));
        let fits = |step: &u128| (end - start / step * step).div_ceil(*step) <= MOST_ROWS;
        let step = steps.find(fits).unwrap_or(end.max(1));
        let first = start / step * step;
        let edges = (0..=MOST_ROWS + 1).map(|row| u64::try_from(first + row * step).unwrap_or(u64::MAX));
        let mut edges: Vec<u64> = edges.take_while(|&edge| edge < self.end).collect();
        // The last row is a whole one, too.
        edges.push(u64::try_from(first + edges.len() as u128 * step).unwrap_or(u64::MAX));
        edges
    }
}

/// Moves edges out of the middle of buckets, and takes those away that look like the one before.
fn tidy(mut edges: Vec<u64>, buckets: &[Bucket]) -> Vec<u64> {
    for edge in &mut edges {
        let inside = buckets.partition_point(|bucket| bucket.upper_ns <= *edge);
        if let Some(bucket) = buckets.get(inside).filter(|bucket| bucket.lower_ns < *edge) {
            *edge = bucket.lower_ns;
        }
    }
    let Some(end) = edges.pop() else { return edges };
    let label = |edge: u64| format_ns(edge as f64);
    edges.dedup_by_key(|edge| label(*edge));
    if edges.len() > 1 {
        edges.pop_if(|last| label(*last) == label(end));
    }
    edges.push(end);
    edges
}
