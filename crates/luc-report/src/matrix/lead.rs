//! The top of the page: the figures table in three sentences.

use super::mean;
use super::targets::Tally;
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::Arm;

/// How many figures were reached, the two ends of LUC's ratio to stock, and its middle.
pub fn sentences(records: &Records, tally: &Tally) -> Vec<String> {
    let total = tally.reached + tally.missed;
    let mut sentences = vec![match tally.missed {
        0 => format!("All {total} figures were reached."),
        missed => format!("{missed} of {total} figures were missed."),
    }];
    let mut all = compared(records);
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    if let [(worst_name, worst), .., (best_name, best)] = all.as_slice() {
        sentences.push(format!(
            "LUC reached {best:.2} times stock at best ({best_name}) and {worst:.2} times at worst \
             ({worst_name})."
        ));
        let (_, middle) = all[all.len() / 2];
        sentences.push(format!(
            "Half of the {} loads ran at {middle:.2} times stock or better.",
            all.len()
        ));
    }
    sentences
}

/// Every load whose main figure is a rate, once, with LUC's ratio to stock.
fn compared(records: &Records) -> Vec<(String, f64)> {
    let mut all: Vec<(String, f64)> = Vec::new();
    for host in records.hosts() {
        let of_host = |record: &&Record| {
            record.host() == host && record.cell.arm == Arm::Luc && record.is_a_rate()
        };
        for record in records.records.iter().filter(of_host) {
            let (cell, cpu_mips) = (&record.cell, record.cpu_mips);
            let (load, at) = (cell.load.name(), host.at_speed(cpu_mips));
            let name = format!("{load} on {}, {at}", cell.disk);
            let place = Place {
                cpu_mips,
                ..Place::new(records, host, &cell.disk, cell.load.clone())
            };
            let known = all.iter().any(|(known, _)| *known == name);
            if let (false, Some(ratio)) = (known, mean(place.ratio(Arm::Luc))) {
                all.push((name, ratio));
            }
        }
    }
    all
}
