//! Flowops that read and write.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use luc_wml::plan::{Slot as Fd, Transfer};

use super::engine::Step;
use super::halt::Flow;
use super::options::AioWait;
use super::system::{Chunk, EntryId, Position, System, Ticket};
use super::thread::{Thread, in_slot};

/// The place of a transfer.
struct Place {
    slot: usize,
    /// Bytes of the file that are used.
    working_set: u64,
}

impl<'e, S: System> Thread<'e, S> {
    pub async fn read(&mut self, step: &Step<'e>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let place = self.set_up(step, transfer).await?;
        let chunk = self.chunk(step, bytes, transfer.target.flags.direct_io)?;
        let offset = self.offset(step, transfer, &place, bytes)?;
        let file = in_slot(step, &mut self.slots, place.slot)?;
        let begin_ns = self.system.now_ns();
        let done = self.system.read(file, chunk, offset).await?;
        self.end(step, begin_ns, done);
        if done == 0 {
            let file = in_slot(step, &mut self.slots, place.slot)?;
            self.system.seek(file, Position::Start).await?;
        }
        Ok(())
    }

    pub async fn read_whole(&mut self, step: &Step<'e>, transfer: &Transfer) -> Flow {
        let place = self.set_up(step, transfer).await?;
        let chunk = self.whole_chunk(step, transfer, place.working_set)?;
        let file = in_slot(step, &mut self.slots, place.slot)?;
        let begin_ns = self.system.now_ns();
        self.system.seek(file, Position::Start).await?;
        let mut bytes = 0;
        loop {
            match self.system.read(file, chunk, None).await? {
                0 => break,
                done => bytes += done,
            }
        }
        self.end(step, begin_ns, bytes);
        Ok(())
    }

    pub async fn write(&mut self, step: &Step<'e>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let place = self.set_up(step, transfer).await?;
        let chunk = self.chunk(step, bytes, transfer.target.flags.direct_io)?;
        let offset = self.offset(step, transfer, &place, bytes)?;
        let file = in_slot(step, &mut self.slots, place.slot)?;
        let begin_ns = self.system.now_ns();
        self.system.write(file, chunk, offset).await?;
        self.end_write(step, place.slot, begin_ns, bytes);
        Ok(())
    }

    /// Writes a whole file. Filebench computes the rest before it moves on, not after, so the last
    /// write of a file whose size is not a multiple of the I/O size goes past the file's end.
    pub async fn write_whole(
        &mut self,
        step: &Step<'e>,
        transfer: &Transfer,
        source_fd: Option<Fd>,
    ) -> Flow {
        let Place { slot, working_set } = self.set_up(step, transfer).await?;
        let whole = self.whole_chunk(step, transfer, working_set)?;
        let source = source_fd.unwrap_or(0) as usize;
        let size = match self.slots.get(source).and_then(|slot| slot.file) {
            Some(file) => self.leaf_bytes(file),
            None if source > 0 => {
                return step.refused(format!("no file was ever open in its srcfd {source}"));
            }
            None => working_set,
        };
        let file = in_slot(step, &mut self.slots, slot)?;
        let mut bytes = size.min(whole.bytes);
        let (mut at, mut written) = (0, 0);
        let begin_ns = self.system.now_ns();
        while at < size {
            let chunk = Chunk { bytes, ..whole };
            self.system.write(file, chunk, None).await?;
            written += bytes;
            bytes = (size - at).min(whole.bytes);
            at += bytes;
        }
        self.end_write(step, slot, begin_ns, written);
        Ok(())
    }

    /// Writes at the end of the file; with `random_size`, from 0 bytes to one less than the I/O
    /// size. A write of 0 bytes counts as an operation, too.
    pub async fn append(
        &mut self,
        step: &Step<'e>,
        transfer: &Transfer,
        random_size: bool,
    ) -> Flow {
        let mut bytes = self.draws.whole(transfer.io_bytes);
        if random_size {
            if bytes == 0 {
                return step.refused("its iosize is zero; give a larger one");
            }
            bytes = self.draws.generator.scaled(bytes, 1);
            if bytes == 0 {
                let begin_ns = self.system.now_ns();
                self.end(step, begin_ns, 0);
                return Ok(());
            }
        }
        let place = self.set_up(step, transfer).await?;
        let chunk = self.chunk(step, bytes, transfer.target.flags.direct_io)?;
        let file = in_slot(step, &mut self.slots, place.slot)?;
        let begin_ns = self.system.now_ns();
        self.system.seek(file, Position::End).await?;
        self.system.write(file, chunk, None).await?;
        self.end_write(step, place.slot, begin_ns, bytes);
        Ok(())
    }

