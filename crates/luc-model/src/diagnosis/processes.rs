//! Who causes the delays, and who suffers from them.

use crate::observed::{Observed, Service, is_sync};
use crate::stats::share;
use luc_trace::Trace;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Longest lists.
const SHOWN_MAX: usize = 5;
/// More than half: what the rest does together is less.
const MOST_SHARE: f64 = 0.5;

/// Processes of one name that sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cause {
    /// Their name.
    pub name: String,
    /// Syncs that waited for a commit.
    pub syncs: u64,
    /// Share of all of those.
    pub syncs_share: f64,
    /// Commits whose first sync was theirs: without it they had come later.
    pub commits_asked: u64,
}

/// Processes of one name that lose time to others' commits or the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sufferer {
    /// Their name.
    pub name: String,
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
    /// Who loses time.
    pub sufferers: Vec<Sufferer>,
}

impl Processes {
    pub(super) fn of(trace: &Trace, observed: &Observed) -> Self {
        let names = Names::of(trace, observed);
        let mut causes: HashMap<&str, Cause> = HashMap::new();
        let mut lost: HashMap<&str, Sufferer> = HashMap::new();
        // Who asked first for each commit.
        let mut first: BTreeMap<usize, (u64, &str)> = BTreeMap::new();
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
        for (_, name) in first.into_values() {
            causes.entry(name).or_default().commits_asked += 1;
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
            .map(|(name, cause)| Cause {
                name: name.to_owned(),
                syncs_share: share(cause.syncs as f64, syncs as f64),
                ..cause
            })
            .collect();
        causes.sort_by(|a, b| b.syncs.cmp(&a.syncs).then_with(|| a.name.cmp(&b.name)));
        causes.truncate(SHOWN_MAX);

        let mut sufferers: Vec<Sufferer> = lost
            .into_iter()
            .filter(|(_, sufferer)| sufferer.lost_ns > 0.0)
            .map(|(name, sufferer)| Sufferer {
                name: name.to_owned(),
                ..sufferer
            })
            .collect();
        sufferers.sort_by(|a, b| {
            let by_time = b.lost_ns.total_cmp(&a.lost_ns);
            by_time.then_with(|| a.name.cmp(&b.name))
        });
        // In the order of their names and sizes: a sum of floats depends on it.
        let all_ns: f64 = sufferers.iter().map(|sufferer| sufferer.lost_ns).sum();
        for sufferer in &mut sufferers {
            sufferer.lost_share = share(sufferer.lost_ns, all_ns);
        }
        sufferers.truncate(SHOWN_MAX);
        Self { causes, sufferers }
    }

    /// One that issues most of the syncs while another loses most of the time.
    pub(super) fn neighbour(&self) -> Option<(&Cause, &Sufferer)> {
        let cause = self.causes.first()?;
        let sufferer = self.sufferers.first()?;
        let found = cause.syncs_share > MOST_SHARE
            && sufferer.lost_share > MOST_SHARE
            && cause.name != sufferer.name;
        found.then_some((cause, sufferer))
    }
}

/// Names of processes by thread: that of the main thread if it was seen, else
/// that of the first thread that was.
struct Names(HashMap<u32, String>);

impl Names {
    fn of(trace: &Trace, observed: &Observed) -> Self {
        let mut of_process: HashMap<u32, String> = HashMap::new();
        let mut names = HashMap::new();
        for span in trace.spans.iter().filter(|span| span.dev == observed.dev) {
            let concerned = is_sync(span.kind) || span.kind.is_wait();
            if !concerned || names.contains_key(&span.pid) {
                continue;
            }
            let name = of_process.entry(span.tgid).or_insert_with(|| {
                let tasks = [span.tgid, span.pid].map(|task| trace.tasks.get(&task));
                let known = tasks
                    .into_iter()
                    .flatten()
                    .find(|task| !task.name.is_empty());
                // It comes from whoever named the thread, and goes to a terminal.
                let plain = |c: char| if c.is_control() { '?' } else { c };
                known.map_or_else(
                    || format!("process {}", span.tgid),
                    |task| task.name.chars().map(plain).collect(),
                )
            });
            names.insert(span.pid, name.clone());
        }
        Self(names)
    }

    fn of_thread(&self, pid: u32) -> &str {
        self.0.get(&pid).map_or("?", String::as_str)
    }
}
