//! The real system: system calls, the clock, and threads that sleep.

use std::future;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use luc_wml::plan::{OpenFlags, Plan};
use rustix::fs::{Advice, OFlags, RawDir, SeekFrom, fadvise, fstat, fsync, seek};
use rustix::io::{Errno, pread, pwrite, read, retry_on_intr, write};

use super::aio::{Pool, Request};
use super::engine::{Engine, Job, Place};
use super::fileset::{Kind, PathBuffer};
use super::halt::{Flow, Halt};
use super::jobs::opens_once;
use super::park::Park;
use super::system::{ByName, Chunk, Counted, EntryId, Position, System, Ticket, Work};
use super::thread::Thread;
use crate::clock::{NS_PER_MS, now_ns, sleep_until};
use crate::crew::Shift;
use crate::dir::Dir;
use crate::{Result, Stop, WorkloadError};

/// Bytes that `listdir` counts for an entry besides its name: the C library's record less its last
/// byte.
const DIRENT_BYTES: u64 = 279;

/// State that all threads share besides the engine.
pub struct Host {
    pub engine: Engine<Park>,
    /// The run's directory.
    pub root: Dir,
    /// The writing threads of each process that has asynchronous writes.
    pub pools: Vec<Option<Pool>>,
}

impl Host {
    /// Ends the run for every thread, and wakes those that wait, so that they see it.
    pub fn finish(&self, ended: &Stop) {
        self.engine.finished.store(true, Ordering::Relaxed);
        ended.set();
        for semaphore in &self.engine.semaphores {
            semaphore.posted.wake();
            semaphore.drained.wake();
        }
        self.engine.gates.iter().for_each(|it| it.waiters.wake());
        for fileset in &self.engine.filesets {
            for entries in [&fileset.files, &fileset.leaf_dirs, &fileset.dirs] {
                entries.idle.wake();
            }
        }
    }

    /// Runs a thread to its end.
    pub fn run(&self, job: Job, own: Own, shift: Shift<'_>) -> Result<Counted> {
        let system = Real::new(self, job.place, own, shift);
        let (mut thread, mut steps) = Thread::new(&self.engine, job, system);
        ready(thread.run(&mut steps))?;
        Ok(thread.system.counted)
    }
}

/// Runs a future whose calls are over when they return: its first poll ends it.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}

/// A thread's memory and counts, which are made before the run begins.
pub struct Own {
    memory: Vec<u8>,
    counted: Counted,
}

impl Own {
    pub fn new(plan: &Plan, job: &Job) -> Self {
        Self {
            memory: vec![0; usize::try_from(job.memory_bytes).unwrap_or(0)],
            counted: Counted::new(job.place.thread(plan)),
        }
    }
}

/// The real system as one thread sees it.
pub struct Real<'h> {
    host: &'h Host,
    pool: Option<&'h Pool>,
    /// The files that are open, if the thread opens each only once.
    once: Option<Vec<OpenOnce>>,
    shift: Shift<'h>,
    memory: Vec<u8>,
    path: PathBuffer,
    pub counted: Counted,
    /// The last reading of the clock.
    seen_ns: u64,
}

/// An open file.
pub struct Open {
    fd: Fd,
    entry: EntryId,
    dsync: bool,
}

/// A file that may be open in several slots.
struct OpenOnce {
    entry: EntryId,
    flags: OpenFlags,
    fd: Weak<OwnedFd>,
}

/// A descriptor is shared if several slots hold it, or if asynchronous writes may still be under
/// way when it is closed.
enum Fd {
    Own(OwnedFd),
    Shared(Arc<OwnedFd>),
}

impl AsFd for Open {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Fd::Own(fd) => fd.as_fd(),
            Fd::Shared(fd) => fd.as_fd(),
        }
    }
}

impl<'h> Real<'h> {
    pub fn new(host: &'h Host, place: Place, own: Own, shift: Shift<'h>) -> Self {
        Self {
            host,
            pool: host.pools[place.instance].as_ref(),
            once: opens_once(place.thread(&host.engine.plan)).then(Vec::new),
            shift,
            memory: own.memory,
            path: PathBuffer::default(),
            counted: own.counted,
            seen_ns: shift.start_ns,
        }
    }

