//! Algorithm 4.2: which writers a commit blocks, and at what cost.
//!
//! A writer is a thread from the start of its writes to a file to the fsync that follows them.
//! With respect to a commit L it is in one of three sets:
//!
//! | set | condition | `T_write` |
//! |---|---|---|
//! | X, not affected | `t(q_fsync)` < `t(q_JC)`, or it triggers L | `t(r_write)` - `t(q_write)`, eq. 10 |
//! | Y, fully blocked | its writes began before `t(q_JC)`, its fsync after | (`t(q_JC)` - `t(q_write)`) + `T_JC` + (`t(r_write)` - `t(r_JC)`), eq. 11 |
//! | Z, partially blocked | its writes began after `t(q_JC)` | (`t(r_JC)` - `t(q_write)`) + (`t(r_write)` - `t(r_JC)`), eq. 12 |
//!
//! Written out, equations 11 and 12 are `t(r_write)` - `t(q_write)` again: with the measured end
//! they always hold, and predict nothing. The comparison with a trace uses the time that a writer
//! would have needed on its own, at the mean speed of X. That prediction can be wrong, and is shown
//! beside the measured time.

use super::grouping::CommitTimes;
use crate::observed::{Observed, ObservedWrite};
use crate::stats::{mean, share};
use luc_trace::{Span, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// A thread that writes a file and then syncs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    pub thread: u32,
    /// Start of its first write, ns: `t(q_write)`.
    pub write_begin_ns: u64,
    /// End of its last write, ns: `t(r_write)`.
    pub write_end_ns: u64,
    /// Start of its fsync, ns: `t(q_fsync)`.
    pub fsync_begin_ns: u64,
    /// Bytes written, S.
    pub bytes: u64,
    /// Measured waits for buffers that a commit was writing, ns.
    pub waited_ns: u64,
}

impl Writer {
    /// `T_write`, ns; 0 if the clock went back.
    pub fn duration_ns(&self) -> u64 {
        self.write_end_ns.saturating_sub(self.write_begin_ns)
    }

    fn add(&mut self, write: &ObservedWrite) {
        self.write_end_ns = self.write_end_ns.max(write.end_ns);
        self.bytes = self.bytes.saturating_add(write.bytes);
        self.waited_ns = self.waited_ns.saturating_add(write.waits.buffer_ns);
    }
}

/// The sets of Algorithm 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Set {
    /// Not affected.
    X,
    /// Fully blocked.
    Y,
    /// Partially blocked.
    Z,
}

/// Returns a writer's set with respect to a commit: lines 5 to 15. The thread that triggers the
/// commit is in X, because its fsync begins first. The text leaves equality open; an fsync or a
/// write that begins together with the commit counts as after it, as in Algorithm 4.1.
pub fn classify(writer: &Writer, commit: &CommitTimes) -> Set {
    if writer.fsync_begin_ns < commit.begin_ns {
        Set::X
    } else if writer.write_begin_ns < commit.begin_ns {
        Set::Y
    } else {
        Set::Z
    }
}

/// The writers of one set of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SetSummary {
    /// Number of writers in the set.
    pub writers: u64,
    /// Mean `T_write`, ns.
    pub measured_mean_ns: f64,
    /// Mean predicted `T_write`, ns.
    pub predicted_mean_ns: f64,
    /// Mean measured wait for buffers that a commit was writing, ns.
    pub blocked_mean_ns: f64,
}

/// The result of [`write_model`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WriteModel {
    /// Not affected.
    pub x: SetSummary,
    /// Fully blocked.
    pub y: SetSummary,
    /// Partially blocked.
    pub z: SetSummary,
    /// Equation 9, and hence 13: sum of S / `T_write`, bytes per second.
    pub measured_bytes_per_s: f64,
    /// Equation 14 with the predicted times, bytes per second.
    pub predicted_bytes_per_s: f64,
    /// The best case, Y and Z empty: every writer at its own speed, bytes per second.
    pub best_bytes_per_s: f64,
    /// Equation 9 with the measured waits for buffers taken off, bytes per second.
    pub unblocked_bytes_per_s: f64,
}

