//! The processes that cause the delays, and those that lose time to them.

use super::account::Account;
use super::evidence::{BOUND_SHARE_MIN, PART_MIN};
use super::unseen;
use crate::blame::{Waiter, told_apart};
use crate::observed::{Observed, Service, is_sync};
use crate::stats::share;
use crate::writeback::{Names, worked_for};
use luc_trace::{Process, SpanKind, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Length of the longest list.
const SHOWN_MAX: usize = 5;
/// More than this share is more than all others together.
const MOST_SHARE: f64 = 0.5;
/// A tenth of what a disk writes in sequence, 100 MB/s or more.
const BULK_BYTES_PER_S: u64 = 10_000_000;

/// Processes of the same name and control group that sync.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Syncer {
    pub name: String,
    /// `None` if unknown.
    pub cgroup: Option<String>,
    /// Syncs, including those that needed no commit.
    pub syncs: u64,
    /// Their share of all syncs.
    pub syncs_share: f64,
    /// Commits whose first sync was theirs; `None` if it cannot be seen when syncs ask.
    pub commits_asked: Option<u64>,
}

/// Processes of the same name and control group that lose time to others' commits or to the
/// journal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sufferer {
    pub name: String,
    /// `None` if unknown.
    pub cgroup: Option<String>,
    /// Time lost, ns: from asking to the start of the serving commit, and in
    /// waits for buffers, locked transactions and space.
    pub lost_ns: f64,
    /// Their share of all time lost.
    pub lost_share: f64,
    /// The time lost as a share of the time of its syncs, writes and waits.
    pub lost_of_own_share: f64,
    /// Part of `lost_ns` in syncs, ns.
    pub sync_delay_ns: f64,
}

/// A process that writes most of the data, beside another that syncs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bulk {
    /// With its control group if the waiter has the same name.
    pub writer: String,
    /// Its share of the bytes written.
    pub bytes_share: f64,
    /// Over the watched time.
    pub bytes_per_s: u64,
    /// Another process: that with the most time in syncs.
    pub waiter: String,
    /// Share of the waiter's sync time in which its own data is written.
    pub flush_share: f64,
}

impl Bulk {
    /// Whether the waiter waits mostly for its data.
    pub fn delays_data(&self) -> bool {
        self.flush_share >= BOUND_SHARE_MIN
    }

    /// Whether so much data is written that other requests are likely to wait for it.
    pub fn fills_disk(&self) -> bool {
        self.bytes_per_s >= BULK_BYTES_PER_S
    }

    /// Returns a sentence of advice.
    pub fn remedy(&self) -> String {
        format!(
            "Give {} another disk, let it write less at a time, or take a faster disk.",
            self.writer
        )
    }
}

/// Causes by their time in syncs and sufferers by the time lost, the largest first, at most 5 each.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Processes {
    pub causes: Vec<Syncer>,
    /// `None` if some of the time lost cannot be seen.
    pub sufferers: Option<Vec<Sufferer>>,
    /// `None` if there is no such writer, or it cannot be seen.
    pub bulk: Option<Bulk>,
}

#[derive(Default)]
struct Tally {
    syncs: u64,
    sync_delay_ns: f64,
    lost_ns: f64,
    /// Time in syncs, writes and waits.
    operations_ns: f64,
    sync_ns: f64,
    flush_ns: f64,
    bytes: u64,
}

