//! Figures of bursts over processor speeds.

use super::targets::{self, Tally};
use super::{entry, groups, judged, mean, section};
use crate::demo::{BURST_THREADS, SPEEDS, burst, write_burst};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::Load;
use crate::show::document::{Entry, Row, Section};
use crate::show::number;

/// Whether every value is beyond the one before it; unknown when one is missing.
fn steadily(values: &[Option<f64>], rising: bool) -> Option<bool> {
    let known: Option<Vec<f64>> = values.iter().copied().collect();
    let beyond = |pair: &[f64]| {
        if rising {
            pair[1] > pair[0]
        } else {
            pair[1] < pair[0]
        }
    };
    Some(known?.windows(2).all(beyond))
}

fn at_speed<'a>(
    records: &'a Records,
    host: Host<'a>,
    cpu_mips: u32,
    disk: &'a str,
    load: Load,
) -> Place<'a> {
    Place {
        cpu_mips,
        ..Place::new(records, host, disk, load)
    }
}

fn start(host: Host<'_>, threads: u32, speed: &str) -> Row {
    vec![
        ("kernel", Entry::new(host.name())),
        ("threads", Entry::new(threads.to_string())),
        ("MIPS", Entry::new(speed)),
    ]
}

/// A row that says only whether LUC's figure follows the processor's speed.
fn trend(host: Host<'_>, threads: u32, text: &str, verdict: Entry, columns: usize) -> Row {
    let mut row = start(host, threads, "all");
    row.resize(columns - 2, ("", Entry::new("")));
    row.extend([("", Entry::new(text)), ("", verdict)]);
    row
}

pub fn burst_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let groups = groups(hosts, &BURST_THREADS, |host, threads| {
        let place = |mips| at_speed(records, host, mips, "4ms:1", burst(threads));
        let mut rows = Vec::new();
        for cpu_mips in SPEEDS {
            let place = place(cpu_mips);
            let ratio = place.ratio(Arm::Luc);
            if ratio.is_none() {
                continue;
            }
            let top = cpu_mips == 1000;
            let target = targets::burst(threads).filter(|_| top);
            let two = |arm| place.spread(arm, Record::bad_share);
            let two_target = Some(targets::TWO_COMMITS).filter(|_| top);
            let mut row = start(host, threads, &cpu_mips.to_string());
            row.extend([
                (
                    "stock files/s",
                    entry(place.figure(Arm::Stock), number::figure),
                ),
                ("two commits", entry(two(Arm::Stock), number::percent)),
                ("LUC files/s", entry(place.figure(Arm::Luc), number::figure)),
                ("two commits", entry(two(Arm::Luc), number::percent)),
                ("", tally.verdict(two_target, mean(two(Arm::Luc)))),
            ]);
            row.extend(judged("ratio", ratio, target, [number::ratio; 2], tally));
            rows.push(row);
        }
        let rates = SPEEDS.map(|mips| mean(place(mips).figure(Arm::Luc)));
        if let Some(rises) = steadily(&rates, true) {
            rows.push(trend(
                host,
                threads,
                "rises with speed",
                tally.judge(rises),
                11,
            ));
        }
        rows
    });
    section(
        "burst",
        "Threads create, fsync and close within 800 us of a fixed moment; disk 4ms:1. At 1000 MIPS at most 1% may \
         wait for two commits.",
        1,
        groups,
    )
}

pub fn write_burst_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let groups = groups(hosts, &[16], |host, threads| {
        let place = |mips| at_speed(records, host, mips, "4ms:8", write_burst());
        let mut rows = Vec::new();
        for cpu_mips in SPEEDS {
            let place = place(cpu_mips);
            let time = place.figure(Arm::Luc);
            if time.is_none() {
                continue;
            }
            let top = cpu_mips == 1000;
            let target = Some(targets::WRITE_BURST_MS).filter(|_| top);
            let blocked = |arm| place.spread(arm, Record::bad_share);
            let blocked_target = Some(targets::BLOCKED).filter(|_| top);
            let mut row = start(host, threads, &cpu_mips.to_string());
            row.extend([
                ("stock ms", entry(place.figure(Arm::Stock), number::ms)),
                ("blocked", entry(blocked(Arm::Stock), number::percent)),
                ("LUC blocked", entry(blocked(Arm::Luc), number::percent)),
                ("", tally.verdict(blocked_target, mean(blocked(Arm::Luc)))),
            ]);
            row.extend(judged("LUC ms", time, target, [number::ms; 2], tally));
            rows.push(row);
        }
        let times = SPEEDS.map(|mips| mean(place(mips).figure(Arm::Luc)));
        if let Some(falls) = steadily(&times, false) {
            rows.push(trend(
                host,
                threads,
                "falls with speed",
                tally.judge(falls),
                10,
            ));
        }
        rows
    });
    section(
        "write-burst",
        "16 threads write 16 KB to a new file within 5 ms of a fixed moment, then fsync; disk 4ms:8. Time of the \
         writes alone, ms; blocked: longer than 1.5 ms.",
        1,
        groups,
    )
}

#[cfg(test)]
mod tests {
    use super::steadily;

    #[test]
    fn trends() {
        assert_eq!(
            steadily(&[Some(1.0), Some(2.0), Some(3.0)], true),
            Some(true)
        );
        assert_eq!(steadily(&[Some(1.0), Some(1.0)], true), Some(false));
        assert_eq!(steadily(&[Some(2.0), Some(1.0)], false), Some(true));
        assert_eq!(steadily(&[Some(2.0), None], false), None);
    }
}
