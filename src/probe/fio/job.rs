//! From the keys of one job to the options of a measurement. Every key is carried over, harmless, or an error.

use super::{
    block,
    engine::Engine,
    keys::{Keys, Result},
    parse::{Place, Section},
    rdma, values,
};
use crate::probe::Options;

/// What fio takes where no size is given.
const DEFAULT_BYTES: u64 = 4096;

/// A job as lat-probe carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The name of its section.
    pub name: String,
    /// What it is about, in the words of its author.
    pub description: Option<String>,
    /// Where its section begins.
    pub place: Place,
    /// Options of the command line; none for a server.
    pub options: Options,
    /// The address where it serves, if it is the other end of an RDMA job.
    pub serve: Option<String>,
    /// What is not as fio would do it, or as the file may expect, each with file and line.
    pub notes: Vec<String>,
    /// Whether it begins after the jobs before it have ended.
    pub waits: bool,
}

/// Carries a job over; `before` is the name of the one before it.
///
/// # Errors
/// File, line, key, and what was expected or why it is not supported.
pub(super) fn job(section: &Section, before: Option<&str>) -> Result<Job> {
    let mut keys = Keys::of(section);
    let description = keys.take("description");
    let waits = waits(&mut keys, before)?;
    let engine = Engine::take(&mut keys)?;
    let (rw, rw_place) = direction(&mut keys)?;
    let serve = if engine.is_rdma() { rdma::role(&mut keys, &rw, &rw_place)? } else { None };
    if serve.is_some() {
        keys.skip_rest()?;
    } else {
        let writes = rw.ends_with("write");
        amount(&mut keys, &engine, writes)?;
        let jobs = load(&mut keys, &engine, writes)?;
        memory(&mut keys, &engine)?;
        if engine.is_block() {
            block::target(&mut keys, &engine, &rw, jobs)?;
            block::way(&mut keys, &engine)?;
        }
        if engine.is_rdma() {
            keys.note(
                &engine.place,
                "fio sleeps until a command completes; lat-probe polls (--completion event sleeps)",
            );
        }
        keys.judge_rest(&engine.fio, writes && engine.is_block())?;
    }
    let Keys { options, notes, .. } = keys;
    let description = description.and_then(|key| key.value).filter(|text| !text.is_empty());
    let options = if serve.is_some() { Options::new() } else { options };
    Ok(Job { name: section.name.clone(), description, place: section.place.clone(), options, serve, notes, waits })
}

/// Whether the job begins after those before it: all of them, or, what is the same where they follow each other, the last.
fn waits(keys: &mut Keys, before: Option<&str>) -> Result<bool> {
    let walled = keys.is_on("stonewall")?;
    let Some((name, place)) = keys.text("wait_for")? else { return Ok(walled) };
    if walled || before == Some(name.as_str()) {
        return Ok(true);
    }
    let before = before.unwrap_or("none");
    Err(format!("{place}: wait_for: the job before this one ({before}) was expected, '{name}' was found"))
}

fn direction(keys: &mut Keys) -> Result<(String, Place)> {
    let parse = |text: &str| match text.strip_suffix(":1").unwrap_or(text) {
        rw @ ("read" | "write" | "randread" | "randwrite") => Ok(rw.to_string()),
        _ => Err(format!("read, write, randread or randwrite was expected, '{text}' was found")),
    };
    Ok(keys.with("rw", parse)?.unwrap_or_else(|| ("read".into(), keys.place().clone())))
}

