//! The measuring loops allocate nothing: an allocator that counts proves it.

// An allocator is unsafe by its trait; it has a test binary of its own.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

use lat_probe::{
    engine::{Arrivals, Done, Engine, Fault, Null, NullQueue, Spin},
    measure::{AtOnce, Control, End, Limits, Stamped, Timetable, Way, Window, run, single},
    timing::{Counter, MonotonicRaw, PacedSample, PhasedSample, Sample, Source, Tsc, filled, tsc},
};

struct Counting;

thread_local! {
    // By thread, since the test runner's other threads allocate as they like. A constant needs no allocation itself.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more, and nothing of interest to count.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and releases of this thread while `work` runs.
fn calls_of(work: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    work();
    CALLS.get() - before
}

const COMMANDS: usize = 20_000;

/// Both loops, with warm-up and with a time limit, over samples that are there before.
fn assert_allocates_nothing<E: Engine, C: Counter, S: Stamped>(name: &str, mut engine: E) {
    let control = Control::default();
    let mut samples = filled::<S>(COMMANDS);
    let limits = Limits { warmup: 1000, duration: Some(Duration::from_secs(60)), ..Limits::default() };
    let mut outcome = (0, None);
    let in_run = calls_of(|| {
        let taken = run::<E, C, S>(&mut engine, &mut Way::Single, &mut &mut samples[..], limits, &control);
        outcome = (taken.samples as usize, Some(taken.end));
    });
    assert_eq!(outcome, (COMMANDS, Some(End::Count)), "{name}");
    let mut done = 0;
    let in_single = calls_of(|| done = single::<E, C, S>(&mut engine, &mut samples, &control).0);
    assert_eq!(done, COMMANDS, "{name}");
    assert_eq!((in_run, in_single), (0, 0), "{name}: calls to the allocator in `run` and in `single`");
}

/// A window of commands, with everything that it counts.
fn assert_window_allocates_nothing<C: Counter, S: Stamped>(name: &str, pace: S::Pace) {
    let mut way = Way::Window(Box::new(Window::<S>::new(64, pace)));
    let mut samples = filled::<S>(COMMANDS);
    let limits = Limits { warmup: 1000, count: Some(COMMANDS as u64), ..Limits::default() };
    let (mut engine, control) = (NullQueue::new(64), Control::default());
    let mut outcome = (0, None);
    let calls = calls_of(|| {
        let taken = run::<_, C, S>(&mut engine, &mut way, &mut &mut samples[..], limits, &control);
        outcome = (taken.samples as usize, Some(taken.end));
    });
    assert_eq!(outcome, (COMMANDS, Some(End::Count)), "{name}");
    assert_eq!(calls, 0, "{name}: calls to the allocator");
}

fn assert_both_engines<C: Counter>(clock: &str) {
    assert_window_allocates_nothing::<C, Sample>(&format!("window, {clock}"), AtOnce);
    assert_window_allocates_nothing::<C, PhasedSample>(&format!("window, {clock}, phases"), AtOnce);
    let pace = Timetable::new(10.0, Arrivals::Poisson, 1);
    assert_window_allocates_nothing::<C, PacedSample>(&format!("window, {clock}, paced"), pace);
    let spin = || Spin::<C>::new(Duration::from_nanos(100), 1.0);
    assert_allocates_nothing::<_, C, Sample>(&format!("null, {clock}"), Null);
    assert_allocates_nothing::<_, C, PhasedSample>(&format!("null, {clock}, phases"), Null);
    assert_allocates_nothing::<_, C, Sample>(&format!("spin, {clock}"), spin());
    assert_allocates_nothing::<_, C, PhasedSample>(&format!("spin, {clock}, phases"), spin());
    assert_eq!(C::SOURCE == Source::Tsc, clock == "tsc");
}

#[test]
fn the_loops_allocate_nothing_on_the_monotonic_clock() {
    assert_both_engines::<MonotonicRaw>("monotonic");
}

#[test]
fn the_loops_allocate_nothing_on_the_tsc() {
    match tsc::support() {
        // An unsteady counter is no clock, but the loop that reads it is the same.
        Err(unusable) if !unusable.can_be_forced() => eprintln!("skipped: {}", unusable.reason()),
        _ => assert_both_engines::<Tsc>("tsc"),
    }
}

/// Allocates once a command.
struct Allocating;

impl Engine for Allocating {
    fn prepare(&mut self, _slot: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn submit(&mut self, _slot: u32) -> Result<(), Fault> {
        drop(std::hint::black_box(Box::new(7u64)));
        Ok(())
    }
    fn poll<D: Done>(&mut self, done: &mut D) -> Result<(), Fault> {
        done.complete(0, Ok(()));
        Ok(())
    }
}

#[test]
fn an_engine_that_allocates_would_be_caught() {
    let mut samples = filled::<Sample>(10);
    let limits = Limits { warmup: 5, ..Limits::default() };
    let calls = calls_of(|| {
        run::<_, MonotonicRaw, _>(
            &mut Allocating,
            &mut Way::Single,
            &mut &mut samples[..],
            limits,
            &Control::default(),
        );
    });
    assert_eq!(calls, 2 * 15, "an allocation and a release for each command");
}
