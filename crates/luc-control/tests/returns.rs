//! The estimator of returning tasks.

use luc_control::Returns;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// `LUC_RETURNS_DEPTH`: commits whose tasks are expected back.
const DEPTH: u32 = 2;

#[test]
fn released_tasks_are_expected_until_they_come_back() {
    let mut returns = Returns::new();
    assert_eq!(returns.expected(1), 0);
    for task in 1..=4 {
        assert!(returns.arrive(task, 10));
        assert!(!returns.arrive(task, 10), "counted already");
    }
    assert_eq!(returns.expected(11), 4);
    assert!(returns.arrive(1, 11));
    assert_eq!(returns.expected(11), 3);
    // The estimator looks two commits back, no further.
    assert_eq!(returns.expected(12), 4);
    assert_eq!(returns.expected(13), 1);
    assert_eq!(returns.expected(14), 0);
    // The current transaction does not count.
    assert_eq!(returns.expected(10), 0);
}

#[test]
fn a_lone_task_expects_no_task() {
    for enters in [false, true] {
        let mut returns = Returns::new();
        for tid in (u32::MAX - 5..=u32::MAX).chain(0..20) {
            if enters {
                returns.enter(7, tid.wrapping_sub(1));
            }
            returns.arrive(7, tid);
            let found = (returns.expected(tid), returns.syncing(tid));
            assert_eq!(found, (0, 0), "tid {tid}, enters {enters}");
        }
    }
}

#[test]
fn task_zero_is_a_task() {
    let mut returns = Returns::new();
    assert!(returns.arrive(0, 5));
    assert!(!returns.arrive(0, 5));
    assert_eq!(returns.expected(6), 1);
}

/// Tells whether two tasks collide: the estimator itself shows it, as it cannot remember both.
fn collide(a: u32, b: u32) -> bool {
    let mut returns = Returns::new();
    returns.arrive(a, 1);
    returns.arrive(b, 1);
    // If it is remembered, a second arrival is not new.
    returns.arrive(a, 1)
}

/// The exact count that the estimator approximates; its memory is not bounded.
#[derive(Default)]
struct Model {
    last: HashMap<u32, u32>,
    members: HashMap<u32, i64>,
}

impl Model {
    fn arrive(&mut self, task: u32, tid: u32) -> bool {
        let new = self.last.insert(task, tid) != Some(tid);
        *self.members.entry(tid).or_default() += i64::from(new);
        new
    }

    fn expected(&self, tid: u32) -> i64 {
        let recent: Vec<_> = (1..=DEPTH).map(|back| tid.wrapping_sub(back)).collect();
        let out = self
            .last
            .values()
            .filter(|last| recent.contains(last))
            .count();
        i64::try_from(out).unwrap()
    }
}

proptest! {
    /// Without collisions, and if transactions are numbered as journals do, the estimator is exact,
    /// even when the numbers wrap.
    #[test]
    fn exact_without_collisions(
        start in prop_oneof![any::<u32>(), Just(u32::MAX - 3)],
        batches in prop::collection::vec(prop::collection::hash_set(1_u32..40, 0..30), 1..60),
    ) {
        let mut tasks: Vec<u32> = Vec::new();
        for task in 1..40 {
            prop_assert!(tasks.iter().all(|other| !collide(*other, task)), "small numbers collide");
            tasks.push(task);
        }
        let mut returns = Returns::new();
        let mut model = Model::default();
        let mut tid = start;
        for batch in batches {
            for task in batch {
                prop_assert_eq!(returns.arrive(task, tid), model.arrive(task, tid));
                prop_assert_eq!(returns.expected(tid), model.expected(tid));
            }
            tid = tid.wrapping_add(1);
            prop_assert_eq!(returns.expected(tid), model.expected(tid));
        }
    }

    /// For any arrivals, the estimate is never negative and never more than came.
    #[test]
    fn bounded_with_anything(
        arrivals in prop::collection::vec((any::<u32>(), 0_u32..20), 0..500),
        asked in any::<u32>(),
    ) {
        let mut returns = Returns::new();
        let mut came: HashMap<u32, i64> = HashMap::new();
        for (task, tid) in arrivals {
            *came.entry(tid).or_default() += i64::from(returns.arrive(task, tid));
            for at in [tid, tid.wrapping_add(1), asked] {
                let most: i64 = (1..=DEPTH)
                    .filter_map(|back| came.get(&at.wrapping_sub(back)))
                    .sum();
                prop_assert!((0..=most).contains(&returns.expected(at)));
            }
        }
    }

    #[test]
    fn collisions_cost_at_most_one_each(
        batches in prop::collection::vec(prop::collection::hash_set(1_u32..3_000, 0..300), 1..20),
    ) {
        let mut returns = Returns::new();
        let mut model = Model::default();
        let mut lost_ever = 0;
        let mut seen = HashSet::new();
        for (tid, batch) in (100_u32..).zip(batches) {
            for task in batch {
                // The estimator may have forgotten a task that the model knows, because another
                // task took its slot.
                model.arrive(task, tid);
                let before = returns.expected(tid.wrapping_add(1));
                returns.arrive(task, tid);
                lost_ever += i64::from(!seen.insert(task));
                prop_assert!(returns.expected(tid.wrapping_add(1)) - before <= 1);
            }
            let error = (returns.expected(tid + 1) - model.expected(tid + 1)).abs();
            prop_assert!(error <= lost_ever, "{error} {lost_ever}");
        }
    }
}

