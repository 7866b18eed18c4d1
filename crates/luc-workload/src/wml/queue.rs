//! Requests for files: those for one file are done one after the other.

use std::collections::VecDeque;

struct PerFile<K, R> {
    key: K,
    is_busy: bool,
    waiting: VecDeque<R>,
}

pub struct Queue<K, R> {
    files: Vec<PerFile<K, R>>,
    /// Indices of files that have requests and no thread working on them.
    ready: VecDeque<usize>,
}

impl<K, R> Default for Queue<K, R> {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            ready: VecDeque::new(),
        }
    }
}

impl<K: PartialEq, R> Queue<K, R> {
    /// Adds a request. False if a thread works on the file, or will, and does this one, too.
    pub fn add(&mut self, key: K, request: R) -> bool {
        let known = self.files.iter().position(|file| file.key == key);
        let at = known.unwrap_or_else(|| {
            self.files.push(PerFile {
                key,
                is_busy: false,
                waiting: VecDeque::new(),
            });
            self.files.len() - 1
        });
        let file = &mut self.files[at];
        file.waiting.push_back(request);
        let is_ready = !file.is_busy && file.waiting.len() == 1;
        if is_ready {
            self.ready.push_back(at);
        }
        is_ready
    }

    /// Takes the next request, and makes its file busy until [`Self::ended`] has its index.
    pub fn take(&mut self) -> Option<(usize, R)> {
        let at = self.ready.pop_front()?;
        let file = &mut self.files[at];
        file.is_busy = true;
        file.waiting.pop_front().map(|request| (at, request))
    }

    /// Ends a request. Its file queues behind those that were ready before, as in the C library.
    pub fn ended(&mut self, at: usize) {
        let file = &mut self.files[at];
        file.is_busy = false;
        if !file.waiting.is_empty() {
            self.ready.push_back(at);
        }
    }

    /// Drops all requests that wait.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.files.iter_mut().for_each(|file| file.waiting.clear());
    }
}
