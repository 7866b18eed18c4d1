//! Remedies, and the next command.

use super::facts::{BusyArray, Facts, IoLimit, Luc};
use super::gain::Gain;
use super::kinds::KINDS;
use super::{Diagnosis, Verdict, VerdictKind, unseen, words};
use crate::blame::told_apart;
use serde::Serialize;

/// A smaller gain is lost in the variation from day to day.
pub(super) const GAIN_MIN: f64 = 1.05;
/// The commit interval that ext4 uses by default, s.
const COMMIT_INTERVAL_S: u64 = 5;
/// Below this many syncs per commit, no sync asked for most commits.
const SYNCS_PER_COMMIT_OF_TIMER: f64 = 0.5;

/// Whether LUC would help, judged by both ends of the gain's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Help {
    /// The gain is noticeable, and even the lower end is a gain.
    Would,
    /// The upper end is noticeable, but the lower end is no gain or the gain itself is too small.
    May,
    /// Not even the upper end is noticeable, or too little time is lost to gain as much.
    WouldNot,
    /// There is no estimate of the gain, or it cannot be trusted.
    Unknown,
}

impl Help {
    pub(super) fn from_gain(gain: Option<&Gain>) -> Self {
        let Some(gain) = gain.filter(|gain| gain.trusted) else {
            return Self::Unknown;
        };
        let (Some(low), Some(high)) = (gain.low, gain.high) else {
            return Self::Unknown;
        };
        if high < GAIN_MIN {
            Self::WouldNot
        } else if low > 1.0 && gain.ratio >= GAIN_MIN {
            Self::Would
        } else {
            Self::May
        }
    }
}

/// Tells whether LUC is worth switching on, or trying.
pub(super) fn luc_is_offered(diagnosis: &Diagnosis) -> bool {
    let may = diagnosis.luc_help == Help::May && diagnosis.luc_obstacle.is_none();
    let is_free = diagnosis.luc != Luc::Steering && diagnosis.found_cost();
    is_free && (may || diagnosis.luc_serves())
}

/// Returns the remedies besides LUC, in sentences.
pub(super) fn advice(diagnosis: &Diagnosis, facts: &Facts) -> Vec<String> {
    let mut advice = Vec::new();
    // Given whatever the verdict: it is about data, not about time.
    if facts.fast_commit == Some(true) {
        let device = facts.device.as_deref().unwrap_or("DEVICE");
        advice.push(
            "fast_commit is on: with it, today's kernels may lose synced files after a power cut, \
             or fail to mount."
                .into(),
        );
        advice.push(format!("Unmount, then: tune2fs -O ^fast_commit {device}"));
    }
    if facts.leaves_data_cached {
        advice.push(
            "The journal is on another device. This kernel then does not flush the file system's own \
             device for a sync, so a power cut may take synced data. Mount it with dioread_lock."
                .into(),
        );
    }
    // A task may hang in a read, which is no sync.
    let costs = diagnosis.found_cost();
    let limit = diagnosis.io_limit.as_ref();
    let limit = limit.filter(|limit| costs || limit.by.keeps_requests());
    advice.extend(limit.map(IoLimit::advice));
    if !costs {
        return advice;
    }
    let waiters = diagnosis.waiters.as_deref().unwrap_or_default();
    if let Some((cause, sufferer)) = diagnosis.processes.neighbour(waiters) {
        let [makes, suffers] = told_apart(
            (&cause.name, &cause.cgroup),
            (&sufferer.name, &sufferer.cgroup),
        );
        advice.push(format!(
            "{makes} makes {} of the syncs, while {suffers} suffers {} of the lost time.",
            words::share(cause.syncs_share),
            words::share(sufferer.lost_share)
        ));
        advice.push(format!(
            "Give {makes} its own file system, or let it sync less often."
        ));
    }
    advice.extend(facts.busy_arrays.iter().map(BusyArray::advice));
    let syncer = diagnosis.processes.causes.first();
    let syncer = syncer.map(|it| it.name.as_str());
    let work = diagnosis.disk_work.iter();
    advice.extend(work.flat_map(|work| work.advice(facts, syncer)));
    for row in KINDS {
        let of_row = |verdict: &&Verdict| verdict.kind == row.of;
        if diagnosis
            .verdicts
            .iter()
            .find(of_row)
            .is_some_and(Verdict::costs)
        {
            (row.advise)(diagnosis, facts, &mut advice);
        }
    }
    options(diagnosis, facts, &mut advice);
    advice
}