/// Sizes, and how many commands they make: fio's `size` is the working set and the amount in one.
fn amount(keys: &mut Keys, engine: &Engine, writes: bool) -> Result<()> {
    let bs = keys.number_of("bs", |text| values::of_direction(text, writes))?;
    let (bs, bs_place) = bs.unwrap_or_else(|| (DEFAULT_BYTES, keys.place().clone()));
    if bs == 0 {
        return Err(format!("{bs_place}: bs: at least one byte was expected"));
    }
    if let Some((align, place)) = keys.number_of("ba", |text| values::of_direction(text, writes))?
        && ![0, bs].contains(&align)
    {
        return Err(format!("{place}: ba: places are aligned to bs, {bs}: nothing else was expected"));
    }
    if engine.ours != "null" {
        keys.set_bytes("bs", bs);
    }
    let extent = extent(keys, engine)?;
    if let Some((bytes, place)) = extent.as_ref().filter(|&&(bytes, _)| bytes < bs) {
        return Err(format!("{place}: a size of at least one block (bs={bs}) was expected, {bytes} was found"));
    }
    let limits = number_of_commands(keys, extent.map(|(bytes, _)| bytes), bs)?;
    end(keys, limits, engine)
}

/// The working set: `size` bytes from the offset on, but not beyond the end of the file.
fn extent(keys: &mut Keys, engine: &Engine) -> Result<Option<(u64, Place)>> {
    let offset = keys.number("offset")?.map_or(0, |(bytes, _)| bytes);
    let size = keys.number("size")?.filter(|&(bytes, _)| bytes > 0);
    let file = keys.number("filesize")?.filter(|&(bytes, _)| bytes > 0);
    let behind = match file {
        Some((bytes, place)) if bytes <= offset => {
            return Err(format!(
                "{place}: filesize: more than the offset, {offset}, was expected, '{bytes}' was found"
            ));
        }
        file => file.map(|(bytes, place)| (bytes - offset, place)),
    };
    let extent = match (size, behind) {
        (Some(size), Some(behind)) => Some(if behind.0 < size.0 { behind } else { size }),
        (size, behind) => size.or(behind),
    };
    if engine.is_block() {
        if let Some((bytes, _)) = extent {
            keys.set_bytes("size", bytes);
        }
        if offset > 0 {
            keys.set_bytes("offset", offset);
        }
    }
    Ok(extent)
}

/// Commands of all loops.
struct Limits {
    /// As sizes and numbers limit them.
    by_any: Option<u64>,
    /// As a number alone does: time takes the place of sizes.
    by_number: Option<u64>,
}

fn number_of_commands(keys: &mut Keys, extent: Option<u64>, bs: u64) -> Result<Limits> {
    let loops = keys.positive("loops")?.unwrap_or(1);
    let moved = keys.number("io_size")?.map(|(bytes, _)| bytes).filter(|&bytes| bytes > 0);
    let by_number = keys.number("number_ios")?.map(|(number, _)| number.saturating_mul(loops)).filter(|&all| all > 0);
    // Fio goes on until io_size is reached, and repeats that only if it is no repetition already; without it, it stops before
    // the end of the working set.
    let by_size = match (moved, extent) {
        (Some(bytes), Some(extent)) if bytes > extent => Some(bytes.div_ceil(bs)),
        (Some(bytes), _) => Some(bytes.saturating_mul(loops).div_ceil(bs)),
        (None, extent) => extent.map(|bytes| (bytes / bs).saturating_mul(loops)),
    };
    let by_any = by_size.map_or(by_number, |count| Some(by_number.map_or(count, |number| number.min(count))));
    Ok(Limits { by_any, by_number })
}

/// What ends the measurement, and what comes before it.
fn end(keys: &mut Keys, limits: Limits, engine: &Engine) -> Result<()> {
    let runtime = keys.time("runtime")?;
    let is_time_based = keys.is_on("time_based")? && runtime.is_some();
    let count = if is_time_based { limits.by_number } else { limits.by_any };
    if let Some(count) = count {
        keys.set("count", count);
    }
    if let Some(time) = runtime {
        keys.set_time("duration", time);
    }
    if count.is_none() && runtime.is_none() {
        let place = keys.place();
        let text = if engine.is_block() {
            "neither size nor runtime is given: fio would go once through the whole file, lat-probe issues its 100000 \
             commands (--count)"
        } else {
            "neither size nor runtime is given: lat-probe issues its 100000 commands (--count)"
        };
        keys.note(place, text);
    }
    if let Some(time) = keys.time("ramp_time")? {
        keys.set_time("warmup-time", time);
    }
    Ok(())
}

