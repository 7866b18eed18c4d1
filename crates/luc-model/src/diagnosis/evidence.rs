//! A verdict, and the sentences that it stands on, with the numbers in them.

use super::account::{Account, blocked_ns, syncs_per_s};
use super::facts::Facts;
use super::gain::Gains;
use super::slices::{Estimate, Slice, Slices};
use super::{unseen, words};
use crate::observed::Table;
use luc_trace::{Sight, Unseen};
use serde::Serialize;
use std::collections::BTreeMap;

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Syncs wait while commits of others run.
    SyncDelays,
    /// Writes wait for metadata that commits are writing.
    WriteDelays,
    /// Syncs spend most of their time writing data.
    DataFlush,
    /// Syncs wait for their own commit, and that for the disk.
    Device,
    /// Operations wait for space in the journal.
    JournalTooSmall,
    /// Nobody waits enough to notice.
    NoPressure,
    /// There are waits, but no cause stands out.
    Unclear,
}

impl VerdictKind {
    /// Whether it names something that costs time.
    pub fn costs(self) -> bool {
        !matches!(self, Self::NoPressure | Self::Unclear)
    }
}

/// A sentence and the numbers in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The sentence.
    pub text: String,
    /// The numbers by names that end in their units.
    pub numbers: BTreeMap<&'static str, Estimate>,
}

/// A cause, and how it is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Which.
    pub kind: VerdictKind,
    /// Its share of the time of syncs, writes and waits for the journal.
    pub cost_share: Estimate,
    /// How it is known.
    pub evidence: Vec<Evidence>,
}

/// Makes verdicts out of what the slices say.
pub(super) struct Judge<'a> {
    pub slices: &'a Slices,
    pub gains: &'a Gains,
    pub unseen: &'a Unseen,
}

