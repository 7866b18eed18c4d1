//! How long the machine's processors were busy.
//!
//! Process accounting of a stock kernel counts in ticks, and charges an interrupt to the task that it
//! hit. The idle loop, however, measures its own sleep in nanoseconds, interrupts excluded, and
//! `/proc/timer_list` (root only) shows the sum per processor. Elapsed time less that sleep is
//! every instruction the machine ran: the workload, the journal thread, interrupts, all of it.

use std::fs;

use crate::clock::now_ns;

/// One reading of the idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    at_ns: u64,
    idle_ns: u64,
    cpus: u64,
}

impl Usage {
    /// Reads the idle time now; `None` without permission or on a kernel without it.
    pub fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/timer_list").ok()?;
        let (idle_ns, cpus) = parse(&text)?;
        Some(Self {
            at_ns: now_ns(),
            idle_ns,
            cpus,
        })
    }

    /// Busy time of all processors together since `earlier`, nanoseconds. A processor that sleeps
    /// right now has not yet added its present sleep; with one processor that cannot happen, as
    /// the reader runs on it.
    pub fn busy_ns_since(self, earlier: Self) -> u64 {
        let elapsed = self.at_ns.saturating_sub(earlier.at_ns) * self.cpus;
        elapsed.saturating_sub(self.idle_ns.saturating_sub(earlier.idle_ns))
    }
}

/// Sum of the idle times, and the number of processors.
fn parse(text: &str) -> Option<(u64, u64)> {
    let (mut idle_ns, mut cpus) = (0, 0);
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        // A processor that waits for I/O sleeps as well, but is counted apart.
        let name = name.trim();
        if name == ".idle_sleeptime" || name == ".iowait_sleeptime" {
            let value = value.trim().strip_suffix("nsecs")?;
            idle_ns += value.trim().parse::<u64>().ok()?;
            cpus += u64::from(name == ".idle_sleeptime");
        }
    }
    (cpus > 0).then_some((idle_ns, cpus))
}

#[cfg(test)]
mod tests {
    use super::{Usage, parse};

    #[test]
    fn sums_every_processor() {
        let text = "cpu: 0\n  .nr_events      : 5\n  .idle_sleeptime : 700 nsecs\n\
                    \x20 .iowait_sleeptime: 50 nsecs\ncpu: 1\n  .idle_sleeptime : 1000 nsecs\n\
                    \x20 .iowait_sleeptime: 1 nsecs\n";
        assert_eq!(parse(text), Some((1751, 2)));
        assert_eq!(parse("cpu: 0\n"), None);
        assert_eq!(parse(" .idle_sleeptime : many nsecs\n"), None);
    }

    #[test]
    fn busy_is_elapsed_less_idle() {
        let usage = |at_ns, idle_ns| Usage {
            at_ns,
            idle_ns,
            cpus: 2,
        };
        assert_eq!(usage(1500, 700).busy_ns_since(usage(1000, 100)), 400);
        assert_eq!(usage(1500, 9700).busy_ns_since(usage(1000, 100)), 0);
    }
}
