//! A thread of a run: its loop, its open files and its memory.

use std::sync::atomic::{AtomicU32, Ordering};

use luc_wml::plan::{Io, Op, Quit, Target};

use super::draw::Draws;
use super::engine::{Engine, Job, Place, Step};
use super::halt::{Flow, Halt};
use super::system::{Chunk, EntryId, System, Ticket, Work};
use crate::Result;

/// Slots of a thread's table of open files: those that `opennext` uses in turn, and one more.
const SLOTS: usize = 129;
/// `opennext` goes from the slot below this one down to 0.
const ROTATE_FROM: usize = 128;

/// A slot of the table of open files. A closed slot remembers its file, because `deletefile` and
/// the like may name it later.
pub struct Slot<F> {
    pub open: Option<F>,
    pub file: Option<EntryId>,
    pub dsync: bool,
}

pub struct Thread<'e, S: System> {
    pub engine: &'e Engine<S::Waiters>,
    pub system: S,
    pub draws: Draws,
    pub slots: Vec<Slot<S::File>>,
    /// Writes that this thread has begun, in order, and tickets to reuse.
    pub pending: Vec<Ticket>,
    pub tickets: Vec<Ticket>,
    /// The thread's rotors of existing entries, one per fileset, for `opennext`.
    pub rotors: Vec<AtomicU32>,
    place: Place,
    next_slot: usize,
    /// Size of its memory; 0 if that grows to the largest transfer.
    memory_bytes: u64,
}

impl<'e, S: System> Thread<'e, S> {
    pub fn new(engine: &'e Engine<S::Waiters>, job: Job, system: S) -> (Self, Vec<Step<'e>>) {
        let slot = || Slot {
            open: None,
            file: None,
            dsync: false,
        };
        let steps = job.place.steps(&engine.plan, job.bound);
        let thread = Self {
            engine,
            system,
            draws: job.draws,
            slots: std::iter::repeat_with(slot).take(SLOTS).collect(),
            pending: Vec::new(),
            tickets: Vec::new(),
            rotors: engine.filesets.iter().map(|_| 0.into()).collect(),
            place: job.place,
            next_slot: 0,
            memory_bytes: job.memory_bytes,
        };
        (thread, steps)
    }

