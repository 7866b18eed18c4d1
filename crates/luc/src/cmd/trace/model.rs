//! `luc trace model`

use std::path::PathBuf;

use clap::ValueHint;
use luc_base::Latency;
use luc_base::words::{count, rate, three, time};
use luc_model::comparison::{Comparison, DELAY_US, FileSystem, Rules, WriteDelays};
use luc_model::foretold::Rates;
use luc_model::{CreationRate, SetSummary};

use super::place;
use luc_cli::recordings::{self, recording, unreadable};
use luc_cli::units::{counted, duration, known, percent, table};
use luc_cli::{Context, Failure, Verb};

/// Compare the analytical model with a recording, and estimate the gain from LUC
///
/// Prints predicted and measured fsync times, file creation rate and write delays. Then simulates
/// the same threads: unchanged, with LUC, with each half of LUC, and with a fixed delay. The
/// unchanged simulation repeats the recording; its error shows how far to trust the others.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace model run.luc\n\
    \x20 luc trace model --delay-us 500 run.luc")]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Use only events that began in the last SECONDS of the recording
    #[arg(long, value_name = "SECONDS", value_parser = recordings::seconds)]
    last_s: Option<f64>,
    /// Fixed delay to simulate, in microseconds, up to 1000000: a commit starts when no sync has
    /// come for this long
    #[arg(long, value_name = "US", default_value_t = DELAY_US, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    delay_us: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut trace = recording(&self.file, context)?;
        if let Some(seconds) = self.last_s {
            recordings::keep_last(&mut trace, seconds, &self.file)?;
        }
        if trace.spans.is_empty() {
            let why = "holds no operation and no commit; the model needs a recording of the tracer";
            return Err(unreadable(&self.file, why.to_owned()));
        }
        recordings::note_unseen(&trace, &self.file, context)?;
        let answer = Comparison::from_trace(&trace, self.delay_us);
        if self.json {
            return context.print_json(&answer);
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

fn print(fs: &FileSystem, delay_us: u32, context: &mut Context) -> Result<(), Failure> {
    let span = duration(fs.duration_ns);
    let threads = counted(fs.threads, "thread", "threads");
    let place = place(fs.mount_point.as_deref(), &fs.device);
    writeln!(context.out, "{place}, {span}, {threads}")?;
    print_model(fs, context)?;
    print_writers(fs, context)?;
    match (&fs.what_if, &fs.what_if_refused) {
        (Some(rules), _) => print_rules(rules, delay_us, context),
        (None, Some(why)) => Ok(writeln!(context.out, "\nno simulation: {why}")?),
        (None, None) => Ok(()),
    }
}

fn print_model(fs: &FileSystem, context: &mut Context) -> Result<(), Failure> {
    let mut rows = Vec::new();
    if fs.fsync.measured.count > 0 {
        let times = |name: &str, of: fn(&Latency) -> u64| {
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
        rows.push([name, rate(measured_per_s), rate(predicted_per_s)]);
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
        let accuracy = &it.accuracy;
        let published = [
            accuracy.error_median_share,
            accuracy.error_p90_share,
            accuracy.right_commit_share,
        ];
        let amended = [
            accuracy.amended_error_median_share,
            accuracy.amended_error_p90_share,
            accuracy.amended_right_commit_share,
        ];
        for (of, shares) in [
            (format!("of {} fsyncs", count(syncs)), published),
            ("amended".to_owned(), amended),
        ] {
            let [median, p90, right] = shares.map(percent);
            writeln!(
                context.out,
                "{of}: median error {median}, 90th percentile {p90}; the right commit for {right}"
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

/// Prints writes that no thread syncs: they are in none of the algorithm's sets, but may be
/// delayed.
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
        "\nno table of writers, because no thread synced a file that it wrote; of {}, {waited}",
        counted(delays.writes, "write", "writes")
    )?;
    Ok(())
}

fn print_rules(rules: &Rules, delay_us: u32, context: &mut Context) -> Result<(), Failure> {
    let row = |name: &str, rates: &Rates, gain: Option<f64>| {
        [
            name.to_owned(),
            rate(rates.operations_per_s),
            rate(rates.syncs_per_s),
            rate(rates.writes_per_s),
            duration(rates.sync.p50_ns),
            duration(rates.sync.p99_ns),
            gain.map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2}")),
        ]
    };
    let mut rows = vec![
        row("as it is, measured", &rules.measured, None),
        row("as it is, simulated", &rules.stock.rates, Some(1.0)),
    ];
    let delay = format!(
        "after {} without a sync",
        duration(i64::from(delay_us) * 1000)
    );
    for (name, prediction) in [
        ("LUC, its batching alone", &rules.best_batching),
        ("LUC, its copies alone", &rules.no_blocked_writes),
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
        "the simulation of the recording is off by {} in operations/s, {} in fsync p50, {} in p99",
        percent(rules.stock_error_share),
        off(simulated.p50_ns, measured.p50_ns),
        off(simulated.p99_ns, measured.p99_ns)
    )?;
    Ok(())
}

/// Returns how far a simulated time is from the measured one; `-` if the measured one is 0.
fn off(simulated_ns: u64, measured_ns: u64) -> String {
    let share = || simulated_ns.abs_diff(measured_ns) as f64 / measured_ns as f64;
    known((measured_ns > 0).then(|| percent(share())))
}
