//! Performs the planned events, with a mark before and after each.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::mark::{Durability, Event, Mark, MarkError, Target};
use crate::plan::{Planner, prepare, shared_files};
use crate::sector::{Label, SECTOR, SECTOR_BYTES};
use luc_base::random::mix;

/// How many files with a removed name a thread keeps open.
const REMOVED_OPEN: usize = 4;

/// The most threads, over all processes.
pub const WORK_THREADS_MAX: u32 = 256;

/// The work of a run: arguments of `luc-lab promises work`.
#[derive(clap::Args, Clone, Debug)]
pub struct Work {
    /// An empty directory to work in
    #[arg(long, value_hint = clap::ValueHint::DirPath)]
    pub dir: PathBuf,
    /// New file for the marks, or the log of a recorded disk
    #[arg(long, value_hint = clap::ValueHint::FilePath)]
    pub acks: PathBuf,
    /// Threads per process
    #[arg(long, default_value_t = 4)]
    pub threads: u32,
    /// Number of processes
    #[arg(long, default_value_t = 1)]
    pub processes: u32,
    /// Seed of the threads' operations
    // It decides everything that a thread does.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Operations per thread
    #[arg(long, default_value_t = 1000, conflicts_with = "seconds")]
    pub ops: u64,
    /// Work for this many seconds instead
    #[arg(long)]
    pub seconds: Option<u32>,
    /// End with a sync of the file system
    // Then everything is promised.
    #[arg(long)]
    pub sync_at_end: bool,
    /// Sync files only, neither directories nor the whole file system
    #[arg(long)]
    pub files_only: bool,
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Operations begun.
    pub operations: u64,
    /// Syncs acknowledged.
    pub syncs: u64,
    /// Calls that failed; the thread stopped there.
    pub failures: Vec<String>,
}

impl Done {
    fn add(&mut self, other: Done) {
        self.operations += other.operations;
        self.syncs += other.syncs;
        self.failures.extend(other.failures);
    }
}

/// Why the work could not be done.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// A call outside the workload itself failed.
    #[error("cannot {what} {path}: {why}")]
    Call {
        /// A verb.
        what: &'static str,
        path: String,
        why: io::Error,
    },
    /// The directory is not empty.
    #[error("{0} is not empty: it contains {1}")]
    NotEmpty(String, String),
    /// The file of marks is not empty.
    #[error("{0} is not empty; marks of two runs cannot be told apart")]
    MarksThere(String),
    /// Too many threads, or none.
    #[error("{0} threads; the number must be 1 to {WORK_THREADS_MAX}")]
    Threads(u64),
    /// A mark cannot be written.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// Another process of the work failed.
    #[error("process {rank} of the work: {why}")]
    Process { rank: u32, why: String },
}

fn call(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WorkError {
    let path = path.display().to_string();
    move |why| WorkError::Call { what, path, why }
}

impl Work {
    fn all_threads(&self) -> Result<u32, WorkError> {
        let threads = u64::from(self.processes) * u64::from(self.threads);
        let number = u32::try_from(threads).ok();
        number
            .filter(|threads| (1..=WORK_THREADS_MAX).contains(threads))
            .ok_or(WorkError::Threads(threads))
    }

    fn session(&self) -> u64 {
        mix(self.seed ^ 0x746f_7274_7572_6521)
    }

    fn open_acks(&self) -> Result<File, WorkError> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.acks)
            .map_err(call("open the marks", &self.acks))
    }

    fn hand(&self, thread: u32) -> Result<Hand, WorkError> {
        Ok(Hand {
            dir: self.dir.clone(),
            acks: self.open_acks()?,
            session: self.session(),
            thread,
            number: 0,
            paths: shared_files()
                .into_iter()
                .map(|(file, path)| (file, vec![path]))
                .collect(),
            shared: HashMap::new(),
            removed: VecDeque::new(),
            done: Done::default(),
        })
    }
}

