//! Algorithm 4.1: which journal commit serves which fsync, and for how long
//! the fsync waits.
//!
//! The algorithm has a pool of threads K and a pool of commits L. It takes the
//! thread with the smallest begin of fsync and the commit with the smallest
//! begin, puts every other thread whose fsync began before the commit into the
//! same group, takes all of them out of the pools, and starts again. For each
//! thread of a group
//!
//! ```text
//! T_fsync(K) = t(q_JC) - t(q_fsync) + T_JC
//! ```
//!
//! which is equation 4 for a thread that found the journal idle and equation 5
//! for one that came while another commit ran: the rest of that commit is part
//! of the time until its own begins.
//!
//! The published text takes the pools to fit: every commit was triggered by a
//! thread of K. A trace has others as well, of the periodic timer or of a full
//! journal. A commit that begins before any fsync of the pool serves nobody
//! here and is taken out alone, because an fsync that begins once a commit has
//! begun belongs to the next. The comparison is strict, as published: an fsync
//! that begins in the very nanosecond of a commit goes into the next one.

/// A thread begins to wait for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// When, ns: `t(q_fsync)`.
    pub begin_ns: u64,
    /// Which thread.
    pub thread: u32,
}

/// A journal commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Begin, ns: `t(q_JC)`.
    pub begin_ns: u64,
    /// End, ns: `t(r_JC)`.
    pub end_ns: u64,
}

impl Commit {
    /// `T_JC`, ns; 0 if the clock went back.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// How an fsync is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Place of the commit in the list given.
    pub commit: usize,
    /// `T_fsync`, ns: equation 4 or 5.
    pub predicted_ns: u64,
    /// Commits it waits for: 1 (equation 4), or 2 if another commit ran when
    /// it began (equation 5).
    pub commits: u32,
}

/// Threads that share a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Place of the commit in the list given.
    pub commit: usize,
    /// The thread that triggers it: the first to begin its fsync.
    pub trigger: u32,
    /// Sync events, at least 1.
    pub sync_events: usize,
}

/// The answer of [`group`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// For each request, in the order given; None: no commit begins after it.
    pub services: Vec<Option<Service>>,
    /// By begin of their commits. A commit that serves nobody has no group.
    pub groups: Vec<Group>,
}

impl Grouping {
    /// Requests that no commit serves.
    pub fn unserved(&self) -> usize {
        self.services.iter().filter(|s| s.is_none()).count()
    }
}

