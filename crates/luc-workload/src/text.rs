//! Figures for people: lines of a name and a value.

use std::fmt;

pub use luc_base::words::percent;

use crate::Latency;

/// Formats a time in a suitable unit.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

pub fn latency(latency: &Latency) -> String {
    if latency.count == 0 {
        return "none".to_owned();
    }
    format!(
        "mean {}, p50 {}, p99 {}, max {}",
        time(latency.mean_ns),
        time(latency.p50_ns as f64),
        time(latency.p99_ns as f64),
        time(latency.max_ns as f64),
    )
}

/// The warning printed wherever files are not made durable.
pub const UNSAFE: &str = "no fsync: an upper bound; a crash would have lost every file";

/// Writes one line per kind of call that was made.
pub fn calls(lines: &mut Lines<'_, '_>, calls: &[(&str, &Latency)]) -> fmt::Result {
    for (name, times) in calls.iter().filter(|(_, times)| times.count > 0) {
        lines.line(name, latency(times))?;
    }
    Ok(())
}

/// Lines of a name and a value, aligned.
pub struct Lines<'a, 'b>(pub(crate) &'a mut fmt::Formatter<'b>);

impl Lines<'_, '_> {
    pub fn line(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        writeln!(self.0, "  {name:<20} {value}")
    }

    pub(crate) fn throughput(&mut self, per_s: f64, count: u64, what: &str) -> fmt::Result {
        self.line(
            "throughput",
            format!("{per_s:.1} {what}/s ({count} {what})"),
        )
    }

    /// Writes the rate while a burst is under way: over the whole time it would only be the rate
    /// asked for.
    pub(crate) fn busy(
        &mut self,
        files: u64,
        busy_ns: u64,
        files_per_s: f64,
        from: &str,
    ) -> fmt::Result {
        let busy = time(busy_ns as f64);
        let throughput = format!(
            "{files_per_s:.1} files/s while a burst is under way, from its first {from} to its \
             last close ({files} files in {busy})"
        );
        self.line("throughput", throughput)
    }

    /// Writes the rate of equation 3. It is not a throughput: it leaves out the time between two
    /// files.
    pub fn file_creation_rate(&mut self, files_per_s: f64) -> fmt::Result {
        let rate =
            format!("{files_per_s:.1} files/s: one file per thread in the threads' mean time");
        self.line("file creation rate", rate)
    }
}
