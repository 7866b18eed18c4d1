//! Runs several virtual machines at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::Result;

/// Does all jobs, `workers` at a time: each worker takes the next waiting job. `work` gets a job
/// and its index. After a failure no worker takes another job: the report would be incomplete.
///
/// # Errors
/// The first failure.
pub fn each<Job: Sync>(
    workers: u32,
    jobs: &[Job],
    work: impl Fn(usize, &Job) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let worker = || {
        while let Some((index, job)) = take(&next, jobs) {
            if let Err(error) = work(index, job) {
                lock(&failure).get_or_insert(error);
                next.store(jobs.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..workers.min(u32::try_from(jobs.len()).unwrap_or(u32::MAX)) {
            scope.spawn(worker);
        }
    });
    lock(&failure).take().map_or(Ok(()), Err)
}

fn take<'a, Job>(next: &AtomicUsize, jobs: &'a [Job]) -> Option<(usize, &'a Job)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}

/// Locks a mutex even if a thread has panicked: no thread panics while it changes the value.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ReportError;

    #[test]
    fn every_job_is_done_once() {
        let jobs: Vec<usize> = (0..100).collect();
        let done = Mutex::new(Vec::new());
        let result = each(7, &jobs, |index, job| {
            assert_eq!(index, *job);
            lock(&done).push(index);
            Ok(())
        });
        assert!(result.is_ok());
        let mut done = lock(&done).clone();
        done.sort_unstable();
        assert_eq!(done, jobs);
    }

    #[test]
    fn after_a_failure_no_job_is_begun() {
        let jobs: Vec<usize> = (0..100).collect();
        let begun = Mutex::new(Vec::new());
        let result = each(1, &jobs, |index, _| {
            lock(&begun).push(index);
            match index {
                3 => Err(ReportError::Chart {
                    title: String::new(),
                    why: "on purpose".into(),
                }),
                _ => Ok(()),
            }
        });
        assert!(matches!(result, Err(ReportError::Chart { .. })));
        assert_eq!(*lock(&begun), [0, 1, 2, 3]);
    }
}
