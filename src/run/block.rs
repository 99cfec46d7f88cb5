//! One point of a block engine: the target is opened and checked, the engine set up, run, and its data judged.

use std::path::Path;

use super::{
    dispatch::Measured,
    figures::CORRUPT_COMMANDS,
    job::{Job, Run},
};
use crate::{
    engine::{
        BlockGranted, BlockOptions, Completion, EngineKind, Granted, UringOptions,
        block::{
            Block,
            aio::{self, Aio},
            checked::Checked,
            nvme::{ByIoctl, ByRing},
            offsets::Offsets,
            options::{SgGranted, TargetKind, WaitsIn},
            pattern, setup,
            sg::Sg,
            sync::{Psync, Pvsync2},
            target::Target,
            uring::{self, Await, ByCall, ByThread, HandOver, Uring},
        },
    },
    error::{Error, Result},
    host::{CpuSet, Sysfs, cpu::near_node},
    probe::Plan,
    report::result::{EndedBy, Verified},
    sys::{
        block,
        file::pread,
        memory::Buffer,
        nvme::{Passthrough, UringCommand},
        scsi::{Header, HeaderV3, HeaderV4},
    },
};

/// Processors near the device, as far as it can be told before the target is checked.
pub(super) fn near_cpus(plan: &Plan) -> Option<CpuSet> {
    let sysfs = Sysfs::default();
    let device = Target::device_behind(&sysfs, &plan.block.as_ref()?.target)?;
    near_node(&sysfs, device.numa_node?)
}

/// Measures one point.
pub(super) fn measure(job: &Job) -> Result<Measured> {
    let bs_bytes = job.load.bs_bytes;
    let Some(options) = &job.plan.block else {
        return Err(Error::usage("--target is missing"));
    };
    let sysfs = Sysfs::default();
    let target = Target::open(&sysfs, options, job.plan.engine, bs_bytes, job.index > 0)?;
    let point = BlockPoint { job, options, sysfs, target, bs_bytes, write: options.rw.writes() };
    match job.plan.engine {
        EngineKind::NvmeCmd => point.nvme(),
        EngineKind::Sg if point.target.kind == TargetKind::Bsg => point.sg::<HeaderV4>(),
        EngineKind::Sg => point.sg::<HeaderV3>(),
        EngineKind::Libaio => point.libaio(),
        EngineKind::IoUring => point.io_uring(),
        EngineKind::Pvsync2 => point.pvsync2(),
        _ => point.psync(),
    }
}

/// Everything that a point needs but the engine.
struct BlockPoint<'a> {
    job: &'a Job<'a>,
    options: &'a BlockOptions,
    sysfs: Sysfs,
    target: Target,
    /// Payload of a command; none for commands without.
    bs_bytes: Option<u64>,
    write: bool,
}

