//! Asynchronous writes, done as the engine does them: by tasks of the process, at most twenty, a new
//! one while none is idle, and the writes of one open file one after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::shared::Shared;
use crate::files::FileId;
use crate::processors::TaskId;
use crate::program::Op;
use crate::script::Task;

/// Whether a write has ended.
pub type Ticket = Arc<AtomicBool>;

/// An open file: the thread that opened it, and its slot.
pub type Open = (TaskId, usize);

/// A write that was asked for.
pub struct Request {
    pub set: usize,
    pub index: u32,
    pub at: u64,
    pub bytes: u32,
    pub is_synced: bool,
    pub ticket: Ticket,
}

struct PerFile {
    open: Open,
    is_running: bool,
    waiting: VecDeque<Request>,
}

/// The writes of one process.
#[derive(Default)]
pub struct Pool {
    files: Vec<PerFile>,
    /// Files with writes that no task works on.
    ready: VecDeque<usize>,
    /// Tasks that have not begun, and tasks that have nothing to do.
    pub fresh: VecDeque<TaskId>,
    idle: VecDeque<TaskId>,
    /// Tasks that wait for their writes to end.
    waiting: Vec<TaskId>,
}

impl Pool {
    pub fn new(tasks: impl Iterator<Item = TaskId>) -> Self {
        Self {
            fresh: tasks.collect(),
            ..Self::default()
        }
    }

    /// Begins a write; gives the task that is to be woken for it.
    pub fn submit(&mut self, open: Open, request: Request) -> Option<TaskId> {
        let known = self.files.iter().position(|file| file.open == open);
        let at = known.unwrap_or_else(|| {
            self.files.push(PerFile {
                open,
                is_running: false,
                waiting: VecDeque::new(),
            });
            self.files.len() - 1
        });
        let file = &mut self.files[at];
        file.waiting.push_back(request);
        if file.is_running || file.waiting.len() > 1 {
            // The task that works on this file, or will, does this write, too.
            return None;
        }
        self.ready.push_back(at);
        self.idle.pop_front().or_else(|| self.fresh.pop_front())
    }

    /// The task waits until one more write has ended.
    pub fn wait(&mut self, task: TaskId) {
        self.waiting.push(task);
    }

    /// The next write for an idle task; it is idle from now on if there is none.
    fn next(&mut self, task: TaskId) -> Option<(usize, Request)> {
        let Some(at) = self.ready.pop_front() else {
            self.idle.push_back(task);
            return None;
        };
        let file = &mut self.files[at];
        file.is_running = true;
        let request = file.waiting.pop_front()?;
        Some((at, request))
    }

    /// A write has ended; gives the tasks that waited for any.
    fn ended(&mut self, at: usize) -> Vec<TaskId> {
        let file = &mut self.files[at];
        file.is_running = false;
        // After all that was ready before, as the library queues them.
        if !file.waiting.is_empty() {
            self.ready.push_back(at);
        }
        std::mem::take(&mut self.waiting)
    }
}

/// A writing task of a process.
pub async fn write(task: Task, number: TaskId, process: usize, shared: Arc<Shared>) {
    // It begins with its first write.
    task.call(Op::Park).await;
    loop {
        let next = shared.state().pools[process].next(number);
        let Some((at, request)) = next else {
            task.call(Op::Park).await;
            continue;
        };
        let begin_ns = task.now_ns();
        let set = &shared.sets[request.set];
        let file: FileId = set.first_file + request.index;
        let (offset, bytes) = (request.at, request.bytes);
        task.call(Op::Use(file)).await;
        let op = Op::WriteAt { at: offset, bytes };
        let mut end_ns = task.call(op).await.ended_ns;
        if request.is_synced {
            let op = Op::SyncRange { at: offset, bytes };
            end_ns = task.call(op).await.ended_ns;
        }
        request.ticket.store(true, Ordering::Relaxed);
        let waiting = {
            let mut state = shared.state();
            let length = &mut state.bytes[request.set][request.index as usize];
            *length = (*length).max(offset + u64::from(bytes));
            if request.is_synced && shared.measures(end_ns) {
                state.dsync.record(end_ns - begin_ns);
            }
            state.pools[process].ended(at)
        };
        for waiting in waiting {
            task.call(Op::Wake(waiting)).await;
        }
    }
}
