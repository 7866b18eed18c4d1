//! The history that the marks tell: promised states and possible ones.
//!
//! Marks are only ever added, so that one history serves a whole series of cuts. States that a
//! promise has settled are folded together; the cost of judging depends on what is unsettled.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::file_history::{Covered, FileHistory, Range};
use crate::mark::{Durability, Event, MarkError, Placed, Target};

/// Target of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Absent,
    Dir,
    File(u32),
}

/// A name; one thread alone changes it.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) path: String,
    pub(crate) owner: u32,
    /// Its promised target, the mark that began that change, and the acknowledgement.
    pub(crate) base: Value,
    pub(crate) base_begun: u64,
    pub(crate) base_ack: Option<u64>,
    now: Value,
}

/// A change of names that happens at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) begun: u64,
    /// The thread's next mark.
    pub(crate) ended: Option<u64>,
    pub(crate) effects: Vec<(usize, Value)>,
    /// Directories whose sync promises the change.
    dirs: Vec<String>,
    /// File whose sync promises the change.
    file: Option<u32>,
    /// Whether even fdatasync of that file promises it.
    creates: bool,
}

#[derive(Clone, Debug)]
enum Awaited {
    Target { target: Target, data_only: bool },
    Range { file: u32, range: Range, full: bool },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    /// Changes that are not promised, in order.
    pub(crate) changes: VecDeque<Change>,
    /// Marks of the last promised change and of its acknowledgement.
    pub(crate) base_begun: u64,
    pub(crate) base_ack: Option<u64>,
    next_number: u32,
    awaited: Option<(Awaited, Covered)>,
    ended: bool,
}

/// The history that the marks so far tell.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) session: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) names: Vec<Name>,
    by_path: HashMap<String, usize>,
    pub(crate) files: HashMap<u32, FileHistory>,
    /// Files with an unpromised state.
    unsettled: BTreeSet<u32>,
    latest: Covered,
    marks: u64,
    syncs: u64,
    started: bool,
}

