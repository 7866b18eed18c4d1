//! Who causes the delays, and who suffers from them.

use super::unseen;
use crate::observed::{Observed, Service, is_sync};
use crate::stats::share;
use luc_trace::{Process, Sight, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Longest lists.
const SHOWN_MAX: usize = 5;
/// More than half: what the rest does together is less.
const MOST_SHARE: f64 = 0.5;

/// Processes of one name and control group that sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cause {
    pub name: String,
    /// Their control group, where that is known.
    pub cgroup: Option<String>,
    /// Syncs that waited for a commit.
    pub syncs: u64,
    /// Share of all of those.
    pub syncs_share: f64,
    /// Commits whose first sync was theirs: without it they had come later. None where it
    /// cannot be seen when syncs ask.
    pub commits_asked: Option<u64>,
}

/// Processes of one name and control group that lose time to others' commits or the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sufferer {
    pub name: String,
    /// Their control group, where that is known.
    pub cgroup: Option<String>,
    /// Time lost, ns: from asking to the begin of the serving commit, and in
    /// waits for buffers, locked transactions and space.
    pub lost_ns: f64,
    /// Share of all that was lost.
    pub lost_share: f64,
    /// Of it in syncs, ns.
    pub sync_delay_ns: f64,
}

/// Both, the largest first, at most 5 each.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Processes {
    /// Who syncs.
    pub causes: Vec<Cause>,
    /// Processes that lose time; None where some of the time lost cannot be seen.
    pub sufferers: Option<Vec<Sufferer>>,
}

impl Processes {
    pub(super) fn of(trace: &Trace, observed: &Observed) -> Self {
        let names = Names::of(trace, observed);
        let mut causes: HashMap<&Process, Cause> = HashMap::new();
        let mut lost: HashMap<&Process, Sufferer> = HashMap::new();
        // Who asked first for each commit.
        let mut first: BTreeMap<usize, (u64, &Process)> = BTreeMap::new();
        for sync in &observed.syncs {
            let name = names.of_thread(sync.pid);
            let Service::Commit(place) = sync.service else {
                continue;
            };
            causes.entry(name).or_default().syncs += 1;
            let earliest = first.entry(place).or_insert((sync.asked_ns, name));
            if sync.asked_ns < earliest.0 {
                *earliest = (sync.asked_ns, name);
            }
            lost.entry(name).or_default().sync_delay_ns += sync.delay_ns as f64;
        }
        let sees_asking = !trace.unseen.contains(&Sight::Flushes);
        if sees_asking {
            for cause in causes.values_mut() {
                cause.commits_asked = Some(0);
            }
            for (_, name) in first.into_values() {
                let asked = &mut causes.entry(name).or_default().commits_asked;
                *asked = Some(asked.unwrap_or(0) + 1);
            }
        }
        for sufferer in lost.values_mut() {
            sufferer.lost_ns = sufferer.sync_delay_ns;
        }
        let of_dev = trace.spans.iter().filter(|span| span.dev == observed.dev);
        for wait in of_dev.filter(|span| span.kind.is_wait()) {
            let name = names.of_thread(wait.pid);
            lost.entry(name).or_default().lost_ns += wait.duration_ns() as f64;
        }

        let syncs: u64 = causes.values().map(|cause| cause.syncs).sum();
        let mut causes: Vec<Cause> = causes
            .into_iter()
            .map(|(process, cause)| Cause {
                name: process.name.clone(),
                cgroup: process.cgroup.clone(),
                syncs_share: share(cause.syncs as f64, syncs as f64),
                ..cause
            })
            .collect();
        causes.sort_by(|a, b| {
            let by_syncs = b.syncs.cmp(&a.syncs);
            by_syncs.then_with(|| (&a.name, &a.cgroup).cmp(&(&b.name, &b.cgroup)))
        });
        causes.truncate(SHOWN_MAX);

        let mut sufferers: Vec<Sufferer> = lost
            .into_iter()
            .filter(|(_, sufferer)| sufferer.lost_ns > 0.0)
            .map(|(process, sufferer)| Sufferer {
                name: process.name.clone(),
                cgroup: process.cgroup.clone(),
                ..sufferer
            })
            .collect();
        sufferers.sort_by(|a, b| {
            let by_time = b.lost_ns.total_cmp(&a.lost_ns);
            by_time.then_with(|| (&a.name, &a.cgroup).cmp(&(&b.name, &b.cgroup)))
        });
        // In the order of their names and sizes: a sum of floats depends on it.
        let all_ns: f64 = sufferers.iter().map(|sufferer| sufferer.lost_ns).sum();
        for sufferer in &mut sufferers {
            sufferer.lost_share = share(sufferer.lost_ns, all_ns);
        }
        sufferers.truncate(SHOWN_MAX);
        let all_seen = sees_asking && !unseen::any_wait(&trace.unseen);
        Self {
            causes,
            sufferers: all_seen.then_some(sufferers),
        }
    }

    /// One that issues most of the syncs while another loses most of the time.
    pub(super) fn neighbour(&self) -> Option<(&Cause, &Sufferer)> {
        let cause = self.causes.first()?;
        let sufferer = self.sufferers.as_ref()?.first()?;
        let found = cause.syncs_share > MOST_SHARE
            && sufferer.lost_share > MOST_SHARE
            && (&cause.name, &cause.cgroup) != (&sufferer.name, &sufferer.cgroup);
        found.then_some((cause, sufferer))
    }
}

/// How the processes are called that threads belong to, by thread.
struct Names(HashMap<u32, Process>);

impl Names {
    fn of(trace: &Trace, observed: &Observed) -> Self {
        let mut of_process: HashMap<u32, Process> = HashMap::new();
        let mut names = HashMap::new();
        for span in trace.spans.iter().filter(|span| span.dev == observed.dev) {
            let concerned = is_sync(span.kind) || span.kind.is_wait();
            if !concerned || names.contains_key(&span.pid) {
                continue;
            }
            let process = of_process.entry(span.tgid);
            let process = process.or_insert_with(|| trace.process(span.tgid, span.pid));
            names.insert(span.pid, process.clone());
        }
        Self(names)
    }

    /// Of a thread of the trace.
    fn of_thread(&self, pid: u32) -> &Process {
        static NOBODY: Process = Process {
            name: String::new(),
            cgroup: None,
        };
        self.0.get(&pid).unwrap_or(&NOBODY)
    }
}
