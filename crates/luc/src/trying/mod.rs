//! LUC against stock on a file system that is in use, for `luc try` and `luc guard`.
//!
//! `luc_guard` decides when to switch and what pairs show. This module has what it acts on:
//! [`subject`], the module's files of a file system; [`meter`], the counts there; [`notes`], files
//! below `/run/luc` from which the next command can restore LUC after a crash; [`before`], LUC's
//! state before `luc try`; [`guarding`], file systems under guard; [`standing`], a guard's notes as
//! other commands show them.

pub mod before;
pub mod guarding;
pub mod meter;
pub mod notes;
pub mod standing;
pub mod subject;

use std::time::Duration;

use luc_base::Stop;

/// Longest sleep between two checks for an interrupt.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads the monotonic clock, which nobody sets and which stops while the machine sleeps.
pub fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Sleeps until the time is over or an interrupt comes.
pub fn wait(time: Duration, stop: &Stop) {
    let end = now() + time;
    loop {
        let left = end.saturating_sub(now());
        if left.is_zero() || stop.is_set() {
            return;
        }
        std::thread::sleep(left.min(PAUSE));
    }
}

/// A number that two processes hardly ever share.
pub fn seed() -> u64 {
    let nanos = u64::try_from(now().as_nanos()).unwrap_or(0);
    nanos ^ u64::from(std::process::id()).rotate_left(32)
}
