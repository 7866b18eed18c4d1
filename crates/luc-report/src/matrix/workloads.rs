//! Figures of real workloads: varmail, oltp, metarates and iozone.

use super::{Host, Place, entry, headings, mean, ratio_chart, repeated};
use crate::document::{Cell, Chart, Line, Section, Table, number};
use crate::load::{Job, Load, Mode, POLICIES};
use crate::record::{Record, Records, Spread};
use crate::targets::{self, Tally, Target};

/// A disk, and how long each loop is measured on it.
struct Disk {
    spec: &'static str,
    varmail_ms: u32,
    oltp_ms: u32,
}

/// One round of varmail takes two commits and more, and threads return in groups: a measurement
/// holds some hundred rounds. oltp moves in far larger steps: its readers are let on a thousand
/// reads at a time, when the slowest writer has made its hundred writes durable. Where the disk is
/// slow the virtual processor idles, which costs next to nothing; where it is fast the processor
/// is busy, and each virtual second takes many of ours.
const DISKS: [Disk; 5] = [
    Disk::new("4ms:1", 8000, 60_000),
    Disk::new("4ms:32", 4000, 16_000),
    Disk::new("1ms:64", 1500, 6000),
    Disk::new("100us:64", 600, 2400),
    Disk::new("20us:64", 600, 2400),
];

impl Disk {
    const fn new(spec: &'static str, varmail_ms: u32, oltp_ms: u32) -> Self {
        Self {
            spec,
            varmail_ms,
            oltp_ms,
        }
    }
}

/// Threads of varmail, and of oltp altogether.
const THREADS: [u32; 3] = [4, 16, 64];
/// Processes and files of each of metarates.
const METARATES: [u32; 3] = [4, 16, 32];
/// Threads of shared-files.
const SHARERS: u32 = 8;
/// Processes of iozone.
const CHILDREN: u32 = 256;
/// How often iozone is measured where the others are once: it is over in a moment, and a figure
/// that few commits decide is as much chance as cause.
const IOZONE_REPEATS: u32 = 5;

fn varmail(threads: u32, measure_ms: u32) -> Load {
    Load::Varmail {
        threads,
        measure_ms,
        warmup_ms: warmup_ms(measure_ms),
    }
}

/// Long enough for a controller to learn a disk.
fn warmup_ms(measure_ms: u32) -> u32 {
    measure_ms / 4
}

