//! The simulator: no kernel and no disk, but models of them, with the controllers themselves inside.

use std::collections::BTreeMap;

use luc_sim::costs::Costs;
use luc_sim::disk::DiskKind;
use luc_sim::mount::Mount;
use luc_sim::processors::Machine;

use super::file_system::text;
use super::{Factor, Needs, Place, Setup, whole};
use crate::cell::{Cell, NamedArm, Versions};
use crate::error::{CampaignError, Result};
use crate::result::{ArmResult, Measured};

pub struct Sim;

const FACTORS: &[Factor] = &[
    Factor {
        name: "vcpus",
        help: "processors, each with a time of its own",
        default: Some("1"),
        check: |text| whole(text, 1, 1024),
    },
    Factor {
        name: "mips",
        help: "million instructions per second of a processor",
        default: Some("1000"),
        check: |text| match text.parse::<f64>() {
            Ok(mips) if mips > 0.0 && mips <= 1e6 => Ok(()),
            _ => Err("a number above 0 and up to 1000000 is needed".into()),
        },
    },
    Factor {
        name: "disk",
        help: "as `luc sim run --disk` takes it: 4ms:1, hdd-7200, raid10:4:hdd-15k, nehalem-hdd",
        default: None,
        check: |text| {
            let parsed = text.parse::<DiskKind>();
            parsed.map(drop).map_err(|error| error.to_string())
        },
    },
    Factor {
        name: "mount",
        help: "mount options: noatime, dioread_lock",
        default: Some(""),
        check: |text| {
            let parsed = text.parse::<Mount>();
            parsed.map(drop).map_err(|error| error.to_string())
        },
    },
];

impl Place for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn factors(&self) -> &'static [Factor] {
        FACTORS
    }

    fn check(&self, cell: &Cell) -> std::result::Result<(), String> {
        for named in &cell.arms {
            setup(cell, named).map_err(|why| format!("arm {}: {why}", named.name))?;
        }
        bench(cell).map(drop)
    }

    fn needs(&self, _cell: &Cell) -> Needs {
        Needs {
            processors: 1,
            memory_mib: 64,
            alone: false,
        }
    }

    fn versions(&self, _cell: &Cell, _setup: &Setup) -> Result<Versions> {
        let sources = env!("LUC_SIM_SOURCES").to_owned();
        Ok(BTreeMap::from([("luc-sim".to_owned(), sources)]))
    }

    fn measure(
        &self,
        cell: &Cell,
        _setup: &Setup,
        _progress: &mut dyn luc_lab::Progress,
    ) -> Result<Measured> {
        let arms = self.simulate(cell);
        Ok(Measured {
            kernel_release: "simulated".to_owned(),
            arms: arms.map_err(|why| CampaignError::Failed { why, log: None })?,
        })
    }
}

impl Sim {
    /// Measures all arms of a cell.
    ///
    /// # Errors
    /// The simulator lacks something of it.
    pub fn simulate(&self, cell: &Cell) -> std::result::Result<Vec<ArmResult>, String> {
        let bench = bench(cell)?;
        let arms = cell.arms.iter().map(|named| {
            let setup = setup(cell, named)?;
            let report = luc_sim::run(&bench, &setup).map_err(|error| error.to_string())?;
            Ok(ArmResult {
                arm: named.name.clone(),
                report,
                counters: BTreeMap::new(),
                after: None,
            })
        });
        arms.collect()
    }
}

fn bench(cell: &Cell) -> std::result::Result<luc_workload::Bench, String> {
    let words = shlex::split(&cell.bench.replace("{dir}", "simulation")).unwrap_or_default();
    luc_sim::bench(&words).map_err(|error| error.to_string())
}

/// The machine of an arm.
fn setup(cell: &Cell, named: &NamedArm) -> std::result::Result<luc_sim::Setup, String> {
    let arm = &named.arm;
    let is_plain = [&arm.around, &arm.after, &arm.bench, &arm.fs, &arm.mount]
        .iter()
        .all(|text| text.is_empty());
    if !is_plain {
        return Err("the simulator has stock and LUC, and nothing else".into());
    }
    let luc = match &arm.on {
        Some(options) if !arm.elsewhere => {
            let words = shlex::split(options).unwrap_or_default();
            luc_sim::knobs(&words).map_err(|error| error.to_string())?
        }
        _ => None,
    };
    let mount = text(cell, "mount").parse::<Mount>();
    let number = |factor| text(cell, factor).parse().ok();
    Ok(luc_sim::Setup {
        machine: Machine::new(
            text(cell, "vcpus").parse().unwrap_or(1),
            number("mips").unwrap_or(1000.0),
        ),
        disk: text(cell, "disk")
            .parse()
            .map_err(|error: luc_sim::disk::NoDisk| error.to_string())?,
        costs: Costs::default(),
        mount: mount.map_err(|error| error.to_string())?,
        luc,
        seed: cell.seed,
    })
}
