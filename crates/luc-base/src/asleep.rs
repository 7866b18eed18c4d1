//! How long the machine has slept: nothing can be measured across a suspend.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Two readings differ by less if the machine did not sleep in between.
const TOLERANCE: Duration = Duration::from_millis(100);

/// The time that the machine has slept since it booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep(pub Duration);

impl Asleep {
    pub fn now() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
        };
        Self(read(ClockId::Boottime).saturating_sub(read(ClockId::Monotonic)))
    }

    /// Whether the machine slept between an earlier reading and this one.
    pub fn grew_since(self, earlier: Self) -> bool {
        self.0.saturating_sub(earlier.0) > TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspend_is_seen_and_the_time_between_two_readings_is_none() {
        let first = Asleep::now();
        assert!(!Asleep::now().grew_since(first));
        let later = Asleep(first.0 + Duration::from_secs(1));
        assert!(later.grew_since(first) && !first.grew_since(later));
    }
}
