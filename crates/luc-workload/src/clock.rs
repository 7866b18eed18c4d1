//! The one clock of the workloads: `CLOCK_MONOTONIC` in nanoseconds.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Stop;

pub const NS_PER_US: u64 = 1_000;
pub const NS_PER_MS: u64 = 1_000_000;
pub const NS_PER_S: u64 = 1_000_000_000;

/// Longest sleep before a look at the stop flag.
const LOOK_NS: u64 = 250 * NS_PER_MS;

/// Returns the time now, in nanoseconds since an arbitrary start.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // A monotonic clock is never negative, and its nanoseconds are below 10^9.
    now.tv_sec.unsigned_abs() * NS_PER_S + now.tv_nsec.unsigned_abs()
}

/// Converts seconds to nanoseconds. The arguments' parsers keep `seconds` within 0 and 10^7.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn seconds_ns(seconds: f64) -> u64 {
    (seconds * NS_PER_S as f64) as u64
}

/// Returns how long before a common start it is set, nanoseconds: enough for every thread or
/// process to reach its sleep, so that all of them wake at the same moment.
pub fn gathering_ns(tasks: u64) -> u64 {
    10 * NS_PER_MS + tasks * 100 * NS_PER_US
}

/// Sleeps until `deadline_ns`, or until at most a quarter of a second after `stop` is raised.
pub fn sleep_until(deadline_ns: u64, stop: &Stop) {
    loop {
        let now = now_ns();
        if now >= deadline_ns || stop.is_set() {
            return;
        }
        let until_ns = deadline_ns.min(now + LOOK_NS);
        let request = Timespec {
            tv_sec: i64::try_from(until_ns / NS_PER_S).unwrap_or(i64::MAX),
            tv_nsec: (until_ns % NS_PER_S).cast_signed(),
        };
        match clock_nanosleep_absolute(ClockId::Monotonic, &request) {
            Ok(()) | Err(Errno::INTR) => {}
            // Only a malformed request or clock could fail otherwise, and both are constants here.
            Err(error) => unreachable!("clock_nanosleep: {error}"),
        }
    }
}
