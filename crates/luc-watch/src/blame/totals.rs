//! Whom the control groups of a journal wait for, as totals since a watch began.
//!
//! A bounded number of groups have totals of their own for as long as they exist. All others, and
//! those that are gone, share one, so each total only grows.

use std::collections::{BTreeMap, BTreeSet};

use luc_model::blame::{Asker, Blame, UNKNOWN_GROUP, WaitedTime};

/// More groups would be too many series for a page that is read every few seconds: each pair of
/// groups has up to three.
const SHOWN_MAX: usize = 20;

/// One that waits, asks for commits, or is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// A control group by its path.
    Group(String),
    /// The groups without totals of their own.
    Others,
    /// The commits that no sync asked for.
    Nobody,
    /// The group, or who asked for the commit, is unknown.
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlameTotals {
    /// Commits by the one who asked for them first.
    pub commits_asked: BTreeMap<Party, u64>,
    /// By the one who waited, and the one waited for.
    pub waited: BTreeMap<(Party, Party), WaitedTime>,
}

impl BlameTotals {
    /// Adds what control groups did meanwhile.
    pub(super) fn add(&mut self, blame: &Blame) {
        let mut shown = self.shown();
        let mut party = |name: &str| {
            let is_shown = shown.contains(name);
            if name == UNKNOWN_GROUP {
                Party::Unknown
            } else if is_shown || shown.len() < SHOWN_MAX {
                shown.insert(name.to_owned());
                Party::Group(name.to_owned())
            } else {
                Party::Others
            }
        };
        for waiter in &blame.waiters {
            let me = party(&waiter.name);
            if waiter.commits_asked > 0 {
                *self.commits_asked.entry(me.clone()).or_default() += waiter.commits_asked;
            }
            for other in &waiter.waited_for {
                let blamed = match (other.asker, &other.name) {
                    (Asker::Known, Some(name)) => party(name),
                    (Asker::Nobody, _) => Party::Nobody,
                    (Asker::Known | Asker::Unknown, _) => Party::Unknown,
                };
                let pair = (me.clone(), blamed);
                *self.waited.entry(pair).or_default() += other.time;
            }
        }
        let commits = &blame.commits;
        for (party, asked) in [
            (Party::Nobody, commits.unasked),
            (Party::Unknown, commits.unknown),
        ] {
            if asked > 0 {
                *self.commits_asked.entry(party).or_default() += asked;
            }
        }
    }

    /// Counts the groups that are gone among the others.
    pub(super) fn forget(&mut self, exists: impl Fn(&str) -> bool) {
        let gone = |party: &Party| matches!(party, Party::Group(name) if !exists(name));
        let kept = |party: Party| {
            if gone(&party) { Party::Others } else { party }
        };
        for (party, asked) in std::mem::take(&mut self.commits_asked) {
            *self.commits_asked.entry(kept(party)).or_default() += asked;
        }
        for ((waiter, blamed), time) in std::mem::take(&mut self.waited) {
            let pair = (kept(waiter), kept(blamed));
            *self.waited.entry(pair).or_default() += time;
        }
    }

    /// The groups that have totals of their own.
    fn shown(&self) -> BTreeSet<String> {
        let pairs = self.waited.keys();
        let all = pairs.flat_map(|(waiter, blamed)| [waiter, blamed]);
        let groups = all
            .chain(self.commits_asked.keys())
            .filter_map(|party| match party {
                Party::Group(name) => Some(name.clone()),
                Party::Others | Party::Nobody | Party::Unknown => None,
            });
        groups.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_model::blame::{Commits, WaitedFor, Waiter};

    fn group(name: &str) -> Party {
        Party::Group(name.into())
    }

    /// A group asks for one commit, and waits 10 ns for each of the others.
    fn blame(name: &str, others: &[&str]) -> Blame {
        let other_of = |other: &&str| WaitedFor {
            asker: Asker::Known,
            name: Some((*other).to_owned()),
            time: WaitedTime {
                commits_ns: 10.0,
                ..WaitedTime::default()
            },
            ..WaitedFor::default()
        };
        let waiter = Waiter {
            name: name.into(),
            commits_asked: 1,
            waited_for: others.iter().map(other_of).collect(),
            ..Waiter::default()
        };
        Blame {
            waiters: vec![waiter],
            commits: Commits {
                all: 3,
                unasked: 2,
                unknown: 0,
            },
        }
    }

    fn commits_ns(totals: &BlameTotals, waiter: &Party, blamed: &Party) -> f64 {
        let pair = (waiter.clone(), blamed.clone());
        totals.waited.get(&pair).map_or(0.0, |time| time.commits_ns)
    }

    #[test]
    fn a_group_that_is_gone_counts_among_the_others() {
        let mut totals = BlameTotals::default();
        totals.add(&blame("/a", &["/b", UNKNOWN_GROUP]));
        totals.add(&blame("/a", &["/b"]));
        assert!((commits_ns(&totals, &group("/a"), &group("/b")) - 20.0).abs() < 1e-9);
        assert!((commits_ns(&totals, &group("/a"), &Party::Unknown) - 10.0).abs() < 1e-9);
        let asked = BTreeMap::from([(group("/a"), 2), (Party::Nobody, 4)]);
        assert_eq!(totals.commits_asked, asked);
        totals.forget(|name| name == "/b");
        assert!((commits_ns(&totals, &Party::Others, &group("/b")) - 20.0).abs() < 1e-9);
        let asked = BTreeMap::from([(Party::Others, 2), (Party::Nobody, 4)]);
        assert_eq!(totals.commits_asked, asked);
    }

    #[test]
    fn the_number_of_groups_is_bounded() {
        let mut totals = BlameTotals::default();
        for number in 0..SHOWN_MAX + 5 {
            totals.add(&blame(&format!("/{number}"), &["/slow"]));
        }
        assert_eq!(totals.shown().len(), SHOWN_MAX);
        let others = commits_ns(&totals, &Party::Others, &group("/slow"));
        assert!((others - 60.0).abs() < 1e-9, "{others}");
        let pairs = (SHOWN_MAX + 1).pow(2);
        assert!(totals.waited.len() <= pairs);
    }
}
