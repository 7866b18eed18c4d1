//! The simulator beside the lab: every cell of results that both can measure.

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

/// One arm of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The cell, for people.
    pub cell: String,
    /// Name of its benchmark, or of its workload file.
    pub benchmark: String,
    pub arm: String,
    /// The benchmark's main figure: a rate per second, or of `write-burst` a time in ms.
    pub lab: f64,
    pub sim: f64,
    /// To the cell's first arm; `None` of that.
    pub lab_ratio: Option<f64>,
    pub sim_ratio: Option<f64>,
    /// Share of syncs that waited for two commits, where the lab knows it.
    pub lab_two_commits_share: Option<f64>,
    pub sim_two_commits_share: Option<f64>,
}

impl Compared {
    /// How far the simulator's rate is off, as a share of the lab's.
    pub fn error_share(&self) -> f64 {
        self.sim / self.lab - 1.0
    }

    /// The same of the ratio.
    pub fn ratio_error_share(&self) -> Option<f64> {
        Some(self.sim_ratio? / self.lab_ratio? - 1.0)
    }

    /// How far the simulator's share of syncs that waited for two commits is off.
    pub fn two_commits_error(&self) -> Option<f64> {
        Some(self.sim_two_commits_share? - self.lab_two_commits_share?)
    }
}

/// All that can be compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Validation {
    pub compared: Vec<Compared>,
    /// Cells that the simulator does not have: their benchmark, file system, number of processors.
    pub left_out: usize,
}

/// How many of some errors lie within a share, up to and with it.
pub fn within(errors: impl Iterator<Item = f64>, share: f64) -> (usize, usize) {
    errors.fold((0, 0), |(within, all), error| {
        (within + usize::from(error.abs() <= share), all + 1)
    })
}

/// Simulates every result of the lab that the simulator can.
pub fn validate(results: &[CellResult]) -> Validation {
    let mut all = Validation::default();
    for result in results.iter().filter(|result| result.cell.place == "lab") {
        match compare(result) {
            Some(compared) => all.compared.extend(compared),
            None => all.left_out += 1,
        }
    }
    all
}

fn compare(result: &CellResult) -> Option<Vec<Compared>> {
    let mut cell = simulated(&result.cell)?;
    let mut title = shown(&result.cell);
    if is_in_host_time(&result.cell) {
        let mips = speed(&cell, result)?;
        // Writing to a String cannot fail.
        let _ = write!(title, " ({mips:.0} MIPS by its busy time)");
        cell.machine.insert("mips".to_owned(), format!("{mips:.1}"));
    }
    let measured = Sim.simulate(&cell).ok()?;
    let figure = |measure: &str, arms: &[ArmResult], name: &str| {
        let arm = arms.iter().find(|arm| arm.arm == name)?;
        measures::of(measure, arm, &result.cell)
    };
    let rate = |arms: &[ArmResult], name: &str| figure(RATE, arms, name).filter(|rate| *rate > 0.0);
    let first = cell.arms.first()?.name.clone();
    let base = rate(&result.arms, &first).zip(rate(&measured, &first));
    let compared = cell.arms.iter().filter_map(|named| {
        let lab = rate(&result.arms, &named.name)?;
        let sim = rate(&measured, &named.name)?;
        let lab_two = figure(TWO_COMMITS, &result.arms, &named.name);
        let ratios = base
            .filter(|_| named.name != first)
            .map(|(of_lab, of_sim)| (lab / of_lab, sim / of_sim));
        Some(Compared {
            cell: title.clone(),
            benchmark: benchmark(&cell.bench).to_owned(),
            arm: named.name.clone(),
            lab,
            sim,
            lab_ratio: ratios.map(|(of_lab, _)| of_lab),
            sim_ratio: ratios.map(|(_, of_sim)| of_sim),
            lab_two_commits_share: lab_two,
            sim_two_commits_share: lab_two.and(figure(TWO_COMMITS, &measured, &named.name)),
        })
    });
    Some(compared.collect())
}

/// `run` names a workload file.
fn benchmark(command: &str) -> &str {
    let mut words = command.split(' ').skip_while(|word| *word == "run");
    words.next().unwrap_or_default()
}

fn is_in_host_time(cell: &Cell) -> bool {
    cell.machine.get("time").is_some_and(|time| time == "host")
}

/// Nobody sets the speed of processors in host time; but an operation of the first arm takes so many
/// instructions in the simulator, and kept the guest's processors busy for so long. Million
/// instructions per second of a processor.
fn speed(cell: &Cell, result: &CellResult) -> Option<f64> {
    // How busy a processor is hangs little on the speed, as it does the same work.
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
        let rate_per_s = measures::of(RATE, arm, cell).filter(|rate| *rate > 0.0)?;
        let busy_share = arm.report.cpu_busy_ns? as f64 / arm.report.elapsed_ns as f64;
        Some(busy_share / rate_per_s)
    };
    Some(GUESS * busy_ns(&simulated)? / busy_ns(&result.arms)?)
}

/// The cell in the simulator, with those of its arms that the simulator has; `None` where it is
/// another machine. On virtual time several processors of the lab share the time of one, which no
/// real machine does.
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
            // A kernel that the simulator lacks has the rules of its default.
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
        let validation = validate(&demo());
        let all = &validation.compared;
        let loops: Vec<&Compared> = all
            .iter()
            .filter(|it| it.cell.starts_with("create-fsync"))
            .collect();
        assert!(loops.len() >= 40, "{}", loops.len());
        let errors = || loops.iter().map(|it| it.error_share());
        let (near, count) = within(errors(), 0.10);
        assert!(near * 10 >= count * 7, "{near} of {count}: {loops:#?}");
        let stock_and_luc = loops.iter().filter(|it| it.arm == "luc");
        let ratios = stock_and_luc.filter_map(|it| it.ratio_error_share());
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
        let validation = validate(&results);
        assert_eq!((validation.compared.len(), validation.left_out), (0, 2));
    }

    /// The simulator's own result stands for a machine in host time, whose speed is not told.
    #[test]
    fn the_speed_in_host_time_follows_from_the_busy_time() {
        let mut result = demo().swap_remove(0);
        for (factor, value) in [("time", "host"), ("vcpus", "2"), ("mips", "230")] {
            result.cell.machine.insert(factor.into(), value.into());
        }
        let cell = simulated(&result.cell).unwrap();
        result.arms = Sim.simulate(&cell).unwrap();
        // The factor's default, which says nothing there.
        result.cell.machine.insert("mips".into(), "1000".into());
        let mips = speed(&simulated(&result.cell).unwrap(), &result).unwrap();
        assert!((mips / 230.0 - 1.0).abs() < 0.1, "{mips}");
        let validation = validate(&[result]);
        let worst = validation.compared.iter().map(|it| it.error_share().abs());
        assert!(worst.fold(0.0, f64::max) < 0.05, "{validation:?}");
    }
}
