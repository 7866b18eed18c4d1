//! Runs cells as Slurm jobs: each task of a job array measures one cell.
//!
//! ```text
//! DIR/slurm/NAME/keys        the array's cells, one key per line; a task's number is its line
//! DIR/slurm/NAME/NUMBER.log  output of a task
//! ```
//!
//! Slurm decides where and when each task runs, and reruns a task whose node was lost. The queue
//! tells which tasks have ended; the store holds their results and failures. A task that ended
//! without either is submitted once more; after that the cell has failed. A folder NAME is removed
//! once all its tasks are settled. A folder that exists at the start belongs to a run that was
//! killed: its live tasks are waited for.

mod queue;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use self::queue::{Seen, State, Trouble};
use super::{Backend, Engine, Wishes};
use crate::cell::{Cell, Versions};
use crate::error::{CampaignError, Result};
use crate::keys;
use crate::measure::{Board, VersionsOf, place_of};
use crate::places::{self, Needs, Setup};
use crate::store::{Failed, Store};

/// Name on the command line.
pub const NAME: &str = "slurm";

/// Seconds between two queries of the queue. One query covers all tasks; a cell takes longer.
const POLL_S: u32 = 10;
/// Polls to wait for a result after its task has ended. NFS may take up to 60 s (acdirmax) to show
/// a new file.
const LATE_POLLS: u32 = 6;
/// Most submissions of a cell whose task leaves nothing.
const TRIES_MAX: u8 = 2;
/// Last bytes of a task's output that are kept with a failure.
const LOG_BYTES: usize = 65_536;
/// Prefix of the arrays' names.
const PREFIX: &str = "luc-";
/// Reasons for waiting that resolve by themselves. Any other reason is reported, once.
const USUAL_REASONS: [&str; 7] = [
    "None",
    "Resources",
    "Priority",
    "JobArrayTaskLimit",
    "BeginTime",
    "Cleaning",
    "NodeDown",
];

/// Runs cells as tasks of Slurm's job arrays.
pub struct Slurm {
    wishes: Wishes,
    /// Most tasks in an array; queried once, before anything is submitted.
    tasks_max: OnceCell<u32>,
}

/// # Errors
/// Never: Slurm itself checks the options.
#[allow(clippy::unnecessary_wraps)] // the type of a row
pub fn make(wishes: &Wishes) -> Result<Box<dyn Backend>> {
    Ok(Box::new(Slurm {
        wishes: wishes.clone(),
        tasks_max: OnceCell::new(),
    }))
}

fn refused(trouble: &Trouble) -> CampaignError {
    CampaignError::Backend {
        backend: NAME,
        why: trouble.why().to_owned(),
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
        let tasks_max = if let Some(known) = self.tasks_max.get() {
            *known
        } else {
            let asked = queue::array_max().map_err(|trouble| refused(&trouble))?;
            *self.tasks_max.get_or_init(|| asked)
        };
        let mut wave = Wave::new(&self.wishes, tasks_max, cells, store, setup)?;
        let ended = wave.run(board);
        if ended.is_err() {
            wave.cancel(board);
        }
        ended
    }
}

/// A cell to measure, and its attempts so far.
struct Wanted<'a> {
    cell: &'a Cell,
    versions: Versions,
    needs: Needs,
    /// Failure that an earlier run kept.
    failed_before: Option<Failed>,
    tries: u8,
}

/// A submitted task that is not settled yet.
struct Task {
    /// Index of its cell.
    cell: usize,
    /// Name of its array.
    name: String,
    number: u32,
    /// When the task was first seen to have ended, and how.
    ended: Option<(Instant, String)>,
}

struct Wave<'a> {
    engine: Engine,
    jobs: Option<u32>,
    tasks_max: u32,
    wanted: Vec<Wanted<'a>>,
    store: &'a Store,
    setup: &'a Setup,
    /// Folder of the results, as a path that is valid on every node.
    dir: PathBuf,
    source: PathBuf,
    program: PathBuf,
    todo: VecDeque<usize>,
    tasks: Vec<Task>,
    /// Whether nothing more is submitted until a task ends.
    is_full: bool,
    is_away: bool,
    told: BTreeSet<String>,
}

