//! The figures on models of real disks, beside those on `null_blk`.

use super::targets::{CREATE_FSYNC, NEVER_SLOWER, P99, THREADS, Tally};
use super::{WRITE_DELAY, WRITERS, create_fsync, entry, mean, repeated, section};
use crate::demo::{BURST_THREADS, burst};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::{Job, Load, Times};
use crate::show::document::{Entry, Row, Section};
use crate::show::number;

/// Models (`luc lab disks`), and the order of magnitude of a commit on them, milliseconds.
const MODELS: [(&str, f64); 7] = [
    ("hdd-7200", 20.0),
    ("hdd-7200-wc-off", 20.0),
    ("hdd-15k", 10.0),
    ("cloud-volume", 2.0),
    ("sata-ssd", 3.0),
    ("nvme", 7.0),
    ("nvme-plp", 0.1),
];

/// Enough commits for a p99 of one stream's fsyncs, and fewer where more threads make them and keep
/// the virtual processor busy.
fn times(commit_ms: f64, threads: u32) -> Times {
    let commits = match threads {
        WRITERS | 1 => 1100.0,
        2..=16 => 500.0,
        _ => 250.0,
    };
    // No number here is negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ms = (commits * commit_ms).clamp(600.0, 25_000.0) as u32;
    Times::of(ms)
}

fn loads(commit_ms: f64) -> Vec<Load> {
    let create_fsync = |threads| Load::CreateFsync {
        threads,
        times: times(commit_ms, threads),
    };
    let write_delay = Load::WriteDelay {
        writers: WRITERS,
        times: times(commit_ms, WRITERS),
    };
    all(create_fsync, write_delay)
}

/// The loads of a row, in the order of its columns.
fn all(create_fsync: impl Fn(u32) -> Load, write_delay: Load) -> Vec<Load> {
    let mut loads = Vec::from(THREADS.map(create_fsync));
    loads.push(write_delay);
    loads.extend(BURST_THREADS.map(burst));
    loads
}

/// One job per disk.
pub fn jobs(host: Host<'_>, repeats: u32) -> Vec<Job> {
    let job = |(disk, commit_ms): (&str, f64)| {
        let arms = [Arm::Stock, Arm::Luc];
        host.job(1000, repeated(disk, &loads(commit_ms), &arms, repeats))
    };
    MODELS.into_iter().map(job).collect()
}

const NOTE: &str = "LUC's rate as a ratio to stock's, of create-fsync with 1 to 64 threads, of write-delay (48 writers) and of bursts of 4 and \
16 fsyncs within 800 us. delayed: share of write-delay's writes, stock -> LUC. lowest: of the row; it is to \
reach 0.99. p99: of fsync, the row's highest ratio, 1.05 at most, of at least 1000 fsyncs. `luc lab disks` tells what the disks are; those with a latency and a depth are null_blk's, shown where other \
parts measured them.";

/// Headings of the loads, in order.
const LOAD_HEADINGS: [&str; 7] = ["1 thread", "4", "16", "64", "write-delay", "burst 4", "16"];

/// A row of a disk; `None` where nothing was measured on it.
fn row(
    records: &Records,
    host: Host<'_>,
    disk: &str,
    loads: Vec<Load>,
    tally: &mut Tally,
) -> Option<Row> {
    let mut row = vec![
        ("kernel", Entry::new(host.name())),
        ("disk", Entry::new(disk)),
    ];
    let mut lowest: Option<f64> = None;
    let mut slowest: Option<f64> = None;
    for (heading, load) in LOAD_HEADINGS.into_iter().zip(loads) {
        let place = Place::new(records, host, disk, load);
        let ratio = place.ratio(Arm::Luc);
        lowest = lowest.into_iter().chain(mean(ratio)).reduce(f64::min);
        let p99 = mean(place.p99_ratio(Arm::Luc));
        slowest = slowest.into_iter().chain(p99).reduce(f64::max);
        row.push((heading, entry(ratio, number::fine_ratio)));
        if matches!(place.load, Load::WriteDelay { .. }) {
            let share = |arm| mean(place.spread(arm, Record::bad_share));
            let both = share(Arm::Stock).zip(share(Arm::Luc));
            let text =
                |(stock, luc)| format!("{} -> {}", number::percent(stock), number::percent(luc));
            row.push(("delayed", Entry::of(both, text)));
        }
    }
    lowest?;
    row.extend([
        ("lowest", Entry::of(lowest, number::fine_ratio)),
        ("", tally.verdict(Some(NEVER_SLOWER), lowest)),
        ("p99", Entry::of(slowest, number::ratio)),
        ("", tally.verdict(Some(P99), slowest)),
    ]);
    Some(row)
}

/// A row for each model, below rows of `null_blk`.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    let on_model = |host: &Host<'_>| {
        let is_model = |disk: &str| MODELS.iter().any(|(model, _)| *model == disk);
        let mut all = records.records.iter();
        all.any(|r| r.host() == *host && is_model(&r.cell.disk))
    };
    for &host in hosts.iter().filter(|host| on_model(host)) {
        // Judged where they were measured.
        let mut judged_elsewhere = Tally::default();
        let flat = CREATE_FSYNC.into_iter().filter_map(|(disk, _)| {
            let loads = all(|threads| create_fsync(disk, threads), WRITE_DELAY);
            row(records, host, disk, loads, &mut judged_elsewhere)
        });
        groups.push(flat.collect());
        let models = MODELS.into_iter();
        let models = models.filter_map(|(disk, ms)| row(records, host, disk, loads(ms), tally));
        groups.push(models.collect());
    }
    section("Models of real disks", NOTE, 2, groups)
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