impl Processes {
    /// Needs the waits of processes; `None` if it cannot be seen when syncs ask.
    pub(super) fn from_trace(
        trace: &Trace,
        observed: &Observed,
        account: &Account,
        waiters: Option<&[Waiter]>,
    ) -> Self {
        let names = names(trace, observed);
        // Sorted by name and control group, which breaks ties below.
        let mut tallies: BTreeMap<&Process, Tally> = BTreeMap::new();
        for sync in &observed.syncs {
            let process = &names[&sync.pid];
            let tally = tallies.entry(process).or_default();
            tally.syncs += 1;
            tally.sync_ns += sync.duration_ns() as f64;
            tally.operations_ns += sync.duration_ns() as f64;
            tally.flush_ns += sync.flush_ns() as f64;
            if matches!(sync.service, Service::Commit(_)) {
                tally.sync_delay_ns += sync.delay_ns as f64;
                tally.lost_ns += sync.delay_ns as f64;
            }
        }
        for wait in trace.on(observed.dev).filter(|span| span.kind.is_wait()) {
            let tally = tallies.entry(&names[&wait.pid]).or_default();
            tally.lost_ns += wait.duration_ns() as f64;
            if !is_sync(wait.within) && wait.within != SpanKind::Write {
                tally.operations_ns += wait.duration_ns() as f64;
            }
        }
        for write in &observed.writes {
            let tally = tallies.entry(&names[&write.pid]).or_default();
            tally.bytes = tally.bytes.saturating_add(write.bytes);
            tally.operations_ns += write.duration_ns() as f64;
        }

        let commits_asked = |process: &Process| {
            let same = |it: &&Waiter| (&it.name, &it.cgroup) == (&process.name, &process.cgroup);
            Some(waiters?.iter().find(same).map_or(0, |it| it.commits_asked))
        };
        let syncs: u64 = tallies.values().map(|tally| tally.syncs).sum();
        let mut syncing: Vec<_> = tallies.iter().filter(|it| it.1.syncs > 0).collect();
        // Not by their number: a sync of a clean file takes no time.
        syncing.sort_by(|(_, a), (_, b)| b.sync_ns.total_cmp(&a.sync_ns));
        syncing.truncate(SHOWN_MAX);
        let syncer = |(process, tally): (&&Process, &Tally)| Syncer {
            name: process.name.clone(),
            cgroup: process.cgroup.clone(),
            syncs: tally.syncs,
            syncs_share: share(tally.syncs as f64, syncs as f64),
            commits_asked: commits_asked(process),
        };
        let causes = syncing.into_iter().map(syncer).collect();

        let losing = tallies.iter().filter(|(_, tally)| tally.lost_ns > 0.0);
        let sufferer = |(process, tally): (&&Process, &Tally)| Sufferer {
            name: process.name.clone(),
            cgroup: process.cgroup.clone(),
            lost_ns: tally.lost_ns,
            lost_share: 0.0,
            lost_of_own_share: share(tally.lost_ns, tally.operations_ns).min(1.0),
            sync_delay_ns: tally.sync_delay_ns,
        };
        let mut sufferers: Vec<Sufferer> = losing.map(sufferer).collect();
        sufferers.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
        // Summed in that order, on which a sum of floats depends.
        let all_ns: f64 = sufferers.iter().map(|sufferer| sufferer.lost_ns).sum();
        for sufferer in &mut sufferers {
            sufferer.lost_share = share(sufferer.lost_ns, all_ns);
        }
        sufferers.truncate(SHOWN_MAX);
        let all_seen = waiters.is_some() && !unseen::any_wait(&trace.unseen);
        Self {
            causes,
            sufferers: all_seen.then_some(sufferers),
            bulk: bulk(&tallies, account).filter(|_| waiters.is_some()),
        }
    }

    /// Returns a process that issues most of the syncs and another that loses most of the time to
    /// its commits, if there are such.
    pub(super) fn neighbour(&self, waiters: &[Waiter]) -> Option<(&Syncer, &Sufferer)> {
        let sufferer = self.sufferers.as_ref()?.first()?;
        let waiter = waiters
            .iter()
            .find(|it| (&it.name, &it.cgroup) == (&sufferer.name, &sufferer.cgroup))?;
        let mut others = waiter.waited_for.iter();
        let most = others.find(|other| other.name.is_some())?;
        let mut causes = self.causes.iter();
        let cause =
            causes.find(|it| (Some(&it.name), &it.cgroup) == (most.name.as_ref(), &most.cgroup))?;
        let found = cause.syncs_share > MOST_SHARE
            && sufferer.lost_share > MOST_SHARE
            && sufferer.lost_of_own_share >= PART_MIN
            && (&*cause.name, &cause.cgroup) != (worked_for(&sufferer.name), &sufferer.cgroup);
        found.then_some((cause, sufferer))
    }
}

fn bulk(tallies: &BTreeMap<&Process, Tally>, account: &Account) -> Option<Bulk> {
    let bytes: f64 = tallies.values().map(|tally| tally.bytes as f64).sum();
    let sync_ns: f64 = tallies.values().map(|tally| tally.sync_ns).sum();
    let (writer, most) = tallies.iter().max_by_key(|(_, tally)| tally.bytes)?;
    let bytes_share = share(most.bytes as f64, bytes);
    let waits = |(process, tally): &(&&Process, &Tally)| {
        process != &writer && share(tally.sync_ns, sync_ns) >= PART_MIN
    };
    let waiting = tallies.iter().filter(waits);
    let (waiter, tally) = waiting.max_by(|(_, a), (_, b)| a.sync_ns.total_cmp(&b.sync_ns))?;
    let [writer, waiter] = told_apart(
        (&writer.name, &writer.cgroup),
        (&waiter.name, &waiter.cgroup),
    );
    // A cast saturates, and the rate is not negative.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes_per_s = account.per_s(most.bytes as f64) as u64;
    (bytes_share > MOST_SHARE).then(|| Bulk {
        writer,
        bytes_share,
        bytes_per_s,
        waiter,
        flush_share: share(tally.flush_ns, tally.sync_ns),
    })
}

/// Returns the processes of the threads that sync, write or wait, by thread.
fn names(trace: &Trace, observed: &Observed) -> HashMap<u32, Process> {
    let of_threads = Names::from_trace(trace, observed.dev);
    let mut of_process: HashMap<u32, Process> = HashMap::new();
    let mut names = HashMap::new();
    for span in trace.on(observed.dev) {
        let acts = is_sync(span.kind) || span.kind == SpanKind::Write;
        let concerned = acts || span.kind.is_wait();
        if !concerned || names.contains_key(&span.pid) {
            continue;
        }
        let process = of_process.entry(span.tgid);
        let process = process.or_insert_with(|| of_threads.process(span.tgid, span.pid));
        names.insert(span.pid, process.clone());
    }
    names
}