impl<'a> Wave<'a> {
    fn new(
        wishes: &Wishes,
        tasks_max: u32,
        cells: &'a [Cell],
        store: &'a Store,
        setup: &'a Setup,
    ) -> Result<Self> {
        if setup.scratch.is_some() {
            return Err(CampaignError::Backend {
                backend: NAME,
                why: "--device names a device of one machine, but jobs may run on any".to_owned(),
            });
        }
        let engine = wishes.engine.clone().unwrap_or_default();
        let program = match &engine.program {
            Some(program) => program.clone(),
            None => {
                std::env::current_exe().map_err(CampaignError::file("find", Path::new("luc")))?
            }
        };
        let mut versions = VersionsOf::new(setup);
        let mut wanted = Vec::new();
        for cell in cells {
            let versions = versions.of(cell)?.cloned().unwrap_or_default();
            wanted.push(Wanted {
                cell,
                needs: place_of(cell)?.needs(cell),
                failed_before: store.failure(cell, &versions),
                versions,
                tries: 0,
            });
        }
        Ok(Self {
            engine,
            jobs: wishes.jobs,
            tasks_max,
            todo: (0..wanted.len()).collect(),
            wanted,
            store,
            setup,
            dir: absolute(store.dir())?,
            source: if setup.source.as_os_str().is_empty() {
                PathBuf::new()
            } else {
                absolute(&setup.source)?
            },
            program,
            tasks: Vec::new(),
            is_full: false,
            is_away: false,
            told: BTreeSet::new(),
        })
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

    fn run(&mut self, board: &mut Board<'_>) -> Result<()> {
        self.adopt(board)?;
        loop {
            while !self.todo.is_empty() && !self.is_full {
                self.submit(board)?;
            }
            if self.tasks.is_empty() {
                return Ok(());
            }
            self.pause()?;
            let seen = self.look(&self.names(), board)?;
            self.mark(&seen, board);
            self.settle(board)?;
        }
    }

    /// Names of the arrays with outstanding tasks.
    fn names(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.tasks.iter().map(|task| &task.name).collect();
        names.into_iter().cloned().collect()
    }

    /// Queries the queue until it answers.
    fn look(&mut self, names: &[String], board: &mut Board<'_>) -> Result<Vec<Seen>> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        loop {
            match queue::look(&names) {
                Ok(seen) => {
                    self.answers(board);
                    return Ok(seen);
                }
                Err(trouble) => self.away(&trouble, board)?,
            }
        }
    }

    fn answers(&mut self, board: &mut Board<'_>) {
        if std::mem::take(&mut self.is_away) {
            board.note("slurm answers again");
        }
    }

    /// Waits for a controller that does not answer; says so once.
    fn away(&mut self, trouble: &Trouble, board: &mut Board<'_>) -> Result<()> {
        if !std::mem::replace(&mut self.is_away, true) {
            board.note(&format!(
                "slurm does not answer ({}); retrying every {} s; jobs keep running",
                trouble.why(),
                self.poll().as_secs()
            ));
        }
        self.pause()
    }

