//! A thread of a run: its loop, its open files, its memory and its counts.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use luc_wml::plan::{Io, Op, Quit, Target};
use rustix::io::Errno;

use super::aio::{FileId, Pool, Ticket};
use super::draw::Draws;
use super::engine::{Engine, Place, Step};
use super::fileset::PathBuffer;
use super::halt::{Flow, Halt};
use super::stats::Stats;
use crate::clock::{NS_PER_MS, now_ns, sleep_until};
use crate::crew::Shift;
use crate::{Result, WorkloadError};
use luc_base::Recorder;

/// Slots of a thread's table of open files: those that `opennext` uses in turn, and one more.
pub const SLOTS: usize = 129;
/// `opennext` goes from the slot below this one down to 0.
pub const ROTATE_FROM: usize = 128;

/// A slot of the table of open files. A closed slot remembers its file, because `deletefile` and
/// the like may name it later.
#[derive(Default)]
pub struct Slot {
    pub fd: Option<Open>,
    pub file: Option<FileId>,
    pub dsync: bool,
}

/// An open file. It is shared only if asynchronous writes may still be under way when it is closed.
pub enum Open {
    Own(OwnedFd),
    Shared(Arc<OwnedFd>),
}

impl AsFd for Open {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) => fd.as_fd(),
            Self::Shared(fd) => fd.as_fd(),
        }
    }
}

pub struct Counted {
    pub stats: Vec<Stats>,
    pub fsync: Recorder,
    pub dsync: Recorder,
    /// End of the last measured operation, nanoseconds; 0 without one.
    pub last_ns: u64,
    pub loops: u64,
}

pub struct Worker<'e, 'p> {
    pub engine: &'e Engine<'p>,
    pub draws: Draws<'p>,
    pub slots: Vec<Slot>,
    pub path: PathBuffer,
    pub pool: Option<Arc<Pool>>,
    /// Writes that this thread has begun, in order, and tickets to reuse.
    pub pending: Vec<Ticket>,
    pub tickets: Vec<Ticket>,
    /// The thread's rotors of existing entries, one per fileset, for `opennext`.
    pub rotors: Vec<std::sync::atomic::AtomicU32>,
    pub memory: Memory,
    pub counted: Counted,
    pub shift: Shift<'e>,
    number: usize,
    next_slot: usize,
    /// The last reading of the clock.
    seen_ns: u64,
}

/// The memory that a thread's transfers read and write.
pub struct Memory {
    pub bytes: Vec<u8>,
    /// False if the workload gives no size: the memory then grows to the largest transfer.
    pub fixed: bool,
}

/// A thread's own state besides its steps.
pub struct Own<'p> {
    pub place: Place<'p>,
    pub draws: Draws<'p>,
    pub memory: Memory,
    pub counted: Counted,
}

impl<'p> Own<'p> {
    pub fn new(place: Place<'p>, draws: Draws<'p>, memory: Memory) -> Self {
        let flowops = place.thread.all_flowops();
        let counted = Counted {
            stats: flowops.iter().map(|_| Stats::new()).collect(),
            fsync: Recorder::new(),
            dsync: Recorder::new(),
            last_ns: 0,
            loops: 0,
        };
        Self {
            place,
            draws,
            memory,
            counted,
        }
    }
}

impl<'e, 'p> Worker<'e, 'p> {
    pub fn new(engine: &'e Engine<'p>, own: Own<'p>, shift: Shift<'e>) -> Self {
        Self {
            engine,
            draws: own.draws,
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            path: PathBuffer::default(),
            pool: own.place.pool,
            pending: Vec::new(),
            tickets: Vec::new(),
            rotors: engine.filesets.iter().map(|_| 0.into()).collect(),
            memory: own.memory,
            counted: own.counted,
            shift,
            number: own.place.number,
            next_slot: 0,
            seen_ns: shift.start_ns,
        }
    }

