//! Snapshots of made-up readings.

use luc_bpf::TaskCounts;
use luc_trace::{Sight, Unseen};

use super::toys::{reading, sample_of};
use super::*;

#[test]
fn two_readings_make_rates() {
    let snapshot = sample_of();
    assert!((snapshot.interval_s - 1.0).abs() < 1e-9);
    assert_eq!(snapshot.events_lost, Some(3));
    let journal = &snapshot.journals[0];
    let traced = journal.traced.as_ref().expect("traced");
    assert!((traced.syncs_per_s - 80.0).abs() < 1e-9);
    assert_eq!(traced.syncs_per_commit, Some(8.0));
    assert_eq!(traced.late_share, Some(0.05));
    assert_eq!(traced.commit_mean_ns, Some(7_000_000));
    assert!(traced.sync_p50_ns < traced.sync_p99_ns);
    assert_eq!(traced.waits[0].mean_ns, Some(3_000_000));
    assert_eq!(traced.waits[2].mean_ns, None);
    let luc = journal.luc.as_ref().expect("on");
    assert_eq!(luc.setpoint_events, Some(8));
    let rates = luc.rates.as_ref().expect("counted through");
    assert_eq!(rates.held_mean_ns, Some(300_000));
    let first = rates
        .reasons
        .first()
        .map(|reason| (reason.name, reason.commits));
    assert_eq!(first, Some(("setpoint", 8)));
    assert!(snapshot.journals[1].luc.is_none());
    assert_eq!(snapshot.processes.len(), 2);
    let lost = snapshot.processes[1].lost_ns_per_s.expect("known");
    assert!((lost - 15e6).abs() < 1.0);
    let cgroup = snapshot.processes[1].cgroup.as_deref();
    assert_eq!(cgroup, Some("/system.slice/database.service"));
}

/// An older module lacks counters: their rates are unknown, not 0.
#[test]
fn counters_that_are_not_there_are_no_zeros() {
    let without = |rounds| {
        let mut reading = reading(rounds);
        let module = reading.journals[0].module.as_mut().expect("on");
        for counter in ["copies", "writes_delayed", "hold_ns", "copyout_active"] {
            module.counters.remove(counter);
        }
        reading
    };
    let snapshot = Snapshot::between("", Some(&without(1)), &without(2));
    let luc = snapshot.journals[0].luc.as_ref().expect("on");
    assert_eq!((luc.hold_ns, luc.copyout_active), (None, None));
    let rates = luc.rates.as_ref().expect("counted through");
    assert_eq!(
        (rates.copies_per_s, rates.write_delay_mean_ns),
        (None, None)
    );
    assert!(
        rates
            .commits_per_s
            .is_some_and(|rate| (rate - 10.0).abs() < 1e-9)
    );
    // A counter that appeared in the interval has no rate, either.
    let snapshot = Snapshot::between("", Some(&without(1)), &reading(2));
    let rates = snapshot.journals[0].luc.clone().and_then(|luc| luc.rates);
    assert_eq!(rates.expect("counted through").copies_per_s, None);
}

/// Unseen waits are unknown, not 0; a sum that lacks a part is unknown, too.
#[test]
fn unseen_waits_are_no_zeros() {
    let mut now = reading(2);
    now.unseen = Unseen::from([Sight::WaitSpace]);
    let snapshot = Snapshot::between("", Some(&reading(1)), &now);
    let waits = &snapshot.journals[0].traced.as_ref().expect("traced").waits;
    assert!(waits[0].per_s.is_some() && waits[1].per_s.is_some());
    assert_eq!(waits[2].per_s, None);
    assert_eq!(snapshot.processes[0].lost_ns_per_s, None);
    assert_eq!(snapshot.unseen, ["wait-space"]);
    let json = serde_json::to_value(&snapshot).expect("JSON");
    assert!(json["processes"][0]["lost_ns_per_s"].is_null());
}

