//! `luc trace rank`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use luc_base::words::{count, rate, time};
use luc_control::Dev;
use luc_model::causes::{Component, LeftOut, ROWS_MIN, Sign};
use luc_model::{CauseError, Causes, Observed, Quantities, Throughput, rank};
use luc_trace::{SpanKind, Trace};
use serde::Serialize;

use super::place;
use luc_cli::recordings::{note_unseen, recording, unreadable};
use luc_cli::units::{counted, percent, rounded, table};
use luc_cli::{Context, Failure, Verb};

/// The measure of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Syncs per second
    Syncs,
    /// Writes per second
    Writes,
    /// Bytes written per second
    Bytes,
    /// Files opened with `O_CREAT` per second
    Creations,
}

impl By {
    fn throughput(self) -> Throughput {
        match self {
            Self::Syncs => Throughput::Syncs,
            Self::Writes => Throughput::Writes,
            Self::Bytes => Throughput::Bytes,
            Self::Creations => Throughput::Creations,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Syncs => "syncs/s",
            Self::Writes => "writes/s",
            Self::Bytes => "bytes/s",
            Self::Creations => "creations/s",
        }
    }
}

/// Find measured quantities that correlate with throughput, across recordings
///
/// Each recording is one run of a workload. The runs differ in something: threads, processor speed,
/// disk, LUC off or on. Needs at least three recordings; ten or more give a meaningful answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace rank a.luc b.luc c.luc\n\
    \x20 luc trace rank --device 8:1 --json a.luc b.luc c.luc")]
pub struct Args {
    /// Recordings of `luc trace record`, one for each run
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Measure of throughput
    #[arg(long, value_enum, value_name = "WHAT", default_value = "syncs")]
    by: By,
    /// File system, by its device number in `luc trace summary` [default: the one with the most
    /// syncs and writes in each recording]
    #[arg(long, value_name = "MAJOR:MINOR")]
    device: Option<Dev>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A recording with the quantities to compare.
#[derive(Serialize)]
struct Run {
    file: String,
    device: String,
    mount_point: Option<String>,
    duration_ns: u64,
    spans_lost: u64,
    damage: Option<String>,
    #[serde(flatten)]
    measured: Quantities,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    throughput: &'static str,
    recordings: Vec<Run>,
    ranking: Causes,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        // Checked before anything is read, which may take long.
        if self.files.len() < ROWS_MIN {
            let rows = self.files.len();
            return Err(unranked(&CauseError::TooFewRows { rows }));
        }
        let mut recordings = Vec::new();
        for path in &self.files {
            let trace = recording(path, context)?;
            note_unseen(&trace, path, context)?;
            recordings.push(measured(self, path, &trace, context)?);
        }
        if let Some((one, other)) = equal(&recordings) {
            let why = format!(
                "{} and {} are the same recording; each must be of a run of its own",
                one.file, other.file
            );
            return Err(Failure::usage("trace rank", why));
        }
        let rows: Vec<Quantities> = recordings.iter().map(|run| run.measured.clone()).collect();
        let report = Report {
            schema: 1,
            throughput: self.by.unit(),
            ranking: rank(&rows).map_err(|error| unranked(&error))?,
            recordings,
        };
        if self.json {
            return context.print_json(&report);
        }
        print_runs(&report, context)?;
        print_quantities(&report.recordings, context)?;
        print_causes(&report, context)?;
        print_components(&report, context)
    }
}

/// Finds two recordings that agree to the nanosecond, which two runs never do.
fn equal(runs: &[Run]) -> Option<(&Run, &Run)> {
    runs.iter().enumerate().find_map(|(at, one)| {
        let same = |it: &&Run| it.duration_ns == one.duration_ns && it.measured == one.measured;
        Some((one, runs[at + 1..].iter().find(same)?))
    })
}

fn unranked(error: &CauseError) -> Failure {
    Failure::usage("trace rank", error)
}

