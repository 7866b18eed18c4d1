//! A file system in memory that can lose power: a page cache, a disk, and one journal
//! transaction at a time, in `data=ordered`. It knows nothing of the judge's rules; its
//! content after a crash is right by construction.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use luc_base::random::next;
use luc_torture::mark::{Durability, Event, Target};
use luc_torture::plan::{Planner, prepare};
use luc_torture::sector::SECTOR_BYTES;

use super::{Marker, MemTree, SESSION, sector};

#[derive(Clone, Debug, Default)]
struct Inode {
    /// The size as the journal knows it.
    bytes: u64,
    /// Sector to block; a block is never used twice.
    map: BTreeMap<u32, u64>,
}

/// Metadata that a commit makes durable.
#[derive(Clone, Debug, Default)]
struct Meta {
    dirs: BTreeSet<String>,
    names: BTreeMap<String, u32>,
    inodes: BTreeMap<u32, Inode>,
}

#[derive(Clone, Debug, Default)]
struct Cached {
    bytes: u64,
    sectors: BTreeMap<u32, [u8; SECTOR_BYTES]>,
    dirty: BTreeSet<u32>,
    /// Sectors whose zeroing must reach the disk before the next commit.
    ordered: BTreeSet<u32>,
}

/// A thread, and the steps left of its event.
#[derive(Clone, Debug)]
struct Running {
    planner: Planner,
    steps: VecDeque<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    /// Takes place at once.
    Act(Event),
    Write(u32, u32, u64),
    WriteBack(u32, u32),
    /// Writes back the sectors that are dirty now.
    Flush(u32),
    Commit,
    /// The sync returns; the file, if any, that it promises as a whole.
    Synced(Option<u32>),
}

/// A fault of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A sync returns although the journal did not commit, one time in four.
    SyncWithoutCommit,
    /// A sync returns before it does anything.
    AckBeforeWrite,
    /// A sync of a file leaves out a sector, one time in four.
    FlushMisses,
    /// The new name of a rename is on the disk before the old one is gone.
    RenameKeepsBoth,
    /// A commit does not wait for the zeroing behind a truncation.
    TailNotZeroed,
    /// A freed block is used again before the commit that frees it.
    BlocksReusedEarly,
    /// A commit leaves out the names of one thread.
    DirsCommitAlone,
    /// Writing back makes the size larger than the file.
    SizeFirst,
}

pub struct Sim {
    bug: Option<Bug>,
    /// Freed blocks to use again, if that is the bug.
    freed: Vec<u64>,
    /// Whether nothing is written back unless asked.
    lazy: bool,
    random: u64,
    running: Meta,
    committed: Meta,
    blocks: BTreeMap<u64, [u8; SECTOR_BYTES]>,
    cache: BTreeMap<u32, Cached>,
    threads: BTreeMap<u32, Running>,
    pub marker: Marker,
    /// Files untouched since a sync that promised all of them, with their names.
    pub pristine: BTreeSet<u32>,
}

impl Sim {
    pub fn new(seed: u64, threads: u32, bug: Option<Bug>) -> Self {
        let plan = |thread| Running {
            planner: Planner::new(seed, thread, threads),
            steps: VecDeque::new(),
        };
        let mut sim = Self {
            bug: None,
            freed: Vec::new(),
            lazy: seed.is_multiple_of(3),
            random: seed,
            running: Meta::default(),
            committed: Meta::default(),
            blocks: BTreeMap::new(),
            cache: BTreeMap::new(),
            threads: (1..=threads).map(|thread| (thread, plan(thread))).collect(),
            marker: Marker::default(),
            pristine: BTreeSet::new(),
        };
        for event in prepare(SESSION, threads) {
            sim.marker.mark(0, event.clone());
            for step in sim.steps(&event) {
                sim.step(0, step);
            }
        }
        sim.bug = bug;
        sim
    }

    pub fn below(&mut self, end: u64) -> u64 {
        next(&mut self.random) % end.max(1)
    }

