//! Algorithm 4.2: which writers a commit blocks, and what that costs.
//!
//! A writer is a thread between the begin of its writes to a file and the fsync
//! that follows them. Against a commit L it is in one of three sets:
//!
//! | set | condition | `T_write` |
//! |---|---|---|
//! | X, not affected | `t(q_fsync)` < `t(q_JC)`, or it triggers L | `t(r_write)` - `t(q_write)`, eq. 10 |
//! | Y, fully blocked | its writes began before `t(q_JC)`, its fsync after | (`t(q_JC)` - `t(q_write)`) + `T_JC` + (`t(r_write)` - `t(r_JC)`), eq. 11 |
//! | Z, partially blocked | its writes began after `t(q_JC)` | (`t(r_JC)` - `t(q_write)`) + (`t(r_write)` - `t(r_JC)`), eq. 12 |
//!
//! Written out, equations 11 and 12 are `t(r_write)` - `t(q_write)` again: with the
//! measured end put in they always hold, and predict nothing. [`classify`] and
//! [`algorithm_4_2`] are as published. The comparison with a trace puts in what a
//! writer would have needed for itself instead, at the mean speed of X; what
//! comes out can be wrong, and is shown beside what was measured.

use crate::grouping::Commit;
use crate::observed::{Observed, ObservedWrite};
use crate::stats::{mean, share};
use luc_trace::{Span, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// A thread that writes a file and then syncs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    pub thread: u32,
    /// Begin of its first write, ns: `t(q_write)`.
    pub write_begin_ns: u64,
    /// End of its last write, ns: `t(r_write)`.
    pub write_end_ns: u64,
    /// Begin of its fsync, ns: `t(q_fsync)`.
    pub fsync_begin_ns: u64,
    /// End of the fsync's data flush, ns: `t(r_DFLUSH)`.
    pub flush_end_ns: u64,
    /// Bytes written: S.
    pub bytes: u64,
}

impl Writer {
    /// `T_write`, ns; 0 if the clock went back.
    pub fn duration_ns(&self) -> u64 {
        self.write_end_ns.saturating_sub(self.write_begin_ns)
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

/// A writer's set against a commit: lines 5 to 15. The text leaves equality
/// open; an fsync or a write that begins together with the commit counts as
/// after it, as in Algorithm 4.1.
pub fn classify(writer: &Writer, commit: &Commit) -> Set {
    if writer.fsync_begin_ns < commit.begin_ns {
        Set::X
    } else if writer.write_begin_ns < commit.begin_ns {
        Set::Y
    } else {
        Set::Z
    }
}

/// `T_write` by the equation of the set, ns. Differences may be negative: a writer
/// of Y may have ended its writes before the commit ended, or even began.
pub fn write_time_ns(writer: &Writer, commit: &Commit, set: Set) -> i128 {
    let [begin, end] = [writer.write_begin_ns, writer.write_end_ns].map(i128::from);
    let [commit_begin, commit_end] = [commit.begin_ns, commit.end_ns].map(i128::from);
    match set {
        Set::X => end - begin,
        Set::Y => (commit_begin - begin) + (commit_end - commit_begin) + (end - commit_end),
        Set::Z => (commit_end - begin) + (end - commit_end),
    }
}

/// Algorithm 4.2 as published: one round of writers against the commit that the
/// first of them to end its data flush triggers; that one is in X. The sets
/// and times (ns) in the order of `writers`; of equal flush ends the first counts.
pub fn algorithm_4_2(writers: &[Writer], commit: &Commit) -> Vec<(Set, i128)> {
    let trigger = (0..writers.len()).min_by_key(|place| writers[*place].flush_end_ns);
    let of = |(place, writer)| {
        let triggers = Some(place) == trigger;
        let set = if triggers {
            Set::X
        } else {
            classify(writer, commit)
        };
        (set, write_time_ns(writer, commit, set))
    };
    writers.iter().enumerate().map(of).collect()
}

/// The writers of one set of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SetSummary {
    /// How many.
    pub writers: u64,
    /// Mean `T_write`, ns.
    pub measured_mean_ns: f64,
    /// Mean predicted `T_write`, ns.
    pub predicted_mean_ns: f64,
    /// Mean time waited for buffers that a commit was writing, ns: what the
    /// model calls blocked, as it was measured.
    pub blocked_mean_ns: f64,
}

/// The answer of [`write_model`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WriteModel {
    /// Not affected.
    pub x: SetSummary,
    /// Fully blocked.
    pub y: SetSummary,
    /// Partially blocked.
    pub z: SetSummary,
    /// Equation 9 and with it 13: sum of S / `T_write`, bytes per second.
    pub measured_bytes_per_s: f64,
    /// Equation 14 with the predicted times, bytes per second.
    pub predicted_bytes_per_s: f64,
    /// The best case, Y and Z empty: every writer at its own speed, bytes per second.
    pub best_bytes_per_s: f64,
    /// Equation 9 with the measured waits for buffers taken off, bytes per second.
    pub unblocked_bytes_per_s: f64,
}

