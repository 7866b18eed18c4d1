//! Runs cells as Slurm jobs: each task of a job array measures one cell.
//!
//! ```text
//! DIR/slurm/N.keys          an array's cells, one key per line; a task's number is its line
//! DIR/slurm/JOB_NUMBER.log  output of a task
//! ```
//!
//! Slurm decides where and when each task runs, and reruns a task whose node was lost. All jobs of
//! a folder of results have one name, which follows from its path. So a later run finds every job,
//! even if `sbatch` gave no answer or the run was killed. A round submits the open cells and waits
//! until the queue holds no job of that name; the store then holds their results and failures. A
//! cell that has neither is submitted in one more round; after that it has failed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Backend, Engine, Wishes};
use crate::cell::{Cell, draw};
use crate::error::{CampaignError, Result};
use crate::exports::{quoted, source_words};
use crate::keys;
use crate::measure::{Board, Missing};
use crate::places::{self, Setup};
use crate::store::{Failed, Store};

const NAME: &str = "slurm";

/// Seconds between two queries of the queue. One query covers all tasks; a cell takes longer.
const POLL_S: u32 = 10;
/// Polls for late results after the last task has ended: NFS may take up to 60 s (acdirmax) to show
/// a new file.
const LATE_POLLS: u32 = 6;
/// Most submissions of a cell whose tasks leave no result.
const TRIES_MAX: u8 = 2;
/// Last bytes of a task's output that are kept with a failure.
const LOG_BYTES: usize = 65_536;
/// Reasons for waiting that resolve by themselves. Any other reason is reported, once.
const USUAL_REASONS: &str =
    "None, Resources, Priority, JobArrayTaskLimit, BeginTime, Cleaning, NodeDown";

/// Runs cells as tasks of Slurm's job arrays. Slurm itself checks the options.
pub struct Slurm(pub Wishes);

fn refused(why: impl Into<String>) -> CampaignError {
    CampaignError::Backend {
        backend: NAME,
        why: why.into(),
    }
}

impl Backend for Slurm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn measure(
        &self,
        cells: &[Cell],
        store: &Store,
        setup: &Setup,
        board: &mut Board<'_>,
    ) -> Result<()> {
        let mut jobs = Jobs::new(&self.0, cells, store, setup)?;
        let ended = jobs.run(board);
        if ended.is_err() {
            jobs.cancel(board);
        }
        ended
    }
}

/// A cell without a result, and its attempts so far.
struct Open<'a> {
    missing: Missing<'a>,
    /// Failure that an earlier run kept.
    failed_before: Option<Failed>,
    tries: u8,
    /// Its task in this round, as `JOB_NUMBER`.
    task: Option<String>,
}

/// The jobs of a folder of results.
struct Jobs<'a> {
    engine: Engine,
    limit: Option<u32>,
    tasks_max: usize,
    open: Vec<Open<'a>>,
    store: &'a Store,
    setup: &'a Setup,
    /// Folder of the results, as a path that is valid on every node.
    dir: PathBuf,
    /// Name of all its jobs.
    name: String,
    is_away: bool,
    told: BTreeSet<String>,
}

impl<'a> Jobs<'a> {
    fn new(wishes: &Wishes, cells: &'a [Cell], store: &'a Store, setup: &'a Setup) -> Result<Self> {
        if setup.scratch.is_some() {
            return Err(refused(
                "--device names a device of one machine, but jobs may run on any",
            ));
        }
        let tasks_max = array_max().map_err(|trouble| refused(trouble.to_string()))?;
        let mut open: Vec<Open<'_>> = Missing::find(cells, setup)?
            .into_iter()
            .map(|missing| Open {
                failed_before: store.failure(missing.cell, &missing.versions),
                missing,
                tries: 0,
                task: None,
            })
            .collect();
        open.sort_by_key(|open| open.missing.needs);
        let dir = absolute(store.dir())?;
        Ok(Self {
            engine: wishes.engine.clone(),
            limit: wishes.jobs,
            tasks_max,
            open,
            store,
            setup,
            name: format!("luc-{:016x}", draw(0, &[&dir.to_string_lossy()])),
            dir,
            is_away: false,
            told: BTreeSet::new(),
        })
    }

