//! Figures of threads that loop without a pause, and of writers beside them.

use super::{
    Host, Place, create_fsync, entry, mean, policies_note, ratio_chart, section, target_entry,
    write_delay,
};
use crate::document::{Cell, Chart, Line, Section, number};
use crate::load::{Load, Mode, POLICIES};
use crate::record::{Record, Records};
use crate::targets::{self, CREATE_FSYNC, THREADS, Tally};

pub fn create_fsync_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        for (disk, _) in CREATE_FSYNC {
            let mut rows = Vec::new();
            for threads in THREADS {
                let place = Place::new(records, host, 1000, disk, create_fsync(disk, threads));
                let ratio = place.ratio(Mode::Luc);
                if ratio.is_none() {
                    continue;
                }
                let target = targets::create_fsync(host, disk, threads);
                let form = if threads == 1 {
                    number::fine_ratio
                } else {
                    number::ratio
                };
                let mut row = vec![
                    host.cell(),
                    Cell::new(disk),
                    Cell::new(threads.to_string()),
                    entry(place.figure(Mode::Stock), number::figure),
                    entry(place.figure(Mode::Luc), number::figure),
                    entry(
                        place.spread(Mode::Luc, Record::fsyncs_per_commit),
                        number::figure,
                    ),
                    entry(ratio, form),
                    target_entry(target, form),
                    tally.verdict(target, mean(ratio)),
                ];
                row.extend(place.p99(tally));
                rows.push(row);
            }
            groups.push(rows);
        }
    }
    let section = section(
        "create-fsync",
        "Threads loop create, fsync, close. Operations per second. p99: of fsync, ratio to stock, 1.05 at most.",
        &[
            "kernel",
            "disk",
            "threads",
            "stock ops/s",
            "LUC ops/s",
            "fsyncs/commit",
            "ratio",
            "to reach",
            "",
            "p99",
            "",
        ],
        2,
        groups,
    );
    let disks = |host: &Host<'_>| {
        let line = |(disk, _)| line(records, *host, disk, Mode::Luc, disk);
        ratio_chart(*host, "LUC", &THREADS, CREATE_FSYNC.map(line).into())
    };
    let charts = hosts.iter().map(disks);
    Section {
        page_charts: charts.filter(Chart::has_a_line).collect(),
        ..section
    }
}

/// The ratio to stock over the threads.
fn line(records: &Records, host: Host<'_>, disk: &str, mode: Mode, name: &str) -> Line {
    let ratio = |threads| {
        let load = create_fsync(disk, threads);
        mean(Place::new(records, host, 1000, disk, load).ratio(mode))
    };
    Line {
        name: name.to_owned(),
        y: THREADS.map(ratio).into(),
    }
}

pub fn policies_section(records: &Records, hosts: &[Host<'_>]) -> Section {
    let mut groups = Vec::new();
    let policies: Vec<Mode> = POLICIES
        .into_iter()
        .filter(|mode| {
            let loops = |record: &&Record| matches!(record.cell.load, Load::CreateFsync { .. });
            let mut loops = records.records.iter().filter(loops);
            loops.any(|record| record.cell.mode == *mode)
        })
        .collect();
    for &host in hosts {
        for (disk, _) in CREATE_FSYNC {
            let mut rows = Vec::new();
            for threads in THREADS {
                let place = Place::new(records, host, 1000, disk, create_fsync(disk, threads));
                let ratios: Vec<_> = policies.iter().map(|&mode| place.ratio(mode)).collect();
                if ratios.iter().all(Option::is_none) {
                    continue;
                }
                let mut row = vec![host.cell(), Cell::new(disk), Cell::new(threads.to_string())];
                row.extend(ratios.into_iter().map(|ratio| entry(ratio, number::ratio)));
                row.push(entry(place.ratio(Mode::Luc), number::ratio));
                rows.push(row);
            }
            groups.push(rows);
        }
    }
    let mut names = vec!["kernel".to_owned(), "disk".to_owned(), "threads".to_owned()];
    names.extend(policies.iter().map(|mode| mode.warning_name()));
    names.push(Mode::Luc.name().to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let section = section(
        "create-fsync under the other policies",
        &policies_note(&policies),
        &names,
        2,
        groups,
    );
    let chart = |host: Host<'_>, disk: &str| {
        let modes = policies.iter().copied().chain([Mode::Luc]);
        let lines = modes.map(|mode| line(records, host, disk, mode, mode.name()));
        ratio_chart(host, disk, &THREADS, lines.collect())
    };
    let hosts = hosts.iter().filter(|_| !policies.is_empty());
    let charts = hosts.flat_map(|&host| CREATE_FSYNC.map(|(disk, _)| chart(host, disk)));
    Section {
        page_charts: charts.filter(Chart::has_a_line).collect(),
        ..section
    }
}

pub fn write_delay_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        let place = Place::new(records, host, 1000, "4ms:1", write_delay());
        let mut rows = Vec::new();
        for mode in [Mode::Luc].into_iter().chain(POLICIES) {
            let ratio = place.ratio(mode);
            if ratio.is_none() {
                continue;
            }
            // Figures are asked of LUC as a whole; the others are there for comparison.
            let asked = mode == Mode::Luc;
            let target = targets::write_delay(host).filter(|_| asked);
            let delayed = place.spread(mode, Record::bad_share);
            let delayed_target = Some(targets::WRITES_DELAYED).filter(|_| asked);
            rows.push(vec![
                host.cell(),
                Cell::new(mode.warning_name()),
                entry(place.figure(Mode::Stock), number::figure),
                entry(place.figure(mode), number::figure),
                entry(ratio, number::ratio),
                target_entry(target, number::ratio),
                tally.verdict(target, mean(ratio)),
                entry(
                    place.spread(Mode::Stock, Record::bad_share),
                    number::percent,
                ),
                entry(delayed, number::percent),
                target_entry(delayed_target, number::percent),
                tally.verdict(delayed_target, mean(delayed)),
            ]);
        }
        groups.push(rows);
    }
    section(
        "write-delay",
        "48 writers append 4 KB every 2 ms beside one fsync stream; disk 4ms:1. Delayed: longer than 1 ms.",
        &[
            "kernel",
            "mode",
            "stock writes/s",
            "writes/s",
            "ratio",
            "to reach",
            "",
            "stock delayed",
            "delayed",
            "to reach",
            "",
        ],
        2,
        groups,
    )
}
