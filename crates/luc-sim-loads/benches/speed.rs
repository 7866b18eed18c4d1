//! Simulated fsyncs per second of one core: `cargo bench -p luc-sim`. The time is the thread's own
//! CPU time, so that other work on the host does not count.

use luc_control::Params;
use luc_sim::Setup;
use luc_sim::processors::ProcessorModel;
use luc_sim_loads::{Load, load, run};
use rustix::time::{ClockId, clock_gettime};

/// Number of runs, of which the fastest counts: other work on the host can only slow a run down.
const RUNS: u32 = 5;

/// Disk, processors, threads, simulated seconds.
const CASES: [(&str, u16, u32, u32); 5] = [
    ("4ms:1", 1, 64, 60),
    ("100us:64", 4, 64, 10),
    ("hdd-7200", 4, 64, 120),
    ("nvme", 4, 16, 60),
    ("4ms:1", 1, 1, 600),
];

fn main() {
    println!("create-fsync, 1000 MIPS; best of {RUNS} runs");
    println!("disk      cpus threads        fsyncs  per second");
    for (disk, cpus, threads, seconds) in CASES {
        let words = format!("create-fsync --threads {threads} --warmup-s 0 --seconds {seconds}");
        let bench = load(words.split(' ')).expect("a benchmark's arguments");
        for luc in [false, true] {
            let setup = Setup {
                luc: luc.then(Params::default),
                ..Setup::stock(
                    ProcessorModel::new(cpus, 1000.0),
                    disk.parse().expect("a disk"),
                )
            };
            let (fsyncs, per_s) = best(&bench, &setup);
            let arm = if luc { "luc" } else { "stock" };
            println!("{disk:9} {cpus:4} {threads:7} {arm:5} {fsyncs:8} {per_s:11.0}");
        }
    }
}

/// Returns the simulated fsyncs of the fastest run, and their number per second of CPU time.
fn best(bench: &Load, setup: &Setup) -> (u64, f64) {
    let runs = (0..RUNS).map(|_| {
        let begun_s = thread_s();
        let report = run(bench, setup).expect("a run");
        let fsyncs = report.outcome.found().fsyncs();
        (fsyncs, fsyncs as f64 / (thread_s() - begun_s))
    });
    runs.fold(
        (0, 0.0),
        |best, run| if run.1 > best.1 { run } else { best },
    )
}

/// Returns the CPU time of this thread, seconds.
fn thread_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