/// Does all of the work. With more than one process, `spawn` returns the command that calls
/// [`work_rank`] for a rank from 1 on and prints its [`Done`] as JSON.
///
/// # Errors
/// The work could not begin or be marked. Failed calls are in [`Done::failures`].
pub fn work(work: &Work, spawn: &dyn Fn(u32) -> Command) -> Result<Done, WorkError> {
    let threads = work.all_threads()?;
    check_empty(work)?;
    let mut first = work.hand(0)?;
    for event in prepare(work.session(), threads) {
        if !first.perform(&event)? {
            return Ok(first.done);
        }
    }
    let mut children = Vec::new();
    for rank in 1..work.processes {
        let child = spawn(rank)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        children.push((rank, child.map_err(call("start", Path::new("a process")))?));
    }
    let own = work_rank(work, 0);
    let mut done = Done::default();
    for (rank, child) in children {
        let wrong = |why: String| WorkError::Process { rank, why };
        let output = child
            .wait_with_output()
            .map_err(|error| wrong(error.to_string()))?;
        if !output.status.success() {
            return Err(wrong(output.status.to_string()));
        }
        done.add(serde_json::from_slice(&output.stdout).map_err(|error| wrong(error.to_string()))?);
    }
    done.add(own?);
    if work.sync_at_end && done.failures.is_empty() {
        first.perform(&Event::Sync {
            target: Target::All,
            data_only: false,
        })?;
    }
    if first.done.failures.is_empty() {
        first.mark(&Event::Done)?;
    }
    done.add(first.done);
    Ok(done)
}

