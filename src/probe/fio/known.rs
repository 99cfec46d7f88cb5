//! fio's keys: what becomes of those that are not carried over, and those with several names.
//!
//! The lists have the keys of fio 3.33, and older ones that the program still took when its `rdma` engine was new. Every
//! key is on one of them, so that a misspelt one is told from one that is not supported.

/// What becomes of a key that nothing was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The figures are the same without it.
    Harmless,
    /// The figures are the same, but the user may miss something, or should know.
    Missed(&'static str),
    /// It is about bytes that are written, and nothing else.
    Content,
    /// Other figures would be measured, unless it has one of these values.
    Changes(&'static [&'static str], &'static str),
    /// It is about something that other engines have.
    OtherEngine,
    /// No key of fio's.
    Unknown,
}

/// The one name of a key that has several.
pub fn one_name(name: &str) -> &str {
    match name {
        "blocksize" => "bs",
        "blockalign" => "ba",
        "blocksize_range" => "bsrange",
        "blocksize_unaligned" => "bs_unaligned",
        "readwrite" => "rw",
        "iodepth_batch_submit" => "iodepth_batch",
        "iodepth_batch_complete" => "iodepth_batch_complete_min",
        "wait_for_previous" => "stonewall",
        "io_limit" => "io_size",
        "fileoffset" => "offset",
        "timeout" => "runtime",
        "nr_files" => "nrfiles",
        "iomem" => "mem",
        "mem_align" => "iomem_align",
        "fill_fs" => "fill_device",
        "ratemin" => "rate_min",
        "ratecycle" => "rate_cycle",
        "disable_bw" => "disable_bw_measurement",
        "ss" => "steadystate",
        "ss_dur" => "steadystate_duration",
        "ss_ramp" => "steadystate_ramp_time",
        "proto" => "verb",
        "start_delay" => "startdelay",
        other => other,
    }
}

/// Keys that are read where they mean something. Left over, they are about nothing that the job has: a file where there
/// is none, an order of places.
const READ_ELSEWHERE: &str = "\
    allrandrepeat ba bs buffered continue_on_error cpumask cpus_allowed cpus_allowed_policy direct directory \
    fadvise_hint filename filesize group_reporting invalidate io_size iodepth iodepth_batch \
    iodepth_batch_complete_max iodepth_batch_complete_min iodepth_low ioengine iomem_align kb_base loops mem norandommap \
    number_ios numjobs offset ramp_time randrepeat randseed rate_iops rate_process runtime rw size stonewall \
    time_based wait_for";

/// Keys that one engine or another has.
const OF_ENGINES: &str = "\
    bindname cmd_type fixedbufs force_async hipri hostname nonvectored port registerfiles sqthread_poll \
    sqthread_poll_cpu userspace_reap verb";

/// Keys about reports, about how the program itself runs, and about nothing that remains without another key.
const HARMLESS: &str = "\
    allow_file_create allow_mounted_write block_error_percentiles bwavgtime clat_percentiles create_fsync \
    create_on_open create_serialize description disable_bw_measurement disable_clat disable_lat disable_slat \
    disk_util error_dump exit_what exitall exitall_on_error fallocate file_service_type gtod_cpu \
    gtod_reduce iopsavgtime lat_percentiles log_entries name new_group openfiles overwrite per_job_logs \
    percentile_list random_generator rate_cycle rate_ignore_thinktime significant_figures slat_percentiles stats \
    thread unified_rw_reporting unique_filename unit_base";

const NO_LOG: &str = "no log is written; --output FILE keeps the result";

const MISSED: &[(&str, &str)] = &[
    ("clocksource", "lat-probe stamps with the clock that --clock chooses"),
    ("log_avg_msec", NO_LOG),
    ("log_hist_msec", NO_LOG),
    ("startdelay", "the start is not delayed"),
    ("unlink", "the file stays"),
    ("unlink_each_loop", "the file stays"),
    ("write_bw_log", NO_LOG),
    ("write_hist_log", NO_LOG),
    ("write_iolog", NO_LOG),
    ("write_iops_log", NO_LOG),
    ("write_lat_log", NO_LOG),
];

/// Keys that do nothing without another one, which is told of where it stands.
const DEPENDENT: &str = "\
    do_verify log_alternate_epoch log_alternate_epoch_clock_id log_compression log_compression_cpus log_entries log_hist_coarseness \
    log_max_value log_offset log_prio log_store_compressed log_unix_epoch merge_blktrace_file merge_blktrace_iters \
    merge_blktrace_scalars read_iolog_chunked replay_align replay_no_stall replay_redirect replay_scale replay_skip \
    replay_time_scale steadystate_duration steadystate_ramp_time thinktime_blocks thinktime_blocks_type \
    thinktime_iotime thinktime_spin trim_backlog trim_backlog_batch trim_verify_zero verify_async verify_backlog \
    verify_backlog_batch verify_dump verify_fatal verify_interval verify_offset verify_state_load verify_state_save \
    zone_reset_frequency zone_reset_threshold zonecapacity";

const CONTENT: &str = "\
    buffer_compress_chunk buffer_compress_percentage buffer_pattern dedupe_global dedupe_mode dedupe_percentage \
    dedupe_working_set_percentage refill_buffers scramble_buffers verify_pattern zero_buffers";

const NONE: &[&str] = &[];
const OFF: &[&str] = &["0"];
const NOT_DONE: &str = "Do it yourself before, and remove the line";
const REMOVE: &str = "Remove the line";

