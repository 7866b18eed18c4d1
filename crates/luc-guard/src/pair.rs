//! Two windows, one with LUC and one without, and the number that compares them.

use serde::{Deserialize, Serialize};

use crate::times::Times;

/// With fewer calls in both windows together the file system was idle. Chosen: the ratio of so few
/// says nothing.
const CALLS_MIN: u64 = 40;

/// LUC's mode in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// It steers.
    On,
    /// It observes: the file system runs as the kernel alone would run it.
    Off,
}

impl Side {
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::On => Self::Off,
            Self::Off => Self::On,
        }
    }
}

/// The figure by which windows are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Sync calls per second: what a load gets done if it waits for its syncs.
    #[default]
    Rate,
    /// Mean time of a sync call: all that LUC can change for a load that runs by the clock.
    Latency,
}

/// The counts of a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    pub time_ns: u64,
    /// Sync calls.
    pub calls: u64,
    pub commits: u64,
    /// Time that all tasks spent in sync calls; `None` if that is not seen.
    pub waited_ns: Option<u64>,
    /// The times of the same calls.
    pub times: Option<Times>,
}

impl Window {
    /// Sync calls per second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 * 1e9 / self.time_ns.max(1) as f64
    }

    /// Mean time of a sync call; `None` without a call, or if times are not seen.
    pub fn latency_ns(&self) -> Option<f64> {
        let waited_ns = self.waited_ns.filter(|_| self.calls > 0)?;
        Some(waited_ns as f64 / self.calls as f64)
    }
}

/// A window with LUC and one without, one right after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub on: Window,
    pub off: Window,
}

impl Pair {
    /// Whether there was no load to judge by. Both windows decide it together: a rule that looked
    /// at each could leave out the very pairs in which LUC harms.
    pub fn is_idle(&self) -> bool {
        self.on.calls.saturating_add(self.off.calls) < CALLS_MIN
    }

    /// Logarithm of LUC's ratio to stock by this measure: above 0 if LUC is better, and infinite
    /// for a rate if one window had no call. `None` for an idle pair, or if a window has no
    /// latency.
    pub fn log_ratio(&self, measure: Measure) -> Option<f64> {
        if self.is_idle() {
            return None;
        }
        match measure {
            Measure::Rate => Some(self.on.rate().ln() - self.off.rate().ln()),
            Measure::Latency => {
                let (on, off) = (self.on.latency_ns()?, self.off.latency_ns()?);
                Some(off.max(1.0).ln() - on.max(1.0).ln())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(calls: u64, waited_ns: Option<u64>) -> Window {
        Window {
            time_ns: 1_000_000_000,
            calls,
            commits: calls,
            waited_ns,
            times: None,
        }
    }

    #[test]
    fn better_is_above_nothing() {
        let pair = Pair {
            on: window(200, Some(200_000)),
            off: window(100, Some(200_000)),
        };
        let rate = pair.log_ratio(Measure::Rate).unwrap();
        let latency = pair.log_ratio(Measure::Latency).unwrap();
        assert!((rate - 2.0_f64.ln()).abs() < 1e-12 && (latency - rate).abs() < 1e-12);
    }

    #[test]
    fn idle_and_unseen_windows_say_nothing() {
        let pair = |on, off| Pair {
            on: window(on, None),
            off: window(off, None),
        };
        assert_eq!(pair(20, 19).log_ratio(Measure::Rate), None);
        assert_eq!(pair(100, 100).log_ratio(Measure::Latency), None);
        // A standstill with LUC does not count as idle.
        assert_eq!(
            pair(0, 100).log_ratio(Measure::Rate),
            Some(f64::NEG_INFINITY)
        );
        assert_eq!(pair(100, 0).log_ratio(Measure::Rate), Some(f64::INFINITY));
    }
}
