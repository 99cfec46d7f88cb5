//! Interrupts of devices: kept off the measuring processors, and put back afterwards.
//!
//! The kernel does not put them back by itself when a process is killed. A small shell, the guardian, waits for that: it
//! holds the reading end of a pipe, and restores what it was told when the pipe ends without a word.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    unistd::{AccessFlags, access},
};

use super::Quiet;
use crate::host::{CpuSet, Sysfs, cpu};

const FOLDER: &str = "/proc/irq";

/// Restores each file (odd arguments) to its text (even ones), unless told that there is nothing left to do.
const GUARDIAN: &str = r#"trap '' HUP INT QUIT TERM
read -r word
[ "$word" = done ] && exit 0
while [ $# -ge 2 ]; do echo "$2" > "$1"; shift 2; done"#;

/// Interrupts that were moved; they go back on drop.
#[derive(Debug)]
pub struct Steering {
    sysfs: Sysfs,
    moved: Vec<Interrupt>,
    guardian: Guardian,
    // Two runs at a time would each take the other's setting for the machine's own.
    _lock: Flock<File>,
}

/// An interrupt and the processors that it may come to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interrupt {
    number: usize,
    affinity: CpuSet,
}

impl Steering {
    /// The name in a result.
    pub const NAME: &'static str = "interrupt-affinity";
    /// The name in a result of interrupts that the kernel does not let go elsewhere.
    pub const FIXED: &'static str = "fixed-interrupts";
    /// The name in a result of interrupts that are part of what is measured.
    pub const DEVICE: &'static str = "device-interrupts";

    /// Moves interrupts away from `cpus`, all but those of `keep`, and notes what came of it.
    pub fn away_from(sysfs: &Sysfs, cpus: &CpuSet, keep: &BTreeSet<usize>, quiet: &mut Quiet) -> Option<Self> {
        match Self::start(sysfs, cpus, keep, quiet) {
            Ok(Some(begun)) => begun.steer(cpus, quiet),
            Ok(None) => None,
            Err(reason) => {
                quiet.refuse(Self::NAME, reason);
                None
            }
        }
    }

    /// Everything up to the first change. `Ok(None)` if there is nothing to change, which is noted.
    fn start(sysfs: &Sysfs, cpus: &CpuSet, keep: &BTreeSet<usize>, quiet: &mut Quiet) -> Result<Option<Self>, String> {
        let (kept, targets): (Vec<_>, Vec<_>) =
            coming_to(sysfs, cpus)?.into_iter().partition(|interrupt| keep.contains(&interrupt.number));
        if !kept.is_empty() {
            let numbers = numbers(&kept);
            quiet.refuse(
                Self::DEVICE,
                format!("IRQ {numbers} of the measured device may come to CPU {cpus}: its commands wait for them"),
            );
        }
        if targets.is_empty() {
            quiet.note(Self::NAME, Ok(((), format!("no other interrupt may come to CPU {cpus}"))));
            return Ok(None);
        }
        if others(sysfs, cpus).is_empty() {
            return Err(format!("no processor but CPU {cpus} is online"));
        }
        let first = sysfs.path(&affinity_file(targets[0].number));
        access(&first, AccessFlags::W_OK)
            .map_err(|errno| format!("{}: {}. Needs root", first.display(), io::Error::from(errno)))?;
        let lock = lock(sysfs)?;
        let guardian = Guardian::start(sysfs, &targets, &lock)
            .map_err(|error| format!("/bin/sh, which would restore them after a kill, cannot be started: {error}"))?;
        Ok(Some(Self { sysfs: sysfs.clone(), moved: targets, guardian, _lock: lock }))
    }

    fn steer(mut self, cpus: &CpuSet, quiet: &mut Quiet) -> Option<Self> {
        let others = others(&self.sysfs, cpus);
        // An interrupt that must leave all its processors does not go to one that is to be left alone, if it can be helped.
        let shared = others.without(&cpu::isolated(&self.sysfs).unwrap_or_default());
        let elsewhere = if shared.is_empty() { &others } else { &shared };
        let mut fixed: BTreeMap<String, Vec<Interrupt>> = BTreeMap::new();
        for interrupt in std::mem::take(&mut self.moved) {
            let rest = interrupt.affinity.without(cpus).intersect(&others);
            let rest = if rest.is_empty() { elsewhere } else { &rest };
            match write(&self.sysfs, interrupt.number, rest) {
                Ok(()) => self.moved.push(interrupt),
                Err(error) if vanished(&error) => {} // The device was taken away meanwhile.
                Err(error) => fixed.entry(why_fixed(&error)).or_default().push(interrupt),
            }
        }
        let count = fixed.values().map(Vec::len).sum::<usize>();
        let reasons = fixed.iter().map(|(why, interrupts)| format!("IRQ {}: {why}", numbers(interrupts)));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        if self.moved.is_empty() {
            quiet.refuse(Self::NAME, format!("none of {count} could be moved from CPU {cpus}. {reasons}"));
            return None;
        }
        if count > 0 {
            quiet.refuse(Self::FIXED, format!("{count} may still come to CPU {cpus}. {reasons}"));
        }
        let (moved, numbers) = (self.moved.len(), numbers(&self.moved));
        let doubt = if irqbalance_runs(&self.sysfs) { "; irqbalance is running and may move them back" } else { "" };
        quiet.note(Self::NAME, Ok(((), format!("{moved} moved away from CPU {cpus} (IRQ {numbers}){doubt}"))));
        Some(self)
    }

    /// Puts everything back now; what could not be, each with its errno.
    pub fn restore(mut self) -> Vec<String> {
        self.put_back()
    }

