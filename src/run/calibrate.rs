//! `lat-probe calibrate`: the clock, its order, the floors of the loops, and the noise of the machine, at length.

use std::{
    hint::spin_loop,
    io::Write,
    os::fd::AsRawFd,
    slice,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant, SystemTime},
};

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::{
    Format, Live, Outcome, Placed, Reporting, Signals, dispatch, finish_document, instrument,
    job::{Job, Shared},
    measuring_cpus, place,
    quiet::Quieted,
    timestamp, warnings,
};
use crate::{
    engine::EngineKind,
    error::{Error, Result},
    host::{Cpus, HostFacts, Sysfs, cpu},
    probe::{BlockSpec, Plan, Spec},
    report::{
        OutputFile, calibration,
        calibration::{Across, CALIBRATION_SCHEMA, CalibrationReport, Floor, Stamps},
        json,
        result::Tool,
    },
    stats::Summary,
    timing::{Calibration, ClockChoice, Counter, MonotonicRaw, Source, Tsc},
};

/// Pairs of stamps that are looked at for order.
const PAIRS: usize = 1 << 20;
/// Stamps that two processors hand to each other.
const HANDED: u64 = 100_000;
const SLEEPS: usize = 1_000;
/// Longest time for the two processors: on a busy machine the other thread may hardly run.
const ACROSS_DEADLINE: Duration = Duration::from_secs(2);

/// What to calibrate.
#[derive(Clone, Debug)]
pub struct Calibrate {
    /// The clock asked for.
    pub clock: ClockChoice,
    /// The processor.
    pub cpu: Option<u64>,
    /// How long to listen to the machine.
    pub window: Duration,
    /// Whether the machine is quieted meanwhile.
    pub quiet: bool,
}

/// Calibrates, and writes the report.
///
/// # Errors
/// A clock or processor that cannot be had, and a report that cannot be written.
pub fn calibrate(options: &Calibrate, reporting: &Reporting) -> Result<Outcome> {
    if options.window < Duration::from_millis(1) || options.window > Duration::from_secs(3600) {
        return Err(Error::usage("--window must be from 1ms to 1h"));
    }
    let format = reporting.format.plain("a calibration")?;
    let spec = Spec {
        clock: options.clock,
        cpu: options.cpu.into_iter().collect(),
        quiet: options.quiet,
        ..Spec::of(EngineKind::Null)
    };
    let plan = Plan::check(spec)?;
    let output = reporting.output.as_deref().map(OutputFile::open).transpose()?;
    let signals = Signals::install()?;
    let cpus = Cpus::read();
    let quieted =
        plan.quiet.then(|| Quieted::begin(slice::from_ref(&plan), &measuring_cpus(slice::from_ref(&plan), &cpus)));
    let Some(placed) = place(&plan, 1, &cpus)?.pop() else { return Err(Error::usage("there is no CPU")) };
    // Some of the floors are those of engines that a kernel thread may complete.
    let quieted = quieted.map(Quieted::stay_fair);
    let started_at = timestamp(SystemTime::now());
    let clock = Calibration::begin(options.clock)?;
    let stamps = match clock.facts().source {
        Source::Tsc => stamps::<Tsc>(&clock, &placed)?,
        Source::Monotonic => stamps::<MonotonicRaw>(&clock, &placed)?,
    };
    let noise = instrument::noise(&clock, options.window);
    let sleep_ns = sleeps();
    let floors = floors(&clock, &signals, &placed)?;
    let host = HostFacts::read(&Sysfs::default(), Some(placed.cpu));
    let clock = clock.check()?;
    let (quiet, not_undone) = quieted.map(Quieted::end).unzip();
    let mut warnings = warnings::of_machine(&clock, &host, &noise, &placed);
    warnings.extend(not_undone.flatten());
    let report = CalibrationReport {
        schema: CALIBRATION_SCHEMA,
        tool: Tool::default(),
        started_at,
        host,
        cpu: placed.cpu,
        clock,
        stamps,
        sleep_ns,
        floors,
        noise,
        quiet,
        warnings,
    };
    let document = json::to_string(&report)
        .map_err(|source| Error::Output { path: reporting.output.clone().unwrap_or("<stdout>".into()), source })?;
    let text = match format {
        Format::Json => document.clone(),
        Format::Text => calibration::render(&report),
    };
    Ok(finish_document(document, text, output, None, signals.received()))
}

