//! Figures of one load, over the repetitions and against stock.

use std::collections::BTreeMap;

use super::record::{Record, Records, Spread};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::Load;

/// Fewest syncs, over all repetitions, that have a 99th percentile: ten lie beyond it. Of 150 it is
/// the second longest, and what was 1.18 of stock's on 4ms:1 is 0.99 of 1,300.
const P99_SYNCS_MIN: u64 = 1000;

/// One load on one disk, at one speed, on one host.
pub struct Place<'a> {
    pub records: &'a Records,
    pub host: Host<'a>,
    /// Million instructions per second.
    pub cpu_mips: u32,
    pub disk: &'a str,
    pub load: Load,
}

impl<'a> Place<'a> {
    /// A load at 1000 MIPS.
    pub fn new(records: &'a Records, host: Host<'a>, disk: &'a str, load: Load) -> Self {
        Self {
            records,
            host,
            cpu_mips: 1000,
            disk,
            load,
        }
    }

    /// Records of one arm, by repetition.
    pub fn records(&self, arm: Arm) -> impl Iterator<Item = &'a Record> {
        self.records.records.iter().filter(move |record| {
            record.host() == self.host
                && record.cpu_mips == self.cpu_mips
                && record.cell.disk == self.disk
                && record.cell.arm == arm
                && record.cell.load.alike(&self.load)
        })
    }

    /// The first record of one arm.
    pub fn first(&self, arm: Arm) -> Option<&'a Record> {
        self.records(arm).next()
    }

    /// The main figure.
    pub fn figure(&self, arm: Arm) -> Option<Spread> {
        self.spread(arm, Record::main_figure)
    }

    /// A figure over the repetitions.
    pub fn spread(&self, arm: Arm, figure: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.records(arm).filter_map(figure).collect();
        Spread::of(&values)
    }

    /// A figure of `arm` minus the same figure of stock, repetition by repetition.
    pub fn extra(&self, arm: Arm, figure: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        self.compare(arm, figure, |value, base| Some(value - base))
    }

    /// The main figure of `arm` over that of stock, repetition by repetition.
    pub fn ratio(&self, arm: Arm) -> Option<Spread> {
        self.ratio_of(arm, Record::main_figure)
    }

    /// A figure of `arm` over the same figure of stock, repetition by repetition.
    pub fn ratio_of(&self, arm: Arm, figure: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        self.compare(arm, figure, |value, base| {
            (base > 0.0).then(|| value / base)
        })
    }

    /// The p99 of the sync delay over that of stock; `None` where it is not known.
    pub fn p99_ratio(&self, arm: Arm) -> Option<Spread> {
        let syncs = |arm| self.records(arm).map(Record::sync_count).sum::<u64>();
        let known = syncs(Arm::Stock).min(syncs(arm)) >= P99_SYNCS_MIN;
        known.then(|| self.ratio_of(arm, Record::sync_delay_p99_ms))?
    }

    fn compare(
        &self,
        arm: Arm,
        figure: impl Fn(&Record) -> Option<f64>,
        with: impl Fn(f64, f64) -> Option<f64>,
    ) -> Option<Spread> {
        let by_repeat = |record: &Record| Some((record.cell.repeat, figure(record)?));
        let stock: BTreeMap<u32, f64> = self.records(Arm::Stock).filter_map(by_repeat).collect();
        let compared = |record: &Record| {
            let (repeat, value) = by_repeat(record)?;
            with(value, *stock.get(&repeat)?)
        };
        let values: Vec<f64> = self.records(arm).filter_map(compared).collect();
        Spread::of(&values)
    }
}