/// Keys by which other commands are issued, or under other conditions; the values with which they are not; what to do.
const CHANGES: &[(&str, &[&str], &str)] = &[
    ("atomic", OFF, REMOVE),
    ("bs_unaligned", OFF, REMOVE),
    ("bsrange", NONE, "Choose one size with bs"),
    ("bssplit", NONE, "Choose one size with bs"),
    ("cgroup", NONE, "Start lat-probe in the group, and remove the line"),
    ("cgroup_nodelete", OFF, REMOVE),
    ("cgroup_weight", NONE, REMOVE),
    ("cmdprio", NONE, REMOVE),
    ("cmdprio_bssplit", NONE, REMOVE),
    ("cmdprio_class", NONE, REMOVE),
    ("cmdprio_percentage", OFF, REMOVE),
    ("create_only", OFF, "`lat-probe fill` makes files"),
    ("end_fsync", OFF, REMOVE),
    ("exec_postrun", NONE, "Do it yourself afterwards, and remove the line"),
    ("exec_prerun", NONE, NOT_DONE),
    ("experimental_verify", OFF, REMOVE),
    ("fdatasync", OFF, REMOVE),
    ("file_append", OFF, REMOVE),
    ("filename_format", &["$jobname.$jobnum.$filenum"], "Name the file with filename"),
    ("fill_device", OFF, REMOVE),
    ("flow", OFF, REMOVE),
    ("flow_id", OFF, REMOVE),
    ("flow_sleep", OFF, REMOVE),
    ("fsync", OFF, REMOVE),
    ("fsync_on_close", OFF, REMOVE),
    ("gid", NONE, "Start lat-probe as that group, and remove the line"),
    ("hipri_percentage", &["100"], REMOVE),
    ("hugepage-size", &["2m", "2097152"], "Pages of 2 MiB are what there is"),
    ("ignore_error", NONE, REMOVE),
    ("ignore_zone_limits", OFF, REMOVE),
    ("io_submit_mode", &["inline"], REMOVE),
    ("ioscheduler", NONE, "Write it to /sys/block/DEV/queue/scheduler, and remove the line"),
    ("job_max_open_zones", OFF, REMOVE),
    ("latency_percentile", NONE, REMOVE),
    ("latency_run", OFF, REMOVE),
    ("latency_target", OFF, REMOVE),
    ("latency_window", OFF, REMOVE),
    ("lockfile", &["none"], REMOVE),
    ("lockmem", OFF, REMOVE),
    ("max_latency", OFF, REMOVE),
    ("max_open_zones", OFF, REMOVE),
    ("nice", OFF, "Start lat-probe with nice, and remove the line"),
    ("nowait", OFF, REMOVE),
    ("nrfiles", &["1"], "One file is measured"),
    ("numa_cpu_nodes", NONE, "Choose processors with cpus_allowed"),
    ("numa_mem_policy", NONE, "Start lat-probe with numactl, and remove the line"),
    ("offset_align", OFF, REMOVE),
    ("offset_increment", OFF, REMOVE),
    ("opendir", NONE, "Name one file with filename"),
    ("percentage_random", &["100", "100,100", "100,100,100"], REMOVE),
    ("pre_read", OFF, NOT_DONE),
    ("prio", NONE, "Start lat-probe with ionice, and remove the line"),
    ("prioclass", NONE, "Start lat-probe with ionice, and remove the line"),
    ("profile", NONE, REMOVE),
    ("random_distribution", &["random"], REMOVE),
    ("rate", OFF, "Give commands per second with rate_iops"),
    ("rate_iops_min", OFF, REMOVE),
    ("rate_min", OFF, REMOVE),
    ("read_beyond_wp", OFF, REMOVE),
    ("read_iolog", NONE, REMOVE),
    ("readfua", OFF, REMOVE),
    ("rw_sequencer", &["sequential"], REMOVE),
    ("rwmixcycle", NONE, REMOVE),
    ("rwmixread", NONE, REMOVE),
    ("rwmixwrite", NONE, REMOVE),
    ("serialize_overlap", OFF, REMOVE),
    ("sg_write_mode", &["write"], REMOVE),
    ("steadystate", NONE, REMOVE),
    ("stream_id", OFF, REMOVE),
    ("sync", &["0", "none"], REMOVE),
    ("sync_file_range", NONE, REMOVE),
    ("thinktime", OFF, "rate_iops leaves time between commands"),
    ("trim_percentage", OFF, REMOVE),
    ("uid", NONE, "Start lat-probe as that user, and remove the line"),
    ("uncached", OFF, REMOVE),
    ("verify", OFF, "--verify behind the file's name checks what is read against `lat-probe fill`"),
    ("verify_only", OFF, REMOVE),
    ("write_barrier", OFF, REMOVE),
    ("write_hint", &["none", "not-set"], REMOVE),
    ("writefua", OFF, REMOVE),
    ("zonemode", &["none"], REMOVE),
    ("zonerange", OFF, REMOVE),
    ("zonesize", OFF, REMOVE),
    ("zoneskip", OFF, REMOVE),
];

/// What becomes of a key that nothing was made of; `name` is its one name.
pub fn fate(name: &str) -> Fate {
    if let Some((_, unless, remedy)) = CHANGES.iter().find(|(key, ..)| *key == name) {
        return Fate::Changes(unless, remedy);
    }
    if let Some((_, what)) = MISSED.iter().find(|(key, _)| *key == name) {
        return Fate::Missed(what);
    }
    let has = |list: &str| list.split_whitespace().any(|key| key == name);
    if has(OF_ENGINES) {
        return Fate::OtherEngine;
    }
    if has(CONTENT) {
        return Fate::Content;
    }
    if has(HARMLESS) || has(DEPENDENT) || has(READ_ELSEWHERE) {
        return Fate::Harmless;
    }
    Fate::Unknown
}
