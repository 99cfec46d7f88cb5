use proptest::prelude::*;

use super::*;
use crate::{
    stats::{nearest_rank, outliers},
    timing::PhasedSample,
};

/// A TSC's, so that neither ticks nor nanoseconds are whole numbers of the other.
const TSC: f64 = 2.0949;

/// Everything from no time at all to days, and all powers of two are as likely.
fn ticks() -> impl Strategy<Value = u64> {
    (0u32..50, any::<u64>()).prop_map(|(bits, any)| any & ((1 << bits) - 1))
}

/// Latencies that differ by little, as those of one command do, with some that are far off.
fn latencies(most: usize) -> impl Strategy<Value = Vec<u64>> {
    let like_each_other = (1u64..1 << 24).prop_flat_map(|typical| typical..typical + typical / 8 + 2);
    let one = prop_oneof![4 => like_each_other, 1 => ticks()];
    proptest::collection::vec(one, 1..most)
}

/// One command after the other, half of each spent on the hand-over.
fn run(begin: u64, latencies: &[u64]) -> Vec<PhasedSample> {
    let mut start = begin;
    let sample = |&latency: &u64| {
        let sample = PhasedSample { start, submitted: start + latency / 2, stop: start + latency };
        start = sample.stop + 3;
        sample
    };
    latencies.iter().map(sample).collect()
}

fn digest<S: Stamps>(samples: &[S]) -> Digest {
    let mut digest = Digest::new(10);
    digest.fold(samples);
    digest
}

fn percentiles(summary: &Summary) -> Vec<Option<f64>> {
    let Some(serde_json::Value::Object(all)) = serde_json::to_value(&summary.percentiles).ok() else {
        return Vec::new();
    };
    let mut all: Vec<_> = all.into_iter().map(|(q, value)| (q.parse::<f64>().unwrap(), value.as_f64())).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, value)| value).collect()
}

/// Everything but the percentiles is the same; those are within `most` above, in order, and null at the same places.
fn agree(digest: &Summary, exact: &Summary, most: f64) -> Result<(), TestCaseError> {
    let plain = |summary: &Summary| Summary { percentiles: Default::default(), ..summary.clone() };
    prop_assert_eq!(plain(digest), plain(exact));
    let mut last = exact.min;
    for (own, exact_value) in percentiles(digest).into_iter().zip(percentiles(exact)) {
        prop_assert_eq!(own.is_some(), exact_value.is_some());
        let (Some(own), Some(exact_value)) = (own, exact_value) else { continue };
        prop_assert!(exact_value <= own && own <= exact_value * (1.0 + most), "{} for {}", own, exact_value);
        prop_assert!(last <= Some(own) && Some(own) <= exact.max);
        last = Some(own);
    }
    Ok(())
}

#[test]
fn without_samples_there_are_no_figures() {
    let (empty, scale) = (Digest::new(10), Scale::of(TSC));
    assert_eq!(empty.figures(scale), Figures::default());
    assert_eq!(Figures::of_samples::<Sample>(&[], 10, scale), Figures::default());
    let mut both = empty.clone();
    both.merge(&empty);
    both.fold::<Sample>(&[]);
    assert!(both == empty);
}

#[test]
fn durations_of_no_ticks_are_counted_as_such() {
    let samples = run(7, &[0, 0, 0, 0, 5]);
    let figures = digest(&samples).figures(Scale::of(1.0));
    assert_eq!((figures.latency.min, figures.latency.percentiles.p50), (Some(0.0), Some(0.0)));
    assert_eq!(figures.histogram, Figures::of_samples(&samples, 10, Scale::of(1.0)).histogram);
    assert_eq!(figures.histogram.buckets[0].count, 4);
}

#[test]
fn any_stamps_are_taken_without_a_panic() {
    let extremes = [0, 1, 1 << 53, u64::MAX];
    let all = extremes.iter().flat_map(|&start| extremes.iter().map(move |&stop| (start, stop)));
    let samples: Vec<_> = all.map(|(start, stop)| PhasedSample { start, submitted: stop, stop }).collect();
    let (mut one, mut other) = (digest(&samples), digest(&samples[8..]));
    other.fold(&samples);
    for scale in [Scale::of(1.0), Scale::of(1e-6), Scale::of(1e6)] {
        one.merge(&other);
        let figures = one.figures(scale);
        let (summary, p50) = (&figures.latency, figures.latency.percentiles.p50);
        assert!(summary.min <= p50 && p50 <= summary.max, "{summary:?}");
        assert_eq!(figures.timeline.iter().map(|window| window.n).sum::<u64>(), summary.n);
    }
}

#[test]
fn percentiles_beyond_the_last_bucket_stay_between_the_extremes() {
    let samples = [u64::MAX - 1, u64::MAX, u64::MAX].map(|stop| Sample { start: 0, stop });
    let summary = digest(&samples).summary(Scale::of(1.0));
    assert!(summary.min <= summary.percentiles.p50 && summary.percentiles.p50 <= summary.max, "{summary:?}");
}

