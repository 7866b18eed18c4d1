//! Workload `scaling`: how many fsyncs that need no commit N processors can make.
//!
//! Such an fsync touches nothing but memory. If N processors make less than N times the calls of
//! one, their calls contend for memory. Each thread has a processor and a file of its own.

use std::ffi::CStr;
use std::fmt;
use std::os::fd::OwnedFd;

use clap::{Args, value_parser};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::args::{Common, duration_s, threads, warmup_s};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::now_ns;
use crate::crew::{self, Shift, Window};
use crate::dir::{Dir, Name};
use crate::marks::{Mark, mark};
use crate::observer::{Observed, Observer};
use crate::rates::per_second;
use crate::scratch::{Scratch, allow_descriptors};
use crate::text::Lines;
use crate::{Result, Stop, WorkloadError};

/// For each number of threads in turn: every thread gets a processor and a file of its own, and
/// fsyncs the file, which is committed, over and over. Such a call waits for no disk, so N threads
/// make N times the calls of one unless they contend for memory.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench scaling /srv/scratch\n\
    \x20 luc-lab bench scaling --threads 1,16 --seconds 5 /srv/scratch")]
pub struct Scaling {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Numbers of threads to measure in turn [default: 1, 2, 4 and so on, up to the number of
    /// processors]
    #[arg(long, short = 't', value_name = "N,...", value_delimiter = ',', value_parser = threads())]
    pub threads: Vec<u32>,
    /// Measure each number of threads for this many seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Measure this many calls per thread instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = value_parser!(u64).range(1..))]
    pub ops: Option<u64>,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.2, value_parser = warmup_s)]
    pub warmup_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingResult {
    pub args: Scaling,
    /// One per number of threads, in the order in which they ran.
    pub steps: Vec<ScalingStep>,
}

/// The figures for one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingStep {
    /// Threads, each on a processor of its own.
    pub threads: u32,
    /// Calls of all threads that ended within the measurement.
    pub calls: u64,
    /// Calls per second of all threads together.
    pub calls_per_s: f64,
    /// Calls per second of one thread, on average.
    pub thread_calls_per_s: f64,
    /// Calls per second of the slowest thread.
    pub thread_calls_per_s_min: f64,
    /// Calls per second of the fastest thread.
    pub thread_calls_per_s_max: f64,
    /// `thread_calls_per_s` relative to one thread alone; `None` if no step with one thread had
    /// run.
    pub to_one_thread: Option<f64>,
}

struct Place<'a> {
    cpu: usize,
    dir: &'a Dir,
    file: OwnedFd,
    number: u64,
}

struct Thread {
    calls: u64,
    ended_ns: u64,
    measured_ns: u64,
}

impl Benchmark for Scaling {
    type Found = ScalingResult;

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let cpus = cpus()?;
        let counts = thread_counts(&self.threads, cpus.len())?;
        let most = counts.iter().copied().max().unwrap_or(1);
        allow_descriptors(most as usize, u64::from(most) + 1)?;
        let meter = self.common.energy.start(stop)?;
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        let dir = scratch.subdir("files")?;
        let observer = Observer::new(&scratch, meter);
        let (mut steps, mut observed, mut elapsed_ns) = (Vec::new(), Vec::new(), 0);
        for threads in counts {
            let cpus = &cpus[..threads as usize];
            let measured = step(self, cpus, (&scratch, &dir), &observer, stop)?;
            elapsed_ns += measured.elapsed_ns;
            observed.push(measured.observed);
            steps.push(measured.found);
            if stop.is_set() {
                break;
            }
        }
        drop(dir);
        scratch.remove()?;
        compare(&mut steps);
        Ok(Measured {
            found: ScalingResult {
                args: self.clone(),
                steps,
            },
            elapsed_ns,
            interrupted: stop.is_set(),
            observed: Observed::sum(observed),
        })
    }
}

impl Found for ScalingResult {
    fn title(&self) -> String {
        "scaling, fsyncs without a commit".to_owned()
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        for step in &self.steps {
            let to_one = step.to_one_thread;
            let to_one = to_one.map_or(String::new(), |ratio| format!(", {ratio:.2} of one alone"));
            let figures = format!(
                "{:.0} calls/s each ({:.0} to {:.0}){to_one}; {:.0} calls/s together",
                step.thread_calls_per_s,
                step.thread_calls_per_s_min,
                step.thread_calls_per_s_max,
                step.calls_per_s
            );
            lines.line(&format!("threads: {}", step.threads), figures)?;
        }
        Ok(())
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            main: self.steps.last().map(|it| it.calls_per_s),
            is_a_rate: true,
            ..Figures::default()
        }
    }

    fn fsyncs(&self) -> u64 {
        self.steps.iter().map(|step| step.calls).sum()
    }
}

/// Returns the processors that this process may run on.
fn cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None)
        .map_err(|e| WorkloadError::call("read the processors of", "this process", e))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Returns the numbers of threads that the user gave; by default 1, 2, 4 and so on, and all
