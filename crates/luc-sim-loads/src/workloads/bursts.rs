//! Shared by `burst` and `write-burst`: the threads' results in each burst.

use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::Bursts;

use luc_sim::measured::Measured;

/// The measured bursts, and the threads' turns in each.
#[derive(Clone)]
pub struct Turns<T> {
    bursts: Bursts,
    all: Arc<Mutex<Vec<Vec<T>>>>,
}

/// Returns the directory of a burst's files; a new one is used when the last is full.
pub fn dir(threads: u32, burst: u32) -> u32 {
    const FILES_PER_DIR: u32 = 64;
    burst * threads / FILES_PER_DIR
}

impl<T: Clone> Turns<T> {
    pub fn new(bursts: Bursts) -> Self {
        let all = vec![Vec::new(); bursts.measured as usize];
        Self {
            bursts,
            all: Arc::new(Mutex::new(all)),
        }
    }

    /// Creates the measurement of its bursts.
    pub fn measured(&self) -> Measured {
        let (from_ns, until_ns) = self.bursts.window_ns();
        Measured::new(self.bursts.threads as usize, from_ns, until_ns)
    }

    /// Adds a thread's turn in a burst.
    pub fn add(&self, burst: u32, turn: T) {
        if let Some(measured) = burst.checked_sub(self.bursts.warmup) {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            all[measured as usize].push(turn);
        }
    }

    /// Returns the bursts in which every thread took part: only these can be compared.
    pub fn complete(&self) -> Vec<Vec<T>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let is_complete = |burst: &&Vec<T>| burst.len() == self.bursts.threads as usize;
        all.iter().take_while(is_complete).cloned().collect()
    }
}
