//! Compares the simulator with the lab on all results that both can produce.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::cell::Cell;
use crate::measures;
use crate::places::sim::Sim;
use crate::places::{Place as _, shown};
use crate::result::ArmResult;
use crate::store::CellResult;

/// The measures that are compared.
const RATE: &str = "rate";
const TWO_COMMITS: &str = "two_commits_share";

/// Default number of seeds for each cell.
pub const SEEDS: u32 = 8;
/// A simulated figure is near the lab's if it is off by at most this share.
pub const NEAR_SHARE: f64 = 0.05;
/// The simulator agrees with the lab if at least this share of its seeds is near the lab's figure.
/// A load may have several states, of which the lab shows one; the simulator must reach that one
/// often.
pub const AGREES_SHARE: f64 = 0.25;

/// A figure in the lab, and in the simulator over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedFigure {
    pub lab: f64,
    pub sim_median: f64,
    pub sim_min: f64,
    pub sim_max: f64,
    /// Share of the seeds whose figure is within [`NEAR_SHARE`] of the lab's.
    pub near_share: f64,
}

impl SimulatedFigure {
    /// `None` if there is no seed.
    fn new(lab: f64, mut sim: Vec<f64>) -> Option<Self> {
        sim.sort_by(f64::total_cmp);
        let near = within(sim.iter().map(|sim| sim / lab - 1.0), NEAR_SHARE);
        Some(Self {
            lab,
            sim_median: luc_stats::median(&sim)?,
            sim_min: *sim.first()?,
            sim_max: *sim.last()?,
            near_share: near.0 as f64 / near.1 as f64,
        })
    }

    /// How far the simulator's median is off, as a share of the lab's figure.
    pub fn error_share(&self) -> f64 {
        self.sim_median / self.lab - 1.0
    }

    /// Whether enough of the seeds are near the lab's figure.
    pub fn agrees(&self) -> bool {
        self.near_share >= AGREES_SHARE
    }
}

/// One arm of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedArm {
    /// The cell as the user sees it.
    pub cell: String,
    /// Name of its benchmark, or of its workload file.
    pub benchmark: String,
    pub arm: String,
    /// The benchmark's main figure: a rate per second, or for `write-burst` a time in ms.
    pub rate: SimulatedFigure,
    /// Ratio to the cell's first arm; `None` for that arm itself.
    pub ratio: Option<SimulatedFigure>,
    /// Share of syncs that waited for two commits, if the lab knows it. The simulator's is the
    /// median over its seeds.
    pub lab_two_commits_share: Option<f64>,
    pub sim_two_commits_share: Option<f64>,
}

impl SimulatedArm {
    /// How far the simulator's share of syncs that waited for two commits is off.
    pub fn two_commits_error(&self) -> Option<f64> {
        Some(self.sim_two_commits_share? - self.lab_two_commits_share?)
    }
}

/// Everything that can be compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Validation {
    pub compared: Vec<SimulatedArm>,
    /// Cells whose benchmark, file system or number of processors the simulator does not have.
    pub left_out: usize,
}

/// Counts errors of at most `share`, and all errors.
pub fn within(errors: impl Iterator<Item = f64>, share: f64) -> (usize, usize) {
    errors.fold((0, 0), |(within, all), error| {
        (within + usize::from(error.abs() <= share), all + 1)
    })
}

/// Simulates every result of the lab that the simulator can, `seeds` times each.
pub fn validate(results: &[CellResult], seeds: u32) -> Validation {
    let mut all = Validation::default();
    for result in results.iter().filter(|result| result.cell.place == "lab") {
        match compare(result, seeds) {
            Some(compared) => all.compared.extend(compared),
            None => all.left_out += 1,
        }
    }
    all
}

