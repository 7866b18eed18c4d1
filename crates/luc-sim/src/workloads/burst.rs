//! `luc bench burst`.

use luc_workload::{Burst, BurstResult, Outcome};

use super::{Plan, file_creation_rate_per_s, latency, programs};
use crate::measured::{FileTime, Measured};
use crate::program::{Op, Program, Went};
use crate::random;

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;
/// Files of one directory, as the benchmark's burst after burst.
const FILES_PER_DIR: u32 = 64;

pub fn plan(args: &Burst) -> Plan {
    let period_ns = u64::from(args.period_ms) * NS_PER_MS;
    let from_ns = period_ns * u64::from(1 + args.warmup_bursts);
    let until_ns = from_ns + period_ns * u64::from(args.bursts);
    let mut measured = Measured::new(args.threads as usize, from_ns, until_ns);
    measured.keep_file_times();
    let program = |number| Thread {
        args: args.clone(),
        number,
        burst: 0,
        step: Step::Sleep,
    };
    let programs = programs(args.threads, program);
    let args = args.clone();
    Plan {
        programs,
        measured,
        begin_spread_ns: 0,
        outcome: Box::new(move |measured| Outcome::Burst(result(&args, measured))),
    }
}

#[derive(Clone, Copy)]
enum Step {
    Sleep,
    Create,
    Fsync,
    Close,
}

struct Thread {
    args: Burst,
    number: u32,
    burst: u32,
    step: Step,
}

impl Thread {
    /// A random moment within the spread after the burst's own.
    fn moment_ns(&self) -> u64 {
        let period_ns = u64::from(self.args.period_ms) * NS_PER_MS;
        let spread_ns = u64::from(self.args.spread_us) * NS_PER_US;
        let purpose = u64::from(self.number) << 32 | u64::from(self.burst);
        let within_ns = random::below(self.args.seed, purpose, spread_ns);
        period_ns * u64::from(1 + self.burst) + within_ns
    }
}

impl Program for Thread {
    fn next(&mut self, _went: &Went) -> Op {
        let (op, step) = match self.step {
            Step::Sleep if self.burst >= self.args.warmup_bursts + self.args.bursts => {
                (Op::End, Step::Sleep)
            }
            Step::Sleep => (Op::SleepUntil(self.moment_ns()), Step::Create),
            Step::Create => {
                let dir = self.burst * self.args.threads / FILES_PER_DIR;
                (Op::Create { dir }, Step::Fsync)
            }
            Step::Fsync => (Op::Fsync, Step::Close),
            Step::Close => {
                self.burst += 1;
                (Op::Close, Step::Sleep)
            }
        };
        self.step = step;
        op
    }
}

fn result(args: &Burst, measured: &Measured) -> BurstResult {
    let period_ns = u64::from(args.period_ms) * NS_PER_MS;
    let mut bursts: Vec<Vec<FileTime>> = vec![Vec::new(); args.bursts as usize];
    for file in &measured.file_times {
        let burst = file.begun_ns.saturating_sub(measured.from_ns) / period_ns.max(1);
        if let Some(files) = usize::try_from(burst)
            .ok()
            .and_then(|at| bursts.get_mut(at))
        {
            files.push(*file);
        }
    }
    bursts.retain(|files| !files.is_empty());
    let rates: Vec<f64> = bursts
        .iter()
        .map(|files| file_creation_rate_per_s(files.iter().map(|file| file.took_ns() as f64)))
        .collect();
    let mut fastest: Vec<u64> = bursts
        .iter()
        .filter_map(|files| files.iter().map(|file| file.sync_ns).min())
        .collect();
    fastest.sort_unstable();
    let median_ns = fastest.get(fastest.len() / 2).copied().unwrap_or(0) as f64;
    let commit_ns = args.commit_ms.map_or(median_ns, |ms| ms * NS_PER_MS as f64);
    let busy_ns: u64 = bursts
        .iter()
        .map(|files| {
            let begin_ns = files.iter().map(|file| file.begun_ns).min().unwrap_or(0);
            let end_ns = files.iter().map(|file| file.ended_ns).max().unwrap_or(0);
            end_ns - begin_ns
        })
        .sum();
    let all = || bursts.iter().flatten();
    let count = all().count() as u64;
    let two = all()
        .filter(|file| file.took_ns() as f64 > 1.5 * commit_ns)
        .count();
    let (rate, rate_sd) = mean_and_deviation(&rates);
    BurstResult {
        args: args.clone(),
        bursts: bursts.len() as u64,
        busy_ns,
        files_per_busy_s: count as f64 * 1e9 / busy_ns.max(1) as f64,
        file_creation_rate_per_s: rate,
        file_creation_rate_sd_per_s: rate_sd,
        file: latency(all().map(FileTime::took_ns).collect()),
        fsync: latency(all().map(|file| file.sync_ns).collect()),
        commit_ns,
        two_commits_share: two as f64 / count.max(1) as f64,
    }
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
