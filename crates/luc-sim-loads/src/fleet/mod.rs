//! Many nodes, each with a drawn disk, processors and load, on stock and with LUC; and parallel
//! programs on groups of nodes, whose phases last as long as the slowest node.
//!
//! A fleet is a list of tasks in a fixed order: the nodes, then the groups. A task's record depends
//! only on the fleet's arguments and the task, so the records are the same whichever thread
//! computes them, and an interrupted run can continue after its last record.

mod barrier;
pub mod record;
pub mod summary;
pub mod table;

use luc_base::Stop;
use luc_control::Params;
use luc_power::machine;
use rayon::prelude::*;
use serde_json::json;

use crate::{Load, Setup, SimError, simulate, workloads};
use barrier::{Job, Member};
use luc_sim::costs::Costs;
use luc_sim::disk::DiskKind;
use luc_sim::processors::ProcessorModel;
use record::{Figures, GroupRecord, HoldingVerdict, NodeRecord, Record};
use table::{Drawn, FleetTable};

/// Name and version of a file of records.
const SCHEMA: &str = "luc-sim-fleet-records/1";
const NS_PER_MS: u64 = 1_000_000;
const NS_PER_US: u64 = 1_000;
/// Tasks for each thread between two calls that hand out records.
const CHUNK_TASKS: usize = 16;

/// The parameters of a fleet.
#[derive(Clone, Debug)]
pub struct Arguments {
    pub table: FleetTable,
    pub nodes: u32,
    pub seed: u64,
    /// LUC's knobs.
    pub luc: Params,
    /// Sizes of the groups: nodes that run a parallel program.
    pub group_nodes: Vec<u32>,
    /// Phases of each parallel program.
    pub phases: u32,
    /// Files that each rank writes in a phase.
    pub files: u32,
    /// The machine whose energy the nodes take, with its name; `None` for no energy.
    pub energy: Option<(String, machine::PowerModel)>,
}

/// A fleet with valid arguments.
pub struct Fleet {
    arguments: Arguments,
    disks: Vec<DiskKind>,
    /// The benchmark for each load, each number of threads and each disk, in this order.
    benches: Vec<Vec<Vec<Load>>>,
    groups: Vec<Group>,
}

/// Nodes with the same kind of disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub disk: usize,
    pub nodes: Vec<u32>,
}

impl Fleet {
    /// # Errors
    /// An invalid disk, or a load that is not a benchmark of the simulator.
    pub fn new(arguments: Arguments) -> Result<Self, SimError> {
        let disks = arguments.table.disks.iter();
        let disks = disks.map(|row| {
            let kind: Result<DiskKind, _> = row.spec.parse();
            kind.map_err(|error| SimError::Arguments(error.to_string()))
        });
        let mut fleet = Self {
            disks: disks.collect::<Result<_, _>>()?,
            benches: Vec::new(),
            groups: Vec::new(),
            arguments,
        };
        fleet.benches = fleet.read_benches()?;
        fleet.groups = fleet.group();
        Ok(fleet)
    }

    fn read_benches(&self) -> Result<Vec<Vec<Vec<Load>>>, SimError> {
        let table = &self.arguments.table;
        let one = |load: usize, threads, disk| {
            let drawn = Drawn {
                disk,
                load,
                threads,
                ..table.draw(0, 0)
            };
            let bench = crate::load(table.words(&drawn));
            let known = bench.and_then(|bench| {
                workloads::plan(&bench, &Costs::default(), &self.disks[disk]).map(|_| bench)
            });
            known.map_err(|error| {
                SimError::Arguments(format!("load {}: {error}", table.loads[load].name))
            })
        };
        let of_load = |load: usize| {
            let threads = 0..table.loads[load].threads.len();
            let disks = 0..self.disks.len();
            let of_threads = |threads| disks.clone().map(|disk| one(load, threads, disk)).collect();
            threads.map(of_threads).collect()
        };
        (0..table.loads.len()).map(of_load).collect()
    }

    /// Groups nodes with the same kind of disk, in the order of their numbers; nodes too few to
    /// fill a group are left out.
    fn group(&self) -> Vec<Group> {
        if self.arguments.phases == 0 {
            return Vec::new();
        }
        let mut of_disk = vec![Vec::new(); self.disks.len()];
        for node in 0..self.nodes() {
            of_disk[self.drawn(node).disk].push(node);
        }
        let mut groups = Vec::new();
        for size in &self.arguments.group_nodes {
            for (disk, nodes) in of_disk.iter().enumerate() {
                let whole = nodes.chunks_exact((*size).max(1) as usize);
                groups.extend(whole.map(|nodes| Group {
                    disk,
                    nodes: nodes.to_vec(),
                }));
            }
        }
        groups
    }

