#![allow(clippy::float_cmp)] // Clocks are chosen, not computed.

use super::*;
use crate::kernel::{self, KERNELS};

const MS: u64 = 1_000_000;

fn governed(name: &str) -> Governed {
    governed_by("6.12", name)
}

fn governed_by(kernel: &str, name: &str) -> Governed {
    let scaling = scaling(name);
    Governed::new(&scaling, &[1500.0, 500.0], kernel::named(kernel).unwrap())
}

fn scaling(name: &str) -> Scaling {
    Scaling {
        governor: named(name).unwrap(),
        clocks_mips: vec![1000.0, 2000.0, 4000.0],
        is_per_processor: false,
        latency_ns: 0,
    }
}

/// The speed after a step, if it is another one.
fn changed(it: &mut Governed, now_ns: u64, step: impl FnOnce(&mut Governed)) -> Option<f64> {
    let before = it.mips(0, now_ns);
    step(it);
    assert_eq!(it.mips(0, now_ns), it.mips(1, now_ns), "one clock");
    Some(it.mips(0, now_ns)).filter(|mips| *mips != before)
}

fn sample(it: &mut Governed, now_ns: u64, disk_busy_ns: u64) -> Option<f64> {
    changed(it, now_ns, |it| it.sample(now_ns, disk_busy_ns))
}

fn look(it: &mut Governed, cause: Cause, now_ns: u64) -> Option<f64> {
    let Load { is, tasks, .. } = it.loads[0];
    it.note(0, is, tasks, now_ns);
    changed(it, now_ns, |it| {
        it.look(0, cause, now_ns);
    })
}

fn tick(it: &mut Governed, now_ns: u64) -> Option<f64> {
    look(it, Cause::Other, now_ns)
}

#[test]
fn schedutil_follows_busy_time_up_and_down() {
    let mut it = governed("schedutil");
    it.note(0, Use::Busy, 1, 0);
    // At a quarter of the highest speed, a quarter of the time counts: a share of 0.16.
    assert_eq!(tick(&mut it, 32 * MS), None);
    assert!((it.loads[0].share - (1.0 - 0.5_f64.powf(0.25))).abs() < 1e-9);
    // The share approaches 1 at any speed; it asks for a quarter more.
    assert_eq!(tick(&mut it, 128 * MS), Some(4000.0));
    assert!((it.loads[0].share - 0.5).abs() < 1e-9);
    assert_eq!(tick(&mut it, 128 * MS + CHANGE_NS - 1), None);
    // When it idles, the averages catch up with the 96 ms.
    it.note(0, Use::Idle, 0, 129 * MS);
    assert_eq!(tick(&mut it, 130 * MS), Some(1000.0));
}

#[test]
fn time_before_a_change_of_the_clock_counts_at_the_old_one() {
    let mut it = governed("schedutil");
    it.note(0, Use::Busy, 1, 0);
    it.note(1, Use::Busy, 1, 0);
    assert_eq!(tick(&mut it, 128 * MS), Some(4000.0));
    it.note(1, Use::Busy, 1, 128 * MS);
    assert!((it.loads[1].share - 0.5).abs() < 1e-9);
}

#[test]
fn a_processor_that_is_always_busy_has_no_idle_time_to_catch_up_with() {
    let mut it = governed("schedutil");
    it.note(0, Use::Busy, 1, 0);
    it.note(0, Use::Idle, 0, 1000 * MS);
    assert_eq!(tick(&mut it, 1001 * MS), Some(4000.0));
}

/// Four tasks do in turn what one task does in the test above.
#[test]
fn schedutil_counts_tasks_that_wait_for_a_processor_since_6_5() {
    for (kernel, chosen) in [("6.12", Some(4000.0)), ("6.1", None)] {
        let mut it = governed_by(kernel, "schedutil");
        it.note(0, Use::Busy, 4, 0);
        assert_eq!(tick(&mut it, 32 * MS), chosen, "{kernel}");
    }
}

#[test]
fn frequent_waits_for_the_disk_boost_schedutil_and_rare_ones_hardly_do() {
    let mut it = governed("schedutil");
    let mut found = Vec::new();
    for wakeup in 1..=4 {
        found.extend(look(&mut it, Cause::WakeFromIo, wakeup * MS));
    }
    // 1/8, 1/4, 1/2, 1, each with a quarter more.
    assert_eq!(found, [2000.0, 4000.0]);
    let mut it = governed("schedutil");
    for wakeup in 1..=20 {
        assert_eq!(look(&mut it, Cause::WakeFromIo, wakeup * 10 * MS), None);
    }
    // Other wake-ups boost nothing.
    assert_eq!(look(&mut it, Cause::Arrival, 1000 * MS), None);
    assert_eq!(it.loads[0].boost, 0.0);
}

