//! Flowops that read and write.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use luc_wml::plan::{Slot as Fd, Transfer};
use luc_workload::wml::parts::Step;

use super::super::pool::{Request, Ticket};
use super::{Flow, Thread, refused};
use luc_sim::program::Op;

/// Largest transfer, bytes.
const MOST: u64 = 1 << 30;

impl Thread<'_> {
    pub(super) async fn read(&mut self, step: &Step<'_>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let (slot, working_set) = self.set_up(step, transfer).await?;
        self.draw_memory(step, bytes)?;
        let offset = self.offset(step, transfer, working_set, bytes)?;
        let begin_ns = self.now_ns();
        let done = self.read_once(slot, bytes, offset).await;
        self.end(step, begin_ns, done);
        if done == 0 {
            self.call(Op::Compute(self.shared.costs.seek)).await;
            self.slots[slot].at = 0;
        }
        Ok(())
    }

    pub(super) async fn read_whole(&mut self, step: &Step<'_>, transfer: &Transfer) -> Flow {
        let (slot, working_set) = self.set_up(step, transfer).await?;
        let at_once = self.whole(step, transfer, working_set)?;
        let begin_ns = self.now_ns();
        self.seek(slot, 0).await;
        let mut bytes = 0;
        loop {
            match self.read_once(slot, at_once, None).await {
                0 => break,
                done => bytes += done,
            }
        }
        self.end(step, begin_ns, bytes);
        Ok(())
    }

    pub(super) async fn write(&mut self, step: &Step<'_>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let (slot, working_set) = self.set_up(step, transfer).await?;
        self.draw_memory(step, bytes)?;
        let offset = self.offset(step, transfer, working_set, bytes)?;
        let begin_ns = self.now_ns();
        self.write_once(slot, bytes, offset).await;
        self.end_write(step, slot, begin_ns, bytes);
        Ok(())
    }

    /// The last write of a file whose size is not a multiple of the I/O size goes beyond it.
    pub(super) async fn write_whole(
        &mut self,
        step: &Step<'_>,
        transfer: &Transfer,
        source_fd: Option<Fd>,
    ) -> Flow {
        let (slot, mut size) = self.set_up(step, transfer).await?;
        let io_bytes = self.whole(step, transfer, size)?;
        let source = source_fd.unwrap_or(0) as usize;
        match self.slots.get(source).and_then(|slot| slot.file) {
            Some(file) => size = self.leaf_bytes(file),
            None if source > 0 => {
                let why = format!("no file was ever open in its srcfd {source}");
                return refused(step.flowop, &why);
            }
            None => {}
        }
        let mut chunk = size.min(io_bytes);
        let (mut at, mut bytes) = (0, 0);
        let begin_ns = self.now_ns();
        while at < size {
            self.write_once(slot, chunk, None).await;
            bytes += chunk;
            chunk = (size - at).min(io_bytes);
            at += chunk;
        }
        self.end_write(step, slot, begin_ns, bytes);
        Ok(())
    }

    /// Goes to the end and writes; with `random_size`, a random size from 0 to one byte less than
    /// the I/O size. Writing 0 bytes is an operation, too.
    pub(super) async fn append(
        &mut self,
        step: &Step<'_>,
        transfer: &Transfer,
        random_size: bool,
    ) -> Flow {
        let mut bytes = self.draws.whole(transfer.io_bytes);
        if random_size {
            if bytes == 0 {
                return refused(step.flowop, "its iosize is zero; give a larger one");
            }
            bytes = self.draws.generator.scaled(bytes, 1);
            if bytes == 0 {
                self.end(step, self.now_ns(), 0);
                return Ok(());
            }
        }
        let (slot, _) = self.set_up(step, transfer).await?;
        self.draw_memory(step, bytes)?;
        let begin_ns = self.now_ns();
        self.seek(slot, self.length(slot)).await;
        self.write_once(slot, bytes, None).await;
        self.end_write(step, slot, begin_ns, bytes);
        Ok(())
    }

    pub(super) async fn aio_write(&mut self, step: &Step<'_>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let (slot, working_set) = self.set_up(step, transfer).await?;
        if !transfer.random {
            let why = "aiowrite works only at random offsets; give it the attribute random";
            return refused(step.flowop, why);
        }
        self.draw_memory(step, bytes)?;
        let offset = self
            .offset(step, transfer, working_set, bytes)?
            .unwrap_or(0);
        let place = self.slots[slot];
        let Some((set, index)) = place.file else {
            return Ok(());
        };
        let ticket = Ticket::default();
        let request = Request {
            set,
            index,
            at: offset,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            is_synced: place.is_dsync,
            ticket: Arc::clone(&ticket),
        };
        let begin_ns = self.now_ns();
        let pool = self.process;
        let woken = self.shared.state().pools[pool].submit((self.number, slot), request);
        self.wake_all(woken.into_iter().collect()).await;
        self.pending.push(ticket);
        self.end(step, begin_ns, bytes);
        Ok(())
    }

    /// Forgets writes that have ended, up to half of all pending ones. It checks once, unless the
    /// user asked it to wait for them.
    pub(super) async fn aio_wait(&mut self, step: &Step<'_>) -> Flow {
        let begin_ns = self.now_ns();
        let todo = (self.pending.len() / 2).max(1);
        if self.shared.waits_for_half {
            let wanted = todo.min(self.pending.len());
            while self
                .pending
                .iter()
                .filter(|ticket| has_ended(ticket))
                .count()
                < wanted
            {
                let number = self.number;
                self.shared.state().pools[self.process].wait(number);
                self.call(Op::Park).await;
                self.unless_over()?;
            }
        }
        let mut done = 0;
        // Newest first.
        let mut at = self.pending.len();
        while done < todo && at > 0 {
            at -= 1;
            if has_ended(&self.pending[at]) {
                self.pending.remove(at);
                done += 1;
            }
        }
        self.end(step, begin_ns, 0);
        Ok(())
    }

    /// Returns the slot of a transfer, with a file open in it, and how many bytes of the file are
    /// used.
    async fn set_up(&mut self, step: &Step<'_>, transfer: &Transfer) -> Flow<(usize, u64)> {
        let target = &transfer.target;
        let slot = self.slot_of(target);
        let named = target.fileset.map(|id| id.0);
        let held = self.slots[slot].file.map(|(set, _)| set);
        if slot > 0 && self.slots[slot].is_open && named.is_some() && held != named {
            let why =
                format!("fd {slot} holds a file of a different fileset from the one it names");
            return refused(step.flowop, &why);
        }
        if !self.slots[slot].is_open {
            self.open_at(step, target, slot).await?;
        }
        let working_set = match (step.bound.constant, self.slots[slot].file) {
            (0, Some(file)) => self.leaf_bytes(file),
            (constant, _) => constant,
        };
        Ok((slot, working_set))
    }

    /// Draws the place in its memory for a transfer, as the engine does.
    fn draw_memory(&mut self, step: &Step<'_>, bytes: u64) -> Flow {
        if bytes == 0 || bytes > MOST {
            let why = format!("its iosize is {bytes} bytes; give a size from 1 to {MOST}");
            return refused(step.flowop, &why);
        }
        if let Some(have) = self.memory_bytes {
            if have < bytes {
                let why =
                    format!("its thread's memsize is {have} bytes, less than the {bytes} it needs");
                return refused(step.flowop, &why);
            }
            self.draws.generator.scaled(have, bytes);
        }
        Ok(())
    }

    /// Returns how many bytes each call of a whole-file transfer moves.
    fn whole(&mut self, step: &Step<'_>, transfer: &Transfer, size: u64) -> Flow<u64> {
        let bytes = match self.draws.whole(transfer.io_bytes) {
            0 => size,
            bytes => bytes,
        };
        if bytes > 0 {
            self.draw_memory(step, bytes)?;
        }
        Ok(bytes)
    }

    /// Draws the offset of a random transfer, a multiple of its size.
    fn offset(
        &mut self,
        step: &Step<'_>,
        transfer: &Transfer,
        working_set: u64,
        bytes: u64,
    ) -> Flow<Option<u64>> {
        if !transfer.random {
            return Ok(None);
        }
        if working_set < bytes {
            let why =
                format!("a file of {working_set} bytes is smaller than its iosize of {bytes}");
            return refused(step.flowop, &why);
        }
        Ok(Some(self.draws.generator.scaled(working_set, bytes)))
    }

    /// Returns the size of an entry as laid out.
    fn leaf_bytes(&self, (set, index): (usize, u32)) -> u64 {
        self.shared.sets[set].tree.files[index as usize].bytes
    }

    /// Returns the current size of a slot's file.
    fn length(&self, slot: usize) -> u64 {
        let file = self.slots[slot].file;
        file.map_or(0, |(set, index)| {
            self.shared.state().bytes[set][index as usize]
        })
    }

    async fn seek(&mut self, slot: usize, to: u64) {
        self.call(Op::Compute(self.shared.costs.seek)).await;
        self.slots[slot].at = to;
    }

    /// Reads up to this many bytes; returns how many there were.
    async fn read_once(&mut self, slot: usize, bytes: u64, offset: Option<u64>) -> u64 {
        let Some((set, index)) = self.slots[slot].file else {
            return 0;
        };
        self.use_file(set, index).await;
        let at = offset.unwrap_or(self.slots[slot].at);
        let done = self.length(slot).saturating_sub(at).min(bytes);
        let bytes = u32::try_from(done).unwrap_or(u32::MAX);
        self.call(Op::Read { bytes }).await;
        if offset.is_none() {
            self.slots[slot].at += done;
        }
        done
    }

    async fn write_once(&mut self, slot: usize, bytes: u64, offset: Option<u64>) {
        let place = self.slots[slot];
        let Some((set, index)) = place.file else {
            return;
        };
        self.use_file(set, index).await;
        let at = offset.unwrap_or(place.at);
        let length = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.call(Op::WriteAt { at, bytes: length }).await;
        if place.is_dsync {
            self.call(Op::SyncRange { at, bytes: length }).await;
        }
        let end = at + bytes;
        let mut state = self.shared.state();
        let known = &mut state.bytes[set][index as usize];
        *known = (*known).max(end);
        drop(state);
        if offset.is_none() {
            self.slots[slot].at = end;
        }
    }

    /// Counts a write, and records the time of a synchronous one.
    fn end_write(&self, step: &Step<'_>, slot: usize, begin_ns: u64, bytes: u64) {
        if let Some(ns) = self.end(step, begin_ns, bytes)
            && self.slots[slot].is_dsync
        {
            self.shared.state().dsync.record(ns);
        }
    }
}

fn has_ended(ticket: &Ticket) -> bool {
    ticket.load(Ordering::Relaxed)
}
