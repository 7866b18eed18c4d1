//! LUC beside stock in bad conditions: a disk that changes its speed, threads that come and go, a
//! journal of 4 MiB, 2000 threads, a clock that follows waits for the disk, processors that are the
//! bottleneck, convoys that a trial of LUC left behind.

#[path = "../../luc-sim/tests/common/mod.rs"]
mod common;

use common::{Drawn, Load, MS, S, Thread, US, node, setup, with_policy};
use luc_control::Params;
use luc_sim::disk::Speed;
use luc_sim::journal::kind::Choice;
use luc_sim::program::{Op, Program, Went};
use luc_sim::{Node, Setup, kernel, speeds};
use luc_sim_loads::{load, run};
use luc_workload::Outcome;

/// The least LUC/stock of the syncs done: of the geometric mean over the seeds, and of each seed.
/// All of 24 seeds keep them.
type Bounds = (f64, f64);

/// The bounds where holding gains nothing.
const EQUAL: Bounds = (0.97, 0.93);

/// Returns the seeds of the tests; `LUC_SEEDS=200` draws more of them.
fn seeds() -> std::ops::RangeInclusive<u64> {
    let asked = std::env::var("LUC_SEEDS").ok();
    1..=asked.and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Compares the syncs that `done` counts with LUC and on stock, for each part of a run.
fn compare(what: &str, bounds: &[Bounds], done: impl Fn(Option<Params>, u64) -> Vec<u64>) {
    let ratios = seeds().map(|seed| {
        let luc = done(Some(with_policy("luc")), seed);
        let stock = done(None, seed);
        assert_eq!((luc.len(), stock.len()), (bounds.len(), bounds.len()));
        let ratio = |(luc, stock): (u64, u64)| luc as f64 / stock as f64;
        luc.into_iter().zip(stock).map(ratio).collect()
    });
    let ratios: Vec<Vec<f64>> = ratios.collect();
    for (part, (mean_min, worst_min)) in bounds.iter().enumerate() {
        let of_part = || ratios.iter().map(|of_seed| of_seed[part]);
        let mean = (of_part().map(f64::ln).sum::<f64>() / ratios.len() as f64).exp();
        let worst = of_part().fold(f64::INFINITY, f64::min);
        let square = |ratio: f64| (ratio / mean).ln().powi(2);
        let deviation = (of_part().map(square).sum::<f64>() / ratios.len() as f64).sqrt();
        let found = format!("{what}, part {part}: mean {mean:.4}, worst {worst:.4}");
        println!("{found}, deviation {deviation:.4} of {}", ratios.len());
        assert!(mean >= *mean_min, "{found}: mean below {mean_min}");
        assert!(worst >= *worst_min, "{found}: worst below {worst_min}");
    }
}

/// Runs until the node's time is `until_ns`; returns how many syncs ended meanwhile.
fn syncs_until(node: &mut Node, until_ns: u64) -> u64 {
    let before = node.measured.syncs.count();
    node.run(until_ns);
    node.measured.syncs.count() - before
}

/// How long a part of a run is, and the disk's speed in it.
const PARTS: [(u64, u32); 5] = [(2, 1000), (2, 100), (6, 100), (2, 1000), (2, 1000)];

/// A disk becomes ten times slower, and then ten times faster. The parts of a run: before, the
/// first 2 s of each speed, and what follows.
#[test]
fn a_disk_changes_its_speed_tenfold() {
    const GAINS: [Bounds; 5] = [(1.8, 1.8); 5];
    const SAME: [Bounds; 5] = [EQUAL; 5];
    // Only while the disk is slow, commits take longer than the pauses between syncs.
    const GAINS_ON_A_SLOW_DISK: [Bounds; 5] = [EQUAL, (1.4, 1.1), (1.6, 1.5), EQUAL, EQUAL];
    for (disk, threads, think_us, jitter_us, bounds) in [
        ("1ms:64", 2, 50, 100, GAINS),
        ("nvme", 8, 50, 100, GAINS),
        ("hdd-7200", 16, 50, 100, GAINS),
        ("1ms:64", 4, 500, 4000, GAINS_ON_A_SLOW_DISK),
        ("1ms:64", 3, 5000, 20_000, SAME),
        ("nvme", 4, 500, 4000, GAINS_ON_A_SLOW_DISK),
        ("sata-ssd", 16, 2000, 8000, SAME),
        ("hdd-7200", 16, 5000, 20_000, SAME),
    ] {
        let what = format!("{disk}, {threads} threads, think {think_us} us, jitter {jitter_us}");
        compare(&what, &bounds, |luc, seed| {
            let load = Load {
                cpus: 4,
                jitter_ns: jitter_us * US,
                disk: disk.to_owned(),
                seed,
                ..Load::new(threads, think_us * US, 0)
            };
            let mut node = load.node(luc);
            let mut until_ns = 0;
            let part = |(seconds, permille)| {
                until_ns += seconds * S;
                node.set_disk_speed(Speed::permille(permille));
                syncs_until(&mut node, until_ns)
            };
            PARTS.map(part).to_vec()
        });
    }
}

/// One of a crowd: it syncs for a while, rests, and starts over.
struct Member {
    thread: Thread,
    drawn: Drawn,
    /// It takes part in these rounds.
    rounds: std::ops::Range<u64>,
}

const ROUND_NS: u64 = 230 * MS;
const BUSY_NS: u64 = 30 * MS;

impl Program for Member {
    fn next(&mut self, went: &Went) -> Op {
        let round = went.ended_ns / ROUND_NS;
        if self.rounds.contains(&round) && went.ended_ns % ROUND_NS < BUSY_NS {
            return self.thread.next(went);
        }
        let next = self.rounds.start.max(round + 1);
        if next >= self.rounds.end {
            return Op::End;
        }
        Op::SleepUntil(next * ROUND_NS + self.drawn.up_to(MS))
    }
}

/// Returns a crowd of up to 16 whose members stop for good, and others begin, between rounds; and
/// two steady threads.
fn crowd(think_us: u64, rounds: u64, seed: u64) -> Vec<Box<dyn Program>> {
    let mut drawn = Drawn(seed.wrapping_mul(1_000_003));
    let mut programs: Vec<Box<dyn Program>> = Vec::new();
    let thread = |least_us: u64, more_us: u64, drawn: &mut Drawn| {
        let own = Drawn(drawn.up_to(1 << 40));
        Thread::new(least_us * US, more_us * US, own)
    };
    for _ in 0..2 {
        programs.push(Box::new(thread(1000, 1000, &mut drawn)));
    }
    for _ in 0..16 {
        let mut begin = drawn.up_to(3);
        while begin < rounds {
            let end = begin + 1 + drawn.up_to(6);
            programs.push(Box::new(Member {
                thread: thread(0, think_us, &mut drawn),
                drawn: Drawn(drawn.up_to(1 << 40)),
                rounds: begin..end,
            }));
            begin = end + drawn.up_to(3);
        }
    }
    programs
}

#[test]
fn threads_come_and_go() {
    for (disk, think_us, bounds) in [
        ("1ms:64", 100, EQUAL),
        ("sata-ssd", 100, EQUAL),
        ("nvme", 100, EQUAL),
        ("hdd-7200", 100, (1.35, 1.3)),
        ("nvme", 2000, EQUAL),
        ("hdd-7200", 2000, (1.35, 1.3)),
    ] {
        let what = format!("crowd, think up to {think_us} us, {disk}");
        compare(&what, &[bounds; 2], |luc, seed| {
            let programs = crowd(think_us, 36, seed);
            let mut node = node(&setup(disk, 4, luc, seed), programs, 0);
            [2, 5].map(|s| syncs_until(&mut node, s * S)).to_vec()
        });
    }
}

/// Runs a benchmark; returns how many files were created and synced, or operations done.
fn done(words: &str, setup: &Setup) -> u64 {
    let load = load(words.split_whitespace()).expect("a benchmark");
    let report = run(&load, setup).expect("a run");
    match report.outcome {
        Outcome::CreateFsync(found) => found.fsync.count,
        Outcome::Wml(found) => found.ops,
        other => panic!("{other:?}"),
    }
}

/// Fast disks lose: where the log runs full every few commits, two convoys use the time in which it
/// is emptied, and one does not (docs/controllers.md).
#[test]
fn a_journal_of_1024_blocks() {
    for (disk, threads, warmup_s, seconds, bounds) in [
        ("1ms:64", 16, 0.5, 1.0, (0.93, 0.92)),
        ("1ms:64", 64, 0.2, 0.3, (0.82, 0.75)),
        ("100us:64", 16, 0.1, 0.1, (0.9, 0.88)),
        ("sata-ssd", 16, 0.5, 0.5, (1.35, 1.3)),
        ("sata-ssd", 64, 0.25, 0.3, (1.2, 1.1)),
        ("hdd-7200", 16, 1.0, 1.5, (1.6, 1.5)),
        ("hdd-7200", 64, 1.0, 0.6, (1.4, 1.3)),
    ] {
        let what = format!("4 MiB, {threads} threads, {disk}");
        let words =
            format!("create-fsync --threads {threads} --warmup-s {warmup_s} --seconds {seconds}");
        compare(&what, &[bounds], |luc, seed| {
            let journal = Choice::new("jbd2", Some(4)).expect("a journal");
            let setup = Setup {
                journal,
                ..setup(disk, 4, luc, seed)
            };
            vec![done(&words, &setup)]
        });
    }
}

#[test]
fn two_thousand_threads() {
    for disk in ["1ms:64", "nvme"] {
        compare(&format!("2000 threads, {disk}"), &[EQUAL], |luc, seed| {
            let load = Load {
                threads: 2000,
                cpus: 4,
                jitter_ns: 100 * US,
                disk: disk.to_owned(),
                seed,
                ..Load::new(1, 50 * US, 0)
            };
            vec![syncs_until(&mut load.node(luc), S / 4)]
        });
    }
}

/// Fewer commits are fewer waits for the disk, which is what schedutil raises the clock for before
/// 6.5 (kernel commit 7d0583cf9ec7). A hold is such a wait itself: without that LUC had 0.72 of
/// stock on nvme-plp with 16 threads. Copies still cost the clock waits of writers
/// (docs/figures/power.md).
#[test]
fn a_clock_that_follows_waits_for_the_disk() {
    for (disk, threads, bounds) in [
        ("nvme-plp", 16, (1.1, 0.87)),
        // A loss of the first half second alone: over 3 s it gains 13%.
        ("nvme-plp", 64, (0.93, 0.85)),
        ("sata-ssd", 16, (1.7, 1.7)),
        ("cloud-volume", 64, (0.92, 0.87)),
    ] {
        let what = format!("schedutil of 6.1, {threads} threads, {disk}");
        let words = format!("create-fsync --threads {threads} --warmup-s 0 --seconds 0.5");
        compare(&what, &[bounds], |luc, seed| {
            let mut setup = setup(disk, 4, luc, seed);
            setup.mount.kernel = kernel::named("6.1").expect("a kernel");
            let scaling = speeds::scaling("schedutil", "e3-server", false);
            setup.machine.scaling = Some(scaling.expect("a governor"));
            vec![done(&words, &setup)]
        });
    }
}

/// Eight workers on one processor compute between their syncs. All of them waiting for one commit
/// would leave the processor idle, unless the journal is the bottleneck.
#[test]
fn processors_are_the_bottleneck() {
    for (compute, bounds) in [(1_500_000, (0.99, 0.98)), (200_000, (1.3, 1.25))] {
        let what = format!("eight workers, {compute} bytes");
        let words = format!("run queue -D compute={compute} --seconds 6 --warmup-s 0 --settle");
        compare(&what, &[bounds], |luc, seed| {
            let mut setup = setup("nvme", 1, luc, seed);
            setup.machine.mips.fill(1000.0);
            vec![done(&words, &setup)]
        });
    }
}

/// However busy neighbours keep the processor, tasks that sync wait for the journal.
#[test]
fn neighbours_keep_the_processor_busy() {
    for (hogs, bounds) in [(1, (1.6, 1.5)), (4, (1.4, 1.3))] {
        let what = format!("16 workers beside {hogs} tasks that compute");
        let words = format!("run neighbours -D hogs={hogs} --seconds 4 --warmup-s 0 --settle");
        compare(&what, &[bounds], |luc, seed| {
            let mut setup = setup("nvme", 1, luc, seed);
            setup.machine.mips.fill(1000.0);
            vec![done(&words, &setup)]
        });
    }
}

/// LUC merges 64 threads into one convoy and keeps it for 512 commits. Then a window of the trial
/// splits it, and what the threads do meanwhile must not keep LUC from merging them again.
#[test]
fn a_trial_leaves_the_gain_behind_it() {
    for (cpus, bounds) in [(4, (1.82, 1.78)), (8, (1.69, 1.65))] {
        let what = format!("after the trial, {cpus} processors");
        let words = "create-fsync --threads 64 --warmup-s 12 --seconds 2";
        compare(&what, &[bounds], |luc, seed| {
            let mut setup = setup("hdd-7200", cpus, luc, seed);
            setup.machine.mips.fill(3000.0);
            vec![done(words, &setup)]
        });
    }
}