    /// Loops over `steps` until the run or the thread has ended.
    ///
    /// # Errors
    /// If a step failed; the run is then over for every thread.
    pub async fn run(&mut self, steps: &mut [Step<'e>]) -> Result<()> {
        let halt = loop {
            let begin_ns = self.system.now_ns();
            match self.list(steps).await {
                Ok(()) => self.system.count(|counted| counted.loops += 1),
                Err(halt) => break halt,
            }
            self.system.work(Work::Loop { begin_ns }).await;
        };
        let ended = match (halt, self.engine.plan.quit) {
            (Halt::Failed(error), _) | (Halt::Lacking(error), Quit::Timeout) => Err(*error),
            (Halt::Over, _) | (_, Quit::AllDone) => return self.system.submissions(),
            _ => self.system.submissions(),
        };
        // Other threads may be waiting for this one.
        self.system.finish();
        ended
    }

    /// Executes the steps, each as often as its `iters` says.
    pub async fn list(&mut self, steps: &mut [Step<'e>]) -> Flow {
        for step in steps {
            let times = self.draws.whole(step.flowop.iters);
            for _ in 0..times {
                self.unless_over()?;
                self.execute(step).await?;
            }
        }
        self.unless_over()
    }

    async fn execute(&mut self, step: &mut Step<'e>) -> Flow {
        self.system.work(Work::Flowop).await;
        match &step.flowop.op {
            Op::Read(t) => self.read(step, t).await,
            Op::Write(t) => self.write(step, t).await,
            Op::AioWrite(t) => self.aio_write(step, t).await,
            Op::AioWait => self.aio_wait(step).await,
            Op::ReadWholeFile(t) => self.read_whole(step, t).await,
            Op::WriteWholeFile {
                transfer,
                source_fd,
            } => self.write_whole(step, transfer, *source_fd).await,
            Op::AppendFile(t) => self.append(step, t, false).await,
            Op::AppendFileRand(t) => self.append(step, t, true).await,
            Op::OpenFile(t) => self.open(step, t).await,
            Op::CreateFile(t) => self.create(step, t).await,
            Op::CloseFile { fd, rotate } => self.close(step, *fd, *rotate).await,
            Op::DeleteFile(t) => self.delete(step, t).await,
            Op::StatFile(t) => self.stat(step, t).await,
            Op::Fsync(t) => self.fsync(step, t).await,
            Op::FsyncSet(fileset) => self.fsync_set(step, *fileset).await,
            Op::MakeDir(fileset) => self.make_dir(step, *fileset).await,
            Op::RemoveDir(fileset) => self.remove_dir(step, *fileset).await,
            Op::ListDir(fileset) => self.list_dir(step, *fileset).await,
            Op::SemBlock { value, .. } => self.sem_block(step, *value).await,
            Op::SemPost {
                value, blocking, ..
            } => self.sem_post(step, *value, *blocking).await,
            Op::Block => self.block(step).await,
            Op::Wakeup { .. } => self.wakeup(step).await,
            Op::Hog { value } => self.hog(step, *value).await,
            Op::Delay { seconds } => self.delay(step, *seconds).await,
            Op::EventLimit => self.events(step, 1).await,
            Op::BwLimit { .. } | Op::IopsLimit { .. } | Op::OpsLimit { .. } => {
                self.rate_limit(step).await
            }
            Op::FinishOnCount { .. } | Op::FinishOnBytes { .. } => self.finish_on(step),
            // A list may contain lists.
            Op::Composite(_) => Box::pin(self.list(&mut step.children)).await,
        }
    }

    pub fn unless_over(&self) -> Flow {
        if self.system.is_over() {
            Err(Halt::Over)
        } else {
            Ok(())
        }
    }

    /// Counts an operation that began at `begin_ns` and ends now. Returns its time, nanoseconds, if
    /// it is part of the measurement.
    pub fn end(&mut self, step: &Step<'e>, begin_ns: u64, bytes: u64) -> Option<u64> {
        let end_ns = self.system.now_ns();
        let io = step.flowop.io;
        if let Some(all) = &self.engine.totals {
            let own = &all[self.place.number];
            if io != Io::None {
                own.ops.fetch_add(1, Ordering::Relaxed);
                own.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            if matches!(io, Io::Read | Io::Write) {
                own.transfers.fetch_add(1, Ordering::Relaxed);
                own.transfer_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        let is_measured = self.system.measures(end_ns) && (io == Io::None || self.is_in_budget());
        let ns = end_ns - begin_ns;
        self.system.count(|counted| {
            let stats = &mut counted.stats[step.stats];
            stats.ever_count += 1;
            stats.ever_bytes += bytes;
            if !is_measured {
                return None;
            }
            stats.record(ns, bytes);
            if io != Io::None {
                counted.last_ns = end_ns;
            }
            Some(ns)
        })
    }

    /// Takes one of the operations that the user asked for; the last one ends the run.
    fn is_in_budget(&self) -> bool {
        let Some((done, wanted)) = &self.engine.budget else {
            return true;
        };
        let number = done.fetch_add(1, Ordering::Relaxed) + 1;
        if number >= *wanted {
            self.system.finish();
        }
        number <= *wanted
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
    pub fn chunk(&mut self, step: &Step<'e>, bytes: u64, direct: bool) -> Flow<Chunk> {
        const PAGE: u64 = 4096;
        const MOST: u64 = 1 << 30;
        if bytes == 0 {
            return step.refused("its iosize is zero; give a larger one");
        }
        if bytes > MOST {
            return step.refused(format!(
                "it moves {bytes} bytes at once; the maximum is {MOST}"
            ));
        }
        // Direct transfers need room to begin at a page boundary.
        let room = bytes + if direct { PAGE } else { 0 };
        let have = self.memory_bytes;
        let offset = if have == 0 {
            self.system.reserve(room);
            0
        } else if have < room {
            return step.refused(format!(
                "its thread's memsize is {have} bytes, less than the {room} it needs"
            ));
        } else {
            self.draws.generator.scaled(have, room)
        };
        Ok(Chunk {
            offset,
            bytes,
            direct,
        })
    }
}

/// Returns the file that is open in a slot.
pub fn in_slot<'s, F>(step: &Step<'_>, slots: &'s mut [Slot<F>], slot: usize) -> Flow<&'s mut F> {
    slots[slot].open.as_mut().map_or_else(
        || {
            step.refused(format!(
                "no file is open in fd {slot}; open or create one first"
            ))
        },
        Ok,
    )
}
