//! Compares journals with each other and with bounds, and runs them with almost no space.

use luc_sim::journal::kind::{Choice, KINDS};
use luc_sim::processors::ProcessorModel;
use luc_sim::{Setup, SimError};
use luc_sim_loads::{load, run};
use luc_workload::{BenchReport, CreateFsyncResult, Outcome, WriteDelayResult};
use proptest::prelude::*;

fn setup(journal: &str, mib: Option<u32>, disk: &str) -> Setup {
    Setup {
        journal: Choice::new(journal, mib).expect("a journal"),
        ..Setup::stock(
            ProcessorModel::new(1, 1000.0),
            disk.parse().expect("a disk"),
        )
    }
}

fn report(text: &str, setup: &Setup) -> Result<BenchReport, SimError> {
    run(&load(text.split_whitespace())?, setup)
}

fn loops(options: &str, setup: &Setup) -> CreateFsyncResult {
    match report(&format!("create-fsync {options}"), setup).map(|it| it.outcome) {
        Ok(Outcome::CreateFsync(found)) => found,
        other => panic!("{other:?}"),
    }
}

fn writers(setup: &Setup) -> WriteDelayResult {
    let text = "write-delay --writers 48 --seconds 1 --warmup-s 0.5";
    match report(text, setup).map(|it| it.outcome) {
        Ok(Outcome::WriteDelay(found)) => found,
        other => panic!("{other:?}"),
    }
}

/// A lone task waits for its whole commit: two writes of 4 ms, or one.
#[test]
fn a_lone_task_waits_for_the_writes_of_its_commit() {
    for kind in &KINDS {
        let has_record = ["jbd2", "concurrent-commits"].contains(&kind.name);
        let bound = if has_record { 125.0 } else { 250.0 };
        let options = "--threads 1 --seconds 2 --warmup-s 0.5";
        let found = loops(options, &setup(kind.name, None, "4ms:1"));
        let share = found.ops_per_s / bound;
        assert!((0.95..1.0).contains(&share), "{}: {share}", kind.name);
    }
}

/// Files per second of XFS in the lab, kernel 6.12: the simulator is within a fifth, without a
/// fitted factor. XFS' creates do not cost what ext4's do, hence no comparison with many threads.
#[test]
fn delayed_logging_is_near_xfs() {
    for (disk, threads, lab) in [
        ("4ms:1", 4, 580.0),
        ("4ms:1", 16, 2060.0),
        ("hdd-7200", 4, 235.0),
        ("hdd-7200", 16, 923.0),
        ("cloud-volume", 4, 2622.0),
        ("cloud-volume", 16, 7650.0),
    ] {
        let options = format!("--threads {threads} --seconds 1 --warmup-s 0.5");
        let found = loops(&options, &setup("delayed-logging", None, disk)).ops_per_s;
        assert!((found / lab - 1.0).abs() < 0.2, "{disk}: {found} for {lab}");
    }
}

/// In jbd2, writers sleep on the buffers of a commit. If commits have versions of their buffers, or
/// log changes, writers do not sleep.
#[test]
fn only_shadowed_buffers_delay_writes() {
    for kind in &KINDS {
        let found = writers(&setup(kind.name, None, "4ms:1"));
        let is_delayed = found.delayed_share > 0.15;
        assert_eq!(is_delayed, kind.name == "jbd2", "{}: {found:?}", kind.name);
    }
}

/// If a disk serves many requests at once, more concurrent commits achieve more.
#[test]
fn commits_on_their_way_together_use_a_parallel_disk() {
    let rate = |name| {
        let options = "--threads 4 --seconds 1 --warmup-s 0.5";
        loops(options, &setup(name, None, "1ms:64")).ops_per_s
    };
    assert!(rate("concurrent-commits") > 1.5 * rate("jbd2"));
    assert!(rate("ordered-commits") > 1.5 * rate("concurrent-commits"));
    assert!(rate("log-per-sync") > 1.3 * rate("delayed-logging"));
}

/// Checkpoints of a small journal cost writes; larger journals have none in this time.
#[test]
fn checkpoints_cost() {
    let rate = |mib| {
        let options = "--threads 4 --seconds 4 --warmup-s 2";
        loops(options, &setup("jbd2", Some(mib), "4ms:1")).ops_per_s
    };
    let (small, middle, large) = (rate(4), rate(64), rate(256));
    assert!(small < 0.95 * large, "{small} {large}");
    assert!((middle / large - 1.0).abs() < 1e-9, "{middle} {large}");
}

