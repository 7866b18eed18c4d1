//! `luc trace model`

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueHint;
use luc_control::Dev;
use luc_model::whatif::{CommitTime, Prediction, Rates};
use luc_model::write_model::SetSummary;
use luc_model::{
    CreationRate, FsyncModel, Observed, Rule, Times, WhatIf, WriteModel, fsync_model, what_if,
    write_model,
};
use luc_trace::Trace;
use luc_words::{count, three, time};
use serde::Serialize;

use super::read::{recording, unreadable};
use crate::Context;
use crate::cmd::print_json;
use crate::exit::Failure;
use crate::units::{duration, number, table};

/// Arguments of `luc trace model`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Look at what began in the last seconds of the recording only
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    last_s: Option<f64>,
    /// The fixed delay of one of the rules: a commit starts when no sync came for this long
    #[arg(long, value_name = "US", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    delay_us: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err("more than 0 are needed".to_owned())
    }
}

#[derive(Serialize)]
struct Answer {
    schema: u32,
    spans_lost: u64,
    /// Where reading ended early, and why.
    damage: Option<String>,
    file_systems: Vec<FileSystem>,
}

#[derive(Serialize)]
struct FileSystem {
    device: String,
    duration_ns: u64,
    threads: u64,
    /// Algorithm 4.1.
    fsync: Fsync,
    /// Equations 3 and 8.
    creation: CreationRate,
    /// Algorithm 4.2.
    writes: WriteModel,
    /// None: see `what_if_refused`.
    what_if: Option<Rules>,
    /// Why there is none.
    what_if_refused: Option<String>,
}

/// Times of the syncs that waited for a commit.
#[derive(Serialize)]
struct Fsync {
    measured: Times,
    predicted: Times,
    /// Syncs that waited, but to which the algorithm gives no commit.
    unpredicted: u64,
    error_median_share: f64,
    error_p90_share: f64,
    /// The same with the line for a processor behind the commit; equal where the recording does not
    /// tell how many there were.
    in_line_error_median_share: f64,
    in_line_error_p90_share: f64,
    right_commit_share: f64,
}

impl Fsync {
    fn of(model: &FsyncModel) -> Self {
        Self {
            measured: Times::of(model.syncs.iter().map(|sync| sync.measured_ns)),
            predicted: Times::of(model.syncs.iter().map(|sync| sync.predicted_ns)),
            unpredicted: model.unpredicted,
            error_median_share: model.error_median_share,
            error_p90_share: model.error_p90_share,
            in_line_error_median_share: model.in_line_error_median_share,
            in_line_error_p90_share: model.in_line_error_p90_share,
            right_commit_share: model.right_commit_share,
        }
    }
}

/// The recording's threads under other rules.
#[derive(Serialize)]
struct Rules {
    measured: Rates,
    /// As it was recorded, simulated: what the gains are relative to.
    stock: Prediction,
    /// By how much that is off.
    stock_error_share: f64,
    best_batching: Option<Prediction>,
    no_blocked_writes: Option<Prediction>,
    delay: Option<Prediction>,
    /// What LUC would give: it holds commits only where that pays.
    luc: Option<Prediction>,
    commit_time: CommitTime,
}

impl Rules {
    fn of(answer: &WhatIf) -> Self {
        let find = |wanted: fn(Rule) -> bool| {
            let found = answer.predictions.iter().find(|it| wanted(it.rule));
            found.copied()
        };
        Self {
            measured: answer.measured,
            stock: answer.stock,
            stock_error_share: answer.stock_error_share,
            best_batching: find(|rule| rule == Rule::BestBatching),
            no_blocked_writes: find(|rule| rule == Rule::NoBlockedWrites),
            delay: find(|rule| matches!(rule, Rule::Delay { .. })),
            luc: answer.luc().copied(),
            commit_time: answer.commit_time,
        }
    }
}