fn compare(result: &CellResult, seeds: u32) -> Option<Vec<SimulatedArm>> {
    let mut cell = simulated(&result.cell)?;
    let mut title = shown(&result.cell);
    if is_in_host_time(&result.cell) {
        let mips = speed(&cell, result)?;
        // Writing to a String cannot fail.
        let _ = write!(title, " ({mips:.0} MIPS by its busy time)");
        cell.machine.insert("mips".to_owned(), format!("{mips:.1}"));
    }
    let measured = simulate(&cell, seeds)?;
    let figure = |measure: &str, arms: &[ArmResult], name: &str| {
        let arm = arms.iter().find(|arm| arm.arm == name)?;
        measures::value(measure, arm, &result.cell)
    };
    let rate = |arms: &[ArmResult], name: &str| figure(RATE, arms, name).filter(|rate| *rate > 0.0);
    let first = cell.arms.first()?.name.clone();
    let ratio = |arms: &[ArmResult], name: &str| Some(rate(arms, name)? / rate(arms, &first)?);
    let compared = cell.arms.iter().filter_map(|named| {
        let name = named.name.as_str();
        let of_all = |of: &dyn Fn(&[ArmResult]) -> Option<f64>| {
            let all: Option<Vec<f64>> = measured.iter().map(|arms| of(arms)).collect();
            SimulatedFigure::new(of(&result.arms)?, all?)
        };
        let two_commits = |arms: &[ArmResult]| figure(TWO_COMMITS, arms, name);
        let lab_two_commits_share = two_commits(&result.arms);
        Some(SimulatedArm {
            cell: title.clone(),
            benchmark: benchmark(&cell.bench).to_owned(),
            arm: named.name.clone(),
            rate: of_all(&|arms| rate(arms, name))?,
            ratio: of_all(&|arms| ratio(arms, name)).filter(|_| name != first),
            lab_two_commits_share,
            sim_two_commits_share: of_all(&two_commits).map(|it| it.sim_median),
        })
    });
    Some(compared.collect())
}

/// Simulates the cell `seeds` times, with its own seed and those that follow. They change the
/// machine, not what the benchmark draws.
fn simulate(cell: &Cell, seeds: u32) -> Option<Vec<Vec<ArmResult>>> {
    let with = |seed: u32| {
        let seeded = Cell {
            seed: cell.seed.wrapping_add(u64::from(seed)),
            ..cell.clone()
        };
        Sim.simulate(&seeded).ok()
    };
    (0..seeds).map(with).collect()
}

/// Name of a command's benchmark, or of `run`'s workload file.
fn benchmark(command: &str) -> &str {
    let mut words = command.split(' ').skip_while(|word| *word == "run");
    words.next().unwrap_or_default()
}

fn is_in_host_time(cell: &Cell) -> bool {
    cell.machine.get("time").is_some_and(|time| time == "host")
}

/// The speed of a processor in host time, in million instructions per second. It is not set: it
/// follows from the instructions of an operation in the simulator, and from how long one kept the
/// guest's processors busy, both in the first arm.
fn speed(cell: &Cell, result: &CellResult) -> Option<f64> {
    // The guess matters little: an operation is about the same work at any speed.
    const GUESS: f64 = 500.0;
    let first = cell.arms.first()?;
    let mut guessed = Cell {
        arms: vec![first.clone()],
        ..cell.clone()
    };
    guessed.machine.insert("mips".to_owned(), GUESS.to_string());
    let simulated = Sim.simulate(&guessed).ok()?;
    let busy_ns = |arms: &[ArmResult]| {
        let arm = arms.iter().find(|arm| arm.arm == first.name)?;
        let rate_per_s = measures::value(RATE, arm, cell).filter(|rate| *rate > 0.0)?;
        let busy_share = arm.report.cpu_busy_ns? as f64 / arm.report.elapsed_ns as f64;
        Some(busy_share / rate_per_s)
    };
    Some(GUESS * busy_ns(&simulated)? / busy_ns(&result.arms)?)
}

