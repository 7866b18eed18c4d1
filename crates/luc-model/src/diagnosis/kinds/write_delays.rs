//! Writes wait for metadata that commits are writing.

use super::{Kind, Standing};
use crate::diagnosis::account::blocked_ns;
use crate::diagnosis::evidence::{Case, Verdict, VerdictKind};
use luc_trace::Sight;

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::WriteDelays,
    name: "write delays",
    what: "writes wait for commits",
    answer: None,
    by_module: true,
    holds: |case| {
        let blocked_ns = blocked_ns(case.account(), case.journal_small());
        case.lost(blocked_ns, case.writing_ns())
    },
    verdict,
    advise: |_, _, _| (),
    undermined: |unseen| unseen.contains(&Sight::Writes),
    of_luc: true,
    has_sufferers: true,
    standing: Standing::Cause,
    largest: None,
};

fn verdict(case: &Case<'_>) -> Verdict {
    let journal_small = case.journal_small();
    let table = &case.slices.whole.table;
    let lost = case.per_s(|account| blocked_ns(account, journal_small));
    let mut verdict = case.verdict(VerdictKind::WriteDelays, |account| {
        blocked_ns(account, journal_small)
    });
    if table.writes_delayed > 0 {
        let delayed = case
            .slices
            .share(|slice| (slice.table.writes > 0).then_some(slice.table.writes_delayed_share));
        let each = case.slices.estimate(|slice| {
            (slice.table.writes_delayed > 0).then_some(slice.table.write_delay_mean_ns)
        });
        verdict = verdict.with(
            "{} of the writes wait for metadata that a commit is writing, {} each.",
            [
                ("writes_delayed_share", delayed),
                ("write_delay_mean_ns", each),
            ],
        );
    }
    verdict
        .with(
            "Commits block tasks for {} per second in total.",
            [("blocked_per_s_ns", lost)],
        )
        .with_gain(
            "Copying buffers out",
            "copy_out_gain_ratio",
            case.believed(case.gains.copy_out),
        )
}
