//! Syncs that last longer than the watch can show.

use super::{Kind, Standing};
use crate::diagnosis::evidence::{Case, Verdict, VerdictKind};
use crate::diagnosis::facts::Facts;
use crate::diagnosis::slices::Estimate;
use crate::diagnosis::{Diagnosis, words};
use crate::lasting::LastingSyncs;
use crate::stats::share;
use luc_trace::Unseen;

/// A shorter sync does not make anybody ask.
const LASTING_NS_MIN: u64 = 1_000_000_000;
/// At the end of any watch some syncs may be going on. One is worth a verdict if it has taken this
/// many times as long as the longest that was seen whole.
const TIMES_LONGEST_MIN: u64 = 2;

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::LastingSyncs,
    name: "lasting syncs",
    what: "syncs do not end",
    answer: Some(answer),
    by_module: false,
    holds,
    verdict,
    advise,
    undermined: |_| false,
    of_luc: false,
    has_sufferers: false,
    standing: Standing::Cause,
    largest: None,
};

pub(super) fn holds(case: &Case<'_>) -> bool {
    let lasting = case.lasting;
    let usual_ns = lasting.longest_whole_ns.saturating_mul(TIMES_LONGEST_MIN);
    lasting.longest_ns >= LASTING_NS_MIN.max(usual_ns)
}

fn verdict(case: &Case<'_>) -> Verdict {
    let LastingSyncs {
        going_on,
        ended,
        longest_ns,
        total_ns,
        ..
    } = *case.lasting;
    let total_ns = total_ns as f64;
    let all_ns = total_ns + case.account().operations_ns;
    let parts = [
        (
            going_on,
            words::counted(going_on, "sync is going on", "syncs are going on"),
        ),
        (
            ended,
            words::counted(
                ended,
                "sync began before the watch",
                "syncs began before the watch",
            ),
        ),
    ];
    let parts = parts.into_iter().filter(|(syncs, _)| *syncs > 0);
    let parts: Vec<String> = parts.map(|(_, text)| text).collect();
    let waits = cause(case).map_or_else(String::new, |cause| format!(", waiting for {cause}"));
    let commit = case.facts.commit_waits_for.as_ref();
    let commit = commit.map_or_else(String::new, |cause| {
        format!(" The running commit waits for {cause}.")
    });
    let text = format!(
        "{}; the longest took at least {{}}, by {}{waits}.{commit}",
        parts.join(", "),
        case.lasting_process
    );
    let verdict = Verdict {
        kind: VerdictKind::LastingSyncs,
        process: None,
        cost_share: Estimate::exact(share(total_ns, all_ns)),
        evidence: Vec::new(),
    };
    let numbers = [
        ("least_longest_sync_ns", longest_ns as f64),
        ("going_on_sync_events", going_on as f64),
        ("earlier_sync_events", ended as f64),
    ];
    verdict.with(
        &text,
        numbers.map(|(name, value)| (name, Estimate::exact(value))),
    )
}

/// Names the cause of the longest sync's wait, if it is known.
fn cause<'a>(case: &Case<'a>) -> Option<&'a str> {
    let sync = case.lasting.longest.as_ref()?;
    let of_stack = case.facts.sync_waits.get(&sync.pid).map(String::as_str);
    of_stack.or((sync.asked_ns() > sync.begin_ns).then_some("a journal commit"))
}

fn answer(verdict: &Verdict, _: &Unseen) -> String {
    let number = |name: &str| verdict.number(name).unwrap_or(0.0);
    let longest = words::time(number("least_longest_sync_ns"));
    let syncs = number("going_on_sync_events");
    if syncs > 1.0 {
        let syncs = words::three(syncs);
        format!("{syncs} syncs are going on, and the longest took at least {longest}")
    } else if syncs > 0.0 {
        format!("1 sync has been waiting for at least {longest}")
    } else {
        format!("a sync took at least {longest}")
    }
}

/// Adds advice for a device that does not answer. The verdict on the device gives it, too.
pub(super) fn advise(diagnosis: &Diagnosis, _: &Facts, advice: &mut Vec<String>) {
    if diagnosis.has(VerdictKind::LastingSyncs) && diagnosis.io_limit.is_none() {
        advice.push(
            "Look for errors of the device in the kernel log, and for limits on its I/O.".into(),
        );
    }
}
