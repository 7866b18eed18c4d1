//! Cost of the hooks, in instructions.

use super::targets::{self, Tally, Target};
use super::{entry, groups, judged, repeated, section};
use crate::measure::place::Place;
use crate::measure::record::{FsyncCost, Record, Records, Spread};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::{Job, Load};
use crate::show::document::{Entry, Row, Section};
use crate::show::number;

/// It completes at once: with one processor, all time is instructions. The journal commits by its
/// timer every second.
const DISK: &str = "0ns:1:512M:mount=commit=1";

/// Of the hooked functions, those that an fsync without a commit calls: `ext4_sync_file` and
/// `jbd2_complete_transaction`.
const CALLS: f64 = 2.0;

const LOAD: Load = Load::FsyncCost {
    ops: 200,
    buffers: 129,
};

/// The cells, in one job.
pub fn job(host: Host<'_>) -> Job {
    // Two runs of the same are the same to the instruction.
    let arms = [Arm::Stock, Arm::Elsewhere, Arm::Observe, Arm::Luc];
    host.job(1000, repeated(DISK, &[LOAD], &arms, 1))
}

/// An operation, its instructions, the target of one hooked call while LUC is attached elsewhere,
/// and the target with LUC.
type Operation = (
    &'static str,
    fn(FsyncCost) -> Option<f64>,
    Option<Target>,
    Target,
);

const OPERATIONS: [Operation; 4] = [
    (
        "fsync without a commit",
        |cost| Some(cost.clean),
        Some(targets::CALL_ELSEWHERE),
        targets::FSYNC_CLEAN,
    ),
    (
        "fsync with its commit",
        |cost| Some(cost.committed),
        None,
        targets::FSYNC_COMMITTED,
    ),
    (
        "commit that nobody batches",
        |cost| cost.commit,
        None,
        targets::COMMIT_ALONE,
    ),
    (
        "metadata buffer, not copied",
        |cost| cost.buffer,
        None,
        targets::BUFFER,
    ),
];

/// Instructions beyond stock.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let more: fn(f64) -> String = |value| format!("{value:+.1}");
    let forms = [more, number::whole];
    let groups = groups(hosts, &[()], |host, ()| {
        let place = Place::new(records, host, DISK, LOAD);
        let row = |(name, of, per_call, target): Operation| -> Option<Row> {
            let figure = |record: &Record| of(record.fsync_cost()?);
            let extra = |arm| place.extra(arm, figure);
            let luc = Some(extra(Arm::Luc)?);
            let elsewhere = extra(Arm::Elsewhere);
            let each = elsewhere.filter(|_| per_call.is_some()).map(|all| Spread {
                mean: all.mean / CALLS,
                min: all.min / CALLS,
                max: all.max / CALLS,
            });
            let mut row = vec![
                ("kernel", Entry::new(host.name())),
                ("what", Entry::new(name)),
                (
                    "stock",
                    entry(place.spread(Arm::Stock, figure), number::whole),
                ),
                ("elsewhere", entry(elsewhere, more)),
            ];
            row.extend(judged("per call", each, per_call, forms, tally));
            row.push(("observe", entry(extra(Arm::Observe), more)));
            row.extend(judged("LUC", luc, Some(target), forms, tally));
            Some(row)
        };
        OPERATIONS.into_iter().filter_map(row).collect()
    });
    section(
        "What hooks cost",
        "Instructions beyond stock of a lone thread on a disk that completes at once, so that nothing idles: what most of 200 \
         equal operations take. elsewhere: LUC is attached to another file system; then for one \
         of the two hooked calls of such an fsync. The commit is what the journal's thread runs when its timer makes it \
         commit one metadata buffer; a buffer is a 128th of what 129 cost more.",
        2,
        groups,
    )
}
