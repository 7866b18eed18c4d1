//! `luc trace summary`

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use clap::ValueHint;
use luc_control::Dev;
use luc_model::{CreationRate, Observed, Table, Times, fsync_model};
use luc_trace::{Process, Sight, SpanKind, Trace, Unseen};
use serde::{Serialize, Serializer};

use super::read::{self, recording};
use super::slow::Slowness;
use crate::Context;
use crate::cmd::print_json;
use crate::exit::Failure;
use crate::units::{counted, duration, known, many, percent};
use crate::verb::Verb;

/// Say what a recording shows: operations, commits and waits
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace summary run.luc\n\
    \x20 luc trace summary --last-s 10 --json run.luc")]
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
    damage: Option<String>,
    unseen: Vec<&'static str>,
    file_systems: Vec<FileSystem>,
}

#[derive(Serialize)]
struct FileSystem {
    device: String,
    /// Spans by kind; None of a kind that could not be seen.
    counts: BTreeMap<&'static str, Option<u64>>,
    time_ns: BTreeMap<&'static str, Option<u64>>,
    bytes_written: Option<i64>,
    #[serde(serialize_with = "table_json")]
    table: (Table, Unseen),
    #[serde(flatten)]
    slow: Slowness,
    fsync_model: Model,
    /// Processes that synced, by name and control group; those with most syncs first.
    processes: Vec<Syncing>,
}

/// Processes of one name and control group.
#[derive(Serialize)]
struct Syncing {
    name: String,
    cgroup: Option<String>,
    syncs: u64,
}

impl Syncing {
    fn all(trace: &Trace, dev: Dev) -> Vec<Self> {
        let mut by_process: BTreeMap<Process, u64> = BTreeMap::new();
        for sync in trace.on(dev).filter(|span| SYNCS.contains(&span.kind)) {
            let process = trace.process(sync.tgid, sync.pid);
            *by_process.entry(process).or_default() += 1;
        }
        let mut all: Vec<Self> = by_process
            .into_iter()
            .map(|(Process { name, cgroup }, syncs)| Self {
                name,
                cgroup,
                syncs,
            })
            .collect();
        all.sort_by_key(|process| std::cmp::Reverse(process.syncs));
        all
    }
}

/// Operations that wait for the journal.
const SYNCS: [SpanKind; 3] = [SpanKind::Fsync, SpanKind::Fdatasync, SpanKind::Sync];
/// Processes that are printed at most.
const PROCESSES_MAX: usize = 5;

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
        let mut counts: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        let mut time_ns: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        let mut bytes_written = 0_i64;
        for kind in SpanKind::ALL
            .into_iter()
            .filter(|kind| *kind != SpanKind::Task)
        {
            let nothing = Sight::sees(&trace.unseen, kind).then_some(0);
            counts.insert(kind.text(), nothing);
            time_ns.insert(kind.text(), nothing);
        }
        for span in trace.on(dev) {
            if let Some(Some(count)) = counts.get_mut(span.kind.text()) {
                *count += 1;
            }
            if let Some(Some(time)) = time_ns.get_mut(span.kind.text()) {
                *time = time.saturating_add(span.duration_ns());
            }
            bytes_written = bytes_written.saturating_add(span.amount.max(0));
        }
        let observed = Observed::of(trace, dev);
        Self {
            device: dev.to_string(),
            counts,
            time_ns,
            bytes_written: Sight::sees(&trace.unseen, SpanKind::Write).then_some(bytes_written),
            table: (observed.table(), trace.unseen.clone()),
            slow: Slowness::of(trace, dev),
            fsync_model: Model::of(trace, &observed),
            processes: Syncing::all(trace, dev),
        }
    }
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut trace = recording(&self.file, context)?;
        if let Some(seconds) = self.last_s {
            read::keep_last(&mut trace, seconds, &self.file)?;
        }
        read::note_unseen(&trace, &self.file, context)?;
        let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
        let summary = Summary {
            schema: 1,
            header: trace.header.pairs.clone(),
            spans_lost: trace.spans_lost,
            lines_lost: trace.lines_lost.events,
            damage: trace.damage.clone(),
            unseen: trace.unseen.iter().map(|sight| sight.word()).collect(),
            file_systems: devs
                .iter()
                .map(|dev| FileSystem::of(&trace, *dev))
                .collect(),
        };
        if self.json {
            return print_json(context, &summary);
        }
        for file_system in &summary.file_systems {
            print(file_system, context)?;
        }
        if !trace.lines.is_empty() {
            let lines = counted(trace.lines.len() as u64, "record", "records");
            writeln!(
                context.out,
                "of LUC's module: {lines}; `luc replay` repeats its decisions"
            )?;
        }
        Ok(())
    }
}

