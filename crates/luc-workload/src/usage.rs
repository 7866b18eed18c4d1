//! Busy time of the machine's processors.
//!
//! The process accounting of a stock kernel counts in ticks, and charges an interrupt to the task
//! it interrupted. The idle loop, however, measures its own sleep in nanoseconds, interrupts
//! excluded, and `/proc/timer_list` (root only) shows the sum per processor. Elapsed time less that
//! sleep is every instruction the machine ran: the workload, the journal thread, interrupts, all of
//! it.
//!
//! Only the ticks (`/proc/stat`) tell how much of it was inside the kernel: right on average over a
//! long run, coarse in a short one.

use std::fs;

use crate::clock::{NS_PER_S, now_ns};

/// One reading of the idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    at_ns: u64,
    idle: Idle,
}

/// Idle time of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Idle {
    ns: u64,
    /// How often a processor went idle.
    periods: u64,
    cpus: u64,
}

impl Usage {
    /// Reads the idle time now; `None` without permission or on a kernel that does not show it.
    pub fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/timer_list").ok()?;
        let idle = parse(&text)?;
        Some(Self {
            at_ns: now_ns(),
            idle,
        })
    }

    /// Time since `earlier`, nanoseconds.
    pub fn elapsed_ns_since(self, earlier: Self) -> u64 {
        self.at_ns.saturating_sub(earlier.at_ns)
    }

    /// Busy time of all processors together since `earlier`, nanoseconds. A processor that is
    /// asleep has not yet added its present sleep; with one processor that cannot happen, because
    /// the reader runs on it.
    pub fn busy_ns_since(self, earlier: Self) -> u64 {
        let elapsed = self.elapsed_ns_since(earlier) * self.idle.cpus;
        elapsed.saturating_sub(self.idle.ns.saturating_sub(earlier.idle.ns))
    }

    /// Returns how often processors went idle since `earlier`.
    pub fn idle_periods_since(self, earlier: Self) -> u64 {
        self.idle.periods.saturating_sub(earlier.idle.periods)
    }
}

/// Processor time of all processors together, counted in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    user_ns: u64,
    kernel_ns: u64,
}

impl Ticks {
    /// Reads the sums now; `None` on a machine that does not show them.
    pub fn read() -> Option<Self> {
        let per_s = rustix::param::clock_ticks_per_second();
        parse_ticks(&fs::read_to_string("/proc/stat").ok()?, per_s)
    }

    /// Returns the time in programs and the time in the kernel since `earlier`, nanoseconds.
    pub fn since(self, earlier: Self) -> (u64, u64) {
        (
            self.user_ns.saturating_sub(earlier.user_ns),
            self.kernel_ns.saturating_sub(earlier.kernel_ns),
        )
    }
}

/// Parses the line of all processors: user, nice, system, idle, iowait, irq, softirq, then time
/// stolen.
fn parse_ticks(text: &str, per_s: u64) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let counts: Vec<u64> = line
        .split_whitespace()
        .map_while(|count| count.parse().ok())
        .collect();
    let [user, nice, system, _, _, irq, softirq, ..] = counts[..] else {
        return None;
    };
    let ns = NS_PER_S.checked_div(per_s)?;
    Some(Ticks {
        user_ns: (user + nice) * ns,
        kernel_ns: (system + irq + softirq) * ns,
    })
}

fn parse(text: &str) -> Option<Idle> {
    let mut idle = Idle::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        // A processor that waits for I/O sleeps as well, but is counted separately.
        let (name, value) = (name.trim(), value.trim());
        if name == ".idle_sleeptime" || name == ".iowait_sleeptime" {
            let ns = value.strip_suffix("nsecs")?;
            idle.ns += ns.trim().parse::<u64>().ok()?;
            idle.cpus += u64::from(name == ".idle_sleeptime");
        } else if name == ".idle_calls" {
            idle.periods += value.parse::<u64>().ok()?;
        }
    }
    (idle.cpus > 0).then_some(idle)
}

#[cfg(test)]
mod tests {
    use super::{Idle, Ticks, Usage, parse, parse_ticks};

    #[test]
    fn sums_every_processor() {
        let text = "cpu: 0\n  .nr_events      : 5\n  .idle_calls     : 4\n\
                    \x20 .idle_sleeptime : 700 nsecs\n  .iowait_sleeptime: 50 nsecs\ncpu: 1\n\
                    \x20 .idle_calls     : 9\n  .idle_sleeptime : 1000 nsecs\n\
                    \x20 .iowait_sleeptime: 1 nsecs\n";
        let idle = Idle {
            ns: 1751,
            periods: 13,
            cpus: 2,
        };
        assert_eq!(parse(text), Some(idle));
        assert_eq!(parse("cpu: 0\n"), None);
        assert_eq!(parse(" .idle_sleeptime : many nsecs\n"), None);
        assert_eq!(
            parse(" .idle_sleeptime : 1 nsecs\n .idle_calls : x\n"),
            None
        );
    }

    #[test]
    fn busy_is_elapsed_less_idle() {
        let usage = |at_ns, ns| Usage {
            at_ns,
            idle: Idle {
                ns,
                periods: ns / 100,
                cpus: 2,
            },
        };
        assert_eq!(usage(1500, 700).idle_periods_since(usage(1000, 100)), 6);
        assert_eq!(usage(1500, 700).elapsed_ns_since(usage(1000, 100)), 500);
        assert_eq!(usage(1500, 700).busy_ns_since(usage(1000, 100)), 400);
        assert_eq!(usage(1500, 9700).busy_ns_since(usage(1000, 100)), 0);
    }

    #[test]
    fn interrupts_are_time_in_the_kernel() {
        let text = "cpu  100 5 30 9000 70 1 2 8 0 0\ncpu0 100 5 30 9000 70 1 2 8 0 0\n";
        let ticks = parse_ticks(text, 100).unwrap();
        let earlier = Ticks {
            user_ns: 50_000_000,
            kernel_ns: 0,
        };
        assert_eq!(ticks.since(earlier), (1_000_000_000, 330_000_000));
        for bad in ["", "cpu  1 2 3\n", "cpu  a b c d e f g\n", "intr 5\n"] {
            assert_eq!(parse_ticks(bad, 100), None, "{bad}");
        }
        assert_eq!(parse_ticks(text, 0), None);
    }
}