/// So many threads in the proportions of the published 48: one writes the log, one of seven others
/// writes data, the rest read.
fn oltp(threads: u32, measure_ms: u32) -> Load {
    let db_writers = (threads / 7).max(1);
    Load::Oltp {
        readers: threads - 1 - db_writers,
        db_writers,
        measure_ms,
        warmup_ms: warmup_ms(measure_ms),
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

/// What is measured on a disk, in the order of the table.
fn loads(disk: &Disk) -> Vec<Load> {
    let mut loads = Vec::new();
    loads.extend(THREADS.map(|threads| varmail(threads, disk.varmail_ms)));
    loads.extend(THREADS.map(|threads| oltp(threads, disk.oltp_ms)));
    loads.extend(METARATES.map(|n| metarates(n, disk.spec)));
    loads.push(Load::SharedFiles {
        threads: SHARERS,
        measure_ms: disk.varmail_ms,
        warmup_ms: warmup_ms(disk.varmail_ms),
    });
    loads.push(IOZONE);
    loads
}

const IOZONE: Load = Load::Iozone { threads: CHILDREN };

/// Jobs of one kernel: one per disk.
pub fn jobs(host: Host<'_>, policies: &[Mode], repeats: u32) -> Vec<Job> {
    let mut modes = vec![Mode::Stock, Mode::Luc];
    modes.extend(policies);
    let cells = |disk: &Disk| {
        let (iozone, others): (Vec<_>, Vec<_>) =
            loads(disk).into_iter().partition(|load| *load == IOZONE);
        let mut cells = repeated(disk.spec, &others, &modes, repeats);
        cells.extend(repeated(
            disk.spec,
            &iozone,
            &modes,
            repeats.saturating_mul(IOZONE_REPEATS),
        ));
        cells
    };
    DISKS
        .iter()
        .map(|disk| host.job(1000, cells(disk)))
        .collect()
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

/// The rate of a row, in its unit per second.
fn rate(record: &Record) -> Option<f64> {
    let figure = record.main_figure()?;
    Some(match record.cell.load {
        Load::Iozone { .. } => figure / 1024.0,
        _ => figure,
    })
}

const HEADINGS: [&str; 14] = [
    "kernel",
    "disk",
    "workload",
    "threads",
    "unit",
    "stock /s",
    "LUC /s",
    "ratio",
    "",
    "fsyncs/s",
    "fsyncs/commit",
    "p99 fsync, ms",
    "ratio",
    "",
];
/// Column of the ratio.
const RATIO_AT: usize = 7;

/// The best cells of one kernel.
#[derive(Default)]
struct Best {
    varmail: Option<f64>,
    oltp: Option<f64>,
}

impl Best {
    fn hear(&mut self, load: &Load, ratio: Option<Spread>) {
        let best = match load {
            Load::Varmail { .. } => &mut self.varmail,
            Load::Oltp { .. } => &mut self.oltp,
            _ => return,
        };
        *best = best.iter().copied().chain(mean(ratio)).reduce(f64::max);
    }

    fn rows(&self, host: Host<'_>, tally: &mut Tally) -> Vec<Vec<Cell>> {
        let bests = [
            ("best varmail", self.varmail, targets::VARMAIL_BEST),
            ("best oltp", self.oltp, targets::OLTP_BEST),
        ];
        let row = |(name, best, target): (&str, Option<f64>, Target)| {
            let best = best?;
            let mut row = vec![host.cell(), Cell::new("all"), Cell::new(name)];
            row.resize(RATIO_AT, Cell::new(""));
            row.push(Cell::new(number::fine_ratio(best)));
            row.push(tally.verdict(Some(target), Some(best)));
            row.resize(HEADINGS.len(), Cell::new(""));
            Some(row)
        };
        bests.into_iter().filter_map(row).collect()
    }
}

/// Stock's figure and LUC's.
fn both(place: &Place<'_>, figure: impl Fn(&Record) -> Option<f64>) -> Cell {
    let (stock, luc) = (
        mean(place.spread(Mode::Stock, &figure)),
        mean(place.spread(Mode::Luc, &figure)),
    );
    let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number::figure);
    if stock.or(luc).is_none() {
        return Cell::none();
    }
    Cell::new(format!("{} -> {}", text(stock), text(luc)))
}

/// The mean alone: what the runs differ by is seen in the ratio.
fn middle(spread: Option<Spread>) -> Cell {
    mean(spread).map_or_else(Cell::none, |mean| Cell::new(number::figure(mean)))
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
pub fn section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        let mut best = Best::default();
        for disk in &DISKS {
            let mut rows = Vec::new();
            for load in loads(disk) {
                let place = Place::new(records, host, 1000, disk.spec, load.clone());
                let ratio = place.ratio(Mode::Luc);
                if ratio.is_none() {
                    continue;
                }
                best.hear(&load, ratio);
                // What was measured, not what would be today.
                let (name, threads, unit) = names(place.measured().unwrap_or(&load));
                let target = Some(targets::NEVER_SLOWER);
                let mut row = vec![
                    host.cell(),
                    Cell::new(disk.spec),
                    Cell::new(name),
                    Cell::new(threads.to_string()),
                    Cell::new(unit),
                    middle(place.spread(Mode::Stock, rate)),
                    middle(place.spread(Mode::Luc, rate)),
                    entry(ratio, number::fine_ratio),
                    tally.verdict(target, mean(ratio)),
                    both(&place, Record::syncs_per_s),
                    both(&place, Record::fsyncs_per_commit),
                    both(&place, Record::sync_delay_p99_ms),
                ];
                row.extend(place.p99(tally));
                rows.push(row);
            }
            groups.push(rows);
        }
        groups.push(best.rows(host, tally));
    }
    groups.retain(|group| !group.is_empty());
    Section {
        title: "Real workloads".to_owned(),
        note: NOTE.to_owned(),
        charts: Vec::new(),
        page_charts: charts(records, hosts),
        table: Table {
            headings: headings(&HEADINGS),
            left: 3,
            deciding: Some(RATIO_AT),
            groups,
        },
    }
}

/// varmail and oltp over the threads: LUC's ratio to stock, a line for each disk.
fn charts(records: &Records, hosts: &[Host<'_>]) -> Vec<Chart> {
    let kinds: [(&str, LoadOf); 2] = [
        ("varmail", |threads, disk| varmail(threads, disk.varmail_ms)),
        ("oltp", |threads, disk| oltp(threads, disk.oltp_ms)),
    ];
    let chart = |host: Host<'_>, (name, load): (&str, LoadOf)| {
        let line = |disk: &Disk| Line {
            name: disk.spec.to_owned(),
            y: THREADS
                .map(|threads| {
                    let load = load(threads, disk);
                    let place = Place::new(records, host, 1000, disk.spec, load);
                    mean(place.ratio(Mode::Luc))
                })
                .into(),
        };
        ratio_chart(host, name, &THREADS, DISKS.iter().map(line).collect())
    };
    let hosts = hosts.iter();
    let charts = hosts.flat_map(|&host| kinds.map(|kind| chart(host, kind)));
    charts.filter(Chart::has_a_line).collect()
}

/// The load of so many threads on a disk.
type LoadOf = fn(u32, &Disk) -> Load;

/// Every workload under the other policies.
pub fn policies_section(records: &Records, hosts: &[Host<'_>]) -> Section {
    let measured: Vec<Mode> = POLICIES
        .into_iter()
        .filter(|mode| {
            let mut all = records.records.iter();
            all.any(|record| record.cell.mode == *mode && !names(&record.cell.load).0.is_empty())
        })
        .collect();
    let mut names_of_columns: Vec<String> = headings(&["kernel", "disk", "workload", "threads"]);
    names_of_columns.extend(measured.iter().map(|mode| mode.warning_name()));
    names_of_columns.push(Mode::Luc.name().to_owned());
    let mut groups = Vec::new();
    for &host in hosts {
        for disk in &DISKS {
            let mut rows = Vec::new();
            for load in loads(disk) {
                let place = Place::new(records, host, 1000, disk.spec, load.clone());
                let ratios: Vec<_> = measured.iter().map(|&mode| place.ratio(mode)).collect();
                if ratios.iter().all(Option::is_none) {
                    continue;
                }
                let (name, threads, _) = names(place.measured().unwrap_or(&load));
                let mut row = vec![
                    host.cell(),
                    Cell::new(disk.spec),
                    Cell::new(name),
                    Cell::new(threads.to_string()),
                ];
                row.extend(ratios.into_iter().map(|ratio| entry(ratio, number::ratio)));
                row.push(entry(place.ratio(Mode::Luc), number::ratio));
                rows.push(row);
            }
            groups.push(rows);
        }
    }
    groups.retain(|group| !group.is_empty());
    Section {
        title: "Real workloads under the other policies".to_owned(),
        note: super::policies_note(&measured),
        charts: Vec::new(),
        page_charts: Vec::new(),
        table: Table {
            deciding: names_of_columns.len().checked_sub(1),
            headings: names_of_columns,
            left: 3,
            groups,
        },
    }
}
