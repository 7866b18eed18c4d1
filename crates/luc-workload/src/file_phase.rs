//! Phases in which a process does the same to each of its files.

use std::ffi::CStr;

use crate::Result;
use crate::clock::now_ns;
use crate::dir::{Dir, NameBuffer};
use crate::worker::{Link, Part};

/// Kinds of calls of a create phase, in the order of [`Part::calls`].
pub const OPEN: usize = 0;
/// Empty where nothing is written.
pub const WRITE: usize = 1;
/// Empty where nothing is synced.
pub const FSYNC: usize = 2;
pub const CLOSE: usize = 3;

/// One process's files.
pub struct FilePhase<'a, N> {
    pub dir: &'a Dir,
    pub files: u32,
    /// Writes the name of a file, by its number, into the buffer.
    pub name: N,
}

impl<N: Fn(&mut NameBuffer, u32)> FilePhase<'_, N> {
    /// Creates each file, writes `data` if there is any, fsyncs if asked to, and closes.
    pub fn create(&self, data: &[u8], fsync: bool, link: &Link) -> Result<Part> {
        let files = self.files as usize;
        let mut open = Vec::with_capacity(files);
        let mut write = Vec::with_capacity(if data.is_empty() { 0 } else { files });
        let mut sync = Vec::with_capacity(if fsync { files } else { 0 });
        let mut close = Vec::with_capacity(files);
        self.run(link, |name| {
            let start_ns = now_ns();
            let file = self.dir.creat(name)?;
            let opened_ns = now_ns();
            let mut before_ns = opened_ns;
            if !data.is_empty() {
                self.dir.write(&file, name, data)?;
                let written_ns = now_ns();
                write.push(written_ns - before_ns);
                before_ns = written_ns;
            }
            if fsync {
                self.dir.fsync(&file, name)?;
                let synced_ns = now_ns();
                sync.push(synced_ns - before_ns);
                before_ns = synced_ns;
            }
            drop(file);
            let end_ns = now_ns();
            open.push(opened_ns - start_ns);
            close.push(end_ns - before_ns);
            Ok(end_ns)
        })
        .map(|(begin_ns, end_ns)| Part {
            begin_ns,
            end_ns,
            ops: open.len() as u64,
            calls: vec![open, write, sync, close],
        })
    }

    /// Makes one call on each file.
    pub fn each(&self, link: &Link, mut call: impl FnMut(&CStr) -> Result<()>) -> Result<Part> {
        let mut times = Vec::with_capacity(self.files as usize);
        self.run(link, |name| {
            let start_ns = now_ns();
            call(name)?;
            let end_ns = now_ns();
            times.push(end_ns - start_ns);
            Ok(end_ns)
        })
        .map(|(begin_ns, end_ns)| Part {
            begin_ns,
            end_ns,
            ops: times.len() as u64,
            calls: vec![times],
        })
    }

    /// Does it to one file after the other until stopped; when that began and ended. `one` gives
    /// when it was done with a file.
    fn run(&self, link: &Link, mut one: impl FnMut(&CStr) -> Result<u64>) -> Result<(u64, u64)> {
        let mut name = NameBuffer::default();
        let flags = link.flags();
        let begin_ns = now_ns();
        let mut end_ns = begin_ns;
        for file in 0..self.files {
            if flags.is_stopped() {
                break;
            }
            (self.name)(&mut name, file);
            end_ns = one(name.get())?;
        }
        Ok((begin_ns, end_ns))
    }
}
