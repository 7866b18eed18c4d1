//! `luc-lab promises`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_host::{HostError, plain};
use luc_torture::mark::{self, MarkError};
use luc_torture::{
    CutError, Cuts, DataMode, DirTree, Done, History, Report, Work, WorkError, verify, work,
    work_rank,
};
use serde_json::json;

use crate::failure;
use luc_cli::units::{count, counted};
use luc_cli::{Context, Failure, Verb, verbs};

verbs! {
    /// Write files, and check them after a power cut
    Verbs:
    Work(WorkArgs),
    Verify(VerifyArgs),
    Cuts(CutsArgs),
}

/// Write, rename, truncate, remove and sync files, and mark each step
#[derive(Debug, clap::Args)]
pub struct WorkArgs {
    #[command(flatten)]
    work: Work,
    /// Do only this process's part
    #[arg(long, hide = true)]
    rank: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Compare files with the promises that the marks record
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Directory to compare
    #[arg(long, value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// File of the marks
    #[arg(long, value_hint = clap::ValueHint::FilePath)]
    acks: PathBuf,
    /// Consider only marks before this index
    #[arg(long, value_name = "INDEX")]
    until: Option<u64>,
    /// How the file system was mounted
    #[arg(long, value_enum, default_value = "ordered")]
    data_mode: DataMode,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Cut the power of a recorded disk at many moments, and compare the files after each cut
#[derive(Debug, clap::Args)]
pub struct CutsArgs {
    #[command(flatten)]
    cuts: Cuts,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for WorkArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let (plan, dir) = (&self.work, &self.work.dir);
        let failed = |error: WorkError| work_failed(dir, &error);
        if let Some(rank) = self.rank {
            let done = work_rank(plan, rank).map_err(failed)?;
            return context.print_json(&done);
        }
        let done = work(plan, &|rank| again(plan, rank)).map_err(failed)?;
        if self.json {
            context.print_json(&json!({
                "schema": 1,
                "operations": done.operations,
                "syncs": done.syncs,
                "failures": done.failures,
            }))?;
        } else {
            let [operations, syncs] = [done.operations, done.syncs].map(count);
            writeln!(
                context.out,
                "{operations} operations, {syncs} syncs acknowledged"
            )?;
        }
        stopped_early(dir, &done)
    }
}

/// This program again, as one of the processes.
fn again(plan: &Work, rank: u32) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["promises", "work", "--dir"]).arg(&plan.dir);
    command.arg("--acks").arg(&plan.acks);
    match plan.seconds {
        Some(seconds) => command.arg(format!("--seconds={seconds}")),
        None => command.arg(format!("--ops={}", plan.ops)),
    };
    if plan.files_only {
        command.arg("--files-only");
    }
    for (option, value) in [
        ("--threads", u64::from(plan.threads)),
        ("--processes", u64::from(plan.processes)),
        ("--seed", plan.seed),
        ("--rank", u64::from(rank)),
    ] {
        command.arg(option).arg(value.to_string());
    }
    command
}

fn work_failed(dir: &Path, error: &WorkError) -> Failure {
    match error {
        WorkError::Call { path, why, .. } if why.kind() == std::io::ErrorKind::NotFound => {
            HostError::NotFound {
                path: path.clone(),
                why: plain(why),
                fix: "create it first".to_owned(),
            }
            .into()
        }
        _ => failure::workload(format!("promises {}", dir.display()), error),
    }
}

fn stopped_early(dir: &Path, done: &Done) -> Result<(), Failure> {
    let Some(first) = done.failures.first() else {
        return Ok(());
    };
    let threads = counted(done.failures.len() as u64, "thread", "threads");
    Err(failure::workload(
        format!("promises {}", dir.display()),
        format!("{threads} stopped early; first: {first}"),
    ))
}

impl Verb for VerifyArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let marks = read_marks(&self.acks)?;
        let unusable = |error: MarkError| bad_marks(&self.acks, &error);
        let marks = mark::read(&marks).map_err(unusable)?;
        let until = self.until.unwrap_or(u64::MAX);
        let mut history = History::new();
        for mark in marks.iter().take_while(|mark| mark.index < until) {
            history.push(mark).map_err(unusable)?;
        }
        let tree = DirTree::new(&self.dir);
        let report =
            verify(&tree, &history, self.data_mode).map_err(|error| HostError::NotFound {
                path: self.dir.display().to_string(),
                why: plain(&error),
                fix: "name the directory that `luc-lab promises work` was given".to_owned(),
            })?;
        print(self, context, &report)?;
        match report.violations.first() {
            None => Ok(()),
            Some(first) => Err(failure::broken(
                self.dir.display(),
                report.violations.len() as u64,
                first,
            )),
        }
    }
}

impl Verb for CutsArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let recorded = &self.cuts.recorded;
        let summary = self.cuts.run().map_err(|error| match error {
            CutError::Mark(error) => bad_marks(Path::new(recorded), &error),
            error => failure::workload(format!("promises {recorded}"), error),
        })?;
        if self.json {
            context.print_json(&json!({"schema": 1, "summary": summary}))?;
        } else {
            for loss in &summary.losses {
                writeln!(context.out, "{loss}")?;
            }
            writeln!(
                context.out,
                "{} of a record of {} entries, {} flushes; {} verified, {} acknowledged; {} \
                 checked, e2fsck run {} times; {} lost",
                counted(summary.cuts, "cut", "cuts"),
                count(summary.log_entries),
                count(summary.flushes),
                counted(summary.syncs_verified, "sync", "syncs"),
                count(summary.syncs),
                counted(summary.files, "file", "files"),
                count(summary.fscks),
                count(summary.losses.len() as u64),
            )?;
        }
        match summary.losses.first() {
            None => Ok(()),
            Some(first) => Err(failure::broken(
                recorded,
                summary.losses.len() as u64,
                first,
            )),
        }
    }
}

fn read_marks(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let (path, why) = (path.display().to_string(), plain(&error));
        let fix = "give the file that `luc-lab promises work` got as --acks".to_owned();
        match error.kind() {
            std::io::ErrorKind::NotFound => HostError::NotFound { path, why, fix }.into(),
            _ => Failure::trace(path, why),
        }
    })
}

fn bad_marks(path: &Path, error: &MarkError) -> Failure {
    Failure::trace(path.display(), error)
}

fn print(args: &VerifyArgs, context: &mut Context, report: &Report) -> Result<(), Failure> {
    if args.json {
        let report = json!({
            "schema": 1,
            "marks": report.marks,
            "syncs": report.syncs,
            "files": report.files,
            "sectors": report.sectors,
            "violations": report.violations,
        });
        return context.print_json(&report);
    }
    for violation in &report.violations {
        writeln!(context.out, "{violation}")?;
    }
    let broken = report.violations.len() as u64;
    writeln!(
        context.out,
        "{}, {} acknowledged; {} with {}; {}",
        counted(report.marks, "mark", "marks"),
        counted(report.syncs, "sync", "syncs"),
        counted(report.files as u64, "file", "files"),
        counted(report.sectors as u64, "sector", "sectors"),
        counted(broken, "broken promise", "broken promises"),
    )?;
    Ok(())
}
