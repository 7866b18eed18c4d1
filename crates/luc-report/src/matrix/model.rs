//! How well the model foretells what LUC gives.

use super::{Host, Place, WRITERS, entry, mean, repeated, section};
use crate::document::{Cell, Section, number};
use crate::load::{Job, Load, Mode, Purpose};
use crate::record::{Record, Records};
use crate::targets::{self, THREADS, Tally};

/// A disk, and how long each load is measured on it, milliseconds.
///
/// A measurement holds some hundred commits, and of oltp, which moves in far larger steps, as many of those as
/// there is time for. Where a disk is slow the virtual processor idles, which costs next to nothing.
struct Disk {
    spec: &'static str,
    few_ms: u32,
    many_ms: u32,
    oltp_ms: u32,
}

const DISKS: [Disk; 3] = [
    Disk {
        spec: "4ms:1",
        few_ms: 3000,
        many_ms: 2000,
        oltp_ms: 20_000,
    },
    Disk {
        spec: "1ms:8",
        few_ms: 1500,
        many_ms: 1000,
        oltp_ms: 6000,
    },
    Disk {
        spec: "100us:8",
        few_ms: 600,
        many_ms: 500,
        oltp_ms: 2000,
    },
];

/// What is measured on a disk, in the order of the table.
fn loads(disk: &Disk) -> Vec<Load> {
    let mut loads = Vec::from(THREADS.map(|threads| {
        let measure_ms = if threads > 16 {
            disk.many_ms
        } else {
            disk.few_ms
        };
        Load::CreateFsync {
            threads,
            measure_ms,
            warmup_ms: measure_ms / 4,
        }
    }));
    loads.push(Load::WriteDelay {
        writers: WRITERS,
        measure_ms: disk.many_ms,
        warmup_ms: disk.many_ms / 4,
    });
    loads.push(Load::Varmail {
        threads: 16,
        measure_ms: disk.few_ms,
        warmup_ms: disk.few_ms / 4,
    });
    // As many as varmail's: one writes the log, two write data, the rest read.
    loads.push(Load::Oltp {
        readers: 13,
        db_writers: 2,
        measure_ms: disk.oltp_ms,
        warmup_ms: disk.oltp_ms / 4,
    });
    loads
}

/// One job per disk.
pub fn jobs(host: Host<'_>, repeats: u32) -> Vec<Job> {
    let modes = [Mode::Stock, Mode::Modelled, Mode::Luc];
    let job = |disk: &Disk| {
        let mut cells = repeated(disk.spec, &loads(disk), &modes, repeats);
        for cell in &mut cells {
            cell.purpose = Purpose::Model;
        }
        host.job(1000, cells)
    };
    DISKS.iter().map(job).collect()
}

/// Name and threads of a row.
fn names(load: &Load) -> (&'static str, u32) {
    match *load {
        Load::CreateFsync { threads, .. } => ("create-fsync", threads),
        Load::WriteDelay { writers, .. } => ("write-delay", writers + 1),
        Load::Varmail { threads, .. } => ("varmail", threads),
        Load::Oltp {
            readers,
            db_writers,
            ..
        } => ("oltp", readers + db_writers + 1),
        _ => ("", 0),
    }
}

const HEADINGS: [&str; 14] = [
    "kernel",
    "disk",
    "workload",
    "threads",
    "stock /s",
    "fsync error",
    "amended",
    "",
    "simulated off",
    "LUC foretold",
    "measured",
    "off",
    "",
    "fsyncs",
];

const NOTE: &str = "Stock is recorded and `luc trace model` asked what LUC would give; then LUC is switched on. fsync error: \
median error of the fsync times by Algorithm 4.1; amended: with flushes that outlast the commit and the line for a processor, at most 5% wanted. simulated off: of the replay of what was recorded. LUC foretold, \
measured: ratio to stock of the main figure, which is writes of write-delay and operations elsewhere. off: the one from the \
other, at most 15% wanted. fsyncs: those that the model was asked about. Stock's rate is that without a recording.";

/// The model beside the measurement.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        for disk in &DISKS {
            let loads = loads(disk).into_iter();
            let row = |load| row(records, host, disk.spec, load, tally);
            groups.push(loads.filter_map(row).collect());
        }
    }
    section("The model", NOTE, &HEADINGS, 3, groups)
}

fn row(
    records: &Records,
    host: Host<'_>,
    disk: &str,
    load: Load,
    tally: &mut Tally,
) -> Option<Vec<Cell>> {
    let (name, threads) = names(&load);
    let place = Place::new(records, host, 1000, disk, load);
    let of_model = |figure: fn(&Record) -> Option<f64>| place.spread(Mode::Modelled, figure);
    let asked = |record: &Record| record.model.filter(|model| model.syncs > 0);
    let published = place.spread(Mode::Modelled, |record| {
        Some(asked(record)?.error_median_share)
    });
    let error = place.spread(Mode::Modelled, |record| {
        Some(asked(record)?.amended_error_median_share)
    });
    let simulated = of_model(|record| Some(record.model?.stock_error_share));
    let foretold = of_model(Record::gain_foretold);
    let measured = place.ratio(Mode::Luc);
    let off = mean(foretold)? / mean(measured)? - 1.0;
    let syncs = of_model(|record| Some(record.model?.syncs as f64));
    Some(vec![
        host.cell(),
        Cell::new(disk),
        Cell::new(name),
        Cell::new(threads.to_string()),
        entry(place.figure(Mode::Stock), number::figure),
        entry(published, number::percent),
        entry(error, number::percent),
        tally.verdict(Some(targets::MODEL_ERROR), mean(error)),
        entry(simulated, number::percent),
        entry(foretold, number::ratio),
        entry(measured, number::ratio),
        Cell::new(format!("{:+.1}%", off * 100.0)),
        tally.verdict(Some(targets::MODEL_GAIN), Some(off.abs())),
        entry(syncs, |count| format!("{count:.0}")),
    ])
}
