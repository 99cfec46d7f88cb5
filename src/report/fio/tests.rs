//! Whole reports.

use super::{super::example, *};
use crate::{
    engine::{Rw, Verb},
    report::Warning,
    stats::Summary,
};

#[test]
fn a_report_with_phases_is_fios_line_by_line() {
    let expected = "\
before: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1
lat-probe-0.1.0

before: (groupid=0, jobs=1): err= 0: pid=4711: Tue Dec  1 15:08:12 2026
  read: IOPS=50.0k, BW=195MiB/s (205MB/s)(4000KiB/20msec)
    slat (nsec): min=1000, max=1999, avg=1499.50, stdev=288.82
    clat (nsec): min=1000, max=35965, avg=18482.50, stdev=10108.68
     lat (nsec): min=2000, max=37964, avg=19982.00, stdev=10397.50
    clat percentiles (nsec):
     |  1.00th=[ 1315],  5.00th=[ 2715], 10.00th=[ 4465], 25.00th=[ 9715],
     | 50.00th=[18465], 75.00th=[27215], 90.00th=[32465], 95.00th=[34215],
     | 99.00th=[35615], 99.50th=[35790], 99.90th=[35930]
    lat percentiles (nsec):
     |  1.00th=[ 2324],  5.00th=[ 3764], 10.00th=[ 5564], 25.00th=[10964],
     | 50.00th=[19964], 75.00th=[28964], 90.00th=[34364], 95.00th=[36164],
     | 99.00th=[37604], 99.50th=[37784], 99.90th=[37928]
   bw (  KiB/s): min=160000, max=240000, per=100.00%, avg=200000.00, stdev=40000.00, samples=3
   iops        : min=40000, max=60000, avg=50000.00, stdev=10000.00, samples=3
  lat (usec)   : 4=5.60%, 10=16.70%, 20=27.70%, 50=50.00%
  cpu          : usr=12.50%, sys=25.00%, ctx=5, majf=1, minf=7
  IO depths    : 1=100.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued rwts: total=1000,0,0,0 short=0,0,0,0 dropped=0,0,0,0
     latency   : target=0, window=0, percentile=100.00%, depth=1

Run status group 0 (all jobs):
   READ: bw=195MiB/s (205MB/s), 195MiB/s-195MiB/s (205MB/s-205MB/s), io=4000KiB (4096kB), run=20-20msec

note: floor 31.00 ns p50: what this loop shows for no command at all
";
    assert_eq!(render(&example::result(), 4711), expected);
}

#[test]
fn without_phases_there_is_lat_alone() {
    let mut result = example::result();
    (result.points[0].submit_ns, result.points[0].wait_ns) = (None, None);
    let text = render(&result, 1);
    assert!(!text.contains("slat") && !text.contains("clat"), "{text}");
    assert!(text.contains("     lat (nsec): min=") && text.contains("    lat percentiles (nsec):"), "{text}");
}

#[test]
fn what_was_not_measured_has_no_line() {
    let mut result = example::result();
    let point = &mut result.points[0];
    point.config.engine = EngineKind::Null;
    (point.config.bs_bytes, point.config.rw, point.throughput.bytes_per_s) = (None, None, None);
    let text = render(&result, 1);
    assert!(text.contains("\n  read: IOPS=50.0k (20msec)\n") && text.contains("\n   iops        : "), "{text}");
    assert!(!text.contains(" bs=") && !text.contains("bw") && !text.contains("Run status"), "{text}");

    let point = &mut result.points[0];
    (point.throughput, point.latency_ns) = (Default::default(), Summary::default());
    (point.submit_ns, point.wait_ns, point.histogram) = (None, None, Default::default());
    point.cpu.usage.elapsed_ns = 0;
    let text = render(&result, 1);
    for word in ["IOPS", "iops", "lat (", "percentiles", "cpu"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert!(text.contains("total=0,0,0,0"), "{text}");
}

#[test]
fn a_depth_that_was_not_looked_at_has_no_distribution() {
    let mut result = example::result();
    result.points[0].config.qd = 4;
    let text = render(&result, 1);
    assert!(!text.contains("IO depths") && text.contains("iodepth=4") && text.contains("depth=4"), "{text}");
}

#[test]
fn a_direction_is_where_the_payload_goes() {
    let mut result = example::result();
    result.points[0].config.rw = Some(Rw::RandWrite);
    let text = render(&result, 1);
    assert!(text.contains("rw=randwrite") && text.contains("\n  write: IOPS="), "{text}");
    assert!(text.contains("total=0,1000,0,0 ") && text.contains("\n  WRITE: bw="), "{text}");
    result.points[0].config.rw = None;
    for (verb, name) in [(Verb::Read, "read"), (Verb::Write, "write"), (Verb::Send, "write"), (Verb::FetchAdd, "read")]
    {
        result.points[0].config.engine = EngineKind::Rdma(verb);
        let text = render(&result, 1);
        assert!(text.contains(&format!(": rw={name}, ")) && text.contains(&format!("\n  {name}: ")), "{text}");
    }
}

#[test]
fn each_point_is_a_job_in_a_group_of_its_own() {
    let mut result = example::result();
    result.points.extend(example::result().points);
    result.points[1].config.bs_bytes = Some(512);
    let text = render(&result, 1);
    // Names are told apart, and the label is what fio calls a description.
    for (name, group) in [("psync-4k", 0), ("psync-512", 1)] {
        assert!(text.contains(&format!("\n{name}: (groupid={group}, jobs=1): err= 0: pid=1: ")), "{text}");
    }
    assert_eq!(text.matches("\n  Description  : [before]\n").count(), 2, "{text}");
    assert!(text.contains("\nRun status group 1 (all jobs):\n"), "{text}");
}

#[test]
fn what_failed_has_a_number_and_a_reason() {
    let mut result = example::result();
    let point = &mut result.points[0];
    (point.ended_by, point.partial, point.ended_because) = (EndedBy::Error, true, Some("it\nbroke".into()));
    point.errors.insert("failed_commands".into(), 1);
    result.warnings.push(Warning::new("noise", "much"));
    let text = render(&result, 1);
    assert!(text.contains("): err= 5 (it broke): pid=1: "), "{text}");
    assert!(text.contains("total=1001,0,0,0") && text.contains("\n     errors    : total=1\n"), "{text}");
    assert!(
        text.contains("\nnote: before is partial: it broke\n") && text.contains("\nnote: much [noise]\n"),
        "{text}"
    );
    result.points[0].verified = Verified::No;
    assert!(render(&result, 1).contains("): err=84 (it broke): "));
}

#[test]
fn a_label_cannot_begin_a_line() {
    let mut result = example::result();
    result.label = Some("a\n  read: IOPS=1".into());
    assert_eq!(render(&result, 1).matches("\n  read: IOPS=").count(), 1);
    result.label = None;
    assert!(render(&result, 1).starts_with("psync: (g=0): "));
}
