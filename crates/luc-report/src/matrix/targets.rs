//! The figures to reach.
//!
//! One virtual processor, one instruction per nanosecond unless a speed is named, no knob touched
//! and no number of threads given; each figure compares LUC with stock in the same boot.

use crate::plan::host::{Host, every_kernel};
use crate::show::document::{Entry, Tone};

/// How many figures were reached and missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub reached: usize,
    pub missed: usize,
}

/// A figure to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

impl Target {
    /// Whether a measured value reaches it.
    pub fn reached(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    /// The bound, in the form of its column.
    pub fn text(self, form: impl Fn(f64) -> String) -> String {
        match self {
            Self::AtLeast(bound) => format!(">= {}", form(bound)),
            Self::AtMost(bound) => format!("<= {}", form(bound)),
        }
    }
}

impl Tally {
    /// The verdict on one figure, counted; "-" where nothing is to be reached or known.
    pub fn verdict(&mut self, target: Option<Target>, value: Option<f64>) -> Entry {
        match (target, value) {
            (Some(target), Some(value)) => self.judge(target.reached(value)),
            _ => Entry::none(),
        }
    }

    /// The verdict on a condition, counted.
    pub fn judge(&mut self, holds: bool) -> Entry {
        if holds {
            self.reached += 1;
            Entry::toned("reached", Tone::Good)
        } else {
            self.missed += 1;
            Entry::toned("MISSED", Tone::Bad)
        }
    }
}

/// Disks of create-fsync, with the ratio to reach for 1, 4, 16 and 64 threads on 6.1 and 6.12.
pub const CREATE_FSYNC: [(&str, [f64; 4]); 4] = [
    ("4ms:1", [0.997, 1.95, 1.90, 1.75]),
    ("1ms:64", [0.997, 1.90, 1.72, 1.45]),
    ("100us:64", [0.997, 1.55, 1.25, 1.10]),
    ("20us:64", [0.997, 1.28, 1.17, 1.08]),
];

/// Numbers of threads of create-fsync.
pub const THREADS: [u32; 4] = [1, 4, 16, 64];

/// Ratio of create-fsync with LUC to stock. With several virtual processors stock batches by
/// itself, more or less: there LUC must not be slower.
pub fn create_fsync(host: Host<'_>, disk: &str, threads: u32) -> Option<Target> {
    let column = THREADS.iter().position(|&n| n == threads)?;
    let line = kernel_line(host.kernel)?;
    if host.vcpus > 1 {
        return Some(NEVER_SLOWER);
    }
    let ratio = match line {
        // Its scheduler batches better by itself: LUC must gain on the slow disk alone.
        "7.2" if disk == "4ms:1" => [0.997, 1.75, 1.80, 1.25][column],
        "7.2" => return Some(NEVER_SLOWER),
        _ => CREATE_FSYNC.iter().find(|(name, _)| *name == disk)?.1[column],
    };
    Some(Target::AtLeast(ratio))
}

/// Ratio of writes per second of write-delay with LUC to stock.
pub fn write_delay(host: Host<'_>) -> Option<Target> {
    match kernel_line(host.kernel)? {
        _ if host.vcpus > 1 => Some(NEVER_SLOWER),
        "6.1" => Some(Target::AtLeast(1.15)),
        _ => Some(Target::AtLeast(1.30)),
    }
}

/// Share of writes delayed under LUC.
pub const WRITES_DELAYED: Target = Target::AtMost(0.002);
/// Share of files that wait for two commits under LUC.
pub const TWO_COMMITS: Target = Target::AtMost(0.01);
/// Mean write time of write-burst under LUC at 1000 MIPS, milliseconds.
pub const WRITE_BURST_MS: Target = Target::AtMost(0.06);
/// Share of threads blocked in write-burst under LUC at 1000 MIPS.
pub const BLOCKED: Target = Target::AtMost(0.0);
/// Ratio to stock while observing.
pub const OBSERVE: Target = Target::AtLeast(0.995);
/// Ratio to stock with the module loaded but attached to nothing.
pub const LOADED: Target = Target::AtLeast(0.998);

/// Instructions of the module for an fsync that needs no commit.
pub const FSYNC_CLEAN: Target = Target::AtMost(150.0);
/// Instructions of the module for an fsync with its commit.
pub const FSYNC_COMMITTED: Target = Target::AtMost(600.0);
/// Instructions of the module for a commit without a batch.
pub const COMMIT_ALONE: Target = Target::AtMost(400.0);
/// Instructions of the module for a metadata buffer that is written while nothing is copied.
pub const BUFFER: Target = Target::AtMost(15.0);
/// Instructions of the module for a hooked call on a file system that it is not attached to.
pub const CALL_ELSEWHERE: Target = Target::AtMost(30.0);

/// Instructions of the tracer for each fsync where it only counts.
pub const COUNTED: Target = Target::AtMost(400.0);
/// Instructions of the tracer for each fsync where it records everything.
pub const TRACED: Target = Target::AtMost(1500.0);

/// Median error of the model's fsync times, as a share of those measured.
pub const MODEL_ERROR: Target = Target::AtMost(0.05);
/// Error of the gain that the model predicts for LUC, as a share of the measured gain.
pub const MODEL_GAIN: Target = Target::AtMost(0.15);

/// Ratio of any rate with LUC to stock: never slower, within chance.
pub const NEVER_SLOWER: Target = Target::AtLeast(0.99);
/// Ratio of the p99 of fsync with LUC to stock's.
pub const P99: Target = Target::AtMost(1.05);
/// Ratio of the cell of varmail that gains most.
pub const VARMAIL_BEST: Target = Target::AtLeast(1.23);
/// Ratio of the cell of oltp that gains most.
pub const OLTP_BEST: Target = Target::AtLeast(1.25);

/// Ratio of the burst's file creation rate with LUC to stock at 1000 MIPS.
pub fn burst(threads: u32) -> Option<Target> {
    match threads {
        4 => Some(Target::AtLeast(1.5)),
        16 => Some(Target::AtLeast(1.6)),
        _ => None,
    }
}

/// The line of kernels whose figures hold for this one: flavours share them.
fn kernel_line(kernel: &str) -> Option<&str> {
    let line = kernel.strip_suffix("-full").unwrap_or(kernel);
    let known = every_kernel().iter().any(|name| name == line);
    known.then_some(line)
}

#[cfg(test)]
mod tests {
    use super::{Host, NEVER_SLOWER, Tally, Target};