/// Algorithm 4.1. Neither list needs to be sorted; O(n log n).
pub fn group(requests: &[SyncRequest], commits: &[Commit]) -> Grouping {
    let mut waiting: Vec<usize> = (0..requests.len()).collect();
    waiting.sort_by_key(|place| requests[*place].begin_ns);
    let mut serving: Vec<usize> = (0..commits.len()).collect();
    serving.sort_by_key(|place| commits[*place].begin_ns);

    let mut answer = Grouping {
        services: vec![None; requests.len()],
        groups: Vec::new(),
    };
    let mut served = 0;
    // The end of the commits so far: who begins before it found one running.
    let mut busy_until_ns = 0;
    for place in serving {
        let commit = commits[place];
        let first = served;
        while let Some(&waiter) = waiting.get(served) {
            let begin_ns = requests[waiter].begin_ns;
            if begin_ns >= commit.begin_ns {
                break;
            }
            let until_commit_ns = commit.begin_ns - begin_ns;
            answer.services[waiter] = Some(Service {
                commit: place,
                predicted_ns: until_commit_ns.saturating_add(commit.duration_ns()),
                commits: if begin_ns < busy_until_ns { 2 } else { 1 },
            });
            served += 1;
        }
        if served > first {
            answer.groups.push(Group {
                commit: place,
                trigger: requests[waiting[first]].thread,
                sync_events: served - first,
            });
        }
        busy_until_ns = busy_until_ns.max(commit.end_ns);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requests(begins_ns: &[u64]) -> Vec<SyncRequest> {
        (1..)
            .zip(begins_ns)
            .map(|(thread, &begin_ns)| SyncRequest { begin_ns, thread })
            .collect()
    }

    fn commit(begin_ns: u64, end_ns: u64) -> Commit {
        Commit { begin_ns, end_ns }
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
        let got = group(
            &requests(&[90, 95, 110, 170]),
            &[commit(100, 180), commit(180, 270)],
        );
        let service = |commit, predicted_ns, commits| {
            Some(Service {
                commit,
                predicted_ns,
                commits,
            })
        };
        assert_eq!(
            got.services,
            [
                service(0, 90, 1),
                service(0, 85, 1),
                service(1, 160, 2),
                service(1, 100, 2)
            ]
        );
        let group = |commit, trigger| Group {
            commit,
            trigger,
            sync_events: 2,
        };
        assert_eq!(got.groups, [group(0, 1), group(1, 3)]);
    }

    /// The moments are the point: at 100 a commit begins, and ends at 180.
    #[test]
    fn moments_at_the_edge() {
        let commits = [commit(100, 180), commit(300, 350)];
        let served = |at| group(&requests(&[at]), &commits).services[0];
        assert_eq!(served(99).map(|s| (s.commit, s.commits)), Some((0, 1)));
        // In the same nanosecond: strictly before is required.
        assert_eq!(served(100).map(|s| (s.commit, s.commits)), Some((1, 2)));
        assert_eq!(served(179).map(|s| (s.commit, s.commits)), Some((1, 2)));
        // The journal is idle again: equation 4.
        assert_eq!(served(180).map(|s| (s.commit, s.commits)), Some((1, 1)));
        assert_eq!(served(180).map(|s| s.predicted_ns), Some(120 + 50));
        assert_eq!(served(300), None);
    }

    #[test]
    fn order_of_the_lists_does_not_matter() {
        let got = group(
            &requests(&[170, 90, 110, 95]),
            &[commit(180, 270), commit(100, 180), commit(10, 20)],
        );
        let commits: Vec<usize> = got.services.iter().flatten().map(|s| s.commit).collect();
        assert_eq!(commits, [0, 1, 0, 1]);
        // The periodic commit at 10 served nobody.
        assert_eq!(got.groups.len(), 2);
        assert_eq!(got.groups[0].trigger, 2);
    }

    #[test]
    fn nothing_and_too_little() {
        assert_eq!(group(&[], &[]), Grouping::default());
        assert_eq!(group(&requests(&[5, 6]), &[]).unserved(), 2);
        assert!(group(&[], &[commit(1, 2)]).groups.is_empty());
    }

    proptest! {
        #[test]
        fn each_by_the_first_commit_after_it(
            begins_ns in prop::collection::vec(0_u64..300, 0..40),
            commits in prop::collection::vec((0_u64..300, 0_u64..60), 0..20),
        ) {
            let commits: Vec<Commit> =
                commits.iter().map(|(begin, length)| commit(*begin, begin + length)).collect();
            let requests = requests(&begins_ns);
            let got = group(&requests, &commits);
            for (request, service) in requests.iter().zip(&got.services) {
                // The definition, without pools: the earliest begin that is later.
                let want = commits.iter().map(|c| c.begin_ns).filter(|b| *b > request.begin_ns).min();
                prop_assert_eq!(service.map(|s| commits[s.commit].begin_ns), want);
                if let Some(service) = service {
                    let commit = commits[service.commit];
                    let time = commit.begin_ns - request.begin_ns + commit.duration_ns();
                    prop_assert_eq!(service.predicted_ns, time);
                }
            }
            // Who asks later is not served by an earlier commit.
            let mut order: Vec<(u64, Option<u64>)> = requests
                .iter()
                .zip(&got.services)
                .map(|(r, s)| (r.begin_ns, s.map(|s| commits[s.commit].begin_ns)))
                .collect();
            order.sort_unstable();
            for pair in order.windows(2) {
                prop_assert!(pair[1].1.is_none() || pair[0].1 <= pair[1].1);
            }
            let grouped: usize = got.groups.iter().map(|g| g.sync_events).sum();
            prop_assert_eq!(grouped + got.unserved(), requests.len());
        }

        #[test]
        fn any_numbers(
            begins_ns in prop::collection::vec(any::<u64>(), 0..20),
            commits in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20),
        ) {
            let commits: Vec<Commit> = commits.iter().map(|(b, e)| commit(*b, *e)).collect();
            let got = group(&requests(&begins_ns), &commits);
            prop_assert_eq!(got.services.len(), begins_ns.len());
        }
    }
}
