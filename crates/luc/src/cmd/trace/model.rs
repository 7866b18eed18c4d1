//! `luc trace model`

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueHint;
use luc_control::Dev;
use luc_model::diagnosis::doubts;
use luc_model::whatif::{CommitTime, Prediction, Rates};
use luc_model::{
    CreationRate, FsyncModel, Observed, Rule, SetSummary, Table, Times, WhatIf, WriteModel,
    fsync_model, what_if, write_model,
};
use luc_trace::Trace;
use luc_words::{count, three, time};
use serde::Serialize;

use super::read::{self, recording, unreadable};
use crate::Context;
use crate::cmd::print_json;
use crate::exit::Failure;
use crate::units::{counted, duration, known, percent, rounded, table};
use crate::verb::Verb;

/// Set the analytical model beside a recording, and say what other rules would give
///
/// Fsync times, file creation rate and write delays as the model has them and as they were
/// measured; then the same threads again under other rules: commits held for tasks about to arrive, no
/// write blocked, a fixed delay, LUC. How far to believe that shows in the first of them, which
/// repeats what was recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace model run.luc\n\
    \x20 luc trace model --delay-us 500 run.luc")]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Look at what began in the last seconds of the recording only
    #[arg(long, value_name = "SECONDS", value_parser = read::seconds)]
    last_s: Option<f64>,
    /// The fixed delay of one of the rules: a commit starts when no sync came for this long
    #[arg(long, value_name = "US", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    delay_us: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    schema: u32,
    spans_lost: u64,
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
    /// Algorithm 4.2; None where writes or their waits were not seen.
    writes: Option<WriteModel>,
    write_delays: Option<WriteDelays>,
    /// None: see `what_if_refused`.
    what_if: Option<Rules>,
    /// Why there is none.
    what_if_refused: Option<String>,
}

/// The cost of commits for all writes, those as well that no sync follows and Algorithm 4.2 so knows
/// nothing of.
#[derive(Serialize)]
struct WriteDelays {
    writes: u64,
    delayed: u64,
    delay_mean_ns: f64,
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
    /// The same of the amended algorithm: with flushes that outlast a commit, and with the line for a
    /// processor where the recording tells how many there were.
    amended_error_median_share: f64,
    amended_error_p90_share: f64,
    right_commit_share: f64,
    amended_right_commit_share: f64,
}

impl Fsync {
    fn of(model: &FsyncModel) -> Self {
        Self {
            measured: Times::of(model.syncs.iter().map(|sync| sync.measured_ns)),
            predicted: Times::of(model.syncs.iter().map(|sync| sync.predicted_ns)),
            unpredicted: model.unpredicted,
            error_median_share: model.error_median_share,
            error_p90_share: model.error_p90_share,
            amended_error_median_share: model.amended_error_median_share,
            amended_error_p90_share: model.amended_error_p90_share,
            right_commit_share: model.right_commit_share,
            amended_right_commit_share: model.amended_right_commit_share,
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
    /// The prediction for LUC, which holds commits only where that pays.
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
        let doubts = doubts(&trace.unseen);
        let (what_if, what_if_refused) = match what_if(trace, &observed, &rules) {
            Ok(_) if !doubts.is_empty() => (None, Some(doubts.join(" "))),
            Ok(answer) => (Some(Rules::of(&answer)), None),
            Err(why) => (None, Some(why.to_string())),
        };
        let writes_seen = !Table::unknown(&trace.unseen).contains(&"writes_delayed");
        let table = observed.table();
        Self {
            device: dev.to_string(),
            duration_ns: observed.duration_ns(),
            threads: table.threads,
            fsync: Fsync::of(&model),
            creation: model.creation,
            writes: writes_seen.then(|| write_model(trace, &observed)),
            write_delays: writes_seen.then_some(WriteDelays {
                writes: table.writes,
                delayed: table.writes_delayed,
                delay_mean_ns: table.write_delay_mean_ns,
            }),
            what_if,
            what_if_refused,
        }
    }
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut trace = recording(&self.file, context)?;
        if let Some(seconds) = self.last_s {
            read::keep_last(&mut trace, seconds, &self.file)?;
        }
        if trace.spans.is_empty() {
            let why = "holds no operation and no commit: the model needs a recording of the tracer";
            return Err(unreadable(&self.file, why.to_owned()));
        }
        read::note_unseen(&trace, &self.file, context)?;
        let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
        let of_dev = |dev: &Dev| FileSystem::of(&trace, *dev, self.delay_us);
        let answer = Answer {
            schema: 1,
            spans_lost: trace.spans_lost,
            damage: trace.damage.clone(),
            file_systems: devs.iter().map(of_dev).collect(),
        };
        if self.json {
            return print_json(context, &answer);
        }
        for (place, file_system) in answer.file_systems.iter().enumerate() {
            if place > 0 {
                writeln!(context.out)?;
            }
            print(file_system, self.delay_us, context)?;
        }
        Ok(())
    }
}