/// Returns the sentences of [`advice`] that are about the device alone.
pub(super) fn device(diagnosis: &Diagnosis, facts: &Facts) -> Vec<String> {
    let mut advice = Vec::new();
    for kind in [VerdictKind::Device, VerdictKind::LastingSyncs] {
        (kind.row().advise)(diagnosis, facts, &mut advice);
    }
    advice
}

fn options(diagnosis: &Diagnosis, facts: &Facts, advice: &mut Vec<String>) {
    if facts.value("data") == Some("journal") {
        advice
            .push("With data=journal all data is written twice; data=ordered avoids that.".into());
    }
    if facts.option("sync") {
        advice.push(
            "With the mount option sync every write is a sync; without it, only fsync waits."
                .into(),
        );
    }
    if facts.option("nobarrier") || facts.value("barrier") == Some("0") {
        advice.push("Without barriers a sync guarantees nothing after a power cut.".into());
    }
    let interval_s = facts.value("commit").and_then(|value| value.parse().ok());
    if let Some(interval_s) = interval_s.filter(|s| (1..COMMIT_INTERVAL_S).contains(s)) {
        advice.push(format!(
            "With commit={interval_s} the journal commits every {interval_s} s even if no task \
             asks; the default is 5 s."
        ));
        return;
    }
    let of_timer = diagnosis.table.sync_events_per_commit < SYNCS_PER_COMMIT_OF_TIMER;
    if diagnosis.has(VerdictKind::WriteDelays) && of_timer && interval_s.is_none() {
        advice.push(
            "The timer starts most commits; commit=30 makes fewer, but a crash may then lose up to \
             30 s of unsynced changes."
                .into(),
        );
    }
}

/// Returns the command to type next.
pub(super) fn next_command(diagnosis: &Diagnosis, facts: &Facts) -> Option<String> {
    let path = path(facts);
    let delays = diagnosis.any(|kind| kind.of_luc);
    if diagnosis.luc == Luc::Steering {
        return delays.then(|| format!("luc status {path}"));
    }
    if luc_is_offered(diagnosis) {
        return Some(match (diagnosis.luc_help, diagnosis.luc) {
            (Help::May, _) => format!("luc try {path}"),
            (_, Luc::Observing) => format!("luc set {path} mode steer"),
            _ => format!("luc on {path}"),
        });
    }
    if diagnosis.verdicts.iter().any(|it| it.kind.costs()) && !diagnosis.found_cost() {
        return Some(format!("luc doctor --seconds 60 {path}"));
    }
    if diagnosis.has(VerdictKind::JournalTooSmall) {
        // The advice lists the commands, which need an unmount.
        return None;
    }
    // Another recording on that host would lack the same events.
    let seen = unseen::doubts(&diagnosis.unseen).is_empty();
    let doubtful = diagnosis.luc_help == Help::Unknown && diagnosis.luc_obstacle.is_none();
    if delays && doubtful && seen {
        return Some(format!(
            "luc trace record --on {path} --seconds 60 -o luc.trace"
        ));
    }
    None
}

/// Returns the path as the user types it.
pub(super) fn path(facts: &Facts) -> String {
    facts.path.as_deref().map_or_else(|| "PATH".into(), quoted)
}

/// Quotes a path as one word for a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_the_interval_count() {
        let help = |low, ratio, high| {
            Help::from_gain(Some(&Gain {
                of: "operations_per_s",
                ratio,
                low: Some(low),
                high: Some(high),
                trusted: true,
                doubts: Vec::new(),
                stock_error_share: 0.0,
            }))
        };
        assert_eq!(help(1.2, 1.32, 1.4), Help::Would);
        assert_eq!(help(0.97, 1.32, 1.7), Help::May);
        assert_eq!(help(1.01, 1.04, 1.06), Help::May);
        assert_eq!(help(0.9, 1.0, 1.2), Help::May);
        assert_eq!(help(0.9, 1.0, 1.04), Help::WouldNot);
        assert_eq!(help(1.01, 1.02, 1.03), Help::WouldNot);
        assert_eq!(Help::from_gain(None), Help::Unknown);
    }

    #[test]
    fn paths_are_one_word() {
        assert_eq!(quoted("/srv/data-1"), "/srv/data-1");
        assert_eq!(quoted("/srv/my data"), "'/srv/my data'");
        assert_eq!(quoted("/it's"), r"'/it'\''s'");
    }
}
