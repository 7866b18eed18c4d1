//! Verdicts on the time of single processes. Somebody's bulk copying takes most of all threads'
//! time; beside it, the delays of a database would be a small share.

use super::evidence::{Case, Verdict};
use super::facts::{CpuLimit, Facts};
use super::gain::Gains;
use super::kinds;
use super::limits;
use super::slices::Slices;
use crate::lasting::LastingSyncs;
use crate::observed::{Observed, is_sync};
use crate::untimed::UntimedSyncs;
use crate::writeback::Names;
use luc_trace::{Process, SpanKind, Trace};
use std::collections::{BTreeMap, HashMap};

/// A process whose threads wait less than this share of the time hardly notices.
const BUSY_SHARE_MIN: f64 = 0.20;
/// Most processes that are judged, those with the most syncs first.
const JUDGED_MAX: usize = 3;

/// Returns the costly verdicts on processes whose kinds are not among those on the whole, each
/// once.
pub(super) fn verdicts(
    trace: &Trace,
    observed: &Observed,
    facts: &Facts,
    cpu_limit: Option<&CpuLimit>,
    whole: &[Verdict],
) -> Vec<Verdict> {
    let dev = observed.dev;
    let of_threads = Names::from_trace(trace, dev);
    let mut names: HashMap<u32, Process> = HashMap::new();
    let mut syncs: BTreeMap<Process, u64> = BTreeMap::new();
    for span in trace.on(dev).filter(|span| span.kind != SpanKind::Commit) {
        let name = names.entry(span.tgid);
        let process = name.or_insert_with(|| of_threads.process(span.tgid, span.pid));
        if is_sync(span.kind) {
            *syncs.entry(process.clone()).or_default() += 1;
        }
    }
    if syncs.len() < 2 {
        return Vec::new();
    }
    let mut processes: Vec<(Process, u64)> = syncs.into_iter().collect();
    processes.sort_by_key(|(_, syncs)| std::cmp::Reverse(*syncs));
    let mut found: Vec<Verdict> = Vec::new();
    for (process, _) in processes.into_iter().take(JUDGED_MAX) {
        let of_process = |tgid| names.get(&tgid) == Some(&process);
        let spans = trace.on(dev);
        let spans = spans.filter(|span| span.kind == SpanKind::Commit || of_process(span.tgid));
        let part = Trace {
            spans: spans.copied().collect(),
            unseen: trace.unseen.clone(),
            ..Trace::default()
        };
        let slices = Slices::from_trace(&part, &Observed::from_trace(&part, dev), facts);
        if slices.whole.account.busiest_thread_share < BUSY_SHARE_MIN {
            continue;
        }
        let group = process.cgroup.as_deref().unwrap_or_default();
        let verdicts = kinds::verdicts(&Case {
            slices: &slices,
            gains: &Gains::default(),
            unseen: &trace.unseen,
            facts,
            lasting: &LastingSyncs::default(),
            cpu_limit: cpu_limit.filter(|limit| limits::is_in(group, &limit.of)),
            untimed: &UntimedSyncs::default(),
            lasting_process: "",
        });
        let Some(first) = verdicts.into_iter().next().filter(Verdict::costs) else {
            continue;
        };
        if whole
            .iter()
            .chain(&found)
            .all(|other| other.kind != first.kind)
        {
            found.push(Verdict {
                process: Some(process.name),
                ..first
            });
        }
    }
    found
}
