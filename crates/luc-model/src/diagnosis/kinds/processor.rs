//! Commits, or tasks that come back from one, wait for a processor.

use super::{Kind, Standing};
use crate::diagnosis::account::Account;
use crate::diagnosis::evidence::{BOUND_SHARE_MIN, Case, Evidence, Verdict, VerdictKind};
use crate::diagnosis::facts::{Busiest, CpuLimit, Facts};
use crate::diagnosis::processes::Syncer;
use crate::diagnosis::slices::Estimate;
use crate::diagnosis::{Diagnosis, words};
use crate::stats::share;
use luc_trace::Process;

/// Processes that use less of the processors' busy time are not worth naming.
const BUSIEST_SHARE_MIN: f64 = 0.25;
/// A sync that has its commit returns at once, unless its task waits for a processor.
const BACK_SHARE_MIN: f64 = 0.30;
/// Processors that are idle for longer have time for every task.
const BUSY_SHARE_MIN: f64 = 0.75;
/// The number that tells how long the journal's thread waits.
const THREAD_WAITS: &str = "processor_wait_share";

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::Processor,
    name: "processor",
    what: "syncs wait for a processor",
    answer: None,
    by_module: true,
    holds: |case| delays_commits(case) || delays_returns(case),
    verdict,
    advise,
    undermined: |_| false,
    of_luc: false,
    has_sufferers: false,
    standing: Standing::Cause,
    largest: None,
};

/// Returns the part of the time of commits for which the journal's thread waited for a processor,
/// where commits run or are waited for during `awaited_share` of the time.
fn waited_of(facts: &Facts, awaited_share: f64) -> f64 {
    facts.journal_thread.map_or(0.0, |thread| {
        // Not every wait for a commit is seen, but the thread itself uses a part of that time, too.
        let least_share = thread.waited_share + thread.ran_share;
        share(thread.waited_share, awaited_share.max(least_share))
    })
}

fn waited_share(case: &Case<'_>) -> f64 {
    let account = case.account();
    let awaited_share = share(account.awaited_ns, account.duration_ns);
    waited_of(case.facts, awaited_share)
}

/// Returns the evidence that the journal's thread waits for a processor for most of a commit;
/// `None` if it does not. Commits run for `commits_share` of the time.
pub(in crate::diagnosis) fn glimpsed(facts: &Facts, commits_share: f64) -> Option<Evidence> {
    let share = waited_of(facts, commits_share);
    let shown = words::share(share);
    (share >= BOUND_SHARE_MIN).then(|| Evidence {
        text: format!("The journal's thread waits for a processor for {shown} of a commit."),
        numbers: [(THREAD_WAITS, Estimate::exact(share))].into(),
    })
}

/// Returns the time that tasks wait for commits, ns.
fn for_commits_ns(account: &Account) -> f64 {
    account.own_ns + account.behind_ns + account.buffer_ns + account.locked_ns
}

/// Tells whether the journal's thread waits for a processor for most of a commit.
pub(super) fn delays_commits(case: &Case<'_>) -> bool {
    let (waited_share, account) = (waited_share(case), case.account());
    let lost_ns = for_commits_ns(account) * waited_share;
    waited_share >= BOUND_SHARE_MIN && case.lost(lost_ns, account.operations_ns)
}

/// Tells whether tasks wait for a processor when they have their commit. Where the processors are
/// free, the rest of a sync is a flush of the disk's cache.
fn delays_returns(case: &Case<'_>) -> bool {
    let account = case.account();
    let busy_share = case.facts.processors_busy_share.unwrap_or(0.0);
    let no_processor = case.cpu_limit.is_some() || busy_share >= BUSY_SHARE_MIN;
    no_processor
        && case.lost(account.back_ns, account.operations_ns)
        && account.of_syncs(account.back_ns) >= BACK_SHARE_MIN
}

fn verdict(case: &Case<'_>) -> Verdict {
    let waited_share = waited_share(case);
    let of_commits = if delays_commits(case) {
        waited_share
    } else {
        0.0
    };
    let back = case.of_sync_time(|account| account.back_ns);
    let verdict = case
        .verdict(VerdictKind::Processor, |account| {
            for_commits_ns(account) * of_commits + account.back_ns
        })
        .with(
            "{} of the sync time passes after the commit has ended.",
            [("back_sync_share", back)],
        );
    if case.facts.journal_thread.is_none() {
        return verdict;
    }
    verdict.with(
        "The journal's thread waits for a processor for {} of the time in which commits run or are \
         waited for.",
        [(THREAD_WAITS, Estimate::exact(waited_share))],
    )
}

fn advise(diagnosis: &Diagnosis, facts: &Facts, advice: &mut Vec<String>) {
    let mut verdicts = diagnosis.verdicts.iter();
    let waited_share = verdicts.find_map(|verdict| verdict.number(THREAD_WAITS));
    let waits = waited_share.is_some_and(|share| share >= BOUND_SHARE_MIN);
    if let Some(limit) = &diagnosis.cpu_limit {
        advice.push(limit.advice());
        if !waits {
            return;
        }
    }
    let busiest = facts.busiest.as_ref();
    let busiest = busiest.filter(|busiest| busiest.used_share >= BUSIEST_SHARE_MIN);
    advice.push(busiest.map_or_else(
        || "The processors are busy: take load off them, or add some.".into(),
        |busiest| busiest.advice(diagnosis.processes.causes.first()),
    ));
    if let Some(thread) = facts.journal_thread.filter(|_| waits) {
        advice.push(format!(
            "`renice -n -20 -p {}` lets the journal's thread go first, until the file system is \
             mounted again.",
            thread.pid
        ));
    }
}

impl Busiest {
    /// `syncer` is the process whose syncs take most time.
    fn advice(&self, syncer: Option<&Syncer>) -> String {
        let process = Process {
            name: self.name.clone(),
            cgroup: self.cgroup.clone(),
        };
        let shown = words::share(self.used_share);
        let uses = format!("{process} uses {shown} of the processors' busy time");
        if syncer.is_some_and(|it| (&it.name, &it.cgroup) == (&process.name, &process.cgroup)) {
            return format!("{uses}, and syncs, too: it needs more processors, or less work.");
        }
        format!("{uses}: lower its weight (nice, cpu.weight), or move it to another machine.")
    }
}

impl CpuLimit {
    fn advice(&self) -> String {
        let Self { of, setting, .. } = self;
        let shown = words::share(self.throttled_share);
        format!(
            "Control group {of} used all of its cpu.max ({setting}) in {shown} of the periods: raise \
             it, or let it do less."
        )
    }
}
