//! The slowest syncs, whose files are looked for while their processes run.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::Dev;
use luc_model::summary::SLOWEST;
use luc_trace::Span;

/// The slowest file syncs so far, during a recording.
#[derive(Debug, Default)]
pub struct Slowest {
    /// Duration and start of each, ns.
    by_dev: BTreeMap<Dev, BTreeSet<(u64, u64)>>,
    new: Vec<Span>,
}

impl Slowest {
    pub fn meet(&mut self, sync: &Span) {
        let slowest = self.by_dev.entry(sync.dev).or_default();
        let this = (sync.duration_ns(), sync.begin_ns);
        if slowest.len() < SLOWEST || slowest.first().is_some_and(|least| *least < this) {
            slowest.insert(this);
            self.new.push(*sync);
        }
        if slowest.len() > SLOWEST {
            slowest.pop_first();
        }
    }

    /// The syncs since the last call that are still among the slowest.
    pub fn take(&mut self) -> impl Iterator<Item = Span> + use<'_> {
        let by_dev = &self.by_dev;
        let slow = |sync: &Span| {
            let slowest = by_dev.get(&sync.dev);
            slowest.is_some_and(|all| all.contains(&(sync.duration_ns(), sync.begin_ns)))
        };
        self.new.drain(..).filter(slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sync of inode N that began at N.
    fn fsync(n: u64, took_ns: u64) -> Span {
        Span {
            begin_ns: n,
            end_ns: n + took_ns,
            object: n,
            ..Span::default()
        }
    }

    #[test]
    fn what_is_no_longer_among_the_slowest_is_not_looked_for() {
        let mut slowest = Slowest::default();
        (1..=15).for_each(|n| slowest.meet(&fsync(n, n * 100)));
        let inodes = |slowest: &mut Slowest| -> Vec<u64> {
            slowest.take().map(|sync| sync.object).collect()
        };
        assert_eq!(inodes(&mut slowest), (6..=15).collect::<Vec<_>>());
        slowest.meet(&fsync(20, 500));
        slowest.meet(&fsync(21, 650));
        assert_eq!(inodes(&mut slowest), [21]);
        // Each file system has its own slowest syncs.
        let mut other = fsync(22, 1);
        other.dev.minor = 7;
        slowest.meet(&other);
        assert_eq!(inodes(&mut slowest), [22]);
    }
}
