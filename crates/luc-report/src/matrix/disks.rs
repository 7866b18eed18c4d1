//! The figures on models of real disks, beside `null_blk`'s.

use super::{
    BURST_THREADS, Host, Place, WRITERS, create_fsync, entry, headings, mean, repeated, write_delay,
};
use crate::demo::burst;
use crate::document::{Cell, Section, Table, number};
use crate::load::{Job, Load, Mode};
use crate::record::{Record, Records};
use crate::targets::{CREATE_FSYNC, NEVER_SLOWER, P99, THREADS, Tally};

/// Models (`luc lab disks`), and what one commit takes on them by order of magnitude, milliseconds.
const MODELS: [(&str, f64); 7] = [
    ("hdd-7200", 20.0),
    ("hdd-7200-wc-off", 20.0),
    ("hdd-15k", 10.0),
    ("cloud-volume", 2.0),
    ("sata-ssd", 3.0),
    ("nvme", 7.0),
    ("nvme-plp", 0.1),
];

/// Some hundred commits, and fewer where many threads keep the virtual processor busy.
fn measure_ms(commit_ms: f64, threads: u32) -> u32 {
    let commits = if threads > 16 { 250.0 } else { 500.0 };
    // At most ten seconds; no number here is negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ms = (commits * commit_ms).clamp(600.0, 10_000.0) as u32;
    ms
}

fn loads(commit_ms: f64) -> Vec<Load> {
    let mut loads = Vec::from(THREADS.map(|threads| Load::CreateFsync {
        threads,
        measure_ms: measure_ms(commit_ms, threads),
        warmup_ms: measure_ms(commit_ms, threads) / 4,
    }));
    let ms = measure_ms(commit_ms, WRITERS);
    loads.push(Load::WriteDelay {
        writers: WRITERS,
        measure_ms: ms,
        warmup_ms: ms / 4,
    });
    loads.extend(BURST_THREADS.map(burst));
    loads
}

/// One job per disk.
pub fn jobs(host: Host<'_>, repeats: u32) -> Vec<Job> {
    let job = |(disk, commit_ms): (&str, f64)| {
        let modes = [Mode::Stock, Mode::Luc];
        host.job(1000, repeated(disk, &loads(commit_ms), &modes, repeats))
    };
    MODELS.into_iter().map(job).collect()
}

const HEADINGS: [&str; 14] = [
    "kernel",
    "disk",
    "1 thread",
    "4",
    "16",
    "64",
    "write-delay",
    "delayed",
    "burst 4",
    "16",
    "lowest",
    "",
    "p99",
    "",
];

const NOTE: &str = "LUC's rate as a ratio to stock's, of create-fsync with 1 to 64 threads, of write-delay (48 writers) and of bursts of 4 and \
16 fsyncs within 800 us. delayed: share of write-delay's writes, stock -> LUC. lowest: of the row; it is to \
reach 0.99. p99: of fsync, the row's highest ratio, 1.05 at most. `luc lab disks` tells what the disks are; those with a latency and a depth are null_blk's, shown where other \
parts measured them.";

/// A row of a disk; `None` where nothing was measured on it.
fn row(
    records: &Records,
    host: Host<'_>,
    disk: &str,
    loads: &[Load],
    tally: &mut Tally,
) -> Option<Vec<Cell>> {
    let place = |load: &Load| Place::new(records, host, 1000, disk, load.clone());
    let mut row = vec![host.cell(), Cell::new(disk)];
    let mut lowest: Option<f64> = None;
    let mut slowest: Option<f64> = None;
    for load in loads {
        let place = place(load);
        let ratio = place.ratio(Mode::Luc);
        lowest = lowest.into_iter().chain(mean(ratio)).reduce(f64::min);
        let p99 = mean(place.ratio_of(Mode::Luc, Record::sync_delay_p99_ms));
        slowest = slowest.into_iter().chain(p99).reduce(f64::max);
        row.push(entry(ratio, number::fine_ratio));
        if matches!(load, Load::WriteDelay { .. }) {
            row.push(delayed(&place));
        }
    }
    let shown = lowest?;
    row.push(Cell::new(number::fine_ratio(shown)));
    row.push(tally.verdict(Some(NEVER_SLOWER), lowest));
    row.push(slowest.map_or_else(Cell::none, |slowest| Cell::new(number::ratio(slowest))));
    row.push(tally.verdict(Some(P99), slowest));
    Some(row)
}

fn delayed(place: &Place<'_>) -> Cell {
    let share = |mode| mean(place.spread(mode, Record::bad_share));
    match (share(Mode::Stock), share(Mode::Luc)) {
        (Some(stock), Some(luc)) => Cell::new(format!(
            "{} -> {}",
            number::percent(stock),
            number::percent(luc)
        )),
        _ => Cell::none(),
    }
}

/// A row for each model, below rows of `null_blk`.
pub fn section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    let on_model = |host: &Host<'_>| {
        let mut all = records.records.iter();
        let here = |r: &Record| r.kernel == host.kernel && r.vcpus == host.vcpus;
        all.any(|r| here(r) && MODELS.iter().any(|(disk, _)| *disk == r.cell.disk))
    };
    for &host in hosts.iter().filter(|host| on_model(host)) {
        // Judged where they were measured.
        let mut judged_elsewhere = Tally::default();
        let flat = CREATE_FSYNC.into_iter().filter_map(|(disk, _)| {
            let mut loads = Vec::from(THREADS.map(|threads| create_fsync(disk, threads)));
            loads.push(write_delay());
            loads.extend(BURST_THREADS.map(burst));
            row(records, host, disk, &loads, &mut judged_elsewhere)
        });
        groups.push(flat.collect());
        let models = MODELS.into_iter();
        let models = models.filter_map(|(disk, ms)| row(records, host, disk, &loads(ms), tally));
        groups.push(models.collect());
    }
    groups.retain(|group: &Vec<_>| !group.is_empty());
    Section {
        title: "Models of real disks".to_owned(),
        note: NOTE.to_owned(),
        charts: Vec::new(),
        page_charts: Vec::new(),
        table: Table {
            headings: headings(&HEADINGS),
            left: 2,
            deciding: HEADINGS.iter().position(|name| *name == "lowest"),
            groups,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_knows_every_model() {
        for (disk, _) in MODELS {
            assert!(disk.parse::<luc_lab::DiskSpec>().is_ok(), "{disk}");
        }
    }
}
