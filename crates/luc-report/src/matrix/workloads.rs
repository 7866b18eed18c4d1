//! Figures of real workloads: varmail, oltp, metarates and iozone.

use super::targets::{self, Tally};
use super::{
    entry, groups, mean, p99, policies_note, policy_ratios, ratio_chart, repeated, section,
};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records, Spread};
use crate::plan::arm::{Arm, POLICIES};
use crate::plan::host::Host;
use crate::plan::load::{Job, Load, Times};
use crate::show::document::{Chart, Entry, Line, Row, Section};
use crate::show::number;

/// A disk, and how long varmail and oltp are measured on it.
///
/// One round of varmail takes two commits and more, and threads return in groups: a measurement
/// holds some hundred rounds. oltp moves in far larger steps: its readers are let on a thousand
/// reads at a time, when the slowest writer has made its hundred writes durable. Where the disk is
/// slow the virtual processor idles, which costs next to nothing; where it is fast the processor
/// is busy, and each virtual second takes many seconds of the host.
type Disk = (&'static str, Times, Times);

const DISKS: [Disk; 5] = [
    ("4ms:1", Times::of(8000), Times::of(60_000)),
    ("4ms:32", Times::of(4000), Times::of(16_000)),
    ("1ms:64", Times::of(1500), Times::of(6000)),
    ("100us:64", Times::of(600), Times::of(2400)),
    ("20us:64", Times::of(600), Times::of(2400)),
];

/// Threads of varmail, and of oltp altogether.
const THREADS: [u32; 3] = [4, 16, 64];
/// Processes and files of each of metarates.
const METARATES: [u32; 3] = [4, 16, 32];
/// Threads of shared-files.
const SHARERS: u32 = 8;
/// iozone is measured this many times as often as the others: it is over in a moment, and a figure
/// that few commits decide is as much chance as cause.
const IOZONE_REPEATS: u32 = 5;
const IOZONE: Load = Load::Iozone { threads: 256 };

fn varmail(threads: u32, (_, times, _): Disk) -> Load {
    Load::Varmail { threads, times }
}

/// A number of threads in the proportions of the published 48: one writes the log, one of seven
/// others writes data, the rest read.
fn oltp(threads: u32, (_, _, times): Disk) -> Load {
    let db_writers = (threads / 7).max(1);
    Load::Oltp {
        readers: threads - 1 - db_writers,
        db_writers,
        times,
    }
}

fn metarates(n: u32, disk: &str) -> Load {
    // Some hundred commits.
    let files = if disk == "4ms:1" { 128 } else { 256 };
    Load::Metarates {
        procs: n,
        files: n,
        rounds: files / n,
    }
}

/// Loads of a disk, in the order of the table.
fn loads(disk: Disk) -> Vec<Load> {
    let (threads, times) = (SHARERS, disk.1);
    let mut loads = Vec::new();
    loads.extend(THREADS.map(|threads| varmail(threads, disk)));
    loads.extend(THREADS.map(|threads| oltp(threads, disk)));
    loads.extend(METARATES.map(|n| metarates(n, disk.0)));
    loads.push(Load::SharedFiles { threads, times });
    loads.push(IOZONE);
    loads
}

/// Jobs of one kernel: one per disk.
pub fn jobs(host: Host<'_>, policies: &[Arm], repeats: u32) -> Vec<Job> {
    let arms = [&[Arm::Stock, Arm::Luc], policies].concat();
    let job = |disk: Disk| {
        let mut others = loads(disk);
        others.retain(|load| *load != IOZONE);
        let mut cells = repeated(disk.0, &others, &arms, repeats);
        let repeats = repeats.saturating_mul(IOZONE_REPEATS);
        cells.extend(repeated(disk.0, &[IOZONE], &arms, repeats));
        host.job(1000, cells)
    };
    DISKS.into_iter().map(job).collect()
}

/// Name, threads and unit of a row.
fn names(load: &Load) -> (String, u32, &'static str) {
    match *load {
        Load::Varmail { threads, .. } => ("varmail".to_owned(), threads, "ops"),
        Load::Oltp {
            readers,
            db_writers,
            ..
        } => ("oltp".to_owned(), readers + db_writers + 1, "ops"),
        Load::Metarates {
            procs,
            files,
            rounds,
        } => (
            format!("metarates {procs}x{files}, x{rounds}"),
            procs,
            "files",
        ),
        Load::SharedFiles { threads, .. } => ("shared-files".to_owned(), threads, "ops"),
        Load::Iozone { threads } => ("iozone 128K/32K".to_owned(), threads, "KiB"),
        _ => (String::new(), 0, ""),
    }
}

/// The first columns of a row, and its unit. The load is the one that was measured, which another
/// version may have planned.
fn start(host: Host<'_>, disk: Disk, place: &Place<'_>) -> (Row, &'static str) {
    let measured = place.first(Arm::Stock).map(|record| &record.cell.load);
    let (name, threads, unit) = names(measured.unwrap_or(&place.load));
    let row = vec![
        ("kernel", Entry::new(host.name())),
        ("disk", Entry::new(disk.0)),
        ("workload", Entry::new(name)),
        ("threads", Entry::new(threads.to_string())),
    ];
    (row, unit)
}

/// The rate of a row, in its unit per second.
fn rate(record: &Record) -> Option<f64> {
    let figure = record.main_figure()?;
    Some(match record.cell.load {
        Load::Iozone { .. } => figure / 1024.0,
        _ => figure,
    })
}

/// The best cells of one kernel.
#[derive(Default)]
struct Best {
    varmail: Option<f64>,
    oltp: Option<f64>,
}

impl Best {
    fn take(&mut self, load: &Load, ratio: Option<Spread>) {
        let best = match load {
            Load::Varmail { .. } => &mut self.varmail,
            Load::Oltp { .. } => &mut self.oltp,
            _ => return,
        };
        *best = best.iter().copied().chain(mean(ratio)).reduce(f64::max);
    }

    fn rows(&self, host: Host<'_>, tally: &mut Tally) -> Vec<Row> {
        let bests = [
            ("best varmail", self.varmail, targets::VARMAIL_BEST),
            ("best oltp", self.oltp, targets::OLTP_BEST),
        ];
        let mut rows = Vec::new();
        for (name, best, target) in bests {
            let Some(ratio) = best else { continue };
            let verdict = tally.verdict(Some(target), best);
            let mut row = [host.name().as_str(), "all", name, "", "", "", ""]
                .map(Entry::new)
                .to_vec();
            row.extend([Entry::new(number::fine_ratio(ratio)), verdict]);
            row.resize(COLUMNS, Entry::new(""));
            rows.push(row.into_iter().map(|entry| ("", entry)).collect());
        }
        rows
    }
}

/// Columns of the table.
const COLUMNS: usize = 14;

/// Stock's figure and LUC's.
fn both(place: &Place<'_>, figure: fn(&Record) -> Option<f64>) -> Entry {
    let [stock, luc] = [Arm::Stock, Arm::Luc].map(|arm| mean(place.spread(arm, figure)));
    if stock.or(luc).is_none() {
        return Entry::none();
    }
    let text = |value| Entry::of(value, number::figure).text;
    Entry::new(format!("{} -> {}", text(stock), text(luc)))
}

const NOTE: &str = "Each row is to reach 0.99 of stock, its p99 of fsync at most 1.05, the best cell of varmail on a kernel 1.23, of oltp 1.25. Pairs are \
stock -> LUC; fsyncs are synchronous writes in oltp.
varmail and oltp: settings of the published measurements (--preset paper), but for the threads; of oltp's, one writes \
the log, one of seven others writes data, the rest read. One virtual processor has to carry what the published machines \
spread over many: oltp's readers think 5,000 turns of an empty loop instead of 200,000, its data files are 1 MiB \
instead of 10, and aiowait waits for half of the writes that are under way, as it was written to do; Filebench on Linux \
only looks once and lets writes pile up. Little of oltp's time is the journal's here: its writes wait for their data, of \
which the kernel's writeback throttling lets half of the disk's depth be under way at a time, and for the virtual \
processor. ext4 without a journal (--policies nojc) is no faster.
metarates NxN, xK: N processes with K times N files each, as N files are made in a moment; files per second by the sum \
over the processes of 1/(T_open+T_fsync+T_close); no warm-up.
iozone: initial write with -e -c, the sum of what the children see; the first child to finish stops all clocks. On \
disks of 1 ms and less the run is over in a tenth of a second: few commits decide the figure, and a child that is done \
early raises it far more than others that are late lower it.";

/// Every workload with LUC beside stock.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        let mut best = Best::default();
        for disk in DISKS {
            let row = |load: Load| -> Option<Row> {
                let place = Place::new(records, host, disk.0, load);
                let ratio = Some(place.ratio(Arm::Luc)?);
                best.take(&place.load, ratio);
                // The mean alone: the ratio shows the range of the runs.
                let middle = |arm| Entry::of(mean(place.spread(arm, rate)), number::figure);
                let target = Some(targets::NEVER_SLOWER);
                let (mut row, unit) = start(host, disk, &place);
                row.extend([
                    ("unit", Entry::new(unit)),
                    ("stock /s", middle(Arm::Stock)),
                    ("LUC /s", middle(Arm::Luc)),
                    ("ratio", entry(ratio, number::fine_ratio)),
                    ("", tally.verdict(target, mean(ratio))),
                    ("fsyncs/s", both(&place, Record::syncs_per_s)),
                    ("fsyncs/commit", both(&place, Record::fsyncs_per_commit)),
                    ("p99 fsync, ms", both(&place, Record::sync_delay_p99_ms)),
                ]);
                row.extend(p99("ratio", &place, tally));
                Some(row)
            };
            groups.push(loads(disk).into_iter().filter_map(row).collect());
        }
        groups.push(best.rows(host, tally));
    }
    Section {
        page_charts: charts(records, hosts),
        ..section("Real workloads", NOTE, 3, groups)
    }
}