    fn create_fsync(kernel: &str, disk: &str, threads: u32) -> Option<Target> {
        super::create_fsync(Host { kernel, vcpus: 1 }, disk, threads)
    }

    fn write_delay(kernel: &str, vcpus: u32) -> Option<Target> {
        super::write_delay(Host { kernel, vcpus })
    }

    #[test]
    fn figures_by_kernel_and_disk() {
        assert_eq!(create_fsync("6.1", "4ms:1", 4), Some(Target::AtLeast(1.95)));
        assert_eq!(
            create_fsync("6.12-full", "20us:64", 64),
            Some(Target::AtLeast(1.08))
        );
        assert_eq!(
            create_fsync("7.2", "4ms:1", 64),
            Some(Target::AtLeast(1.25))
        );
        assert_eq!(create_fsync("7.2", "1ms:64", 4), Some(NEVER_SLOWER));
        assert_eq!(create_fsync("6.12", "4ms:1", 5), None);
        assert_eq!(create_fsync("5.10", "4ms:1", 4), None);
        assert_eq!(write_delay("6.1", 1), Some(Target::AtLeast(1.15)));
        assert_eq!(write_delay("6.1", 4), Some(NEVER_SLOWER));
    }

    #[test]
    fn verdicts_are_counted() {
        let mut tally = Tally::default();
        assert_eq!(
            tally.verdict(Some(Target::AtLeast(1.5)), Some(1.5)).text,
            "reached"
        );
        assert_eq!(
            tally.verdict(Some(Target::AtMost(0.1)), Some(0.2)).text,
            "MISSED"
        );
        assert_eq!(tally.verdict(None, Some(1.0)).text, "-");
        assert_eq!(tally.verdict(Some(Target::AtLeast(1.0)), None).text, "-");
        assert_eq!((tally.reached, tally.missed), (1, 1));
    }
}
