//! `luc status`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use luc_control::{CUSTOM, POLICY};
use luc_host::health::HealthCheck;
use luc_host::{journal, sysfs};
use serde::Serialize;
use serde_json::Value;

use super::failed;
use luc_cli::help;
use luc_cli::units;
use luc_cli::units::{UNKNOWN, count, interval, known, known_time, many, share};
use luc_cli::{Code, Context, Failure, Verb};
use luc_watch::WatchError;
use luc_watch::sample::{REASONS, Sampler, Snapshot};
use luc_watch::status::AttachedStatus;
use luc_watch::time::wait;

/// Show what LUC does and what it has seen
///
/// Counters start at 0 when LUC is switched on for the file system.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc status\n\
    \x20 luc status /srv/data --json\n\
    \x20 luc status --live=5\n\
    \x20 luc status --watch=10 /srv/data")]
#[command(after_long_help = help::counter_table())]
pub struct Args {
    /// Show only the file system of this path or block device, as in /dev/vdb, vdb or 254:16
    #[arg(value_name = "PATH|DEVICE", value_hint = clap::ValueHint::AnyPath)]
    path: Option<PathBuf>,
    /// Print JSON, with every knob and counter under its own name
    #[arg(long)]
    json: bool,
    /// Also show the events of this many seconds [default: 1], as `luc top` does, and the machine's
    /// energy; traced with BPF if the kernel allows it
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = interval::<60>
    )]
    live: Option<Duration>,
    /// Print the events of every interval of this many seconds [default: 1] until interrupted; with
    /// --json, one line of JSON per interval
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = interval::<3600>,
        conflicts_with = "live"
    )]
    watch: Option<Duration>,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    module_version: Option<String>,
    /// Functions that the module hooks, with the state of each hook.
    hooks: BTreeMap<String, String>,
    file_systems: Vec<AttachedStatus>,
    /// The events of one interval, with `--live`.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Snapshot>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        if let Some(interval) = self.watch {
            return watch(self, interval, context);
        }
        let all = sysfs::attached(system)?;
        let attached = match &self.path {
            Some(path) => vec![super::attached_at(system, path, &all)?],
            None => all.clone(),
        };
        let interval = self.live.map(|interval| live(self, interval, context));
        let interval = interval.transpose()?.flatten();
        let journals = journal::journals(system)?;
        let healths = HealthCheck::new(system).look(system, &journals);
        let mut statuses = Vec::new();
        for one in &attached {
            let mut known = journals.iter().zip(healths.iter().cloned());
            let journal = known.find(|(journal, _)| journal.device == one.device);
            match AttachedStatus::read(system, one, &all, journal) {
                Ok(status) => statuses.push(status),
                // Unmounted meanwhile: LUC is off for it by now.
                Err(_) if !system.exists(&format!("{}/{}", sysfs::ROOT, one.name)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let unsound = statuses.iter().filter(|it| it.health.fault().is_some());
        let unsound = unsound.count();
        let version = sysfs::version(system);
        if self.json {
            let report = Report {
                schema: 1,
                module_version: version,
                hooks: sysfs::hooks(system)
                    .into_iter()
                    .map(|hook| (hook.function, hook.state))
                    .collect(),
                file_systems: statuses,
                live: interval,
            };
            context.print_json(&report)?;
            return sound(unsound);
        }
        if statuses.is_empty() {
            let line = if sysfs::loaded(system) {
                "LUC is on for no file system; the module is loaded"
            } else {
                "LUC is on for no file system; the module is not loaded"
            };
            writeln!(context.out, "{line}")?;
        }
        for (at, status) in statuses.iter().enumerate() {
            if at > 0 {
                writeln!(context.out)?;
            }
            print(context, status)?;
        }
        if let Some(live) = interval {
            writeln!(context.out)?;
            super::top::text::print(&live, context.out)?;
        }
        sound(unsound)
    }
}

/// Fails if file systems take no writes.
fn sound(unsound: usize) -> Result<(), Failure> {
    let line = match unsound {
        0 => return Ok(()),
        1 => "a file system with LUC on takes no writes; see its health above".to_owned(),
        many => format!("{many} file systems with LUC on take no writes; see their health above"),
    };
    Err(Failure::Coded(Code::Unsound, line))
}

fn sampler(args: &Args, context: &Context) -> Result<Sampler, WatchError> {
    let path = args.path.as_ref();
    let only = path.map(|path| journal::device_of(context.system, path));
    let sampler = Sampler::new(only.transpose()?, None, context.system)?;
    Ok(sampler.with_energy(context.system))
}

/// Prints the events of one interval after the other.
fn watch(args: &Args, interval: Duration, context: &mut Context) -> Result<(), Failure> {
    let sampler = sampler(args, context);
    let mut sampler = sampler.map_err(failed("status"))?;
    let mut sample = || {
        let snapshot = sampler.sample(context.system);
        snapshot.map_err(failed("status"))
    };
    sample()?;
    loop {
        wait(interval, &context.stop);
        if context.stop.is_set() {
            return Ok(());
        }
        let snapshot = sample()?;
        if args.json {
            let line = serde_json::to_string(&snapshot).map_err(anyhow::Error::from)?;
            writeln!(context.out, "{line}")?;
        } else {
            super::top::text::print(&snapshot, context.out)?;
            writeln!(context.out)?;
        }
        context.out.flush()?;
    }
}

/// The numbers of one interval. Without them the rest of the status is still valid.
fn live(
    args: &Args,
    interval: Duration,
    context: &mut Context,
) -> Result<Option<Snapshot>, Failure> {
    match sampler(args, context) {
        Ok(sampler) => match super::top::one_interval(sampler, interval, context) {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(error) => Err(failed("status")(error)),
        },
        Err(error) => {
            let failure = failed("status")(error);
            context.note(format_args!("no live numbers: {failure}"))?;
            Ok(None)
        }
    }
}

fn print(context: &mut Context, status: &AttachedStatus) -> Result<(), Failure> {
    let device = status.name.replace('!', "/");
    if status.mount_points.is_empty() {
        writeln!(
            context.out,
            "{device} ({}), not mounted here",
            status.device
        )?;
    } else {
        let points = units::paths(&status.mount_points);
        writeln!(context.out, "{points} ({device}, {})", status.device)?;
    }
    let without = sysfs::lacking(context.system).map(|hooks| ("without", hooks));
    for (head, line) in lines(status).into_iter().chain(without) {
        writeln!(context.out, "  {head:<10} {line}")?;
    }
    Ok(())
}

fn lines(status: &AttachedStatus) -> Vec<(&'static str, String)> {
    let fault = status.health.fault();
    let mode = match status.word("mode") {
        _ if fault.is_some() => "nothing to steer",
        "steer" => "steering",
        "observe" => "observing only: decides and records, changes nothing",
        other => other,
    };
    let health = fault.map(|fault| ("health", fault.to_string()));
    let mut lines: Vec<_> = health.into_iter().collect();
    lines.extend([
        ("policy", format!("{}, {mode}", policy_words(status))),
        ("set point", setpoint(status)),
        ("commits", commits(status)),
        ("held", held(status)),
    ]);
    lines.extend(reasons(status).map(|line| ("started", line)));
    lines.extend(priority(status).map(|line| ("priority", line)));
    let fast = status.count("fast_commits");
    if fast != Some(0) {
        let served = many(fast, "sync event", "sync events");
        lines.push(("fast", format!("{served} served by fast commits")));
    }
    lines.push(("writes", writes(status)));
    lines.push(("copy-out", copy_out(status)));
    if let Some(waits) = stacked(&status.stacked_on) {
        lines.push(("stacked", waits));
    }
    lines.extend(status.guard.iter().map(|guard| ("guard", guard.told())));
    lines
}

/// Tells what LUC on both file systems of a stack means for a sync of the upper one.
pub fn stacked(on: &[String]) -> Option<String> {
    let names = on.join(" and ").replace('!', "/");
    (!on.is_empty())
        .then(|| format!("on {names}, where LUC is also on: a sync may wait for a hold in each"))
}

/// The policy's name, with both axes if their pair has no name.
fn policy_words(status: &AttachedStatus) -> String {
    let name = status.word(POLICY);
    if name != CUSTOM {
        return name.to_owned();
    }
    let (batching, copyout) = (status.word("batching"), status.word("copyout"));
    format!("{name} (batching {batching}, copyout {copyout})")
}

fn setpoint(status: &AttachedStatus) -> String {
    let given = status.knobs.get("setpoint_events").and_then(Value::as_i64);
    let aimed = status.count("setpoint_events");
    let events = |events| many(events, "sync event", "sync events");
    match (given, aimed) {
        (Some(0), Some(0)) => "automatic".into(),
        (Some(0), aimed) => format!("automatic, {} per commit at the last commit", events(aimed)),
        (given, aimed) => format!("{} per commit", events(given.or(aimed))),
    }
}

fn commits(status: &AttachedStatus) -> String {
    let (commits, events) = (status.count("commits"), status.count("sync_events"));
    let served = if commits == Some(0) {
        String::new()
    } else {
        let each = status.ratios.sync_events_per_commit;
        let each = known(each.map(|each| format!("{each:.2}")));
        let events = many(events, "sync event", "sync events");
        format!(" for {events}: {each} per commit")
    };
    let average = match status.count("commit_avg_ns") {
        Some(0) => String::new(),
        average => format!("; {} on average", known_time(average)),
    };
    known(commits.map(count)) + &served + &average
}

fn held(status: &AttachedStatus) -> String {
    let (held, commits) = (status.count("commits_held"), status.count("commits"));
    let barred = status.holds_barred_by;
    let line = match (held, barred) {
        (Some(0), Some(why)) => format!("none: {why}"),
        (Some(0), None) => "none".into(),
        (_, barred) => format!(
            "{} ({}) for {} on average, {} at most{}",
            many(held, "commit", "commits"),
            part(held, commits),
            known_time(each(status.count("held_ns"), held)),
            known_time(status.count("held_max_ns")),
            barred.map_or_else(String::new, |why| format!("; none now: {why}")),
        ),
    };
    line + &forgone(status, "closed_forgone", "held")
}

/// Commits on which LUC would have acted, had it not only observed; empty if there are none.
fn forgone(status: &AttachedStatus, counter: &str, done: &str) -> String {
    match status.count(counter) {
        None | Some(0) => String::new(),
        commits => format!(
            "; LUC would have {done} {} ({})",
            many(commits, "commit", "commits"),
            part(commits, status.count("commits"))
        ),
    }
}

/// Names the control group that no commit is held for; none is the usual case.
fn priority(status: &AttachedStatus) -> Option<String> {
    let group = status.word("priority_cgroup");
    let events = status.count("priority_events");
    (group != "0").then(|| format!("{group}: {}", many(events, "sync event", "sync events")))
}

/// Lists why commits started when they did, the most frequent reason first.
fn reasons(status: &AttachedStatus) -> Option<String> {
    let times = |(name, _, text): &(&str, &str, &'static str)| Some((status.count(name)?, *text));
    // If one part is unknown, so is the sum, and with it every share.
    let found: Option<Vec<_>> = REASONS.iter().map(times).collect();
    let Some(mut found) = found else {
        return Some(UNKNOWN.into());
    };
    found.retain(|(times, _)| *times > 0);
    found.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    let all = found.iter().map(|(times, _)| times).sum();
    let shown: Vec<_> = found
        .iter()
        .map(|(times, text)| format!("{text} {}", share(*times, all)))
        .collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

fn writes(status: &AttachedStatus) -> String {
    let (all, delayed) = (status.count("handles"), status.count("writes_delayed"));
    let line = many(all, "operation", "operations");
    if delayed == Some(0) {
        return line + ", none delayed";
    }
    format!(
        "{line}, {} delayed ({}) for {} on average, {} at most",
        known(delayed.map(count)),
        part(delayed, all),
        known_time(each(status.count("write_delay_ns"), delayed)),
        known_time(status.count("write_delay_max_ns")),
    )
}

fn copy_out(status: &AttachedStatus) -> String {
    let state = match status.count("copyout_active") {
        None => UNKNOWN,
        Some(0) => "not active",
        Some(_) => "active",
    };
    let copies = status.count("copies");
    if copies == Some(0) {
        let forgone = forgone(status, "copyout_forgone", "copied out");
        return format!("{state}, nothing copied{forgone}");
    }
    let line = format!(
        "{state}, {} copied, {} changed meanwhile",
        many(copies, "buffer", "buffers"),
        known(status.count("buffers_spared").map(count)),
    );
    let failed = status.count("copies_failed");
    if failed == Some(0) {
        return line;
    }
    let failed = many(failed, "copy failed", "copies failed");
    format!("{line}, {failed} for lack of memory")
}

fn each(sum: Option<i64>, number: Option<i64>) -> Option<i64> {
    sum?.checked_div(number?)
}

/// A part in percent: `-` if a number is unknown, empty if the whole is 0.
fn part(part: Option<i64>, whole: Option<i64>) -> String {
    known(part.zip(whole).map(|(part, whole)| share(part, whole)))
}
