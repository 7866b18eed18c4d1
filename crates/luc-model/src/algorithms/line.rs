//! The run queue: how long threads work once a commit has released them.
//!
//! A thread that is ready while all processors are busy waits in the run queue, so the same
//! operation takes longer the more threads are ready. [`work_ns`] separates the work in a trace
//! from that wait, by the order in which threads finished.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use luc_sim::replayed::COMPUTES_NS;
use luc_trace::{SpanKind, Trace};

use crate::observed::{Observed, ObservedSync, Service, end_of};
use crate::stretches::{Stretch, cut, joined, without};

/// The work of threads from their release by a commit to their next wait: means over all releases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Released {
    /// Number of processors.
    pub cpus: u32,
    /// Work until the end of the sync, ns.
    pub sync_ns: f64,
    /// Work until the thread waits again, ns.
    pub turn_ns: f64,
}

/// A stretch in which a thread was ready to work, and its time on a processor within it, ns.
type Ready = (Stretch, u64);

/// Returns the mean work after a release; `None` if the number of processors is not known, or no
/// thread was released.
pub(super) fn released(trace: &Trace, observed: &Observed) -> Option<Released> {
    let cpus = trace.header.pairs.get("cpus")?;
    let cpus = cpus.parse().ok().filter(|cpus| *cpus > 0)?;
    let ready = ready(trace, observed, cpus);
    let mut of_thread: BTreeMap<u32, Vec<&ObservedSync>> = BTreeMap::new();
    for sync in &observed.syncs {
        of_thread.entry(sync.pid).or_default().push(sync);
    }
    let (mut releases, mut sync_ns, mut turn_ns) = (0_u64, 0, 0);
    for (pid, syncs) in &of_thread {
        let ready = ready.get(pid).map_or(&[][..], Vec::as_slice);
        for (at, sync) in syncs.iter().enumerate() {
            if !matches!(sync.service, Service::Commit(_) | Service::Overtaken(_)) {
                continue;
            }
            let next_ns = syncs.get(at + 1).map_or(u64::MAX, |next| next.asked_ns);
            releases += 1;
            for &((begin_ns, _), work_ns) in turn(ready, released_ns(sync, observed), next_ns) {
                turn_ns += work_ns;
                sync_ns += if begin_ns < sync.end_ns { work_ns } else { 0 };
            }
        }
    }
    let releases = (releases > 0).then_some(releases as f64)?;
    Some(Released {
        cpus,
        sync_ns: sync_ns as f64 / releases,
        turn_ns: turn_ns as f64 / releases,
    })
}

/// Returns the stretches from `from_ns` on that follow each other without a wait.
fn turn(ready: &[Ready], from_ns: u64, until_ns: u64) -> &[Ready] {
    let first = ready.partition_point(|((_, end_ns), _)| *end_ns <= from_ns);
    let mut free_ns = from_ns;
    let follow = ready[first..].iter().take_while(|((begin_ns, end_ns), _)| {
        let follows = *begin_ns == free_ns && *begin_ns < until_ns;
        free_ns = *end_ns;
        follows
    });
    let count = follow.count();
    &ready[first..first + count]
}

/// Returns when a sync had nothing more to wait for, ns.
fn released_ns(sync: &ObservedSync, observed: &Observed) -> u64 {
    match sync.service {
        Service::Commit(place) => {
            let end_ns = observed.commits[place].end_ns;
            end_ns.clamp(sync.asked_ns, sync.end_ns)
        }
        Service::Unneeded | Service::Overtaken(_) => sync.asked_ns,
        // All of it may have been a wait.
        Service::Unserved => sync.end_ns,
    }
}

