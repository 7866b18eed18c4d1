//! The figures of a run.

use hdrhistogram::Histogram;
use luc_workload::Latency;

use crate::processors::TaskId;
use crate::program::{Op, Went};

/// Longer times are recorded as this: 2^37 ns, more than two minutes.
const HIGHEST_NS: u64 = 1 << 37;

/// Times of one kind of call.
pub struct Times {
    histogram: Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Times {
    fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, HIGHEST_NS, 3)
                .expect("constant bounds are valid"),
            sum_ns: 0,
            max_ns: 0,
        }
    }

    fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// 0 without a call.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count().max(1) as f64
    }

    /// As `luc bench` reports it.
    pub fn latency(&self) -> Latency {
        if self.count() == 0 {
            return Latency::default();
        }
        Latency {
            count: self.count(),
            mean_ns: self.mean_ns(),
            p50_ns: self.histogram.value_at_quantile(0.5),
            p99_ns: self.histogram.value_at_quantile(0.99),
            max_ns: self.max_ns,
        }
    }
}

/// A task's file, from its create to its close.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTime {
    pub task: TaskId,
    pub begun_ns: u64,
    pub ended_ns: u64,
    pub sync_ns: u64,
}

impl FileTime {
    pub fn took_ns(&self) -> u64 {
        self.ended_ns - self.begun_ns
    }
}

/// The operations that ended within the measurement.
pub struct Measured {
    pub from_ns: u64,
    pub until_ns: u64,
    pub syncs: Times,
    pub writes: Times,
    pub creates: Times,
    pub closes: Times,
    /// Of each task: its files, and the time from their create to their close, summed up.
    pub files: Vec<(u64, u64)>,
    /// Every file, if asked for.
    pub file_times: Vec<FileTime>,
    keeps_file_times: bool,
    /// Writes that took longer than this count as delayed.
    pub delayed_over_ns: u64,
    pub writes_delayed: u64,
    pub commits: u64,
    open: Vec<FileTime>,
    /// When the last operation ended.
    last_ns: u64,
}

impl Measured {
    /// Of operations that end between these times.
    pub fn new(tasks: usize, from_ns: u64, until_ns: u64) -> Self {
        Self {
            from_ns,
            until_ns,
            syncs: Times::new(),
            writes: Times::new(),
            creates: Times::new(),
            closes: Times::new(),
            files: vec![(0, 0); tasks],
            file_times: Vec::new(),
            keeps_file_times: false,
            delayed_over_ns: u64::MAX,
            writes_delayed: 0,
            commits: 0,
            open: vec![FileTime::default(); tasks],
            last_ns: 0,
        }
    }

    /// Every file is kept: of workloads that make few.
    pub fn keep_file_times(&mut self) {
        self.keeps_file_times = true;
    }

    fn holds(&self, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }

    /// An operation has ended.
    pub(crate) fn note(&mut self, task: TaskId, op: &Op, went: &Went) {
        let at = task as usize;
        let holds = self.holds(went.ended_ns);
        self.last_ns = went.ended_ns;
        match op {
            Op::Create { .. } => {
                self.open[at] = FileTime {
                    task,
                    begun_ns: went.begun_ns,
                    ..FileTime::default()
                };
                if holds {
                    self.creates.record(went.took_ns());
                }
            }
            Op::Write { .. } if holds => {
                self.writes.record(went.took_ns());
                self.writes_delayed += u64::from(went.took_ns() > self.delayed_over_ns);
            }
            Op::Fsync => {
                self.open[at].sync_ns = went.took_ns();
                if holds {
                    self.syncs.record(went.took_ns());
                }
            }
            Op::Close if holds => {
                self.closes.record(went.took_ns());
                let file = &mut self.open[at];
                file.ended_ns = went.ended_ns;
                let (count, sum_ns) = &mut self.files[at];
                *count += 1;
                *sum_ns += file.took_ns();
                if self.keeps_file_times {
                    self.file_times.push(*file);
                }
            }
            _ => {}
        }
    }

    /// A commit begins.
    pub(crate) fn commit(&mut self, at_ns: u64) {
        self.commits += u64::from(self.holds(at_ns));
    }

    /// Of each task the mean time of its files, ns.
    pub fn file_mean_ns(&self) -> impl Iterator<Item = f64> {
        let files = self.files.iter();
        files.map(|(count, sum_ns)| *sum_ns as f64 / (*count).max(1) as f64)
    }

    /// Length of the measurement, ns: to its end, or to the last operation.
    pub fn elapsed_ns(&self) -> u64 {
        let until_ns = match self.until_ns {
            u64::MAX => self.last_ns,
            until_ns => until_ns,
        };
        until_ns - self.from_ns
    }

    /// So many of something, by the second.
    pub fn per_s(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.elapsed_ns().max(1) as f64
    }
}
