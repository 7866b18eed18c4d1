//! From a plan to files: measure side by side, keep the records, render them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::{ReportError, Result};
use crate::measure::lab::Lab;
use crate::measure::origin::Origin;
use crate::measure::pool::{self, lock};
use crate::measure::record::{Record, Records};
use crate::plan::args::{DemoArgs, MatrixArgs, OutputArgs};
use crate::plan::load::Job;
use crate::show::document::Document;
use crate::show::{html, text};
use crate::{demo as demo_report, matrix as matrix_report};

/// Shows the progress of a measurement. Called from several threads.
pub trait Progress: Sync {
    /// `done` of `total` cells are measured; `now` is the current work of one machine.
    fn step(&self, _done: usize, _total: usize, _now: &str) {}
    /// Something that the user should know but that stops nothing; one line.
    fn note(&self, _text: &str) {}
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {}

/// A finished report.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub document: Document,
    pub records: Records,
    /// Path of the HTML page.
    pub html: PathBuf,
    /// Path of the raw results.
    pub json: PathBuf,
    /// Figures to reach that were reached.
    pub reached: usize,
    /// Figures to reach that were missed.
    pub missed: usize,
}

/// Measures and renders the demonstration; with `--from-results` only renders.
///
/// # Errors
/// See [`ReportError`].
pub fn demo(args: &DemoArgs, lab: &dyn Lab, progress: &dyn Progress) -> Result<Outcome> {
    let plan = || demo_report::plan(args);
    measure(
        plan,
        &args.output,
        &args.out,
        demo_report::SCHEMA,
        lab,
        progress,
    )?;
    render_demo(&args.out)
}

/// Measures and renders the figures table; with `--from-results` only renders.
///
/// # Errors
/// See [`ReportError`].
pub fn matrix(args: &MatrixArgs, lab: &dyn Lab, progress: &dyn Progress) -> Result<Outcome> {
    let plan = || matrix_report::plan(args);
    measure(
        plan,
        &args.output,
        &args.out,
        matrix_report::SCHEMA,
        lab,
        progress,
    )?;
    render_matrix(&args.out)
}

/// Renders the demonstration kept in a directory.
///
/// # Errors
/// The results file is missing, damaged or of another kind.
pub fn render_demo(out: &Path) -> Result<Outcome> {
    let records = kept(out, demo_report::SCHEMA)?;
    let document = demo_report::document(&records);
    finish(out, records, document, (0, 0))
}

/// Renders the figures table kept in a directory.
///
/// # Errors
/// The results file is missing, damaged or of another kind.
pub fn render_matrix(out: &Path) -> Result<Outcome> {
    let records = kept(out, matrix_report::SCHEMA)?;
    let (document, tally) = matrix_report::document(&records);
    finish(out, records, document, (tally.reached, tally.missed))
}

fn finish(
    out: &Path,
    records: Records,
    document: Document,
    (reached, missed): (usize, usize),
) -> Result<Outcome> {
    let html = out.join("report.html");
    write(&html, html::render(&document)?.as_bytes())?;
    let text = text::render(&document, false);
    write(&out.join("report.txt"), text.as_bytes())?;
    Ok(Outcome {
        document,
        records,
        html,
        json: out.join("results.json"),
        reached,
        missed,
    })
}

fn keep(out: &Path, records: &Records) -> Result<()> {
    fs::create_dir_all(out).map_err(ReportError::file("make directory", out))?;
    let path = out.join("results.json");
    let mut json = serde_json::to_vec_pretty(records).map_err(|e| ReportError::BadResults {
        path: path.clone(),
        why: e.to_string(),
    })?;
    json.push(b'\n');
    write(&path, &json)
}

/// Writes a file beside it, then renames that: a reader never sees half a file.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, bytes)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(ReportError::file("write", path))
}

fn kept(out: &Path, schema: &str) -> Result<Records> {
    let path = out.join("results.json");
    let bytes = fs::read(&path).map_err(ReportError::file("read", &path))?;
    let bad = |why: String| ReportError::BadResults {
        path: path.clone(),
        why,
    };
    let records: Records = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    if records.schema != schema {
        return Err(bad(format!("{:?} instead of {schema:?}", records.schema)));
    }
    Ok(records)
}

/// Measures all jobs, several machines at a time; with `--from-results` nothing. The records of a
/// job are kept when the job ends: a user who loses patience can render them.
fn measure(
    plan: impl FnOnce() -> Vec<Job>,
    args: &OutputArgs,
    out: &Path,
    schema: &str,
    lab: &dyn Lab,
    progress: &dyn Progress,
) -> Result<()> {
    if args.from_results {
        return Ok(());
    }
    let jobs = plan();
    let board = Board {
        done: Mutex::new(vec![(0, String::new()); jobs.len()]),
        total: jobs.iter().map(|job| job.cells.len()).sum(),
        progress,
    };
    let origin = Origin::here();
    let results: Mutex<Vec<Option<Vec<Record>>>> = Mutex::new(vec![None; jobs.len()]);
    pool::each(args.jobs, &jobs, |index, job| {
        let mut reporter = Reporter {
            board: &board,
            job,
            index,
        };
        let records = lab.measure(job, &mut reporter)?;
        board.set(index, job.cells.len(), job, "done");
        let mut results = lock(&results);
        results[index] = Some(records);
        // Under the lock, so that no shorter list replaces a longer one.
        keep(out, &in_order(&results, schema, &origin))
    })
}

/// The records of the jobs that are done, in the order of the jobs.
fn in_order(results: &[Option<Vec<Record>>], schema: &str, origin: &Origin) -> Records {
    Records {
        schema: schema.to_owned(),
        luc_version: env!("CARGO_PKG_VERSION").to_owned(),
        origin: Some(origin.clone()),
        records: results.iter().flatten().flatten().cloned().collect(),
    }
}

/// How many cells each job has measured, and its current work.
struct Board<'a> {
    done: Mutex<Vec<(usize, String)>>,
    total: usize,
    progress: &'a dyn Progress,
}

impl Board<'_> {
    fn set(&self, index: usize, done: usize, job: &Job, now: &str) {
        let Job {
            kernel,
            vcpus,
            cpu_mips,
            ..
        } = job;
        let now = format!("{kernel}, {vcpus} x {cpu_mips} MIPS: {now}");
        let mut all = lock(&self.done);
        let before = &mut all[index];
        if *before == (done, now.clone()) {
            return;
        }
        *before = (done, now.clone());
        let sum = all.iter().map(|job| job.0).sum();
        drop(all);
        self.progress.step(sum, self.total, &now);
    }
}

/// Passes the progress of one machine on.
struct Reporter<'a> {
    board: &'a Board<'a>,
    job: &'a Job,
    index: usize,
}

impl luc_lab::Progress for Reporter<'_> {
    fn stage(&mut self, text: &str) {
        self.board.set(self.index, 0, self.job, text);
    }

    fn guest(&mut self, done: u32, _total: u32, text: &str) {
        let done = usize::try_from(done).unwrap_or(0).min(self.job.cells.len());
        // The cell's name is enough: its current step changes too often to be read.
        let cell = text.split(':').next().unwrap_or(text);
        self.board.set(self.index, done, self.job, cell);
    }

    fn note(&mut self, text: &str) {
        self.board.progress.note(text);
    }
}
