//! Writes wait for metadata that commits are writing.

use super::{Kind, Standing};
use crate::diagnosis::account::blocked_ns;
use crate::diagnosis::evidence::{Case, Verdict, VerdictKind};
use crate::diagnosis::facts::Facts;
use crate::diagnosis::{Diagnosis, Estimate};
use luc_trace::{BlockKind, Sight};

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
    advise,
    undermined: |unseen| unseen.contains(&Sight::Writes),
    of_luc: true,
    has_sufferers: true,
    standing: Standing::Cause,
    largest: None,
};

const IN_TABLES: &str = "inode_table_wait_share";
const ONLY_OTHERS: &str = "only_others_share";

/// Writers that share blocks of inodes and no files need not wait for each other.
fn advise(diagnosis: &Diagnosis, facts: &Facts, advice: &mut Vec<String>) {
    let mut verdicts = diagnosis.verdicts.iter();
    let Some(verdict) = verdicts.find(|verdict| verdict.kind == KIND.of) else {
        return;
    };
    let at_least_half = |name| verdict.number(name).is_some_and(|share| share >= 0.5);
    // LUC does it without another file system.
    if diagnosis.luc_serves() || !at_least_half(IN_TABLES) || !at_least_half(ONLY_OTHERS) {
        return;
    }
    let size = facts.block_bytes.map_or_else(
        || "`mke2fs -I` and the size of a block".to_owned(),
        |bytes| format!("`mke2fs -I {bytes}`"),
    );
    advice.push(format!(
        "The writers share blocks of inodes, not files: a new file system made with {size} has one \
         inode in each block."
    ));
}

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
    let sharing = &case.slices.whole.sharing;
    if let Some(parts) = sharing.parts() {
        let share = |kind| Estimate::exact(sharing.time_share(kind));
        verdict = verdict.with(
            &format!("The blocks that they wait for: {parts}."),
            [
                (IN_TABLES, share(BlockKind::InodeTable)),
                ("directory_wait_share", share(BlockKind::Directory)),
            ],
        );
    }
    if sharing.told > 0 {
        let only_others = case.slices.share(|slice| slice.sharing.only_others_share());
        verdict = verdict.with(
            "In {} of the waits for inode tables, only other files' inodes were in the commit.",
            [(ONLY_OTHERS, only_others)],
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
