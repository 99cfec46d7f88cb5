use super::*;
use crate::{
    engine::{Done, Null, NullQueue},
    timing::{MonotonicRaw, Sample, Stamps, filled},
};

/// Runs at depth one, and gives the samples as well.
fn single_run(engine: &mut impl Engine, room: usize, limits: Limits, control: &Control) -> (Taken, Vec<Sample>) {
    let mut samples = filled(room);
    let taken = run::<_, MonotonicRaw, _>(engine, &mut Way::Single, &mut samples.as_mut_slice(), limits, control);
    samples.truncate(taken.samples as usize);
    (taken, samples)
}

/// Runs a window of `depth`.
fn deep_run(engine: &mut impl Engine, depth: u32, limits: Limits, control: &Control) -> (Taken, Vec<Sample>) {
    let mut samples = filled(limits.count.unwrap_or(1 << 22) as usize);
    let mut way = Way::Window(Box::new(Window::new(depth, AtOnce)));
    let taken = run::<_, MonotonicRaw, _>(engine, &mut way, &mut samples.as_mut_slice(), limits, control);
    samples.truncate(taken.samples as usize);
    (taken, samples)
}

/// Fails at one command, or never completes it.
struct Broken {
    at: u64,
    issued: u64,
    hangs: bool,
}

impl Engine for Broken {
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        self.issued += 1;
        if self.issued - 1 == self.at && !self.hangs { Err(Fault::Failed(5)) } else { Ok(()) }
    }
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        if self.issued - 1 != self.at {
            done.complete(0, Ok(()));
        }
        Ok(())
    }
}

#[test]
fn exactly_the_count_is_measured_and_exactly_the_warmup_is_discarded() {
    let control = Control::default();
    let mut engine = Broken { at: u64::MAX, issued: 0, hangs: false };
    let room = 1234;
    let limits = Limits { warmup: 77, ..Limits::default() };
    let (taken, samples) = single_run(&mut engine, room, limits, &control);
    assert_eq!((taken.samples, taken.end, engine.issued), (1234, End::Count, 1234 + 77));
    assert!(samples.iter().all(|sample| sample.start() <= sample.stop()));
    assert!(samples.windows(2).all(|pair| pair[0].stop() <= pair[1].start()));
}

#[test]
fn a_fault_keeps_the_samples_before_it_and_names_its_command() {
    let mut engine = Broken { at: 100, issued: 0, hangs: false };
    let room = 200;
    let (taken, _) = single_run(&mut engine, room, Limits::default(), &Control::default());
    assert_eq!(taken.samples, 100);
    assert_eq!(taken.end, End::Fault { warmup: false, index: 100, slot: 0, fault: Fault::Failed(5) });
    assert!(taken.failed.is_empty());
}

#[test]
fn a_run_that_goes_on_counts_failed_commands_and_issues_no_more_for_them() {
    for (at, warmup, measured) in [(0, 10, 200), (9, 10, 200), (10, 10, 199), (109, 10, 199), (209, 10, 199)] {
        let mut engine = Broken { at, issued: 0, hangs: false };
        let room = 200;
        let limits = Limits { warmup, count: Some(200), continue_on_error: true, ..Limits::default() };
        let (taken, _) = single_run(&mut engine, room, limits, &Control::default());
        assert_eq!((taken.samples, taken.end, engine.issued), (measured, End::Count, 210), "{at}");
        assert_eq!(taken.failed, BTreeMap::from([("EIO".to_string(), 1)]), "{at}");
    }
}

/// Refuses its first commands at once, then takes its time.
struct LateStart {
    refusals: u32,
}

impl Engine for LateStart {
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(Fault::Failed(libc::EIO));
        }
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        done.complete(0, Ok(()));
        Ok(())
    }
}

#[test]
fn limits_are_kept_after_a_burst_of_failures() {
    let room = 3000;
    let duration = Some(Duration::from_millis(100));
    let limits = Limits { duration, continue_on_error: true, ..Limits::default() };
    let mut engine = LateStart { refusals: 1000 };
    let (taken, _) = single_run(&mut engine, room, limits, &Control::default());
    // All would take two seconds.
    assert_eq!((taken.end, &taken.failed), (End::Duration, &BTreeMap::from([("EIO".to_string(), 1000)])));
}

#[test]
fn a_command_that_never_completes_is_given_up_when_told() {
    let control = Control::default();
    let mut engine = Broken { at: 10, issued: 0, hangs: true };
    let room = 20;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            control.request(Stop::Stalled);
            control.abandon();
        });
        let (taken, _) = single_run(&mut engine, room, Limits::default(), &control);
        assert_eq!((taken.samples, taken.end), (10, End::Stopped(Stop::Stalled)));
    });
}

#[test]
fn a_time_limit_ends_the_run_with_what_was_measured() {
    let room = 1 << 24;
    let limits = Limits { duration: Some(Duration::from_millis(30)), ..Limits::default() };
    let (taken, _) = single_run(&mut Null, room, limits, &Control::default());
    assert_eq!(taken.end, End::Duration);
    assert!(taken.samples > 0 && taken.samples < room as u64);
}

/// Completes what is in flight in the opposite order, a few at a time; one command fails.
#[derive(Default)]
struct Backwards {
    flying: Vec<u32>,
    issued: u64,
    most_flying: usize,
    fails_at: Option<u64>,
    failing: Option<u32>,
}