/// Algorithm 4.2 against a trace: each writer against the first commit it meets,
/// which is the one that runs when its writes begin, or else the next to begin.
/// The thread that triggers a commit is in X by itself, for its fsync begins
/// first. Rates are those of a thread while it writes, averaged over its files
/// and summed over threads as in equation 9. O(n log n).
pub fn write_model(trace: &Trace, observed: &Observed) -> WriteModel {
    let phases = phases(trace, observed);
    let classified: Vec<(Phase, Set, Option<Commit>)> = phases
        .into_iter()
        .map(|phase| {
            let met = first_met(&phase.writer, observed);
            let set = met.map_or(Set::X, |commit| classify(&phase.writer, &commit));
            (phase, set, met)
        })
        .collect();
    let free = || classified.iter().filter(|(_, set, _)| *set == Set::X);
    let free_ns: f64 = free().map(|(p, ..)| p.writer.duration_ns() as f64).sum();
    let free_bytes: f64 = free().map(|(p, ..)| p.writer.bytes as f64).sum();

    let mut model = WriteModel::default();
    let mut threads: BTreeMap<u32, [Vec<f64>; 4]> = BTreeMap::new();
    let mut sets: BTreeMap<Set, [Vec<f64>; 3]> = BTreeMap::new();
    for (phase, set, met) in &classified {
        let (writer, bytes) = (&phase.writer, phase.writer.bytes as f64);
        let measured_ns = writer.duration_ns() as f64;
        let waited_ns = phase.waited_ns.min(writer.duration_ns()) as f64;
        // Without one free writer there is no speed to go by: what was measured
        // without the waits is the next best.
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

/// By how much the commit lengthens a writer's time, ns. Y: all of the commit,
/// provided the writer would not have ended before it begins; else it was not
/// writing, only on its way to its fsync. Z: what is left of the commit.
fn blocked_ns(writer: &Writer, commit: &Commit, set: Set, own_ns: f64) -> f64 {
    let until_ns = |at_ns: u64| at_ns.saturating_sub(writer.write_begin_ns) as f64;
    match set {
        Set::Y if own_ns > until_ns(commit.begin_ns) => commit.duration_ns() as f64,
        Set::X | Set::Y => 0.0,
        Set::Z => until_ns(commit.end_ns),
    }
}

/// A writer of a trace, with its measured waits.
struct Phase {
    writer: Writer,
    waited_ns: u64,
}

/// Writes of a thread to a file up to its next sync of that file. Writes that
/// no sync follows are left out: the algorithm needs `t(q_fsync)`.
fn phases(trace: &Trace, observed: &Observed) -> Vec<Phase> {
    let mut syncs = trace
        .spans
        .iter()
        .filter(|span| span.dev == observed.dev && span.kind.is_file_sync())
        .peekable();
    let mut open: BTreeMap<(u32, u64), Phase> = BTreeMap::new();
    let mut phases = Vec::new();
    let mut close = |open: &mut BTreeMap<(u32, u64), Phase>, span: &Span| {
        if let Some(mut phase) = open.remove(&(span.pid, span.object)) {
            phase.writer.fsync_begin_ns = span.begin_ns;
            phase.writer.flush_end_ns = span.asked_ns();
            phases.push(phase);
        }
    };
    for write in &observed.writes {
        while let Some(span) = syncs.next_if(|span| span.begin_ns < write.begin_ns) {
            close(&mut open, span);
        }
        let phase = open
            .entry((write.pid, write.inode))
            .or_insert_with(|| Phase {
                writer: Writer {
                    thread: write.pid,
                    write_begin_ns: write.begin_ns,
                    ..Writer::default()
                },
                waited_ns: 0,
            });
        extend(phase, write);
    }
    for span in syncs {
        close(&mut open, span);
    }
    phases
}

fn extend(phase: &mut Phase, write: &ObservedWrite) {
    let writer = &mut phase.writer;
    writer.write_end_ns = writer.write_end_ns.max(write.end_ns);
    writer.bytes = writer.bytes.saturating_add(write.bytes);
    phase.waited_ns = phase.waited_ns.saturating_add(write.waits.buffer_ns);
}

/// The commit that runs when the writes begin, or else the next to begin.
fn first_met(writer: &Writer, observed: &Observed) -> Option<Commit> {
    let commits = &observed.commits;
    let begun = commits.partition_point(|c| c.begin_ns <= writer.write_begin_ns);
    let running = begun
        .checked_sub(1)
        .filter(|place| commits[*place].end_ns > writer.write_begin_ns);
    let commit = commits.get(running.unwrap_or(begun))?;
    Some(Commit {
        begin_ns: commit.begin_ns,
        end_ns: commit.end_ns,
    })
}
