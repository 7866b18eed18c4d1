//! Figures of one load, over the repetitions and against stock.

use std::collections::BTreeMap;

use super::record::{Record, Records, Spread};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::Load;

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