impl Engine for Backwards {
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn submit(&mut self, slot: u32) -> Result<(), Fault> {
        assert!(!self.flying.contains(&slot));
        self.flying.push(slot);
        if self.fails_at == Some(self.issued) {
            self.failing = Some(slot);
        }
        self.issued += 1;
        self.most_flying = self.most_flying.max(self.flying.len());
        Ok(())
    }
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        for _ in 0..D::MOST.min(3) {
            let Some(slot) = self.flying.pop() else { break };
            let fails = self.failing.take_if(|failing| *failing == slot).is_some();
            done.complete(slot, if fails { Err(Fault::Failed(libc::EIO)) } else { Ok(()) });
        }
        Ok(())
    }
}

#[test]
fn a_window_issues_exactly_the_count_at_any_depth() {
    for (depth, count, warmup) in [(2, 1001, 0), (7, 1000, 10), (64, 1000, 128), (64, 10, 100), (1000, 3, 0)] {
        let mut engine = Backwards::default();
        let limits = Limits { warmup, count: Some(count), ..Limits::default() };
        let (taken, samples) = deep_run(&mut engine, depth, limits, &Control::default());
        assert_eq!((taken.samples, taken.end, engine.issued), (count, End::Count, count + warmup), "{depth}");
        assert_eq!((samples.len() as u64, engine.most_flying as u64), (count, u64::from(depth).min(count + warmup)));
        assert!(samples.iter().all(|sample| sample.start() <= sample.stop()));
        assert!(samples.is_sorted_by_key(Stamps::stop));
        assert_eq!(taken.depths.depths().iter().map(|class| class.commands).sum::<u64>(), count);
    }
}

#[test]
fn a_window_counts_failures_and_goes_on_or_ends_with_the_slot() {
    for (fails_at, warmup, measured) in [(0, 10, 200), (9, 10, 200), (50, 10, 199), (209, 10, 199)] {
        let mut engine = Backwards { fails_at: Some(fails_at), ..Backwards::default() };
        let limits = Limits { warmup, count: Some(200), continue_on_error: true, ..Limits::default() };
        let (taken, _) = deep_run(&mut engine, 8, limits, &Control::default());
        assert_eq!((taken.samples, taken.end, engine.issued), (measured, End::Count, 210), "{fails_at}");
        assert_eq!(taken.failed, BTreeMap::from([("EIO".to_string(), 1)]));
    }
    let mut engine = Backwards { fails_at: Some(50), ..Backwards::default() };
    let limits = Limits { count: Some(200), ..Limits::default() };
    let (taken, _) = deep_run(&mut engine, 8, limits, &Control::default());
    assert!(matches!(taken.end, End::Fault { warmup: false, fault: Fault::Failed(libc::EIO), .. }), "{taken:?}");
    assert!(taken.samples < 200);
}

#[test]
fn a_time_limit_ends_a_window_and_what_is_in_flight_is_measured() {
    let limits = Limits { warmup: 100, duration: Some(Duration::from_millis(30)), ..Limits::default() };
    let mut engine = Backwards::default();
    let (taken, samples) = deep_run(&mut engine, 16, limits, &Control::default());
    assert_eq!((taken.end, taken.samples + 100), (End::Duration, engine.issued));
    assert_eq!(samples.len() as u64, taken.samples);
}

#[test]
fn a_timetable_is_kept_and_a_stall_shows_in_every_response_behind_it() {
    /// Its 200th command takes 50 ms.
    struct Stalls {
        inner: NullQueue,
        issued: u32,
    }
    impl Engine for Stalls {
        fn prepare(&mut self, slot: u32) -> Result<(), Fault> {
            self.inner.prepare(slot)
        }
        fn submit(&mut self, slot: u32) -> Result<(), Fault> {
            self.issued += 1;
            if self.issued == 200 {
                std::thread::sleep(Duration::from_millis(50));
            }
            self.inner.submit(slot)
        }
        fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
            self.inner.poll(done)
        }
    }
    // 10,000 commands a second of the monotonic clock, whose ticks are nanoseconds.
    let pace = Timetable::new(100_000.0, crate::engine::Arrivals::Fixed, 1);
    let mut way = Way::Window(Box::new(Window::new(1, pace)));
    let mut samples = filled::<crate::timing::PacedSample>(2000);
    let limits = Limits { count: Some(2000), ..Limits::default() };
    let mut engine = Stalls { inner: NullQueue::new(1), issued: 0 };
    let taken = run::<_, MonotonicRaw, _>(&mut engine, &mut way, &mut &mut samples[..], limits, &Control::default());
    assert_eq!((taken.end, taken.samples), (End::Count, 2000));
    let behind = samples.iter().filter(|sample| sample.stop - sample.intended > 5_000_000).count();
    let slow = samples.iter().filter(|sample| sample.stop - sample.start > 5_000_000).count();
    // 450 of the 500 that were due in those 50 ms had to wait for more than 5 ms; one alone was slow itself.
    assert!(behind >= 440 && (1..100).contains(&slow), "{behind} {slow}");
    let times: Vec<_> = samples.iter().map(|sample| sample.intended - samples[0].intended).collect();
    assert!(times.iter().zip(0u64..).all(|(&time, index)| time == index * 100_000));
}

#[test]
fn a_chunk_follows_the_pace() {
    assert_eq!(next_chunk(16, Duration::from_micros(1), None), 128);
    assert_eq!(next_chunk(128, Duration::from_millis(128), None), 20);
    assert_eq!(next_chunk(1, Duration::from_secs(1), None), 1);
}