/// Returns when each thread was ready: within operations except their waits, and between operations
/// in immediate succession. The stretches are sorted and disjoint.
fn ready(trace: &Trace, observed: &Observed, cpus: u32) -> BTreeMap<u32, Vec<Ready>> {
    let mut inside: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
    for span in trace.on(observed.dev) {
        let stretch = (span.begin_ns, end_of(span));
        if span.kind.is_wait() {
            waiting.entry(span.pid).or_default().push(stretch);
        } else if span.kind != SpanKind::Commit {
            inside.entry(span.pid).or_default().push(stretch);
        }
    }
    for sync in &observed.syncs {
        let of_thread = waiting.entry(sync.pid).or_default();
        of_thread.push((sync.flush_begin_ns, sync.asked_ns));
        of_thread.push((sync.asked_ns, released_ns(sync, observed)));
    }
    let (mut stretches, mut pids) = (Vec::new(), Vec::new());
    for (pid, inside) in inside {
        let mut cuts_ns: Vec<u64> = inside.iter().flat_map(|(a, b)| [*a, *b]).collect();
        cuts_ns.sort_unstable();
        let waits = waiting.remove(&pid).unwrap_or_default();
        let left = without(joined(inside, COMPUTES_NS), &joined(waits, 0));
        stretches.extend(cut(left, &cuts_ns));
        pids.resize(stretches.len(), pid);
    }
    let mut ready: BTreeMap<u32, Vec<Ready>> = BTreeMap::new();
    let all = stretches.iter().zip(work_ns(&stretches, cpus));
    for (pid, (&stretch, work_ns)) in pids.into_iter().zip(all) {
        ready.entry(pid).or_default().push((stretch, work_ns));
    }
    ready
}

/// Returns, per stretch in which a thread was ready, its time on a processor, ns. It assumes that
/// threads are served in the order in which they ended, each by the processor that has been free
/// the longest, and that no processor is idle while a thread is ready.
fn work_ns(ready: &[Stretch], cpus: u32) -> Vec<u64> {
    let mut order: Vec<usize> = (0..ready.len()).collect();
    order.sort_by_key(|place| {
        let (begin_ns, end_ns) = ready[*place];
        (end_ns, begin_ns)
    });
    // More processors than stretches make no difference.
    let cpus = usize::try_from(cpus).unwrap_or(usize::MAX);
    let cpus = cpus.clamp(1, ready.len().max(1));
    let mut free_ns: BinaryHeap<Reverse<u64>> = (0..cpus).map(|_| Reverse(0)).collect();
    let mut work_ns = vec![0; ready.len()];
    for place in order {
        let (begin_ns, end_ns) = ready[place];
        let Reverse(since_ns) = free_ns.pop().unwrap_or(Reverse(0));
        work_ns[place] = end_ns.saturating_sub(begin_ns.max(since_ns));
        free_ns.push(Reverse(end_ns));
    }
    work_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three are ready at 0 and end at 20, 50 and 60; a fourth is ready from 100 to 130, alone at
    /// first, and a fifth from 110 to 140.
    #[test]
    fn waiting_for_a_processor_is_no_work() {
        let ready = [(0, 60), (0, 20), (0, 50), (100, 130), (110, 140)];
        assert_eq!(work_ns(&ready, 1), [10, 20, 30, 30, 10]);
        // 20, with 50 beside it; from 20 on the third thread has the first one's processor.
        assert_eq!(work_ns(&ready, 2), [40, 20, 50, 30, 30]);
        assert_eq!(work_ns(&ready, 5), [60, 20, 50, 30, 30]);
        assert!(work_ns(&[], 1).is_empty());
        // A clock that went back.
        assert_eq!(work_ns(&[(9, 9), (9, 5)], 1), [0, 0]);
    }

    #[test]
    fn a_turn_ends_with_a_wait() {
        let ready = [((10, 20), 10), ((20, 25), 5), ((30, 40), 10)];
        assert_eq!(turn(&ready, 10, 99), &ready[..2]);
        assert_eq!(turn(&ready, 10, 20), &ready[..1]);
        assert_eq!(turn(&ready, 26, 99), &ready[..0]);
    }
}