/// They need no earlier reading; without a tracer they are unknown.
#[test]
fn syncs_that_go_on_are_those_of_the_moment() {
    let mut now = reading(5);
    let longest_ns = |now: &Reading| {
        let waiting = Snapshot::between("", None, now).journals[0].waiting;
        waiting.map(|waiting| waiting.longest_ns)
    };
    assert_eq!(longest_ns(&now), Some(3_000_000));
    now.forget_traced();
    assert_eq!(longest_ns(&now), None);
}

#[test]
fn the_first_reading_has_no_rates() {
    let snapshot = Snapshot::between("", None, &reading(5));
    assert!(snapshot.journals[0].traced.is_none());
    let luc = snapshot.journals[0].luc.as_ref().expect("on");
    assert!(luc.rates.is_none());
    assert!(snapshot.processes.is_empty());
    assert_eq!(snapshot.events_lost, None);
}

/// LUC switched off and on, module reloaded, remount, another tracer: rates never jump.
#[test]
fn counters_that_begin_anew_are_not_taken_for_rates() {
    let (before, now) = (reading(9), reading(10));
    let mut anew = now.clone();
    anew.journals[0].module = reading(1).journals[0].module.clone();
    let luc = |snapshot: &Snapshot| snapshot.journals[0].luc.clone().and_then(|luc| luc.rates);
    assert!(luc(&Snapshot::between("", Some(&before), &anew)).is_none());

    let mut off = before.clone();
    off.journals[0].module = None;
    assert!(luc(&Snapshot::between("", Some(&off), &now)).is_none());
    let snapshot = Snapshot::between("", Some(&now), &off);
    assert!(snapshot.journals[0].luc.is_none());

    let mut other = now.clone();
    other.generation = Some(2);
    let snapshot = Snapshot::between("", Some(&before), &other);
    assert!(snapshot.journals[0].traced.is_none() && snapshot.processes.is_empty());

    let mut gone = before.clone();
    gone.journals.remove(0);
    let snapshot = Snapshot::between("", Some(&gone), &now);
    assert!(snapshot.journals[0].traced.is_none());
    assert_eq!(
        Snapshot::between("", Some(&now), &gone).journals.len(),
        1,
        "an unmounted one is left out"
    );
    // Two readings at one moment must not divide by 0.
    let snapshot = Snapshot::between("", Some(&now), &now);
    let traced = snapshot.journals[0].traced.as_ref().expect("traced");
    assert!(traced.syncs_per_s.abs() < 1e-9);
}

#[test]
fn fast_commits_have_a_rate_where_the_kernel_counts_them() {
    let (mut before, mut now) = (reading(9), reading(10));
    let rate = |before: &Reading, now: &Reading| {
        Snapshot::between("", Some(before), now).journals[0].fast_commits_per_s
    };
    assert_eq!(rate(&before, &now), None);
    now.journals[0].fast_commits = Some(12);
    assert_eq!(rate(&before, &now), None);
    before.journals[0].fast_commits = Some(5);
    assert!(rate(&before, &now).is_some_and(|per_s| (per_s - 7.0).abs() < 1e-9));
    // It was mounted anew.
    before.journals[0].fast_commits = Some(13);
    assert_eq!(rate(&before, &now), None);
}

#[test]
fn a_reused_process_number_begins_from_nothing() {
    let (before, mut now) = (reading(9), reading(10));
    let process = now.processes.get_mut(&40).expect("there");
    process.counts = TaskCounts {
        syncs: 7,
        ..TaskCounts::default()
    };
    now.processes.remove(&50);
    let snapshot = Snapshot::between("", Some(&before), &now);
    assert_eq!(snapshot.processes.len(), 1);
    assert!((snapshot.processes[0].syncs_per_s - 7.0).abs() < 1e-9);
}

#[test]
fn names_do_nothing_to_a_terminal() {
    assert_eq!(luc_trace::printable("a\u{1b}[2Jb\n"), "a?[2Jb?");
}