fn measured(
    args: &Args,
    path: &Path,
    trace: &Trace,
    context: &mut Context,
) -> Result<Run, Failure> {
    let mut operations: BTreeMap<Dev, usize> = BTreeMap::new();
    for span in &trace.spans {
        let counts = matches!(span.kind, SpanKind::Write | SpanKind::Sync);
        *operations.entry(span.dev).or_default() += usize::from(counts || span.kind.is_file_sync());
    }
    let busiest = operations.iter().max_by_key(|(_, operations)| **operations);
    let dev = match (args.device, busiest) {
        (Some(dev), _) if operations.contains_key(&dev) => dev,
        (None, Some((dev, _))) => *dev,
        (wanted, _) => {
            let of = wanted.map_or_else(String::new, |dev| format!(" of {dev}"));
            let why = format!("holds no span{of}; see `luc trace summary`");
            return Err(unreadable(path, why));
        }
    };
    if args.device.is_none() && operations.len() > 1 {
        context.note(format_args!(
            "{} holds {} file systems; {dev} is compared, --device chooses another",
            path.display(),
            operations.len()
        ))?;
    }
    let observed = Observed::from_trace(trace, dev);
    let Some(throughput_per_s) = args.by.throughput().per_s(trace, &observed) else {
        return Err(unreadable(
            path,
            "has no duration, or the chosen measure of throughput was not seen".into(),
        ));
    };
    Ok(Run {
        file: path.display().to_string(),
        device: dev.to_string(),
        mount_point: trace.header.mount_point(dev).map(str::to_owned),
        duration_ns: observed.duration_ns(),
        spans_lost: trace.spans_lost,
        damage: trace.damage.clone(),
        measured: Quantities::from_observed(&observed, throughput_per_s),
    })
}

fn print_runs(report: &Report, context: &mut Context) -> Result<(), Failure> {
    let row = |(at, run): (usize, &Run)| {
        [
            (at + 1).to_string(),
            run.file.clone(),
            place(run.mount_point.as_deref(), &run.device),
            time(run.duration_ns as f64),
            plain(run.measured.throughput_per_s),
        ]
    };
    let rows: Vec<_> = report.recordings.iter().enumerate().map(row).collect();
    let heads = ["", "recording", "device", "time", report.throughput];
    Ok(table(context.out, heads, &rows)?)
}

/// Number of recordings that fit side by side into 80 columns.
const ABREAST: usize = 5;

fn print_quantities(runs: &[Run], context: &mut Context) -> Result<(), Failure> {
    let names = runs.first().map(|run| run.measured.values.keys());
    let names: Vec<&String> = names.into_iter().flatten().collect();
    for (block, few) in runs.chunks(ABREAST).enumerate() {
        let numbers: Vec<String> = (1..=few.len())
            .map(|at| (block * ABREAST + at).to_string())
            .collect();
        let mut heads = ["", "", "", "", "", ""];
        for (head, number) in heads[1..].iter_mut().zip(&numbers) {
            *head = number;
        }
        let row = |name: &&String| {
            let mut cells: [String; ABREAST + 1] = Default::default();
            cells[0] = title(name);
            for (cell, run) in cells[1..].iter_mut().zip(few) {
                *cell = run
                    .measured
                    .values
                    .get(*name)
                    .map_or_else(String::new, |value| shown(name, *value));
            }
            cells
        };
        let rows: Vec<_> = names.iter().map(row).collect();
        writeln!(context.out)?;
        table(context.out, heads, &rows)?;
    }
    Ok(())
}

fn print_causes(report: &Report, context: &mut Context) -> Result<(), Failure> {
    let ranking = &report.ranking;
    let chance = ranking.chance_strength;
    let row = |(at, cause): (usize, &luc_model::Cause)| {
        [
            (at + 1).to_string(),
            title(&cause.name),
            match cause.sign {
                Sign::Helps => "rises",
                Sign::Hurts => "falls",
                Sign::Unclear => "unclear",
            }
            .to_owned(),
            format!("{:.2}", cause.strength),
            format!("{:.2}", cause.pearson),
            format!("{:.2}", cause.spearman),
            format!("{:.2}", cause.loading),
            if cause.strength > chance { "*" } else { "" }.to_owned(),
        ]
    };
    let rows: Vec<_> = ranking.causes.iter().enumerate().map(row).collect();
    let of = ranking
        .component
        .map_or_else(String::new, |at| format!("component {}", at + 1));
    let heads = [
        "",
        "as it grows,",
        report.throughput,
        "strength",
        "Pearson",
        "Spearman",
        &of,
        "",
    ];
    writeln!(context.out)?;
    table(context.out, heads, &rows)?;
    let marked = ranking
        .causes
        .iter()
        .filter(|cause| cause.strength > chance);
    writeln!(
        context.out,
        "*: stronger than {chance:.3}. Among {} unrelated to throughput, the strongest\n\
         reaches this by chance in 1 of 20 sets of {} recordings. Marked here: {}.\n\
         A correlation need not be a cause.",
        counted(ranking.causes.len() as u64, "quantity", "quantities"),
        report.recordings.len(),
        counted(marked.count() as u64, "quantity", "quantities"),
    )?;
    for (reason, why) in [
        (LeftOut::Constant, "the same in all recordings"),
        (LeftOut::Steady, "varies by less than 1%"),
        (LeftOut::Missing, "not in all recordings"),
        (LeftOut::NotFinite, "not finite in some recording"),
    ] {
        let left_out = ranking.left_out.iter();
        let names = left_out.filter(|(_, because)| **because == reason);
        let names: Vec<String> = names.map(|(name, _)| title(name)).collect();
        if !names.is_empty() {
            writeln!(context.out, "left out, {why}: {}", names.join(", "))?;
        }
    }
    Ok(())
}