/// Compares Algorithm 4.2 with a trace. Each writer is set against the first commit it meets: the
/// one running when its writes begin, or else the next to begin. Rates are those of a thread while
/// it writes, averaged over its files and summed over threads as in equation 9. O(n log n).
pub fn write_model(trace: &Trace, observed: &Observed) -> WriteModel {
    let writers = writers(trace, observed);
    let classified: Vec<(Writer, Set, Option<CommitTimes>)> = writers
        .into_iter()
        .map(|writer| {
            let met = first_met(&writer, observed);
            let set = met.map_or(Set::X, |commit| classify(&writer, &commit));
            (writer, set, met)
        })
        .collect();
    let free = || classified.iter().filter(|(_, set, _)| *set == Set::X);
    let free_ns: f64 = free().map(|(w, ..)| w.duration_ns() as f64).sum();
    let free_bytes: f64 = free().map(|(w, ..)| w.bytes as f64).sum();

    let mut model = WriteModel::default();
    let mut threads: BTreeMap<u32, [Vec<f64>; 4]> = BTreeMap::new();
    let mut sets: BTreeMap<Set, [Vec<f64>; 3]> = BTreeMap::new();
    for (writer, set, met) in &classified {
        let bytes = writer.bytes as f64;
        let measured_ns = writer.duration_ns() as f64;
        let waited_ns = writer.waited_ns.min(writer.duration_ns()) as f64;
        // If no writer is free: the measured time less the waits.
        let own_ns = match set {
            Set::X => measured_ns,
            Set::Y | Set::Z if free_bytes > 0.0 => bytes * free_ns / free_bytes,
            Set::Y | Set::Z => measured_ns - waited_ns,
        };
        let predicted_ns = own_ns + met.map_or(0.0, |met| blocked_ns(writer, &met, *set, own_ns));
        let rates = threads.entry(writer.thread).or_default();
        let times = [measured_ns, predicted_ns, own_ns, measured_ns - waited_ns];
        for (rates, time_ns) in rates.iter_mut().zip(times) {
            rates.push(share(bytes * 1e9, time_ns));
        }
        let lists = sets.entry(*set).or_default();
        for (list, time_ns) in lists.iter_mut().zip([measured_ns, predicted_ns, waited_ns]) {
            list.push(time_ns);
        }
    }
    let mut of_set = |set| {
        let [measured, predicted, blocked] = sets.remove(&set).unwrap_or_default();
        SetSummary {
            writers: measured.len() as u64,
            measured_mean_ns: mean(measured),
            predicted_mean_ns: mean(predicted),
            blocked_mean_ns: mean(blocked),
        }
    };
    [model.x, model.y, model.z] = [Set::X, Set::Y, Set::Z].map(&mut of_set);
    for [measured, predicted, own, unblocked] in threads.into_values() {
        model.measured_bytes_per_s += mean(measured);
        model.predicted_bytes_per_s += mean(predicted);
        model.best_bytes_per_s += mean(own);
        model.unblocked_bytes_per_s += mean(unblocked);
    }
    model
}

/// Returns by how much the commit lengthens a writer's time, ns. Y: by the whole commit, unless the
/// writer would have ended before it begins; such a writer was no longer writing, only about to
/// call fsync. Z: by the rest of the commit.
fn blocked_ns(writer: &Writer, commit: &CommitTimes, set: Set, own_ns: f64) -> f64 {
    let until_ns = |at_ns: u64| at_ns.saturating_sub(writer.write_begin_ns) as f64;
    match set {
        Set::Y if own_ns > until_ns(commit.begin_ns) => commit.duration_ns() as f64,
        Set::X | Set::Y => 0.0,
        Set::Z => until_ns(commit.end_ns),
    }
}

/// Collects the writes of a thread to a file up to its next sync of that file. Writes without a
/// later sync are left out: the algorithm needs `t(q_fsync)`.
fn writers(trace: &Trace, observed: &Observed) -> Vec<Writer> {
    let syncs = trace.on(observed.dev);
    let mut syncs = syncs.filter(|span| span.kind.is_file_sync()).peekable();
    // Writers by thread and file.
    let mut open: BTreeMap<(u32, u64), Writer> = BTreeMap::new();
    let mut writers = Vec::new();
    let mut close = |open: &mut BTreeMap<(u32, u64), Writer>, sync: &Span| {
        if let Some(writer) = open.remove(&(sync.pid, sync.object)) {
            writers.push(Writer {
                fsync_begin_ns: sync.begin_ns,
                ..writer
            });
        }
    };
    for write in &observed.writes {
        while let Some(sync) = syncs.next_if(|sync| sync.begin_ns < write.begin_ns) {
            close(&mut open, sync);
        }
        let writer = open.entry((write.pid, write.inode));
        let writer = writer.or_insert_with(|| Writer {
            thread: write.pid,
            write_begin_ns: write.begin_ns,
            ..Writer::default()
        });
        writer.add(write);
    }
    for sync in syncs {
        close(&mut open, sync);
    }
    writers
}

/// Returns the commit that runs when the writes begin, or else the next to begin.
fn first_met(writer: &Writer, observed: &Observed) -> Option<CommitTimes> {
    let commits = &observed.commits;
    let begun = commits.partition_point(|c| c.begin_ns <= writer.write_begin_ns);
    let running = begun
        .checked_sub(1)
        .filter(|place| commits[*place].end_ns > writer.write_begin_ns);
    commits.get(running.unwrap_or(begun)).map(CommitTimes::from)
}