/// Most threads of a run.
pub const THREADS_MAX: u32 = 4000;
/// Most sectors of a file: bounds the memory that a mark can ask for.
pub const SECTORS_MAX: u32 = 1 << 16;

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl History {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// The history that these marks tell.
    ///
    /// # Errors
    /// A mark makes no sense.
    pub fn from_marks(marks: &[Placed]) -> Result<Self, MarkError> {
        let mut history = Self::new();
        for placed in marks {
            history.push(placed)?;
        }
        Ok(history)
    }

    /// Number of marks.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// Number of acknowledged syncs.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    pub(crate) fn name(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// Adds the next mark.
    ///
    /// # Errors
    /// The mark makes no sense after those before it; the history is then unusable.
    pub fn push(&mut self, placed: &Placed) -> Result<(), MarkError> {
        let mark = &placed.mark;
        let nonsense = |why: String| MarkError::Nonsense {
            at: placed.index,
            thread: mark.thread,
            why,
        };
        self.enter(placed).map_err(nonsense)?;
        let (at, thread) = (placed.index, mark.thread);
        self.apply(&mark.event, at, thread).map_err(nonsense)?;
        self.marks += 1;
        Ok(())
    }

    /// Checks the mark's thread and number, and ends the thread's call before it.
    fn enter(&mut self, placed: &Placed) -> Result<(), String> {
        let mark = &placed.mark;
        match (&mark.event, self.started) {
            (Event::Start { session, threads }, false) => {
                if *threads > THREADS_MAX {
                    return Err(format!("{threads} threads, at most {THREADS_MAX}"));
                }
                let count = *threads as usize + 1;
                self.started = true;
                self.session = *session;
                self.threads.resize_with(count, Thread::default);
                self.latest = Covered(vec![0; count]);
            }
            (Event::Start { .. }, true) => return Err("a second start".into()),
            (_, false) => return Err("the start is missing".into()),
            (_, true) => {}
        }
        let known = self.threads.len() - 1;
        let thread = self.threads.get_mut(mark.thread as usize);
        let thread = thread.ok_or_else(|| format!("there are threads 0 to {known}"))?;
        if thread.ended {
            return Err("the thread had ended".into());
        }
        if thread.next_number != mark.number {
            let next = thread.next_number;
            return Err(format!("it has number {}, not {next}", mark.number));
        }
        thread.next_number += 1;
        let awaits = thread.awaited.is_some();
        let ends_wait = matches!(mark.event, Event::Synced | Event::Failed { .. });
        if awaits && !ends_wait {
            return Err("a sync before it has not returned".into());
        }
        if matches!(mark.event, Event::Failed { .. }) {
            // A failed call may have happened in part. It stays open: no sync ever covers it.
            thread.ended = true;
            thread.awaited = None;
            return Ok(());
        }
        if let Some(change) = thread.changes.back_mut() {
            change.ended = change.ended.or(Some(placed.index));
        }
        self.latest.0[mark.thread as usize] = placed.index;
        Ok(())
    }

    fn apply(&mut self, event: &Event, at: u64, thread: u32) -> Result<(), String> {
        match event {
            Event::Start { .. } | Event::Failed { .. } => {}
            Event::Create { file, path } => {
                if self.files.contains_key(file) {
                    return Err(format!("file {file} exists"));
                }
                self.files.insert(*file, FileHistory::new(at, thread));
                let effect = self.make(path, thread, Value::File(*file))?;
                self.change(at, thread, vec![effect], Some(*file), true);
            }
            Event::MakeDir { path } => {
                let effect = self.make(path, thread, Value::Dir)?;
                self.change(at, thread, vec![effect], None, false);
            }
            Event::Link { file, path } => {
                self.file(*file)?;
                let effect = self.make(path, thread, Value::File(*file))?;
                self.change(at, thread, vec![effect], Some(*file), false);
            }
            Event::RemoveDir { path } => {
                let (name, value) = self.existing(path, thread)?;
                if value != Value::Dir {
                    return Err(format!("{path} is no directory"));
                }
                self.change(at, thread, vec![(name, Value::Absent)], None, false);
            }
            Event::Unlink { path } => {
                let (name, file) = self.existing_file(path, thread)?;
                self.change(at, thread, vec![(name, Value::Absent)], Some(file), false);
            }
            Event::Rename { from, to } => {
                let (old, file) = self.existing_file(from, thread)?;
                let (new, before) = self.own(to, thread)?;
                if before == Value::Dir || before == Value::File(file) {
                    return Err(format!("{from} cannot be renamed to {to}"));
                }
                let effects = vec![(old, Value::Absent), (new, Value::File(file))];
                self.change(at, thread, effects, Some(file), false);
            }
            Event::Write {
                file,
                sector,
                sectors,
                version,
                durability,
            } => {
                let range = Range {
                    sector: *sector,
                    sectors: *sectors,
                    version: *version,
                };
                self.write(at, thread, *file, range, *durability)?;
            }
            Event::Truncate { file, bytes } => {
                let max = u64::from(SECTORS_MAX) * crate::sector::SECTOR;
                if *bytes > max {
                    return Err(format!("{bytes} bytes, at most {max}"));
                }
                self.file(*file)?.truncate(*bytes, at, thread);
                self.unsettled.insert(*file);
            }
            Event::Sync { target, data_only } => {
                if let Target::File(file) = target {
                    self.file(*file)?;
                }
                let target = target.clone();
                let data_only = *data_only;
                self.wait(thread, Awaited::Target { target, data_only });
            }
            Event::SyncRange { file } => {
                self.file(*file)?;
            }
            Event::Synced => self.synced(at, thread)?,
            Event::Done => self.threads[thread as usize].ended = true,
        }
        Ok(())
    }

    fn write(
        &mut self,
        at: u64,
        thread: u32,
        file: u32,
        range: Range,
        durability: Durability,
    ) -> Result<(), String> {
        let Range {
            sector,
            sectors,
            version,
        } = range;
        let end = sector.checked_add(sectors);
        if sectors == 0 || end.is_none_or(|end| end > SECTORS_MAX) || version == 0 {
            return Err(format!(
                "version {version} of {sectors} sectors from {sector}"
            ));
        }
        self.file(file)?.write(range, at, thread);
        self.unsettled.insert(file);
        if durability != Durability::None {
            let full = durability == Durability::Full;
            self.wait(thread, Awaited::Range { file, range, full });
        }
        Ok(())
    }

    fn wait(&mut self, thread: u32, awaited: Awaited) {
        let covered = self.latest.clone();
        self.threads[thread as usize].awaited = Some((awaited, covered));
    }

    fn synced(&mut self, at: u64, thread: u32) -> Result<(), String> {
        let awaited = self.threads[thread as usize].awaited.take();
        let (awaited, covered) = awaited.ok_or("no sync was begun")?;
        self.syncs += 1;
        match awaited {
            Awaited::Target {
                target: Target::File(file),
                data_only,
            } => {
                self.file(file)?.synced(&covered, at);
                let of_file =
                    |change: &Change| change.file == Some(file) && (change.creates || !data_only);
                self.fold(&covered, at, of_file);
            }
            Awaited::Target {
                target: Target::Dir(dir),
                ..
            } => self.fold(&covered, at, |change| change.dirs.contains(&dir)),
            Awaited::Target {
                target: Target::All,
                ..
            } => {
                for file in std::mem::take(&mut self.unsettled) {
                    if let Some(history) = self.files.get_mut(&file) {
                        history.synced(&covered, at);
                        if !history.is_settled() {
                            self.unsettled.insert(file);
                        }
                    }
                }
                self.fold(&covered, at, |_| true);
            }
            Awaited::Range { file, range, full } => {
                self.file(file)?.synced_range(range, &covered, at);
                let of_file =
                    |change: &Change| change.file == Some(file) && (change.creates || full);
                self.fold(&covered, at, of_file);
            }
        }
        Ok(())
    }

    /// Promises, in every thread, all changes up to the last covered one that `is_meant`.
    fn fold(&mut self, covered: &Covered, ack: u64, is_meant: impl Fn(&Change) -> bool) {
        for (number, thread) in (0..).zip(&mut self.threads) {
            let meant = |change: &Change| covered.has(number, change.begun) && is_meant(change);
            let Some(last) = thread.changes.iter().rposition(meant) else {
                continue;
            };
            for change in thread.changes.drain(..=last) {
                thread.base_begun = change.begun;
                thread.base_ack = Some(ack);
                for (name, value) in change.effects {
                    let name = &mut self.names[name];
                    name.base = value;
                    name.base_begun = change.begun;
                    name.base_ack = Some(ack);
                }
            }
        }
    }

    fn file(&mut self, file: u32) -> Result<&mut FileHistory, String> {
        let unknown = || format!("no mark made file {file}");
        self.files.get_mut(&file).ok_or_else(unknown)
    }

    /// A name that the thread may change, and its target.
    fn own(&mut self, path: &str, thread: u32) -> Result<(usize, Value), String> {
        let dir = parent(path);
        let in_dir = dir.is_empty()
            || self
                .name(dir)
                .is_some_and(|name| self.names[name].now == Value::Dir);
        if path.is_empty() || !in_dir {
            return Err(format!("{path:?} is in no known directory"));
        }
        if let Some(name) = self.name(path) {
            let Name { owner, now, .. } = self.names[name];
            return if owner == thread {
                Ok((name, now))
            } else {
                Err(format!("{path} is a name of thread {owner}"))
            };
        }
        let name = self.names.len();
        self.names.push(Name {
            path: path.to_owned(),
            owner: thread,
            base: Value::Absent,
            base_begun: 0,
            base_ack: None,
            now: Value::Absent,
        });
        self.by_path.insert(path.to_owned(), name);
        Ok((name, Value::Absent))
    }

    fn make(&mut self, path: &str, thread: u32, value: Value) -> Result<(usize, Value), String> {
        match self.own(path, thread)? {
            (name, Value::Absent) => Ok((name, value)),
            _ => Err(format!("{path} exists")),
        }
    }

    fn existing(&mut self, path: &str, thread: u32) -> Result<(usize, Value), String> {
        match self.own(path, thread)? {
            (_, Value::Absent) => Err(format!("there is no {path}")),
            found => Ok(found),
        }
    }

    fn existing_file(&mut self, path: &str, thread: u32) -> Result<(usize, u32), String> {
        match self.existing(path, thread)? {
            (name, Value::File(file)) => Ok((name, file)),
            _ => Err(format!("{path} is a directory")),
        }
    }

    fn change(
        &mut self,
        begun: u64,
        thread: u32,
        effects: Vec<(usize, Value)>,
        file: Option<u32>,
        creates: bool,
    ) {
        let mut dirs = Vec::with_capacity(2);
        for (name, value) in &effects {
            let name = &mut self.names[*name];
            name.now = *value;
            let dir = parent(&name.path);
            if !dirs.iter().any(|known| known == dir) {
                dirs.push(dir.to_owned());
            }
            // A new directory's own sync promises its name, as that of a new file does.
            if *value == Value::Dir {
                dirs.push(name.path.clone());
            }
        }
        self.threads[thread as usize].changes.push_back(Change {
            begun,
            ended: None,
            effects,
            dirs,
            file,
            creates,
        });
    }
}
