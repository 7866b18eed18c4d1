//! The work of each thread: a sequence of events that follows from the seed alone.
//!
//! A thread owns its names, its files and its sectors of the shared files; it knows their content
//! without reading. So no two threads ever race for an outcome, although they share directories,
//! blocks, inodes' locks and journal transactions.

use std::collections::VecDeque;

use crate::mark::{Durability, Event, Target};
use crate::sector::SECTOR;
use luc_base::random::{mix, next};

/// The directory in which all threads have names.
pub const COMMON: &str = "common";
/// Sectors of a thread in one piece, in each of the shared files: threads share pages in some, and
/// have neighbouring blocks in others.
const SHARED_RUNS: [u32; 4] = [1, 8, 2, 16];
/// Pieces of each thread in a shared file.
const SHARED_PIECES: u32 = 4;
const FILES_MAX: usize = 12;
const FILE_SECTORS_MAX: u32 = 64;
const WRITE_SECTORS_MAX: u32 = 16;
const NAMES_PER_DIR: u32 = 6;
const DIRS: u32 = 2;
const TRIES: usize = 20;

/// The number of a thread's `count`-th file; the shared files are those of thread 0.
fn file_number(thread: u32, count: u32) -> u32 {
    thread << 20 | count
}

fn shared_path(count: u32) -> String {
    format!("{COMMON}/shared{count}")
}

/// The shared files' numbers and names.
pub fn shared_files() -> Vec<(u32, String)> {
    (0..)
        .zip(SHARED_RUNS)
        .map(|(count, _)| (file_number(0, count), shared_path(count)))
        .collect()
}

/// The work of thread 0 before the others start: directories and shared files, all made durable.
pub fn prepare(session: u64, threads: u32) -> Vec<Event> {
    let mut events = vec![Event::Start { session, threads }];
    let make = |path: String| Event::MakeDir { path };
    events.push(make(COMMON.to_owned()));
    events.extend((1..=threads).map(|thread| make(own_dir(thread))));
    for (file, path) in shared_files() {
        events.push(Event::Create { file, path });
        if file % 2 == 1 {
            let run = SHARED_RUNS[file as usize % SHARED_RUNS.len()];
            let sectors = u64::from(run) * u64::from(threads) * u64::from(SHARED_PIECES);
            let bytes = sectors * SECTOR;
            events.push(Event::Truncate { file, bytes });
        }
        events.push(sync_file(file));
    }
    events.push(sync_dir(String::new()));
    events.push(sync_dir(COMMON.to_owned()));
    events
}

fn own_dir(thread: u32) -> String {
    format!("t{thread}")
}

fn sync_file(file: u32) -> Event {
    Event::Sync {
        target: Target::File(file),
        data_only: false,
    }
}

fn sync_dir(dir: String) -> Event {
    Event::Sync {
        target: Target::Dir(dir),
        data_only: false,
    }
}

#[derive(Clone, Debug)]
struct OwnFile {
    file: u32,
    names: Vec<String>,
    bytes: u64,
}

/// Plans one thread.
#[derive(Clone, Debug)]
pub struct Planner {
    random: u64,
    thread: u32,
    threads: u32,
    files_made: u32,
    version: u64,
    files: Vec<OwnFile>,
    dirs: Vec<String>,
    script: VecDeque<Event>,
    files_only: bool,
}

type Events = Option<Vec<Event>>;

impl Planner {
    /// Plans thread `thread` of 1 to `threads`.
    pub fn new(seed: u64, thread: u32, threads: u32) -> Self {
        Self {
            random: mix(seed ^ mix(u64::from(thread))),
            thread,
            threads,
            files_made: 0,
            version: 0,
            files: Vec::new(),
            dirs: vec![own_dir(thread), COMMON.to_owned()],
            script: VecDeque::new(),
            files_only: false,
        }
    }

    /// Syncs files instead of directories and the whole file system.
    #[must_use]
    pub fn files_only(self, files_only: bool) -> Self {
        Self { files_only, ..self }
    }

    fn below(&mut self, end: u32) -> u32 {
        let draw = next(&mut self.random) % u64::from(end.max(1));
        u32::try_from(draw).unwrap_or(0)
    }

    fn index(&mut self, length: usize) -> Option<usize> {
        let end = u32::try_from(length).ok().filter(|end| *end > 0)?;
        Some(self.below(end) as usize)
    }

    /// The thread's next event.
    pub fn next_event(&mut self) -> Event {
        for _ in 0..TRIES {
            if let Some(event) = self.script.pop_front() {
                return self.as_asked(event);
            }
            if let Some(events) = self.draw() {
                self.script.extend(events);
            }
        }
        // No event that was drawn was possible; this one always is.
        let always = sync_dir(own_dir(self.thread));
        let event = self.script.pop_front().unwrap_or(always);
        self.as_asked(event)
    }