    fn run(&mut self, board: &mut Board<'_>) -> Result<()> {
        let left = self.queue(board)?.len();
        if left > 0 {
            let word = if left == 1 { "task" } else { "tasks" };
            board.note(&format!(
                "slurm still has {left} {word} of an earlier run; waiting for them"
            ));
        }
        self.wait(board)?;
        while !self.open.is_empty() {
            self.submit(board)?;
            self.wait(board)?;
            self.judge(board)?;
        }
        self.clear();
        Ok(())
    }

    /// Submits the open cells in arrays: cells with the same needs, as many as an array can have.
    /// With a limit, which Slurm applies to each array, a round has a single one.
    fn submit(&mut self, board: &mut Board<'_>) -> Result<()> {
        let mut arrays: Vec<Vec<usize>> = Vec::new();
        for (at, open) in self.open.iter().enumerate() {
            let fits = |array: &&mut Vec<usize>| {
                let needs = self.open[array[0]].missing.needs;
                array.len() < self.tasks_max && needs == open.missing.needs
            };
            match arrays.last_mut().filter(fits) {
                Some(array) => array.push(at),
                None => arrays.push(vec![at]),
            }
        }
        arrays.truncate(self.limit.map_or(usize::MAX, |_| 1));
        for (number, array) in arrays.into_iter().enumerate() {
            match call("sbatch", &self.arguments(number, &array)?) {
                Ok(told) => {
                    // With several clusters, the cluster's name follows.
                    let job = told.trim().split(';').next().unwrap_or_default();
                    for (at, task) in array.into_iter().zip(1..) {
                        self.open[at].tries += 1;
                        self.open[at].task = Some(format!("{job}_{task}"));
                    }
                }
                // Slurm may still have accepted it: the queue will tell.
                Err(trouble @ Trouble::Away(_)) => return self.away(&trouble, board),
                Err(trouble) if number == 0 => {
                    self.clear();
                    return Err(refused(trouble.to_string()));
                }
                // Most likely a limit: the next round submits the rest.
                Err(trouble) => {
                    self.tell(trouble.to_string(), board);
                    break;
                }
            }
        }
        Ok(())
    }

    /// The arguments that submit an array; writes its keys.
    fn arguments(&self, number: usize, array: &[usize]) -> Result<Vec<String>> {
        let cells = array.iter().map(|at| self.open[*at].missing.cell);
        let keys = format!("{NAME}/{number}.keys");
        self.store.write(&keys, keys::text(cells).as_bytes())?;
        let needs = self.open[array[0]].missing.needs;
        let program = match &self.engine.program {
            Some(program) => program.clone(),
            None => {
                std::env::current_exe().map_err(CampaignError::file("find", Path::new("luc")))?
            }
        };
        let mut source = self.setup.source.clone();
        if !source.as_os_str().is_empty() {
            source = absolute(&source)?;
        }
        let command = format!(
            "exec {} campaign cell --from {} --nth \"$SLURM_ARRAY_TASK_ID\" --out {}{}",
            quoted(&program)?,
            quoted(&self.dir.join(keys))?,
            quoted(&self.dir)?,
            source_words(&source)?
        );
        let limit = self
            .limit
            .map(|jobs| format!("%{jobs}"))
            .unwrap_or_default();
        let dir = self.dir.display().to_string();
        let mut arguments = vec![
            "--parsable".to_owned(),
            format!("--job-name={}", self.name),
            format!("--array=1-{}{limit}", array.len()),
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
            // Slurm would expand a percent sign in the path.
            format!("--output={}/{NAME}/%A_%a.log", dir.replace('%', "%%")),
            format!("--chdir={dir}"),
            format!("--cpus-per-task={}", needs.processors.max(1)),
            format!("--mem={}M", needs.memory_mib),
            format!("--wrap={command}"),
        ];
        arguments.extend(needs.alone.then(|| "--exclusive".to_owned()));
        let partition = self.engine.partition.as_ref();
        arguments.extend(partition.map(|partition| format!("--partition={partition}")));
        // Last, so that they override ours.
        arguments.extend(self.engine.sbatch_arg.iter().cloned());
        Ok(arguments)
    }

