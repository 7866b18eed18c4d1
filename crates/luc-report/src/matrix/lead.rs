//! The top of the page: the figures table in three sentences.

use super::{Place, hosts, mean};
use crate::load::Mode;
use crate::record::Records;
use crate::targets::Tally;

/// A load on a disk and LUC's ratio to stock there.
struct Compared {
    name: String,
    ratio: f64,
}

/// How many figures were reached, the two ends of LUC's ratio to stock, and its middle.
pub fn sentences(records: &Records, tally: &Tally) -> Vec<String> {
    let total = tally.reached + tally.missed;
    let mut sentences = vec![match tally.missed {
        0 => format!("All {total} figures were reached."),
        missed => format!("{missed} of {total} figures were missed."),
    }];
    let mut all = compared(records);
    all.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    if let [worst, .., best] = all.as_slice() {
        sentences.push(format!(
            "LUC reached {:.2} times stock at best ({}) and {:.2} times at worst ({}).",
            best.ratio, best.name, worst.ratio, worst.name
        ));
        let middle = all[all.len() / 2].ratio;
        sentences.push(format!(
            "Half of the {} loads ran at {middle:.2} times stock or better.",
            all.len()
        ));
    }
    sentences
}

/// Every load whose main figure is a rate, once.
fn compared(records: &Records) -> Vec<Compared> {
    let mut all: Vec<Compared> = Vec::new();
    for host in hosts(records) {
        let of_host = |record: &&crate::Record| {
            record.kernel == host.kernel
                && record.vcpus == host.vcpus
                && record.cell.mode == Mode::Luc
                && record.is_a_rate()
        };
        for record in records.records.iter().filter(of_host) {
            let cell = &record.cell;
            let mips = record.cpu_mips;
            let name = format!(
                "{} on {}, {}",
                cell.load.name(),
                cell.disk,
                host.at_speed(mips)
            );
            let place = Place::new(records, host, mips, &cell.disk, cell.load.clone());
            let known = all.iter().any(|one| one.name == name);
            if let (false, Some(ratio)) = (known, mean(place.ratio(Mode::Luc))) {
                all.push(Compared { name, ratio });
            }
        }
    }
    all
}
