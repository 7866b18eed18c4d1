//! What fsyncs without a commit do on many processors.

use super::{Host, Place, entry, repeated, section};
use crate::document::{Cell, Section, number};
use crate::load::{Job, Load, Mode};
use crate::record::{Record, Records};

/// Virtual processors of the machine, and the numbers of threads that its load takes in turn.
pub const VCPUS: u32 = 8;
const THREADS: [u32; 4] = [1, 2, 4, 8];

/// It is not used: such an fsync finds nothing to write.
const DISK: &str = "0ns:1:512M";

/// Short, so that stock and LUC are close together in time: the speed of a host in use drifts.
const LOAD: Load = Load::Scaling {
    measure_ms: 400,
    warmup_ms: 100,
};

/// The cells, in one job in host time: virtual time runs one virtual processor at a time.
pub fn job(host: Host<'_>, repeats: u32) -> Job {
    let modes = [Mode::Stock, Mode::Elsewhere, Mode::Luc];
    Job {
        virtual_time: false,
        ..host.job(1000, repeated(DISK, &[LOAD], &modes, repeats))
    }
}

/// Calls per second of each number of threads, and LUC's as a ratio to stock's.
pub fn section_of(records: &Records, hosts: &[Host<'_>]) -> Section {
    let mut groups = Vec::new();
    for &host in hosts {
        let place = Place::new(records, host, 1000, DISK, LOAD);
        let mut rows = Vec::new();
        for threads in THREADS {
            let calls_per_s = |record: &Record| Some(record.scaling_step(threads)?.calls_per_s);
            let to_one = |record: &Record| record.scaling_step(threads)?.to_one_thread;
            let stock = place.spread(Mode::Stock, calls_per_s);
            if stock.is_none() {
                continue;
            }
            rows.push(vec![
                host.cell(),
                Cell::new(threads.to_string()),
                entry(stock, number::figure),
                entry(place.spread(Mode::Stock, to_one), number::ratio),
                entry(place.ratio_of(Mode::Elsewhere, calls_per_s), number::ratio),
                entry(place.ratio_of(Mode::Luc, calls_per_s), number::ratio),
            ]);
        }
        groups.push(rows);
    }
    section(
        "Fsyncs on many processors",
        "Threads on virtual processors of their own fsync files that are committed; stock, LUC on another file \
         system and LUC one after the other in one boot, in host time: the emulator runs virtual processors on those \
         of the host, and where these are fewer, N threads have a share of one processor each whatever the kernel does. \
         A thread's rate to that of one thread alone says so; only ratios to stock tell of LUC, and no more than \
         their spread lets them.",
        &[
            "kernel",
            "threads",
            "stock calls/s",
            "each to one alone",
            "elsewhere",
            "LUC",
        ],
        2,
        groups,
    )
}
