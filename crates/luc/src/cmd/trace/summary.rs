//! `luc trace summary`

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::ValueHint;
use luc_control::Dev;
use luc_model::{CreationRate, Observed, Table, Times, fsync_model};
use luc_trace::{SpanKind, Trace};
use serde::Serialize;

use super::read::{self, recording};
use super::slow::Slowness;
use crate::Context;
use crate::cmd::print_json;
use crate::exit::Failure;
use crate::units::{counted, duration, number};

/// Arguments of `luc trace summary`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Look at what began in the last seconds of the recording only
    #[arg(long, value_name = "SECONDS", value_parser = read::seconds)]
    last_s: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary {
    schema: u32,
    header: BTreeMap<String, String>,
    spans_lost: u64,
    lines_lost: u64,
    /// Where reading ended early, and why.
    damage: Option<String>,
    file_systems: Vec<FileSystem>,
}

#[derive(Serialize)]
struct FileSystem {
    device: String,
    /// Spans by kind.
    counts: BTreeMap<&'static str, u64>,
    /// Time in them, ns.
    time_ns: BTreeMap<&'static str, u64>,
    /// Bytes written.
    bytes_written: i64,
    table: Table,
    #[serde(flatten)]
    slow: Slowness,
    fsync_model: Model,
}

/// How far the published algorithm is from what was measured.
#[derive(Serialize)]
struct Model {
    syncs_predicted: usize,
    unpredicted: u64,
    error_median_share: f64,
    error_p90_share: f64,
    right_commit_share: f64,
    creation: CreationRate,
}

impl Model {
    fn of(trace: &Trace, observed: &Observed) -> Self {
        let model = fsync_model(trace, observed);
        Self {
            syncs_predicted: model.syncs.len(),
            unpredicted: model.unpredicted,
            error_median_share: model.error_median_share,
            error_p90_share: model.error_p90_share,
            right_commit_share: model.right_commit_share,
            creation: model.creation,
        }
    }
}

impl FileSystem {
    fn of(trace: &Trace, dev: Dev) -> Self {
        let mut counts = BTreeMap::new();
        let mut time_ns = BTreeMap::new();
        let mut bytes_written = 0_i64;
        for kind in SpanKind::ALL
            .into_iter()
            .filter(|kind| *kind != SpanKind::Task)
        {
            counts.insert(kind.text(), 0);
            time_ns.insert(kind.text(), 0);
        }
        for span in trace.spans.iter().filter(|span| span.dev == dev) {
            *counts.entry(span.kind.text()).or_default() += 1;
            let time: &mut u64 = time_ns.entry(span.kind.text()).or_default();
            *time = time.saturating_add(span.duration_ns());
            bytes_written = bytes_written.saturating_add(span.amount.max(0));
        }
        let observed = Observed::of(trace, dev);
        Self {
            device: dev.to_string(),
            counts,
            time_ns,
            bytes_written,
            table: observed.table(),
            slow: Slowness::of(trace, dev),
            fsync_model: Model::of(trace, &observed),
        }
    }
}

/// Runs the verb.
pub fn run(args: &Args, context: &mut Context) -> Result<(), Failure> {
    let mut trace = recording(&args.file, context)?;
    if let Some(seconds) = args.last_s {
        read::keep_last(&mut trace, seconds, &args.file)?;
    }
    let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
    let summary = Summary {
        schema: 1,
        header: trace.header.pairs.clone(),
        spans_lost: trace.spans_lost,
        lines_lost: trace.lines_lost.events,
        damage: trace.damage.clone(),
        file_systems: devs
            .iter()
            .map(|dev| FileSystem::of(&trace, *dev))
            .collect(),
    };
    if args.json {
        return print_json(context, &summary);
    }
    for file_system in &summary.file_systems {
        print(file_system, context)?;
    }
    if !trace.lines.is_empty() {
        let lines = counted(number(trace.lines.len() as u64), "record", "records");
        writeln!(
            context.out,
            "of LUC's module: {lines}; `luc replay` repeats its decisions"
        )?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn ns(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "shown with three digits")]
    duration(value as i64)
}

fn print(file_system: &FileSystem, context: &mut Context) -> Result<(), Failure> {
    let FileSystem {
        device,
        counts,
        time_ns,
        table,
        fsync_model,
        ..
    } = file_system;
    let many = |kind: SpanKind| counts.get(kind.text()).copied().unwrap_or(0);
    let times = |times: &Times| {
        format!(
            "mean {}, p50 {}, p99 {}, max {}",
            ns(times.mean_ns),
            duration(number(times.p50_ns)),
            duration(number(times.p99_ns)),
            duration(number(times.max_ns))
        )
    };
    let out = &mut context.out;
    let seconds = duration(number(table.duration_ns));
    let threads = counted(number(table.threads), "thread", "threads");
    writeln!(out, "{device}, {seconds}, {threads}")?;
    writeln!(
        out,
        "  operations     {}, {}, {}, {}",
        counted(number(many(SpanKind::Open)), "open", "opens"),
        counted(number(many(SpanKind::Write)), "write", "writes"),
        counted(
            number(many(SpanKind::Fsync) + many(SpanKind::Fdatasync) + many(SpanKind::Sync)),
            "sync",
            "syncs"
        ),
        counted(number(many(SpanKind::Close)), "close", "closes"),
    )?;
    writeln!(
        out,
        "  commits        {}, {} syncs each; {}",
        table.commits,
        format_args!("{:.2}", table.sync_events_per_commit),
        times(&table.commit)
    )?;
    writeln!(out, "  syncs          {}", times(&table.sync))?;
    writeln!(
        out,
        "                 waited {} before their commit began, and through {} commits; {} needed none, of {} the commit is unknown",
        ns(table.sync_delay_mean_ns),
        format_args!("{:.2}", table.commits_waited_mean),
        table.syncs_unneeded,
        table.syncs_unserved
    )?;
    writeln!(out, "  data flushes   mean {}", ns(table.flush_mean_ns))?;
    writeln!(
        out,
        "  writes         {}; {} ({}) waited for metadata that a commit wrote, {} each; {}",
        times(&table.write),
        table.writes_delayed,
        percent(table.writes_delayed_share),
        ns(table.write_delay_mean_ns),
        counted(number(table.threads_blocked), "thread", "threads")
    )?;
    for (kind, what) in [
        (SpanKind::WaitLocked, "for a locked transaction"),
        (SpanKind::WaitSpace, "for journal space"),
    ] {
        let time = time_ns.get(kind.text()).copied().unwrap_or(0);
        writeln!(
            out,
            "  waits          {} {what}, {}",
            many(kind),
            duration(number(time))
        )?;
    }
    writeln!(
        out,
        "  the model      predicts fsyncs with a median error of {}",
        percent(fsync_model.error_median_share)
    )?;
    Ok(file_system.slow.print(out)?)
}