/// The journal's thread wakes dozens of tasks that have not waited for the disk.
#[test]
fn a_boost_outlasts_other_wake_ups_in_the_same_period() {
    let mut it = governed_by("6.1", "schedutil");
    assert_eq!(look(&mut it, Cause::WakeFromIo, 10 * MS), None);
    it.note(0, Use::Busy, 1, 10 * MS);
    assert_eq!(look(&mut it, Cause::WakeFromIo, 10 * MS), Some(2000.0));
    for wakeup in 0..64 {
        assert_eq!(tick(&mut it, 10 * MS + CHANGE_NS + wakeup), None);
    }
    // At half the speed the next period begins two periods later at most.
    assert_eq!(tick(&mut it, 13 * MS), Some(1000.0));
}

#[test]
fn ondemand_counts_waits_for_the_disk() {
    let sampled = |is| {
        let mut it = governed("ondemand");
        it.note(0, is, 1, 0);
        it.note(0, Use::Idle, 0, 4 * MS);
        sample(&mut it, 10 * MS, 0)
    };
    assert_eq!(sampled(Use::Busy), Some(2000.0));
    assert_eq!(sampled(Use::IdleForIo), Some(2000.0));
    assert_eq!(sampled(Use::Idle), None);
    let mut it = governed("ondemand");
    it.note(0, Use::Busy, 1, 0);
    assert_eq!(sample(&mut it, 10 * MS, 0), Some(4000.0));
}

#[test]
fn a_busy_disk_lowers_the_clock_of_du_dvfs() {
    let mut it = governed("du-dvfs");
    assert_eq!(it.mips(0, 0), 4000.0);
    assert_eq!(sample(&mut it, 10 * MS, 5 * MS), None);
    assert_eq!(sample(&mut it, 20 * MS, 15 * MS), Some(1000.0));
    assert_eq!(sample(&mut it, 30 * MS, 16 * MS), Some(4000.0));
}

#[test]
fn each_processor_may_have_its_own_clock() {
    let each = |name| Scaling {
        is_per_processor: true,
        ..scaling(name)
    };
    let mut it = Governed::new(&each("schedutil"), &[1000.0; 2], &KERNELS[0]);
    it.note(1, Use::Busy, 1, 0);
    it.note(1, Use::Busy, 1, 200 * MS);
    assert!(!it.look(0, Cause::Arrival, 200 * MS));
    assert!(it.look(1, Cause::Other, 200 * MS));
    assert_eq!([0, 1].map(|at| it.mips(at, 200 * MS)), [1000.0, 4000.0]);
    let it = Governed::new(&each("userspace"), &[2500.0, 0.1], &KERNELS[0]);
    assert_eq!([0, 1].map(|at| it.mips(at, 0)), [4000.0, 1000.0]);
}

#[test]
fn userspace_takes_the_clock_at_or_above_the_speed_that_is_asked_for() {
    let mut it = governed("userspace");
    assert_eq!(it.mips(1, 0), 2000.0);
    for (asked, found) in [(2000.0, 2000.0), (2000.1, 4000.0), (9000.0, 4000.0)] {
        it.ask(&[0.5, asked], MS);
        assert_eq!([0, 1].map(|at| it.mips(at, MS)), [found; 2], "{asked}");
    }
}

#[test]
fn a_change_takes_effect_after_the_latency_and_none_is_chosen_meanwhile() {
    let slow = |name| Scaling {
        latency_ns: MS,
        ..scaling(name)
    };
    let mut it = Governed::new(&slow("schedutil"), &[1000.0; 2], &KERNELS[0]);
    it.note(0, Use::Busy, 1, 0);
    it.note(0, Use::Busy, 1, 128 * MS);
    assert!(it.look(0, Cause::Other, 128 * MS));
    let at = |it: &Governed, now_ns| it.mips(0, now_ns);
    assert_eq!(at(&it, 129 * MS - 1), 1000.0);
    assert_eq!(at(&it, 129 * MS), 4000.0);
    it.note(0, Use::Idle, 0, 128 * MS + 10);
    assert!(!it.look(0, Cause::Arrival, 129 * MS - 1));
    assert!(it.look(0, Cause::Arrival, 200 * MS));
    let mut it = Governed::new(&slow("userspace"), &[1000.0; 2], &KERNELS[0]);
    it.ask(&[4000.0; 2], MS);
    assert_eq!([at(&it, 2 * MS - 1), at(&it, 2 * MS)], [1000.0, 4000.0]);
}

#[test]
fn an_unknown_governor_is_told_with_those_that_exist() {
    let error = named("turbo").unwrap_err().to_string();
    assert!(
        error.contains("turbo") && error.contains("schedutil"),
        "{error}"
    );
}
