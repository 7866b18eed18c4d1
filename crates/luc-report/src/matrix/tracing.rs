//! Cost of the tracer.

use super::targets::{self, Tally};
use super::{create_fsync, entry, groups, judged, repeated, section};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::Job;
use crate::show::document::{Entry, Row, Section};
use crate::show::number;

/// Fast, so that a second holds many operations.
const DISK: &str = "100us:64";
/// One thread, whose every fsync has a commit of its own; a few, and many.
const THREADS: [u32; 3] = [1, 4, 16];

/// The cells, in one job.
pub fn job(host: Host<'_>, repeats: u32) -> Job {
    let loads = THREADS.map(|threads| create_fsync(DISK, threads));
    let arms = [Arm::Stock, Arm::Counted, Arm::Traced];
    host.job(1000, repeated(DISK, &loads, &arms, repeats))
}

/// Instructions beyond stock for each fsync, with all that belongs to it.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let arms = [
        (Arm::Counted, targets::COUNTED),
        (Arm::Traced, targets::TRACED),
    ];
    let groups = groups(hosts, &[()], |host, ()| {
        let row = |(threads, (arm, target))| -> Option<Row> {
            let place = Place::new(records, host, DISK, create_fsync(DISK, threads));
            let more = Some(place.extra(arm, Record::instructions_per_fsync)?);
            let stock = place.spread(Arm::Stock, Record::instructions_per_fsync);
            let mut row = vec![
                ("kernel", Entry::new(host.name())),
                ("mode", Entry::new(arm.name())),
                ("threads", Entry::new(threads.to_string())),
                ("stock", entry(stock, number::whole)),
            ];
            let forms: [fn(f64) -> String; 2] = [|value| format!("{value:+.0}"), number::whole];
            row.extend(judged("extra", more, Some(target), forms, tally));
            row.push(("rate", entry(place.ratio(arm), number::fine_ratio)));
            Some(row)
        };
        let all = THREADS.into_iter();
        let all = all.flat_map(|threads| arms.map(|arm| (threads, arm)));
        all.filter_map(row).collect()
    });
    section(
        "What being watched costs",
        "Busy time of the virtual processor for each operation of create-fsync on disk 100us:64 (open, fsync, close, \
         and its part of a commit), counted exactly, beyond that of stock without a tracer. counted: `luc trace count`, sums and \
         histograms. traced: `luc trace record`, a span of everything, with the program that writes the \
         file on the same processor. The last column is the rate's ratio to stock.",
        2,
        groups,
    )
}
