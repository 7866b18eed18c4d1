//! Algorithm 4.1: which journal commit serves which fsync, and for how long the fsync waits.
//!
//! The algorithm has a pool of threads K and a pool of commits L. It takes the thread whose fsync
//! begins first and the commit that begins first, puts every other thread whose fsync began before
//! the commit into the same group, removes all of them from the pools, and starts again. For each
//! thread of a group
//!
//! ```text
//! T_fsync(K) = t(q_JC) - t(q_fsync) + T_JC
//! ```
//!
//! This is equation 4 for a thread that found the journal idle, and equation 5 for one that arrived
//! while another commit ran: the rest of that commit is part of the time until its own begins.
//!
//! The published text assumes that a thread of K triggers every commit. A trace also has commits
//! that the periodic timer or a full journal triggered. A commit that begins before any fsync of
//! the pool serves no thread here, because an fsync that begins after it belongs to the next. The
//! comparison is strict, as published: an fsync that begins in the same nanosecond as a commit goes
//! into the next one.

use crate::observed::ObservedCommit;

/// The times of a journal commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitTimes {
    /// Start, ns: `t(q_JC)`.
    pub begin_ns: u64,
    /// End, ns: `t(r_JC)`.
    pub end_ns: u64,
}

impl CommitTimes {
    /// `T_JC`, ns; 0 if the clock went back.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

impl From<&ObservedCommit> for CommitTimes {
    fn from(commit: &ObservedCommit) -> Self {
        Self {
            begin_ns: commit.begin_ns,
            end_ns: commit.end_ns,
        }
    }
}

/// The commit and the time that an fsync waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Index of the commit in the list given.
    pub commit: usize,
    /// `T_fsync`, ns: equation 4 or 5.
    pub predicted_ns: u64,
    /// Commits it waits for: 1 (equation 4), or 2 if another commit ran when
    /// it began (equation 5).
    pub commits: u32,
}

/// Applies Algorithm 4.1 to fsyncs with these starts (`t(q_fsync)`, ns). The result is in their
/// order, with `None` for an fsync after which no commit begins. Neither list needs to be sorted;
/// O(n log n).
pub fn group(begins_ns: &[u64], commits: &[CommitTimes]) -> Vec<Option<Served>> {
    let mut waiting: Vec<usize> = (0..begins_ns.len()).collect();
    waiting.sort_by_key(|place| begins_ns[*place]);
    let mut waiting = waiting.into_iter().peekable();
    let mut serving: Vec<usize> = (0..commits.len()).collect();
    serving.sort_by_key(|place| commits[*place].begin_ns);

    let mut served = vec![None; begins_ns.len()];
    // The latest end of the commits so far: an fsync that begins before it found one running.
    let mut busy_until_ns = 0;
    for place in serving {
        let commit = commits[place];
        while let Some(waiter) = waiting.next_if(|waiter| begins_ns[*waiter] < commit.begin_ns) {
            let until_commit_ns = commit.begin_ns - begins_ns[waiter];
            served[waiter] = Some(Served {
                commit: place,
                predicted_ns: until_commit_ns.saturating_add(commit.duration_ns()),
                commits: if begins_ns[waiter] < busy_until_ns {
                    2
                } else {
                    1
                },
            });
        }
        busy_until_ns = busy_until_ns.max(commit.end_ns);
    }
    served
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commits(times: &[(u64, u64)]) -> Vec<CommitTimes> {
        let commit = |&(begin_ns, end_ns)| CommitTimes { begin_ns, end_ns };
        times.iter().map(commit).collect()
    }

    /// Returns, per fsync: commit, predicted time, commits waited for.
    fn grouped(begins_ns: &[u64], times: &[(u64, u64)]) -> Vec<Option<(usize, u64, u32)>> {
        let served = group(begins_ns, &commits(times)).into_iter();
        served
            .map(|it| it.map(|it| (it.commit, it.predicted_ns, it.commits)))
            .collect()
    }

    /// Two groups as in figure 4.3.
    ///
    /// Commits: L1 100 to 180 (`T_JC` 80), L2 180 to 270 (`T_JC` 90).
    /// K1 asks at 90, K2 at 95: before L1 begins. K3 asks at 110 and K4 at 170:
    /// L1 runs, so they wait for the rest of it and for all of L2.
    ///
    ///   K1: (100 -  90) + 80 =  90      K3: (180 - 110) + 90 = 160
    ///   K2: (100 -  95) + 80 =  85      K4: (180 - 170) + 90 = 100
    #[test]
    fn two_groups_by_hand() {
        let got = grouped(&[90, 95, 110, 170], &[(100, 180), (180, 270)]);
        let want = [(0, 90, 1), (0, 85, 1), (1, 160, 2), (1, 100, 2)];
        assert_eq!(got, want.map(Some));
        // In another order, and after a periodic commit that serves no thread.
        let got = grouped(&[170, 90, 110, 95], &[(180, 270), (100, 180), (10, 20)]);
        let want = [(0, 100, 2), (1, 90, 1), (0, 160, 2), (1, 85, 1)];
        assert_eq!(got, want.map(Some));
    }

    /// A commit runs from 100 to 180.
    #[test]
    fn moments_at_the_edge() {
        for (at, want) in [
            (99, Some((0, 81, 1))),
            // In the same nanosecond: strictly before is required.
            (100, Some((1, 250, 2))),
            (179, Some((1, 171, 2))),
            // The journal is idle again: equation 4.
            (180, Some((1, 120 + 50, 1))),
            (300, None),
        ] {
            assert_eq!(grouped(&[at], &[(100, 180), (300, 350)]), [want], "{at}");
        }
        assert_eq!(grouped(&[5, 6], &[]), [None, None]);
        assert!(grouped(&[], &[(1, 2)]).is_empty());
    }

    proptest! {
        #[test]
        fn each_by_the_first_commit_after_it(
            begins_ns in prop::collection::vec(0_u64..300, 0..40),
            times in prop::collection::vec((0_u64..300, 0_u64..60), 0..20),
        ) {
            let times: Vec<_> = times.iter().map(|(begin, ns)| (*begin, begin + ns)).collect();
            let commits = commits(&times);
            for (begin_ns, served) in begins_ns.iter().zip(group(&begins_ns, &commits)) {
                // The definition without pools: the earliest commit that begins later.
                let want = commits.iter().map(|c| c.begin_ns).filter(|b| b > begin_ns).min();
                prop_assert_eq!(served.map(|s| commits[s.commit].begin_ns), want);
                if let Some(served) = served {
                    let commit = commits[served.commit];
                    let time = commit.begin_ns - begin_ns + commit.duration_ns();
                    prop_assert_eq!(served.predicted_ns, time);
                }
            }
        }

        #[test]
        fn any_numbers(
            begins_ns in prop::collection::vec(any::<u64>(), 0..20),
            times in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20),
        ) {
            prop_assert_eq!(group(&begins_ns, &commits(&times)).len(), begins_ns.len());
        }
    }
}
