//! Workload `burst`: fsyncs that arrive within a fixed time of each other.
//!
//! Requests from outside do not come closer together on a faster processor. Each burst has a fixed
//! moment; each thread wakes at its own random moment within the spread after it, creates a file,
//! fsyncs and closes it, and sleeps until the next burst. A thread that is still busy when its next
//! moment passes begins at once.
//!
//! A file counts as having waited for two commits if the time between its create and its close is
//! longer than 1.5 commits. The whole time counts because a thread that arrives during a commit
//! waits for it either in create, whose metadata the commit is writing, or in fsync. The user gives
//! the duration of one commit; by default it is the median, over the bursts, of each burst's
//! fastest fsync: the first thread of a burst finds no commit running and waits for exactly one.
//! With a spread of more than half a commit the two cases overlap, and the share says less.

use std::fmt;
use std::time::Duration;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};

use super::bursts::{Bursts, busy_ns};
use crate::args::{Common, duration_s, threads};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::{NS_PER_MS, now_ns};
use crate::dir::{Dir, Name};
use crate::rates::{file_creation_rate_per_s, per_second, share};
use crate::text::{Lines, latency, percent, time};
use crate::{Latency, Result, Stop};
use luc_base::summary;

#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench burst /srv/scratch\n\
    \x20 luc-lab bench burst --threads 16 --spread-us 400 /srv/scratch")]
pub struct Burst {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of threads
    #[arg(long, short = 't', value_name = "N", default_value_t = 4, value_parser = threads())]
    pub threads: u32,
    /// Time from one burst to the next, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60, value_parser = value_parser!(u32).range(1..=3_600_000))]
    pub period_ms: u32,
    /// Each thread wakes at a random moment within this time, microseconds
    #[arg(long, value_name = "US", default_value_t = 800, value_parser = value_parser!(u32).range(..=3_600_000_000))]
    pub spread_us: u32,
    /// Bursts to measure
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub bursts: u32,
    /// Bursts before measuring
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(..=1_000_000))]
    pub warmup_bursts: u32,
    /// Seed of the random moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Duration of one journal commit, milliseconds [default: the median over the bursts of each
    /// burst's fastest fsync, which met no other commit]
    #[arg(long, value_name = "MS", value_parser = duration_s)]
    pub commit_ms: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstResult {
    pub args: Burst,
    pub bursts: u64,
    /// Total time with a burst under way, from its first create to its last close, ns.
    #[serde(default)]
    pub busy_ns: u64,
    /// Files per second of busy time.
    #[serde(default)]
    pub files_per_busy_s: f64,
    /// Equation 3 with the times from create to close, mean over the bursts, files per second.
    pub file_creation_rate_per_s: f64,
    /// Standard deviation of that rate over the bursts, files per second.
    pub file_creation_rate_sd_per_s: f64,
    /// Time from create to close.
    pub file: Latency,
    pub fsync: Latency,
    /// Duration of one commit, nanoseconds; the next field is relative to it.
    pub commit_ns: f64,
    /// Share of the files that took longer than 1.5 commits from create to close, 0 to 1.
    pub two_commits_share: f64,
}

/// One thread's part of one burst.
#[derive(Clone, Copy, Debug)]
pub struct BurstTurn {
    /// The moment before the create.
    pub begin_ns: u64,
    /// Time from there to the end of the close.
    pub file_ns: u64,
    pub fsync_ns: u64,
}

impl Burst {
    pub fn bursts(&self) -> Bursts {
        Bursts {
            threads: self.threads,
            period_ms: self.period_ms,
            spread_us: self.spread_us,
            measured: self.bursts,
            warmup: self.warmup_bursts,
            seed: self.seed,
        }
    }
}

impl Benchmark for Burst {
    type Found = BurstResult;

    fn length(&self) -> Option<Duration> {
        Some(self.bursts().length())
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let turn = |dir: &Dir, name: &mut Name, burst: u32| {
            let name = name.set(u64::from(burst));
            let begin_ns = now_ns();
            let file = dir.create(name)?;
            let created_ns = now_ns();
            dir.fsync(&file, name)?;
            let synced_ns = now_ns();
            drop(file);
            Ok(BurstTurn {
                begin_ns,
                file_ns: now_ns() - begin_ns,
                fsync_ns: synced_ns - created_ns,
            })
        };
        let begin = |_: &Dir| Ok(Name::new());
        let measured = self.bursts().run(&self.common, stop, begin, turn)?;
        Ok(measured.map(|turns| BurstResult::new(self, &turns)))
    }
}