#[test]
fn tasks_inside_a_sync_call_are_sure_to_come() {
    let mut returns = Returns::new();
    for task in 1..=4 {
        returns.arrive(task, 10);
    }
    returns.enter(1, 10);
    // Task 1 is neither lost nor counted twice.
    assert_eq!((returns.expected(11), returns.syncing(11)), (4, 1));
    // A task that was never seen before counts, too.
    returns.enter(9, 10);
    assert_eq!((returns.expected(11), returns.syncing(11)), (5, 2));
    assert!(returns.arrive(1, 11));
    assert!(returns.arrive(9, 11));
    assert_eq!((returns.expected(11), returns.syncing(11)), (3, 0));
    // A call from long ago is forgotten.
    returns.enter(2, 11);
    assert_eq!(returns.syncing(13), 1);
    assert_eq!(returns.syncing(14), 0);
}

#[test]
fn calls_that_need_no_commit_count_for_less_and_less() {
    let mut returns = Returns::new();
    for _ in 0..100 {
        for task in 1..=8 {
            returns.enter(task, 10);
        }
    }
    assert_eq!(returns.syncing(11), 0);
    // Tasks that wait again count again.
    for tid in 11..30 {
        for task in 1..=8 {
            returns.enter(task, tid - 1);
        }
        for task in 1..=8 {
            returns.arrive(task, tid);
        }
    }
    for task in 1..=8 {
        returns.enter(task, 29);
    }
    assert_eq!(returns.syncing(30), 8);
}

/// Generates steps of a few tasks: the task, whether it waits or begins a call, and how many
/// transactions have passed since the last step.
fn steps() -> impl Strategy<Value = Vec<(u32, bool, u32)>> {
    let step = (1_u32..6, proptest::bool::weighted(0.2), 0_u32..40);
    let step = step.prop_map(|(task, waits, ahead)| (task, waits, ahead.saturating_sub(38)));
    proptest::collection::vec(step, 1..1500)
}

proptest! {
    #[test]
    fn a_repeated_call_would_change_nothing(steps in steps(), quiet in 1_u32..6) {
        let mut returns = Returns::new();
        let mut tid = 10;
        let enter = |returns: &mut Returns, task, tid| {
            let before = returns.clone();
            returns.enter(task, tid);
            !before.repeats(task, tid) || before == *returns
        };
        for (task, waits, ahead) in steps {
            tid += ahead;
            if waits {
                returns.arrive(task, tid);
            } else {
                prop_assert!(enter(&mut returns, task, tid), "{task} {tid}");
            }
        }
        // No call needs a commit any more, so soon all are repeats.
        for _ in 0..200 {
            for task in 1..=quiet {
                prop_assert!(enter(&mut returns, task, tid), "{task} {tid}");
            }
        }
        for task in 1..=quiet {
            prop_assert!(returns.repeats(task, tid), "{task} of {quiet}");
            prop_assert!(!returns.repeats(task, tid + 1) && !returns.repeats(task + 5, tid));
        }
    }
}
