//! The model's predictions beside the measured gain.

use super::targets::{self, THREADS, Tally};
use super::{WRITERS, entry, groups, mean, repeated, section};
use crate::measure::modelled::Modelled;
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::{Job, Load, Purpose, Times};
use crate::show::document::{Entry, Row, Section};
use crate::show::number;

/// A disk, and the length of each measurement on it, milliseconds: with few threads, with many, and
/// of oltp.
///
/// A measurement holds some hundred commits. oltp moves in far larger steps: its measurement holds
/// as many of those as there is time for. Where a disk is slow the virtual processor idles, which
/// costs next to nothing.
type Disk = (&'static str, u32, u32, u32);

const DISKS: [Disk; 3] = [
    ("4ms:1", 3000, 2000, 20_000),
    ("1ms:8", 1500, 1000, 6000),
    ("100us:8", 600, 500, 2000),
];

/// Loads of a disk with name and threads, in the order of the table.
fn loads((_, few_ms, many_ms, oltp_ms): Disk) -> Vec<(Load, &'static str, u32)> {
    let (few, many) = (Times::of(few_ms), Times::of(many_ms));
    let mut loads = Vec::from(THREADS.map(|threads| {
        let times = if threads > 16 { many } else { few };
        (
            Load::CreateFsync { threads, times },
            "create-fsync",
            threads,
        )
    }));
    let (writers, threads) = (WRITERS, 16);
    // As many as varmail's: one writes the log, two write data, the rest read.
    let oltp = Load::Oltp {
        readers: threads - 3,
        db_writers: 2,
        times: Times::of(oltp_ms),
    };
    let times = many;
    loads.push((
        Load::WriteDelay { writers, times },
        "write-delay",
        writers + 1,
    ));
    let times = few;
    loads.push((Load::Varmail { threads, times }, "varmail", threads));
    loads.push((oltp, "oltp", threads));
    loads
}

/// One job per disk.
pub fn jobs(host: Host<'_>, repeats: u32) -> Vec<Job> {
    let arms = [Arm::Stock, Arm::Modelled, Arm::Luc];
    let job = |disk: Disk| {
        let loads: Vec<Load> = loads(disk).into_iter().map(|(load, ..)| load).collect();
        let mut cells = repeated(disk.0, &loads, &arms, repeats);
        for cell in &mut cells {
            cell.purpose = Purpose::Model;
        }
        host.job(1000, cells)
    };
    DISKS.into_iter().map(job).collect()
}

const NOTE: &str = "Stock is recorded and `luc trace model` asked what LUC would give; then LUC is switched on. fsync error: \
median error of the fsync times by Algorithm 4.1; amended: with flushes that outlast the commit and the line for a processor, at most 5% wanted. simulated off: of the replay of what was recorded. LUC foretold, \
measured: ratio to stock of the main figure, which is writes of write-delay and operations elsewhere. off: the one from the \
other, at most 15% wanted. fsyncs: those that the model was asked about. Stock's rate is that without a recording.";

/// The model beside the measurement.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let groups = groups(hosts, &DISKS, |host, disk| {
        let row = |(load, name, threads): (Load, &str, u32)| -> Option<Row> {
            let place = Place::new(records, host, disk.0, load);
            let of_model = |figure: fn(Modelled) -> f64| {
                place.spread(Arm::Modelled, |record| record.model.map(figure))
            };
            // Without syncs there is no error.
            let error_of = |figure: fn(Modelled) -> f64| {
                let asked = |model: &Modelled| model.syncs > 0;
                place.spread(Arm::Modelled, |r| r.model.filter(asked).map(figure))
            };
            let published = error_of(|model| model.error_median_share);
            let error = error_of(|model| model.amended_error_median_share);
            let simulated = of_model(|model| model.stock_error_share);
            let predicted = place.spread(Arm::Modelled, Record::predicted_gain);
            let measured = place.ratio(Arm::Luc);
            let off = mean(predicted)? / mean(measured)? - 1.0;
            let syncs = of_model(|model| model.syncs as f64);
            Some(vec![
                ("kernel", Entry::new(host.name())),
                ("disk", Entry::new(disk.0)),
                ("workload", Entry::new(name)),
                ("threads", Entry::new(threads.to_string())),
                ("stock /s", entry(place.figure(Arm::Stock), number::figure)),
                ("fsync error", entry(published, number::percent)),
                ("amended", entry(error, number::percent)),
                ("", tally.verdict(Some(targets::MODEL_ERROR), mean(error))),
                ("simulated off", entry(simulated, number::percent)),
                ("LUC foretold", entry(predicted, number::ratio)),
                ("measured", entry(measured, number::ratio)),
                ("off", Entry::new(format!("{:+.1}%", off * 100.0))),
                (
                    "",
                    tally.verdict(Some(targets::MODEL_GAIN), Some(off.abs())),
                ),
                ("fsyncs", entry(syncs, number::whole)),
            ])
        };
        loads(disk).into_iter().filter_map(row).collect()
    });
    section("The model", NOTE, 3, groups)
}