    fn put_back(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        for Interrupt { number, affinity } in self.moved.drain(..) {
            match write(&self.sysfs, number, &affinity) {
                Err(error) if !vanished(&error) => failed.push(format!("IRQ {number} to CPUs {affinity}: {error}")),
                _ => {}
            }
        }
        self.guardian.dismiss();
        failed
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// The shell that restores what a killed process cannot.
#[derive(Debug)]
struct Guardian {
    process: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    fn start(sysfs: &Sysfs, interrupts: &[Interrupt], lock: &File) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARDIAN, "lat-probe-guardian"]).current_dir("/");
        for Interrupt { number, affinity } in interrupts {
            command.arg(sysfs.path(&affinity_file(*number))).arg(affinity.to_string());
        }
        // In a group of its own, which Ctrl-C at the terminal does not reach. It holds the lock until it has restored.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::from(lock.try_clone()?)).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let pipe = process.stdin.take();
        Ok(Self { process, pipe })
    }

    fn dismiss(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // It may have been killed itself; then there is nobody to dismiss.
            let _ = pipe.write_all(b"done\n");
            drop(pipe);
            let _ = self.process.wait();
        }
    }
}

/// Interrupts that may come to one of `cpus`, or that are delivered there.
fn coming_to(sysfs: &Sysfs, cpus: &CpuSet) -> Result<Vec<Interrupt>, String> {
    let names = sysfs.names(FOLDER).ok_or_else(|| format!("{FOLDER} is not shown here"))?;
    let found = names.iter().filter_map(|name| {
        let number = name.parse().ok()?;
        let affinity: CpuSet = sysfs.read(&affinity_file(number))?.parse().ok()?;
        let effective = sysfs.read(&format!("{FOLDER}/{number}/effective_affinity_list"));
        let effective: CpuSet = effective.and_then(|list| list.parse().ok()).unwrap_or_default();
        let comes = cpus.iter().any(|cpu| affinity.contains(cpu) || effective.contains(cpu));
        comes.then_some(Interrupt { number, affinity })
    });
    Ok(found.collect())
}

/// The interrupts of a device, given the folder of it or of something below it in /sys: those of the nearest device above
/// that has some, and of every part of a device that is made of others.
pub fn of_device(sysfs: &Sysfs, folder: &str) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    collect(sysfs, folder, 8, &mut found);
    found
}

fn collect(sysfs: &Sysfs, folder: &str, depth: u32, found: &mut BTreeSet<usize>) {
    let Some(place) = sysfs.canonical(folder).filter(|_| depth > 0) else { return };
    // Device mapper and md keep links to their parts; the head of an NVMe multipath device lies among its controllers.
    let own = place.to_string_lossy().into_owned();
    let slaves = format!("{own}/slaves");
    for slave in sysfs.names(&slaves).unwrap_or_default() {
        collect(sysfs, &format!("{slaves}/{slave}"), depth - 1, found);
    }
    if let Some(subsystem) = place.parent().map(|parent| parent.to_string_lossy().into_owned())
        && subsystem.contains("/nvme-subsystem/")
    {
        for name in sysfs.names(&subsystem).unwrap_or_default().iter().filter(|name| is_nvme_controller(name)) {
            collect(sysfs, &format!("{subsystem}/{name}"), depth - 1, found);
        }
    }
    for above in place.ancestors().take_while(|above| above.starts_with("/sys/devices")) {
        let above = above.to_string_lossy();
        let messages = sysfs.names(&format!("{above}/msi_irqs")).unwrap_or_default();
        let mut numbers: Vec<usize> = messages.iter().filter_map(|name| name.parse().ok()).collect();
        let line = sysfs.read_word(&format!("{above}/irq")).and_then(|number| number.parse().ok());
        numbers.extend(line.filter(|&number: &usize| number > 0 && messages.is_empty()));
        if !numbers.is_empty() {
            found.extend(numbers);
            return;
        }
    }
}

fn is_nvme_controller(name: &str) -> bool {
    name.strip_prefix("nvme").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the daemon runs that spreads interrupts over processors, and may undo what is done here.
pub fn irqbalance_runs(sysfs: &Sysfs) -> bool {
    let processes = sysfs.names("/proc").unwrap_or_default().into_iter();
    let mut processes = processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    processes.any(|id| sysfs.read(&format!("/proc/{id}/comm")).as_deref() == Some("irqbalance"))
}

fn affinity_file(number: usize) -> String {
    format!("{FOLDER}/{number}/smp_affinity_list")
}

fn others(sysfs: &Sysfs, cpus: &CpuSet) -> CpuSet {
    cpu::online(sysfs).unwrap_or_default().without(cpus)
}

fn write(sysfs: &Sysfs, number: usize, cpus: &CpuSet) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(sysfs.path(&affinity_file(number)))?;
    file.write_all(format!("{cpus}\n").as_bytes())
}

fn vanished(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn why_fixed(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EIO | libc::EPERM) => format!("the kernel manages them ({error})"),
        _ => error.to_string(),
    }
}

/// Numbers in the kernel's short form for processors, which suits these as well.
fn numbers(interrupts: &[Interrupt]) -> CpuSet {
    interrupts.iter().map(|interrupt| interrupt.number).collect()
}

fn lock(sysfs: &Sysfs) -> Result<Flock<File>, String> {
    let folder = File::open(sysfs.path(FOLDER)).map_err(|error| format!("{FOLDER}: {error}"))?;
    Flock::lock(folder, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => "another lat-probe --quiet moves interrupts now. Wait for its end".into(),
        errno => format!("{FOLDER}: flock: {}", io::Error::from(errno)),
    })
}

#[cfg(test)]
#[path = "interrupts_tests.rs"]
mod tests;