    /// The steps of an event.
    fn steps(&mut self, event: &Event) -> Vec<Step> {
        match event {
            Event::Write {
                file,
                sector,
                sectors,
                version,
                durability,
            } => {
                let range = *sector..sector + sectors;
                let write = |sector| Step::Write(*file, sector, *version);
                let back = |sector| Step::WriteBack(*file, sector);
                let mut steps: Vec<Step> = range.clone().map(write).collect();
                if *durability != Durability::None {
                    steps.extend(range.map(back));
                    steps.extend([Step::Commit, Step::Synced(None)]);
                }
                steps
            }
            Event::Sync {
                target: Target::File(file),
                data_only,
            } => {
                let all = (!data_only && *file >> 20 > 0).then_some(*file);
                vec![Step::Flush(*file), Step::Commit, Step::Synced(all)]
            }
            Event::Sync {
                target: Target::Dir(_),
                ..
            } => vec![Step::Commit, Step::Synced(None)],
            Event::Sync {
                target: Target::All,
                ..
            } => {
                let files: Vec<u32> = self.cache.keys().copied().collect();
                let flush = files.into_iter().map(Step::Flush);
                flush.chain([Step::Commit, Step::Synced(None)]).collect()
            }
            Event::SyncRange { file } => vec![Step::Flush(*file)],
            other => vec![Step::Act(other.clone())],
        }
    }

    /// One event: a thread takes a step, or the kernel writes back or commits.
    pub fn tick(&mut self) {
        match self.below(20) {
            0 => self.commit(),
            1..4 if !self.lazy => self.write_something_back(),
            _ => {
                let threads = self.threads.len() as u64;
                let thread = u32::try_from(self.below(threads)).unwrap() + 1;
                self.go_on(thread);
            }
        }
    }

    fn go_on(&mut self, thread: u32) {
        let running = self.threads.get_mut(&thread).expect("a thread");
        if let Some(step) = running.steps.pop_front() {
            return self.step(thread, step);
        }
        let event = running.planner.next_event();
        self.marker.mark(thread, event.clone());
        self.touch(&event);
        let mut steps = self.steps(&event);
        if self.bug == Some(Bug::AckBeforeWrite)
            && let Some(Step::Synced(_)) = steps.last()
        {
            steps.rotate_right(1);
            let writes = |step: &Step| matches!(step, Step::Write(..));
            // A write that is acknowledged has at least happened.
            steps.sort_by_key(|step| !writes(step));
        }
        self.threads.get_mut(&thread).expect("a thread").steps = steps.into();
    }

    fn touch(&mut self, event: &Event) {
        let named = |path: &String| self.running.names.get(path).copied();
        let touched = match event {
            Event::Write { file, .. } | Event::Truncate { file, .. } | Event::Link { file, .. } => {
                [Some(*file), None]
            }
            Event::Rename { from, to } => [named(from), named(to)],
            Event::Unlink { path } => [named(path), None],
            _ => return,
        };
        for file in touched.into_iter().flatten() {
            self.pristine.remove(&file);
        }
    }

    fn step(&mut self, thread: u32, step: Step) {
        match step {
            Step::Act(event) => self.act(&event),
            Step::Write(file, at, version) => {
                let cached = self.cache.entry(file).or_default();
                cached.sectors.insert(at, sector(file, at, version));
                cached.dirty.insert(at);
                cached.bytes = cached.bytes.max((u64::from(at) + 1) * SECTOR_BYTES as u64);
            }
            Step::WriteBack(file, at) => self.write_back(file, at),
            Step::Flush(file) => {
                let dirty = self.cache.get(&file).map(|cached| cached.dirty.clone());
                let mut dirty = dirty.unwrap_or_default();
                if self.bug == Some(Bug::FlushMisses)
                    && self.below(4) == 0
                    && let Some(missed) = dirty.pop_first()
                {
                    self.cache.entry(file).or_default().dirty.remove(&missed);
                }
                // One at a time, so that other threads and crashes come in between.
                let steps = dirty.into_iter().map(|at| Step::WriteBack(file, at));
                if let Some(running) = self.threads.get_mut(&thread) {
                    for step in steps.collect::<Vec<_>>().into_iter().rev() {
                        running.steps.push_front(step);
                    }
                } else {
                    steps.for_each(|step| self.step(thread, step));
                }
            }
            Step::Commit => {
                if self.bug != Some(Bug::SyncWithoutCommit) || self.below(4) > 0 {
                    self.commit();
                }
            }
            Step::Synced(all) => {
                self.marker.mark(thread, Event::Synced);
                self.pristine.extend(all);
            }
        }
    }

    fn act(&mut self, event: &Event) {
        let meta = &mut self.running;
        match event {
            Event::MakeDir { path } => {
                meta.dirs.insert(path.clone());
            }
            Event::RemoveDir { path } => {
                meta.dirs.remove(path);
            }
            Event::Create { file, path } => {
                meta.names.insert(path.clone(), *file);
                meta.inodes.insert(*file, Inode::default());
            }
            Event::Link { file, path } => {
                meta.names.insert(path.clone(), *file);
            }
            Event::Rename { from, to } => {
                let file = meta.names.remove(from).expect("old name");
                meta.names.insert(to.clone(), file);
                if self.bug == Some(Bug::RenameKeepsBoth)
                    && self.committed.inodes.contains_key(&file)
                {
                    self.committed.names.insert(to.clone(), file);
                }
            }
            Event::Unlink { path } => {
                meta.names.remove(path);
            }
            Event::Truncate { file, bytes } => self.truncate(*file, *bytes),
            _ => {}
        }
    }

