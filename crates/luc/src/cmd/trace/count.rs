//! `luc trace count`

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueHint;
use luc_bpf::{Counts, Detail, Histogram, TaskCounts, Tracer};
use luc_host::{System, journal};
use luc_trace::{Sight, SpanKind, Unseen};
use serde::Serialize;
use serde_json::{Value, json};

use super::watch::{Watch, attach};
use super::{during, failed, hand_on, place};
use luc_cli::units::{count, counted, known, known_time};
use luc_cli::{Context, Failure, Interrupt, Verb};
use luc_watch::{LossCauses, WatchError};

/// Count syncs, commits and waits, and print sums and quantiles
///
/// The kernel computes the sums, so counting is cheap enough to leave on. Ends as `luc trace
/// record` does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace count --seconds 10\n\
    \x20 luc trace count --on /srv/data --json -- tar xf linux.tar")]
pub struct Args {
    #[command(flatten)]
    watch: Watch,
    /// Seconds to count, 1 to 86400
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// File to write to [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Count while this command runs; its exit status becomes luc's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Time between two checks for the end, unless a signal or the command wakes this thread.
const PAUSE: Duration = Duration::from_millis(500);

/// The counts of a file system.
struct Answer {
    device: String,
    mount_point: Option<String>,
    time: Duration,
    counts: Counts,
    unseen: Unseen,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        let failed_to_trace = |error| {
            let error = WatchError::untraceable(error, system);
            crate::cmd::failed("trace count")(error)
        };
        let tracer = attach(&self.watch, Detail::Sums, 0, context)?.map_err(failed_to_trace)?;
        let begin = Instant::now();
        let status = during(&self.command, self.seconds, PAUSE, context, || Ok(()))?;
        let time = begin.elapsed();
        let lost = tracer.lost().map_err(failed_to_trace)?;
        // Counting needs no ring.
        let causes = LossCauses::from_tracer(&tracer, self.watch.by.kprobes());
        let answers = answers(&tracer, time, system).map_err(failed_to_trace)?;
        let processes = tracer.processes().map_err(failed_to_trace)?;
        drop(tracer);
        tell(self, &answers, &processes, lost, context)?;
        if lost > 0 {
            let lost = counted(lost, "event was", "events were");
            let why = causes.advice("");
            context.note(format_args!("{lost} lost; sums are lower bounds: {why}"))?;
        }
        hand_on(&self.command, status)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::beside(&self.command)
    }
}

fn answers(
    tracer: &Tracer,
    time: Duration,
    system: &dyn System,
) -> Result<Vec<Answer>, luc_bpf::TracerError> {
    let journals = journal::journals(system).unwrap_or_default();
    let mut answers = Vec::new();
    for dev in tracer.devs() {
        let counts = tracer.counts(*dev)?.unwrap_or_default();
        let journal = journals.iter().find(|journal| journal.device == *dev);
        let point = journal.and_then(|journal| journal.mount_points.first());
        answers.push(Answer {
            device: dev.to_string(),
            mount_point: point.map(|point| point.display().to_string()),
            time,
            counts,
            unseen: tracer.attached().unseen(),
        });
    }
    Ok(answers)
}