/// The cell for the simulator, with those of its arms that the simulator has; `None` if the machine
/// is a different one. In virtual time several processors of the lab share the time of one, which
/// no real machine does.
fn simulated(cell: &Cell) -> Option<Cell> {
    let is = |factor: &str, value: &str| cell.machine.get(factor).is_none_or(|own| own == value);
    let has_own_time = is("vcpus", "1") || is_in_host_time(cell);
    if !(has_own_time && is("fs", "ext4") && is("mkfs", "")) {
        return None;
    }
    let machine: BTreeMap<String, String> = Sim
        .factors()
        .iter()
        .filter_map(|factor| {
            let value = cell.machine.get(factor.name)?;
            // A kernel that the simulator lacks gets the rules of the default kernel.
            let is_known = factor.name != "kernel" || (factor.check)(value).is_ok();
            is_known.then(|| (factor.name.to_owned(), value.clone()))
        })
        .collect();
    let one = |arms| Cell {
        place: Sim.name().to_owned(),
        machine: machine.clone(),
        arms,
        ..cell.clone()
    };
    let arms = cell.arms.iter();
    let known = arms.filter(|named| Sim.check(&one(vec![(*named).clone()])).is_ok());
    let known: Vec<_> = known.cloned().collect();
    (!known.is_empty()).then(|| one(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results behind the README: LUC and stock on virtual time, kernel 6.12.
    fn demo() -> Vec<CellResult> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/demo-results.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn the_simulator_agrees_with_the_lab() {
        let validation = validate(&demo(), 3);
        let all = &validation.compared;
        let loops: Vec<&SimulatedArm> = all
            .iter()
            .filter(|it| it.cell.starts_with("create-fsync"))
            .collect();
        assert!(loops.len() >= 18, "{}", loops.len());
        let errors = || loops.iter().map(|it| it.rate.error_share());
        let (near, count) = within(errors(), 0.10);
        assert!(near * 10 >= count * 7, "{near} of {count}: {loops:#?}");
        let stock_and_luc = loops.iter().filter(|it| it.arm == "luc");
        let ratios = stock_and_luc.filter_map(|it| Some(it.ratio.as_ref()?.error_share()));
        let (near, count) = within(ratios, 0.10);
        // Four threads on 100us:64 gain 1.47 in the lab and 1.64 here.
        assert!(near + 1 >= count, "{near} of {count}: {loops:#?}");
    }

    #[test]
    fn other_machines_are_left_out() {
        let mut results = demo();
        results.truncate(2);
        for (result, (factor, value)) in results.iter_mut().zip([("vcpus", "4"), ("fs", "ext3")]) {
            result.cell.machine.insert(factor.into(), value.into());
        }
        let validation = validate(&results, 1);
        assert_eq!((validation.compared.len(), validation.left_out), (0, 2));
    }

    /// The simulator's own result stands in for a machine in host time whose speed is unknown.
    #[test]
    fn the_speed_in_host_time_follows_from_the_busy_time() {
        let mut result = demo().swap_remove(0);
        for (factor, value) in [("time", "host"), ("vcpus", "2"), ("mips", "230")] {
            result.cell.machine.insert(factor.into(), value.into());
        }
        let cell = simulated(&result.cell).unwrap();
        result.arms = Sim.simulate(&cell).unwrap();
        // The factor's default, which means nothing in host time.
        result.cell.machine.insert("mips".into(), "1000".into());
        let mips = speed(&simulated(&result.cell).unwrap(), &result).unwrap();
        assert!((mips / 230.0 - 1.0).abs() < 0.1, "{mips}");
        let validation = validate(&[result], 1);
        let worst = validation
            .compared
            .iter()
            .map(|it| it.rate.error_share().abs());
        assert!(worst.fold(0.0, f64::max) < 0.05, "{validation:?}");
    }

    #[test]
    fn a_figure_agrees_with_a_state_that_a_quarter_of_the_seeds_show() {
        let figure = |lab, sim: &[f64]| SimulatedFigure::new(lab, sim.to_vec()).unwrap();
        let two_states = [100.0, 101.0, 102.0, 103.0, 99.0, 98.0, 150.0, 151.0];
        let other = figure(152.0, &two_states);
        assert!(other.agrees() && other.error_share() < -0.3, "{other:?}");
        assert!(figure(101.0, &two_states).agrees());
        assert!(!figure(125.0, &two_states).agrees(), "between the states");
        let rare = [100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 150.0];
        assert!(!figure(150.0, &rare).agrees(), "one seed of eight");
        assert!(figure(100.0, &[90.0, 110.0]).error_share().abs() < 1e-9);
        assert_eq!(SimulatedFigure::new(1.0, Vec::new()), None);
    }
}