    /// Waits until the queue holds no job, and then for results that are visible late.
    fn wait(&mut self, board: &mut Board<'_>) -> Result<()> {
        let submitted = |open: &Open<'_>| open.task.is_some();
        let is_round = self.open.iter().any(submitted);
        let (mut were_tasks, mut polls_idle) = (is_round, 0);
        loop {
            let queue = self.queue(board)?;
            self.settle(board);
            were_tasks |= !queue.is_empty();
            polls_idle = if queue.is_empty() { polls_idle + 1 } else { 0 };
            let is_owed = |open: &Open<'_>| were_tasks && (submitted(open) || !is_round);
            let are_late = self.open.iter().any(is_owed) && polls_idle <= LATE_POLLS;
            if queue.is_empty() && !are_late {
                return Ok(());
            }
            let waiting = queue
                .iter()
                .filter_map(|line| line.strip_prefix("PENDING|"));
            let waiting: Vec<&str> = waiting.collect();
            let running = queue.len() - waiting.len();
            let is_usual = |reason: &str| USUAL_REASONS.split(", ").any(|usual| usual == reason);
            for reason in waiting.iter().filter(|reason| !is_usual(reason)) {
                self.tell(format!("jobs wait: {reason}"), board);
            }
            let waiting = waiting.len();
            board.say(&format!("slurm: {running} running, {waiting} waiting"));
            self.pause()?;
        }
    }

    /// `STATE|REASON` of each task that has not ended; asks until the controller answers.
    fn queue(&mut self, board: &mut Board<'_>) -> Result<Vec<String>> {
        loop {
            match squeue(&self.name, &["--format=%T|%r"]) {
                Ok(told) => {
                    if std::mem::take(&mut self.is_away) {
                        board.note("slurm answers again");
                    }
                    return Ok(told.lines().map(|line| line.trim().to_owned()).collect());
                }
                Err(trouble) => self.away(&trouble, board)?,
            }
        }
    }

    /// Waits for a controller that does not answer; says so once.
    fn away(&mut self, why: &Trouble, board: &Board<'_>) -> Result<()> {
        if !std::mem::replace(&mut self.is_away, true) {
            board.note(&format!(
                "slurm does not answer ({why}); retrying every {} s; jobs keep running",
                self.poll().as_secs()
            ));
        }
        self.pause()
    }

    fn poll(&self) -> Duration {
        Duration::from_secs(self.engine.poll_s.unwrap_or(POLL_S).max(1).into())
    }

