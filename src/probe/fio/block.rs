//! What fio's jobs say of files and devices, and of the way that commands take to them.

use super::{
    engine::Engine,
    keys::{Keys, Result},
};

/// The file or device, in which direction, and how it is opened.
///
/// # Errors
/// File, line, key, and what was expected.
pub(super) fn target(keys: &mut Keys, engine: &Engine, rw: &str, jobs: u64) -> Result<()> {
    let folder = keys.text("directory")?;
    if let Some((folder, place)) = folder.as_ref().filter(|(folder, _)| folder.contains(':')) {
        return Err(format!("{place}: directory: one folder was expected, '{folder}' was found"));
    }
    let name = match keys.text("filename")? {
        Some((name, place)) => {
            // A colon that belongs to the name has a backslash before it.
            let plain = name.replace("\\:", "\0");
            if plain.contains(':') {
                return Err(format!("{place}: filename: one file was expected, '{name}' was found"));
            }
            plain.replace('\0', ":")
        }
        None if jobs > 1 => {
            let place = keys.place();
            return Err(format!(
                "{place}: filename was expected: without it each of {jobs} jobs has a file of its own"
            ));
        }
        // So fio calls the file that it makes.
        None => format!("{}.0.0", keys.section.name),
    };
    let target = match folder {
        Some((folder, _)) => format!("{}/{}", folder.trim_end_matches('/'), name.trim_start_matches('/')),
        None => name,
    };
    keys.set("target", target);
    keys.set("rw", rw);
    if rw.starts_with("rand") {
        random(keys)?;
    }
    if !engine.passes_by_the_block_layer() {
        opened(keys, rw)?;
    }
    errors(keys, rw)
}

/// How random places are drawn.
fn random(keys: &mut Keys) -> Result<()> {
    if let Some((seed, _)) = keys.number("randseed")? {
        keys.set("seed", seed);
    }
    if !keys.is_on("norandommap")? {
        let place = keys.place();
        keys.note(place, "random places can come again before all were met, as with norandommap");
    }
    for name in ["randrepeat", "allrandrepeat"] {
        if let Some((false, place)) = keys.switch(name)? {
            keys.note(&place, &format!("{name}: the same places come in each run; randseed chooses others"));
        }
    }
    Ok(())
}

/// Through the page cache, which is fio's default, or past it.
fn opened(keys: &mut Keys, rw: &str) -> Result<()> {
    let direct = keys.switch("direct")?.map(|(direct, _)| direct);
    let buffered = keys.switch("buffered")?.map(|(buffered, _)| buffered);
    let direct = direct.unwrap_or(buffered == Some(false));
    keys.set(if direct { "direct" } else { "buffered" }, true);
    let invalidates = keys.switch("invalidate")?.is_none_or(|(on, _)| on);
    let advises = keys.text("fadvise_hint")?.is_none_or(|(hint, _)| hint != "0");
    if direct || rw.ends_with("write") {
        return Ok(());
    }
    let place = keys.place();
    if invalidates {
        keys.note(place, "the file's pages stay in the page cache; fio drops them first (unless invalidate=0)");
    }
    if advises {
        keys.note(place, "the kernel is not told of the order of places; fio tells it (unless fadvise_hint=0)");
    }
    Ok(())
}

/// Whether a command may fail.
fn errors(keys: &mut Keys, rw: &str) -> Result<()> {
    let direction = if rw.ends_with("write") { "write" } else { "read" };
    let parse = |text: &str| match text {
        "none" | "0" | "verify" => Ok(false),
        "all" | "1" | "io" => Ok(true),
        "read" | "write" => Ok(text == direction),
        _ => Err(format!("none, read, write, io, verify or all was expected, '{text}' was found")),
    };
    if let Some((true, _)) = keys.with("continue_on_error", parse)? {
        keys.set("continue-on-error", true);
    }
    Ok(())
}

/// What single engines have.
///
/// # Errors
/// As [`target`].
pub(super) fn way(keys: &mut Keys, engine: &Engine) -> Result<()> {
    if engine.is_ring() {
        return ring(keys, engine);
    }
    match engine.ours {
        "pvsync2" if keys.is_on("hipri")? => keys.set("hipri", true),
        // It is what lat-probe does anyway.
        "libaio" => drop(keys.switch("userspace_reap")?),
        _ => {}
    }
    if engine.ours == "libaio" {
        polls(keys, engine);
    }
    Ok(())
}

/// The options of a ring. Fio registers nothing by default, lat-probe the buffer and the file.
fn ring(keys: &mut Keys, engine: &Engine) -> Result<()> {
    let fixed = keys.is_on("fixedbufs")?;
    let thread = keys.is_on("sqthread_poll")?;
    // Fio's submission thread takes registered files only, so they are.
    let registered = keys.is_on("registerfiles")? || thread;
    match (fixed, registered) {
        (true, true) => {}
        (false, false) => keys.set("uring-unregistered", true),
        _ => {
            let place = keys.place();
            let (has, lacks) = if fixed { ("buffers", "registerfiles") } else { ("the file", "fixedbufs") };
            return Err(format!(
                "{place}: {lacks}: only {has} would be registered, which costs another time than both or neither: lat-probe \
                 has those two. Add {lacks}, or leave both out"
            ));
        }
    }
    if thread {
        keys.set("uring-sqpoll", true);
    }
    if let Some((cpu, _)) = keys.number("sqthread_poll_cpu")?
        && thread
    {
        keys.set("sqpoll-cpu", cpu);
    }
    if let Some((every, place)) = keys.number("force_async")? {
        match every {
            0 => {}
            1 => keys.set("uring-async", true),
            _ => {
                return Err(format!(
                    "{place}: force_async: 0 or 1 was expected (each command or none), '{every}' was found"
                ));
            }
        }
    }
    if let Some((false, place)) = keys.switch("nonvectored")? {
        return Err(format!("{place}: nonvectored: only 1 is supported: commands have one buffer"));
    }
    if engine.ours == "nvme-cmd" {
        let nvme = |text: &str| match text {
            "nvme" => Ok(()),
            _ => Err(format!("nvme was expected, '{text}' was found")),
        };
        keys.with("cmd_type", nvme)?;
    }
    if keys.is_on("hipri")? {
        keys.set("uring-iopoll", true);
    } else if !thread {
        polls(keys, engine);
    }
    Ok(())
}

/// Fio asks the kernel for completions and sleeps until there are some.
fn polls(keys: &mut Keys, engine: &Engine) {
    keys.note(&engine.place, "fio sleeps until a command completes; lat-probe polls (--completion event sleeps)");
}
