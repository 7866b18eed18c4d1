//! A barrier that processes pass between two phases.

use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::gathering_ns;

use crate::script::Task;
use luc_sim::processors::TaskId;
use luc_sim::program::Op;

#[derive(Default)]
struct State {
    here: Vec<TaskId>,
    begin_ns: u64,
}

/// A barrier that all tasks pass together; they are numbered from 0.
#[derive(Clone)]
pub struct Barrier {
    tasks: u32,
    state: Arc<Mutex<State>>,
}

impl Barrier {
    pub fn new(tasks: u32) -> Self {
        Self {
            tasks,
            state: Arc::default(),
        }
    }

    /// Waits for all others, and then for the moment at which all begin.
    pub async fn pass(&self, task: &Task, number: TaskId) {
        let others = self.arrive(number, task.now_ns());
        match others {
            None => {
                task.call(Op::Park).await;
            }
            Some(others) => {
                for other in others {
                    task.call(Op::Wake(other)).await;
                }
            }
        }
        let begin_ns = self
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin_ns;
        task.call(Op::SleepUntil(begin_ns)).await;
    }

    /// Notes an arrival; returns the others, to be woken, if this task is the last.
    fn arrive(&self, number: TaskId, now_ns: u64) -> Option<Vec<TaskId>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.here.len() + 1 < self.tasks as usize {
            state.here.push(number);
            return None;
        }
        state.begin_ns = now_ns + gathering_ns(self.tasks.into());
        Some(std::mem::take(&mut state.here))
    }
}
