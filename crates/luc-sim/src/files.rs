//! Files as the kernel keeps them: inodes, blocks and dirty pages, without time and journal.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use crate::journal::Tid;
use crate::processors::TaskId;
use crate::units::{BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES};

/// A file, by a number that its program chooses. A number is used again when its file is gone.
pub type FileId = u32;

/// Sectors for data; when all are used, allocation starts again at the first.
pub const DATA_SECTORS: u64 = 3 << 20;

/// A file that exists before a run, with its data on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub file: FileId,
    pub dir: u32,
    pub bytes: u64,
}

/// Adjacent blocks of a file, and their place on the disk.
#[derive(Clone, Copy, Debug)]
struct Extent {
    page: u32,
    pages: u32,
    sector: u64,
}

/// A piece of data that one request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Counted from the first sector for data.
    pub sector: u64,
    pub bytes: u32,
}

#[derive(Debug, Default)]
pub struct Inode {
    pub dir: u32,
    /// Its place in the inode table.
    pub number: u32,
    /// Names that were searched to find room for its own name.
    pub searched: u32,
    /// The transaction that last changed it.
    pub tid: Tid,
    pub bytes: u64,
    /// When its content was last changed and last read, in ticks of the kernel's coarse clock.
    pub changed_tick: u64,
    pub read_tick: u64,
    extents: Vec<Extent>,
    dirty: BTreeSet<u32>,
    /// How many requests for its data were sent, and how many of them are done.
    pub sent: u64,
    pub done: u64,
    /// Tasks that wait until this many requests are done.
    for_data: Vec<(u64, TaskId)>,
    is_locked: bool,
    for_lock: VecDeque<TaskId>,
}

impl Inode {
    /// Tells whether this byte lies in a block that is allocated on the disk.
    pub fn has_block(&self, byte: u64) -> bool {
        self.extent(page_of(byte)).is_some()
    }

    fn extent(&self, page: u32) -> Option<&Extent> {
        let mut extents = self.extents.iter();
        extents.find(|it| (it.page..it.page + it.pages).contains(&page))
    }

    /// Returns a number that is unique to the file.
    pub fn object(&self) -> u64 {
        u64::from(self.dir) << 32 | u64::from(self.number)
    }

    pub fn is_allocated(&self) -> bool {
        !self.extents.is_empty()
    }

    /// Writes these bytes: their pages become dirty, and the file may grow.
    pub fn write(&mut self, at: u64, bytes: u64) {
        self.dirty.extend(pages(at, bytes));
        self.bytes = self.bytes.max(at + bytes);
    }

    /// Takes the dirty pages among these bytes, for writeback.
    pub fn take_dirty(&mut self, at: u64, bytes: u64) -> Vec<u32> {
        let within = pages(at, bytes);
        let taken: Vec<u32> = self.dirty.range(within).copied().collect();
        for page in &taken {
            self.dirty.remove(page);
        }
        taken
    }

    /// Locks the inode; if it is locked, returns false and queues the task for the lock.
    pub fn lock(&mut self, task: TaskId) -> bool {
        if self.is_locked {
            self.for_lock.push_back(task);
            return false;
        }
        self.is_locked = true;
        true
    }

    /// Unlocks the inode, or hands the lock to the task that waited longest; returns that task.
    pub fn unlock(&mut self) -> Option<TaskId> {
        let next = self.for_lock.pop_front();
        self.is_locked = next.is_some();
        next
    }

    /// Queues the task until all requests sent so far are done; false if they already are.
    pub fn waits_for_data(&mut self, task: TaskId) -> bool {
        let waits = self.done < self.sent;
        if waits {
            self.for_data.push((self.sent, task));
        }
        waits
    }

    /// Notes that more requests for its data are done; returns the tasks that waited for them.
    pub fn data_done(&mut self, requests: u64) -> Vec<TaskId> {
        self.done += requests;
        let done = self.done;
        let ready = self.for_data.extract_if(.., |(until, _)| *until <= done);
        ready.map(|(_, task)| task).collect()
    }
}

/// A directory. All directories lie in the block group of the one in which a benchmark works, as
/// ext4 places them, and share its inode table.
#[derive(Debug, Default)]
pub struct Dir {
    /// Its own place in the inode table.
    pub number: u32,
    names: u32,
    /// Free slots that removed names have left.
    holes: u32,
    owner: Option<TaskId>,
    for_lock: VecDeque<TaskId>,
}

impl Dir {
    /// Locks the directory for a change; false if it is locked.
    pub fn lock(&mut self, task: TaskId) -> bool {
        let is_free = self.owner.is_none();
        if is_free {
            self.owner = Some(task);
        }
        is_free
    }

    pub fn owner(&self) -> Option<TaskId> {
        self.owner
    }

    /// Makes the task sleep until the lock is free; it then tries again.
    pub fn wait_for_lock(&mut self, task: TaskId) {
        self.for_lock.push_back(task);
    }

