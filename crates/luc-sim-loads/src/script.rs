//! Programs written as sequential code: one call after the other, with loops and waits between.
//!
//! A program returns one operation at a time, so it is a state machine. From an `async` function
//! the compiler makes that machine: it stops at each call, and continues when the call has ended.
//! Nothing else is asynchronous here, and only the request for the next operation wakes it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use luc_sim::program::{Op, Program, Went};

/// The operation that the script asks for, and how the last one went.
#[derive(Default)]
struct Exchange {
    asked: Option<Op>,
    went: Went,
}

/// A task, as its script sees it.
#[derive(Clone, Default)]
pub struct Task(Arc<Mutex<Exchange>>);

impl Task {
    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does this operation; returns how it went.
    pub async fn call(&self, op: Op) -> Went {
        let mut is_asked = false;
        poll_fn(|_| {
            let mut exchange = self.exchange();
            if is_asked {
                return Poll::Ready(exchange.went);
            }
            is_asked = true;
            exchange.asked = Some(op);
            Poll::Pending
        })
        .await
    }

    /// Returns the time, ns: the end of the last call.
    pub fn now_ns(&self) -> u64 {
        self.exchange().went.ended_ns
    }
}

/// A program whose operations are the calls of a script.
pub struct Script {
    task: Task,
    /// `None` after it has ended.
    rest: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Script {
    /// Creates the program of the script that `write` returns for a task.
    pub fn new<F: Future<Output = ()> + Send + 'static>(write: impl FnOnce(Task) -> F) -> Self {
        let task = Task::default();
        let rest = Some(Box::pin(write(task.clone())) as _);
        Self { task, rest }
    }
}

impl Program for Script {
    fn next(&mut self, went: &Went) -> Op {
        self.task.exchange().went = *went;
        let Some(rest) = &mut self.rest else {
            return Op::End;
        };
        if rest
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
        {
            self.rest = None;
        }
        self.task.exchange().asked.take().unwrap_or(Op::End)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_stops_at_each_call() {
        let mut script = Script::new(|task| async move {
            for dir in 0..2 {
                let went = task.call(Op::Create { dir }).await;
                task.call(Op::SleepUntil(went.ended_ns + 5)).await;
            }
        });
        let mut next = |ended_ns| {
            script.next(&Went {
                ended_ns,
                ..Went::default()
            })
        };
        assert_eq!(next(0), Op::Create { dir: 0 });
        assert_eq!(next(10), Op::SleepUntil(15));
        assert_eq!(next(15), Op::Create { dir: 1 });
        assert_eq!(next(20), Op::SleepUntil(25));
        assert_eq!(next(25), Op::End);
        assert_eq!(next(25), Op::End, "it has ended");
    }
}