/// The table with null for what is not known.
fn table_json<S: Serializer>((table, unseen): &(Table, Unseen), to: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(table).map_err(serde::ser::Error::custom)?;
    crate::cmd::hide(&mut value, &Table::unknown(unseen));
    value.serialize(to)
}

fn ns(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "shown with three digits")]
    duration(value as i64)
}

fn times(times: &Times) -> String {
    format!(
        "mean {}, p50 {}, p99 {}, max {}",
        ns(times.mean_ns),
        duration(times.p50_ns),
        duration(times.p99_ns),
        duration(times.max_ns)
    )
}

fn print(file_system: &FileSystem, context: &mut Context) -> Result<(), Failure> {
    let FileSystem {
        device,
        counts,
        time_ns,
        table: (table, unseen),
        fsync_model,
        ..
    } = file_system;
    let count = |kind: SpanKind| counts.get(kind.text()).copied().flatten();
    let unknown = Table::unknown(unseen);
    let if_known = |field: &str, text: String| known((!unknown.contains(&field)).then_some(text));
    let out = &mut context.out;
    let seconds = duration(table.duration_ns);
    let threads = counted(table.threads, "thread", "threads");
    let threads = if unknown.contains(&"threads") {
        format!("at least {threads}")
    } else {
        threads
    };
    writeln!(out, "{device}, {seconds}, {threads}")?;
    let syncs: u64 = SYNCS.into_iter().filter_map(count).sum();
    writeln!(
        out,
        "  operations     {}, {}, {}, {}",
        many(count(SpanKind::Open), "open", "opens"),
        many(count(SpanKind::Write), "write", "writes"),
        counted(syncs, "sync", "syncs"),
        many(count(SpanKind::Close), "close", "closes"),
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
        if_known("sync_delay_mean_ns", ns(table.sync_delay_mean_ns)),
        if_known(
            "commits_waited_mean",
            format!("{:.2}", table.commits_waited_mean)
        ),
        if_known("syncs_unneeded", table.syncs_unneeded.to_string()),
        table.syncs_unserved
    )?;
    let flush = if_known("flush_mean_ns", ns(table.flush_mean_ns));
    writeln!(out, "  data flushes   mean {flush}")?;
    print_writes(table, &unknown, out)?;
    for (kind, what) in [
        (SpanKind::WaitLocked, "for a locked transaction"),
        (SpanKind::WaitSpace, "for journal space"),
    ] {
        let time = time_ns.get(kind.text()).copied().flatten();
        let waits = known(count(kind).map(|count| count.to_string()));
        let time = known(time.map(duration));
        writeln!(out, "  waits          {waits} {what}, {time}")?;
    }
    let error = percent(fsync_model.error_median_share);
    let error = if_known("sync_delay_mean_ns", error);
    writeln!(
        out,
        "  the model      predicts fsyncs with a median error of {error}"
    )?;
    for process in file_system.processes.iter().take(PROCESSES_MAX) {
        let cgroup = known(process.cgroup.clone());
        let syncs = counted(process.syncs, "sync", "syncs");
        writeln!(
            out,
            "  process        {}, {syncs}, in {cgroup}",
            process.name
        )?;
    }
    Ok(file_system.slow.print(out)?)
}

fn print_writes(table: &Table, unknown: &[&str], out: &mut dyn Write) -> Result<(), Failure> {
    if unknown.contains(&"write") {
        return Ok(writeln!(out, "  writes         -")?);
    }
    let delayed = if unknown.contains(&"writes_delayed") {
        "- waited for metadata that a commit wrote".to_owned()
    } else {
        format!(
            "{} ({}) waited for metadata that a commit wrote, {} each; {}",
            table.writes_delayed,
            percent(table.writes_delayed_share),
            ns(table.write_delay_mean_ns),
            counted(table.threads_blocked, "thread", "threads")
        )
    };
    let all = times(&table.write);
    Ok(writeln!(out, "  writes         {all}; {delayed}")?)
}
