//! Totals of control groups, a bounded number of them.
//!
//! The first [`SHOWN_MAX`] groups that sync have totals of their own for as long as they exist. All
//! others, and groups that are gone, share one total. So each total only grows, and their sum is
//! that of all groups.

use std::collections::BTreeMap;

use luc_bpf::{OTHER_CGROUPS, TaskCounts, Tracer, TracerError};
use luc_host::{System, process};

/// More groups would be too many series for a page that is read every few seconds.
const SHOWN_MAX: usize = 200;

/// Totals by control group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTotals {
    /// The path of each group, with its total.
    pub shown: Vec<(String, TaskCounts)>,
    /// The total of all other groups.
    pub others: TaskCounts,
}

/// Follows the tracer's totals of control groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Paths of the groups that are shown, by their ids.
    shown: BTreeMap<u64, String>,
    /// The last totals of those that are not.
    hidden: BTreeMap<u64, TaskCounts>,
    others: TaskCounts,
}

impl Groups {
    /// Reads the totals of a tracer, which forgets the groups that are gone; `None` where no
    /// group has a name, as without a hierarchy of version 2.
    pub fn read(
        &mut self,
        tracer: &Tracer,
        system: &dyn System,
    ) -> Result<Option<GroupTotals>, TracerError> {
        let Some(root) = process::cgroup_root(system) else {
            return Ok(None);
        };
        let counted = tracer.cgroups()?;
        let is_new = |id: &u64| *id != OTHER_CGROUPS && !self.shown.contains_key(id);
        // There may be ten thousand groups: they are listed for a new one only.
        let listed = counted.iter().any(|(id, _)| is_new(id));
        let listed = listed.then(|| process::cgroups(system));
        let path = |id: u64, known: Option<&String>| match (&listed, known) {
            (Some(listed), _) => listed.get(&id).cloned(),
            (None, Some(path)) => process::is_cgroup(system, &root, path, id).then(|| path.clone()),
            (None, None) => None,
        };
        let paths: Vec<Option<String>> = counted
            .iter()
            .map(|(id, _)| path(*id, self.shown.get(id)))
            .collect();
        let gone = counted
            .iter()
            .zip(&paths)
            .filter(|((id, _), path)| *id != OTHER_CGROUPS && path.is_none());
        for ((id, _), _) in gone {
            tracer.forget_cgroup(*id)?;
        }
        let counted = counted.into_iter().zip(paths);
        Ok(Some(self.add(
            counted.map(|((id, counts), path)| (id, path, counts)),
        )))
    }

    /// Adds up totals of groups by their ids; a group without a path is gone.
    fn add(
        &mut self,
        counted: impl IntoIterator<Item = (u64, Option<String>, TaskCounts)>,
    ) -> GroupTotals {
        let mut shown = Vec::new();
        for (id, path, counts) in counted {
            let before = self.hidden.get(&id).copied();
            let may_show =
                self.shown.contains_key(&id) || before.is_none() && self.shown.len() < SHOWN_MAX;
            match path {
                Some(path) if may_show => {
                    self.shown.insert(id, path.clone());
                    shown.push((path, counts));
                    continue;
                }
                _ if id == OTHER_CGROUPS => self.hidden.insert(id, counts),
                Some(_) => self.hidden.insert(id, counts),
                None => {
                    self.shown.remove(&id);
                    self.hidden.remove(&id)
                }
            };
            self.others += counts.since(before.unwrap_or_default());
        }
        shown.sort_unstable();
        GroupTotals {
            shown,
            others: self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(syncs: u64) -> TaskCounts {
        TaskCounts {
            syncs,
            sync_ns: 10 * syncs,
            ..TaskCounts::default()
        }
    }

    /// Groups by their numbers; without a name they are gone.
    fn of(groups: &[(u64, &str, u64)]) -> Vec<(u64, Option<String>, TaskCounts)> {
        let path = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let one = |(id, name, syncs): &(u64, &str, u64)| (*id, path(name), counts(*syncs));
        groups.iter().map(one).collect()
    }

    #[test]
    fn a_group_that_is_gone_counts_among_the_others() {
        let mut groups = Groups::default();
        let first = groups.add(of(&[(1, "/a", 5), (2, "/b", 7)]));
        let shown = vec![("/a".to_owned(), counts(5)), ("/b".to_owned(), counts(7))];
        assert_eq!((first.shown, first.others), (shown, counts(0)));
        let second = groups.add(of(&[(1, "", 6), (2, "/b", 8)]));
        let shown = vec![("/b".to_owned(), counts(8))];
        assert_eq!((second.shown, second.others), (shown, counts(6)));
        // The tracer has forgotten it, and has counted groups for which it has no room.
        let third = groups.add(of(&[(2, "/b", 9), (3, "", 1), (OTHER_CGROUPS, "", 10)]));
        assert_eq!(third.others, counts(17));
        let fourth = groups.add(of(&[(2, "/b", 9), (OTHER_CGROUPS, "", 30)]));
        assert_eq!(fourth.others, counts(37));
    }

    #[test]
    fn the_number_of_totals_is_bounded_and_each_only_grows() {
        let mut groups = Groups::default();
        let all = |syncs: u64, gone: u64| {
            let one = move |id: u64| {
                let path = (id != gone).then(|| format!("/{id}"));
                (id, path, counts(syncs))
            };
            (1..=SHOWN_MAX as u64 + 3).map(one)
        };
        let first = groups.add(all(2, 0));
        assert_eq!((first.shown.len(), first.others), (SHOWN_MAX, counts(6)));
        // A place becomes free: no group that was among the others takes it.
        let second = groups.add(all(3, 1));
        assert_eq!(second.shown.len(), SHOWN_MAX - 1);
        assert_eq!(second.others, counts(9 + 3));
        let third = groups.add(of(&[(1000, "/new", 4)]));
        assert_eq!(third.shown, [("/new".to_owned(), counts(4))]);
        assert_eq!(third.others, second.others);
    }
}