    /// Unlocks the directory and returns the task to wake. The lock goes to the first task that
    /// asks.
    pub fn unlock(&mut self) -> Option<TaskId> {
        self.owner = None;
        self.for_lock.pop_front()
    }

    /// Returns how many names are searched to find room for one more: those of one block, which
    /// splits when it is full, up to the first hole that a removed name has left.
    fn searched(&self) -> u32 {
        const NAMES_IN_A_BLOCK: u32 = 200;
        const HALF: u32 = NAMES_IN_A_BLOCK / 2;
        let (names, holes) = (self.names, self.holes);
        let of_block = if names < NAMES_IN_A_BLOCK {
            names
        } else {
            HALF + names % HALF
        };
        // The block's share of the holes, rounded.
        let names = u64::from(names.max(1));
        let holes_of_block = (u64::from(holes) * u64::from(of_block) + names / 2) / names;
        u32::try_from(u64::from(of_block) / (holes_of_block + 1)).unwrap_or(0)
    }
}

#[derive(Debug, Default)]
pub struct Files {
    inodes: Vec<Inode>,
    dirs: Vec<Dir>,
    /// How many places in the inode table were used, and those of them that are free again.
    used: u32,
    freed: BTreeSet<u32>,
    /// Number of sectors handed out so far; removed files do not give theirs back.
    used_sectors: u64,
}

impl Files {
    /// Creates the directory; false if it exists.
    pub fn make_dir(&mut self, dir: u32) -> bool {
        let at = dir as usize;
        let is_new = at >= self.dirs.len();
        while at >= self.dirs.len() {
            let number = self.take_number();
            self.dirs.push(Dir {
                number,
                ..Dir::default()
            });
        }
        is_new
    }

    /// Returns the directory, and creates it if necessary.
    pub fn dir(&mut self, dir: u32) -> &mut Dir {
        self.make_dir(dir);
        &mut self.dirs[dir as usize]
    }

    /// Takes the first free inode, as ext4 does.
    fn take_number(&mut self) -> u32 {
        if let Some(number) = self.freed.pop_first() {
            return number;
        }
        self.used += 1;
        self.used - 1
    }

    pub fn has_dir(&self, dir: u32) -> bool {
        (dir as usize) < self.dirs.len()
    }

    /// Creates a file.
    pub fn create(&mut self, file: FileId, dir: u32) -> &mut Inode {
        let known = self.dir(dir);
        let searched = known.searched();
        known.names += 1;
        known.holes = known.holes.saturating_sub(1);
        let number = self.take_number();
        let at = file as usize;
        if at >= self.inodes.len() {
            self.inodes.resize_with(at + 1, Inode::default);
        }
        self.inodes[at] = Inode {
            dir,
            number,
            searched,
            ..Inode::default()
        };
        &mut self.inodes[at]
    }

    /// Creates a file that exists before the run.
    pub fn prepare(&mut self, it: Prepared) {
        self.create(it.file, it.dir).bytes = it.bytes;
        self.allocate(it.file, &pages(0, it.bytes).collect::<Vec<_>>());
    }

    /// Removes a file and frees its inode.
    pub fn remove(&mut self, file: FileId) {
        let inode = self.inode(file);
        let (dir, number) = (inode.dir, inode.number);
        inode.dirty.clear();
        inode.extents.clear();
        let known = self.dir(dir);
        known.names -= 1;
        known.holes += 1;
        self.freed.insert(number);
    }

    /// Returns a file's inode. A file that no task has created is an empty one in the first
    /// directory.
    pub fn inode(&mut self, file: FileId) -> &mut Inode {
        let at = file as usize;
        if at >= self.inodes.len() {
            self.inodes.resize_with(at + 1, Inode::default);
        }
        &mut self.inodes[at]
    }

    /// Returns the transaction that last changed a file's inode; 0 if none did.
    pub fn tid(&self, file: FileId) -> Tid {
        let inode = self.inodes.get(file as usize);
        inode.map_or(0, |inode| inode.tid)
    }

    /// Allocates blocks for the pages among these that have none; false if all have some.
    pub fn allocate(&mut self, file: FileId, pages: &[u32]) -> bool {
        let mut used_sectors = self.used_sectors;
        let inode = self.inode(file);
        for page in pages {
            if inode.extent(*page).is_some() {
                continue;
            }
            let sector = used_sectors % DATA_SECTORS;
            used_sectors += BLOCK_SECTORS;
            let follows = inode.extents.last_mut().filter(|it| {
                it.page + it.pages == *page
                    && it.sector + u64::from(it.pages) * BLOCK_SECTORS == sector
            });
            match follows {
                Some(last) => last.pages += 1,
                None => inode.extents.push(Extent {
                    page: *page,
                    pages: 1,
                    sector,
                }),
            }
        }
        std::mem::replace(&mut self.used_sectors, used_sectors) < used_sectors
    }

