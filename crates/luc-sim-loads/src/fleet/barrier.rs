//! A parallel program on a group of nodes: in each phase every rank writes its files, and all wait
//! until the last rank of the slowest node is done.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::record::Phases;
use crate::script::{Script, Task};
use luc_sim::measured::Measured;
use luc_sim::node::{Node, Setup};
use luc_sim::program::{Op, Program};
use luc_sim::random;

/// The largest difference between the nodes' clocks, and thus between the angles of their disks,
/// ns.
const CLOCKS_SPREAD_NS: u64 = 1_000_000_000;
/// Bytes of each write of a service.
const SERVICE_BYTES: u32 = 4096;

/// The work of all nodes of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub phases: u32,
    /// Files that each rank writes in each phase.
    pub files: u32,
    pub bytes: u32,
    pub compute_ns: u64,
    pub leave_ns: u64,
}

/// A node of a group.
pub(super) struct Member {
    pub setup: Setup,
    pub ranks: u32,
    /// Period of the service beside the program; 0 if there is none.
    pub service_period_ns: u64,
}

/// Runs a job on nodes that it creates for it.
pub(super) fn run(job: &Job, members: &[Member]) -> Phases {
    let mut nodes: Vec<Placed> = members.iter().map(|it| Placed::new(job, it)).collect();
    let mut phases = Phases::default();
    let mut begin_ns = 0;
    for phase in 0..job.phases {
        begin_ns += job.compute_ns;
        let took = nodes
            .iter_mut()
            .map(|node| node.phase(job, phase, begin_ns));
        let took_ns: Vec<u64> = took.collect();
        let slowest_ns = took_ns.iter().copied().max().unwrap_or(0);
        phases.slowest_ns.push(slowest_ns);
        let sum_ns: u64 = took_ns.iter().sum();
        phases.mean_ns.push(sum_ns / nodes.len().max(1) as u64);
        begin_ns += slowest_ns;
    }
    let ranks = members.iter().map(|it| u64::from(it.ranks)).sum::<u64>();
    phases.fsyncs = ranks * u64::from(job.files) * u64::from(job.phases);
    phases
}

/// How many ranks of a node have not reached the barrier, and the time of the last arrival.
#[derive(Default)]
struct Arrivals {
    left: AtomicU32,
    last_ns: AtomicU64,
}

impl Arrivals {
    fn arrive(&self, now_ns: u64) {
        self.left.fetch_sub(1, Relaxed);
        self.last_ns.store(now_ns, Relaxed);
    }
}

/// A node with its ranks and its service.
struct Placed {
    node: Node,
    seed: u64,
    ranks: u32,
    arrivals: Arc<Arrivals>,
    /// The time of the node's clock when the group begins.
    clock_ns: u64,
}

impl Placed {
    fn new(job: &Job, member: &Member) -> Self {
        let (seed, ranks) = (member.setup.seed, member.ranks);
        let arrivals = Arc::<Arrivals>::default();
        let mut programs: Vec<Box<dyn Program>> = Vec::new();
        for number in 0..ranks {
            let (job, arrivals) = (*job, Arc::clone(&arrivals));
            let rank = |task| rank(task, job, number, arrivals);
            programs.push(Box::new(Script::new(rank)));
        }
        let period_ns = member.service_period_ns;
        if period_ns > 0 {
            let first_ns = random::below(seed, 1, period_ns);
            let service = |task| service(task, ranks, first_ns, period_ns);
            programs.push(Box::new(Script::new(service)));
        }
        let tasks = programs.len();
        // Only phases are timed here, not single operations.
        let mut node = Node::new(&member.setup, programs, Measured::new(tasks, 0, 0));
        for task in (0..).take(tasks) {
            node.begin(task, 0);
        }
        Self {
            node,
            seed,
            ranks,
            arrivals,
            clock_ns: random::below(seed, 0, CLOCKS_SPREAD_NS),
        }
    }

