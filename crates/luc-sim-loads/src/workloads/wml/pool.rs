//! Asynchronous writes, queued as in the engine: at most twenty tasks of the process do them, a new
//! task starts if none is idle, and the writes of one open file follow each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use luc_sim::processors::TaskId;

/// Whether a write has ended.
pub type Ticket = Arc<AtomicBool>;

/// An open file: the thread that opened it, and its slot.
pub type Open = (TaskId, usize);

/// A requested write.
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
    /// Files with writes on which no task works.
    ready: VecDeque<usize>,
    /// Tasks that have not begun, and tasks that are idle.
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

    /// Queues a write; returns the task to be woken for it, if any.
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

    /// Makes the task wait until one more write has ended.
    pub fn wait(&mut self, task: TaskId) {
        self.waiting.push(task);
    }

    /// Returns the next write for an idle task; the task stays idle if there is none.
    pub fn next(&mut self, task: TaskId) -> Option<(usize, Request)> {
        let Some(at) = self.ready.pop_front() else {
            self.idle.push_back(task);
            return None;
        };
        let file = &mut self.files[at];
        file.is_running = true;
        let request = file.waiting.pop_front()?;
        Some((at, request))
    }

    /// Ends a write; returns the tasks that waited for any write to end.
    pub fn ended(&mut self, at: usize) -> Vec<TaskId> {
        let file = &mut self.files[at];
        file.is_running = false;
        // It queues behind all that were ready before, as in the library.
        if !file.waiting.is_empty() {
            self.ready.push_back(at);
        }
        std::mem::take(&mut self.waiting)
    }
}
