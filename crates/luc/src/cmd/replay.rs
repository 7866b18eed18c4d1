//! `luc replay`

use std::io::BufRead;
use std::path::PathBuf;

use luc_control::replay::{Replay, Summary};
use luc_trace::{Entry, Reader};
use serde_json::json;

use luc_cli::recordings;
use luc_cli::units::{count, counted};
use luc_cli::{Code, Context, Failure, Verb};

/// Replay recorded decisions and compare them bit for bit
///
/// Feeds each recorded decision's inputs to the controller of this program, the same code as in the
/// kernel, and compares the outputs. Then checks that each decision starts from the state that the
/// previous decision left.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc replay run.luc\n\
    \x20 luc replay --json run.luc")]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let shown = self.file.display().to_string();
        let unreadable = |why: String| recordings::unreadable(&self.file, why);
        let source = recordings::open(&self.file)?;
        let mut reader = Reader::new(source).map_err(|error| unreadable(error.to_string()))?;
        let mut replay = Replay::default();
        for entry in reader.by_ref() {
            let entry = entry.map_err(|error| unreadable(error.to_string()))?;
            if let Entry::Line(record) = entry
                && let Some(item) = record.to_replay()
            {
                replay.feed(&item);
            }
        }
        let summary = replay.finish();
        if self.json {
            print_json(context, &reader, &summary)?;
        } else if summary.records > 0 {
            print(context, &shown, &reader, &summary)?;
        }
        if summary.passed() {
            return Ok(());
        }
        if summary.records == 0 {
            return Err(unreadable(
                "holds no decision; record one with `luc trace record` while LUC is on".into(),
            ));
        }
        let first = summary.first_mismatch.map(|found| found.to_string());
        let first = first.or_else(|| summary.first_break.map(|found| found.to_string()));
        let line = format!(
            "replay of {shown}: {}; the controller of this build is not the one that recorded it, or it has a bug",
            first.unwrap_or_default()
        );
        Err(Failure::Coded(Code::ReplayMismatch, line))
    }
}

fn print<R: BufRead>(
    context: &mut Context,
    shown: &str,
    reader: &Reader<R>,
    summary: &Summary,
) -> Result<(), Failure> {
    let header = reader.header().map(|header| &header.pairs);
    let origin: Vec<_> = header
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    let origin = if origin.is_empty() {
        "no header".to_owned()
    } else {
        origin.join(", ")
    };
    let [open, poll, close, copyout] = summary.by_step.map(count);
    let out = &mut context.out;
    writeln!(out, "{shown} ({origin})")?;
    writeln!(
        out,
        "  decisions  {} of {}: open {open}, poll {poll}, close {close}, copy-out {copyout}",
        count(summary.records),
        counted(summary.devices, "file system", "file systems"),
    )?;
    writeln!(
        out,
        "  repeated   {} the same, {} different",
        count(summary.matching),
        count(summary.mismatching)
    )?;
    writeln!(
        out,
        "  chained    {} follow from the previous one, {} do not; {}, {}",
        count(summary.chain_checked),
        count(summary.chain_breaks),
        counted(summary.restarts, "start", "starts"),
        counted(summary.knob_changes, "knob change", "knob changes"),
    )?;
    writeln!(
        out,
        "  lost       {} in {}",
        counted(summary.lost_events, "record", "records"),
        counted(summary.losses, "place", "places")
    )?;
    Ok(())
}

fn print_json<R: BufRead>(
    context: &mut Context,
    reader: &Reader<R>,
    summary: &Summary,
) -> Result<(), Failure> {
    let [open, poll, close, copyout] = summary.by_step;
    let report = json!({
        "schema": 1,
        "passed": summary.passed(),
        "header": reader.header().map(|header| &header.pairs),
        "records": summary.records,
        "by_step": {"open": open, "poll": poll, "close": close, "copyout": copyout},
        "devices": summary.devices,
        "matching": summary.matching,
        "mismatching": summary.mismatching,
        "first_mismatch": summary.first_mismatch.as_ref().map(ToString::to_string),
        "chain_checked": summary.chain_checked,
        "chain_breaks": summary.chain_breaks,
        "first_break": summary.first_break.as_ref().map(ToString::to_string),
        "restarts": summary.restarts,
        "knob_changes": summary.knob_changes,
        "losses": summary.losses,
        "lost_events": summary.lost_events,
    });
    context.print_json(&report)
}
