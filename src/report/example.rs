//! A result with round figures.

use std::collections::BTreeMap;

use crate::{
    engine::{Completion, Convention, EngineKind, Granted, Rw},
    host::{HostFacts, UsageDelta},
    measure::Noise,
    report::{
        RunResult,
        result::{Config, CpuUse, EndedBy, Instrument, LoopKind, MemoryUse, Point, SCHEMA, Throughput, Tool, Verified},
    },
    stats::{Interval, Percentiles, Summary, Window, histogram},
    timing::{ClockChoice, ClockFacts, Source},
};

/// 1000 reads of 4 KiB, one at a time, in 20 ms.
pub(super) fn result() -> RunResult {
    let floor_ns =
        Summary { percentiles: Percentiles { p50: Some(31.0), ..Percentiles::default() }, ..Summary::default() };
    let noise = Noise { window_ns: 0.0, gaps_over_1us: 0, max_gap_ns: 0.0, stolen_fraction: 0.0, gaps: Vec::new() };
    RunResult {
        schema: SCHEMA,
        tool: Tool { name: "lat-probe".into(), version: "0.1.0".into() },
        started_at: "2026-12-01T15:08:12Z".into(),
        label: Some("before".into()),
        meta: BTreeMap::new(),
        host: HostFacts::default(),
        clock: ClockFacts {
            source: Source::Tsc,
            forced: false,
            tsc_doubt: None,
            ticks_per_ns: 1.0,
            calibration_error_ppm: None,
            drift_ppm: None,
            read_cost_ns: 20.0,
        },
        instrument: Instrument { floor_ns, noise },
        quiet: None,
        peer: None,
        points: vec![point()],
        warnings: Vec::new(),
        sweep: None,
    }
}

fn point() -> Point {
    let ramp = |from: u64, step: u64| (0..1000).map(|n| from + n * step).collect::<Vec<u64>>();
    let latencies = ramp(2000, 36);
    let window = Window { at_ns: 0.0, n: 250, p50_ns: None, p99_ns: None, max_ns: None };
    Point {
        config: config(),
        granted: Granted::default(),
        convention: Convention::Completion,
        loop_kind: LoopKind::Closed,
        latency_ns: Summary::of_sorted(&latencies, 1.0),
        submit_ns: Some(Summary::of_sorted(&ramp(1000, 1), 1.0)),
        wait_ns: Some(Summary::of_sorted(&ramp(1000, 35), 1.0)),
        response_ns: None,
        pace: None,
        share: None,
        tail: None,
        histogram: histogram(&latencies, 1.0),
        outliers: Vec::new(),
        timeline: vec![window; 4],
        depth: None,
        throughput: Throughput {
            ops_per_s: Some(50_000.0),
            bytes_per_s: Some(204_800_000.0),
            period_ns: Some(20_000.0),
            interval: Interval {
                window_ns: 5_000_000.0,
                min: Some(40_000.0),
                max: Some(60_000.0),
                mean: Some(50_000.0),
                stddev: Some(10_000.0),
            },
        },
        cpu: CpuUse {
            usage: UsageDelta {
                elapsed_ns: 40_000_000,
                user_ns: 5_000_000,
                system_ns: 10_000_000,
                voluntary_switches: 2,
                involuntary_switches: 3,
                minor_faults: 7,
                major_faults: 1,
                ..UsageDelta::default()
            },
            migrated: false,
        },
        device_counters: None,
        memory: MemoryUse { buffer_bytes: 4096, sample_bytes: 24_000, bytes_per_outstanding: None },
        verified: Verified::NotChecked,
        errors: BTreeMap::new(),
        ended_by: EndedBy::Count,
        ended_because: None,
        partial: false,
        samples_file: None,
        per_job: None,
    }
}

fn config() -> Config {
    Config {
        engine: EngineKind::Psync,
        qd: 1,
        bs_bytes: Some(4096),
        jobs: 1,
        rate_per_s: None,
        rw: Some(Rw::RandRead),
        completion: Completion::Poll,
        cpus: vec![1],
        peer_cpu: None,
        count: Some(1000),
        duration_ns: None,
        warmup: 1000,
        warmup_time_ns: None,
        clock: ClockChoice::Auto,
        phases: true,
        half_rtt: false,
        peer: None,
        delay_ns: None,
        rdma: None,
        block: None,
    }
}