impl Found for BurstResult {
    fn title(&self) -> String {
        let (threads, spread_us) = (self.args.threads, self.args.spread_us);
        let period_ms = self.args.period_ms;
        format!("burst, {threads} threads within {spread_us} us every {period_ms} ms")
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let files = self.file.count;
        lines.busy(files, self.busy_ns, self.files_per_busy_s, "create")?;
        lines.line("bursts", self.bursts)?;
        // This rate leaves out the pauses between the bursts.
        lines.file_creation_rate(self.file_creation_rate_per_s)?;
        lines.line("time per file", latency(&self.file))?;
        lines.line("sync delay", latency(&self.fsync))?;
        let (two, commit) = (percent(self.two_commits_share), time(self.commit_ns));
        let two = format!("{two} of the files took longer than 1.5 commits of {commit}");
        lines.line("waited for two", two)
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            bad_share: Some(self.two_commits_share),
            ..Figures::rate(self.file_creation_rate_per_s, &self.fsync)
        }
    }
}

impl BurstResult {
    /// Computes the figures; `bursts` holds the turns of all threads, burst by burst.
    pub fn new(args: &Burst, bursts: &[Vec<BurstTurn>]) -> Self {
        let rates: Vec<f64> = bursts
            .iter()
            .map(|burst| file_creation_rate_per_s(burst.iter().map(|turn| turn.file_ns as f64)))
            .collect();
        let (rate, rate_sd) = mean_and_deviation(&rates);
        let mut fastest: Vec<u64> = bursts
            .iter()
            .filter_map(|burst| burst.iter().map(|turn| turn.fsync_ns).min())
            .collect();
        let commit_ns = args.commit_ms.map_or_else(
            || summary(&mut fastest).p50_ns as f64,
            |ms| ms * NS_PER_MS as f64,
        );
        let turns = || bursts.iter().flatten();
        let two = turns()
            .filter(|turn| turn.file_ns as f64 > 1.5 * commit_ns)
            .count() as u64;
        let bounds = |turn: &BurstTurn| (turn.begin_ns, turn.begin_ns + turn.file_ns);
        let busy_ns = busy_ns(bursts.iter().map(|burst| burst.iter().map(bounds)));
        let mut file_ns: Vec<u64> = turns().map(|turn| turn.file_ns).collect();
        let mut fsync_ns: Vec<u64> = turns().map(|turn| turn.fsync_ns).collect();
        Self {
            args: args.clone(),
            bursts: bursts.len() as u64,
            busy_ns,
            files_per_busy_s: per_second(fsync_ns.len() as u64, busy_ns),
            file_creation_rate_per_s: rate,
            file_creation_rate_sd_per_s: rate_sd,
            file: summary(&mut file_ns),
            fsync: summary(&mut fsync_ns),
            commit_ns,
            two_commits_share: share(two, fsync_ns.len() as u64),
        }
    }
}

/// Mean and sample standard deviation; 0 if undefined.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let deviation = match values.len() {
        1 => 0.0,
        n => (squares / (n - 1) as f64).sqrt(),
    };
    (mean, deviation)
}

#[cfg(test)]
mod tests {
    use crate::{Burst, BurstResult, BurstTurn, Common};

    fn args(commit_ms: Option<f64>) -> Burst {
        Burst {
            common: Common::default(),
            threads: 2,
            period_ms: 60,
            spread_us: 800,
            bursts: 2,
            warmup_bursts: 0,
            seed: 1,
            commit_ms,
        }
    }

    #[test]
    fn rate_and_share_by_hand() {
        let turn = |at_ms: u64, ms: u64| BurstTurn {
            begin_ns: at_ms * 1_000_000,
            file_ns: ms * 1_000_000,
            fsync_ns: ms * 1_000_000,
        };
        let bursts = [
            vec![turn(5, 10), turn(0, 20)],
            vec![turn(60, 10), turn(65, 10)],
        ];
        let result = BurstResult::new(&args(None), &bursts);
        // 4 / (10 ms + 20 ms) = 133.3 per second, 4 / (10 ms + 10 ms) = 200 per second.
        assert!((result.file_creation_rate_per_s - 166.667).abs() < 1e-3);
        assert!((result.file_creation_rate_sd_per_s - 47.140).abs() < 1e-3);
        assert!((result.commit_ns - 1e7).abs() < 1e-9);
        assert!((result.two_commits_share - 0.25).abs() < 1e-9);
        // 20 ms and 15 ms, without the pause between them.
        assert_eq!(result.busy_ns, 35_000_000);
        assert!((result.files_per_busy_s - 4.0 / 0.035).abs() < 1e-6);
        let given = BurstResult::new(&args(Some(5.0)), &bursts);
        assert!((given.two_commits_share - 1.0).abs() < 1e-9);
        assert_eq!(BurstResult::new(&args(None), &[]).bursts, 0);
    }
}
