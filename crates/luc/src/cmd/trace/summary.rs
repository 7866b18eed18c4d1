//! `luc trace summary`

use std::io::Write;
use std::path::PathBuf;

use clap::ValueHint;
use luc_base::Latency;
use luc_model::ObservedTable;
use luc_model::blame::Waiter;
use luc_model::summary::{FileSystem, SYNCS, Summary};
use luc_trace::{Sight, SpanKind, Unseen};

use super::{place, slow};
use crate::cmd::hide;
use luc_cli::recordings::{self, recording};
use luc_cli::units::{counted, duration, known, many, percent};
use luc_cli::{Context, Failure, Verb};

/// Summarise a recording: operations, commits and waits
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace summary run.luc\n\
    \x20 luc trace summary --last-s 10 --json run.luc")]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Use only events that began in the last SECONDS of the recording
    #[arg(long, value_name = "SECONDS", value_parser = recordings::seconds)]
    last_s: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const PROCESSES_MAX: usize = 5;

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut trace = recording(&self.file, context)?;
        if let Some(seconds) = self.last_s {
            recordings::keep_last(&mut trace, seconds, &self.file)?;
        }
        recordings::note_unseen(&trace, &self.file, context)?;
        let summary = Summary::from_trace(&trace);
        if self.json {
            let mut value = serde_json::to_value(&summary).map_err(anyhow::Error::from)?;
            let shown = value["file_systems"].as_array_mut().into_iter().flatten();
            for (shown, file_system) in shown.zip(&summary.file_systems) {
                hide(
                    &mut shown["table"],
                    &file_system.table.absent(&trace.unseen),
                );
                if file_system.fsync_model.syncs_predicted == 0 {
                    let shares = [
                        "error_median_share",
                        "error_p90_share",
                        "right_commit_share",
                    ];
                    hide(&mut shown["fsync_model"], &shares);
                }
            }
            return context.print_json(&value);
        }
        for file_system in &summary.file_systems {
            print(file_system, &trace.unseen, context)?;
        }
        if !trace.lines.is_empty() {
            let lines = counted(trace.lines.len() as u64, "record", "records");
            writeln!(
                context.out,
                "LUC's module: {lines}; `luc replay` recomputes its decisions"
            )?;
        }
        Ok(())
    }
}

fn ns(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "shown with three digits")]
    duration(value as i64)
}

fn times(times: &Latency) -> String {
    if times.count == 0 {
        return "none".into();
    }
    format!(
        "mean {}, p50 {}, p99 {}, max {}",
        ns(times.mean_ns),
        duration(times.p50_ns),
        duration(times.p99_ns),
        duration(times.max_ns)
    )
}

fn print(file_system: &FileSystem, unseen: &Unseen, context: &mut Context) -> Result<(), Failure> {
    let FileSystem {
        device,
        mount_point,
        counts,
        time_ns,
        table,
        fsync_model,
        lasting,
        untimed,
        ..
    } = file_system;
    let count = |kind: SpanKind| counts.get(kind.text()).copied().flatten();
    let unknown = &table.absent(unseen)[..];
    let if_known = |field: &str, text: String| known((!unknown.contains(&field)).then_some(text));
    let out = &mut context.out;
    let place = place(mount_point.as_deref(), device);
    let seconds = duration(table.duration_ns);
    let threads = counted(table.threads, "thread", "threads");
    let threads = if unknown.contains(&"threads") {
        format!("at least {threads}")
    } else {
        threads
    };
    writeln!(out, "{place}, {seconds}, {threads}")?;
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
        if_known(
            "sync_events_per_commit",
            format!("{:.2}", table.sync_events_per_commit)
        ),
        times(&table.commit)
    )?;
    writeln!(out, "  syncs          {}", times(&table.sync))?;
    if !lasting.is_empty() {
        writeln!(
            out,
            "  syncs in part  {} going on at the end, {} begun before; the longest takes at least {}",
            lasting.going_on,
            lasting.ended,
            duration(lasting.longest_ns)
        )?;
    }
    if table.sync.count > 0 {
        print_served(table, unseen, out)?;
    }
    if untimed.count > 0 {
        let waits = counted(untimed.count, "operation waits", "operations wait");
        let most = &untimed.most_by.name;
        writeln!(
            out,
            "  other waits    {waits} for a commit without a sync, most by {most}; their time is -"
        )?;
    }
    let flush = if_known("flush_mean_ns", ns(table.flush_mean_ns));
    writeln!(out, "  data flushes   mean {flush}")?;
    print_writes(table, unknown, out)?;
    print_blocks(file_system, out)?;
    for (kind, what) in [
        (SpanKind::WaitLocked, "for a locked transaction"),
        (SpanKind::WaitSpace, "for journal space"),
    ] {
        let time = time_ns.get(kind.text()).copied().flatten();
        let waits = known(count(kind).map(|count| count.to_string()));
        let time = known(time.map(duration));
        writeln!(out, "  waits          {waits} {what}, {time}")?;
    }
    let predicts = fsync_model.syncs_predicted > 0 && !unknown.contains(&"sync_delay_mean_ns");
    let error = known(predicts.then(|| percent(fsync_model.error_median_share)));
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
    print_blame(file_system, out)?;
    Ok(slow::print(&file_system.slow, out)?)
}

