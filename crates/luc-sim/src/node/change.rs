//! Changes of metadata: each holds a handle, and takes one buffer after the other.

use luc_control::Copies;

use super::{Next, Node, Stage};
use crate::costs::Costs;
use crate::files::{FileId, Files};
use crate::journal::buffers::{BLOCKS, DIRS, GROUP, INODES, PARENT, SUPER, TABLE};
use crate::journal::{Access, BufferId};
use crate::processors::TaskId;
use crate::program::Op;
use crate::recorder::Sleep;

/// Inodes, of 256 bytes each, that share a block of the inode table.
const INODES_IN_A_BLOCK: u32 = 16;

/// The purpose of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Create,
    MakeDir,
    /// A file's times or size.
    Inode,
    /// No metadata: a page of data is filled under the handle.
    Page,
    /// Blocks for data, not yet marked as written.
    Allocate,
    /// Those blocks are marked as written.
    Convert,
    Unlink,
    /// A removed file's inode and blocks are freed.
    Evict,
}

impl Change {
    /// Returns how many blocks its handle asks for (6.12, extents in the inode, no quota):
    /// `ext4_create()`, `ext4_mkdir()`, `ext4_dirty_inode()`, `ext4_meta_trans_blocks()`,
    /// `ext4_unlink()`, `ext4_evict_inode()`.
    pub(super) fn credits(self) -> u64 {
        match self {
            Self::Create | Self::MakeDir => 46,
            Self::Inode => 2,
            Self::Page => 1,
            Self::Allocate | Self::Convert => 8,
            Self::Unlink => 31,
            Self::Evict => 39,
        }
    }

    /// Returns the n-th buffer that it changes; `None` after the last.
    fn buffer(self, files: &mut Files, file: FileId, n: u8) -> Option<BufferId> {
        let (dir, number, has_blocks) = {
            let inode = files.inode(file);
            (inode.dir, inode.number, inode.is_allocated())
        };
        let table = |number: u32| TABLE + number / INODES_IN_A_BLOCK;
        let (own, block, of_dir) = (table(number), DIRS + dir, table(files.dir(dir).number));
        let all: &[u32] = match self {
            Self::Create => &[INODES, GROUP, own, block, of_dir],
            Self::MakeDir => &[INODES, GROUP, of_dir, block, BLOCKS, PARENT, TABLE],
            Self::Page => &[],
            Self::Inode | Self::Convert => &[own],
            Self::Allocate => &[BLOCKS, GROUP, own],
            Self::Unlink => &[block, of_dir, SUPER, own],
            Self::Evict if has_blocks => &[SUPER, BLOCKS, GROUP, INODES, own],
            Self::Evict => &[SUPER, GROUP, INODES, own],
        };
        all.get(usize::from(n)).copied()
    }
}

impl Node {
    /// Runs an operation of one change (create, make a directory, set times) or of two (unlink).
    pub(super) fn change(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        let op = self.tasks[at].op;
        match (self.tasks[at].stage, op) {
            (Stage::Begin, _) => {
                let before = match op {
                    Op::Create { .. } => self.costs.create_before,
                    Op::MakeDir { .. } => self.costs.mkdir_before,
                    Op::Unlink => self.costs.unlink_before,
                    _ => self.costs.stat,
                };
                self.go(at, Stage::Lock, before)
            }
            (Stage::Lock, _) => {
                if let Some(dir) = self.changed_dir(at)
                    && !self.files.dir(dir).lock(number)
                {
                    return Some(self.wait_for_dir(number, dir));
                }
                let change = match op {
                    Op::Create { .. } => Change::Create,
                    Op::MakeDir { .. } => Change::MakeDir,
                    Op::Unlink => Change::Unlink,
                    _ => Change::Inode,
                };
                self.begin_change(at, change, Stage::After);
                None
            }
            (Stage::After, Op::Unlink) if self.tasks[at].change == Change::Unlink => {
                self.unlock_dir(number);
                self.begin_change(at, Change::Evict, Stage::After);
                None
            }
            (Stage::After, _) => {
                self.unlock_dir(number);
                let after = match op {
                    Op::Create { .. } => self.costs.create_after,
                    Op::MakeDir { .. } => self.costs.mkdir_after,
                    Op::Unlink => {
                        self.files.remove(self.tasks[at].file);
                        self.costs.unlink_after
                    }
                    _ => self.costs.write_after,
                };
                self.last(at, after)
            }
            _ => self.in_handle(number),
        }
    }

    /// Returns the directory that the task's operation locks, to change names in it.
    fn changed_dir(&mut self, at: usize) -> Option<u32> {
        match self.tasks[at].op {
            Op::Create { dir } => Some(dir),
            Op::Unlink => Some(self.files.inode(self.tasks[at].file).dir),
            _ => None,
        }
    }

