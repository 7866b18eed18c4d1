//! Figures of threads that loop without a pause, and of writers beside them.

use super::targets::{self, CREATE_FSYNC, THREADS, Tally};
use super::{
    WRITE_DELAY, create_fsync, entry, groups, judged, mean, p99, policies_note, policy_ratios,
    ratio_chart, section,
};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::{Arm, POLICIES};
use crate::plan::host::Host;
use crate::plan::load::Load;
use crate::show::document::{Chart, Entry, Line, Row, Section};
use crate::show::number;

fn start(host: Host<'_>, disk: &str, threads: u32) -> Row {
    vec![
        ("kernel", Entry::new(host.name())),
        ("disk", Entry::new(disk)),
        ("threads", Entry::new(threads.to_string())),
    ]
}

pub fn create_fsync_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let groups = groups(hosts, &CREATE_FSYNC, |host, (disk, _)| {
        let row = |threads: u32| -> Option<Row> {
            let place = Place::new(records, host, disk, create_fsync(disk, threads));
            let ratio = Some(place.ratio(Arm::Luc)?);
            let target = targets::create_fsync(host, disk, threads);
            let form = match threads {
                1 => number::fine_ratio,
                _ => number::ratio,
            };
            let batch = place.spread(Arm::Luc, Record::fsyncs_per_commit);
            let mut row = start(host, disk, threads);
            row.extend([
                (
                    "stock ops/s",
                    entry(place.figure(Arm::Stock), number::figure),
                ),
                ("LUC ops/s", entry(place.figure(Arm::Luc), number::figure)),
                ("fsyncs/commit", entry(batch, number::figure)),
            ]);
            row.extend(judged("ratio", ratio, target, [form; 2], tally));
            row.extend(p99("p99", &place, tally));
            Some(row)
        };
        THREADS.into_iter().filter_map(row).collect()
    });
    let disks = |host: &Host<'_>| {
        let line = |(disk, _)| line(records, *host, disk, Arm::Luc, disk);
        ratio_chart(*host, "LUC", &THREADS, CREATE_FSYNC.map(line).into())
    };
    let charts = hosts.iter().map(disks);
    Section {
        page_charts: charts.filter(Chart::has_a_line).collect(),
        ..section(
            "create-fsync",
            "Threads loop create, fsync, close. Operations per second. p99: of fsync, ratio to stock, 1.05 at most, of at least 1000 fsyncs.",
            2,
            groups,
        )
    }
}

/// The ratio to stock over the threads.
fn line(records: &Records, host: Host<'_>, disk: &str, arm: Arm, name: &str) -> Line {
    let ratio = |threads| {
        let load = create_fsync(disk, threads);
        mean(Place::new(records, host, disk, load).ratio(arm))
    };
    Line {
        name: name.to_owned(),
        y: THREADS.map(ratio).into(),
    }
}

pub fn policies_section(records: &Records, hosts: &[Host<'_>]) -> Section {
    let loops = |record: &&Record| matches!(record.cell.load, Load::CreateFsync { .. });
    let mut policies = Vec::from(POLICIES);
    policies.retain(|arm| {
        let mut loops = records.records.iter().filter(loops);
        loops.any(|record| record.cell.arm == *arm)
    });
    let groups = groups(hosts, &CREATE_FSYNC, |host, (disk, _)| {
        let row = |threads: u32| -> Option<Row> {
            let place = Place::new(records, host, disk, create_fsync(disk, threads));
            let ratios = policy_ratios(&place, &policies)?;
            Some(
                start(host, disk, threads)
                    .into_iter()
                    .chain(ratios)
                    .collect(),
            )
        };
        THREADS.into_iter().filter_map(row).collect()
    });
    let chart = |host: Host<'_>, disk: &str| {
        let arms = policies.iter().copied().chain([Arm::Luc]);
        let lines = arms.map(|arm| line(records, host, disk, arm, arm.name()));
        ratio_chart(host, disk, &THREADS, lines.collect())
    };
    let hosts = hosts.iter().filter(|_| !policies.is_empty());
    let charts = hosts.flat_map(|&host| CREATE_FSYNC.map(|(disk, _)| chart(host, disk)));
    Section {
        page_charts: charts.filter(Chart::has_a_line).collect(),
        ..section(
            "create-fsync under the other policies",
            &policies_note(&policies),
            2,
            groups,
        )
    }
}

pub fn write_delay_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let groups = groups(hosts, &["4ms:1"], |host, disk| {
        let place = Place::new(records, host, disk, WRITE_DELAY);
        let row = |arm: Arm| -> Option<Row> {
            let ratio = Some(place.ratio(arm)?);
            // Only LUC as a whole has figures to reach; the others are there for comparison.
            let asked = arm == Arm::Luc;
            let target = targets::write_delay(host).filter(|_| asked);
            let delayed = |arm| place.spread(arm, Record::bad_share);
            let delayed_target = Some(targets::WRITES_DELAYED).filter(|_| asked);
            let percent: [fn(f64) -> String; 2] = [number::percent; 2];
            let mut row = vec![
                ("kernel", Entry::new(host.name())),
                ("mode", Entry::new(arm.warning_name())),
                (
                    "stock writes/s",
                    entry(place.figure(Arm::Stock), number::figure),
                ),
                ("writes/s", entry(place.figure(arm), number::figure)),
            ];
            row.extend(judged("ratio", ratio, target, [number::ratio; 2], tally));
            row.push(("stock delayed", entry(delayed(Arm::Stock), number::percent)));
            row.extend(judged(
                "delayed",
                delayed(arm),
                delayed_target,
                percent,
                tally,
            ));
            Some(row)
        };
        let arms = [Arm::Luc].into_iter().chain(POLICIES);
        arms.filter_map(row).collect()
    });
    section(
        "write-delay",
        "48 writers append 4 KB every 2 ms beside one fsync stream; disk 4ms:1. Delayed: longer than 1 ms.",
        2,
        groups,
    )
}