    /// Returns the requests that write these pages, if they have blocks: adjacent pages are merged,
    /// up to the largest request of the disk.
    pub fn runs(&mut self, file: FileId, pages: &[u32], bytes_max: u32) -> Vec<Run> {
        let inode = self.inode(file);
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for page in pages {
            let Some(extent) = inode.extent(*page) else {
                continue;
            };
            let sector = extent.sector + u64::from(page - extent.page) * BLOCK_SECTORS;
            match runs.last_mut().filter(|run| run.1 == sector) {
                Some(run) => run.1 += BLOCK_SECTORS,
                None => runs.push((sector, sector + BLOCK_SECTORS)),
            }
        }
        let sectors_max = bytes_max / SECTOR_BYTES;
        let requests = runs.into_iter().flat_map(|(begin, end)| {
            let starts = (begin..end).step_by(sectors_max as usize);
            starts.map(move |sector| Run {
                sector,
                bytes: u32::try_from(end - sector)
                    .map_or(sectors_max, |left| left.min(sectors_max))
                    * SECTOR_BYTES,
            })
        });
        requests.collect()
    }
}

fn page_of(byte: u64) -> u32 {
    u32::try_from(byte / u64::from(BLOCK_BYTES)).unwrap_or(u32::MAX)
}

/// Returns the pages that hold these bytes.
pub fn pages(at: u64, bytes: u64) -> Range<u32> {
    let last = at
        .saturating_add(bytes)
        .saturating_add(u64::from(BLOCK_BYTES) - 1);
    if bytes > 0 {
        page_of(at)..page_of(last)
    } else {
        0..0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Requests write each page once, at its place, and no request is too large.
        #[test]
        fn all_dirty_data_is_written(
            writes in proptest::collection::vec((0_u64..3_000_000, 1_u64..40_000), 1..20),
            sectors_max in 1_u32..3000,
        ) {
            let bytes_max = sectors_max * 512;
            let mut files = Files::default();
            files.create(3, 1);
            let mut written = BTreeSet::new();
            for (at, bytes) in writes {
                files.inode(3).write(at, bytes);
                written.extend(pages(at, bytes));
            }
            let dirty = files.inode(3).take_dirty(0, u64::MAX);
            prop_assert!(dirty.iter().copied().eq(written.iter().copied()));
            prop_assert!(files.allocate(3, &dirty));
            prop_assert!(!files.allocate(3, &dirty), "all have blocks");
            let runs = files.runs(3, &dirty, bytes_max);
            let bytes: u64 = runs.iter().map(|run| u64::from(run.bytes)).sum();
            prop_assert_eq!(bytes, dirty.len() as u64 * u64::from(BLOCK_BYTES));
            prop_assert!(runs.iter().all(|run| run.bytes <= bytes_max));
            prop_assert!(runs.is_sorted_by(|a, b| a.sector + u64::from(a.bytes) / 512 <= b.sector));
            prop_assert!(files.inode(3).take_dirty(0, u64::MAX).is_empty());
        }
    }

    #[test]
    fn a_prepared_file_is_clean_and_in_one_piece() {
        let mut files = Files::default();
        let bytes = 10 << 20;
        files.prepare(Prepared {
            file: 0,
            dir: 2,
            bytes,
        });
        assert!(files.has_dir(1) && !files.has_dir(3));
        let inode = files.inode(0);
        assert!(inode.is_allocated() && inode.has_block(bytes - 1) && !inode.has_block(bytes));
        assert!(inode.take_dirty(0, u64::MAX).is_empty());
        let all: Vec<u32> = pages(0, bytes).collect();
        let runs = files.runs(0, &all, 1 << 20);
        assert_eq!(runs.len(), 10, "of 1 MiB each");
    }

    #[test]
    fn a_free_inode_is_taken_again() {
        let mut files = Files::default();
        let numbers: Vec<u32> = (0..3).map(|file| files.create(file, 0).number).collect();
        // The directory has inode 0.
        assert_eq!(numbers, [1, 2, 3]);
        files.remove(1);
        assert_eq!(files.create(7, 0).number, 2);
        assert_eq!(files.create(8, 0).number, 4);
        files.make_dir(1);
        assert_eq!(files.create(9, 1).number, 6);
        assert_eq!((files.dir(0).names, files.dir(1).names), (4, 1));
    }

    #[test]
    fn a_directory_is_locked_by_one() {
        let mut dir = Dir::default();
        assert!(dir.lock(1) && !dir.lock(2));
        dir.wait_for_lock(2);
        assert_eq!((dir.owner(), dir.unlock()), (Some(1), Some(2)));
        assert!(dir.lock(3), "whoever comes first");
    }

    #[test]
    fn locks_and_data_wake_their_waiters() {
        let mut inode = Inode::default();
        assert!(inode.lock(1) && !inode.lock(2) && !inode.lock(3));
        assert_eq!(inode.unlock(), Some(2));
        assert_eq!(inode.unlock(), Some(3));
        assert_eq!(inode.unlock(), None);
        assert!(inode.lock(1));
        inode.sent = 2;
        assert!(inode.waits_for_data(5));
        assert!(inode.data_done(1).is_empty());
        assert_eq!(inode.data_done(1), [5]);
        assert!(!inode.waits_for_data(5));
    }
}
