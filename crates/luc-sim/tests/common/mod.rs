//! Loads that several test files run.
#![allow(dead_code)] // each test file uses its part

use luc_control::Params;
use luc_sim::measured::Measured;
use luc_sim::processors::{ProcessorModel, TaskId};
use luc_sim::program::{Op, Program, Went};
use luc_sim::{Node, Setup};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

pub fn with_policy(name: &str) -> Params {
    let options = ["--policy", name].map(String::from);
    let params = luc_sim::knobs(&options).expect("a policy");
    params.expect("it steers")
}

/// Returns a machine on which one instruction takes a nanosecond.
pub fn setup(disk: &str, cpus: u16, luc: Option<Params>, seed: u64) -> Setup {
    let disk = disk.parse().expect("a disk");
    Setup {
        luc,
        seed,
        ..Setup::stock(ProcessorModel::new(cpus, 1000.0), disk)
    }
}

/// Creates the node before its first operation; the n-th program begins at `n * stagger_ns`.
pub fn node(setup: &Setup, programs: Vec<Box<dyn Program>>, stagger_ns: u64) -> Node {
    let tasks = programs.len();
    let mut node = Node::new(setup, programs, Measured::new(tasks, 0, u64::MAX));
    for (task, at) in (0..tasks).zip(0_u64..) {
        let task = TaskId::try_from(task).expect("few");
        node.begin(task, at * stagger_ns);
    }
    node
}

/// Pseudo-random times, the same in every run.
#[derive(Clone, Debug)]
pub struct Drawn(pub u64);

impl Drawn {
    /// Draws a time from 0 to `max_ns`.
    pub fn up_to(&mut self, max_ns: u64) -> u64 {
        // Numerical Recipes' generator; its high bits are the better ones.
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8 & 0xffff) * max_ns / 0xffff
    }
}

/// Threads that sync in a loop.
#[derive(Clone, Debug)]
pub struct Load {
    pub threads: u32,
    pub cpus: u16,
    /// Thread n begins at n times this, ns.
    pub stagger_ns: u64,
    /// Time from a sync to the next, ns: the minimum, and the maximum that is added.
    pub think_ns: u64,
    pub jitter_ns: u64,
    pub disk: String,
    pub seed: u64,
}

impl Load {
    /// The journal's thread and each other thread have their own processors.
    pub fn new(threads: u32, think_ns: u64, disk_us: u64) -> Self {
        Self {
            threads,
            cpus: u16::try_from(threads).expect("few") + 1,
            stagger_ns: 0,
            think_ns,
            jitter_ns: 0,
            disk: format!("{disk_us}us:64"),
            seed: 1,
        }
    }

    /// Creates the node before its first operation.
    pub fn node(&self, luc: Option<Params>) -> Node {
        let setup = setup(&self.disk, self.cpus, luc, self.seed);
        let programs = (0..self.threads).map(|number| {
            let drawn = Drawn(self.seed.wrapping_mul(1_000_003) + u64::from(number));
            Box::new(Thread::new(self.think_ns, self.jitter_ns, drawn)) as Box<dyn Program>
        });
        node(&setup, programs.collect(), self.stagger_ns)
    }
}

/// Changes, syncs and thinks.
pub struct Thread {
    think_ns: u64,
    jitter_ns: u64,
    drawn: Drawn,
    step: usize,
}

impl Thread {
    pub fn new(think_ns: u64, jitter_ns: u64, drawn: Drawn) -> Self {
        Self {
            think_ns,
            jitter_ns,
            drawn,
            step: 0,
        }
    }
}

impl Program for Thread {
    fn next(&mut self, _: &Went) -> Op {
        self.step += 1;
        match self.step % 3 {
            1 => Op::Utime,
            2 => Op::Fsync,
            _ => Op::Compute(self.think_ns + self.drawn.up_to(self.jitter_ns)),
        }
    }
}