/// Prints the commits by their askers, and whom the others waited for: by process, and by control
/// group if there are several.
fn print_blame(file_system: &FileSystem, out: &mut dyn Write) -> Result<(), Failure> {
    let groups = file_system.control_groups.as_deref();
    let groups = groups.filter(|groups| groups.len() > 1);
    let parties = [("", file_system.waiters.as_deref()), ("by group: ", groups)];
    for (by, waiters) in parties {
        let Some((commits, waiters)) = file_system.commits_by.as_ref().zip(waiters) else {
            continue;
        };
        let askers = commits.askers(waiters);
        if !askers.is_empty() {
            writeln!(out, "  commits caused {by}{}", askers.join(", "))?;
        }
        for sentence in waiters.iter().take(PROCESSES_MAX).flat_map(Waiter::told) {
            writeln!(out, "  waits          {sentence}")?;
        }
    }
    Ok(())
}

/// Prints what syncs waited for. Where data flushes cannot be seen, a sync seems to ask for its
/// commit when it begins: what it waited for is an upper bound.
fn print_served(
    table: &ObservedTable,
    unseen: &Unseen,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let flushes_seen = !unseen.contains(&Sight::Flushes);
    let bound = |text: String| {
        let most = if flushes_seen { "" } else { "at most " };
        known((table.sync_events > 0).then(|| format!("{most}{text}")))
    };
    Ok(writeln!(
        out,
        "                 waited {} before their commit began, and for {} commits; {} needed none, \
         for {} the commit is unknown",
        bound(ns(table.sync_delay_mean_ns)),
        bound(format!("{:.2}", table.commits_waited_mean)),
        known(flushes_seen.then(|| table.syncs_unneeded.to_string())),
        table.syncs_unserved
    )?)
}

/// Prints the blocks for which tasks waited while a commit wrote them.
fn print_blocks(file_system: &FileSystem, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(sharing) = &file_system.sharing else {
        return Ok(());
    };
    if let Some(parts) = sharing.parts() {
        writeln!(out, "  blocks waited for: {parts}")?;
    }
    if let Some(share) = sharing.only_others_share() {
        let share = percent(share);
        writeln!(
            out,
            "                 in {share} of the waits for inode tables, only other files' inodes \
             were in the commit"
        )?;
    }
    Ok(())
}

fn print_writes(
    table: &ObservedTable,
    unknown: &[&str],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if unknown.contains(&"writes") {
        return Ok(writeln!(out, "  writes         -")?);
    }
    if table.writes == 0 {
        return Ok(writeln!(out, "  writes         none")?);
    }
    let delayed = if unknown.contains(&"writes_delayed") {
        "- waited for metadata that a commit wrote".to_owned()
    } else if table.writes_delayed == 0 {
        "none waited for metadata that a commit wrote".to_owned()
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
