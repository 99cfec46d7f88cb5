//! What several runs of one process share: signals, the processors that were there at the beginning, and the clock's rate.

use std::{collections::BTreeMap, time::SystemTime};

use super::{
    Live, SampleFiles, Signals, Sweep, dispatch::Measured, instrument, job::Shared, measure_all, measuring_cpus, place,
    quiet::Quieted, timestamp, warnings,
};
use crate::{
    error::{Error, Result},
    host::{Cpus, HostFacts, Sysfs},
    measure::Stop,
    probe::Plan,
    report::{
        RunResult,
        result::{SCHEMA, Tool},
    },
    timing::Calibration,
};

/// What is to become of a run.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    pub label: Option<String>,
    pub meta: BTreeMap<String, String>,
    /// What is shown meanwhile.
    pub live: Live,
    /// Where each point is stored as soon as it is measured.
    pub sweep: Option<&'a mut Sweep>,
    /// Where its samples go.
    pub samples: Option<&'a SampleFiles>,
}

/// Runs that are to be comparable.
pub(super) struct Session {
    signals: Signals,
    cpus: Cpus,
    /// From the first run on.
    clock: Option<Calibration>,
}

impl Session {
    /// Begins before any run: the first one pins this thread, which hides the other processors.
    ///
    /// # Errors
    /// The errno of `sigaction`.
    pub fn begin() -> Result<Self> {
        let signals = Signals::install()?;
        Ok(Self { signals, cpus: Cpus::read(), clock: None })
    }

    /// The signal that came, as a reason to stop.
    pub fn stopped(&self) -> Option<Stop> {
        self.signals.received()
    }

    /// The processors that this process may use.
    pub fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// Carries out plans, one after the other. What failed after the first command stands beside a partial result.
    ///
    /// # Errors
    /// What kept the measurement from starting; a clock that cannot be trusted.
    pub fn run(&mut self, plans: &[Plan], wanted: Wanted) -> Result<(RunResult, Option<Error>)> {
        let Wanted { label, meta, live, mut sweep, samples } = wanted;
        let first = require_one_way(plans)?;
        let cpus = &self.cpus;
        let quieted = first.quiet.then(|| Quieted::begin(plans, &measuring_cpus(plans, cpus)));
        let placed = place(first, first.points.first().map_or(1, |load| load.jobs), cpus)?;
        let Some(placed) = placed.into_iter().next() else { return Err(Error::usage("there is nothing to measure")) };
        let quieted = quieted.map(|quieted| quieted.raise(plans, &placed));
        let started_at = timestamp(SystemTime::now());
        let clock = match &mut self.clock {
            Some(clock) => clock,
            none => none.insert(Calibration::begin(first.clock)?),
        };
        let instrument = instrument::measure(clock, first.phases);
        let mut result = RunResult {
            schema: SCHEMA,
            tool: Tool::default(),
            started_at,
            label,
            meta,
            host: HostFacts::read(&Sysfs::default(), Some(placed.cpu)),
            clock: clock.facts().clone(),
            instrument: instrument.clone(),
            quiet: None,
            peer: None,
            points: Vec::new(),
            warnings: Vec::new(),
            sweep: None,
        };
        let shared = Shared { signals: &self.signals, clock, instrument: &instrument, live, watch: None, samples };
        let done = sweep.as_ref().map_or(0, |sweep| sweep.done());
        if let Some(sweep) = &mut sweep {
            sweep.enter(&result);
        }
        let (measured, failure) = measure_all(plans, done, cpus, &shared, |point| match &mut sweep {
            Some(sweep) => sweep.add(&result, point),
            None => Ok(()),
        })?;
        result.clock = clock.check()?;
        let not_undone = quieted.map(Quieted::end).and_then(|(quiet, not_undone)| {
            result.quiet = Some(quiet);
            not_undone
        });
        for Measured { point, peer, .. } in measured {
            result.peer = result.peer.or(peer);
            result.points.push(point);
        }
        result.warnings = warnings::of(&result, &placed);
        result.warnings.extend(not_undone);
        Ok((result, failure))
    }
}

/// The first plan, if all are measured in the same way.
fn require_one_way(plans: &[Plan]) -> Result<&Plan> {
    let Some(first) = plans.first() else { return Err(Error::usage("there is nothing to measure")) };
    if plans.iter().any(|plan| (plan.clock, plan.phases, plan.quiet) != (first.clock, first.phases, first.quiet)) {
        return Err(Error::usage("--clock, --phases and --quiet must be the same for all measurements of one result"));
    }
    Ok(first)
}