#[test]
fn memory_is_that_of_the_beginning_however_many_samples_come() {
    let mut digest = Digest::new(10);
    let before = digest.bytes();
    assert!((6_000_000..7_000_000).contains(&before), "{before}");
    (0..20).for_each(|round| digest.fold(&run(round << 40, &[1000; 500])));
    assert_eq!(digest.bytes(), before);
}

#[test]
fn a_command_that_was_overtaken_belongs_to_the_first_window() {
    let samples = [Sample { start: 1000, stop: 1010 }, Sample { start: 900, stop: 1200 }];
    let digest = digest(&samples);
    let timeline = digest.timeline(Scale::of(1.0));
    assert_eq!((timeline[0].n, timeline[0].max_ns), (2, Some(300.0)));
    let places: Vec<_> = digest.outliers(Scale::of(1.0)).iter().map(|o| (o.index, o.at_ns)).collect();
    assert_eq!(places, [(1, 0.0), (0, 100.0)]);
    let span = Span { first_start: 900, last_start: 1000, last_stop: 1200, busy: 310 };
    assert_eq!((digest.span(), span.elapsed()), (Some(span), 300));
}

#[test]
fn the_tail_holds_what_is_above_its_reported_threshold() {
    let mut latencies: Vec<u64> = (0..20_000).map(|number| 100_000 + number % 5_000).collect();
    latencies.extend([7_000_000; 5]);
    let (samples, scale) = (run(0, &latencies), Scale::of(TSC));
    let beyond = digest(&samples).beyond(scale).unwrap();
    let threshold = (beyond.threshold_ns * TSC).round() as u64;
    assert_eq!(beyond.percentile, 99.9);
    assert_eq!(beyond.commands, latencies.iter().filter(|&&latency| latency > threshold).count() as u64);
    let gaps = [(1_000.0, 3)];
    let exact = Figures::of_samples(&samples, 10, scale).tail(&gaps, 1e6).unwrap();
    let tail = digest(&samples).figures(scale).tail(&gaps, 1e6).unwrap();
    assert_eq!((tail.percentile, tail.gaps_heard), (exact.percentile, exact.gaps_heard));
}

