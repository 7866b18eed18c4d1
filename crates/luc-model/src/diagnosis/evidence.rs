//! A verdict, and the sentences and numbers that support it.

use super::account::Account;
use super::facts::{CpuLimit, Facts, IoLimit};
use super::gain::Gains;
use super::slices::{Estimate, Slice, Slices};
use super::{unseen, words};
use crate::lasting::LastingSyncs;
use crate::observed::ObservedTable;
use crate::stats::share;
use crate::untimed::UntimedSyncs;
use luc_trace::Unseen;
use serde::Serialize;
use std::collections::BTreeMap;

/// A cause is named only if it takes at least this share of the time of the operations that it
/// hits, because that time varies by as much anyway.
pub(super) const PART_MIN: f64 = 0.10;
/// It must also take this much of all threads' time per second: users do not notice less.
pub(super) const LOST_PER_S_MIN_NS: f64 = 20e6;

/// Syncs that spend this share of their time on data, on the disk, or on waits for a processor, are
/// bound by it.
pub(super) const BOUND_SHARE_MIN: f64 = 0.50;

/// Syncs rarer than this, such as those of an editor or a logger, hardly ever coincide.
pub(super) const RARE_SYNCS_PER_S: f64 = 2.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    LastingSyncs,
    SyncDelays,
    WriteDelays,
    DataFlush,
    Device,
    JournalTooSmall,
    Processor,
    NoPressure,
    Unclear,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// A sentence.
    pub text: String,
    /// The numbers in it, by names that end in their units.
    pub numbers: BTreeMap<&'static str, Estimate>,
}

/// A cause with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub kind: VerdictKind,
    /// The process whose time it is about; `None` for the time of all.
    pub process: Option<String>,
    /// The cause's share of the time of syncs, writes and waits for the journal.
    pub cost_share: Estimate,
    pub evidence: Vec<Evidence>,
}

/// The evidence for verdicts.
pub(super) struct Case<'a> {
    pub slices: &'a Slices,
    pub gains: &'a Gains,
    pub unseen: &'a Unseen,
    pub facts: &'a Facts,
    pub lasting: &'a LastingSyncs,
    pub cpu_limit: Option<&'a CpuLimit>,
    pub untimed: &'a UntimedSyncs,
    /// The process of the longest of these syncs.
    pub lasting_process: &'a str,
}

impl Case<'_> {
    pub fn account(&self) -> &Account {
        &self.slices.whole.account
    }

    /// Tells whether a part of some time is large enough to be named.
    pub fn lost(&self, part_ns: f64, whole_ns: f64) -> bool {
        let per_s = self.account().per_s(part_ns);
        share(part_ns, whole_ns) >= PART_MIN && per_s >= LOST_PER_S_MIN_NS
    }

    /// Returns the time of writes, and of waits for the journal elsewhere.
    pub fn writing_ns(&self) -> f64 {
        self.account().write_ns + self.account().elsewhere_ns
    }

    /// Tells whether tasks lose much time waiting for space. They may wait in syncs, too, in the
    /// data flush.
    pub fn journal_small(&self) -> bool {
        let space_ns = self.account().space_ns;
        self.lost(space_ns, self.account().operations_ns) || self.lost(space_ns, self.writing_ns())
    }

    pub(super) fn verdict(&self, kind: VerdictKind, part_ns: impl Fn(&Account) -> f64) -> Verdict {
        let cost_share = self.slices.share(|slice| {
            let account = &slice.account;
            (account.operations_ns > 0.0).then(|| account.of_operations(part_ns(account)))
        });
        Verdict {
            kind,
            process: None,
            cost_share,
            evidence: Vec::new(),
        }
    }

    /// Estimates a value over the slices in which syncs were served.
    pub(super) fn of_served(&self, of: impl Fn(&ObservedTable) -> f64) -> Estimate {
        let served = |slice: &Slice| (slice.table.sync_events > 0).then(|| of(&slice.table));
        self.slices.estimate(served)
    }

    pub(super) fn of_sync_time(&self, part_ns: impl Fn(&Account) -> f64) -> Estimate {
        self.slices.share(|slice| {
            let account = &slice.account;
            (account.sync_ns > 0.0).then(|| account.of_syncs(part_ns(account)))
        })
    }

    pub(super) fn of_time(&self, share: impl Fn(&Account) -> f64) -> Estimate {
        self.slices.share(|slice| Some(share(&slice.account)))
    }

    pub(super) fn per_s(&self, part_ns: impl Fn(&Account) -> f64) -> Estimate {
        let rate = |slice: &Slice| Some(slice.account.per_s(part_ns(&slice.account)));
        self.slices.estimate(rate)
    }

    pub(super) fn commit_time(&self) -> Estimate {
        let mean = |slice: &Slice| (slice.table.commits > 0).then_some(slice.table.commit.mean_ns);
        self.slices.estimate(mean)
    }

    /// Returns a part of the gain; `None` if unseen events make it doubtful.
    pub(super) fn believed(&self, gain: Option<Estimate>) -> Option<Estimate> {
        gain.filter(|_| unseen::doubts(self.unseen).is_empty())
    }
}

impl Verdict {
    /// Adds a sentence. Each `{}` in it stands for the next number.
    pub(super) fn with<const N: usize>(
        mut self,
        text: &str,
        numbers: [(&'static str, Estimate); N],
    ) -> Self {
        let mut parts = text.split("{}");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for ((name, estimate), part) in numbers.iter().zip(parts) {
            text += &words::range_of(name, *estimate);
            text += part;
        }
        self.evidence.push(Evidence {
            text,
            numbers: numbers.into(),
        });
        self
    }

    /// Names the time that its share is a part of.
    pub(super) fn whole(&self, unseen: &Unseen) -> String {
        let time = unseen::operations(unseen);
        match &self.process {
            Some(process) => format!("{time} of {process}"),
            None => time.to_owned(),
        }
    }

    /// Adds the sentence about a limit that syncs wait for.
    pub(super) fn limited_by(&mut self, limit: &IoLimit) {
        self.evidence.push(Evidence {
            text: limit.evidence(),
            numbers: [("io_limit_used_share", Estimate::exact(limit.used_share))].into(),
        });
    }

    /// Returns a number of the evidence.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let mut found = self.evidence.iter().filter_map(|it| it.numbers.get(name));
        found.next().map(|estimate| estimate.value)
    }

    pub(super) fn with_gain(self, what: &str, name: &'static str, gain: Option<Estimate>) -> Self {
        let text = format!("{what} alone would give {{}} the operations per second.");
        match gain {
            Some(gain) => self.with(&text, [(name, gain)]),
            None => self,
        }
    }
}