    pub async fn aio_write(&mut self, step: &Step<'e>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let place = self.set_up(step, transfer).await?;
        if !transfer.random {
            let why = "aiowrite works only at random offsets; give it the attribute random";
            return step.refused(why);
        }
        // The data are not the thread's own, but drawing a place in memory keeps the sequence of
        // draws.
        self.chunk(step, bytes, transfer.target.flags.direct_io)?;
        let offset = self.offset(step, transfer, &place, bytes)?.unwrap_or(0);
        self.system.submissions()?;
        if !self.system.can_submit(bytes) {
            return step.refused(format!(
                "it drew an iosize of {bytes} bytes, which is too large for an asynchronous write"
            ));
        }
        let ticket = self.tickets.pop().unwrap_or_default();
        ticket.store(true, Ordering::Relaxed);
        self.pending.push(Arc::clone(&ticket));
        let slot = place.slot;
        let file = in_slot(step, &mut self.slots, slot)?;
        let begin_ns = self.system.now_ns();
        let submitted = self.system.submit(slot, file, offset, bytes, ticket);
        submitted.await?;
        self.end(step, begin_ns, bytes);
        Ok(())
    }

    /// Forgets writes that have ended, up to half of all pending ones. It looks once, as Filebench
    /// does on Linux, unless the user asked for a wait.
    pub async fn aio_wait(&mut self, step: &Step<'e>) -> Flow {
        let begin_ns = self.system.now_ns();
        let todo = (self.pending.len() / 2).max(1);
        if self.engine.aio_wait == AioWait::Half {
            let wanted = todo.min(self.pending.len());
            let pending = &self.pending;
            let enough = || pending.iter().filter(|t| has_ended(t)).count() >= wanted;
            self.system.submitted(enough).await?;
        }
        let mut done = 0;
        // Newest first.
        let mut at = self.pending.len();
        while done < todo && at > 0 {
            at -= 1;
            if has_ended(&self.pending[at]) {
                self.tickets.push(self.pending.remove(at));
                done += 1;
            }
        }
        self.end(step, begin_ns, 0);
        self.system.submissions()?;
        Ok(())
    }

    /// Returns the slot of a transfer, with a file open in it.
    async fn set_up(&mut self, step: &Step<'e>, transfer: &Transfer) -> Flow<Place> {
        let target = &transfer.target;
        let slot = self.slot_of(target);
        let named = target.fileset.map(|id| id.0);
        let held = self.slots[slot].file.map(|file| file.fileset);
        if slot > 0 && self.slots[slot].open.is_some() && named.is_some() && held != named {
            return step.refused(format!(
                "fd {slot} holds a file of a different fileset from the one it names"
            ));
        }
        if self.slots[slot].open.is_none() {
            self.open_at(step, target, slot).await?;
        }
        let working_set = match (step.bound.constant, self.slots[slot].file) {
            (0, Some(file)) => self.leaf_bytes(file),
            (constant, _) => constant,
        };
        Ok(Place { slot, working_set })
    }

    /// Returns the chunks of a transfer of a whole file: of the I/O size, or else of the file's
    /// size.
    fn whole_chunk(
        &mut self,
        step: &Step<'e>,
        transfer: &Transfer,
        working_set: u64,
    ) -> Flow<Chunk> {
        let bytes = match self.draws.whole(transfer.io_bytes) {
            0 => working_set,
            bytes => bytes,
        };
        let direct = transfer.target.flags.direct_io;
        if bytes == 0 {
            return Ok(Chunk {
                offset: 0,
                bytes,
                direct,
            });
        }
        self.chunk(step, bytes, direct)
    }

    /// Draws the offset of a random transfer, a multiple of its size.
    fn offset(
        &mut self,
        step: &Step<'e>,
        transfer: &Transfer,
        place: &Place,
        bytes: u64,
    ) -> Flow<Option<u64>> {
        if !transfer.random {
            return Ok(None);
        }
        if place.working_set < bytes {
            let size = place.working_set;
            return step.refused(format!(
                "a file of {size} bytes is smaller than its iosize of {bytes}"
            ));
        }
        Ok(Some(self.draws.generator.scaled(place.working_set, bytes)))
    }

    /// Returns the size of a file as laid out.
    fn leaf_bytes(&self, file: EntryId) -> u64 {
        self.engine.filesets[file.fileset].tree.files[file.index as usize].bytes
    }

    /// Counts a write, and the time of a synchronous one.
    fn end_write(&mut self, step: &Step<'e>, slot: usize, begin_ns: u64, bytes: u64) {
        if let Some(ns) = self.end(step, begin_ns, bytes)
            && self.slots[slot].dsync
        {
            self.system.count(|counted| counted.dsync.record(ns));
        }
    }
}

fn has_ended(ticket: &Ticket) -> bool {
    !ticket.load(Ordering::Acquire)
}