/// Components with a smaller share of the variance are not shown.
const VARIANCE_SHARE_MIN: f64 = 0.05;
/// Smallest loading shown: it explains a quarter of the quantity's variance.
const LOADING_MIN: f64 = 0.5;

fn print_components(report: &Report, context: &mut Context) -> Result<(), Failure> {
    let ranking = &report.ranking;
    let members = |component: &Component| {
        let loadings = ranking.names.iter().zip(&component.loadings);
        let large = loadings.filter(|(_, loading)| loading.abs() >= LOADING_MIN);
        let members: Vec<String> = large
            .map(|(name, loading)| {
                let sign = if *loading < 0.0 { "-" } else { "" };
                format!("{sign}{}", title(name))
            })
            .collect();
        if members.is_empty() {
            "a little of each".to_owned()
        } else {
            members.join(", ")
        }
    };
    writeln!(context.out)?;
    let pairs = ranking.components.iter().zip(&ranking.component_pearsons);
    for (at, (component, pearson)) in pairs.enumerate() {
        let share = component.variance_share;
        if share >= VARIANCE_SHARE_MIN {
            writeln!(
                context.out,
                "component {}: {:.0}% of the variance, correlation {pearson:.2} with {}: {}",
                at + 1,
                share * 100.0,
                report.throughput,
                members(component)
            )?;
        }
    }
    Ok(())
}

/// A quantity's name in words, without the unit, which its values have.
fn title(name: &str) -> String {
    let units = ["_ns_per_s", "_per_s", "_mean_ns", "_ns", "_mean", "_share"];
    let found = units
        .iter()
        .find_map(|unit| Some((name.strip_suffix(unit)?, *unit)));
    let (stem, unit) = found.unwrap_or((name, ""));
    let words = stem.replace('_', " ");
    // A commit or a sync has a time; a delay is a time.
    if unit == "_mean_ns" && !stem.ends_with("delay") {
        return words + " time";
    }
    words
}

fn shown(name: &str, value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if name.ends_with("_ns_per_s") {
        format!("{}/s", time(value))
    } else if name.ends_with("_per_s") {
        format!("{}/s", plain(value))
    } else if name.ends_with("_ns") {
        time(value)
    } else if name.ends_with("_share") {
        percent(value)
    } else {
        plain(value)
    }
}

/// Three significant digits, and thousands separators.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 {
        return count(rounded(value));
    }
    rate(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_words_and_units() {
        let shown = |name: &str, value| (title(name), shown(name, value));
        let is = |title: &str, value: &str| (title.to_owned(), value.to_owned());
        assert_eq!(shown("commit_mean_ns", 8.1e6), is("commit time", "8.10 ms"));
        assert_eq!(shown("commits_per_s", 1234.4), is("commits", "1,234/s"));
        assert_eq!(
            shown("commits_waited_mean", 1.5),
            is("commits waited", "1.50")
        );
        assert_eq!(
            shown("writes_delayed_share", 0.278),
            is("writes delayed", "27.8%")
        );
        assert_eq!(
            shown("other_buffer_waits_ns_per_s", 3.2e6),
            is("other buffer waits", "3.20 ms/s")
        );
        assert_eq!(
            shown("sync_delay_mean_ns", 1.0),
            is("sync delay", "1.00 ns")
        );
        assert_eq!(shown("threads", 16.0), is("threads", "16"));
        assert_eq!(shown("flush_mean_ns", -0.0), is("flush time", "0"));
    }
}