    /// Lets a task spin while the lock's owner runs, and sleep otherwise, as the kernel's locks do.
    fn wait_for_dir(&mut self, number: TaskId, dir: u32) -> Next {
        let dir = self.files.dir(dir);
        if dir
            .owner()
            .is_some_and(|owner| self.processors.is_running(owner))
        {
            return Next::Work(self.costs.spin);
        }
        dir.wait_for_lock(number);
        Next::Wait
    }

    fn unlock_dir(&mut self, number: TaskId) {
        let Some(dir) = self.changed_dir(number as usize) else {
            return;
        };
        let dir = self.files.dir(dir);
        if dir.owner() == Some(number)
            && let Some(next) = dir.unlock()
        {
            self.wake(next, 0);
        }
    }

    /// Lets the task ask for a handle for this change; it continues with the stage `then`.
    pub(super) fn begin_change(&mut self, at: usize, change: Change, then: Stage) {
        let task = &mut self.tasks[at];
        task.change = change;
        task.then = then;
        task.stage = Stage::Handle;
    }

    /// Runs the stages from the request for a handle to its end.
    pub(super) fn in_handle(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        match self.tasks[at].stage {
            Stage::Handle => self.handle(number),
            Stage::Buffer(n) => self.buffer(number, n),
            // The work under the handle is done.
            _ => {
                self.end_handle(self.tasks[at].change.credits());
                self.tasks[at].stage = self.tasks[at].then;
                None
            }
        }
    }

    fn handle(&mut self, number: TaskId) -> Option<Next> {
        let now_ns = self.now_ns();
        let credits = self.tasks[number as usize].change.credits();
        let Some(tid) = self.begin_handle(number, credits) else {
            return Some(Next::Wait);
        };
        if self
            .journal
            .running
            .as_ref()
            .is_some_and(|it| it.handles == 1)
        {
            self.set_commit_timer(now_ns);
        }
        let task = &mut self.tasks[number as usize];
        let (file, change) = (task.file, task.change);
        task.stage = Stage::Buffer(0);
        match task.op {
            Op::Create { dir } => {
                let tick = self.tick();
                let inode = self.files.create(file, dir);
                (inode.changed_tick, inode.read_tick) = (tick, tick);
            }
            Op::MakeDir { dir } => {
                self.files.make_dir(dir);
                self.files.inode(file).dir = dir;
            }
            _ => {}
        }
        if change != Change::Page {
            self.files.inode(file).tid = tid;
        }
        None
    }

    /// Takes the change's n-th buffer; after the last one the task works under its handle.
    fn buffer(&mut self, number: TaskId, n: u8) -> Option<Next> {
        let at = number as usize;
        let now_ns = self.now_ns();
        let has_slept = std::mem::take(&mut self.tasks[at].has_slept);
        if let Some(runtime) = self.runtime.as_mut().filter(|_| has_slept) {
            runtime.delayed();
        }
        let (change, file) = (self.tasks[at].change, self.tasks[at].file);
        let Some(buffer) = change.buffer(&mut self.files, file, n) else {
            let pages = u64::from(change == Change::Page);
            let own = self.costs.within(change, self.files.inode(file).searched);
            return self.go(at, Stage::Inside, own + self.memory(pages));
        };
        let access = self.journal.access(number, buffer);
        match access {
            Access::Waits => {
                self.tasks[at].has_slept = true;
                let sleep = Sleep::Buffer(buffer);
                self.recorder
                    .sleeps(number, &self.tasks[at].op, sleep, now_ns);
                self.tasks[at].stage = Stage::Buffer(n);
                Some(Next::WaitForIo)
            }
            Access::WaitsForHome => {
                self.tasks[at].stage = Stage::Buffer(n);
                Some(Next::WaitForIo)
            }
            Access::Granted | Access::Copied | Access::Spared => {
                self.tasks[at].stage = Stage::Buffer(n + 1);
                if access == Access::Granted {
                    return None;
                }
                // Counts as spared whether jbd2 copied the buffer just now or LUC did so before.
                if let Some(runtime) = self.runtime.as_mut().filter(|it| it.copies != Copies::None)
                {
                    runtime.spared();
                    return None;
                }
                let copying = self.costs.frozen_copy + self.memory(1);
                (access == Access::Copied).then_some(Next::Work(copying))
            }
        }
    }
}

impl Costs {
    /// Returns the work under a handle; a create searches `names` names of its directory.
    fn within(&self, change: Change, names: u32) -> u64 {
        match change {
            Change::Create => self.create_handle + self.create_entry * u64::from(names),
            Change::MakeDir => self.mkdir_handle,
            Change::Inode => self.inode_handle,
            Change::Page => self.page_handle + self.write_page,
            Change::Allocate => self.allocate_handle,
            Change::Convert => self.convert_handle,
            Change::Unlink => self.unlink_handle,
            Change::Evict => self.evict_handle,
        }
    }
}