    /// Adopts the live tasks of a killed run, and removes folders without any.
    fn adopt(&mut self, board: &mut Board<'_>) -> Result<()> {
        let dir = self.dir.join(NAME);
        let Ok(entries) = fs::read_dir(&dir) else {
            return Ok(());
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let own = |name: &String| name.starts_with(PREFIX);
        let names = names.filter_map(|name| name.into_string().ok()).filter(own);
        let names: Vec<String> = names.collect();
        let seen = self.look(&names, board)?;
        let by_key: BTreeMap<String, usize> = (self.wanted.iter().enumerate())
            .map(|(at, wanted)| (wanted.cell.key(), at))
            .collect();
        for name in names {
            let live = seen
                .iter()
                .filter(|seen| seen.name == name && !matches!(seen.state, State::Ended(_)));
            let numbers: Vec<u32> = live.map(|seen| seen.number).collect();
            if numbers.is_empty() {
                self.remove(&name);
                continue;
            }
            let text = fs::read_to_string(dir.join(&name).join("keys")).unwrap_or_default();
            for (line, number) in text.lines().zip(1u32..) {
                let Some(cell) = by_key.get(line).filter(|_| numbers.contains(&number)) else {
                    continue;
                };
                if !self.todo.contains(cell) {
                    continue;
                }
                self.todo.retain(|other| other != cell);
                self.tasks.push(Task {
                    cell: *cell,
                    name: name.clone(),
                    number,
                    ended: None,
                });
            }
        }
        if !self.tasks.is_empty() {
            board.note(&format!(
                "slurm still has {} of an earlier run; waiting for them",
                tasks(self.tasks.len())
            ));
        }
        // Adopted tasks count towards the limit.
        self.is_full = self.jobs.is_some() && !self.tasks.is_empty();
        Ok(())
    }

    /// Submits one array: cells with the same needs, as many as an array can have.
    fn submit(&mut self, board: &mut Board<'_>) -> Result<()> {
        let Some(needs) = self.todo.front().map(|cell| self.wanted[*cell].needs) else {
            return Ok(());
        };
        let chosen = |cell: &&usize| self.wanted[**cell].needs == needs;
        let most = usize::try_from(self.tasks_max).unwrap_or(usize::MAX);
        let cells: Vec<usize> = self
            .todo
            .iter()
            .filter(chosen)
            .take(most)
            .copied()
            .collect();
        let dir = self.dir.join(NAME);
        fs::create_dir_all(&dir).map_err(CampaignError::file("make folder", &dir))?;
        let own = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(12)
            .tempdir_in(&dir)
            .map_err(CampaignError::file("make a folder in", &dir))?;
        let own_path = own.path().to_owned();
        let Some(name) = own_path.file_name().and_then(|name| name.to_str()) else {
            return Ok(());
        };
        let text = keys::text(cells.iter().map(|cell| self.wanted[*cell].cell));
        self.store
            .write(&format!("{NAME}/{name}/keys"), text.as_bytes())?;
        let arguments = self.arguments(name, cells.len(), needs, &own_path);
        let script = self.script(&own_path)?;
        loop {
            match queue::submit(&arguments, &script) {
                Ok(()) => break,
                Err(trouble @ Trouble::Away(_)) => {
                    // Slurm may have accepted the array, with only its answer lost.
                    let asked = self.away(&trouble, board);
                    match asked.and_then(|()| self.look(&[name.to_owned()], board)) {
                        Ok(seen) if seen.is_empty() => {}
                        Ok(_) => break,
                        Err(error) => {
                            // There may be nothing to cancel.
                            let _ = queue::cancel(name);
                            return Err(error);
                        }
                    }
                }
                Err(trouble) if self.tasks.is_empty() => return Err(refused(&trouble)),
                Err(trouble) => {
                    // Most likely a limit: try the rest when a task has ended.
                    self.tell(trouble.why(), board);
                    self.is_full = true;
                    return Ok(());
                }
            }
        }
        self.answers(board);
        // The tasks need the folder; it is removed once they are settled.
        let _ = own.keep();
        self.todo.retain(|cell| !cells.contains(cell));
        for (cell, number) in cells.into_iter().zip(1..) {
            self.wanted[cell].tries += 1;
            self.tasks.push(Task {
                cell,
                name: name.to_owned(),
                number,
                ended: None,
            });
        }
        // Slurm applies the limit to each array, so there is one array at a time.
        self.is_full = self.jobs.is_some();
        Ok(())
    }

    fn arguments(&self, name: &str, tasks: usize, needs: Needs, own: &Path) -> Vec<String> {
        let limit = self
            .jobs
            .map_or_else(String::new, |jobs| format!("%{jobs}"));
        let mut arguments = vec![
            "--parsable".to_owned(),
            format!("--job-name={name}"),
            format!("--array=1-{tasks}{limit}"),
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
            // Slurm would expand a percent sign in the path.
            format!(
                "--output={}/%a.log",
                own.display().to_string().replace('%', "%%")
            ),
            format!("--chdir={}", self.dir.display()),
            format!("--cpus-per-task={}", needs.processors.max(1)),
            format!("--mem={}M", needs.memory_mib),
        ];
        if needs.alone {
            arguments.push("--exclusive".to_owned());
        }
        let partition = self.engine.partition.as_ref();
        arguments.extend(partition.map(|partition| format!("--partition={partition}")));
        // Last, so that they override ours.
        arguments.extend(self.engine.submit_args.iter().cloned());
        arguments
    }

    fn script(&self, own: &Path) -> Result<String> {
        let keys = own.join("keys");
        let mut words = Vec::new();
        for path in [&self.program, &keys, &self.dir] {
            words.push(crate::exports::quoted(path)?);
        }
        let [program, keys, dir] = &words[..] else {
            return Ok(String::new());
        };
        Ok(format!(
            "#!/bin/sh\nexec {program} campaign cell --from {keys} --nth \"$SLURM_ARRAY_TASK_ID\" \
             --out {dir}{}\n",
            crate::exports::source_words(&self.source)?
        ))
    }

    /// Reports a text once.
    fn tell(&mut self, text: &str, board: &Board<'_>) {
        if self.told.insert(text.to_owned()) {
            board.note(&format!("slurm: {text}"));
        }
    }

    /// Records for each task whether it has ended.
    fn mark(&mut self, seen: &[Seen], board: &Board<'_>) {
        let states: BTreeMap<(&str, u32), &State> = seen
            .iter()
            .map(|seen| ((seen.name.as_str(), seen.number), &seen.state))
            .collect();
        let (mut running, mut waiting) = (0, 0);
        let mut unusual: BTreeSet<String> = BTreeSet::new();
        for task in &mut self.tasks {
            let how = match states.get(&(task.name.as_str(), task.number)) {
                Some(State::Runs) => {
                    running += 1;
                    None
                }
                Some(State::Waits(reason)) => {
                    waiting += 1;
                    if !USUAL_REASONS.contains(&reason.as_str()) {
                        unusual.insert(reason.clone());
                    }
                    None
                }
                Some(State::Ended(how)) => Some(how.clone()),
                None => Some("no longer in the queue".to_owned()),
            };
            // A task that Slurm reruns is alive again.
            task.ended = how.map(|how| match task.ended.take() {
                Some(before) => before,
                None => (Instant::now(), how),
            });
        }
        for reason in unusual {
            self.tell(&format!("jobs wait: {reason}"), board);
        }
        board.say(&format!("slurm: {running} running, {waiting} waiting"));
    }

    /// Settles ended tasks: done, submitted again, or given up.
    fn settle(&mut self, board: &mut Board<'_>) -> Result<()> {
        let late = self.poll() * LATE_POLLS;
        let mut touched = BTreeSet::new();
        for task in std::mem::take(&mut self.tasks) {
            let Some((since, how)) = &task.ended else {
                self.tasks.push(task);
                continue;
            };
            let wanted = &self.wanted[task.cell];
            let failed = self.store.failure(wanted.cell, &wanted.versions);
            let has_answer = self.store.has(wanted.cell, &wanted.versions)
                || failed.is_some() && failed != wanted.failed_before;
            if !has_answer {
                if since.elapsed() < late {
                    self.tasks.push(task);
                    continue;
                }
                let shown = places::shown(wanted.cell);
                if wanted.tries < TRIES_MAX {
                    board.note(&format!(
                        "the job of {shown} left no result ({how}); submitting it again"
                    ));
                    self.todo.push_back(task.cell);
                } else {
                    self.give_up(&task, how)?;
                }
            }
            if !self.todo.contains(&task.cell) {
                board.done(1, &places::shown(wanted.cell));
            }
            self.is_full = false;
            touched.insert(task.name);
        }
        // With a limit, the next array waits for the end of this one.
        self.is_full |= self.jobs.is_some() && !self.tasks.is_empty();
        for name in touched {
            if !self.tasks.iter().any(|task| task.name == name) {
                self.remove(&name);
            }
        }
        Ok(())
    }

    /// Records why a cell has no result.
    fn give_up(&self, task: &Task, how: &str) -> Result<()> {
        let wanted = &self.wanted[task.cell];
        let path = self.dir.join(NAME).join(&task.name);
        let path = path.join(format!("{}.log", task.number));
        let log = fs::read(&path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_BYTES)..]);
        let said = match log.lines().rfind(|line| !line.trim().is_empty()) {
            Some(last) => last.trim().to_owned(),
            None => "it printed nothing; do the nodes see the folder?".to_owned(),
        };
        let why = format!(
            "the job ended without a result, {} times ({how}): {said}",
            wanted.tries
        );
        self.store
            .keep_failure(wanted.cell, &wanted.versions, &why, Some(&log))
    }

    /// Removes an array's folder. If that fails, the next run does it.
    fn remove(&self, name: &str) {
        let dir = self.dir.join(NAME);
        let _ = fs::remove_dir_all(dir.join(name));
        // Fails while other arrays have folders.
        let _ = fs::remove_dir(dir);
    }

    /// Cancels outstanding jobs. Their folders stay until a later run finds the tasks ended.
    fn cancel(&self, board: &Board<'_>) {
        for name in self.names() {
            if let Err(trouble) = queue::cancel(&name) {
                board.note(&format!(
                    "jobs may still run ({}); end them with `scancel --name={name}`",
                    trouble.why()
                ));
            }
        }
    }
}

fn tasks(count: usize) -> String {
    let word = if count == 1 { "task" } else { "tasks" };
    format!("{count} {word}")
}

fn absolute(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(CampaignError::file("find", path))
}
