//! Fsyncs without a commit on many processors.

use super::{entry, groups, repeated, section};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::{Job, Load, Times};
use crate::show::document::{Entry, Row, Section};
use crate::show::number;

/// Virtual processors of the machine, and the numbers of threads that its load takes in turn.
pub const VCPUS: u32 = 8;
const THREADS: [u32; 4] = [1, 2, 4, 8];

/// Not used: such an fsync finds nothing to write.
const DISK: &str = "0ns:1:512M";

/// Short, so that stock and LUC are close together in time: the speed of a host in use drifts.
const LOAD: Load = Load::Scaling {
    times: Times::new(400, 100),
};

/// The cells, in one job in host time: virtual time runs one virtual processor at a time.
pub fn job(host: Host<'_>, repeats: u32) -> Job {
    let arms = [Arm::Stock, Arm::Elsewhere, Arm::Luc];
    Job {
        virtual_time: false,
        ..host.job(1000, repeated(DISK, &[LOAD], &arms, repeats))
    }
}

/// Calls per second of each number of threads, and LUC's as a ratio to stock's.
pub fn section_of(records: &Records, hosts: &[Host<'_>]) -> Section {
    let groups = groups(hosts, &[()], |host, ()| {
        let place = Place::new(records, host, DISK, LOAD);
        let row = |threads: u32| -> Option<Row> {
            let calls_per_s = |record: &Record| Some(record.scaling_step(threads)?.calls_per_s);
            let to_one = |record: &Record| record.scaling_step(threads)?.to_one_thread;
            let stock = Some(place.spread(Arm::Stock, calls_per_s)?);
            let ratio = |arm| entry(place.ratio_of(arm, calls_per_s), number::ratio);
            Some(vec![
                ("kernel", Entry::new(host.name())),
                ("threads", Entry::new(threads.to_string())),
                ("stock calls/s", entry(stock, number::figure)),
                (
                    "each to one alone",
                    entry(place.spread(Arm::Stock, to_one), number::ratio),
                ),
                ("elsewhere", ratio(Arm::Elsewhere)),
                ("LUC", ratio(Arm::Luc)),
            ])
        };
        THREADS.into_iter().filter_map(row).collect()
    });
    section(
        "Fsyncs on many processors",
        "Threads on virtual processors of their own fsync files that are committed; stock, LUC on another file \
         system and LUC one after the other in one boot, in host time: the emulator runs virtual processors on those \
         of the host, and where these are fewer, N threads have a share of one processor each whatever the kernel does. \
         A thread's rate to that of one thread alone says so; only ratios to stock tell of LUC, and no more than \
         their spread lets them.",
        2,
        groups,
    )
}
