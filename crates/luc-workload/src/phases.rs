//! Figures of one phase that several processes went through together.

use serde::{Deserialize, Serialize};

use std::fmt;

use crate::Latency;
use crate::processes::Phase;
use crate::rates::{file_creation_rate_per_s, per_second};
use crate::text::{Lines, latency};
use luc_base::summary;

/// The operations of all processes between two barriers.
///
/// All processes begin together. The phase has two ends: when the slowest process has ended, and a
/// little later, when all have passed the barrier after the phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// `create`, `stat`, `utime` or `unlink`.
    pub phase: String,
    pub ops: u64,
    /// Operations of all processes divided by the time of the slowest, per second.
    pub total_per_s: f64,
    /// Operations of all processes divided by the time until all passed the barrier, per second.
    pub total_with_barrier_per_s: f64,
    /// Rate of the slowest process over its own time, operations per second.
    pub process_min_per_s: f64,
    /// Mean of the processes' own rates, operations per second.
    pub process_avg_per_s: f64,
    /// Rate of the fastest process over its own time, operations per second.
    pub process_max_per_s: f64,
    pub time_min_ns: u64,
    pub time_avg_ns: f64,
    pub time_max_ns: u64,
    /// The time of one operation; for a create, from its open to its close.
    pub latency: Latency,
}

impl PhaseResult {
    pub(crate) fn new(name: &str, phase: &Phase) -> Self {
        let ops = phase.ops();
        let times = || phase.parts.iter().map(crate::worker::Part::took_ns);
        let rates = || {
            let parts = phase.parts.iter();
            parts.map(|part| per_second(part.ops, part.took_ns()))
        };
        let workers = phase.parts.len().max(1) as f64;
        let time_max_ns = times().max().unwrap_or(0);
        Self {
            phase: name.to_owned(),
            ops,
            total_per_s: per_second(ops, time_max_ns),
            total_with_barrier_per_s: per_second(ops, phase.length_ns()),
            process_min_per_s: rates().reduce(f64::min).unwrap_or(0.0),
            process_avg_per_s: rates().sum::<f64>() / workers,
            process_max_per_s: rates().reduce(f64::max).unwrap_or(0.0),
            time_min_ns: times().min().unwrap_or(0),
            time_avg_ns: times().sum::<u64>() as f64 / workers,
            time_max_ns,
            latency: whole(phase),
        }
    }
}

/// Sums up the times of whole operations: each is one call of every kind that was made.
fn whole(phase: &Phase) -> Latency {
    let mut sums = Vec::new();
    for part in &phase.parts {
        let mut sum = vec![0; part.calls.iter().map(Vec::len).max().unwrap_or(0)];
        for kind in &part.calls {
            for (sum, &ns) in sum.iter_mut().zip(kind) {
                *sum += ns;
            }
        }
        sums.extend(sum);
    }
    summary(&mut sums)
}

/// Computes equation 3 for the files that the processes of a phase made.
pub fn creation_rate_per_s(phase: &Phase) -> f64 {
    let made = phase.parts.iter().filter(|part| part.ops > 0);
    file_creation_rate_per_s(made.map(|part| {
        let spent_ns: u64 = part.calls.iter().flatten().sum();
        spent_ns as f64 / part.ops as f64
    }))
}

impl PhaseResult {
    pub(crate) fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let (total, ops) = (self.total_per_s, self.ops);
        let total = format!("{total:.1}/s ({ops} in the time of the slowest process)");
        lines.line(&format!("{} throughput", self.phase), total)?;
        let total = self.total_with_barrier_per_s;
        let total = format!("{total:.1}/s, until every process has passed the barrier");
        lines.line("  with the barrier", total)?;
        let (min, avg) = (self.process_min_per_s, self.process_avg_per_s);
        let max = self.process_max_per_s;
        let rates = format!("min {min:.1}/s, avg {avg:.1}/s, max {max:.1}/s");
        lines.line("  per process", rates)?;
        lines.line("  time per operation", latency(&self.latency))
    }
}

#[cfg(test)]
mod tests {
    use super::{PhaseResult, creation_rate_per_s};
    use crate::processes::Phase;
    use crate::worker::Part;

    fn part(took_ns: u64, calls: Vec<Vec<u64>>) -> Part {
        Part {
            begin_ns: 1_000,
            end_ns: 1_000 + took_ns,
            ops: 2,
            calls,
        }
    }

    #[test]
    fn rates_by_hand() {
        let phase = Phase {
            start_ns: 0,
            passed_ns: 4_000_000_000,
            parts: vec![
                part(1_000_000_000, vec![vec![10, 20], vec![], vec![300, 400]]),
                part(2_000_000_000, vec![vec![30, 40], vec![], vec![500, 600]]),
            ],
        };
        let result = PhaseResult::new("create", &phase);
        let about = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{a} is not {b}");
        assert_eq!((result.ops, result.latency.count), (4, 4));
        about(result.total_per_s, 2.0);
        about(result.total_with_barrier_per_s, 1.0);
        about(result.process_min_per_s, 1.0);
        about(result.process_avg_per_s, 1.5);
        about(result.process_max_per_s, 2.0);
        about(result.time_avg_ns, 1.5e9);
        assert_eq!((result.latency.p50_ns, result.latency.max_ns), (420, 640));
        // Two processes, 365 ns and 585 ns a file.
        about(creation_rate_per_s(&phase), 4e9 / (365.0 + 585.0));
    }

    #[test]
    fn nothing_done_is_zero() {
        let phase = Phase {
            start_ns: 0,
            passed_ns: 0,
            parts: vec![],
        };
        let result = PhaseResult::new("stat", &phase);
        assert_eq!(result.ops, 0);
        assert!(result.total_per_s.abs() < 1e-9 && result.process_avg_per_s.abs() < 1e-9);
    }
}