fn whole(rate_per_s: f64) -> String {
    if rate_per_s >= 999.5 {
        return count(rounded(rate_per_s));
    }
    three(rate_per_s)
}

fn print(fs: &FileSystem, delay_us: u32, context: &mut Context) -> Result<(), Failure> {
    let span = duration(fs.duration_ns);
    let threads = counted(fs.threads, "thread", "threads");
    writeln!(context.out, "{}, {span}, {threads}", fs.device)?;
    print_model(fs, context)?;
    print_writers(fs, context)?;
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
            let shown = |times| duration(of(times));
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
    let writes = fs
        .writes
        .as_ref()
        .filter(|it| it.measured_bytes_per_s > 0.0);
    if let Some(writes) = writes {
        let shown = |bytes_per_s: f64| three(bytes_per_s / f64::from(1 << 20));
        rows.push([
            "MiB written/s while writing".to_owned(),
            shown(writes.measured_bytes_per_s),
            shown(writes.predicted_bytes_per_s),
        ]);
    }
    if !rows.is_empty() {
        writeln!(context.out)?;
        table(context.out, ["the model", "measured", "predicted"], &rows)?;
    }
    let it = &fs.fsync;
    let syncs = it.measured.count;
    if syncs > 0 {
        let published = [
            it.error_median_share,
            it.error_p90_share,
            it.right_commit_share,
        ];
        let amended = [
            it.amended_error_median_share,
            it.amended_error_p90_share,
            it.amended_right_commit_share,
        ];
        for (of, shares) in [
            (format!("of {} fsyncs", count(syncs)), published),
            ("amended".to_owned(), amended),
        ] {
            let [median, p90, right] = shares.map(percent);
            writeln!(
                context.out,
                "{of}: median error {median}, 9 of 10 within {p90}; the right commit for {right}"
            )?;
        }
    }
    Ok(())
}

fn print_writers(fs: &FileSystem, context: &mut Context) -> Result<(), Failure> {
    let (Some(writes), Some(delays)) = (&fs.writes, &fs.write_delays) else {
        return Ok(());
    };
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
        return print_unsynced(delays, context);
    }
    writeln!(context.out)?;
    let heads = ["writers", "number", "measured", "predicted", "blocked"];
    Ok(table(context.out, heads, &rows)?)
}

/// Writes that no thread syncs have no place in the algorithm's sets, but may well be delayed.
fn print_unsynced(delays: &WriteDelays, context: &mut Context) -> Result<(), Failure> {
    if delays.writes == 0 {
        return Ok(());
    }
    let waited = if delays.delayed == 0 {
        "none of them waited for a commit".to_owned()
    } else {
        let share = delays.delayed as f64 / delays.writes as f64;
        let waited = count(delays.delayed);
        let mean = time(delays.delay_mean_ns);
        format!(
            "{waited} ({}) waited for a commit, {mean} each",
            percent(share)
        )
    };
    writeln!(
        context.out,
        "\nno table of writers, for no thread synced a file that it wrote; of {}, {waited}",
        counted(delays.writes, "write", "writes")
    )?;
    Ok(())
}

fn print_rules(rules: &Rules, delay_us: u32, context: &mut Context) -> Result<(), Failure> {
    let row = |name: &str, rates: &Rates, gain: Option<f64>| {
        [
            name.to_owned(),
            whole(rates.operations_per_s),
            whole(rates.syncs_per_s),
            whole(rates.writes_per_s),
            duration(rates.sync.p50_ns),
            duration(rates.sync.p99_ns),
            gain.map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2}")),
        ]
    };
    let mut rows = vec![
        row("as it is, measured", &rules.measured, None),
        row("as it is, simulated", &rules.stock.rates, Some(1.0)),
    ];
    let delay = format!("after {} of quiet", duration(i64::from(delay_us) * 1000));
    for (name, prediction) in [
        ("commits held for arrivals", &rules.best_batching),
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
    let (measured, simulated) = (&rules.measured.sync, &rules.stock.rates.sync);
    writeln!(
        context.out,
        "the simulation of what was recorded is off by {} of operations/s, {} of fsync p50 and {} of p99",
        percent(rules.stock_error_share),
        off(simulated.p50_ns, measured.p50_ns),
        off(simulated.p99_ns, measured.p99_ns)
    )?;
    Ok(())
}

/// How far a simulated time is from the measured one; `-` where that is 0.
fn off(simulated_ns: u64, measured_ns: u64) -> String {
    let share = || simulated_ns.abs_diff(measured_ns) as f64 / measured_ns as f64;
    known((measured_ns > 0).then(|| percent(share())))
}