fn tell(
    args: &Args,
    answers: &[Answer],
    processes: &[(u32, TaskCounts)],
    lost: u64,
    context: &mut Context,
) -> Result<(), Failure> {
    let mut file;
    let out: &mut dyn Write = match &args.output {
        None => &mut *context.out,
        Some(path) => {
            let made = File::create(path).map_err(|error| failed(path.display(), &error))?;
            file = BufWriter::new(made);
            &mut file
        }
    };
    if args.json {
        let unseen = answers.iter().flat_map(|answer| answer.unseen.clone());
        let unseen: Unseen = unseen.collect();
        let report = json!({
            "schema": 1,
            "events_lost": lost,
            "file_systems": answers.iter().map(Answer::to_json).collect::<Vec<_>>(),
            "processes": processes.iter().map(|one| process_json(one, &unseen)).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &report).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        for answer in answers {
            answer.print(out)?;
        }
    }
    Ok(out.flush()?)
}

fn process_json((pid, counts): &(u32, TaskCounts), unseen: &Unseen) -> Value {
    // A sum that lacks a part is unknown.
    let all_waits = !unseen.iter().any(|sight| sight.is_wait());
    json!({
        "pid": pid,
        "syncs": counts.syncs,
        "sync_ns": counts.sync_ns,
        "syncs_late": counts.syncs_late,
        "wait_ns": all_waits.then_some(counts.wait_ns),
    })
}

#[derive(Serialize)]
struct Quantiles {
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
}

impl Quantiles {
    fn from_histogram(hist: &Histogram) -> Self {
        Self {
            p50_ns: hist.quantile_ns(0.5),
            p99_ns: hist.quantile_ns(0.99),
        }
    }
}

impl Answer {
    fn to_json(&self) -> Value {
        let c = &self.counts;
        let waits = SpanKind::WAITS.iter().zip(c.waits.iter().zip(&c.wait_ns));
        let waits: serde_json::Map<String, Value> = waits
            .map(|(kind, (waits, ns))| {
                let known = Sight::sees(&self.unseen, *kind);
                let value =
                    json!({"count": known.then_some(waits), "time_ns": known.then_some(ns)});
                (kind.to_string(), value)
            })
            .collect();
        let unseen: Vec<_> = self.unseen.iter().map(|sight| sight.word()).collect();
        json!({
            "device": self.device,
            "mount_point": self.mount_point,
            "time_s": self.time.as_secs_f64(),
            "syncs": c.syncs,
            "sync_ns": c.sync_ns,
            "syncs_by_commits": c.syncs_by_commits,
            "sync": Quantiles::from_histogram(&c.sync_hist),
            "commits": c.commits,
            "commit_ns": c.commit_ns,
            "syncs_per_commit": c.syncs_per_commit(),
            "waits": waits,
            "wait_buffer": Quantiles::from_histogram(&c.wait_hist),
            "unseen": unseen,
        })
    }

    fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let c = &self.counts;
        let mean = |sum: u64, n: u64| known_time(sum.checked_div(n));
        let per_s = |n: u64| format!("{:.1}/s", n as f64 / self.time.as_secs_f64().max(1e-9));
        let place = place(self.mount_point.as_deref(), &self.device);
        writeln!(out, "{place}, {:.1} s", self.time.as_secs_f64())?;
        let sync = Quantiles::from_histogram(&c.sync_hist);
        writeln!(
            out,
            "  syncs    {} ({}), mean {}, p50 {}, p99 {}",
            count(c.syncs),
            per_s(c.syncs),
            mean(c.sync_ns, c.syncs),
            known_time(sync.p50_ns),
            known_time(sync.p99_ns)
        )?;
        let [none, one, two, more] = c.syncs_by_commits.map(count);
        writeln!(
            out,
            "           waited for no commit {none}, for one {one}, for two {two}, for more {more}"
        )?;
        let each = c.syncs_per_commit();
        writeln!(
            out,
            "  commits  {} ({}), mean {}, {} syncs each",
            count(c.commits),
            per_s(c.commits),
            mean(c.commit_ns, c.commits),
            known(each.map(|each| format!("{each:.2}")))
        )?;
        for (kind, (waits, ns)) in SpanKind::WAITS.iter().zip(c.waits.iter().zip(&c.wait_ns)) {
            let (many, each) = if Sight::sees(&self.unseen, *kind) {
                (count(*waits), mean(*ns, *waits))
            } else {
                ("-".to_owned(), "-".to_owned())
            };
            writeln!(out, "  {:<11} {many}, mean {each}", kind.text())?;
        }
        Ok(())
    }
}
