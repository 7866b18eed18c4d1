//! What hooks cost, in instructions.

use super::{Host, Place, entry, mean, repeated, section, target_entry};
use crate::document::{Cell, Section};
use crate::load::{Job, Load, Mode};
use crate::record::{Record, Records, Spread};
use crate::targets::{self, Tally, Target};

/// It completes at once: with one processor, whatever takes time is an instruction. The journal
/// commits by its timer every second.
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
    let modes = [Mode::Stock, Mode::Elsewhere, Mode::Observe, Mode::Luc];
    host.job(1000, repeated(DISK, &[LOAD], &modes, 1))
}

struct Row {
    name: &'static str,
    figure: fn(&Record) -> Option<f64>,
    /// Of one call, where LUC is attached to another file system; else of the whole.
    elsewhere: Option<(f64, Target)>,
    luc: Target,
}

const ROWS: [Row; 4] = [
    Row {
        name: "fsync without a commit",
        figure: |record| Some(record.fsync_cost()?.clean),
        elsewhere: Some((CALLS, targets::CALL_ELSEWHERE)),
        luc: targets::FSYNC_CLEAN,
    },
    Row {
        name: "fsync with its commit",
        figure: |record| Some(record.fsync_cost()?.committed),
        elsewhere: None,
        luc: targets::FSYNC_COMMITTED,
    },
    Row {
        name: "commit that nobody batches",
        figure: |record| record.fsync_cost()?.commit,
        elsewhere: None,
        luc: targets::COMMIT_ALONE,
    },
    Row {
        name: "metadata buffer, not copied",
        figure: |record| record.fsync_cost()?.buffer,
        elsewhere: None,
        luc: targets::BUFFER,
    },
];

/// Instructions beyond stock.
pub fn section_of(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    let extra = |value: f64| format!("{value:+.1}");
    let whole = |value: f64| format!("{value:.0}");
    for &host in hosts {
        let place = Place::new(records, host, 1000, DISK, LOAD);
        let mut rows = Vec::new();
        for row in &ROWS {
            let more = |mode| place.extra(mode, row.figure);
            let luc = more(Mode::Luc);
            if luc.is_none() {
                continue;
            }
            let elsewhere = more(Mode::Elsewhere);
            let per_call = row.elsewhere.map(|(calls, target)| {
                let each = elsewhere.map(|all| Spread {
                    mean: all.mean / calls,
                    min: all.min / calls,
                    max: all.max / calls,
                    ..all
                });
                (each, target)
            });
            let (each, target) = per_call.map_or((None, None), |(each, t)| (each, Some(t)));
            rows.push(vec![
                host.cell(),
                Cell::new(row.name),
                entry(place.spread(Mode::Stock, row.figure), whole),
                entry(elsewhere, extra),
                entry(each, extra),
                target_entry(target, whole),
                tally.verdict(target, mean(each)),
                entry(more(Mode::Observe), extra),
                entry(luc, extra),
                target_entry(Some(row.luc), whole),
                tally.verdict(Some(row.luc), mean(luc)),
            ]);
        }
        groups.push(rows);
    }
    section(
        "What hooks cost",
        "Instructions beyond stock of a lone thread on a disk that completes at once, so that nothing idles: what most of 200 \
         equal operations take. elsewhere: LUC is attached to another file system; then for one \
         of the two hooked calls of such an fsync. The commit is what the journal's thread runs when its timer makes it \
         commit one metadata buffer; a buffer is a 128th of what 129 cost more.",
        &[
            "kernel",
            "what",
            "stock",
            "elsewhere",
            "per call",
            "to reach",
            "",
            "observe",
            "LUC",
            "to reach",
            "",
        ],
        2,
        groups,
    )
}
