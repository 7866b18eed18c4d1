//! Asynchronous writes, as the C library does them for Filebench.
//!
//! Filebench's `aiowrite` is POSIX `aio_write`, which the GNU C library runs on threads of the
//! process: at most twenty, with a new one started if none is idle, and the requests of one file
//! descriptor in sequence. The engine does the same, with one pool per process of the workload,
//! because the number of writes in flight is part of the load. (The kernel's own interfaces would
//! also hand a synchronous buffered write to worker threads, but to a different number of them, and
//! not every user may use them.)

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::io::{pwrite, retry_on_intr};

use super::park::Park;
use super::queue::Queue;
use super::system::{EntryId, Ticket};
use crate::clock::now_ns;
use crate::crew::Schedule;
use luc_base::Recorder;

/// The default limit of the GNU C library.
pub const THREADS_MAX: usize = 20;
const STACK_BYTES: usize = 128 * 1024;

pub struct Request {
    pub file: Arc<OwnedFd>,
    pub entry: EntryId,
    pub offset: u64,
    pub bytes: usize,
    pub dsync: bool,
    pub ticket: Ticket,
}

/// A write that failed or stored too little.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    pub entry: EntryId,
    pub done: rustix::io::Result<usize>,
    pub wanted: usize,
}

struct State {
    requests: Queue<RawFd, Request>,
    threads: usize,
    idle: usize,
    quit: bool,
    failed: Option<Failed>,
    synced: Recorder,
    handles: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    /// Threads wait here for their writes to end.
    ended: Park,
    /// The schedule: only writes that end within its measurement are recorded.
    schedule: OnceLock<Schedule>,
    /// The data to write: zeros, as a thread's memory is in Filebench.
    zeros: Vec<u8>,
}

/// The writing threads of one process.
pub struct Pool(Arc<Shared>);

impl Pool {
    /// A pool for writes of up to `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                requests: Queue::default(),
                threads: 0,
                idle: 0,
                quit: false,
                failed: None,
                synced: Recorder::new(),
                handles: Vec::new(),
            }),
            work: Condvar::new(),
            ended: Park::default(),
            schedule: OnceLock::new(),
            zeros: vec![0; bytes_max],
        }))
    }

    /// Sets when writes are measured; the first call counts.
    pub fn begin(&self, schedule: Schedule) {
        let _ = self.0.schedule.set(schedule);
    }

    /// Tells whether writes of this size are possible.
    pub fn holds(&self, bytes: u64) -> bool {
        bytes <= self.0.zeros.len() as u64
    }

    /// Begins a write.
    ///
    /// # Errors
    /// When the first thread cannot be started.
    pub fn submit(&self, request: Request) -> std::io::Result<()> {
        let mut state = self.0.lock();
        if !state.requests.add(request.file.as_raw_fd(), request) {
            return Ok(());
        }
        if state.idle == 0 && state.threads < THREADS_MAX {
            let shared = Arc::clone(&self.0);
            let spawned = thread::Builder::new()
                .name("bench-aio".into())
                .stack_size(STACK_BYTES)
                .spawn(move || shared.work());
            match spawned {
                Ok(handle) => {
                    state.threads += 1;
                    state.handles.push(handle);
                }
                Err(error) if state.threads == 0 => return Err(error),
                Err(_) => {}
            }
        }
        drop(state);
        self.0.work.notify_one();
        Ok(())
    }

    /// Returns where threads wait for their writes to end.
    pub fn ended(&self) -> &Park {
        &self.0.ended
    }

    pub fn failed(&self) -> Option<Failed> {
        self.0.lock().failed
    }

    /// Drops writes that have not begun, waits for the others, and returns the times of the
    /// synchronous ones.
    pub fn end(&self) -> Recorder {
        let mut state = self.0.lock();
        state.quit = true;
        state.requests.clear();
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        self.0.work.notify_all();
        for handle in handles {
            // A helper thread has no code that could panic; if it did, its writes would be lost
            // with it.
            let _ = handle.join();
        }
        std::mem::take(&mut self.0.lock().synced)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let schedule = self.schedule.get().copied();
        let mut state = self.lock();
        loop {
            let Some((at, request)) = state.requests.take() else {
                if state.quit {
                    return;
                }
                state.idle += 1;
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            drop(state);

            let begin_ns = now_ns();
            let done = retry_on_intr(|| {
                pwrite(&request.file, &self.zeros[..request.bytes], request.offset)
            });
            let end_ns = now_ns();

            state = self.lock();
            if done != Ok(request.bytes) {
                state.failed.get_or_insert(Failed {
                    entry: request.entry,
                    done,
                    wanted: request.bytes,
                });
            } else if request.dsync && schedule.is_some_and(|it| it.measures(end_ns)) {
                state.synced.record(end_ns - begin_ns);
            }
            request.ticket.swap(false, Ordering::SeqCst);
            self.ended.wake();
            state.requests.ended(at);
        }
    }
}