    /// Lets the ranks write; returns how long the last of them took.
    fn phase(&mut self, job: &Job, phase: u32, begin_ns: u64) -> u64 {
        let begin_ns = self.clock_ns + begin_ns;
        for rank in 0..self.ranks {
            // Higher than the purposes of the clock and of the service.
            let purpose = u64::from(phase + 1) << 32 | u64::from(rank);
            let within_ns = random::below(self.seed, purpose, job.leave_ns);
            self.node.release(rank, begin_ns + within_ns);
        }
        self.arrivals.left.store(self.ranks, Relaxed);
        while self.arrivals.left.load(Relaxed) > 0 && self.node.step(u64::MAX) {}
        self.arrivals.last_ns.load(Relaxed) - begin_ns
    }
}

/// A rank: writes its files each time it is released.
async fn rank(task: Task, job: Job, dir: u32, arrivals: Arc<Arrivals>) {
    loop {
        task.call(Op::Park).await;
        for _ in 0..job.files {
            task.call(Op::Create { dir }).await;
            task.call(Op::Write { bytes: job.bytes }).await;
            task.call(Op::Fsync).await;
            task.call(Op::Close).await;
        }
        arrivals.arrive(task.now_ns());
    }
}

/// A service: appends to its log and fsyncs it.
async fn service(task: Task, dir: u32, first_ns: u64, period_ns: u64) {
    task.call(Op::Create { dir }).await;
    let mut next_ns = first_ns;
    loop {
        task.call(Op::SleepUntil(next_ns)).await;
        let bytes = SERVICE_BYTES;
        task.call(Op::Write { bytes }).await;
        task.call(Op::Fsync).await;
        next_ns += period_ns;
    }
}

#[cfg(test)]
mod tests {
    use luc_control::Params;

    use super::*;
    use luc_sim::processors::ProcessorModel;

    const JOB: Job = Job {
        phases: 20,
        files: 1,
        bytes: 4096,
        compute_ns: 50_000_000,
        leave_ns: 50_000,
    };

    fn member(disk: &str, luc: bool, seed: u64) -> Member {
        Member {
            setup: Setup {
                luc: luc.then(Params::default),
                seed,
                ..Setup::stock(ProcessorModel::new(4, 1000.0), disk.parse().unwrap())
            },
            ranks: 4,
            service_period_ns: 0,
        }
    }

    #[test]
    fn a_phase_is_as_long_as_its_slowest_node() {
        let quick = || member("100us:4", false, 1);
        let alone = run(&JOB, &[quick()]);
        assert_eq!(alone.slowest_ns, alone.mean_ns);
        assert_eq!(alone.fsyncs, 4 * 20);
        let slow = run(&JOB, &[member("4ms:1", false, 2)]);
        let both = run(&JOB, &[quick(), member("4ms:1", false, 2)]);
        assert_eq!(both.slowest_ns, slow.slowest_ns);
        for ((both, slow), quick) in both.mean_ns.iter().zip(&slow.mean_ns).zip(&alone.mean_ns) {
            // In the group, the quick node begins its phases at other times.
            assert!(both.abs_diff(u64::midpoint(*slow, *quick)) < slow / 20);
        }
        assert_eq!(run(&JOB, &[quick()]), alone, "the same every time");
    }

    #[test]
    fn a_service_makes_a_straggler() {
        let with_service = || Member {
            service_period_ns: 10_000_000,
            ..member("4ms:1", false, 1)
        };
        let sum = |phases: &Phases| phases.slowest_ns.iter().sum::<u64>();
        let quiet = run(&JOB, &[member("4ms:1", false, 1)]);
        let busy = run(&JOB, &[with_service()]);
        assert!(sum(&busy) > sum(&quiet) * 21 / 20, "{busy:?} {quiet:?}");
        // LUC works here, too.
        let luc = run(&JOB, &[member("4ms:1", true, 1)]);
        assert_ne!(luc, quiet);
    }
}