impl BlockPoint<'_> {
    fn psync(self) -> Result<Measured> {
        let granted = self.granted(WaitsIn::SleepingCall);
        let (file, buffer, offsets) = (self.target.file()?, self.buffer()?, self.offsets());
        let subject = self.subject(&granted);
        if self.write {
            self.run(Psync::<true>::new(file, buffer, offsets, subject), granted, |_, _| {})
        } else {
            self.run(Psync::<false>::new(file, buffer, offsets, subject), granted, |_, _| {})
        }
    }

    fn pvsync2(self) -> Result<Measured> {
        let hipri = self.options.hipri;
        if hipri {
            setup::require_polling(&self.target, "--hipri")?;
        }
        let granted = self.granted(if hipri { WaitsIn::PollingCall } else { WaitsIn::SleepingCall });
        let (file, buffer, offsets) = (self.target.file()?, self.buffer()?, self.offsets());
        let subject = self.subject(&granted);
        if self.write {
            self.run(Pvsync2::<true>::new(file, buffer, offsets, hipri, subject), granted, |_, _| {})
        } else {
            self.run(Pvsync2::<false>::new(file, buffer, offsets, hipri, subject), granted, |_, _| {})
        }
    }

    fn libaio(self) -> Result<Measured> {
        let queue = setup::aio_queue(&self.sysfs, &self.target, self.buffer()?, self.write)?;
        let offsets = self.offsets();
        match (self.job.plan.completion, queue.has_ring()) {
            (Completion::Event, _) => {
                let granted = self.granted(WaitsIn::KernelSleep);
                let subject = self.subject(&granted);
                self.run(Aio::<aio::BySleep>::new(queue, offsets, subject), granted, |_, _| {})
            }
            (Completion::Poll, true) => {
                let granted = self.granted(WaitsIn::UserPoll);
                let subject = self.subject(&granted);
                self.run(Aio::<aio::InRing>::new(queue, offsets, subject), granted, |_, _| {})
            }
            (Completion::Poll, false) => {
                let granted = self.granted(WaitsIn::KernelPoll);
                let subject = self.subject(&granted);
                self.run(Aio::<aio::ByLook>::new(queue, offsets, subject), granted, |_, _| {})
            }
        }
    }

    fn io_uring(self) -> Result<Measured> {
        let uring = self.options.uring;
        match self.ways(uring)? {
            (false, waits_in @ WaitsIn::UserPoll) => self.ring::<ByCall, uring::InRing>(uring, waits_in),
            (false, waits_in) => self.ring::<ByCall, uring::InKernel>(uring, waits_in),
            (true, waits_in @ WaitsIn::KernelSleep) => self.ring::<ByThread, uring::InKernel>(uring, waits_in),
            (true, waits_in) => self.ring::<ByThread, uring::InRing>(uring, waits_in),
        }
    }

    /// Whether a thread takes submissions, and where completions are awaited.
    fn ways(&self, uring: UringOptions) -> Result<(bool, WaitsIn)> {
        if uring.iopoll {
            setup::require_polling(&self.target, "--uring-iopoll")?;
        }
        let waits_in = match (self.job.plan.completion, uring) {
            (Completion::Event, _) => WaitsIn::KernelSleep,
            // The submission thread polls the device, and this one looks at the ring.
            (Completion::Poll, UringOptions { iopoll: true, sqpoll: false, .. }) => WaitsIn::KernelPoll,
            (Completion::Poll, _) => WaitsIn::UserPoll,
        };
        Ok((uring.sqpoll, waits_in))
    }

    fn ring<H: HandOver, A: Await>(self, uring: UringOptions, waits_in: WaitsIn) -> Result<Measured> {
        let ring = setup::ring(&self.sysfs, &self.target, uring, self.depth(), Some(self.buffer()?))?;
        let granted = BlockGranted { uring: Some(setup::ring_granted(uring, true)), ..self.granted(waits_in) };
        let (offsets, subject) = (self.offsets(), self.subject(&granted));
        let engine = Uring::<H, A>::new(ring, self.write, uring.force_async, offsets, subject);
        self.run(engine, granted, |_, _| {})
    }

    fn nvme(self) -> Result<Measured> {
        let (options, uring) = (self.options, self.options.uring);
        let (command, name, nvme) =
            setup::nvme_command(&self.target, options.command, self.write, self.bs_bytes, options.nvme_ioctl)?;
        let granted = |waits_in| BlockGranted { command: name.into(), nvme: Some(nvme), ..self.granted(waits_in) };
        if options.nvme_ioctl {
            let granted = granted(WaitsIn::SleepingCall);
            let (offsets, subject) = (self.offsets(), self.subject(&granted));
            let passthrough = Passthrough::new(self.target.file()?, self.optional_buffer()?, command);
            let engine = ByIoctl::new(passthrough, offsets, self.target.block_bytes, subject);
            return self.run(engine, granted, |_, _| {});
        }
        let (by_thread, waits_in) = self.ways(uring)?;
        let ring_facts = Some(setup::ring_granted(uring, self.bs_bytes.is_some()));
        let granted = BlockGranted { uring: ring_facts, ..granted(waits_in) };
        match (by_thread, waits_in) {
            (false, WaitsIn::UserPoll) => self.nvme_ring::<ByCall, uring::InRing>(command, granted),
            (false, _) => self.nvme_ring::<ByCall, uring::InKernel>(command, granted),
            (true, WaitsIn::KernelSleep) => self.nvme_ring::<ByThread, uring::InKernel>(command, granted),
            (true, _) => self.nvme_ring::<ByThread, uring::InRing>(command, granted),
        }
    }

    fn nvme_ring<H: HandOver, A: Await>(self, command: UringCommand, granted: BlockGranted) -> Result<Measured> {
        let ring = setup::ring(&self.sysfs, &self.target, self.options.uring, self.depth(), self.optional_buffer()?)?;
        let (offsets, subject) = (self.offsets(), self.subject(&granted));
        let engine = ByRing::<H, A>::new(ring, command, offsets, self.target.block_bytes, subject);
        self.run(engine, granted, |_, _| {})
    }

    fn sg<H: Header>(self) -> Result<Measured> {
        let options = self.options;
        let command =
            setup::scsi_command::<H>(&self.target, options.command, self.write, self.bs_bytes, options.hugepages)?;
        let granted = BlockGranted {
            command: command.cdb.name().into(),
            sg: Some(SgGranted { version: H::VERSION, direct_io: None }),
            ..self.granted(WaitsIn::SleepingCall)
        };
        let (offsets, subject) = (self.offsets(), self.subject(&granted));
        let engine = Sg::new(command.passthrough, command.cdb, offsets, self.target.block_bytes, subject);
        // The block node's own SG_IO maps the caller's pages, and has no word for it.
        let tells = self.bs_bytes.is_some() && self.target.kind != TargetKind::Block;
        self.run(engine, granted, move |engine, granted| {
            if let Some(sg) = granted.sg.as_mut().filter(|_| tells) {
                sg.direct_io = Some(engine.moved_directly());
            }
        })
    }

    /// Runs an engine that is ready, adds what it `learned`, and judges the data.
    fn run<E: Block>(
        self,
        mut engine: E,
        granted: BlockGranted,
        learned: impl Fn(&E, &mut BlockGranted),
    ) -> Result<Measured> {
        let options = self.options;
        let granted =
            Granted { buffer: engine.buffer().map(setup::buffer_facts), block: Some(granted), ..Granted::default() };
        if !options.verify {
            if let Some(region) = engine.buffer().map(Buffer::region) {
                // Written data is no block of zeros, which some devices treat apart.
                pattern::fill(region, 0, region.len(), 0, options.seed);
            }
            let mut run = self.job.run(&mut engine, granted, None, None)?;
            if self.bs_bytes.is_some() {
                run.point.verified = Verified::NotChecked;
            }
            return Ok(conclude(run, engine, |engine, granted| learned(engine, granted)));
        }
        let mut checked = Checked::new(engine, self.write, options.seed);
        let mut run = self.job.run(&mut checked, granted, None, None)?;
        let last = checked.check();
        let problem = match checked.mismatch() {
            Some(mismatch) => Some(format!("{}: {mismatch}", self.target.path.display())),
            None if self.write && run.issued > 0 => self.read_back(checked.engine().offset(0))?,
            None => None,
        };
        run.point.verified = match (&problem, last, run.issued) {
            (Some(_), _, _) | (_, Err(_), _) => Verified::No,
            (None, Ok(()), 0) => Verified::NotChecked,
            (None, Ok(()), _) => Verified::Yes,
        };
        if let Some(problem) = problem {
            let error = Error::Verification(problem);
            run.point.ended_because = Some(error.to_string());
            run.point.errors.insert(CORRUPT_COMMANDS.into(), 1);
            run.failure = Some(error);
        }
        Ok(conclude(run, checked, |checked, granted| learned(checked.engine(), granted)))
    }

    /// Reads what the last command of a slot wrote, through the block node, and compares it; says what is wrong.
    fn read_back(&self, offset: u64) -> Result<Option<String>> {
        let path = match (&self.target.device, self.target.kind) {
            (_, TargetKind::File | TargetKind::Block) | (None, _) => self.target.path.clone(),
            (Some(device), _) => Path::new("/dev").join(&device.name),
        };
        let failed = |call, source| Error::call(path.display().to_string(), call, source, "It was to be read back");
        let direct = self.target.kind != TargetKind::File;
        let file = block::open(&path, false, if direct { libc::O_DIRECT } else { 0 })
            .map_err(|source| failed("open", source))?;
        let buffer = self.buffer()?;
        let moved =
            pread(&file, &buffer, offset).map_err(|errno| failed("pread", std::io::Error::from_raw_os_error(errno)))?;
        let checked = pattern::check(buffer.region(), 0, moved as usize, offset, self.options.seed);
        Ok(checked.err().map(|mismatch| format!("{}: {mismatch} (read back)", path.display())))
    }

    fn granted(&self, waits_in: WaitsIn) -> BlockGranted {
        let command = setup::call_name(self.job.plan.engine, self.write);
        self.target.granted(self.options, self.bs_bytes, waits_in, command)
    }

    fn buffer(&self) -> Result<Buffer> {
        let node = setup::node(self.target.device.as_ref());
        setup::buffer(self.bs_bytes.unwrap_or(0), self.depth(), self.options.hugepages, node)
    }

    fn depth(&self) -> u32 {
        self.job.load.qd
    }

    fn optional_buffer(&self) -> Result<Option<Buffer>> {
        self.bs_bytes.map(|_| self.buffer()).transpose()
    }

    fn offsets(&self) -> Offsets {
        // Each job goes to other places, and always to the same ones.
        let seed = self.options.rw.is_random().then_some(self.options.seed.wrapping_add(u64::from(self.job.index)));
        Offsets::new(self.target.offset_bytes, self.target.size_bytes, self.bs_bytes.unwrap_or(0), seed)
    }

    fn subject(&self, granted: &BlockGranted) -> crate::engine::block::Subject {
        let bytes = self.bs_bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
        setup::subject(&self.target, &granted.command, bytes, self.options.hugepages)
    }
}

/// Adds what only the engine knows, and lets go of it.
fn conclude<E>(mut run: Run, engine: E, learned: impl Fn(&E, &mut BlockGranted)) -> Measured {
    if let Some(granted) = &mut run.point.granted.block {
        learned(&engine, granted);
    }
    if matches!(run.point.ended_by, EndedBy::Signal | EndedBy::Error) {
        // A command may be in flight for ever: its memory must not be used again, and closing its ring could wait.
        std::mem::forget(engine);
    }
    Measured::from(run)
}
