//! Cost of LUC where it gains nothing.

use super::targets::{self, CREATE_FSYNC, THREADS, Tally};
use super::{create_fsync, entry, groups, mean, section};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::show::document::{Entry, Row, Section};
use crate::show::number;

pub fn overhead_section(records: &Records, hosts: &[Host<'_>], tally: &mut Tally) -> Section {
    let groups = groups(hosts, &CREATE_FSYNC, |host, (disk, _)| {
        let row = |threads: u32| -> Option<Row> {
            let place = Place::new(records, host, disk, create_fsync(disk, threads));
            let (loaded, observe) = (place.ratio(Arm::Loaded), place.ratio(Arm::Observe));
            loaded.or(observe)?;
            Some(vec![
                ("kernel", Entry::new(host.name())),
                ("disk", Entry::new(disk)),
                ("threads", Entry::new(threads.to_string())),
                (
                    "stock ops/s",
                    entry(place.figure(Arm::Stock), number::figure),
                ),
                ("loaded", entry(loaded, number::fine_ratio)),
                ("", tally.verdict(Some(targets::LOADED), mean(loaded))),
                ("observe", entry(observe, number::fine_ratio)),
                ("", tally.verdict(Some(targets::OBSERVE), mean(observe))),
            ])
        };
        THREADS.into_iter().filter_map(row).collect()
    });
    section(
        "What being there costs",
        "create-fsync with the module loaded but attached to nothing (0.998 to reach) and observing (0.995 to \
         reach), ratio to stock.",
        2,
        groups,
    )
}

const ARMS: [Arm; 6] = [
    Arm::Loaded,
    Arm::Observe,
    Arm::Static,
    Arm::Pid,
    Arm::Copyout,
    Arm::Luc,
];

/// Instructions that one fsync and one commit cost beyond stock.
///
/// With one thread, every fsync has a commit of its own: the machine's busy time per operation,
/// less stock's, is LUC's cost of one fsync and one commit together. With 16 threads that only
/// observe, a commit serves d fsyncs, and the same difference is one fsync plus 1/d commit. Two
/// equations, two unknowns. The sync hook is the same in every arm, so its part found while
/// observing holds for all; the rest of an arm's pair is its commit.
pub fn instructions_section(records: &Records, hosts: &[Host<'_>]) -> Section {
    const DISK: &str = "100us:64";
    let groups = groups(hosts, &[()], |host, ()| {
        let place = |threads| Place::new(records, host, DISK, create_fsync(DISK, threads));
        let extra = |threads, arm| place(threads).extra(arm, Record::instructions_per_fsync);
        let fsync_part = || {
            let pair = extra(1, Arm::Observe)?.mean;
            let shared = extra(16, Arm::Observe)?.mean;
            let batch = mean(place(16).spread(Arm::Observe, Record::fsyncs_per_commit))?;
            // pair = f + c, shared = f + c / batch
            (batch > 1.0).then(|| (shared - pair / batch) / (1.0 - 1.0 / batch))
        };
        let fsync_part = fsync_part();
        let row = |arm: Arm| -> Option<Row> {
            let pair = extra(1, arm)?;
            let count = |value: Option<f64>| Entry::of(value, number::whole);
            let busy = |threads, arm| {
                count(mean(
                    place(threads).spread(arm, Record::instructions_per_fsync),
                ))
            };
            let fsync = fsync_part.filter(|_| arm.attached());
            Some(vec![
                ("kernel", Entry::new(host.name())),
                ("mode", Entry::new(arm.name())),
                ("stock, 1 thread", busy(1, Arm::Stock)),
                ("extra", entry(Some(pair), |value| format!("{value:+.0}"))),
                ("per fsync", count(fsync)),
                ("per commit", count(fsync.map(|fsync| pair.mean - fsync))),
                ("stock, 16 threads", busy(16, Arm::Stock)),
                ("in mode", busy(16, arm)),
            ])
        };
        ARMS.into_iter().filter_map(row).collect()
    });
    section(
        "Instructions",
        "Busy time of the virtual processor, counted exactly: everything the machine runs, divided by the fsyncs of \
         create-fsync on disk 100us:64. With one thread each fsync has its own commit, so the difference to stock is \
         what one fsync and one commit cost more. The fsync's part comes from 16 threads in observe mode, whose \
         commits serve many fsyncs each; the rest is the commit's. The last two columns are the whole cost of one \
         operation with 16 threads: where commits are fewer, each operation costs less.",
        2,
        groups,
    )
}