fn stamps<C: Counter>(clock: &Calibration, placed: &Placed) -> Result<Stamps> {
    let mut pairs = vec![0u64; PAIRS];
    let (mut backwards, mut step, mut last) = (0, u64::MAX, C::now());
    for pair in &mut pairs {
        let (start, stop) = (C::start(), C::stop());
        backwards += u64::from(stop < start) + u64::from(start < last);
        for difference in [stop.saturating_sub(start), start.saturating_sub(last)] {
            if difference > 0 {
                step = step.min(difference);
            }
        }
        last = stop;
        *pair = stop.saturating_sub(start);
    }
    pairs.sort_unstable();
    let across = match placed.others.iter().next_back() {
        Some(other) => Some(across::<C>(clock, placed.cpu, other)?),
        None => None,
    };
    Ok(Stamps {
        pair_ns: Summary::of_sorted(&pairs, clock.ticks_per_ns()),
        step_ns: step as f64 / clock.ticks_per_ns(),
        looked_at: PAIRS as u64,
        backwards,
        across,
    })
}

/// Two processors hand a stamp to each other; each takes a new one after it has received one.
fn across<C: Counter>(clock: &Calibration, here: usize, there: usize) -> Result<Across> {
    let cell = AtomicU64::new(0);
    let until = Instant::now() + ACROSS_DEADLINE;
    // Stamps of one side are even, those of the other odd: a tick is less than either can resolve.
    let side = |own: u64| {
        let (mut looked_at, mut backwards, mut least) = (0u64, 0u64, u64::MAX);
        let mut seen = u64::MAX;
        while looked_at < HANDED / 2 {
            let received = cell.load(SeqCst);
            if received & 1 == own || received == seen {
                if looked_at % 1024 == 0 && Instant::now() > until {
                    break;
                }
                spin_loop();
                continue;
            }
            seen = received;
            let stamp = C::start();
            if received > 1 {
                backwards += u64::from(stamp < received & !1);
                least = least.min(stamp.saturating_sub(received & !1));
                looked_at += 1;
            }
            cell.store((C::start() & !1) | own, SeqCst);
        }
        (looked_at, backwards, least)
    };
    let (near, far) = std::thread::scope(|scope| {
        let far = std::thread::Builder::new()
            .name("other".into())
            .spawn_scoped(scope, || cpu::pin_current(there).map(|()| side(1)));
        let far = far.map_err(|source| Error::call("other", "pthread_create", source, ""))?;
        let near = side(0);
        let far = far.join().unwrap_or_else(|_| Err(Error::usage("the other thread failed")))?;
        Ok::<_, Error>((near, far))
    })?;
    debug_assert!(here != there);
    Ok(Across {
        cpu: there,
        looked_at: near.0 + far.0,
        backwards: near.1 + far.1,
        least_ns: near.2.min(far.2) as f64 / clock.ticks_per_ns(),
    })
}

fn sleeps() -> Summary {
    let mut took: Vec<u64> = (0..SLEEPS)
        .map(|_| {
            let started = Instant::now();
            std::thread::sleep(Duration::from_micros(1));
            started.elapsed().as_nanos() as u64
        })
        .collect();
    took.sort_unstable();
    Summary::of_sorted(&took, 1.0)
}

/// The shortest command of each engine that needs no device, through its own loop.
fn floors(clock: &Calibration, signals: &Signals, placed: &Placed) -> Result<Vec<Floor>> {
    const BYTES: usize = 4096;
    let failed = |call, source: std::io::Error| Error::call("memory file", call, source, "");
    let memory =
        memfd_create("lat-probe", MFdFlags::MFD_CLOEXEC).map_err(|errno| failed("memfd_create", errno.into()))?;
    let mut file = std::fs::File::from(memory);
    file.write_all(&[1; BYTES]).map_err(|source| failed("write", source))?;
    let target = format!("/proc/self/fd/{}", file.as_raw_fd());
    let instrument = instrument::measure(clock, false);
    let shared = Shared { signals, clock, instrument: &instrument, live: Live::Nothing, watch: None, samples: None };
    let mut floors = Vec::new();
    for engine in EngineKind::ALL {
        let (block, command) = match engine {
            EngineKind::Null => (BlockSpec::default(), "no command at all"),
            EngineKind::Psync | EngineKind::Pvsync2 | EngineKind::Libaio | EngineKind::IoUring => {
                let block = BlockSpec { target: Some(target.clone().into()), buffered: true, ..BlockSpec::default() };
                (block, "8 bytes from a file in memory: the way into the kernel and back")
            }
            _ => continue, // Without a device there is nothing to send these to.
        };
        let bs_bytes = if engine.is_block() { vec![8] } else { Vec::new() };
        let spec = Spec { bs_bytes, count: Some(10_000), block, clock: ClockChoice::Auto, ..Spec::of(engine) };
        let plan = Plan::check(spec)?;
        let Some(&load) = plan.points.first() else { continue };
        let measured = dispatch::measure(&Job::new(&plan, load, placed, &shared));
        let (latency_ns, unavailable) = match measured {
            Ok(measured) => (Some(measured.point.latency_ns), measured.failure.map(|error| error.to_string())),
            Err(error) => (None, Some(error.to_string())),
        };
        floors.push(Floor { engine, command, latency_ns, unavailable });
    }
    Ok(floors)
}
