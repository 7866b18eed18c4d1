//! Trees in memory, and a scene in which a test performs events one by one.

#![allow(dead_code)] // every test uses a part of it

pub mod sim;

use std::collections::BTreeMap;
use std::io;

use luc_torture::mark::{Durability, Event, Mark, Placed, Target};
use luc_torture::sector::{Label, SECTOR_BYTES};
use luc_torture::tree::{Entry, Listing, Tree, Type};
use luc_torture::{DataMode, History, Kind, Report, Violation, verify};

pub const SESSION: u64 = 0x5e55;

/// A tree made up by a test.
#[derive(Clone, Debug, Default)]
pub struct MemTree {
    pub dirs: Vec<String>,
    /// Name to inode.
    pub names: BTreeMap<String, u64>,
    pub inodes: BTreeMap<u64, Vec<u8>>,
    pub broken: Vec<String>,
}

impl Tree for MemTree {
    fn list(&self) -> io::Result<Listing> {
        let dir = |path: &String| Entry {
            path: path.clone(),
            kind: Type::Dir,
            inode: 0,
            links: 2,
            bytes: 4096,
        };
        let file = |(path, inode): (&String, &u64)| Entry {
            path: path.clone(),
            kind: Type::File,
            inode: *inode,
            links: self.names.values().filter(|other| *other == inode).count() as u64,
            bytes: self.inodes[inode].len() as u64,
        };
        let dirs = self.dirs.iter().map(dir);
        Ok(Listing {
            entries: dirs.chain(self.names.iter().map(file)).collect(),
            unreadable: vec![],
        })
    }

    fn read(&self, path: &str, bytes_max: u64, into: &mut Vec<u8>) -> io::Result<()> {
        if self.broken.iter().any(|broken| broken == path) {
            return Err(io::Error::other("structure needs cleaning"));
        }
        let data = &self.inodes[&self.names[path]];
        let end = data.len().min(usize::try_from(bytes_max).unwrap());
        into.extend(&data[..end]);
        Ok(())
    }
}

impl MemTree {
    pub fn data(&mut self, path: &str) -> &mut Vec<u8> {
        self.inodes.get_mut(&self.names[path]).expect("inode")
    }

    pub fn put(&mut self, path: &str, sector: u32, bytes: &[u8]) {
        let start = sector as usize * SECTOR_BYTES;
        write_at(self.data(path), start, bytes);
    }
}

fn write_at(data: &mut Vec<u8>, start: usize, bytes: &[u8]) {
    let end = start + bytes.len();
    if data.len() < end {
        data.resize(end, 0);
    }
    data[start..end].copy_from_slice(bytes);
}

pub fn sector(file: u32, sector: u32, version: u64) -> [u8; SECTOR_BYTES] {
    let label = Label {
        session: SESSION,
        file,
        sector,
        version,
    };
    let mut bytes = [0; SECTOR_BYTES];
    label.fill(&mut bytes);
    bytes
}

/// Marks one after the other, each with its thread's next number.
#[derive(Clone, Debug, Default)]
pub struct Marker {
    pub history: History,
    marks: u64,
    numbers: BTreeMap<u32, u32>,
}

impl Marker {
    /// Returns the mark's index.
    pub fn mark(&mut self, thread: u32, event: Event) -> u64 {
        let number = self.numbers.entry(thread).or_default();
        let mark = Mark {
            thread,
            number: *number,
            event,
        };
        *number += 1;
        let index = self.marks;
        self.marks += 1;
        self.history
            .push(&Placed { index, mark })
            .expect("a sensible mark");
        index
    }
}

/// Marks, and the tree as a file system that loses nothing would have it.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub marker: Marker,
    pub tree: MemTree,
}

pub fn sync(target: Target, data_only: bool) -> Event {
    Event::Sync { target, data_only }
}

impl Scene {
    /// Threads 1 and 2 with a directory each, made durable.
    pub fn new() -> Self {
        let mut scene = Self::default();
        let (session, threads) = (SESSION, 2);
        scene.event(0, Event::Start { session, threads });
        for dir in ["a", "b"] {
            scene.event(0, Event::MakeDir { path: dir.into() });
        }
        scene.synced(0, Target::Dir(String::new()));
        scene
    }

    /// Marks and does it; returns the mark's index.
    pub fn event(&mut self, thread: u32, event: Event) -> u64 {
        self.apply(&event);
        self.mark(thread, event)
    }

    /// Marks the intent only.
    pub fn mark(&mut self, thread: u32, event: Event) -> u64 {
        self.marker.mark(thread, event)
    }

