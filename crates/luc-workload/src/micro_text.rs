//! How a person reads the results of the workloads that re-create known benchmarks.

use std::fmt;

use crate::phases::PhaseResult;
use crate::report::{Lines, latency, percent};
use crate::{FsyncStormResult, Gaps, IozoneResult, Latency, MdtestResult, MetaratesResult};

/// Printed wherever files are not made durable.
const UNSAFE: &str = "no fsync: an upper bound; a crash would have lost every file";

impl PhaseResult {
    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.line(
            &format!("{} throughput", self.phase),
            format!(
                "{:.1}/s ({} in the time of the slowest process)",
                self.total_per_s, self.ops
            ),
        )?;
        lines.line(
            "  with the barrier",
            format!(
                "{:.1}/s, the same until every process knows of the end",
                self.total_with_barrier_per_s
            ),
        )?;
        lines.line(
            "  per process",
            format!(
                "min {:.1}/s, avg {:.1}/s, max {:.1}/s",
                self.process_min_per_s, self.process_avg_per_s, self.process_max_per_s
            ),
        )?;
        lines.line("  time of one", latency(&self.latency))
    }
}

fn calls(lines: &mut Lines<'_, '_>, calls: &[(&str, &Latency)]) -> fmt::Result {
    for (name, times) in calls.iter().filter(|(_, times)| times.count > 0) {
        lines.line(name, latency(times))?;
    }
    Ok(())
}

impl MetaratesResult {
    pub(crate) fn title(&self) -> String {
        let (procs, files) = (self.args.procs, self.args.files);
        format!("metarates, {procs} processes with {files} files each")
    }

    pub(crate) fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        if self.unsafe_no_fsync {
            lines.line("UNSAFE", UNSAFE)?;
        }
        for phase in &self.phases {
            phase.lines(lines)?;
        }
        if self.open.count > 0 {
            lines.file_creation_rate(self.file_creation_rate_per_s)?;
        }
        let times = [
            ("open time", &self.open),
            ("sync delay", &self.fsync),
            ("close time", &self.close),
        ];
        calls(lines, &times)
    }
}

/// KiB per second, the familiar unit of this benchmark.
fn kib_per_s(bytes_per_s: f64) -> String {
    format!("{:.2} KiB/s", bytes_per_s / 1024.0)
}

impl IozoneResult {
    pub(crate) fn title(&self) -> String {
        let what = if self.args.posix_threads {
            "threads"
        } else {
            "processes"
        };
        format!(
            "iozone initial write, {} {what}, files of {} KiB in records of {} KiB",
            self.args.threads,
            self.args.size_bytes >> 10,
            self.args.record_bytes >> 10
        )
    }

    pub(crate) fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let children = kib_per_s(self.children_bytes_per_s);
        lines.line(
            "throughput",
            format!("{children} (\"children see\": the sum of their own)"),
        )?;
        let parent = kib_per_s(self.parent_bytes_per_s);
        lines.line(
            "parent sees",
            format!("{parent}, all bytes by the time until the last child is done"),
        )?;
        lines.line(
            "per child",
            format!(
                "min {}, avg {}, max {}",
                kib_per_s(self.child_min_bytes_per_s),
                kib_per_s(self.child_avg_bytes_per_s),
                kib_per_s(self.child_max_bytes_per_s)
            ),
        )?;
        lines.line(
            "min xfer",
            format!(
                "{} KiB; {} of {} children wrote all of their file",
                self.child_min_bytes >> 10,
                self.finished,
                self.args.threads
            ),
        )?;
        lines.line(
            "blocked",
            format!(
                "{} children ({}) in {} writes longer than {} ms",
                self.blocked,
                percent(self.blocked_share),
                self.blocked_writes,
                self.args.blocked_over_ms
            ),
        )?;
        let times = [
            ("write time", &self.write),
            ("sync delay", &self.fsync),
            ("close time", &self.close),
        ];
        calls(lines, &times)
    }
}

impl MdtestResult {
    pub(crate) fn title(&self) -> String {
        format!(
            "mdtest, {} processes with {} files each, in {} of {} directories",
            self.args.procs,
            self.args.items,
            if self.args.unique_dirs {
                "trees of their own"
            } else {
                "one tree"
            },
            self.tree_dirs
        )
    }

    pub(crate) fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        for phase in &self.phases {
            phase.lines(lines)?;
        }
        let times = [
            ("open time", &self.open),
            ("write time", &self.write),
            ("sync delay", &self.fsync),
            ("close time", &self.close),
        ];
        calls(lines, &times)
    }
}

impl FsyncStormResult {
    pub(crate) fn title(&self) -> String {
        let args = &self.args;
        let gaps = match args.gaps {
            Gaps::Exponential => "exponential",
            Gaps::Fixed => "fixed",
        };
        let load = args.burst.map_or_else(
            || format!("{} arrivals/s at {gaps} gaps", args.rate_per_s),
            |burst| {
                let (spread_us, period_ms) = (args.spread_us, args.period_ms);
                format!("bursts of {burst} within {spread_us} us every {period_ms} ms")
            },
        );
        format!("fsync-storm, {load}, {} threads", args.threads)
    }

    pub(crate) fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.line(
            "throughput",
            format!("{:.1} fsyncs/s ({} fsyncs)", self.fsyncs_per_s, self.fsyncs),
        )?;
        lines.line("arrivals", self.arrivals)?;
        lines.line(
            "served",
            format!("{}, {} never begun", self.served, self.unserved),
        )?;
        lines.line("response, as meant", latency(&self.response))?;
        lines.line("service, as begun", latency(&self.service))?;
        lines.line("lateness", latency(&self.lateness))?;
        lines.line("sync delay", latency(&self.fsync))?;
        if self.args.readers > 0 {
            let rate = format!("{} ({:.1}/s)", self.read.count, self.reads_per_s);
            lines.line("reads", rate)?;
            lines.line("read time", latency(&self.read))?;
        }
        Ok(())
    }
}