    fn truncate(&mut self, file: u32, bytes: u64) {
        let cached = self.cache.entry(file).or_default();
        let first = u32::try_from(bytes / SECTOR_BYTES as u64).unwrap();
        let inside = usize::try_from(bytes % SECTOR_BYTES as u64).unwrap();
        let whole = first + u32::from(inside > 0);
        cached.sectors.split_off(&whole);
        cached.dirty.split_off(&whole);
        cached.ordered.split_off(&whole);
        cached.bytes = bytes;
        let inode = self.running.inodes.entry(file).or_default();
        inode.bytes = bytes;
        let freed = inode.map.split_off(&whole);
        if self.bug == Some(Bug::BlocksReusedEarly) {
            self.freed.extend(freed.values());
        }
        if inside > 0
            && let Some(last) = cached.sectors.get_mut(&first)
        {
            last[inside..].fill(0);
            cached.dirty.insert(first);
            if inode.map.contains_key(&first) && self.bug != Some(Bug::TailNotZeroed) {
                cached.ordered.insert(first);
            }
        }
    }

    fn write_back(&mut self, file: u32, at: u32) {
        let Some(cached) = self.cache.get_mut(&file) else {
            return;
        };
        cached.dirty.remove(&at);
        cached.ordered.remove(&at);
        let Some(data) = cached.sectors.get(&at) else {
            return;
        };
        let inode = self.running.inodes.entry(file).or_default();
        let next_block = self.blocks.len() as u64;
        let freed = &mut self.freed;
        let new_block = || freed.pop().unwrap_or(next_block);
        let block = *inode.map.entry(at).or_insert_with(new_block);
        self.blocks.insert(block, *data);
        let end = (u64::from(at) + 1) * SECTOR_BYTES as u64;
        let limit = if self.bug == Some(Bug::SizeFirst) {
            cached.bytes + 100
        } else {
            cached.bytes
        };
        let end = if limit > cached.bytes { end + 100 } else { end };
        inode.bytes = inode.bytes.max(end.min(limit));
    }

    /// The sectors of this set, each with its file.
    fn sectors(&self, of: fn(&Cached) -> &BTreeSet<u32>) -> Vec<(u32, u32)> {
        let all = self.cache.iter();
        all.flat_map(|(file, cached)| of(cached).iter().map(|at| (*file, *at)))
            .collect()
    }

    fn write_something_back(&mut self) {
        let dirty = self.sectors(|cached| &cached.dirty);
        if dirty.is_empty() {
            return;
        }
        let pick = usize::try_from(self.below(dirty.len() as u64)).unwrap();
        for (file, at) in dirty.iter().skip(pick).take(4) {
            self.write_back(*file, *at);
        }
    }

    fn commit(&mut self) {
        for (file, at) in self.sectors(|cached| &cached.ordered) {
            self.write_back(file, at);
        }
        let before = std::mem::replace(&mut self.committed, self.running.clone());
        if self.bug == Some(Bug::DirsCommitAlone) {
            let behind = |path: &str| path.starts_with("t2/") || path.contains("/t2-");
            self.committed.names.retain(|path, _| !behind(path));
            let old = before.names.into_iter().filter(|(path, _)| behind(path));
            self.committed.names.extend(old);
            self.committed.dirs.retain(|path| !behind(path));
            self.committed
                .dirs
                .extend(before.dirs.into_iter().filter(|path| behind(path)));
        }
    }

    /// Content of the disk if the power fails now.
    pub fn crash(&self) -> MemTree {
        let mut tree = MemTree {
            dirs: self.committed.dirs.iter().cloned().collect(),
            ..MemTree::default()
        };
        for (path, file) in &self.committed.names {
            tree.names.insert(path.clone(), u64::from(*file));
            let inode = &self.committed.inodes[file];
            let mut data = vec![0; usize::try_from(inode.bytes).unwrap()];
            for (at, block) in &inode.map {
                let start = *at as usize * SECTOR_BYTES;
                if start >= data.len() {
                    continue;
                }
                let end = data.len().min(start + SECTOR_BYTES);
                data[start..end].copy_from_slice(&self.blocks[block][..end - start]);
            }
            tree.inodes.insert(u64::from(*file), data);
        }
        tree
    }
}