    fn apply(&mut self, event: &Event) {
        let tree = &mut self.tree;
        match event {
            Event::MakeDir { path } => tree.dirs.push(path.clone()),
            Event::RemoveDir { path } => tree.dirs.retain(|dir| dir != path),
            Event::Create { file, path } => {
                tree.names.insert(path.clone(), u64::from(*file));
                tree.inodes.insert(u64::from(*file), vec![]);
            }
            Event::Link { file, path } => {
                tree.names.insert(path.clone(), u64::from(*file));
            }
            Event::Rename { from, to } => {
                let inode = tree.names.remove(from).expect("old name");
                tree.names.insert(to.clone(), inode);
            }
            Event::Unlink { path } => {
                tree.names.remove(path);
            }
            Event::Write {
                file,
                sector: first,
                sectors,
                version,
                ..
            } => {
                let data = tree.inodes.get_mut(&u64::from(*file)).expect("inode");
                for at in *first..first + sectors {
                    write_at(
                        data,
                        at as usize * SECTOR_BYTES,
                        &sector(*file, at, *version),
                    );
                }
            }
            Event::Truncate { file, bytes } => {
                let data = tree.inodes.get_mut(&u64::from(*file)).expect("inode");
                data.resize(usize::try_from(*bytes).unwrap(), 0);
            }
            _ => {}
        }
    }

    pub fn synced(&mut self, thread: u32, target: Target) -> u64 {
        self.mark(thread, sync(target, false));
        self.mark(thread, Event::Synced)
    }

    pub fn datasynced(&mut self, thread: u32, file: u32) -> u64 {
        self.mark(thread, sync(Target::File(file), true));
        self.mark(thread, Event::Synced)
    }

    pub fn create(&mut self, thread: u32, file: u32, path: &str) -> u64 {
        let path = path.into();
        self.event(thread, Event::Create { file, path })
    }

    pub fn rename(&mut self, thread: u32, from: &str, to: &str) -> u64 {
        let (from, to) = (from.into(), to.into());
        self.event(thread, Event::Rename { from, to })
    }

    pub fn unlink(&mut self, thread: u32, path: &str) -> u64 {
        self.event(thread, Event::Unlink { path: path.into() })
    }

    pub fn truncate(&mut self, thread: u32, file: u32, bytes: u64) -> u64 {
        self.event(thread, Event::Truncate { file, bytes })
    }

    pub fn write(&mut self, thread: u32, file: u32, first: u32, sectors: u32, version: u64) -> u64 {
        self.write_as(thread, file, first, sectors, version, Durability::None)
    }

    pub fn write_as(
        &mut self,
        thread: u32,
        file: u32,
        sector: u32,
        sectors: u32,
        version: u64,
        durability: Durability,
    ) -> u64 {
        let write = Event::Write {
            file,
            sector,
            sectors,
            version,
            durability,
        };
        let written = self.event(thread, write);
        if durability == Durability::None {
            return written;
        }
        self.mark(thread, Event::Synced)
    }

    /// A file of two sectors of version 1, promised.
    pub fn kept(&mut self, thread: u32, file: u32, path: &str) -> u64 {
        self.create(thread, file, path);
        self.write(thread, file, 0, 2, 1);
        self.synced(thread, Target::File(file))
    }

    pub fn report(&self, mode: DataMode) -> Report {
        verify(&self.tree, &self.marker.history, mode).expect("a tree")
    }

    pub fn violations(&self) -> Vec<Violation> {
        self.report(DataMode::Ordered).violations
    }

    /// The scene with a change to its tree.
    pub fn spoiled(&self, spoil: impl FnOnce(&mut MemTree)) -> Self {
        let mut scene = self.clone();
        spoil(&mut scene.tree);
        scene
    }

    /// Asserts that the first violation is of this kind.
    #[track_caller]
    pub fn breaks(&self, kind: Kind) -> Vec<Violation> {
        let violations = self.violations();
        assert_eq!(violations[0].kind, kind, "{violations:#?}");
        violations
    }

    #[track_caller]
    pub fn fine(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "{violations:#?}");
    }

    /// Asserts exactly one violation, of this kind, at this path, with this acknowledgement.
    #[track_caller]
    pub fn broken(&self, kind: Kind, path: &str, ack: Option<u64>) -> Violation {
        let violations = self.violations();
        assert_eq!(violations.len(), 1, "{violations:#?}");
        let only = violations.into_iter().next().expect("one");
        assert_eq!(
            (only.kind, only.path.as_str(), only.ack),
            (kind, path, ack),
            "{only}"
        );
        only
    }
}
