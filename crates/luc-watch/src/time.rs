//! The clock, and waiting.

use std::time::Duration;

use luc_base::Stop;
use rustix::time::{ClockId, clock_gettime};

/// Longest sleep between two checks for an interrupt.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads the monotonic clock, which nobody sets, which stops while the machine sleeps, and which
/// the tracer uses, too.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The clock's time in ns.
pub(crate) fn now_ns() -> u64 {
    u64::try_from(now().as_nanos()).unwrap_or(u64::MAX)
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