#[test]
fn half_of_round_trips_is_reported_where_that_is_asked_for() {
    let samples = run(0, &[2000; 300]);
    let (own, exact) =
        (digest(&samples).figures(Scale::halved(1.0)), Figures::of_samples(&samples, 1, Scale::halved(1.0)));
    assert_eq!((own.latency.min, own.latency.percentiles.p50), (Some(1000.0), exact.latency.percentiles.p50));
    assert_eq!(own.outliers[0], exact.outliers[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn figures_are_those_of_the_samples_within_the_error_stated(latencies in latencies(3000)) {
        let samples = run(1 << 40, &latencies);
        // In ticks the bounds hold as they are; a scaled figure is rounded to picoseconds, too.
        let (own, exact) = (digest(&samples).figures(Scale::of(1.0)), Figures::of_samples(&samples, 10, Scale::of(1.0)));
        agree(&own.latency, &exact.latency, 0.001)?;
        agree(&own.submit.unwrap(), &exact.submit.unwrap(), 0.001)?;
        agree(&own.wait.unwrap(), &exact.wait.unwrap(), 0.001)?;
        prop_assert_eq!((own.slowest, own.span), (exact.slowest, exact.span));
        let scaled = digest(&samples).outliers(Scale::of(TSC));
        prop_assert_eq!(scaled, outliers(&samples, 10, Scale::of(TSC)));
    }

    #[test]
    fn commands_that_overtook_each_other_have_the_same_figures(latencies in latencies(500), apart in 0u64..1 << 24) {
        let start = |number: u64| 7 + number * apart;
        let mut samples: Vec<_> =
            (0..).map(start).zip(&latencies).map(|(start, latency)| Sample { start, stop: start + latency }).collect();
        samples.sort_by_key(|sample| sample.stop);
        let scale = Scale::of(1.0);
        let (own, exact) = (digest(&samples).figures(scale), Figures::of_samples(&samples, 10, scale));
        agree(&own.latency, &exact.latency, 0.001)?;
        prop_assert_eq!((own.outliers, own.slowest, own.span), (exact.outliers, exact.slowest, exact.span));
        prop_assert_eq!((own.submit, own.wait), (None, None));
        let n = |timeline: &[Window]| timeline.iter().map(|window| window.n).sum::<u64>();
        prop_assert_eq!((n(&own.timeline), n(&exact.timeline)), (own.latency.n, own.latency.n));
    }

    #[test]
    fn how_samples_are_divided_between_calls_makes_no_difference(latencies in latencies(400), cuts in any::<[prop::sample::Index; 3]>()) {
        let samples = run(5, &latencies);
        let mut cuts = cuts.map(|cut| cut.index(samples.len() + 1));
        cuts.sort_unstable();
        let [first, second, third] = cuts;
        let mut divided = Digest::new(10);
        for part in [&samples[..first], &samples[first..second], &samples[second..third], &samples[third..]] {
            divided.fold(part);
        }
        prop_assert!(divided == digest(&samples));
    }

    #[test]
    fn merging_threads_that_began_together_is_taking_the_samples_of_both(one in latencies(200), other in latencies(200)) {
        let (one, other) = (run(5, &one), run(5, &other));
        let mut merged = digest(&one);
        merged.merge(&digest(&other));
        let mut both = digest(&one);
        both.fold(&other);
        prop_assert!(merged == both);
        let mut into_none = Digest::new(10);
        into_none.merge(&both);
        prop_assert!(into_none == both);
    }

    #[test]
    fn merging_other_threads_loses_no_command(
        one in latencies(100), other in latencies(100), begin in ticks(), later in ticks(),
    ) {
        let (one, other) = (run(begin, &one), run(later, &other));
        let mut merged = digest(&one);
        merged.merge(&digest(&other));
        let (scale, all) = (Scale::of(1.0), [one, other].concat());
        let mut both = digest(&all);
        both.windows = merged.windows.clone();
        prop_assert!(merged == both);
        let timeline = merged.timeline(scale);
        prop_assert!(timeline.len() <= 100);
        prop_assert_eq!(timeline.iter().map(|window| window.n).sum::<u64>(), all.len() as u64);
        // Each is in the window that it began in, or in the one before.
        let (mut so_far, origin) = (0, begin.min(later));
        for (window, next) in timeline.iter().zip(timeline.iter().skip(1)) {
            let length = next.at_ns as u64 - window.at_ns as u64;
            let before = |end: u64| all.iter().filter(|sample| sample.start - origin < end).count() as u64;
            so_far += window.n;
            prop_assert!((before(next.at_ns as u64)..=before(next.at_ns as u64 + length)).contains(&so_far));
        }
    }

    #[test]
    fn a_sample_is_in_the_bucket_that_names_it_unless_it_rounds_to_its_upper_bound(latencies in latencies(500), scale in 0.2f64..10.0) {
        let buckets = digest(&run(0, &latencies)).histogram(Scale::of(scale)).buckets;
        let rounded: Vec<u64> = latencies.iter().map(|&ticks| (ticks as f64 / scale).round() as u64).collect();
        let mut so_far = 0;
        prop_assert!(buckets.windows(2).all(|pair| pair[0].upper_ns <= pair[1].lower_ns));
        for bucket in buckets {
            let below = rounded.iter().filter(|&&ns| ns < bucket.lower_ns).count() as u64;
            prop_assert!(below <= so_far);
            so_far += bucket.count;
            prop_assert!(bucket.lower_ns < bucket.upper_ns && bucket.count > 0);
            prop_assert!(bucket.upper_ns as f64 <= bucket.lower_ns as f64 * (1.0 + 1.0 / 1024.0) + 2.0 + 1.0 / scale);
            let (inside, at_most) = (
                rounded.iter().filter(|&&ns| ns < bucket.upper_ns).count() as u64,
                rounded.iter().filter(|&&ns| ns <= bucket.upper_ns).count() as u64,
            );
            prop_assert!((inside..=at_most).contains(&so_far));
        }
        prop_assert_eq!(so_far, latencies.len() as u64);
    }

    #[test]
    fn windows_hold_the_commands_that_began_in_them(latencies in latencies(2000)) {
        let samples = run(1 << 30, &latencies);
        let timeline = digest(&samples).timeline(Scale::of(1.0));
        let elapsed = Span::of(&samples).unwrap().elapsed();
        prop_assert!(timeline.len() <= 100 && (elapsed < 100 || timeline.len() > 50), "{} windows", timeline.len());
        let length = timeline.get(1).map_or(elapsed as f64 + 1.0, |second| second.at_ns);
        for window in timeline {
            let within = |sample: &&PhasedSample| {
                let at = (sample.start - (1 << 30)) as f64;
                window.at_ns <= at && at < window.at_ns + length
            };
            let mut inside: Vec<u64> = samples.iter().filter(within).map(|sample| sample.stop - sample.start).collect();
            inside.sort_unstable();
            let exact = Summary::of_sorted(&inside, 1.0);
            prop_assert_eq!((window.n, window.max_ns), (exact.n, exact.max));
            for (own, exact, q) in [(window.p50_ns, exact.percentiles.p50, 50_000), (window.p99_ns, exact.percentiles.p99, 99_000)] {
                prop_assert_eq!(own.is_some(), exact.is_some());
                let (Some(own), Some(exact)) = (own, nearest_rank(&inside, q)) else { continue };
                prop_assert!(exact as f64 <= own && own <= exact as f64 * (1.0 + 1.0 / 128.0));
            }
        }
    }
}