/// After 30 s the flusher writes metadata home, which delays a sync.
#[test]
fn old_metadata_goes_home() {
    let longest_ms = |warmup_s| {
        let options = format!("--threads 1 --seconds 5 --warmup-s {warmup_s}");
        loops(&options, &setup("jbd2", None, "4ms:1")).fsync.max_ns / 1_000_000
    };
    assert_eq!(longest_ms(20), 8);
    let longest_ms = longest_ms(33);
    assert!((12..100).contains(&longest_ms), "{longest_ms}");
}

/// Files with data, whose blocks a commit waits for or not, in a log that fills many times.
#[test]
fn data_goes_with_every_journal() {
    for kind in &KINDS {
        for mount in ["", "dioread_lock"] {
            let one = Setup {
                mount: mount.parse().expect("options"),
                ..setup(kind.name, Some(4), "sata-ssd")
            };
            let found = loops("--threads 8 --bytes 8192 --seconds 1 --warmup-s 1", &one);
            let (least, most) = (found.thread_ops_min, found.thread_ops_max);
            assert!(
                least > 20 && most < 2 * least,
                "{} {mount}: {found:?}",
                kind.name
            );
        }
    }
}

/// Without syncs, only tasks that find the transaction full ask for a commit.
#[test]
fn a_full_transaction_commits_at_once() {
    let text = "metarates --procs 24 --files 400 --unique-dirs --no-fsync";
    for kind in KINDS.iter().filter(|kind| kind.name != "dualfs") {
        let found = report(text, &setup(kind.name, Some(4), "4ms:1")).expect("it ends");
        let Outcome::Metarates(found) = found.outcome else {
            panic!("{found:?}")
        };
        // The commit interval is 5 s.
        let phase = &found.phases[0];
        assert_eq!(phase.ops, 9600, "{}", kind.name);
        assert!(
            phase.time_max_ns < 2_000_000_000,
            "{}: {phase:?}",
            kind.name
        );
    }
}

#[test]
fn other_journals_are_not_steered() {
    let mut with_luc = setup("dualfs", None, "4ms:1");
    with_luc.luc = Some(luc_control::Params::default());
    let error = report("burst", &with_luc).expect_err("refused").to_string();
    assert!(
        error.contains("jbd2") && error.contains("dualfs"),
        "{error}"
    );
}

/// A log that is the home holds all metadata, or an error says that it cannot.
#[test]
fn a_full_log_is_told() {
    let options = "create-fsync --threads 16 --seconds 6";
    let error = report(options, &setup("dualfs", Some(4), "100us:64"));
    let error = error.expect_err("full").to_string();
    assert!(error.contains("full") && error.contains("4 MiB"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// With the smallest journal, whose log fills many times, all files are created.
    #[test]
    fn runs_without_space_end(
        kind in 0..KINDS.len(), procs in 1_u32..24, cpus in 1_u16..5, unique in any::<bool>(),
        disk in prop::sample::select(vec!["4ms:1", "100us:64", "hdd-7200", "nvme", "cloud-volume"]),
        luc in any::<bool>(), seed in any::<u64>(),
    ) {
        let kind = &KINDS[kind];
        let files = 1200 / procs;
        let unique_dirs = if unique { "--unique-dirs" } else { "" };
        let text = format!("metarates --procs {procs} --files {files} {unique_dirs}");
        let one = Setup {
            machine: ProcessorModel::new(cpus, 1000.0),
            luc: (luc && kind.takes_luc).then(luc_control::Params::default),
            seed,
            ..setup(kind.name, Some(4), disk)
        };
        let found = report(&text, &one).expect("it ends");
        prop_assert_eq!(&found, &report(&text, &one).expect("it ends"));
        let Outcome::Metarates(found) = found.outcome else { panic!("{found:?}") };
        prop_assert_eq!(found.phases[0].ops, u64::from(procs * files), "{}", kind.name);
        prop_assert_eq!(found.fsync.count, u64::from(procs * files));
    }
}
