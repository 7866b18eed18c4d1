//! Figures of bursts over processor speeds.

use super::{BURST_THREADS, Host, Place, entry, mean, section, target_entry};
use crate::demo::{SPEEDS, burst, write_burst};
use crate::document::{Cell, Section, number};
use crate::load::Mode;
use crate::record::{Record, Records};
use crate::targets::{self, Tally};

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

pub fn burst_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        for threads in BURST_THREADS {
            let place = |mips| Place::new(records, host, mips, "4ms:1", burst(threads));
            let rates = SPEEDS.map(|mips| mean(place(mips).figure(Mode::Luc)));
            let mut rows = Vec::new();
            for cpu_mips in SPEEDS {
                let place = place(cpu_mips);
                let ratio = place.ratio(Mode::Luc);
                if ratio.is_none() {
                    continue;
                }
                let top = cpu_mips == 1000;
                let target = targets::burst(threads).filter(|_| top);
                let two = place.spread(Mode::Luc, Record::bad_share);
                let two_target = Some(targets::TWO_COMMITS).filter(|_| top);
                rows.push(vec![
                    host.cell(),
                    Cell::new(threads.to_string()),
                    Cell::new(cpu_mips.to_string()),
                    entry(place.figure(Mode::Stock), number::figure),
                    entry(
                        place.spread(Mode::Stock, Record::bad_share),
                        number::percent,
                    ),
                    entry(place.figure(Mode::Luc), number::figure),
                    entry(two, number::percent),
                    tally.verdict(two_target, mean(two)),
                    entry(ratio, number::ratio),
                    target_entry(target, number::ratio),
                    tally.verdict(target, mean(ratio)),
                ]);
            }
            if let Some(rises) = steadily(&rates, true) {
                rows.push(trend(
                    host,
                    &threads.to_string(),
                    "rises with speed",
                    tally.judge(rises),
                    11,
                ));
            }
            groups.push(rows);
        }
    }
    section(
        "burst",
        "Threads create, fsync and close within 800 us of a fixed moment; disk 4ms:1. At 1000 MIPS at most 1% may \
         wait for two commits.",
        &[
            "kernel",
            "threads",
            "MIPS",
            "stock files/s",
            "two commits",
            "LUC files/s",
            "two commits",
            "",
            "ratio",
            "to reach",
            "",
        ],
        1,
        groups,
    )
}

/// A row that says only whether LUC's figure follows the processor's speed.
fn trend(host: Host<'_>, threads: &str, text: &str, verdict: Cell, columns: usize) -> Vec<Cell> {
    let mut row = vec![host.cell(), Cell::new(threads), Cell::new("all")];
    row.resize(columns - 2, Cell::new(""));
    row.push(Cell::new(text));
    row.push(verdict);
    row
}

pub fn write_burst_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let form = |ms: f64| format!("{ms:.3}");
    let mut groups = Vec::new();
    for &host in hosts {
        let place = |mips| Place::new(records, host, mips, "4ms:8", write_burst());
        let times = SPEEDS.map(|mips| mean(place(mips).figure(Mode::Luc)));
        let mut rows = Vec::new();
        for cpu_mips in SPEEDS {
            let place = place(cpu_mips);
            let time = place.figure(Mode::Luc);
            if time.is_none() {
                continue;
            }
            let top = cpu_mips == 1000;
            let target = Some(targets::WRITE_BURST_MS).filter(|_| top);
            let blocked = place.spread(Mode::Luc, Record::bad_share);
            let blocked_target = Some(targets::BLOCKED).filter(|_| top);
            rows.push(vec![
                host.cell(),
                Cell::new("16"),
                Cell::new(cpu_mips.to_string()),
                entry(place.figure(Mode::Stock), form),
                entry(
                    place.spread(Mode::Stock, Record::bad_share),
                    number::percent,
                ),
                entry(blocked, number::percent),
                tally.verdict(blocked_target, mean(blocked)),
                entry(time, form),
                target_entry(target, form),
                tally.verdict(target, mean(time)),
            ]);
        }
        if let Some(falls) = steadily(&times, false) {
            rows.push(trend(
                host,
                "16",
                "falls with speed",
                tally.judge(falls),
                10,
            ));
        }
        groups.push(rows);
    }
    section(
        "write-burst",
        "16 threads write 16 KB to a new file within 5 ms of a fixed moment, then fsync; disk 4ms:8. Time of the \
         writes alone, ms; blocked: longer than 1.5 ms.",
        &[
            "kernel",
            "threads",
            "MIPS",
            "stock ms",
            "blocked",
            "LUC blocked",
            "",
            "LUC ms",
            "to reach",
            "",
        ],
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
