//! There are waits, but no cause stands out.

use super::{Kind, Standing};
use crate::diagnosis::evidence::{Case, Verdict, VerdictKind};
use crate::diagnosis::slices::Estimate;
use crate::diagnosis::{unseen, words};
use luc_trace::Sight;

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::Unclear,
    name: "unclear",
    what: "there are waits, but no cause takes 10% of the time",
    answer: Some(|_, _| KIND.what.into()),
    by_module: false,
    holds: |_| true,
    verdict,
    advise: |_, _, _| (),
    undermined: unseen::any_wait,
    of_luc: false,
    has_sufferers: false,
    standing: Standing::Last,
    largest: None,
};

fn verdict(case: &Case<'_>) -> Verdict {
    if case.unseen.contains(&Sight::Writes) {
        return unclear_syncs(case);
    }
    let writing = case.slices.share(|slice| {
        let account = &slice.account;
        (account.operations_ns > 0.0).then(|| account.of_operations(account.write_ns))
    });
    let sync = case.slices.whole.table.sync;
    let mut verdict = case.verdict(VerdictKind::Unclear, |_| 0.0).with(
        "{} of the time of syncs and writes is writing, with short waits for the journal or none.",
        [("write_share", writing)],
    );
    if sync.count > 0 {
        let max = words::time(sync.max_ns as f64);
        verdict = verdict.with(
            &format!("A sync takes {{}} on average, {max} at most."),
            [("sync_mean_ns", Estimate::exact(sync.mean_ns))],
        );
    }
    verdict
}

/// Returns the verdict without writes: if they cannot be seen, only the time of syncs is known.
fn unclear_syncs(case: &Case<'_>) -> Verdict {
    let own = case.of_sync_time(|account| account.own_ns);
    case.verdict(VerdictKind::Unclear, |_| 0.0).with(
        "The commit is {} of the sync time.",
        [("own_sync_share", own)],
    )
}
