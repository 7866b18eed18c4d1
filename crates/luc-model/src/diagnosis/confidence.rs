//! How far to trust a diagnosis, with the reasons in words.

use super::evidence::{Verdict, VerdictKind};
use super::facts::{Facts, Luc};
use super::slices::Slices;
use super::{unseen, words};
use crate::observed::{Observed, ObservedCommit};
use crate::stats::share;
use crate::untimed::UntimedSyncs;
use luc_trace::{Sight, Trace, Unseen};
use serde::Serialize;

/// ext4 commits every 5 s by itself, which a shorter trace may not show.
const SHORT_NS: f64 = 5e9;
/// Less than a second says nothing.
const TOO_SHORT_NS: f64 = 1e9;
/// With fewer syncs and writes than this, a share of them can be off by 10 percentage points.
const EVENTS_MIN: u64 = 100;
/// A larger share of lost spans, or of syncs without their commit, matters.
pub(super) const LOST_SHARE: f64 = 0.01;
/// A larger share of them makes sums meaningless.
const LOST_SHARE_BAD: f64 = 0.10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Look again before acting on the diagnosis.
    Low,
    /// Probably right.
    Medium,
    /// There is no reason for doubt.
    #[default]
    High,
}

impl Level {
    pub fn text(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Confidence {
    /// The lowest level that any reason leads to.
    pub level: Level,
    /// The doubts, one sentence each.
    pub reasons: Vec<String>,
}

impl Confidence {
    pub(super) fn new(
        trace: &Trace,
        observed: &Observed,
        slices: &Slices,
        verdicts: &[Verdict],
        facts: &Facts,
        luc: Luc,
    ) -> Self {
        let mut confidence = Self::default();
        let (table, account) = (&slices.whole.table, &slices.whole.account);

        let duration_ns = account.duration_ns;
        if duration_ns < SHORT_NS {
            let level = if duration_ns < TOO_SHORT_NS {
                Level::Low
            } else {
                Level::Medium
            };
            let why = if duration_ns > 0.0 {
                let shown = words::time(duration_ns);
                format!("It was watched for only {shown}; the journal's own timer fires every 5 s.")
            } else {
                "No event was seen, and it is not known how long it was watched.".into()
            };
            confidence.lower(level, why);
        }
        let events = table.sync.count + table.writes;
        // A few events are enough to tell that little happens.
        let shares_matter = verdicts.iter().any(|verdict| {
            !matches!(
                verdict.kind,
                VerdictKind::NoPressure | VerdictKind::LastingSyncs
            )
        });
        if shares_matter && events < EVENTS_MIN {
            let shown = words::counted(events, "sync or write", "syncs and writes");
            let why = format!("It holds only {shown}, too few for reliable shares.");
            confidence.lower(Level::Medium, why);
        }
        if verdicts.iter().any(|it| it.kind.costs() && !it.costs()) {
            let why = "A loss above may be chance: its interval includes 0.";
            confidence.lower(Level::Low, why.into());
        }
        if trace.spans_lost > 0 {
            confidence.lower_by(unseen::lost_share(trace), unseen::lost(trace));
        }
        if let Some(damage) = &trace.damage {
            let why = format!("It was read only up to the damage: {damage}.");
            confidence.lower(Level::Medium, why);
        }
        let unserved_share = share(table.syncs_unserved as f64, table.sync.count as f64);
        if unserved_share > LOST_SHARE {
            confidence.lower_by(unserved_share, unseen::unserved(unserved_share));
        }
        confidence.lower_by_fast_commits(facts, table.commits);
        let missing = commits_missing(observed);
        let missing_share = share(missing, missing + observed.commits.len() as f64);
        if missing > 0.0 {
            let shown = words::share(missing_share);
            let why =
                format!("{shown} of the commits are missing: there are gaps in their numbers.");
            confidence.lower_by(missing_share, why);
        }
        confidence.lower_by_unseen(&trace.unseen, verdicts, facts);
        if luc == Luc::Steering {
            let why = "LUC was steering: these are the remaining delays, and no gain can be \
                       predicted.";
            confidence.lower(Level::Medium, why.into());
        }
        confidence
    }

    /// Lowers the level by the share of waits for commits whose time is unknown.
    pub(super) fn lower_by_untimed(&mut self, untimed: &UntimedSyncs, syncs: u64) {
        let untimed_share = share(untimed.count as f64, untimed.count as f64 + syncs as f64);
        if untimed_share <= LOST_SHARE {
            return;
        }
        let operations = words::counted(
            untimed.count,
            "operation that waits",
            "operations that wait",
        );
        let shown = words::share(untimed_share);
        self.lower_by(
            untimed_share,
            format!(
                "Besides syncs there are {operations} for a commit by themselves, {shown} of both: \
                 changes of synchronous files and directories, or of inodes by NFS. Most are by \
                 {}. Their time is unknown.",
                untimed.most_by.name
            ),
        );
    }

    /// Lowers the level by the share of fast commits, which no trace shows.
    fn lower_by_fast_commits(&mut self, facts: &Facts, commits: u64) {
        match facts.fast_commits {
            Some(fast) => {
                let fast_share = share(fast as f64, fast as f64 + commits as f64);
                if fast_share > LOST_SHARE {
                    let shown = unseen::fast_commits(fast, fast_share);
                    self.lower_by(fast_share, format!("{shown}, cannot be traced."));
                }
            }
            None if facts.fast_commit == Some(true) => {
                let why = "The number of fast commits, which cannot be traced, is unknown.";
                self.lower(Level::Medium, why.into());
            }
            None => {}
        }
    }

    fn lower(&mut self, level: Level, why: String) {
        self.level = self.level.min(level);
        self.reasons.push(why);
    }

    /// Lowers the level once for all unseen kinds. No verdict depends on opens and closes.
    fn lower_by_unseen(&mut self, unseen: &Unseen, verdicts: &[Verdict], facts: &Facts) {
        if unseen.is_empty() {
            return;
        }
        let undermined = verdicts.iter().any(|it| (it.kind.row().undermined)(unseen));
        let matters = |sight: &Sight| !matches!(sight, Sight::Opens | Sight::Closes);
        let level = match (undermined, unseen.iter().any(matters)) {
            (true, _) => Level::Low,
            (false, true) => Level::Medium,
            (false, false) => Level::High,
        };
        self.level = self.level.min(level);
        if facts.unseen_why.is_empty() {
            let texts = Sight::texts(unseen);
            self.reasons.push(format!("Not seen: {texts}."));
        } else {
            self.reasons.extend(facts.unseen_why.iter().cloned());
        }
    }

    fn lower_by(&mut self, share: f64, why: String) {
        let level = if share > LOST_SHARE_BAD {
            Level::Low
        } else if share > LOST_SHARE {
            Level::Medium
        } else {
            Level::High
        };
        self.lower(level, why);
    }
}

/// Counts the commits that the trace lacks. Commits are numbered without gaps, so a gap means
/// unseen commits. A large gap means another mount, or a bad number.
fn commits_missing(observed: &Observed) -> f64 {
    const GAP_MAX: u32 = 1000;
    let gap = |pair: &[ObservedCommit]| pair[1].tid.wrapping_sub(pair[0].tid).wrapping_sub(1);
    let gaps = observed.commits.windows(2).map(gap);
    gaps.filter(|gap| *gap <= GAP_MAX).map(f64::from).sum()
}