impl Judge<'_> {
    fn verdict(&self, kind: VerdictKind, part_ns: impl Fn(&Account) -> f64) -> Verdict {
        let cost_share = self.slices.share(|slice| {
            let account = &slice.account;
            (account.operations_ns > 0.0).then(|| account.of_operations(part_ns(account)))
        });
        Verdict {
            kind,
            cost_share,
            evidence: Vec::new(),
        }
    }

    /// Over the slices in which syncs were served.
    fn of_served(&self, of: impl Fn(&Table) -> f64) -> Estimate {
        let served = |slice: &Slice| (slice.table.sync_events > 0).then(|| of(&slice.table));
        self.slices.estimate(served)
    }

    fn of_sync_time(&self, part_ns: impl Fn(&Account) -> f64) -> Estimate {
        self.slices.share(|slice| {
            let account = &slice.account;
            (account.sync_ns > 0.0).then(|| account.of_syncs(part_ns(account)))
        })
    }

    fn of_time(&self, share: impl Fn(&Account) -> f64) -> Estimate {
        self.slices.share(|slice| Some(share(&slice.account)))
    }

    fn per_s(&self, part_ns: impl Fn(&Account) -> f64) -> Estimate {
        let rate = |slice: &Slice| Some(slice.account.per_s(part_ns(&slice.account)));
        self.slices.estimate(rate)
    }

    fn commit_time(&self) -> Estimate {
        let mean = |slice: &Slice| (slice.table.commits > 0).then_some(slice.table.commit.mean_ns);
        self.slices.estimate(mean)
    }

    /// A part of the gain; None where what cannot be seen leaves it in doubt.
    fn believed(&self, gain: Option<Estimate>) -> Option<Estimate> {
        gain.filter(|_| unseen::doubts(self.unseen).is_empty())
    }

    pub fn sync_delays(&self) -> Verdict {
        let waited = self.of_served(|table| table.commits_waited_mean);
        let delay = self.of_served(|table| table.sync_delay_mean_ns);
        let behind = self.of_sync_time(|account| account.behind_ns);
        let events = self.of_served(|table| table.sync_events_per_commit);
        let commit = self.commit_time();
        // Counted from a sync's begin, where it is not seen when its data is written.
        let bounds = self.unseen.contains(&Sight::Flushes);
        let most = if bounds { "at most " } else { "" };
        let name = |exact, bound| if bounds { bound } else { exact };
        self.verdict(VerdictKind::SyncDelays, |account| account.behind_ns)
            .with(
                format!(
                    "A sync waits through {most}{} commits; 1 commit would do.",
                    words::number_range(waited)
                ),
                [(
                    name("commits_waited_mean_commits", "most_waited_mean_commits"),
                    waited,
                )],
            )
            .with(
                format!(
                    "It waits {most}{} for its own commit to begin.",
                    words::time_range(delay)
                ),
                [(name("sync_delay_mean_ns", "most_sync_delay_mean_ns"), delay)],
            )
            .with(
                format!(
                    "{}{} of the sync time passes while others' commits run.",
                    if bounds { "At most " } else { "" },
                    words::share_range(behind)
                ),
                [(name("behind_sync_share", "most_behind_sync_share"), behind)],
            )
            .with(
                format!(
                    "A commit serves {} syncs and takes {}.",
                    words::number_range(events),
                    words::time_range(commit)
                ),
                [
                    ("sync_events_per_commit_events", events),
                    ("commit_mean_ns", commit),
                ],
            )
            .with_gain(
                "Batching commits",
                "batching_gain_ratio",
                self.believed(self.gains.batching),
            )
    }

    pub fn write_delays(&self, journal_small: bool) -> Verdict {
        let table = &self.slices.whole.table;
        let lost = self.per_s(|account| blocked_ns(account, journal_small));
        let mut verdict = self.verdict(VerdictKind::WriteDelays, |account| {
            blocked_ns(account, journal_small)
        });
        if table.writes_delayed > 0 {
            let delayed = self.slices.share(|slice| {
                (slice.table.writes > 0).then_some(slice.table.writes_delayed_share)
            });
            let each = self.slices.estimate(|slice| {
                (slice.table.writes_delayed > 0).then_some(slice.table.write_delay_mean_ns)
            });
            verdict = verdict.with(
                format!(
                    "{} of the writes wait for metadata that a commit writes, {} each.",
                    words::share_range(delayed),
                    words::time_range(each)
                ),
                [
                    ("writes_delayed_share", delayed),
                    ("write_delay_mean_ns", each),
                ],
            );
        }
        verdict
            .with(
                format!(
                    "Commits block tasks for {} per second, all together.",
                    words::time_range(lost)
                ),
                [("blocked_per_s_ns", lost)],
            )
            .with_gain(
                "Copying buffers out",
                "copy_out_gain_ratio",
                self.believed(self.gains.copy_out),
            )
    }

    pub fn journal(&self, facts: &Facts) -> Verdict {
        let space = self.per_s(|account| account.space_ns);
        let locked = self.per_s(|account| account.locked_ns);
        let mut verdict = self
            .verdict(VerdictKind::JournalTooSmall, |account| {
                account.space_ns + account.locked_ns
            })
            .with(
                format!(
                    "Tasks wait for space in the journal for {} per second, all together.",
                    words::time_range(space)
                ),
                [("space_per_s_ns", space)],
            );
        if locked.value > 0.0 {
            verdict = verdict.with(
                format!(
                    "They wait for locked transactions for {} per second.",
                    words::time_range(locked)
                ),
                [("locked_per_s_ns", locked)],
            );
        }
        if let Some(bytes) = facts.journal_bytes {
            let blocks = facts.block_bytes.filter(|of| *of > 0).map(|of| bytes / of);
            let blocks = blocks.map(|n| format!(", {}", words::counted(n, "block", "blocks")));
            verdict = verdict.with(
                format!(
                    "The journal has {}{}.",
                    words::bytes(bytes),
                    blocks.unwrap_or_default()
                ),
                [("journal_bytes", Estimate::exact(bytes as f64))],
            );
        }
        verdict
    }

    pub fn data_flush(&self) -> Verdict {
        let flush = self.of_sync_time(|account| account.flush_ns);
        let own = self.of_sync_time(|account| account.own_ns);
        let each = self.slices.estimate(|slice| {
            let count = slice.table.sync.count;
            (count > 0).then(|| slice.account.flush_ns / count as f64)
        });
        self.verdict(VerdictKind::DataFlush, |account| account.flush_ns)
            .with(
                format!(
                    "{} of the sync time goes into writing data, {} per sync.",
                    words::share_range(flush),
                    words::time_range(each)
                ),
                [("flush_sync_share", flush), ("flush_mean_ns", each)],
            )
            .with(
                if own.value > 0.0 {
                    format!(
                        "The commit is {} of the sync time.",
                        words::share_range(own)
                    )
                } else {
                    "Next to none of the sync time is a commit's.".into()
                },
                [("own_sync_share", own)],
            )
    }

    pub fn device(&self) -> Verdict {
        let commit = self.commit_time();
        let busy = self.of_time(|account| account.commit_busy_share);
        let bounds = self.unseen.contains(&Sight::Flushes);
        let mut verdict = self.verdict(VerdictKind::Device, |account| account.own_ns);
        if self.slices.whole.table.sync_events > 0 {
            let own_only = self.slices.share(|slice| {
                (slice.table.sync_events > 0).then_some(slice.account.own_only_share)
            });
            verdict = verdict.with(
                format!(
                    "{}{} of the syncs wait for their own commit alone.",
                    if bounds { "At least " } else { "" },
                    words::share_range(own_only)
                ),
                [(
                    if bounds {
                        "least_own_only_share"
                    } else {
                        "own_only_share"
                    },
                    own_only,
                )],
            );
        }
        verdict.with(
            format!(
                "A commit takes {}, and one runs for {} of the time.",
                words::time_range(commit),
                words::share_range(busy)
            ),
            [("commit_mean_ns", commit), ("commit_busy_share", busy)],
        )
    }

    pub fn no_pressure(&self) -> Verdict {
        let busy = self.of_time(|account| account.busy_share);
        let (table, account) = (&self.slices.whole.table, &self.slices.whole.account);
        let rate = self
            .slices
            .estimate(|slice| Some(syncs_per_s(&slice.account, &slice.table)));
        let verdict = self.verdict(VerdictKind::NoPressure, |_| 0.0).with(
            match (busy.value > 0.0, unseen::any_wait(self.unseen)) {
                (true, false) => format!(
                    "Somebody syncs or waits for the journal for {} of the time.",
                    words::share_range(busy)
                ),
                (true, true) => format!(
                    "Somebody syncs, or is seen to wait for the journal, for {} of the time.",
                    words::share_range(busy)
                ),
                (false, false) => "Nobody waits for the journal.".into(),
                (false, true) => "Nobody is seen to wait for the journal.".into(),
            },
            [("busy_share", busy)],
        );
        if table.sync.count == 0 {
            return verdict.with("Nobody syncs.".into(), [("syncs_per_s", rate)]);
        }
        let verdict = verdict.with(
            format!("There are {} syncs per second.", words::number_range(rate)),
            [("syncs_per_s", rate)],
        );
        let mean = Estimate::exact(table.sync.mean_ns);
        let thread = Estimate::exact(account.busiest_thread_share);
        verdict.with(
            format!(
                "A sync takes {}; no thread spends more than {} of its time in syncs.",
                words::time(mean.value),
                words::share(thread.value)
            ),
            [("sync_mean_ns", mean), ("busiest_thread_share", thread)],
        )
    }

    pub fn unclear(&self) -> Verdict {
        if self.unseen.contains(&Sight::Writes) {
            return self.unclear_syncs();
        }
        let writing = self.slices.share(|slice| {
            let account = &slice.account;
            (account.operations_ns > 0.0).then(|| account.of_operations(account.write_ns))
        });
        let sync = self.slices.whole.table.sync;
        let mut verdict = self.verdict(VerdictKind::Unclear, |_| 0.0).with(
            format!(
                "{} of the time of syncs and writes is writing, without any wait for the journal or with short ones.",
                words::share_range(writing)
            ),
            [("write_share", writing)],
        );
        if sync.count > 0 {
            verdict = verdict.with(
                format!(
                    "A sync takes {} on average, {} at most.",
                    words::time(sync.mean_ns),
                    words::time(sync.max_ns as f64)
                ),
                [("sync_mean_ns", Estimate::exact(sync.mean_ns))],
            );
        }
        verdict
    }
}

impl Judge<'_> {
    /// Where writes cannot be seen, syncs are all that time is known of.
    fn unclear_syncs(&self) -> Verdict {
        let own = self.of_sync_time(|account| account.own_ns);
        self.verdict(VerdictKind::Unclear, |_| 0.0).with(
            format!(
                "The commit is {} of the sync time.",
                words::share_range(own)
            ),
            [("own_sync_share", own)],
        )
    }
}

impl Verdict {
    fn with<const N: usize>(
        mut self,
        text: String,
        numbers: [(&'static str, Estimate); N],
    ) -> Self {
        self.evidence.push(Evidence {
            text,
            numbers: numbers.into(),
        });
        self
    }

    fn with_gain(self, what: &str, name: &'static str, gain: Option<Estimate>) -> Self {
        let Some(gain) = gain else {
            return self;
        };
        let text = format!(
            "{what} alone would give {} the operations per second.",
            words::times_range(gain)
        );
        self.with(text, [(name, gain)])
    }
}
