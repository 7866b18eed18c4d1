//! What being watched costs.

use super::{Host, Place, create_fsync, entry, mean, repeated, section, target_entry};
use crate::document::{Cell, Section, number};
use crate::load::{Job, Mode};
use crate::record::{Record, Records};
use crate::targets::{self, Tally};

/// Fast, so that a second holds many operations.
const DISK: &str = "100us:64";
/// One, whose every fsync has a commit of its own to be seen; few, many.
const THREADS: [u32; 3] = [1, 4, 16];

/// The cells, in one job.
pub fn job(host: Host<'_>, repeats: u32) -> Job {
    let loads = THREADS.map(|threads| create_fsync(DISK, threads));
    let modes = [Mode::Stock, Mode::Counted, Mode::Traced];
    host.job(1000, repeated(DISK, &loads, &modes, repeats))
}

/// Instructions beyond stock for each fsync, with all that belongs to it.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    let extra = |value: f64| format!("{value:+.0}");
    let whole = |value: f64| format!("{value:.0}");
    for &host in hosts {
        let mut rows = Vec::new();
        for threads in THREADS {
            let place = Place::new(records, host, 1000, DISK, create_fsync(DISK, threads));
            for (mode, target) in [
                (Mode::Counted, targets::COUNTED),
                (Mode::Traced, targets::TRACED),
            ] {
                let more = place.extra(mode, Record::instructions_per_fsync);
                if more.is_none() {
                    continue;
                }
                let stock = place.spread(Mode::Stock, Record::instructions_per_fsync);
                rows.push(vec![
                    host.cell(),
                    Cell::new(mode.name()),
                    Cell::new(threads.to_string()),
                    entry(stock, whole),
                    entry(more, extra),
                    target_entry(Some(target), whole),
                    tally.verdict(Some(target), mean(more)),
                    entry(place.ratio(mode), number::fine_ratio),
                ]);
            }
        }
        groups.push(rows);
    }
    section(
        "What being watched costs",
        "Busy time of the virtual processor for each operation of create-fsync on disk 100us:64 (open, fsync, close, \
         and its part of a commit), counted exactly, beyond that of stock without a tracer. counted: `luc trace count`, sums and \
         histograms. traced: `luc trace record`, a span of everything, with the program that writes the \
         file on the same processor. The last column is the rate's ratio to stock.",
        &[
            "kernel", "mode", "threads", "stock", "extra", "to reach", "", "rate",
        ],
        2,
        groups,
    )
}