impl FileSystem {
    fn of(trace: &Trace, dev: Dev, delay_us: u32) -> Self {
        let observed = Observed::of(trace, dev);
        let model = fsync_model(trace, &observed);
        let idle_ns = u64::from(delay_us) * 1000;
        let rules = [
            Rule::BestBatching,
            Rule::NoBlockedWrites,
            Rule::Delay { idle_ns },
            Rule::Luc,
        ];
        let (what_if, what_if_refused) = match what_if(trace, &observed, &rules) {
            Ok(answer) => (Some(Rules::of(&answer)), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Self {
            device: dev.to_string(),
            duration_ns: observed.duration_ns(),
            threads: observed.table().threads,
            fsync: Fsync::of(&model),
            creation: model.creation,
            writes: write_model(trace, &observed),
            what_if,
            what_if_refused,
        }
    }
}

/// Leaves what began in the last `seconds`.
fn keep_last(trace: &mut Trace, seconds: f64) {
    let last_ns = trace.spans.iter().map(|span| span.end_ns).max();
    // A cast of a float saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let from_ns = last_ns
        .unwrap_or(0)
        .saturating_sub((seconds * 1e9).round() as u64);
    trace.spans.retain(|span| span.begin_ns >= from_ns);
}

/// Runs the verb.
pub fn run(args: &Args, context: &mut Context) -> Result<(), Failure> {
    let mut trace = recording(&args.file, context)?;
    if let Some(seconds) = args.last_s {
        keep_last(&mut trace, seconds);
    }
    if trace.spans.is_empty() {
        let why = "holds no operation and no commit: the model needs a recording of the tracer";
        return Err(unreadable(&args.file, why.to_owned()));
    }
    let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
    let of_dev = |dev: &Dev| FileSystem::of(&trace, *dev, args.delay_us);
    let answer = Answer {
        schema: 1,
        spans_lost: trace.spans_lost,
        damage: trace.damage.clone(),
        file_systems: devs.iter().map(of_dev).collect(),
    };
    if args.json {
        return print_json(context, &answer);
    }
    for (place, file_system) in answer.file_systems.iter().enumerate() {
        if place > 0 {
            writeln!(context.out)?;
        }
        print(file_system, args.delay_us, context)?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn whole(rate_per_s: f64) -> String {
    if rate_per_s >= 999.5 {
        // A cast of a float saturates.
        #[allow(clippy::cast_possible_truncation)]
        return count(rate_per_s.round() as i64);
    }
    three(rate_per_s)
}

fn print(fs: &FileSystem, delay_us: u32, context: &mut Context) -> Result<(), Failure> {
    let span = duration(number(fs.duration_ns));
    writeln!(context.out, "{}, {span}, {} threads", fs.device, fs.threads)?;
    print_model(fs, context)?;
    print_writers(&fs.writes, context)?;
    match (&fs.what_if, &fs.what_if_refused) {
        (Some(rules), _) => print_rules(rules, delay_us, context),
        (None, Some(why)) => Ok(writeln!(context.out, "\nno what-if: {why}")?),
        (None, None) => Ok(()),
    }
}

fn print_model(fs: &FileSystem, context: &mut Context) -> Result<(), Failure> {
    let mut rows = Vec::new();
    if fs.fsync.measured.count > 0 {
        let times = |name: &str, of: fn(&Times) -> u64| {
            let shown = |times| duration(number(of(times)));
            let (measured, predicted) = (shown(&fs.fsync.measured), shown(&fs.fsync.predicted));
            [name.to_owned(), measured, predicted]
        };
        rows.push(times("fsync time, p50", |times| times.p50_ns));
        rows.push(times("fsync time, p99", |times| times.p99_ns));
    }
    if fs.creation.threads > 0 {
        let CreationRate {
            measured_per_s,
            predicted_per_s,
            ..
        } = fs.creation;
        let name = "files created/s".to_owned();
        rows.push([name, whole(measured_per_s), whole(predicted_per_s)]);
    }
    if fs.writes.measured_bytes_per_s > 0.0 {
        let shown = |bytes_per_s: f64| three(bytes_per_s / f64::from(1 << 20));
        rows.push([
            "MiB written/s while writing".to_owned(),
            shown(fs.writes.measured_bytes_per_s),
            shown(fs.writes.predicted_bytes_per_s),
        ]);
    }
    if !rows.is_empty() {
        writeln!(context.out)?;
        table(context.out, ["the model", "measured", "predicted"], &rows)?;
    }
    if fs.fsync.measured.count > 0 {
        let Fsync {
            error_median_share,
            error_p90_share,
            in_line_error_median_share,
            in_line_error_p90_share,
            right_commit_share,
            ..
        } = fs.fsync;
        writeln!(
            context.out,
            "of {} fsyncs: median error {}, 9 of 10 within {}; the right commit for {}",
            count(fs.fsync.measured.count),
            percent(error_median_share),
            percent(error_p90_share),
            percent(right_commit_share)
        )?;
        writeln!(
            context.out,
            "with the line for a processor: median error {}, 9 of 10 within {}",
            percent(in_line_error_median_share),
            percent(in_line_error_p90_share)
        )?;
    }
    Ok(())
}

fn print_writers(writes: &WriteModel, context: &mut Context) -> Result<(), Failure> {
    let row = |name: &str, set: &SetSummary| {
        [
            name.to_owned(),
            count(set.writers),
            time(set.measured_mean_ns),
            time(set.predicted_mean_ns),
            time(set.blocked_mean_ns),
        ]
    };
    let rows = [
        row("X, not affected", &writes.x),
        row("Y, fully blocked", &writes.y),
        row("Z, partially blocked", &writes.z),
    ];
    if writes.x.writers + writes.y.writers + writes.z.writers == 0 {
        return Ok(());
    }
    writeln!(context.out)?;
    let heads = ["writers", "number", "measured", "predicted", "blocked"];
    Ok(table(context.out, heads, &rows)?)
}

fn print_rules(rules: &Rules, delay_us: u32, context: &mut Context) -> Result<(), Failure> {
    let row = |name: &str, rates: &Rates, gain: Option<f64>| {
        [
            name.to_owned(),
            whole(rates.operations_per_s),
            whole(rates.syncs_per_s),
            whole(rates.writes_per_s),
            duration(number(rates.sync.p50_ns)),
            duration(number(rates.sync.p99_ns)),
            gain.map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2}")),
        ]
    };
    let mut rows = vec![
        row("as it is, measured", &rules.measured, None),
        row("as it is, simulated", &rules.stock.rates, Some(1.0)),
    ];
    let delay = format!("after {} of quiet", duration(i64::from(delay_us) * 1000));
    for (name, prediction) in [
        ("commits held for who comes", &rules.best_batching),
        ("no write blocked", &rules.no_blocked_writes),
        (&delay, &rules.delay),
        ("LUC", &rules.luc),
    ] {
        if let Some(it) = prediction {
            rows.push(row(name, &it.rates, Some(it.gain)));
        }
    }
    writeln!(context.out)?;
    let heads = [
        "what if",
        "operations/s",
        "syncs/s",
        "writes/s",
        "fsync p50",
        "p99",
        "gain",
    ];
    table(context.out, heads, &rows)?;
    writeln!(
        context.out,
        "the simulation of what was recorded is off by {}",
        percent(rules.stock_error_share)
    )?;
    Ok(())
}
