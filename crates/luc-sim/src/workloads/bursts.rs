//! Shared by `burst` and `write-burst`: what each thread did in each burst.

use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::Bursts;

use crate::measured::Measured;

/// The measured bursts, and the threads' turns of each.
#[derive(Clone)]
pub struct Turns<T> {
    bursts: Bursts,
    all: Arc<Mutex<Vec<Vec<T>>>>,
}

/// The directory of a burst's files: new ones as the old are full.
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

    /// The measurement of its bursts.
    pub fn measured(&self) -> Measured {
        let (from_ns, until_ns) = self.bursts.window_ns();
        Measured::new(self.bursts.threads as usize, from_ns, until_ns)
    }

    /// A thread has done its part of a burst.
    pub fn add(&self, burst: u32, turn: T) {
        if let Some(measured) = burst.checked_sub(self.bursts.warmup) {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            all[measured as usize].push(turn);
        }
    }

    /// The bursts that every thread took part in: only these can be compared.
    pub fn complete(&self) -> Vec<Vec<T>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let is_complete = |burst: &&Vec<T>| burst.len() == self.bursts.threads as usize;
        all.iter().take_while(is_complete).cloned().collect()
    }
}
