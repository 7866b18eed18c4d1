//! `luc probe`

use luc_host::Fault;
use luc_host::check::{Check, State};
use luc_host::health::{Health, HealthCheck};
use luc_host::journal::{self, Journal};
use luc_host::watching::Watching;
use luc_host::{kernel, preconditions, sysfs};
use serde::Serialize;

use luc_cli::units;
use luc_cli::{Code, Context, Failure, Verb};

/// Show whether this machine can run LUC, what LUC can watch on it, and what is missing
///
/// Changes nothing. Attaches the tracer for a moment to learn what it can watch. Exits with 13 if
/// this machine cannot run LUC; it may still be able to watch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc probe\n\
    \x20 luc probe --json")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    ready: bool,
    kernel: Option<String>,
    module_version: Option<String>,
    checks: &'a [Check],
    /// Events that can be watched, with LUC's module or without.
    watching: &'a Watching,
    journals: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    journal: Journal,
    /// Whether it takes writes; null if unknown.
    health: Health,
    on: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        let journals = journal::journals(system)?;
        let checks = preconditions::check_all(system, &journals);
        let watching = Watching::here(system);
        let attached = sysfs::attached(system)?;
        let healths = HealthCheck::new(system).look(system, &journals);
        let rows: Vec<Row> = journals
            .into_iter()
            .zip(healths)
            .map(|(journal, health)| Row {
                on: attached.iter().any(|one| one.device == journal.device),
                journal,
                health,
            })
            .collect();
        let missing: Vec<_> = checks
            .iter()
            .filter(|check| check.state == State::Missing)
            .map(|check| check.need.title())
            .collect();
        if self.json {
            let report = Report {
                schema: 1,
                ready: missing.is_empty(),
                kernel: kernel::release(system).ok(),
                module_version: sysfs::version(system),
                checks: &checks,
                watching: &watching,
                journals: rows,
            };
            context.print_json(&report)?;
        } else {
            print_checks(context, &checks)?;
            writeln!(context.out, "\nto watch this machine:")?;
            print_checks(context, &watching.checks)?;
            print_journals(context, &rows)?;
            writeln!(context.out, "\n{}", verdict(&watching))?;
            if missing.is_empty() {
                let known = checks.iter().all(|check| check.state != State::Unknown);
                let limit = if known {
                    ""
                } else {
                    ", as far as LUC can tell"
                };
                writeln!(context.out, "This machine can run LUC{limit}.")?;
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let line = format!(
            "this machine cannot run LUC as it is: {} missing; see the lines above",
            missing.join(", ")
        );
        Err(Failure::Coded(Code::NotReady, line))
    }
}

/// The last line about what can be watched.
fn verdict(watching: &Watching) -> &'static str {
    match (watching.possible, &watching.unseen) {
        (None, _) => "LUC cannot tell from here whether it can watch this machine.",
        (Some(true), Some(unseen)) if !unseen.is_empty() => {
            "LUC can watch all syncs and commits on this machine, and other events as listed above."
        }
        (Some(true), _) => "LUC can watch everything on this machine.",
        (Some(false), _) => {
            "LUC cannot watch this machine with BPF; if LUC is on, its module counts some events."
        }
    }
}

fn print_checks(context: &mut Context, checks: &[Check]) -> Result<(), Failure> {
    for check in checks {
        let word = match check.state {
            State::Ok => "ok",
            State::Missing => "missing",
            State::Note => "note",
            State::Unknown => "unknown",
        };
        write!(
            context.out,
            "{word:<8} {:<15} {}",
            check.need.title(),
            check.found
        )?;
        match &check.fix {
            Some(fix) => writeln!(context.out, " ({}); {fix}", check.need.why())?,
            None => writeln!(context.out)?,
        }
    }
    Ok(())
}

fn print_journals(context: &mut Context, rows: &[Row]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let cells: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let Row { journal, on, .. } = row;
            let fault = row.health.fault().map(Fault::short);
            [
                units::paths(&journal.mount_points),
                journal.name.replace('!', "/"),
                journal.kind.clone(),
                journal_size(journal),
                match (on, fault.or(journal.obstacle())) {
                    (true, Some(obstacle)) => format!("on, but {obstacle}"),
                    (true, None) => "on".into(),
                    (false, Some(obstacle)) => format!("cannot: {obstacle}"),
                    (false, None) => "off".into(),
                },
            ]
        })
        .collect();
    writeln!(context.out)?;
    let heads = ["mounted at", "device", "type", "journal", "LUC"];
    units::table(context.out, heads, &cells)?;
    Ok(())
}

fn journal_size(journal: &Journal) -> String {
    let mut text = match (journal.has_journal, journal.journal_bytes) {
        (Some(false), _) => "none".to_owned(),
        (_, Some(bytes)) => units::bytes(bytes),
        (_, None) => "size unknown".to_owned(),
    };
    if journal.fast_commit == Some(true) {
        text.push_str(", fast commit");
    }
    text
}
