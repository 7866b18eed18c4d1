//! Flowops that read and write.

use std::ops::Range;
use std::sync::Arc;

use luc_wml::plan::{Slot as Fd, Transfer};
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread, pwrite, read, retry_on_intr, write};

use super::aio::{Request, ended};
use super::engine::Step;
use super::halt::{Flow, Halt};
use super::options::AioWait;
use super::worker::{Open, Worker};
use crate::{Result, WorkloadError};

/// The place of a transfer.
struct Place {
    slot: usize,
    /// Bytes of the file that are used.
    working_set: u64,
}

impl<'p> Worker<'_, 'p> {
    pub fn read(&mut self, step: &Step<'p>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let place = self.set_up(step, transfer)?;
        let range = self.buffer(step, bytes, transfer.target.flags.direct_io)?;
        let offset = self.offset(step, transfer, &place, bytes)?;
        let begin_ns = self.begin();
        let done = self.read_once(place.slot, range, offset)?;
        self.end(step, begin_ns, done);
        if done == 0 {
            self.seek(place.slot, SeekFrom::Start(0))?;
        }
        Ok(())
    }

    pub fn read_whole(&mut self, step: &Step<'p>, transfer: &Transfer) -> Flow {
        let place = self.set_up(step, transfer)?;
        let range = self.whole_buffer(step, transfer, place.working_set)?;
        let begin_ns = self.begin();
        self.seek(place.slot, SeekFrom::Start(0))?;
        let mut bytes = 0;
        loop {
            match self.read_once(place.slot, range.clone(), None)? {
                0 => break,
                done => bytes += done,
            }
        }
        self.end(step, begin_ns, bytes);
        Ok(())
    }

    pub fn write(&mut self, step: &Step<'p>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let place = self.set_up(step, transfer)?;
        let range = self.buffer(step, bytes, transfer.target.flags.direct_io)?;
        let offset = self.offset(step, transfer, &place, bytes)?;
        let begin_ns = self.begin();
        self.write_once(place.slot, range, offset)?;
        self.end_write(step, place.slot, begin_ns, bytes);
        Ok(())
    }

    /// Writes a whole file. Filebench computes the rest before it moves on, not after, so the last
    /// write of a file whose size is not a multiple of the I/O size goes past the file's end.
    pub fn write_whole(
        &mut self,
        step: &Step<'p>,
        transfer: &Transfer,
        source_fd: Option<Fd>,
    ) -> Flow {
        let mut place = self.set_up(step, transfer)?;
        let range = self.whole_buffer(step, transfer, place.working_set)?;
        let source = source_fd.unwrap_or(0) as usize;
        match self.slots.get(source).and_then(|slot| slot.file) {
            Some(file) => {
                let fileset = &self.engine.filesets[file.fileset];
                place.working_set = fileset.tree.files[file.index as usize].bytes;
            }
            None if source > 0 => {
                return step.refused(format!("no file was ever open in its srcfd {source}"));
            }
            None => {}
        }
        let size = place.working_set;
        let io_bytes = range.len() as u64;
        let mut chunk = size.min(io_bytes);
        let (mut at, mut bytes) = (0, 0);
        let begin_ns = self.begin();
        while at < size {
            // A chunk is no longer than the range.
            let end = range.start + usize::try_from(chunk).unwrap_or(range.len());
            self.write_once(place.slot, range.start..end, None)?;
            bytes += chunk;
            chunk = (size - at).min(io_bytes);
            at += chunk;
        }
        self.end_write(step, place.slot, begin_ns, bytes);
        Ok(())
    }

    /// Writes at the end of the file; with `random_size`, from 0 bytes to one less than the I/O
    /// size. A write of 0 bytes counts as an operation, too.
    pub fn append(&mut self, step: &Step<'p>, transfer: &Transfer, random_size: bool) -> Flow {
        let mut bytes = self.draws.whole(transfer.io_bytes);
        if random_size {
            if bytes == 0 {
                return step.refused("its iosize is zero; give a larger one");
            }
            bytes = self.draws.generator.scaled(bytes, 1);
            if bytes == 0 {
                let begin_ns = self.begin();
                self.end(step, begin_ns, 0);
                return Ok(());
            }
        }
        let place = self.set_up(step, transfer)?;
        let range = self.buffer(step, bytes, transfer.target.flags.direct_io)?;
        let begin_ns = self.begin();
        self.seek(place.slot, SeekFrom::End(0))?;
        self.write_once(place.slot, range, None)?;
        self.end_write(step, place.slot, begin_ns, bytes);
        Ok(())
    }

    pub fn aio_write(&mut self, step: &Step<'p>, transfer: &Transfer) -> Flow {
        let bytes = self.draws.whole(transfer.io_bytes);
        let place = self.set_up(step, transfer)?;
        if !transfer.random {
            let why = "aiowrite works only at random offsets; give it the attribute random";
            return step.refused(why);
        }
        // The pool has its own data, but drawing a place in memory keeps the sequence of draws.
        self.buffer(step, bytes, transfer.target.flags.direct_io)?;
        let offset = self.offset(step, transfer, &place, bytes)?.unwrap_or(0);
        self.aio_failure()?;
        let slot = &self.slots[place.slot];
        let (Some(pool), Some(Open::Shared(file)), Some(id)) = (&self.pool, &slot.fd, slot.file)
        else {
            return Ok(());
        };
        if !pool.holds(bytes) {
            return step.refused(format!(
                "it drew an iosize of {bytes} bytes, which is too large for an asynchronous write"
            ));
        }
        let ticket = self.tickets.pop().unwrap_or_default();
        let request = Request {
            file: Arc::clone(file),
            id,
            offset,
            bytes: usize::try_from(bytes).unwrap_or(0),
            dsync: slot.dsync,
            ticket: Arc::clone(&ticket),
        };
        let begin_ns = self.begin();
        pool.submit(request)
            .map_err(|source| WorkloadError::Start {
                what: "thread",
                number: 1,
                wanted: 1,
                source,
            })?;
        self.pending.push(ticket);
        self.end(step, begin_ns, bytes);
        Ok(())
    }

    /// Forgets writes that have ended, up to half of all pending ones. It looks once, as Filebench
    /// does on Linux, unless the user asked for a wait.
    pub fn aio_wait(&mut self, step: &Step<'p>) -> Flow {
        let begin_ns = self.begin();
        let todo = (self.pending.len() / 2).max(1);
        if let (AioWait::Half, Some(pool)) = (self.engine.aio_wait, &self.pool) {
            let wanted = todo.min(self.pending.len());
            let enough = || self.pending.iter().filter(|t| ended(t)).count() >= wanted;
            if !pool.wait(enough, self.give_up()) {
                return Err(Halt::Over);
            }
        }
        let mut done = 0;
        // Newest first.
        let mut at = self.pending.len();
        while done < todo && at > 0 {
            at -= 1;
            if ended(&self.pending[at]) {
                self.tickets.push(self.pending.remove(at));
                done += 1;
            }
        }
        self.end(step, begin_ns, 0);
        self.aio_failure()?;
        Ok(())
    }

    /// Returns the slot of a transfer, with a file open in it.
    fn set_up(&mut self, step: &Step<'p>, transfer: &Transfer) -> Flow<Place> {
        let target = &transfer.target;
        let slot = self.slot_of(target);
        let named = target.fileset.map(|id| id.0);
        let held = self.slots[slot].file.map(|file| file.fileset);
        if slot > 0 && self.slots[slot].fd.is_some() && named.is_some() && held != named {
            return step.refused(format!(
                "fd {slot} holds a file of a different fileset from the one it names"
            ));
        }
        if self.slots[slot].fd.is_none() {
            self.open_at(step, target, slot)?;
        }
        let working_set = match (step.bound.constant, self.slots[slot].file) {
            (0, Some(file)) => {
                let fileset = &self.engine.filesets[file.fileset];
                fileset.tree.files[file.index as usize].bytes
            }
            (constant, _) => constant,
        };
        Ok(Place { slot, working_set })
    }

    /// Returns the buffer for a transfer of a whole file: of the I/O size, or else of the file's
    /// size.
    fn whole_buffer(
        &mut self,
        step: &Step<'p>,
        transfer: &Transfer,
        working_set: u64,
    ) -> Result<Range<usize>> {
        let bytes = match self.draws.whole(transfer.io_bytes) {
            0 => working_set,
            bytes => bytes,
        };
        if bytes == 0 {
            return Ok(0..0);
        }
        self.buffer(step, bytes, transfer.target.flags.direct_io)
    }

    /// Draws the offset of a random transfer, a multiple of its size.
    fn offset(
        &mut self,
        step: &Step<'p>,
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

    fn read_once(&mut self, slot: usize, range: Range<usize>, offset: Option<u64>) -> Result<u64> {
        let Some(file) = &self.slots[slot].fd else {
            return Ok(0);
        };
        let buffer = &mut self.memory.bytes[range];
        let done = retry_on_intr(|| match offset {
            Some(offset) => pread(file, &mut *buffer, offset),
            None => read(file, &mut *buffer),
        });
        done.map(|done| done as u64)
            .map_err(|errno| self.file_error("read", slot, errno))
    }

    fn write_once(&mut self, slot: usize, range: Range<usize>, offset: Option<u64>) -> Result<()> {
        let Some(file) = &self.slots[slot].fd else {
            return Ok(());
        };
        let data = &self.memory.bytes[range];
        let done = retry_on_intr(|| match offset {
            Some(offset) => pwrite(file, data, offset),
            None => write(file, data),
        });
        if done == Ok(data.len()) {
            return Ok(());
        }
        let path = self.path_of(self.slots[slot].file);
        self.engine.root.written(path.get(), done, data.len())
    }

    fn seek(&self, slot: usize, to: SeekFrom) -> Result<()> {
        let Some(file) = &self.slots[slot].fd else {
            return Err(self.file_error("seek in", slot, Errno::BADF));
        };
        seek(file, to)
            .map(|_| ())
            .map_err(|errno| self.file_error("seek in", slot, errno))
    }

    /// Counts a write, and the time of a synchronous one.
    fn end_write(&mut self, step: &Step<'p>, slot: usize, begin_ns: u64, bytes: u64) {
        if let Some(ns) = self.end(step, begin_ns, bytes)
            && self.slots[slot].dsync
        {
            self.counted.dsync.record(ns);
        }
    }
}