    /// Opens the file that was aimed at.
    fn open_as(
        &self,
        call: &'static str,
        entry: EntryId,
        flags: OpenFlags,
        more: OFlags,
    ) -> Result<Open> {
        let fileset = &self.host.engine.filesets[entry.fileset].plan;
        let mut all = more;
        all |= match (fileset.read_only, fileset.write_only) {
            (true, _) => OFlags::RDONLY,
            (_, true) => OFlags::WRONLY,
            _ => OFlags::RDWR,
        };
        all.set(OFlags::SYNC, flags.dsync);
        all.set(OFlags::DIRECT, flags.direct_io);
        let root = &self.host.root;
        let fd = root.open_as(call, self.path.get(), all, 0o666)?;
        if flags.no_read_ahead {
            let call = "switch off read-ahead of";
            fadvise(&fd, 0, None, Advice::Random)
                .map_err(|errno| root.error(call, self.path.get(), errno))?;
        }
        Ok(Open {
            fd: match (self.pool, &self.once) {
                (None, None) => Fd::Own(fd),
                _ => Fd::Shared(Arc::new(fd)),
            },
            entry,
            dsync: flags.dsync,
        })
    }

    /// Returns the bytes of the thread's memory that a chunk means.
    fn range(&self, chunk: Chunk) -> Range<usize> {
        const PAGE: usize = 4096;
        // The chunk lies within the memory, whose length is a usize.
        let mut start = usize::try_from(chunk.offset).unwrap_or(0);
        if chunk.direct {
            start += self.memory[start..].as_ptr().align_offset(PAGE);
        }
        start..start + usize::try_from(chunk.bytes).unwrap_or(0)
    }

    fn path_of(&self, entry: EntryId) -> PathBuffer {
        let mut path = PathBuffer::default();
        let fileset = &self.host.engine.filesets[entry.fileset];
        fileset.leaf_path(fileset.tree.files[entry.index as usize], &mut path);
        path
    }

    /// Returns the error of `call` on an open file.
    fn error(&self, call: &'static str, file: &Open, errno: Errno) -> WorkloadError {
        let path = self.path_of(file.entry);
        self.host.root.error(call, path.get(), errno)
    }
}

