//! `luc-lab bench check`

use luc_wml::plan::{Action, Fileset, Flowop, Op, Plan, Quit, RUN_DEFAULT_S, Value};
use luc_wml::{Diagnostic, LoadError, Script};
use luc_workload::wml::Chosen;
use serde_json::json;

use super::chosen::{overrides, planned, refused};
use luc_cli::units::{bytes, counted};
use luc_cli::{Context, Failure, Verb};

const SCHEMA: &str = "luc-bench-check/1";

/// Check a workload file without running it
///
/// Reads a workload file in the language of Filebench 1.5, or a workload that comes with luc-lab,
/// and prints what it would do. Writes nothing. Prints each error with its line and with what was
/// expected there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench check oltp\n\
    \x20 luc-lab bench check mine.f -D nthreads=4 --json")]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Print JSON: the variables, and the plan or the errors
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let overrides = overrides(&self.chosen)?;
        match planned(&self.chosen, &overrides) {
            Ok((script, plan)) if self.json => {
                let value = json!({
                    "schema": SCHEMA,
                    "source": script.source_name(),
                    "accepted": true,
                    "errors": [],
                    "notes": script.notes(),
                    "variables": variables(&script, &overrides)
                        .into_iter()
                        .map(|(name, value)| json!({ "name": name, "value": value }))
                        .collect::<Vec<_>>(),
                    "plan": plan,
                });
                context.print_json(&value)
            }
            Ok((script, plan)) => print(&script, &plan, &overrides, context),
            Err(error) => {
                if let (true, LoadError::Refused(diagnostics)) = (self.json, &error) {
                    let value = json!({
                        "schema": SCHEMA,
                        "source": diagnostics.source_name(),
                        "accepted": false,
                        "errors": diagnostics.list(),
                    });
                    context.print_json(&value)?;
                }
                Err(refused(error, context)?)
            }
        }
    }
}

/// Every variable with its value after the overrides.
fn variables(script: &Script, overrides: &[(String, String)]) -> Vec<(String, String)> {
    let value = |name: &str| {
        let instead = overrides.iter().rev().find(|(other, _)| other == name);
        instead.map(|(_, value)| value.clone())
    };
    script
        .variables()
        .into_iter()
        .map(|(name, own)| {
            let value = value(&name).unwrap_or(own);
            (name, value)
        })
        .collect()
}

fn print(
    script: &Script,
    plan: &Plan,
    overrides: &[(String, String)],
    context: &mut Context,
) -> Result<(), Failure> {
    let out = &mut *context.out;
    writeln!(out, "{}: accepted", script.source_name())?;
    let variables = variables(script, overrides);
    let width = variables.iter().map(|(name, _)| name.len()).max();
    if let Some(width) = width {
        writeln!(out, "variables")?;
        for (name, value) in &variables {
            let given = overrides.iter().any(|(other, _)| other == name);
            let mark = if given { "  (given)" } else { "" };
            writeln!(out, "  ${name:width$}  {value}{mark}")?;
        }
    }
    writeln!(out, "files")?;
    for fileset in &plan.filesets {
        writeln!(out, "  {}", files(fileset, plan))?;
    }
    if plan.filesets.is_empty() {
        writeln!(out, "  none")?;
    }
    writeln!(out, "threads")?;
    let mut threads_sum = 0;
    for process in &plan.processes {
        for thread in &process.threads {
            let all = process.instances * thread.instances;
            threads_sum += all;
            writeln!(
                out,
                "  {}/{}: {} x {}, {}",
                process.name,
                thread.name,
                counted(process.instances, "process", "processes"),
                counted(thread.instances, "thread", "threads"),
                counted(steps(&thread.flowops), "flowop", "flowops"),
            )?;
        }
    }
    writeln!(
        out,
        "  {} in all",
        counted(threads_sum, "thread", "threads")
    )?;
    writeln!(out, "run")?;
    for line in runs(plan) {
        writeln!(out, "  {line}")?;
    }
    for Diagnostic { at, message } in script.notes() {
        let place = at.map_or(String::new(), |at| format!("{}:{}: ", at.line, at.column));
        writeln!(out, "note: {place}{message}")?;
    }
    Ok(())
}

fn steps(flowops: &[Flowop]) -> u64 {
    let of = |flowop: &Flowop| match &flowop.op {
        Op::Composite(inner) => steps(inner),
        _ => 1,
    };
    flowops.iter().map(of).sum()
}

fn files(fileset: &Fileset, plan: &Plan) -> String {
    let Fileset { name, path, .. } = fileset;
    let size = size(fileset.size, plan);
    if fileset.single_file {
        return format!("{name}: one file of {size} in {path}");
    }
    let mut holds = Vec::new();
    if fileset.entries != Value::Fixed(0) {
        let entries = shown_count(fileset.entries, ["file", "files"], plan);
        holds.push(format!("{entries} of {size}"));
    }
    if fileset.leaf_dirs != Value::Fixed(0) {
        let words = ["leaf directory", "leaf directories"];
        holds.push(shown_count(fileset.leaf_dirs, words, plan));
    }
    let width = match fileset.dir_width {
        Value::Fixed(0) => "all entries".into(),
        width => shown_count(width, ["entry", "entries"], plan),
    };
    format!(
        "{name}: {} in {path}, {}% created before the run, {width} per directory",
        holds.join(" and "),
        shown(fileset.prealloc_percent, plan),
    )
}

fn shown_count(value: Value, [one, many]: [&str; 2], plan: &Plan) -> String {
    match value {
        Value::Fixed(number) => counted(number, one, many),
        random @ Value::Random(_) => format!("a number {} of {many}", shown(random, plan)),
    }
}

fn size(value: Value, plan: &Plan) -> String {
    match value {
        Value::Fixed(size) => bytes(size),
        random @ Value::Random(_) => format!("a size {}", shown(random, plan)),
    }
}

fn shown(value: Value, plan: &Plan) -> String {
    match value {
        Value::Fixed(number) => number.to_string(),
        Value::Random(id) => {
            let random = &plan.randoms[id.0];
            format!("drawn from ${} ({})", random.name, random.kind)
        }
    }
}

fn runs(plan: &Plan) -> Vec<String> {
    let mut lines: Vec<String> = plan
        .actions
        .iter()
        .map(|action| match action {
            Action::Echo(text) => format!("says {text:?}"),
            Action::CreateFiles => "creates the files".into(),
            Action::Sync => "syncs the file system".into(),
            Action::DropCaches(level) => format!("drops the caches (level {level})"),
            Action::Command { command, .. } => {
                format!("gives the shell {command:?}, with --allow-system only")
            }
            Action::Sleep(seconds) => format!("waits {seconds} s"),
            Action::Run { seconds } => {
                let time = match (seconds, plan.quit) {
                    (Some(seconds), _) => format!("{seconds} s"),
                    (None, Quit::Timeout) => format!("{RUN_DEFAULT_S} s"),
                    (None, _) => "no time limit".into(),
                };
                let end = match plan.quit {
                    Quit::Timeout => "",
                    Quit::AllDone => ", or until all threads have ended",
                    Quit::FirstDone => ", or until the first thread ends",
                };
                format!("{time}{end}")
            }
        })
        .collect();
    match plan.event_rate_per_s {
        None | Some(Value::Fixed(0)) => {}
        Some(rate) => lines.push(format!("{} events per second", shown(rate, plan))),
    }
    lines
}
