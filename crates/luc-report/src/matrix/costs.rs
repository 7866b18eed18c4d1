//! What LUC costs where it gives nothing.

use super::{Host, Place, create_fsync, entry, mean, section};
use crate::document::{Cell, Section, number};
use crate::load::Mode;
use crate::record::{Record, Records};
use crate::targets::{self, CREATE_FSYNC, THREADS, Tally};

pub fn overhead_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        for (disk, _) in CREATE_FSYNC {
            let mut rows = Vec::new();
            for threads in THREADS {
                let place = Place::new(records, host, 1000, disk, create_fsync(disk, threads));
                let (loaded, observe) = (place.ratio(Mode::Loaded), place.ratio(Mode::Observe));
                if loaded.or(observe).is_none() {
                    continue;
                }
                rows.push(vec![
                    host.cell(),
                    Cell::new(disk),
                    Cell::new(threads.to_string()),
                    entry(place.figure(Mode::Stock), number::figure),
                    entry(loaded, number::fine_ratio),
                    tally.verdict(Some(targets::LOADED), mean(loaded)),
                    entry(observe, number::fine_ratio),
                    tally.verdict(Some(targets::OBSERVE), mean(observe)),
                ]);
            }
            groups.push(rows);
        }
    }
    section(
        "What being there costs",
        "create-fsync with the module loaded but attached to nothing (0.998 to reach) and observing (0.995 to \
         reach), ratio to stock.",
        &[
            "kernel",
            "disk",
            "threads",
            "stock ops/s",
            "loaded",
            "",
            "observe",
            "",
        ],
        2,
        groups,
    )
}

/// Instructions that one fsync and one commit cost beyond stock.
///
/// With one thread, every fsync has a commit of its own: the machine's busy time per operation,
/// less stock's, is what LUC adds to one fsync and one commit together. With 16 threads that only
/// observe, a commit serves d fsyncs, and the same difference is one fsync plus 1/d commit. Two
/// equations, two unknowns. The sync hook is the same in every mode, so its part found in observe
/// mode holds for all; the rest of a mode's pair is its commit.
pub fn instructions_section(records: &Records, hosts: &[Host<'_>]) -> Section {
    const DISK: &str = "100us:64";
    let mut groups = Vec::new();
    let whole = |value: f64| format!("{value:.0}");
    for &host in hosts {
        let place = |threads| Place::new(records, host, 1000, DISK, create_fsync(DISK, threads));
        let per_fsync =
            |threads, mode| mean(place(threads).spread(mode, Record::instructions_per_fsync));
        let extra = |threads, mode| place(threads).extra(mode, Record::instructions_per_fsync);
        let fsync_part = || {
            let pair = extra(1, Mode::Observe)?.mean;
            let shared = extra(16, Mode::Observe)?.mean;
            let batch = mean(place(16).spread(Mode::Observe, Record::fsyncs_per_commit))?;
            // pair = f + c, shared = f + c / batch
            (batch > 1.0).then(|| (shared - pair / batch) / (1.0 - 1.0 / batch))
        };
        let fsync_part = fsync_part();
        let mut rows = Vec::new();
        for mode in [
            Mode::Loaded,
            Mode::Observe,
            Mode::Static,
            Mode::Pid,
            Mode::Copyout,
            Mode::Luc,
        ] {
            let Some(pair) = extra(1, mode) else {
                continue;
            };
            let count = |value: Option<f64>| value.map_or_else(Cell::none, |v| Cell::new(whole(v)));
            let fsync = fsync_part.filter(|_| mode.attached());
            let busy = |threads| count(per_fsync(threads, mode));
            rows.push(vec![
                host.cell(),
                Cell::new(mode.name()),
                count(per_fsync(1, Mode::Stock)),
                Cell::new(number::spread(pair, |value| format!("{value:+.0}"))),
                count(fsync),
                count(fsync.map(|fsync| pair.mean - fsync)),
                count(per_fsync(16, Mode::Stock)),
                busy(16),
            ]);
        }
        groups.push(rows);
    }
    section(
        "Instructions",
        "Busy time of the virtual processor, counted exactly: everything the machine runs, divided by the fsyncs of \
         create-fsync on disk 100us:64. With one thread each fsync has its own commit, so the difference to stock is \
         what one fsync and one commit cost more. The fsync's part comes from 16 threads in observe mode, whose \
         commits serve many fsyncs each; the rest is the commit's. The last two columns are the whole cost of one \
         operation with 16 threads: where commits are fewer, each operation costs less.",
        &[
            "kernel",
            "mode",
            "stock, 1 thread",
            "extra",
            "per fsync",
            "per commit",
            "stock, 16 threads",
            "in mode",
        ],
        2,
        groups,
    )
}