    /// Waits one poll interval; fails early on a signal.
    fn pause(&self) -> Result<()> {
        let end = Instant::now() + self.poll();
        while Instant::now() < end {
            if self.setup.stop.is_set() {
                return Err(CampaignError::Interrupted);
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Reports a text once.
    fn tell(&mut self, text: String, board: &Board<'_>) {
        if !self.told.contains(&text) {
            board.note(&format!("slurm: {text}"));
            self.told.insert(text);
        }
    }

    /// Closes the cells that have a result, or a failure of this run.
    fn settle(&mut self, board: &mut Board<'_>) {
        let store = self.store;
        self.open.retain(|open| {
            let Missing { cell, versions, .. } = &open.missing;
            let failed = store.failure(cell, versions);
            let is_settled =
                store.has(cell, versions) || failed.is_some() && failed != open.failed_before;
            if is_settled {
                board.done(1, &places::shown(cell));
            }
            !is_settled
        });
    }

    /// Decides on the cells whose tasks left nothing: once more, or failed.
    fn judge(&mut self, board: &mut Board<'_>) -> Result<()> {
        // Ended tasks stay known for some minutes.
        let told = squeue(&self.name, &["--states=all", "--format=%F_%K|%T|%r"]);
        let told = told.unwrap_or_default();
        let ends: BTreeMap<&str, (&str, &str)> = told
            .lines()
            .filter_map(|line| {
                let (task, end) = line.trim().split_once('|')?;
                Some((task, end.split_once('|')?))
            })
            .collect();
        for open in &mut self.open {
            let Some(task) = open.task.take() else {
                continue;
            };
            let how = match ends.get(task.as_str()) {
                Some((state, "None")) => (*state).to_owned(),
                Some((state, reason)) => format!("{state}, {reason}"),
                None => "no longer in the queue".to_owned(),
            };
            let Missing { cell, versions, .. } = &open.missing;
            let shown = places::shown(cell);
            if open.tries < TRIES_MAX {
                board.note(&format!(
                    "the job of {shown} left no result ({how}); submitting it again"
                ));
                continue;
            }
            let log = fs::read(self.dir.join(NAME).join(format!("{task}.log")));
            let log = log.unwrap_or_default();
            let log = String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_BYTES)..]);
            let last = log.lines().rfind(|line| !line.trim().is_empty());
            let why = format!(
                "the job ended without a result, {} times ({how}): {}",
                open.tries,
                last.map_or(
                    "it printed nothing; do the nodes see the folder?",
                    str::trim
                )
            );
            self.store.keep_failure(cell, versions, &why, Some(&log))?;
            board.done(1, &shown);
        }
        self.open.retain(|open| open.tries < TRIES_MAX);
        Ok(())
    }

    /// Removes keys and logs, while there are no jobs. If that fails, the next run does it.
    fn clear(&self) {
        let _ = fs::remove_dir_all(self.dir.join(NAME));
    }

    /// Cancels outstanding jobs. Keys and logs stay until a later run finds the queue empty.
    fn cancel(&self, board: &Board<'_>) {
        let name = format!("--name={}", self.name);
        if let Err(trouble) = call("scancel", &[&name]) {
            board.note(&format!(
                "jobs may still run ({trouble}); end them with `scancel {name}`"
            ));
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(CampaignError::file("find", path))
}

/// Why a command of Slurm gave no answer.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The controller does not answer; it may later.
    #[error("{0}")]
    Away(String),
    /// The command is missing, or it refused.
    #[error("{0}")]
    Refused(String),
}

/// The most tasks that an array can have.
fn array_max() -> std::result::Result<usize, Trouble> {
    let config = call("scontrol", &["show", "config"])?;
    let value = config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "MaxArraySize").then(|| value.trim())
    });
    // Task numbers must be below MaxArraySize, and ours start at 1.
    match value.and_then(|value| value.parse::<usize>().ok()) {
        Some(size @ 2..) => Ok(size - 1),
        _ => Err(Trouble::Refused(format!(
            "this cluster does not run job arrays: MaxArraySize is {}",
            value.unwrap_or("not shown")
        ))),
    }
}

/// The queue's tasks of the jobs with this name, a line each.
fn squeue(name: &str, how: &[&str]) -> std::result::Result<String, Trouble> {
    let name = format!("--name={name}");
    call("squeue", &[&["--noheader", "--array", &name], how].concat())
}

/// Runs a Slurm command and returns its standard output.
fn call(
    program: &str,
    arguments: &[impl AsRef<std::ffi::OsStr>],
) -> std::result::Result<String, Trouble> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let output = command.output().map_err(|error| {
        Trouble::Refused(if error.kind() == std::io::ErrorKind::NotFound {
            format!(
                "no {program} in PATH; run this where jobs are submitted, or install Slurm's \
                 commands (Debian: slurm-client)"
            )
        } else {
            format!("{program} does not run: {error}")
        })
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = said.collect::<Vec<_>>().join("; ");
    let why = match said.as_str() {
        "" => format!("{program}: {}", output.status),
        said if said.starts_with(program) => said.to_owned(),
        said => format!("{program}: {said}"),
    };
    let is_away = ["Unable to contact", "timed out", "Connection refused"]
        .iter()
        .any(|text| why.contains(text));
    Err(if is_away {
        Trouble::Away(why)
    } else {
        Trouble::Refused(why)
    })
}
