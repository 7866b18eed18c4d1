//! Operations wait for space in the journal.

use super::{Kind, Standing};
use crate::diagnosis::evidence::{Case, Verdict, VerdictKind};
use crate::diagnosis::facts::Facts;
use crate::diagnosis::slices::Estimate;
use crate::diagnosis::words;
use luc_trace::Sight;

/// Largest journal to advise: a larger one takes long to replay after a crash, and keeps more
/// buffers in the page cache.
const JOURNAL_BYTES_MAX: u64 = 1 << 30;
/// Smallest journal to advise, if the device has room for it.
const JOURNAL_BYTES_MIN: u64 = 256 << 20;
/// Part of a device that a journal may take.
const DEVICE_SHARE_MAX: u64 = 8;

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::JournalTooSmall,
    name: "journal too small",
    what: "the journal is too small",
    answer: None,
    by_module: false,
    holds: |case| case.journal_small(),
    verdict,
    advise: |_, facts, advice| larger_journal(facts, advice),
    undermined: |unseen| unseen.contains(&Sight::Writes),
    of_luc: false,
    has_sufferers: true,
    standing: Standing::Cause,
    largest: None,
};

fn verdict(case: &Case<'_>) -> Verdict {
    let space = case.per_s(|account| account.space_ns);
    let locked = case.per_s(|account| account.locked_ns);
    let mut verdict = case
        .verdict(VerdictKind::JournalTooSmall, |account| {
            account.space_ns + account.locked_ns
        })
        .with(
            "Tasks wait for space in the journal for {} per second in total.",
            [("space_per_s_ns", space)],
        );
    if locked.value > 0.0 {
        verdict = verdict.with(
            "They wait for locked transactions for {} per second.",
            [("locked_per_s_ns", locked)],
        );
    }
    if let Some(bytes) = case.facts.journal_bytes {
        let blocks = case.facts.block_bytes.and_then(|of| bytes.checked_div(of));
        let blocks = blocks.map(|n| format!(", {}", words::counted(n, "block", "blocks")));
        let (shown, blocks) = (words::bytes(bytes), blocks.unwrap_or_default());
        verdict = verdict.with(
            &format!("The journal has {shown}{blocks}."),
            [("journal_bytes", Estimate::exact(bytes as f64))],
        );
    }
    verdict
}

fn larger_journal(facts: &Facts, advice: &mut Vec<String>) {
    let size = facts.journal_bytes;
    let apart = facts.journal_device.as_deref();
    let room = facts
        .device_bytes
        .filter(|_| apart.is_none())
        .map_or(u64::MAX, |bytes| bytes / DEVICE_SHARE_MAX);
    let useful = size.map_or(JOURNAL_BYTES_MAX, |bytes| {
        let larger = bytes.saturating_mul(4);
        larger.clamp(JOURNAL_BYTES_MIN, JOURNAL_BYTES_MAX)
    });
    let wanted_mib = useful.min(room) >> 20;
    if size.is_some_and(|bytes| bytes >= wanted_mib << 20) {
        let limit = if useful <= room {
            "as is useful; the disk is too slow to empty it."
        } else {
            "as its device has room for; a larger device would help."
        };
        advice.push(format!("The journal is as large {limit}"));
        return;
    }
    let shown = words::bytes(wanted_mib << 20);
    let device = facts.device.as_deref().unwrap_or("DEVICE");
    let leave = format!("tune2fs -O ^has_journal {device}");
    advice.push(format!("A journal of {shown} would have room."));
    if let Some(apart) = apart {
        let block = facts.block_bytes.unwrap_or(4096);
        advice.extend([
            format!(
                "It has {apart} for itself. With a larger device, LARGER, as fast, unmount the \
                 file system, then:"
            ),
            format!("mke2fs -b {block} -O journal_dev LARGER"),
            leave,
            format!("tune2fs -J device=LARGER {device}"),
        ]);
    } else {
        advice.extend([
            "With that much space free, unmount the file system, then:".into(),
            leave,
            format!("tune2fs -J size={wanted_mib} {device}"),
        ]);
    }
    advice.push("Then look again.".into());
}
