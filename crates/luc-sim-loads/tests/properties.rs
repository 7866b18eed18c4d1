//! Properties of every run, whatever is simulated.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use luc_control::Params;
use luc_sim::costs::Costs;
use luc_sim::disk::DiskKind;
use luc_sim::journal::Tid;
use luc_sim::journal::kind::{Choice, KINDS};
use luc_sim::processors::{ProcessorModel, SpeedChange, TaskId};
use luc_sim::program::{Op, Program, Went};
use luc_sim::{Node, Setup};
use luc_sim_loads::workloads::plan;
use luc_sim_loads::{Load, run};
use luc_workload::BenchReport;
use proptest::prelude::*;

const NS_PER_S: u64 = 1_000_000_000;

const LOADS: [&str; 6] = [
    "create-fsync --threads 1 --seconds 0.5 --warmup-s 0.25",
    "create-fsync --threads 24 --seconds 0.5 --warmup-s 0.25",
    "create-fsync --threads 7 --bytes 9000 --seconds 0.5 --warmup-s 0.25 --own-dirs",
    "write-delay --writers 12 --fsync-streams 3 --seconds 0.5 --warmup-s 0.25",
    "burst --threads 8 --bursts 10 --warmup-bursts 2",
    "metarates --procs 6 --files 12",
];

fn load(text: &str) -> Load {
    luc_sim_loads::load(text.split_whitespace()).expect("a benchmark")
}

fn setup(disk: &str, machine: ProcessorModel, luc: bool, seed: u64) -> Setup {
    Setup {
        luc: luc.then(Params::default),
        seed,
        ..Setup::stock(machine, disk.parse().expect("a disk"))
    }
}

fn rate_per_s(report: &BenchReport) -> f64 {
    report.outcome.found().figures().main.expect("a rate")
}

/// Operations that have ended since the last check: task, operation, times.
type Ended = Rc<RefCell<Vec<(TaskId, Op, Went)>>>;

/// A program whose operations are recorded.
struct Noted {
    program: Box<dyn Program>,
    task: TaskId,
    asked: Option<Op>,
    ended: Ended,
}

impl Program for Noted {
    fn next(&mut self, went: &Went) -> Op {
        if let Some(op) = self.asked {
            self.ended.borrow_mut().push((self.task, op, *went));
        }
        let op = self.program.next(went);
        self.asked = Some(op);
        op
    }
}

/// The checks that run after each event, with what they know of the transactions.
#[derive(Default)]
struct Watch {
    now_ns: u64,
    locked_ns: BTreeMap<Tid, u64>,
    committed_ns: BTreeMap<Tid, u64>,
    /// The handles of the locked transaction, and the buffers of those that commit.
    handles: Option<(Tid, u32)>,
    buffers: BTreeMap<Tid, usize>,
    of_files: Vec<Tid>,
    fsyncs: u64,
}