    /// Loops over `steps` until the run or the thread has ended.
    pub fn run(mut self, steps: &mut [Step<'p>]) -> Result<Counted> {
        let halt = loop {
            self.seen_ns = now_ns();
            match self.list(steps) {
                Ok(()) => self.counted.loops += 1,
                Err(halt) => break halt,
            }
        };
        let error = match (halt, self.engine.plan.quit) {
            (Halt::Failed(error), _) => Some(error),
            (Halt::Lacking(what), Quit::Timeout) => Some(WorkloadError::NoEntry { what }),
            (Halt::Over, _) | (_, Quit::AllDone) => None,
            _ => {
                self.engine.finish(self.shift.ended);
                None
            }
        };
        if let Some(error) = error {
            // Other threads may be waiting for this one.
            self.shift.ended.set();
            self.engine.wake();
            return Err(error);
        }
        self.aio_failure()?;
        Ok(self.counted)
    }

    /// Executes the steps, each as often as its `iters` says.
    pub fn list(&mut self, steps: &mut [Step<'p>]) -> Flow {
        for step in steps {
            let times = self.draws.whole(step.flowop.iters);
            for _ in 0..times {
                self.unless_over()?;
                self.execute(step)?;
            }
        }
        self.unless_over()
    }

    fn execute(&mut self, step: &mut Step<'p>) -> Flow {
        match &step.flowop.op {
            Op::Read(t) => self.read(step, t),
            Op::Write(t) => self.write(step, t),
            Op::AioWrite(t) => self.aio_write(step, t),
            Op::AioWait => self.aio_wait(step),
            Op::ReadWholeFile(t) => self.read_whole(step, t),
            Op::WriteWholeFile {
                transfer,
                source_fd,
            } => self.write_whole(step, transfer, *source_fd),
            Op::AppendFile(t) => self.append(step, t, false),
            Op::AppendFileRand(t) => self.append(step, t, true),
            Op::OpenFile(t) => self.open(step, t),
            Op::CreateFile(t) => self.create(step, t),
            Op::CloseFile { fd, rotate } => self.close(step, *fd, *rotate),
            Op::DeleteFile(t) => self.delete(step, t),
            Op::StatFile(t) => self.stat(step, t),
            Op::Fsync(t) => self.fsync(step, t),
            Op::FsyncSet(fileset) => self.fsync_set(step, *fileset),
            Op::MakeDir(fileset) => self.make_dir(step, *fileset),
            Op::RemoveDir(fileset) => self.remove_dir(step, *fileset),
            Op::ListDir(fileset) => self.list_dir(step, *fileset),
            Op::SemBlock { value, .. } => self.sem_block(step, *value),
            Op::SemPost {
                value, blocking, ..
            } => self.sem_post(step, *value, *blocking),
            Op::Block => self.block(step),
            Op::Wakeup { .. } => {
                self.wakeup(step);
                Ok(())
            }
            Op::Hog { value } => {
                self.hog(step, *value);
                Ok(())
            }
            Op::Delay { seconds } => self.delay(step, *seconds),
            Op::EventLimit => self.events(step, 1),
            Op::BwLimit { .. } | Op::IopsLimit { .. } | Op::OpsLimit { .. } => {
                self.rate_limit(step)
            }
            Op::FinishOnCount { .. } | Op::FinishOnBytes { .. } => self.finish_on(step),
            Op::Composite(_) => self.list(&mut step.children),
        }
    }

    /// Tells whether the run was over at the last reading of the clock.
    pub fn over(&self) -> bool {
        self.seen_ns >= self.shift.until_ns || self.shift.is_cut_short()
    }

    pub fn unless_over(&self) -> Flow {
        if self.over() { Err(Halt::Over) } else { Ok(()) }
    }

    /// Reads the clock, for steps that measure nothing.
    pub fn look(&mut self) {
        self.seen_ns = now_ns();
    }

    /// Returns the moment before an operation.
    #[expect(clippy::unused_self, reason = "reads as the counterpart of `end`")]
    pub fn begin(&self) -> u64 {
        now_ns()
    }

    /// Counts an operation that began at `begin_ns` and ends now. Returns its time, nanoseconds, if
    /// it is part of the measurement.
    pub fn end(&mut self, step: &Step<'p>, begin_ns: u64, bytes: u64) -> Option<u64> {
        let end_ns = now_ns();
        self.seen_ns = end_ns;
        let io = step.flowop.io;
        let stats = &mut self.counted.stats[step.stats];
        stats.ever_count += 1;
        stats.ever_bytes += bytes;
        if let Some(all) = &self.engine.totals {
            let own = &all[self.number];
            if io != Io::None {
                own.ops.fetch_add(1, Ordering::Relaxed);
                own.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            if matches!(io, Io::Read | Io::Write) {
                own.transfers.fetch_add(1, Ordering::Relaxed);
                own.transfer_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        if !self.shift.measures(end_ns) {
            return None;
        }
        if io != Io::None {
            if let Some((done, wanted)) = &self.engine.budget {
                let number = done.fetch_add(1, Ordering::Relaxed) + 1;
                if number >= *wanted {
                    self.engine.finish(self.shift.ended);
                }
                if number > *wanted {
                    return None;
                }
            }
            self.counted.last_ns = end_ns;
        }
        let ns = end_ns - begin_ns;
        self.counted.stats[step.stats].record(ns, bytes);
        Some(ns)
    }

    /// Sleeps until `deadline_ns` or the end of the run.
    pub fn sleep(&mut self, deadline_ns: u64) {
        let deadline_ns = deadline_ns.min(self.shift.until_ns);
        loop {
            self.seen_ns = now_ns();
            if self.seen_ns >= deadline_ns || self.over() {
                return;
            }
            sleep_until(
                deadline_ns.min(self.seen_ns + 100 * NS_PER_MS),
                self.shift.stop,
            );
        }
    }

    /// Returns a test for waits: whether the run has ended meanwhile.
    pub fn give_up(&self) -> impl FnMut() -> bool + use<'e, 'p> {
        let shift = self.shift;
        move || shift.is_cut_short() || now_ns() >= shift.until_ns
    }

    /// Returns the slot that an operation means.
    pub fn slot(&mut self, fd: u32, rotate: bool) -> usize {
        if fd > 0 || !rotate {
            return (fd as usize).min(SLOTS - 1);
        }
        if self.next_slot == 0 {
            self.next_slot = ROTATE_FROM;
        }
        self.next_slot -= 1;
        self.next_slot
    }

    pub fn slot_of(&mut self, target: &Target) -> usize {
        self.slot(target.fd, target.rotate)
    }

    /// Returns the place in the thread's memory for a transfer of `bytes`.
    pub fn buffer(
        &mut self,
        step: &Step<'p>,
        bytes: u64,
        direct: bool,
    ) -> Result<std::ops::Range<usize>> {
        const PAGE: usize = 4096;
        const MOST: u64 = 1 << 30;
        let refused = |why: String| Err(WorkloadError::flowop(step.flowop, why));
        if bytes == 0 {
            return refused("its iosize is zero; give a larger one".into());
        }
        if bytes > MOST {
            return refused(format!(
                "it moves {bytes} bytes at once; the maximum is {MOST}"
            ));
        }
        // Direct transfers need room to begin at a page boundary.
        let room = bytes + if direct { PAGE as u64 } else { 0 };
        let have = self.memory.bytes.len() as u64;
        let mut offset = 0;
        if self.memory.fixed {
            if have < room {
                return refused(format!(
                    "its thread's memsize is {have} bytes, less than the {room} it needs"
                ));
            }
            offset = self.draws.generator.scaled(have, room);
        } else if have < room {
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            self.memory.bytes.resize(room, 0);
        }
        // The range lies within the memory, whose length is a usize.
        let mut start = usize::try_from(offset).unwrap_or(0);
        if direct {
            start += self.memory.bytes[start..].as_ptr().align_offset(PAGE);
        }
        Ok(start..start + usize::try_from(bytes).unwrap_or(0))
    }

    /// Returns the path of a file in the run's directory, for a message.
    pub fn path_of(&self, file: Option<FileId>) -> PathBuffer {
        let mut path = PathBuffer::default();
        if let Some(id) = file {
            let fileset = &self.engine.filesets[id.fileset];
            fileset.leaf_path(fileset.tree.files[id.index as usize], &mut path);
        }
        path
    }

    /// Returns the error of `call` on the file of a slot.
    pub fn file_error(&self, call: &'static str, slot: usize, errno: Errno) -> WorkloadError {
        let path = self.path_of(self.slots[slot].file);
        self.engine.root.error(call, path.get(), errno)
    }

    /// Returns an error if an asynchronous write of this process failed.
    pub fn aio_failure(&self) -> Result<()> {
        let Some(failed) = self.pool.as_ref().and_then(|pool| pool.failed()) else {
            return Ok(());
        };
        let path = self.path_of(Some(failed.id));
        self.engine
            .root
            .written(path.get(), failed.done, failed.wanted)
    }
}