/// processors.
fn thread_counts(asked: &[u32], cpus: usize) -> Result<Vec<u32>> {
    let all = u32::try_from(cpus).unwrap_or(u32::MAX);
    if let Some(&most) = asked.iter().find(|&&threads| threads > all) {
        return Err(WorkloadError::Arguments(format!(
            "each thread needs its own processor: {most} requested, {all} available"
        )));
    }
    if !asked.is_empty() {
        return Ok(asked.to_vec());
    }
    let powers = (0..u32::BITS).map(|shift| 1 << shift);
    let mut counts: Vec<u32> = powers.take_while(|&threads| threads < all).collect();
    counts.push(all);
    Ok(counts)
}

/// Runs a thread on each of these processors.
fn step(
    args: &Scaling,
    cpus: &[usize],
    (scratch, dir): (&Scratch, &Dir),
    observer: &Observer,
    stop: &Stop,
) -> Result<Measured<ScalingStep>> {
    let mut places = Vec::with_capacity(cpus.len());
    for (&cpu, number) in cpus.iter().zip(0..) {
        let mut name = Name::new();
        let name = name.set(number);
        let file = dir.creat(name)?;
        dir.write(&file, name, b"x")?;
        places.push(Place {
            cpu,
            dir,
            file,
            number,
        });
    }
    let seconds = args.ops.is_none().then_some(args.seconds);
    let window = Window::seconds(args.warmup_s, seconds);
    let body = |place: Place<'_>, shift: Shift<'_>| {
        pin(place.cpu)?;
        let mut name = Name::new();
        place.calls(name.set(place.number), shift, args.ops)
    };
    // The crew syncs the file system before the common start, so all files are committed.
    let ran = crew::run(places, window, scratch, observer, stop, body)?;
    mark(Mark::Group);
    let elapsed_ns = ran.elapsed_ns(|thread| thread.ended_ns);
    let step = ScalingStep::from_threads(&ran.results, elapsed_ns);
    Ok(Measured::by(&ran, elapsed_ns, step))
}

fn pin(cpu: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)
        .map_err(|e| WorkloadError::call("choose the processor of", "a thread", e))
}

impl Place<'_> {
    /// Fsyncs the file for the time or the number of calls that the user gave. A call counts if it
    /// began after the warm-up and ended within the measurement.
    fn calls(&self, name: &CStr, shift: Shift<'_>, ops: Option<u64>) -> Result<Thread> {
        let mut calls = 0;
        let mut now = now_ns();
        while now < shift.until_ns && ops != Some(calls) && !shift.is_cut_short() {
            let counts = now >= shift.from_ns;
            if counts {
                mark(Mark::Begin);
            }
            self.dir.fsync(&self.file, name)?;
            if counts {
                mark(Mark::End);
            }
            now = now_ns();
            calls += u64::from(counts && now <= shift.until_ns);
        }
        Ok(Thread {
            calls,
            ended_ns: now,
            measured_ns: now.min(shift.until_ns).saturating_sub(shift.from_ns),
        })
    }
}

impl ScalingStep {
    fn from_threads(threads: &[Thread], elapsed_ns: u64) -> Self {
        let calls = threads.iter().map(|thread| thread.calls).sum();
        let rates = || threads.iter().map(|t| per_second(t.calls, t.measured_ns));
        let calls_per_s = per_second(calls, elapsed_ns);
        Self {
            // There are no more threads than processors.
            threads: u32::try_from(threads.len()).unwrap_or(u32::MAX),
            calls,
            calls_per_s,
            thread_calls_per_s: calls_per_s / threads.len().max(1) as f64,
            thread_calls_per_s_min: rates().reduce(f64::min).unwrap_or(0.0),
            thread_calls_per_s_max: rates().reduce(f64::max).unwrap_or(0.0),
            to_one_thread: None,
        }
    }
}

/// Compares each step with the latest step of one thread up to and including itself.
fn compare(steps: &mut [ScalingStep]) {
    let mut alone = None;
    for step in steps {
        if step.threads == 1 {
            alone = Some(step.thread_calls_per_s);
        }
        let alone = alone.filter(|&rate| rate > 0.0);
        step.to_one_thread = alone.map(|rate| step.thread_calls_per_s / rate);
    }
}

#[cfg(test)]
mod tests {
    use super::{ScalingStep, Thread, compare, thread_counts};

    #[test]
    fn threads_double_up_to_all_processors() {
        let counts = |cpus| thread_counts(&[], cpus).expect("possible");
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(&[3, 1], 3).expect("possible"), [3, 1]);
        let error = thread_counts(&[1, 4], 2).expect_err("too many").to_string();
        assert!(error.contains("4 requested, 2 available"), "{error}");
    }

    #[test]
    fn a_step_is_compared_with_one_thread() {
        let second = 1_000_000_000;
        let thread = |calls| Thread {
            calls,
            ended_ns: second,
            measured_ns: second,
        };
        let mut steps = [
            ScalingStep::from_threads(&[thread(8), thread(4)], second),
            ScalingStep::from_threads(&[thread(20)], 2 * second),
            ScalingStep::from_threads(&[thread(3), thread(2)], second),
        ];
        compare(&mut steps);
        let shown = steps.map(|s| (s.threads, s.thread_calls_per_s, s.to_one_thread));
        assert_eq!(
            shown,
            [(2, 6.0, None), (1, 10.0, Some(1.0)), (2, 2.5, Some(0.25))]
        );
    }
}