/// The load of a number of threads on a disk.
type LoadOf = fn(u32, Disk) -> Load;

/// varmail and oltp over the threads: LUC's ratio to stock, a line for each disk.
fn charts(records: &Records, hosts: &[Host<'_>]) -> Vec<Chart> {
    let kinds: [(&str, LoadOf); 2] = [("varmail", varmail), ("oltp", oltp)];
    let chart = |host: Host<'_>, (name, load): (&str, LoadOf)| {
        let ratio = |threads, disk: Disk| {
            mean(Place::new(records, host, disk.0, load(threads, disk)).ratio(Arm::Luc))
        };
        let line = |disk: Disk| Line {
            name: disk.0.to_owned(),
            y: THREADS.map(|threads| ratio(threads, disk)).into(),
        };
        ratio_chart(host, name, &THREADS, DISKS.map(line).into())
    };
    let hosts = hosts.iter();
    let charts = hosts.flat_map(|&host| kinds.map(|kind| chart(host, kind)));
    charts.filter(Chart::has_a_line).collect()
}

/// Every workload under the other policies.
pub fn policies_section(records: &Records, hosts: &[Host<'_>]) -> Section {
    let mut policies = Vec::from(POLICIES);
    policies.retain(|arm| {
        let mut all = records.records.iter();
        all.any(|record| record.cell.arm == *arm && record.cell.load.is_real())
    });
    let groups = groups(hosts, &DISKS, |host, disk| {
        let row = |load: Load| -> Option<Row> {
            let place = Place::new(records, host, disk.0, load);
            let ratios = policy_ratios(&place, &policies)?;
            let (row, _) = start(host, disk, &place);
            Some(row.into_iter().chain(ratios).collect())
        };
        loads(disk).into_iter().filter_map(row).collect()
    });
    section(
        "Real workloads under the other policies",
        &policies_note(&policies),
        3,
        groups,
    )
}