impl Watch {
    fn look(&mut self, node: &Node, ended: &Ended) -> Result<(), TestCaseError> {
        let now_ns = node.now_ns();
        prop_assert!(now_ns >= self.now_ns, "time goes back");
        self.now_ns = now_ns;
        // Check before locks are noted: a handle may be the last event before its lock.
        for (task, known) in (0..).zip(&mut self.of_files) {
            let tid = node.file_tid(task);
            // If a task turns to one of its old files, the transaction is that file's.
            if tid > *known {
                *known = tid;
                prop_assert_eq!(self.locked_ns.get(&tid), None, "a handle behind the lock");
            }
        }
        let journal = node.journal();
        if let Some(running) = journal.running.as_ref().filter(|it| it.is_locked) {
            self.locked_ns.entry(running.tid).or_insert(now_ns);
            let before = self.handles.replace((running.tid, running.handles));
            let grew = before.is_some_and(|(tid, n)| tid == running.tid && n != running.handles);
            prop_assert!(!grew, "a locked transaction grew");
        }
        for commit in &journal.committing {
            self.locked_ns.entry(commit.tid).or_insert(now_ns);
            let n = commit.buffers.len();
            let known = *self.buffers.entry(commit.tid).or_insert(n);
            prop_assert_eq!(known, n, "a committing transaction grew");
        }
        self.committed_ns.entry(journal.committed).or_insert(now_ns);
        for (task, op, went) in ended.borrow_mut().drain(..) {
            prop_assert!(went.begun_ns <= went.ended_ns && went.ended_ns <= now_ns);
            if op == Op::Fsync {
                let tid = node.file_tid(task);
                prop_assert!(
                    self.committed_ns.contains_key(&tid),
                    "an fsync before its commit"
                );
                self.fsyncs += 1;
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Time never goes back; an fsync ends after the commit of its transaction; a transaction
    /// contains nothing that began after its lock. This holds for every kind of journal.
    #[test]
    fn transactions_hold_what_they_promise(
        load_at in 0..LOADS.len(),
        disk in prop::sample::select(vec!["4ms:1", "100us:64", "0ns:1", "hdd-7200", "nvme"]),
        cpus in 1_u16..5,
        exponent in 0_i32..5,
        luc in any::<bool>(),
        kind in 0..KINDS.len(),
        mib in prop::sample::select(vec![4, 256]),
        seed in any::<u64>(),
    ) {
        let machine = ProcessorModel::new(cpus, 125.0 * 2.0_f64.powi(exponent));
        let kind = &KINDS[kind];
        let one = Setup {
            journal: Choice { kind, mib },
            ..setup(disk, machine, luc && kind.takes_luc, seed)
        };
        let mut plan = plan(&load(LOADS[load_at]), &Costs::default(), &DiskKind::default()).expect("a plan");
        let ended = Ended::default();
        let programs = std::mem::take(&mut plan.programs);
        plan.programs = (0..).zip(programs).map(|(task, program)| {
            let ended = Rc::clone(&ended);
            Box::new(Noted { program, task, asked: None, ended }) as Box<dyn Program>
        }).collect();
        let mut watch = Watch { of_files: vec![0; plan.programs.len()], ..Watch::default() };
        // Metarates ends with its last operation.
        let end_ns = plan.measured.until_ns.min(20 * NS_PER_S);
        let (mut node, _) = plan.node(&one);
        node.start();
        while node.step(end_ns) {
            watch.look(&node, &ended)?;
        }
        prop_assert!(watch.fsyncs > 0 && watch.committed_ns.len() > 1);
    }

    /// The same input gives the same report; no rate is above what the disk can do: a commit is a
    /// write of the log, then one of its record.
    #[test]
    fn runs_keep_their_bounds(
        threads in 1_u32..40,
        cpus in 1_u16..5,
        exponent in 0_i32..4,
        disk_us in 1_u64..5000,
        depth in 1_u32..65,
        luc in any::<bool>(),
    ) {
        let text = format!("create-fsync --threads {threads} --seconds 0.5 --warmup-s 0.25");
        let machine = ProcessorModel::new(cpus, 125.0 * 2.0_f64.powi(exponent));
        let one = setup(&format!("{disk_us}us:{depth}"), machine, luc, 1);
        let found = run(&load(&text), &one).expect("a run");
        prop_assert_eq!(&found, &run(&load(&text), &one).expect("a run"));
        let commits_max = found.elapsed_ns / (2_000 * disk_us) + 1;
        prop_assert!(found.journal.expect("commits").commits <= commits_max);
        prop_assert!(found.fsyncs_per_commit.expect("commits") <= f64::from(threads) + 1.0);
        let busy_ns = found.cpu_busy_ns.expect("busy");
        prop_assert!(busy_ns <= found.elapsed_ns * u64::from(cpus) + 8_000_000);
    }

    /// On stock no constant time matters: half of all times gives twice all rates. If tasks wait
    /// for a processor, or sleep, the kernel's tick and timer slack would matter.
    #[test]
    fn half_the_times_give_twice_the_rates(
        threads in 1_u16..16,
        exponent in 0_i32..4,
        disk_us in 1_u64..3000,
        depth in 1_u32..65,
    ) {
        let rate = |scale: u32| {
            let seconds = 0.5 * f64::from(scale);
            let length = format!("--seconds {seconds} --warmup-s {}", seconds / 4.0);
            let text = format!("create-fsync --threads {threads} {length}");
            let mips = 125.0 * 2.0_f64.powi(exponent) / seconds;
            // The journal's thread has its own processor.
            let machine = ProcessorModel::new(threads + 1, mips);
            let disk = format!("{}us:{depth}", disk_us * u64::from(scale));
            let mut plan = plan(&load(&text), &Costs::default(), &DiskKind::default()).expect("a plan");
            plan.begin_spread_ns = plan.begin_spread_ns / 2 * u64::from(scale);
            let (from_ns, until_ns) = (plan.measured.from_ns, plan.measured.until_ns);
            prop_assert_eq!(until_ns - from_ns, u64::from(scale) * NS_PER_S / 2);
            let (mut node, outcome) = plan.node(&setup(&disk, machine, false, 1));
            node.start();
            node.run(node.measured.until_ns);
            let rate_per_s = outcome(&node.measured).expect("figures").outcome.found().figures().main;
            Ok(rate_per_s.expect("a rate") * seconds)
        };
        let (fast, slow) = (rate(1)?, rate(2)?);
        prop_assert!((fast / slow - 1.0).abs() < 0.01, "{fast} and {slow} in the same time");
    }
}

/// If the disk takes no time, the rate grows with the processor's speed, from the change on.
#[test]
fn a_speed_change_counts_from_its_moment() {
    let rate = |mips: f64, changes: Vec<SpeedChange>| {
        let machine = ProcessorModel {
            changes,
            ..ProcessorModel::new(1, mips)
        };
        let load = load("create-fsync --threads 1 --seconds 2 --warmup-s 1");
        rate_per_s(&run(&load, &setup("0ns:1", machine, false, 1)).expect("a run"))
    };
    let to = |at_ns, mips| SpeedChange {
        at_ns,
        mips: vec![mips],
    };
    let slow = rate(1000.0, Vec::new());
    for (changes, gain) in [
        (vec![to(NS_PER_S, 2000.0)], 2.0),
        (vec![to(2 * NS_PER_S, 2000.0)], 1.5),
        (vec![to(0, 4000.0), to(2 * NS_PER_S, 1000.0)], 2.5),
        (vec![to(3 * NS_PER_S, 2000.0)], 1.0),
    ] {
        let found = rate(1000.0, changes) / slow;
        assert!((found / gain - 1.0).abs() < 0.01, "{found} for {gain}");
    }
}

/// Big and little cores together are slower than big ones only, and faster than little ones only.
#[test]
fn unequal_processors_stand_between_equal_ones() {
    let rate = |mips: [f64; 2]| {
        let machine = ProcessorModel {
            mips: mips.to_vec(),
            ..ProcessorModel::new(2, 1000.0)
        };
        let load = load("create-fsync --threads 8 --seconds 0.5 --warmup-s 0.25");
        rate_per_s(&run(&load, &setup("10us:1", machine, true, 1)).expect("a run"))
    };
    let (little, mixed, big) = (rate([1e3; 2]), rate([4e3, 1e3]), rate([4e3; 2]));
    assert!(
        little * 1.2 < mixed && mixed * 1.2 < big,
        "{little} {mixed} {big}"
    );
}
