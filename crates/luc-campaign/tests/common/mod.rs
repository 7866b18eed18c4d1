//! A back-end that answers by a formula.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use luc_campaign::backends::Backend;
use luc_campaign::cell::Cell;
use luc_campaign::measure::Board;
use luc_campaign::places::{self, Setup};
use luc_campaign::result::{ArmResult, Measured};
use luc_campaign::{Result, Store};

/// The output of a benchmark, kept once; the formula replaces its figures.
const PRINTED: &str = include_str!("../data/create-fsync.json");

/// This machine, with the module's sources of the repository.
pub fn setup() -> Setup {
    Setup {
        source: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        ..Setup::default()
    }
}

/// Stock makes 100 files per second for each thread; LUC makes `gain` times as many, give or take
/// `noise` by repeat.
pub struct Formula {
    pub gain: f64,
    pub noise: f64,
    /// Gives the rate of an arm instead of the formula.
    pub rate: Option<fn(&Cell, &str) -> f64>,
    /// Keys of the cells that were asked for, in order.
    pub asked: RefCell<Vec<String>>,
    /// Cells whose key contains this text fail.
    pub fails: Option<&'static str>,
    /// Number of cells after which the run is interrupted.
    pub stop_after: Option<usize>,
}

impl Default for Formula {
    fn default() -> Self {
        Self {
            gain: 2.0,
            noise: 0.0,
            rate: None,
            asked: RefCell::default(),
            fails: None,
            stop_after: None,
        }
    }
}

impl Formula {
    pub fn count(&self) -> usize {
        self.asked.borrow().len()
    }

    fn rate(&self, cell: &Cell, name: &str) -> f64 {
        if let Some(rate) = self.rate {
            return rate(cell, name);
        }
        let threads = cell
            .bench
            .split("--threads ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let threads: f64 = threads.and_then(|text| text.parse().ok()).expect("threads");
        // Every other repeat is above the mean.
        let sign = if cell.repeat.is_multiple_of(2) {
            1.0
        } else {
            -1.0
        };
        match name {
            "stock" => 100.0 * threads,
            _ => 100.0 * threads * self.gain * (1.0 + sign * self.noise),
        }
    }

    fn arm(&self, cell: &Cell, name: &str) -> ArmResult {
        let rate = self.rate(cell, name);
        let mut report: serde_json::Value = serde_json::from_str(PRINTED).expect("JSON");
        report["ops_per_s"] = rate.into();
        ArmResult {
            arm: name.to_owned(),
            report: serde_json::from_value(report).expect("a report"),
            counters: BTreeMap::new(),
            after: None,
        }
    }
}

impl Backend for Formula {
    fn name(&self) -> &'static str {
        "formula"
    }

    fn measure(
        &self,
        cells: &[Cell],
        store: &Store,
        setup: &Setup,
        board: &mut Board<'_>,
    ) -> Result<()> {
        for cell in cells {
            if self.stop_after.is_some_and(|most| self.count() >= most) {
                setup.stop.set();
                return Ok(());
            }
            self.asked.borrow_mut().push(cell.key());
            let place = places::find(&cell.place).expect("a place");
            let versions = place.versions(cell, setup)?;
            if self.fails.is_some_and(|part| cell.key().contains(part)) {
                store.keep_failure(cell, &versions, "on purpose", Some("the log"))?;
                continue;
            }
            let arms = cell
                .arms
                .iter()
                .map(|named| self.arm(cell, &named.name))
                .collect();
            let measured = Measured {
                kernel_release: "6.12.0-test".to_owned(),
                arms,
            };
            store.keep(cell, &versions, measured, 1.0)?;
            board.done(1, &places::shown(cell));
        }
        Ok(())
    }
}