    /// The event, or the sync of a file instead.
    fn as_asked(&mut self, event: Event) -> Event {
        let others =
            matches!(&event, Event::Sync { target, .. } if !matches!(target, Target::File(_)));
        if !self.files_only || !others {
            return event;
        }
        let own = self.some_file();
        // The shared files are always there.
        let file = own.map_or(file_number(0, 0), |own| self.files[own].file);
        self.sync_of(file)
    }

    fn draw(&mut self) -> Events {
        match self.below(150) {
            0..14 => self.create(),
            14..46 => self.write(),
            46..53 => self.truncate(),
            53..60 => self.rename(false),
            60..66 => self.rename(true),
            66..70 => self.link(),
            70..78 => self.unlink(),
            78..81 => self.make_dir(),
            81..83 => self.remove_dir(),
            83..98 => self.sync_own(),
            98..107 => self.sync_a_dir(),
            107..112 => self.sync_range(),
            112..118 => self.replace(),
            118..136 => self.write_shared(),
            136..142 => self.sync_shared(),
            142..149 => self.create_and_sync(),
            _ => Some(vec![Event::Sync {
                target: Target::All,
                data_only: false,
            }]),
        }
    }

    fn has_name(&self, is: impl Fn(&str) -> bool) -> bool {
        let mut names = self.files.iter().flat_map(|file| &file.names);
        names.any(|name| is(name))
    }

    fn some_file(&mut self) -> Option<usize> {
        self.index(self.files.len())
    }

    fn free_name(&mut self) -> Option<String> {
        let dir = self.index(self.dirs.len())?;
        let dir = self.dirs[dir].clone();
        let (thread, slot) = (self.thread, self.below(NAMES_PER_DIR));
        let path = if dir == COMMON {
            format!("{dir}/t{thread}-f{slot}")
        } else {
            format!("{dir}/f{slot}")
        };
        (!self.has_name(|name| name == path)).then_some(path)
    }

    fn new_file(&mut self) -> Option<(u32, Event)> {
        if self.files.len() >= FILES_MAX {
            return None;
        }
        let path = self.free_name()?;
        let file = file_number(self.thread, self.files_made);
        self.files_made += 1;
        self.files.push(OwnFile {
            file,
            names: vec![path.clone()],
            bytes: 0,
        });
        Some((file, Event::Create { file, path }))
    }

    fn create(&mut self) -> Events {
        let (_, create) = self.new_file()?;
        let mut events = vec![create];
        if self.below(4) > 0 {
            let last = self.files.len() - 1;
            events.push(self.write_to(last)?);
        }
        Some(events)
    }

    fn create_and_sync(&mut self) -> Events {
        let mut events = self.create()?;
        let file = self.files.last()?.file;
        events.push(self.sync_of(file));
        Some(events)
    }

    fn durability(&mut self) -> Durability {
        match self.below(10) {
            0 => Durability::Full,
            1 => Durability::Data,
            _ => Durability::None,
        }
    }

    fn write_to(&mut self, own: usize) -> Option<Event> {
        let OwnFile { file, bytes, .. } = *self.files.get(own)?;
        let end = u32::try_from(bytes.div_ceil(SECTOR)).ok()?;
        let sector = match self.below(8) {
            // Append, append behind a hole, or overwrite.
            0..3 => end,
            3 => end + self.below(9),
            _ => self.below(end),
        };
        let room = FILE_SECTORS_MAX.checked_sub(sector);
        let room = room.filter(|room| *room > 0)?;
        let sectors = 1 + self.below(room.min(WRITE_SECTORS_MAX));
        let after = u64::from(sector + sectors) * SECTOR;
        self.files[own].bytes = bytes.max(after);
        self.version += 1;
        let durability = self.durability();
        Some(Event::Write {
            file,
            sector,
            sectors,
            version: self.version,
            durability,
        })
    }

    fn write(&mut self) -> Events {
        let own = self.some_file()?;
        Some(vec![self.write_to(own)?])
    }

    fn truncate(&mut self) -> Events {
        let own = self.some_file()?;
        let bytes = self.files[own].bytes;
        let limit = FILE_SECTORS_MAX * 512;
        let wanted = match self.below(6) {
            0 => 0,
            1 => bytes + u64::from(self.below(8192)),
            2 => u64::from(self.below(FILE_SECTORS_MAX)) * SECTOR,
            3 => bytes.saturating_sub(u64::from(self.below(700))),
            _ => u64::from(self.below(limit)).min(bytes),
        };
        let bytes = wanted.min(u64::from(limit));
        let own = &mut self.files[own];
        own.bytes = bytes;
        let file = own.file;
        Some(vec![Event::Truncate { file, bytes }])
    }