/// Does the part of one process, after everything is prepared.
///
/// # Errors
/// Marks cannot be written.
pub fn work_rank(work: &Work, rank: u32) -> Result<Done, WorkError> {
    let all = work.all_threads()?;
    let first = rank.saturating_mul(work.threads) + 1;
    let time = work
        .seconds
        .map(|seconds| Duration::from_secs(seconds.into()));
    let deadline = time.map(|time| Instant::now() + time);
    let hands: Result<Vec<_>, _> = (0..work.threads).map(|n| work.hand(first + n)).collect();
    let run = |mut hand: Hand| -> Result<Done, WorkError> {
        let mut planner = Planner::new(work.seed, hand.thread, all).files_only(work.files_only);
        let goes_on = |done: &Done| match deadline {
            Some(end) => Instant::now() < end,
            None => done.operations < work.ops,
        };
        while goes_on(&hand.done) {
            if !hand.perform(&planner.next_event())? {
                return Ok(hand.done);
            }
        }
        hand.mark(&Event::Done)?;
        Ok(hand.done)
    };
    let outcomes = std::thread::scope(|scope| {
        let spawn = |hand| scope.spawn(|| run(hand));
        let handles: Vec<_> = hands?.into_iter().map(spawn).collect();
        let join = |handle: ScopedJoinHandle<Result<_, _>>| {
            handle.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        let outcomes: Result<Vec<Done>, WorkError> = handles.into_iter().map(join).collect();
        outcomes
    })?;
    let mut done = Done::default();
    for outcome in outcomes {
        done.add(outcome);
    }
    Ok(done)
}

fn check_empty(work: &Work) -> Result<(), WorkError> {
    for entry in fs::read_dir(&work.dir).map_err(call("read", &work.dir))? {
        let name = entry.map_err(call("read", &work.dir))?.file_name();
        if name != "lost+found" {
            let name = name.to_string_lossy().into_owned();
            return Err(WorkError::NotEmpty(work.dir.display().to_string(), name));
        }
    }
    let marks = work.open_acks()?;
    let metadata = marks.metadata().map_err(call("look at", &work.acks))?;
    if metadata.is_file() && metadata.len() > 0 {
        return Err(WorkError::MarksThere(work.acks.display().to_string()));
    }
    Ok(())
}

/// Writes a thread's marks and makes its calls.
struct Hand {
    dir: PathBuf,
    acks: File,
    session: u64,
    thread: u32,
    number: u32,
    /// Names of the files it knows.
    paths: HashMap<u32, Vec<String>>,
    /// Shared files stay open, so that an error in writing another thread's data is not missed.
    shared: HashMap<u32, File>,
    /// Files whose names it removed last. Those without another name are orphans while they are
    /// open: after a power cut the file system has to remove them.
    removed: VecDeque<File>,
    done: Done,
}

impl Hand {
    fn mark(&mut self, event: &Event) -> Result<(), WorkError> {
        let mark = Mark {
            thread: self.thread,
            number: self.number,
            event: event.clone(),
        };
        let bytes = mark.encode()?;
        // In one call: a log takes a mark whole or not at all.
        let whole = |written| match written {
            written if written == bytes.len() => Ok(()),
            _ => Err(io::Error::other("a mark was written only in part")),
        };
        let written = self.acks.write(&bytes).and_then(whole);
        written.map_err(call("write a mark to", Path::new("the marks")))?;
        self.number += 1;
        Ok(())
    }

    /// Marks and performs one event; false if it failed.
    fn perform(&mut self, event: &Event) -> Result<bool, WorkError> {
        self.mark(event)?;
        self.done.operations += 1;
        if let Err(error) = self.act(event) {
            let failure = format!("thread {}: {event:?}: {error}", self.thread);
            self.done.failures.push(failure);
            let errno = error.raw_os_error().unwrap_or(0);
            self.mark(&Event::Failed { errno })?;
            return Ok(false);
        }
        let durable = match event {
            Event::Sync { .. } => true,
            Event::Write { durability, .. } => *durability != Durability::None,
            _ => false,
        };
        if durable {
            self.mark(&Event::Synced)?;
            self.done.syncs += 1;
        }
        Ok(true)
    }

    fn act(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Create { file, path } => {
                let full = self.dir.join(path);
                OpenOptions::new().write(true).create_new(true).open(full)?;
                self.paths.entry(*file).or_default().push(path.clone());
            }
            Event::MakeDir { path } => fs::create_dir(self.dir.join(path))?,
            Event::RemoveDir { path } => fs::remove_dir(self.dir.join(path))?,
            Event::Link { file, path } => {
                fs::hard_link(self.path(*file)?, self.dir.join(path))?;
                self.paths.entry(*file).or_default().push(path.clone());
            }
            Event::Rename { from, to } => {
                self.keep_open(to);
                fs::rename(self.dir.join(from), self.dir.join(to))?;
                self.forget(to);
                for name in self.paths.values_mut().flatten() {
                    if name == from {
                        name.clone_from(to);
                    }
                }
            }
            Event::Unlink { path } => {
                self.keep_open(path);
                fs::remove_file(self.dir.join(path))?;
                self.forget(path);
            }
            Event::Write {
                file,
                sector,
                sectors,
                version,
                durability,
            } => {
                let bytes = self.sectors(*file, *sector..*sector + *sectors, *version);
                let offset = u64::from(*sector) * SECTOR;
                let write = |file: &File| file.write_all_at(&bytes, offset);
                match durability {
                    Durability::None => self.with(*file, write)?,
                    Durability::Data => write(&self.open(*file, OFlags::DSYNC)?)?,
                    Durability::Full => write(&self.open(*file, OFlags::SYNC)?)?,
                }
            }
            Event::Truncate { file, bytes } => self.with(*file, |file| file.set_len(*bytes))?,
            Event::Sync { target, data_only } => match target {
                Target::File(file) if *data_only => self.with(*file, File::sync_data)?,
                Target::File(file) => self.with(*file, File::sync_all)?,
                Target::Dir(path) => File::open(self.dir.join(path))?.sync_all()?,
                Target::All => rustix::fs::syncfs(File::open(&self.dir)?)?,
            },
            Event::SyncRange { file } => self.with(*file, sync_range)?,
            Event::Start { .. } | Event::Synced | Event::Failed { .. } | Event::Done => {}
        }
        Ok(())
    }

    /// Opens the file of a name that is about to be removed, if there is one.
    fn keep_open(&mut self, path: &str) {
        if let Ok(file) = File::open(self.dir.join(path)) {
            self.removed.push_back(file);
        }
        if self.removed.len() > REMOVED_OPEN {
            self.removed.pop_front();
        }
    }

    fn forget(&mut self, path: &str) {
        for names in self.paths.values_mut() {
            names.retain(|name| name != path);
        }
        self.paths.retain(|_, names| !names.is_empty());
    }

    fn path(&self, file: u32) -> io::Result<PathBuf> {
        let name = self.paths.get(&file).and_then(|names| names.first());
        let name = name.ok_or_else(|| io::Error::other(format!("file {file} has no name")))?;
        Ok(self.dir.join(name))
    }

    fn open(&self, file: u32, flags: OFlags) -> io::Result<File> {
        let flags = flags.bits().cast_signed();
        OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(self.path(file)?)
    }

    fn with(&mut self, file: u32, act: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        if !shared_files().iter().any(|(shared, _)| *shared == file) {
            return act(&self.open(file, OFlags::empty())?);
        }
        if !self.shared.contains_key(&file) {
            self.shared.insert(file, self.open(file, OFlags::empty())?);
        }
        act(&self.shared[&file])
    }

    fn sectors(&self, file: u32, range: std::ops::Range<u32>, version: u64) -> Vec<u8> {
        let mut bytes = vec![0; range.len() * SECTOR_BYTES];
        let (whole, _) = bytes.as_chunks_mut::<SECTOR_BYTES>();
        for (sector, into) in range.zip(whole) {
            let label = Label {
                session: self.session,
                file,
                sector,
                version,
            };
            label.fill(into);
        }
        bytes
    }
}

fn sync_range(file: &File) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: takes no pointer, and the descriptor is open as long as the reference lives.
    let code = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
