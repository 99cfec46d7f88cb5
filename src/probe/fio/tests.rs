//! What job files become.

use std::io::ErrorKind;

use proptest::prelude::*;

use super::*;

mod rdma;

fn read_section(text: &str, section: Option<&str>) -> std::result::Result<Vec<Job>, String> {
    let read = |path: &Path| match path.to_str() {
        Some("j.fio") => Ok(text.to_string()),
        Some("more.fio") => Ok("iodepth=4\nthread\n".to_string()),
        _ => Err(ErrorKind::NotFound.into()),
    };
    let variable = |name: &str| (name == "SIZE").then(|| "64m".to_string());
    jobs(Path::new("j.fio"), section, &Outside { read: &read, variable: &variable, cpus: 2, page_bytes: 4096 })
}

fn read(text: &str) -> std::result::Result<Vec<Job>, String> {
    read_section(text, None)
}

fn only(text: &str) -> Job {
    read(text).unwrap_or_else(|why| panic!("{text}: {why}")).remove(0)
}

fn line(job: &Job) -> String {
    job.options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The options of a job that has a file and a size, with these keys.
fn options(keys: &str) -> String {
    line(&only(&format!("[j]\nfilename=f\nsize=1m\ninvalidate=0\nfadvise_hint=0\nnorandommap\n{keys}\n")))
}

/// The value of one of its options.
fn option(keys: &str, name: &str) -> Option<String> {
    let job = only(&format!("[j]\nfilename=f\nsize=1m\n{keys}\n"));
    job.options.get(name).cloned()
}

fn refusal(keys: &str) -> String {
    read(&format!("[j]\nfilename=f\nsize=1m\n{keys}\n")).unwrap_err()
}

fn notes(keys: &str) -> Vec<String> {
    only(&format!("[j]\nfilename=f\nsize=1m\ninvalidate=0\nfadvise_hint=0\nnorandommap\n{keys}\n")).notes
}

#[test]
fn block_jobs_keep_fios_defaults() {
    let text = "[global]\nbs=8k\nsize=1g\nfilename=testfile\ndirectory=/ramfs\n[a]\nioengine=libaio\niodepth=32\n\
                [b]\nstonewall\nioengine=syslet-rw\niodepth=32\n[c]\nstonewall\nioengine=sync\n";
    let jobs = read(text).unwrap();
    let rest = "rw=read size=1G target=/ramfs/testfile";
    assert_eq!(line(&jobs[0]), format!("bs=8k buffered=true count=131072 engine=libaio qd=32 {rest}"));
    let ring = "engine=io-uring qd=32";
    assert_eq!(line(&jobs[1]), format!("bs=8k buffered=true count=131072 {ring} {rest} uring-unregistered=true"));
    assert_eq!(line(&jobs[2]), format!("bs=8k buffered=true count=131072 engine=psync {rest}"));
    assert!(jobs[1].notes[0].starts_with("j.fio:11: syslets never entered Linux"), "{:?}", jobs[1].notes);
    assert!(jobs[2].notes[0].contains("measured as psync"), "{:?}", jobs[2].notes);
    assert!(jobs[2].notes.iter().any(|note| note.starts_with("j.fio:13: the file's pages stay in the page cache")));
}

#[test]
fn engines_go_by_fios_names() {
    for (fio, ours) in [
        ("sync", "psync"),
        ("vsync", "psync"),
        ("pvsync", "psync"),
        ("psync", "psync"),
        ("pvsync2", "pvsync2"),
        ("libaio", "libaio"),
        ("linuxaio", "libaio"),
        ("io_uring", "io-uring"),
        ("io_uring_cmd", "nvme-cmd"),
        ("sg", "sg"),
        ("null", "null"),
        ("syslet-rw", "io-uring"),
    ] {
        assert_eq!(option(&format!("ioengine={fio}"), "engine").as_deref(), Some(ours), "{fio}");
    }
    assert_eq!(option("", "engine").as_deref(), Some("psync"));
    let why = refusal("ioengine=mmap");
    assert!(why.starts_with("j.fio:4: ioengine: one of sync, psync") && why.ends_with("'mmap' was found"), "{why}");
}

#[test]
fn the_amount_is_what_fio_would_move() {
    for (keys, count) in [
        ("bs=4k", "256"),
        ("bs=64k\nloops=3", "48"),
        ("bs=4k\nio_size=16k", "4"),
        ("bs=4k\nio_size=4m", "1024"),
        ("bs=4k\nio_size=4m\nloops=3", "1024"),
        ("bs=4k\nio_size=5k", "2"),
        ("bs=4k\nio_size=5k\nloops=2", "3"),
        ("bs=4k\nio_limit=8k\nloops=2", "4"),
        ("bs=4k\nfilesize=64k", "16"),
        ("bs=4k\nfilesize=64k\noffset=32k", "8"),
        ("bs=4k\nnumber_ios=10\nloops=2", "20"),
        ("bs=300k", "3"),
        ("bs=4k,8k", "256"),
        ("bs=4k,8k\nrw=write", "128"),
        ("bs=,8k", "256"),
        ("bs=1k\nbs=,8k", "1024"),
        ("bs=1k\nbs=,8k\nrw=write", "128"),
        ("blocksize=1k", "1024"),
        ("size=${SIZE}\nbs=1m", "64"),
        ("kb_base=1000\nsize=1g\nbs=1m", "1000"),
        ("size=16kib\nbs=4kib", "4"),
    ] {
        assert_eq!(option(keys, "count").as_deref(), Some(count), "{keys}");
    }
    assert_eq!(option("offset=4k", "offset").as_deref(), Some("4k"));
    assert_eq!(option("filesize=2m", "size").as_deref(), Some("1M"));
    assert!(refusal("filesize=8k\noffset=8k").starts_with("j.fio:4: filesize: more than the offset, 8192"));
    assert!(refusal("bs=2m").starts_with("j.fio:3: a size of at least one block (bs=2097152) was expected"));
}

#[test]
fn time_ends_a_job_first_or_alone() {
    let both = |keys: &str| (option(keys, "count"), option(keys, "duration"));
    assert_eq!(both("runtime=10"), (Some("256".into()), Some("10s".into())));
    assert_eq!(both("runtime=1500ms\ntime_based"), (None, Some("1500ms".into())));
    assert_eq!(both("timeout=1m\ntime_based=1\nnumber_ios=7"), (Some("7".into()), Some("60s".into())));
    assert_eq!(both("runtime=10\ntime_based=0"), (Some("256".into()), Some("10s".into())));
    assert_eq!(both("time_based"), (Some("256".into()), None));
    assert_eq!(both("runtime=0"), (Some("256".into()), None));
    assert_eq!(option("ramp_time=2s", "warmup-time").as_deref(), Some("2s"));
    let endless = only("[j]\nfilename=f\ninvalidate=0\nfadvise_hint=0\n");
    assert!(endless.notes[0].starts_with("j.fio:1: neither size nor runtime is given"), "{:?}", endless.notes);
}

#[test]
fn a_bare_ki_is_read_as_the_manual_has_it_and_said() {
    assert_eq!(option("offset=4ki", "offset").as_deref(), Some("4000"));
    assert!(notes("offset=4ki")[0].starts_with("j.fio:7: offset: read as 4000, as fio's manual has it; fio takes ki"));
    assert_eq!(notes("offset=4kib"), [""; 0]);
}

#[test]
fn load_keys_are_depth_jobs_rate_and_processors() {
    assert_eq!(option("ioengine=libaio\niodepth=1k", "qd").as_deref(), Some("1024"));
    assert_eq!(option("numjobs=4", "jobs").as_deref(), Some("4"));
    assert_eq!(option("numjobs=4", "per-job").as_deref(), Some("true"));
    assert_eq!(option("numjobs=4\ngroup_reporting", "per-job"), None);
    assert_eq!(option("numjobs=1", "jobs"), None);
    assert_eq!(option("rate_iops=1k", "rate").as_deref(), Some("1024"));
    assert_eq!(option("rate_iops=100,50\nrw=write", "rate").as_deref(), Some("50"));
    assert_eq!(option("rate_iops=10\nrate_process=poisson", "arrivals").as_deref(), Some("poisson"));
    assert_eq!(option("rate_iops=10\nrate_process=linear", "arrivals").as_deref(), Some("fixed"));
    assert_eq!(option("rate_process=poisson", "arrivals"), None);
    assert_eq!(option("cpus_allowed=0-2,5\ncpus_allowed_policy=split", "cpu").as_deref(), Some("0,1,2,5"));
    assert_eq!(option("cpus_allowed=7\ncpumask=3", "cpu").as_deref(), Some("0,1"));
    assert!(notes("cpus_allowed=0-1")[0].contains("each job stays on one"));
    assert_eq!(notes("cpus_allowed=1"), [""; 0]);
}

#[test]
fn a_call_that_returns_on_completion_has_depth_one() {
    assert_eq!(option("iodepth=32", "qd"), None);
    assert!(notes("iodepth=32")[0].starts_with("j.fio:7: iodepth: psync has one command outstanding"));
    assert_eq!(notes("iodepth=1"), [""; 0]);
}

#[test]
fn batches_of_one_make_no_difference_and_others_are_refused() {
    let ring = "ioengine=io_uring\niodepth=8";
    for key in ["iodepth_batch=1", "iodepth_batch_complete=0", "iodepth_batch_complete_min=1", "iodepth_low=8"] {
        assert_eq!(option(&format!("{ring}\n{key}"), "qd").as_deref(), Some("8"), "{key}");
    }
    for key in ["iodepth_batch", "iodepth_batch_complete", "iodepth_batch_complete_max", "iodepth_low"] {
        let why = refusal(&format!("{ring}\n{key}=4"));
        assert!(why.starts_with(&format!("j.fio:6: {key}: ")) && why.contains("was expected"), "{why}");
    }
}

#[test]
fn the_page_cache_is_fios_default_and_the_later_key_holds() {
    let way = |keys: &str| (option(keys, "direct").is_some(), option(keys, "buffered").is_some());
    for keys in ["", "direct=0", "buffered=1", "direct=1\nbuffered=1", "buffered=0\ndirect=0"] {
        assert_eq!(way(keys), (false, true), "{keys:?}");
    }
    for keys in ["direct=1", "buffered=0", "buffered=1\ndirect=1", "direct=0\nbuffered=0"] {
        assert_eq!(way(keys), (true, false), "{keys:?}");
    }
    assert_eq!(way("ioengine=sg"), (false, false));
    let doubts = only("[j]\nfilename=f\nsize=1m\n").notes;
    assert!(doubts[0].contains("drops them first") && doubts[1].contains("order of places"), "{doubts:?}");
    assert_eq!(only("[j]\nfilename=f\nsize=1m\ndirect=1\n").notes, [""; 0]);
}

#[test]
fn rings_register_both_or_neither() {
    let ring = |keys: &str| options(&format!("ioengine=io_uring\n{keys}"));
    let head = "bs=4k buffered=true count=256 engine=io-uring rw=read size=1M target=f";
    assert_eq!(ring(""), format!("{head} uring-unregistered=true"));
    assert_eq!(ring("fixedbufs\nregisterfiles=1"), head);
    assert_eq!(ring("fixedbufs\nsqthread_poll=1\nsqthread_poll_cpu=3"), {
        "bs=4k buffered=true count=256 engine=io-uring rw=read size=1M sqpoll-cpu=3 target=f uring-sqpoll=true"
    });
    assert_eq!(
        ring("hipri\nforce_async=1"),
        format!("{head} uring-async=true uring-iopoll=true uring-unregistered=true")
    );
    assert!(refusal("ioengine=io_uring\nfixedbufs").starts_with("j.fio:1: registerfiles: only buffers would be"));
    assert!(refusal("ioengine=io_uring\nsqthread_poll").starts_with("j.fio:1: fixedbufs: only the file would be"));
    assert!(refusal("ioengine=io_uring\nforce_async=2").starts_with("j.fio:5: force_async: 0 or 1"));
    assert!(refusal("ioengine=io_uring\nnonvectored=0").starts_with("j.fio:5: nonvectored"));
    assert!(refusal("ioengine=io_uring_cmd\ncmd_type=x").starts_with("j.fio:5: cmd_type: nvme was expected"));
    assert!(refusal("ioengine=libaio\nhipri").starts_with("j.fio:5: hipri: ioengine=libaio has no such key"));
    assert_eq!(option("ioengine=pvsync2\nhipri", "hipri").as_deref(), Some("true"));
}

#[test]
fn a_file_has_one_name_in_one_folder() {
    let target = |keys: &str| only(&format!("[a b]\nsize=1m\n{keys}\n")).options["target"].clone();
    assert_eq!(target(""), "a b.0.0");
    assert_eq!(target("name=c"), "a b.0.0");
    assert_eq!(target("directory=/mnt/"), "/mnt/a b.0.0");
    assert_eq!(target("directory=d\nfilename=f"), "d/f");
    assert_eq!(target("filename=/dev/disk/by-path/pci-0000\\:00"), "/dev/disk/by-path/pci-0000:00");
    assert!(refusal("filename=a:b").starts_with("j.fio:4: filename: one file was expected, 'a:b' was found"));
    assert!(refusal("directory=a:b").starts_with("j.fio:4: directory: one folder"));
    let many = read("[a]\nsize=1m\nnumjobs=2\n").unwrap_err();
    assert!(many.starts_with("j.fio:1: filename was expected: without it each of 2 jobs"), "{many}");
}

#[test]
fn random_places_are_seeded_and_may_come_again() {
    assert_eq!(option("rw=randread\nrandseed=0x10", "seed").as_deref(), Some("16"));
    assert_eq!(option("rw=read\nrandseed=7", "seed"), None);
    let job = only("[j]\nfilename=f\nsize=1m\nrw=randread\ndirect=1\nrandrepeat=0\n");
    assert!(job.notes[0].starts_with("j.fio:1: random places can come again"), "{:?}", job.notes);
    assert!(job.notes[1].starts_with("j.fio:6: randrepeat: the same places come"), "{:?}", job.notes);
}

#[test]
fn writing_is_never_allowed_by_the_file() {
    for rw in ["write", "randwrite"] {
        let job = only(&format!("[j]\nfilename=/dev/x\nsize=1m\nrw={rw}\n"));
        assert_eq!((job.options["rw"].as_str(), job.options.get("allow-write")), (rw, None));
    }
}

#[test]
fn memory_and_failures_are_carried_over() {
    assert_eq!(option("mem=mmaphuge:/mnt/huge/f", "hugepages").as_deref(), Some("true"));
    assert_eq!((option("iomem=malloc", "hugepages"), option("mem_align=4k", "hugepages")), (None, None));
    assert!(refusal("mem=cudamalloc").starts_with("j.fio:4: mem: malloc, shm"));
    for (value, on) in [("all", true), ("read", true), ("write", false), ("none", false)] {
        assert_eq!(option(&format!("continue_on_error={value}"), "continue-on-error").is_some(), on, "{value}");
    }
}

#[test]
fn what_changes_the_measurement_and_is_not_supported_is_an_error_with_its_line() {
    for (keys, words) in [
        ("verify=crc32c", "j.fio:4: verify: it changes what is measured, and is not supported"),
        ("bssplit=4k/50", "j.fio:4: bssplit: it changes"),
        ("blocksize_range=4k-8k", "j.fio:4: blocksize_range: it changes"),
        ("rwmixread=70", "j.fio:4: rwmixread: it changes"),
        ("thread\nthinktime=10", "j.fio:5: thinktime: it changes"),
        ("zonemode=zbd", "j.fio:4: zonemode: it changes"),
        ("fsync=1", "j.fio:4: fsync: it changes"),
        ("ioscheduler=none", "j.fio:4: ioscheduler: it changes"),
        ("nice=-5", "j.fio:4: nice: it changes"),
        ("rate=1m", "j.fio:4: rate: it changes"),
        ("nrfiles=2", "j.fio:4: nrfiles: it changes"),
        ("rw=write\nbuffer_pattern=0x0", "j.fio:5: buffer_pattern: it changes"),
        ("rw=randrw", "j.fio:4: rw: read, write, randread or randwrite was expected, 'randrw' was found"),
        ("rw=trim", "j.fio:4: rw: read"),
        ("rw=randread:8", "j.fio:4: rw: read"),
        ("ba=512", "j.fio:4: ba: places are aligned to bs, 4096"),
    ] {
        let why = refusal(keys);
        assert!(why.starts_with(words), "{keys:?} should say {words:?}: {why}");
    }
}

#[test]
fn values_that_are_none_are_named_with_what_was_expected() {
    for (keys, words) in [
        ("bs=", "j.fio:4: bs: a value was expected behind `=`"),
        ("bs", "j.fio:4: bs: a value was expected"),
        ("bs=${NOPE}", "j.fio:4: bs: a value was expected"),
        ("bs=0", "j.fio:4: bs: at least one byte"),
        ("bs=4k-8k", "j.fio:4: bs: a whole number such as 512 or 4k was expected, '4k-8k' was found"),
        ("size=1x", "j.fio:4: size: a whole number"),
        ("size=50%", "j.fio:4: size: '50%' is a part of the file"),
        ("iodepth=deep", "j.fio:4: iodepth: a whole number"),
        ("iodepth=0", "j.fio:4: iodepth: at least 1"),
        ("numjobs=0", "j.fio:4: numjobs: at least 1"),
        ("loops=0", "j.fio:4: loops: at least 1"),
        ("runtime=soon", "j.fio:4: runtime: a time such as 10s was expected, 'soon' was found"),
        ("direct=yes", "j.fio:4: direct: 0 or 1 was expected, 'yes' was found"),
        ("cpus_allowed=a", "j.fio:4: cpus_allowed: processors such as 0-3,8"),
        ("cpus_allowed=0\ncpus_allowed_policy=x", "j.fio:5: cpus_allowed_policy: shared or split"),
        ("rate_iops=1\nrate_process=x", "j.fio:5: rate_process: linear or poisson"),
        ("no_such_key=1", "j.fio:4: no_such_key: unknown key"),
        ("BS=4k", "j.fio:4: BS: unknown key"),
        ("wait_for=x", "j.fio:4: wait_for: the job before this one (none) was expected, 'x' was found"),
    ] {
        let why = refusal(keys);
        assert!(why.starts_with(words), "{keys:?} should say {words:?}: {why}");
    }
}

#[test]
fn harmless_keys_are_taken_and_what_is_missing_is_said() {
    let harmless = "thread\nname=x\ndescription=about\ngroup_reporting\nnew_group\ngtod_reduce=1\nlat_percentiles=1\n\
                    fallocate=none\noverwrite=1\nexitall\nthinktime=0\nverify=0\nverify_fatal=1\nfsync=0\n\
                    zonemode=none\nnrfiles=1\nrandom_distribution=random\nrefill_buffers\nbuffer_pattern=1\nsync=none";
    assert_eq!(notes(harmless), [""; 0]);
    assert_eq!(
        notes("write_lat_log=l\nstartdelay=5"),
        [
            "j.fio:7: write_lat_log: no log is written; --output FILE keeps the result",
            "j.fio:8: startdelay: the start is not delayed"
        ]
    );
    assert_eq!(
        notes("include more.fio\ncreate_on_open=1${NOPE}"),
        [
            "j.fio:8: create_on_open: the environment has no NOPE: it is left out",
            "more.fio:1: iodepth: psync has one command outstanding, in fio as here",
        ]
    );
}

#[test]
fn jobs_that_would_run_at_the_same_time_are_refused_with_the_remedy() {
    let two = |wall: &str| format!("[a]\nsize=1m\n[b]\nsize=1m\n{wall}\n");
    let why = read(&two("")).unwrap_err();
    assert!(why.starts_with("j.fio:3: [b] would run at the same time") && why.contains("--section"), "{why}");
    for wall in ["stonewall", "wait_for_previous", "wait_for=a", "stonewall=1"] {
        assert_eq!(read(&two(wall)).unwrap().len(), 2, "{wall}");
    }
    assert!(read(&two("stonewall=0")).is_err());
    assert_eq!(read(&format!("[global]\nstonewall\n{}", two(""))).unwrap().len(), 2);
}

#[test]
fn a_section_is_chosen_by_its_name() {
    let text = "[a]\nsize=1m\nverify=md5\n[b]\nsize=1m\n";
    assert_eq!(read_section(text, Some("b")).unwrap()[0].name, "b");
    let why = read_section(text, Some("c")).unwrap_err();
    assert_eq!(why, "j.fio: --section c: one of these was expected: a, b");
}

#[test]
fn a_job_file_is_told_from_a_probe_file() {
    let is = |path: &str, text: &str| is_job_file(Path::new(path), text);
    assert!(is("x", "\n; a\n # b\n[global]\n") && is("x.fio", "") && is("x.job", "") && is("x.ini", "{"));
    assert!(!is("x.json", "{ \"schema\": 1 }") && !is("x", "") && !is("x", "bs=4k") && !is("x", "{\n[\n]}"));
}

const WHOLE: &str = "[global]\nioengine=rdma\nfilename=h/1/RDMA_READ\nbs=${SIZE}\nsize=100g\n[a]\nrw=read\n\
                     cpus_allowed=0-3\ninclude more.fio\n[b]\nstonewall\nioengine=io_uring\nhipri=1\nrw=randread\n\
                     runtime=10\nramp_time=2s\nrate_iops=10,20\nnumjobs=2*$ncpus\nkb_base=1000\nmem=mmaphuge\n";

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn no_mutilated_file_makes_it_panic(at in 0..WHOLE.len(), length in 0usize..40, put in "[\\[\\]=;#${}/:,%\\n0-9kmib*µ-]{0,12}") {
        let end = (at + length).min(WHOLE.len());
        let _ = read(&format!("{}{put}{}", &WHOLE[..at], &WHOLE[end..]));
    }

    #[test]
    fn what_is_accepted_has_an_engine_or_serves(
        keys in proptest::collection::vec("(bs|size|rw|ioengine|iodepth|filename|runtime|port|direct)=(4k|1m|read|write|libaio|rdma|null|h/7|1)", 0..8)
    ) {
        for job in read(&format!("[j]\n{}\n", keys.join("\n"))).unwrap_or_default() {
            prop_assert!(job.serve.is_some() != job.options.contains_key("engine"));
        }
    }
}