/// How many at once, by how many, how often, and where; returns the number of jobs.
fn load(keys: &mut Keys, engine: &Engine, writes: bool) -> Result<u64> {
    let depth = keys.number("iodepth")?;
    let full = depth.as_ref().map_or(1, |&(depth, _)| depth);
    match depth {
        Some((0, place)) => return Err(format!("{place}: iodepth: at least 1 was expected, '0' was found")),
        Some((depth, place)) if engine.is_sync() && depth > 1 => {
            let text = format!("iodepth: {} has one command outstanding, in fio as here", engine.fio);
            keys.note(&place, &text);
        }
        Some((depth, _)) if !engine.is_sync() => keys.set("qd", depth),
        _ => {}
    }
    batches(keys, full)?;
    let jobs = keys.positive("numjobs")?.unwrap_or(1);
    let is_grouped = keys.is_on("group_reporting")?;
    if jobs > 1 {
        keys.set("jobs", jobs);
        if !is_grouped {
            keys.set("per-job", true);
        }
    }
    if let Some((rate, _)) = keys.number_of("rate_iops", |text| values::of_direction(text, writes))?
        && rate > 0
    {
        keys.set("rate", rate);
        let arrivals = |text: &str| match text {
            "linear" => Ok("fixed"),
            "poisson" => Ok("poisson"),
            _ => Err(format!("linear or poisson was expected, '{text}' was found")),
        };
        if let Some((arrivals, _)) = keys.with("rate_process", arrivals)? {
            keys.set("arrivals", arrivals);
        }
    }
    processors(keys)?;
    Ok(jobs)
}

/// Commands are handed over and seen one by one.
fn batches(keys: &mut Keys, depth: u64) -> Result<()> {
    for (name, fewest) in [("iodepth_batch", 1), ("iodepth_batch_complete_min", 0), ("iodepth_batch_complete_max", 0)] {
        if let Some((batch, place)) = keys.number(name)?
            && !(fewest..=1).contains(&batch)
        {
            let name = name.trim_end_matches("_min");
            return Err(format!("{place}: {name}: 1 was expected (commands go one by one), '{batch}' was found"));
        }
    }
    if let Some((low, place)) = keys.number("iodepth_low")?
        && low != depth
    {
        return Err(format!(
            "{place}: iodepth_low: the depth, {depth}, was expected: it is kept full; '{low}' was found"
        ));
    }
    Ok(())
}

fn processors(keys: &mut Keys) -> Result<()> {
    let policy = |text: &str| match text {
        "shared" => Ok(false),
        "split" => Ok(true),
        _ => Err(format!("shared or split was expected, '{text}' was found")),
    };
    let is_split = keys.with("cpus_allowed_policy", policy)?.is_some_and(|(split, _)| split);
    let list = keys.with("cpus_allowed", values::cpus)?;
    let Some((list, place)) = list.or(keys.with("cpumask", values::cpu_mask)?) else { return Ok(()) };
    if list.contains(',') && !is_split {
        keys.note(&place, "each job stays on one of these processors; fio lets it move between them");
    }
    keys.set("cpu", list);
    Ok(())
}

/// Where buffers lie.
fn memory(keys: &mut Keys, engine: &Engine) -> Result<()> {
    let parse = |text: &str| match text.split(':').next().unwrap_or_default() {
        "malloc" | "shm" | "mmap" | "mmapshared" => Ok(false),
        "mmaphuge" | "shmhuge" => Ok(true),
        _ => Err(format!("malloc, shm, shmhuge, mmap, mmaphuge or mmapshared was expected, '{text}' was found")),
    };
    if let Some((true, _)) = keys.with("mem", parse)?
        && engine.ours != "null"
    {
        keys.set("hugepages", true);
    }
    let aligned = |text: &str| values::number(text, 1024);
    // Buffers here begin at a page, or a huge one.
    if let Some((align, place)) = keys.with("iomem_align", aligned)?
        && align > 4096
    {
        return Err(format!("{place}: iomem_align: at most 4096 was expected: buffers begin at a page"));
    }
    Ok(())
}