    /// Takes a random name of a random file.
    fn some_name(&mut self) -> Option<(usize, usize)> {
        let own = self.some_file()?;
        let name = self.index(self.files[own].names.len())?;
        Some((own, name))
    }

    /// Removes a name, and the file with its last one.
    fn drop_name(&mut self, own: usize, name: usize) -> String {
        let path = self.files[own].names.swap_remove(name);
        if self.files[own].names.is_empty() {
            self.files.swap_remove(own);
        }
        path
    }

    fn rename(&mut self, over: bool) -> Events {
        let (own, name) = self.some_name()?;
        let from = self.files[own].names[name].clone();
        let to = if over {
            let (other, target) = self.some_name()?;
            if other == own {
                return None;
            }
            self.files[other].names[target].clone()
        } else {
            self.free_name()?
        };
        self.files[own].names[name].clone_from(&to);
        if over {
            let file = self.files[own].file;
            let holds = |own: &OwnFile| own.file != file && own.names.contains(&to);
            let other = self.files.iter().position(holds)?;
            let mut names = self.files[other].names.iter();
            let target = names.position(|path| *path == to)?;
            self.drop_name(other, target);
        }
        Some(vec![Event::Rename { from, to }])
    }

    fn link(&mut self) -> Events {
        let own = self.some_file()?;
        let path = self.free_name()?;
        self.files[own].names.push(path.clone());
        let file = self.files[own].file;
        Some(vec![Event::Link { file, path }])
    }

    fn unlink(&mut self) -> Events {
        let (own, name) = self.some_name()?;
        let path = self.drop_name(own, name);
        let mut events = vec![Event::Unlink { path: path.clone() }];
        if self.below(3) == 0 {
            let dir = path.rsplit_once('/')?.0;
            events.push(sync_dir(dir.to_owned()));
        }
        Some(events)
    }

    fn make_dir(&mut self) -> Events {
        let dir = self.below(DIRS);
        let path = format!("{}/d{dir}", own_dir(self.thread));
        if self.dirs.contains(&path) {
            return None;
        }
        self.dirs.push(path.clone());
        Some(vec![Event::MakeDir { path }])
    }

    fn remove_dir(&mut self) -> Events {
        let dir = self.index(self.dirs.len())?;
        // The first two were made before the thread began.
        let path = self.dirs.get(dir).filter(|_| dir >= 2)?.clone();
        let inside = format!("{path}/");
        if self.has_name(|name| name.starts_with(&inside)) {
            return None;
        }
        self.dirs.remove(dir);
        Some(vec![Event::RemoveDir { path }])
    }

    fn sync_of(&mut self, file: u32) -> Event {
        Event::Sync {
            target: Target::File(file),
            data_only: self.below(3) == 0,
        }
    }

    fn sync_own(&mut self) -> Events {
        let own = self.some_file()?;
        let file = self.files[own].file;
        Some(vec![self.sync_of(file)])
    }

    fn sync_a_dir(&mut self) -> Events {
        let dir = self.index(self.dirs.len())?;
        Some(vec![sync_dir(self.dirs[dir].clone())])
    }

    fn sync_range(&mut self) -> Events {
        let own = self.some_file()?;
        let file = self.files[own].file;
        Some(vec![Event::SyncRange { file }])
    }

    /// Replaces a file as programs do: a new one, written and synced, is renamed over it.
    fn replace(&mut self) -> Events {
        let (old, target) = self.some_name()?;
        let to = self.files[old].names[target].clone();
        let (file, create) = self.new_file()?;
        let from = self.files.last()?.names[0].clone();
        let last = self.files.len() - 1;
        let mut events = vec![create, self.write_to(last)?];
        if self.below(4) > 0 {
            events.push(sync_file(file));
        }
        self.files[last].names[0].clone_from(&to);
        self.drop_name(old, target);
        let dir = to.rsplit_once('/')?.0.to_owned();
        events.push(Event::Rename { from, to });
        if self.below(2) == 0 {
            events.push(sync_dir(dir));
        }
        Some(events)
    }

    fn write_shared(&mut self) -> Events {
        let count = self.index(SHARED_RUNS.len())?;
        let run = SHARED_RUNS[count];
        let offset = self.below(run);
        let piece = self.below(SHARED_PIECES);
        let sector = (piece * self.threads + self.thread - 1) * run + offset;
        let sectors = 1 + self.below(run - offset);
        self.version += 1;
        let durability = self.durability();
        Some(vec![Event::Write {
            file: file_number(0, u32::try_from(count).ok()?),
            sector,
            sectors,
            version: self.version,
            durability,
        }])
    }

    fn sync_shared(&mut self) -> Events {
        let count = self.index(SHARED_RUNS.len())?;
        let file = file_number(0, u32::try_from(count).ok()?);
        Some(vec![self.sync_of(file)])
    }
}