    pub fn table(&self) -> &FleetTable {
        &self.arguments.table
    }

    pub fn nodes(&self) -> u32 {
        self.arguments.nodes
    }

    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns what a node is.
    pub fn drawn(&self, node: u32) -> Drawn {
        self.arguments.table.draw(self.arguments.seed, node)
    }

    /// Returns the number of records of a complete run.
    pub fn tasks(&self) -> usize {
        self.nodes() as usize + self.groups.len()
    }

    /// Returns the first line of a file of records: all that determines the records, including
    /// `sources`, the version of the simulator.
    pub fn header(&self, sources: &str) -> serde_json::Value {
        let it = &self.arguments;
        json!({
            "schema": SCHEMA,
            "sources": sources,
            "nodes": it.nodes,
            "seed": it.seed,
            "group": it.group_nodes,
            "phases": it.phases,
            "files": it.files,
            "knobs": it.luc.values(),
            "energy": it.energy.as_ref().map(|(name, _)| name),
            "table": it.table,
        })
    }

    /// Runs the tasks after the first `done` on `jobs` processors at once (0: all), and hands out
    /// their records in order, in portions. Ends early if `stop` is set or `take` fails.
    ///
    /// # Errors
    /// The error of `take`.
    pub fn run<E>(
        &self,
        done: usize,
        jobs: usize,
        stop: &Stop,
        mut take: impl FnMut(Vec<Record>) -> Result<(), E>,
    ) -> Result<(), E> {
        // If no threads can be created, this thread does the work.
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs)
            .build()
            .ok();
        let workers = pool
            .as_ref()
            .map_or(1, rayon::ThreadPool::current_num_threads);
        let mut begin = done;
        while begin < self.tasks() && !stop.is_set() {
            let end = self.tasks().min(begin + CHUNK_TASKS * workers);
            let task = |task| (!stop.is_set()).then(|| self.task(task));
            let records: Vec<Option<Record>> = match &pool {
                Some(pool) => pool.install(|| (begin..end).into_par_iter().map(task).collect()),
                None => (begin..end).map(task).collect(),
            };
            // Records after a task that was not done would leave a gap.
            take(
                records
                    .into_iter()
                    .map_while(std::convert::identity)
                    .collect(),
            )?;
            begin = end;
        }
        Ok(())
    }

    fn task(&self, task: usize) -> Record {
        match task.checked_sub(self.nodes() as usize) {
            None => Record::Node(self.node(u32::try_from(task).unwrap_or(u32::MAX))),
            Some(group) => Record::Group(self.program(group)),
        }
    }

    fn setup(&self, drawn: &Drawn, luc: bool) -> Setup {
        let cpus = self.arguments.table.machines[drawn.machine].cpus;
        let machine = ProcessorModel::new(cpus, f64::from(drawn.mips));
        Setup {
            luc: luc.then_some(self.arguments.luc),
            seed: drawn.seed,
            ..Setup::stock(machine, self.disks[drawn.disk].clone())
        }
    }

    /// Simulates a node with its load.
    fn node(&self, node: u32) -> NodeRecord {
        let drawn = self.drawn(node);
        let bench = &self.benches[drawn.load][drawn.threads][drawn.disk];
        let mut verdict = HoldingVerdict::None;
        let [stock, luc] = [false, true].map(|luc| {
            // Every benchmark of the table has a plan: see `new`.
            let Ok((report, end)) = simulate(bench, &self.setup(&drawn, luc), |_| {}) else {
                return Figures::default();
            };
            if let Some(state) = end.controllers() {
                verdict = HoldingVerdict::from_winner(state.trial_winner);
            }
            let found = report.outcome.found();
            let energy = self.arguments.energy.as_ref().zip(report.activity.as_ref());
            let watts = energy.map(|((_, machine), activity)| {
                machine.energy(activity).total_j() * 1e9 / activity.elapsed_ns as f64
            });
            Figures {
                watts,
                per_s: found.figures().main.unwrap_or(0.0),
                fsyncs: found.fsyncs(),
                commits: report.journal.map_or(0, |journal| journal.commits),
            }
        });
        NodeRecord {
            node,
            stock,
            luc,
            verdict,
        }
    }

    /// Simulates a parallel program on a group.
    fn program(&self, number: usize) -> GroupRecord {
        let Arguments { table, .. } = &self.arguments;
        let group = &self.groups[number];
        let job = Job {
            phases: self.arguments.phases,
            files: self.arguments.files,
            bytes: table.program.bytes,
            compute_ns: u64::from(table.program.compute_ms) * NS_PER_MS,
            leave_ns: u64::from(table.program.leave_us) * NS_PER_US,
        };
        let [stock, luc] = [false, true].map(|luc| {
            let members = group.nodes.iter().map(|node| {
                let drawn = self.drawn(*node);
                let cpus = table.machines[drawn.machine].cpus;
                let period_ms = table.services[drawn.service].period_ms;
                Member {
                    setup: self.setup(&drawn, luc),
                    ranks: u32::from(cpus.min(table.program.ranks_max)),
                    service_period_ns: u64::from(period_ms) * NS_PER_MS,
                }
            });
            barrier::run(&job, &members.collect::<Vec<_>>())
        });
        GroupRecord {
            group: u32::try_from(number).unwrap_or(u32::MAX),
            nodes: u32::try_from(group.nodes.len()).unwrap_or(u32::MAX),
            stock,
            luc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::summary::Summary;
    use super::*;

    fn fleet(change: impl FnOnce(&mut Arguments)) -> Fleet {
        let mut table = FleetTable::read(table::BUILTIN).unwrap();
        for disk in &mut table.disks {
            disk.seconds /= 40.0;
        }
        let mut arguments = Arguments {
            table,
            nodes: 24,
            seed: 3,
            luc: Params::default(),
            group_nodes: vec![2, 5],
            phases: 3,
            files: 1,
            energy: Some(("r710".to_owned(), "r710".parse().unwrap())),
        };
        change(&mut arguments);
        Fleet::new(arguments).unwrap()
    }

    fn records(fleet: &Fleet, done: usize, jobs: usize) -> Vec<Record> {
        let mut all = Vec::new();
        let take = |some| {
            all.extend(some);
            Ok::<(), ()>(())
        };
        fleet.run(done, jobs, &Stop::new(), take).unwrap();
        all
    }

    #[test]
    fn records_are_the_same_whoever_does_them() {
        let fleet = fleet(|_| ());
        let all = records(&fleet, 0, 1);
        assert_eq!(all.len(), fleet.tasks());
        assert_eq!(all, records(&fleet, 0, 3));
        assert_eq!(all[7..], records(&fleet, 7, 2));
        // A group has one kind of disk, and each size of group has a node at most once.
        for group in fleet.groups() {
            assert!(
                group
                    .nodes
                    .iter()
                    .all(|node| fleet.drawn(*node).disk == group.disk)
            );
        }
        let of_two = fleet.groups().iter().filter(|group| group.nodes.len() == 2);
        let mut nodes: Vec<u32> = of_two.flat_map(|group| group.nodes.clone()).collect();
        let count = nodes.len();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), count);
        let summary = Summary::from_records(&fleet, &all);
        assert_eq!((summary.nodes, summary.gains.unwrap().nodes), (24, 24));
        assert_eq!(summary.groups as usize, fleet.groups().len());
        let energy = summary.energy.unwrap();
        assert_eq!((energy.nodes, energy.machine.as_str()), (24, "r710"));
        assert!(
            energy.stock_watts > 85.0 && energy.luc_watts < 200.0,
            "{energy:?}"
        );
        assert!((-0.1..0.9).contains(&energy.saved_share), "{energy:?}");
        let guarded = summary.guard.iter().filter_map(|row| row.gains);
        assert_eq!(guarded.map(|gains| gains.nodes).sum::<u32>(), 24);
    }

    #[test]
    fn a_stopped_run_leaves_no_gap() {
        let fleet = fleet(|_| ());
        let stop = Stop::new();
        let mut found = Vec::new();
        let take = |some: Vec<Record>| {
            stop.set();
            found.extend(some);
            Ok::<(), ()>(())
        };
        fleet.run(0, 1, &stop, take).unwrap();
        assert_eq!(found.len(), CHUNK_TASKS);
        assert_eq!(found[..], records(&fleet, 0, 2)[..CHUNK_TASKS]);
        assert_eq!(fleet.run(0, 1, &Stop::new(), |_| Err("full")), Err("full"));
    }

    #[test]
    fn loads_that_are_none_are_refused() {
        for (bench, why) in [
            ("create --threads {threads}", "unrecognized subcommand"),
            ("scaling", "the simulator has no scaling"),
        ] {
            let mut arguments = fleet(|_| ()).arguments;
            arguments.table.loads[1].bench = bench.to_owned();
            let error = Fleet::new(arguments).err().unwrap().to_string();
            assert!(error.starts_with("load files with data: "), "{error}");
            assert!(error.contains(why), "{error}");
        }
    }
}