/// The shortest calls are no `async fn`, whose state would cost more than they do.
impl System for Real<'_> {
    type File = Open;
    type Waiters = Park;

    fn now_ns(&mut self) -> u64 {
        self.seen_ns = now_ns();
        self.seen_ns
    }

    fn is_over(&self) -> bool {
        self.seen_ns >= self.shift.until_ns || self.shift.is_cut_short()
    }

    fn measures(&self, end_ns: u64) -> bool {
        self.shift.measures(end_ns)
    }

    fn finish(&self) {
        self.host.finish(self.shift.ended);
    }

    #[inline]
    fn count<T>(&mut self, change: impl FnOnce(&mut Counted) -> T) -> T {
        change(&mut self.counted)
    }

    fn reserve(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if self.memory.len() < bytes {
            self.memory.resize(bytes, 0);
        }
    }

    fn work(&mut self, work: Work) -> impl Future<Output = ()> {
        if let Work::Hog { times } = work {
            // Loads the address anew each time, as Filebench's loop does.
            let byte = AtomicU8::new(0);
            for _ in 0..times {
                black_box(&byte).store(1, Ordering::Relaxed);
            }
        }
        future::ready(())
    }

    async fn sleep_until(&mut self, deadline_ns: u64) {
        let deadline_ns = deadline_ns.min(self.shift.until_ns);
        while self.now_ns() < deadline_ns && !self.is_over() {
            let look_ns = self.seen_ns + 100 * NS_PER_MS;
            sleep_until(deadline_ns.min(look_ns), self.shift.stop);
        }
    }

    fn until<T>(
        &self,
        park: &Park,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> impl Future<Output = Flow<T>> {
        let shift = self.shift;
        let give_up = || shift.is_cut_short() || now_ns() >= shift.until_ns;
        let found = match attempt() {
            Some(found) => Some(found),
            None => park.until(attempt, give_up),
        };
        future::ready(found.ok_or(Halt::Over))
    }

    fn wake(&self, park: &Park) -> impl Future<Output = ()> {
        park.wake();
        future::ready(())
    }

    fn aim(&mut self, kind: Kind, EntryId { fileset, index }: EntryId) -> impl Future<Output = ()> {
        let fileset = &self.host.engine.filesets[fileset];
        fileset.leaf_path(fileset.leaf(kind, index), &mut self.path);
        future::ready(())
    }

    async fn open(&mut self, entry: EntryId, flags: OpenFlags) -> Result<Open> {
        let mut once = self.once.iter().flatten();
        let same = once.find(|it| (it.entry, it.flags) == (entry, flags));
        if let Some(fd) = same.and_then(|it| it.fd.upgrade()) {
            return Ok(Open {
                fd: Fd::Shared(fd),
                entry,
                dsync: flags.dsync,
            });
        }
        let open = self.open_as("open", entry, flags, OFlags::empty())?;
        if let (Some(once), Fd::Shared(fd)) = (&mut self.once, &open.fd) {
            let fd = Arc::downgrade(fd);
            once.push(OpenOnce { entry, flags, fd });
        }
        Ok(open)
    }

    async fn create(&mut self, entry: EntryId, flags: OpenFlags) -> Result<Open> {
        let fileset = &self.host.engine.filesets[entry.fileset];
        let parent = fileset.dir(fileset.tree.files[entry.index as usize].parent);
        let root = &self.host.root;
        root.stat_as("find the directory for a new file,", parent)?;
        self.open_as("create", entry, flags, OFlags::CREATE)
    }

    async fn by_name(&mut self, call: ByName) -> Result<()> {
        let (root, path) = (&self.host.root, self.path.get());
        match call {
            ByName::Stat => root.stat(path),
            ByName::Unlink => root.unlink(path),
            ByName::MakeDir => root.mkdir(path, 0o755),
            ByName::RemoveDir => root.rmdir(path),
        }
    }

    async fn list_dir(&mut self, fileset: usize, dir: u32) -> Result<u64> {
        let root = &self.host.root;
        let path = self.host.engine.filesets[fileset].dir(dir);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = root.open_as("open directory", path, flags, 0)?;
        let mut records = [const { MaybeUninit::<u8>::uninit() }; 8192];
        let mut entries = RawDir::new(&open, &mut records);
        let mut bytes = 0;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|errno| root.error("list directory", path, errno))?;
            bytes += entry.file_name().count_bytes() as u64 + DIRENT_BYTES;
        }
        Ok(bytes)
    }

    fn close(&mut self, file: Open) -> impl Future<Output = ()> {
        drop(file);
        future::ready(())
    }

    async fn stat_open(&mut self, file: &Open) -> Result<()> {
        let looked = fstat(file).map(drop);
        looked.map_err(|errno| self.error("stat", file, errno))
    }

    async fn fsync(&mut self, file: &Open) -> Result<()> {
        retry_on_intr(|| fsync(file)).map_err(|errno| self.error("fsync", file, errno))
    }

    async fn seek(&mut self, file: &mut Open, to: Position) -> Result<()> {
        let to = match to {
            Position::Start => SeekFrom::Start(0),
            Position::End => SeekFrom::End(0),
        };
        let sought = seek(&*file, to).map(drop);
        sought.map_err(|errno| self.error("seek in", file, errno))
    }

    async fn read(&mut self, file: &mut Open, to: Chunk, at: Option<u64>) -> Result<u64> {
        let range = self.range(to);
        let buffer = &mut self.memory[range];
        let done = retry_on_intr(|| match at {
            Some(offset) => pread(&*file, &mut *buffer, offset),
            None => read(&*file, &mut *buffer),
        });
        done.map(|done| done as u64)
            .map_err(|errno| self.error("read", file, errno))
    }

    async fn write(&mut self, file: &mut Open, from: Chunk, at: Option<u64>) -> Result<()> {
        let data = &self.memory[self.range(from)];
        let done = retry_on_intr(|| match at {
            Some(offset) => pwrite(&*file, data, offset),
            None => write(&*file, data),
        });
        if done == Ok(data.len()) {
            return Ok(());
        }
        let path = self.path_of(file.entry);
        self.host.root.written(path.get(), done, data.len())
    }

    async fn submit(
        &mut self,
        _slot: usize,
        file: &Open,
        at: u64,
        bytes: u64,
        ticket: Ticket,
    ) -> Result<()> {
        let (Some(pool), Fd::Shared(fd)) = (self.pool, &file.fd) else {
            return Ok(());
        };
        let request = Request {
            file: Arc::clone(fd),
            entry: file.entry,
            offset: at,
            bytes: usize::try_from(bytes).unwrap_or(0),
            dsync: file.dsync,
            ticket,
        };
        pool.submit(request).map_err(|source| WorkloadError::Start {
            what: "thread",
            number: 1,
            wanted: 1,
            source,
        })
    }

    async fn submitted(&self, enough: impl Fn() -> bool) -> Flow {
        match self.pool {
            Some(pool) => self.until(pool.ended(), || enough().then_some(())).await,
            None => Ok(()),
        }
    }

    fn can_submit(&self, bytes: u64) -> bool {
        self.pool.is_some_and(|pool| pool.holds(bytes))
    }

    fn submissions(&self) -> Result<()> {
        let Some(failed) = self.pool.and_then(Pool::failed) else {
            return Ok(());
        };
        let path = self.path_of(failed.entry);
        let root = &self.host.root;
        root.written(path.get(), failed.done, failed.wanted)
    }
}
