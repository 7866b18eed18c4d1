//! Compares with the lab's figures (`luc-lab run`): Debian's 6.12 on virtual time, one processor of
//! 1000 MIPS.

use luc_sim::disk::DiskKind;
use luc_sim::journal::kind::Choice;
use luc_sim::processors::ProcessorModel;
use luc_sim::{Setup, knobs};
use luc_sim_loads::{load, run};
use luc_workload::{CreateFsyncResult, Outcome};

/// Seeds of each figure.
const SEEDS: u64 = 4;

/// Runs `create-fsync` with these options; `policy` is one of `luc on --policy`, or empty for
/// stock.
fn create_fsync(disk: &str, policy: &str, options: &str) -> Vec<CreateFsyncResult> {
    let text = format!("create-fsync {options}");
    let load = load(text.split_whitespace()).expect("a benchmark");
    let disk: DiskKind = disk.parse().expect("a disk");
    let luc = match policy {
        "" => None,
        name => knobs(&["--policy", name].map(String::from)).expect("knobs"),
    };
    let one = |seed| {
        let setup = Setup {
            journal: Choice::on("jbd2", None, disk.size_mib).expect("a journal"),
            luc,
            seed,
            ..Setup::stock(ProcessorModel::new(1, 1000.0), disk.clone())
        };
        match run(&load, &setup).expect("a report").outcome {
            Outcome::CreateFsync(found) => found,
            other => panic!("{other:?}"),
        }
    };
    (1..=SEEDS).map(one).collect()
}

/// Tells whether a quarter of the seeds is within 5% of the lab's rate, as in `luc-lab sim
/// validate`.
fn agrees(lab_per_s: f64, found: &[CreateFsyncResult]) -> bool {
    let is_near = |it: &&CreateFsyncResult| (it.ops_per_s / lab_per_s - 1.0).abs() <= 0.05;
    found.iter().filter(is_near).count() * 4 >= found.len()
}

/// Both policies hold by rules that a single convoy escapes and two do not. The scheduler decides
/// which of these happens, when the first task that a commit woke asks for the next commit.
#[test]
fn age_and_published_leave_two_convoys() {
    for (policy, threads, lab_per_s) in [
        ("", 3, 74.0),
        ("age", 3, 74.7),
        ("age", 16, 391.0),
        ("age", 48, 2064.0),
        ("published", 3, 74.0),
        ("published", 16, 390.0),
    ] {
        let options = format!("--threads {threads} --seconds 2 --warmup-s 1");
        let found = create_fsync("10ms:1", policy, &options);
        let rates: Vec<f64> = found.iter().map(|it| it.ops_per_s).collect();
        assert!(
            agrees(lab_per_s, &found),
            "{policy} {threads}: {lab_per_s}, {rates:?}"
        );
    }
}

/// Data may use three of the four tags, a commit's log uses the fourth: batches wait for data, so
/// LUC finds no gain.
#[test]
fn data_is_throttled() {
    for (policy, lab_per_s) in [("", 2073.3), ("luc", 2041.0)] {
        let options = "--threads 12 --bytes 4096 --seconds 1.5 --warmup-s 1";
        let found = create_fsync("1ms:4", policy, options);
        let rates: Vec<f64> = found.iter().map(|it| it.ops_per_s).collect();
        assert!(
            agrees(lab_per_s, &found),
            "{policy}: {lab_per_s}, {rates:?}"
        );
    }
}
