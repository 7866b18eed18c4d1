//! Flowops that open, create, close, remove and list.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use luc_wml::plan::{Fileset, FilesetId, OpenFlags, Slot as Fd, Target, Value};
use rustix::fs::{Advice, OFlags, RawDir, fadvise, fstat, fsync};
use rustix::io::retry_on_intr;

use super::aio::FileId;
use super::draw::Draws;
use super::engine::Step;
use super::fileset::{Kind, LiveFileset};
use super::halt::{Flow, Halt};
use super::random::floor;
use super::rotor::{Becomes, Pick, Want};
use super::worker::{Open, Worker};

/// Bytes that `listdir` counts for an entry besides its name: the C library's record less its last
/// byte.
const DIRENT_BYTES: u64 = 279;

impl<'e, 'p> Worker<'e, 'p> {
    pub fn open(&mut self, step: &Step<'p>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.open_at(step, target, slot)
    }

    /// Opens the next existing file in `slot`, as a transfer with an empty slot does.
    pub fn open_at(&mut self, step: &Step<'p>, target: &Target, slot: usize) -> Flow {
        let (id, live) = self.fileset(step, target)?;
        self.must_be_free(step, slot)?;
        let index = self.pick(step, id, Kind::File, Want::Existing, target, target.rotate)?;
        let flags = access(live.plan) | self.open_flags(target.flags);
        live.leaf_path(live.tree.files[index as usize], &mut self.path);
        let begin_ns = self.begin();
        let fd = self
            .engine
            .root
            .open_as("open", self.path.get(), flags, 0)?;
        let file = FileId { fileset: id, index };
        self.opened(target, slot, fd, (file, Becomes::Same))?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub fn create(&mut self, step: &Step<'p>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.must_be_free(step, slot)?;
        let (id, live) = self.fileset(step, target)?;
        let index = self.pick(step, id, Kind::File, Want::Missing, target, false)?;
        let leaf = live.tree.files[index as usize];
        let flags = access(live.plan) | OFlags::CREATE | self.open_flags(target.flags);
        let root = &self.engine.root;
        let begin_ns = self.begin();
        // Each create first makes a stat of the parent, within the time of the operation.
        root.stat_as("find the directory for a new file,", live.dir(leaf.parent))?;
        live.leaf_path(leaf, &mut self.path);
        let fd = root.open_as("create", self.path.get(), flags, 0o666)?;
        let file = FileId { fileset: id, index };
        self.opened(target, slot, fd, (file, Becomes::Existing))?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    fn opened(
        &mut self,
        target: &Target,
        slot: usize,
        fd: OwnedFd,
        (file, becomes): (FileId, Becomes),
    ) -> Flow {
        if target.flags.no_read_ahead {
            fadvise(&fd, 0, None, Advice::Random).map_err(|errno| {
                let call = "switch off read-ahead of";
                self.engine.root.error(call, self.path.get(), errno)
            })?;
        }
        let entries = &self.engine.filesets[file.fileset].files;
        entries.release(file.index, becomes, 1);
        let place = &mut self.slots[slot];
        place.fd = Some(match self.pool {
            None => Open::Own(fd),
            Some(_) => Open::Shared(Arc::new(fd)),
        });
        place.file = Some(file);
        place.dsync = target.flags.dsync && !self.engine.no_fsync;
        Ok(())
    }

    pub fn close(&mut self, step: &Step<'p>, fd: Fd, rotate: bool) -> Flow {
        let slot = self.slot(fd, rotate);
        self.must_be_open(step, slot)?;
        let place = &mut self.slots[slot];
        let (open, file) = (place.fd.take(), place.file);
        self.own(file)?;
        let begin_ns = self.begin();
        drop(open);
        self.end(step, begin_ns, 0);
        if let Some(file) = file {
            let entries = &self.engine.filesets[file.fileset].files;
            entries.release(file.index, Becomes::Same, -1);
        }
        Ok(())
    }

    pub fn delete(&mut self, step: &Step<'p>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        // The last file of this slot, open or not.
        let named = self.slots[slot].file.take_if(|_| slot > 0);
        let (id, index) = if let Some(file) = named {
            self.own(named)?;
            (file.fileset, file.index)
        } else {
            let (id, _) = self.fileset(step, target)?;
            let index = self.pick(step, id, Kind::File, Want::Existing, target, false)?;
            (id, index)
        };
        let live = &self.engine.filesets[id];
        let entries = &live.files;
        let mine = u32::from(named.is_some());
        if entries.opens(index) > mine || !entries.exists(index) {
            // Another thread has the file open, or it is already gone: leave it alone and do not
            // count it.
            entries.release(index, Becomes::Same, 0);
            self.look();
            return Ok(());
        }
        live.leaf_path(live.tree.files[index as usize], &mut self.path);
        let begin_ns = self.begin();
        self.engine.root.unlink(self.path.get())?;
        self.end(step, begin_ns, 0);
        entries.release(index, Becomes::Missing, 0);
        Ok(())
    }

    pub fn stat(&mut self, step: &Step<'p>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        if slot > 0
            && let Some(open) = &self.slots[slot].fd
        {
            let begin_ns = self.begin();
            let looked = fstat(open);
            looked.map_err(|errno| self.file_error("stat", slot, errno))?;
            self.end(step, begin_ns, 0);
            return Ok(());
        }
        let (id, live) = self.fileset(step, target)?;
        let index = self.pick(step, id, Kind::File, Want::Existing, target, false)?;
        live.leaf_path(live.tree.files[index as usize], &mut self.path);
        let begin_ns = self.begin();
        self.engine.root.stat(self.path.get())?;
        self.end(step, begin_ns, 0);
        live.files.release(index, Becomes::Same, 0);
        Ok(())
    }

    pub fn fsync(&mut self, step: &Step<'p>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.must_be_open(step, slot)?;
        self.fsync_slot(step, slot)
    }

    pub fn fsync_set(&mut self, step: &Step<'p>, fileset: FilesetId) -> Flow {
        for slot in 0..self.slots.len() - 1 {
            let place = &self.slots[slot];
            if place.fd.is_some() && place.file.is_some_and(|file| file.fileset == fileset.0) {
                self.fsync_slot(step, slot)?;
            }
        }
        self.look();
        Ok(())
    }

    fn fsync_slot(&mut self, step: &Step<'p>, slot: usize) -> Flow {
        let begin_ns = self.begin();
        if let Some(open) = &self.slots[slot].fd
            && !self.engine.no_fsync
        {
            retry_on_intr(|| fsync(open)).map_err(|errno| self.file_error("fsync", slot, errno))?;
        }
        if let Some(ns) = self.end(step, begin_ns, 0)
            && !self.engine.no_fsync
        {
            self.counted.fsync.record(ns);
        }
        Ok(())
    }

    pub fn make_dir(&mut self, step: &Step<'p>, fileset: FilesetId) -> Flow {
        let (live, index) = self.pick_leaf_dir(step, fileset, Want::Missing)?;
        let begin_ns = self.begin();
        self.engine.root.mkdir(self.path.get(), 0o755)?;
        self.end(step, begin_ns, 0);
        live.leaf_dirs.release(index, Becomes::Existing, 0);
        Ok(())
    }

    pub fn remove_dir(&mut self, step: &Step<'p>, fileset: FilesetId) -> Flow {
        let (live, index) = self.pick_leaf_dir(step, fileset, Want::Existing)?;
        let begin_ns = self.begin();
        self.engine.root.rmdir(self.path.get())?;
        self.end(step, begin_ns, 0);
        live.leaf_dirs.release(index, Becomes::Missing, 0);
        Ok(())
    }

    pub fn list_dir(&mut self, step: &Step<'p>, fileset: FilesetId) -> Flow {
        let live = &self.engine.filesets[fileset.0];
        let rotor = live.dirs.rotor(Want::Existing);
        let attempt = || match live.dirs.pick_next(Want::Existing, rotor) {
            Pick::Taken(index) => Some(index),
            // A fileset has at least its root.
            Pick::Busy | Pick::None => None,
        };
        let dir = attempt().or_else(|| live.dirs.idle.until(attempt, self.give_up()));
        let dir = dir.ok_or(Halt::Over)?;
        let (root, path) = (&self.engine.root, live.dir(dir));
        let begin_ns = self.begin();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = root.open_as("open directory", path, flags, 0)?;
        let mut records = [const { MaybeUninit::<u8>::uninit() }; 8192];
        let mut entries = RawDir::new(&open, &mut records);
        let mut bytes = 0;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|errno| root.error("list directory", path, errno))?;
            bytes += entry.file_name().count_bytes() as u64 + DIRENT_BYTES;
        }
        drop(open);
        self.end(step, begin_ns, bytes);
        live.dirs.release(dir, Becomes::Same, 0);
        Ok(())
    }

    fn fileset(&self, step: &Step<'p>, target: &Target) -> Flow<(usize, &'e LiveFileset<'p>)> {
        match target.fileset {
            Some(id) => Ok((id.0, &self.engine.filesets[id.0])),
            None => {
                step.refused("no file is open in its fd, and it names no fileset to take one from")
            }
        }
    }

    /// Takes an entry of a fileset. If all in the wanted state are busy, it waits for one;
    /// Filebench waits only while every entry is busy, and otherwise ends the run, depending on
    /// chance.
    fn pick(
        &mut self,
        step: &Step<'p>,
        id: usize,
        kind: Kind,
        want: Want,
        target: &Target,
        own_rotor: bool,
    ) -> Flow<u32> {
        let live = &self.engine.filesets[id];
        let entries = live.entries(kind);
        if entries.count() == 0 {
            let name = &live.plan.name;
            return step.refused(format!(
                "fileset {name} has no entries of the required kind"
            ));
        }
        let at = target
            .index
            .map(|index| place(&mut self.draws, index, entries.count(), kind));
        let mut attempt = || {
            let pick = match at {
                Some(at) => entries.pick_at(want, at),
                None if own_rotor => entries.pick_next(want, &self.rotors[id]),
                None => entries.pick_next(want, entries.rotor(want)),
            };
            match pick {
                Pick::Taken(index) => Some(Some(index)),
                Pick::Busy => None,
                Pick::None => Some(None),
            }
        };
        let found = match attempt() {
            Some(found) => Some(found),
            None => entries.idle.until(&mut attempt, self.give_up()),
        };
        found.ok_or(Halt::Over)?.ok_or_else(|| {
            let (name, what) = (&step.flowop.name, live.lacking(kind, want));
            Halt::Lacking(format!("flowop {name}: {what}"))
        })
    }

    /// Takes a leaf directory, and sets `self.path` to its path.
    fn pick_leaf_dir(
        &mut self,
        step: &Step<'p>,
        FilesetId(id): FilesetId,
        want: Want,
    ) -> Flow<(&'e LiveFileset<'p>, u32)> {
        let any = Target::default();
        let index = self.pick(step, id, Kind::LeafDir, want, &any, false)?;
        let live = &self.engine.filesets[id];
        live.leaf_path(live.tree.leaf_dirs[index as usize], &mut self.path);
        Ok((live, index))
    }

    /// Takes the entry of an open or remembered file, so that it is busy.
    fn own(&self, file: Option<FileId>) -> Flow {
        let Some(file) = file else {
            return Ok(());
        };
        let entries = &self.engine.filesets[file.fileset].files;
        let attempt = || entries.take(file.index).then_some(());
        let taken = attempt().or_else(|| entries.idle.until(attempt, self.give_up()));
        taken.ok_or(Halt::Over)
    }

    fn open_flags(&self, flags: OpenFlags) -> OFlags {
        let mut all = OFlags::empty();
        if flags.dsync && !self.engine.no_fsync {
            all |= OFlags::SYNC;
        }
        if flags.direct_io {
            all |= OFlags::DIRECT;
        }
        all
    }

    fn must_be_free(&self, step: &Step<'p>, slot: usize) -> Flow {
        if self.slots[slot].fd.is_none() {
            return Ok(());
        }
        step.refused(format!(
            "fd {slot} already holds an open file; close it first"
        ))
    }

    fn must_be_open(&self, step: &Step<'p>, slot: usize) -> Flow {
        if self.slots[slot].fd.is_some() {
            return Ok(());
        }
        step.refused(format!(
            "no file is open in fd {slot}; open or create one first"
        ))
    }
}

/// Returns the access mode in which a fileset's files are opened.
fn access(fileset: &Fileset) -> OFlags {
    if fileset.read_only {
        OFlags::RDONLY
    } else if fileset.write_only {
        OFlags::WRONLY
    } else {
        OFlags::RDWR
    }
}

/// Returns the entry that an `indexed` operation means.
pub fn place(draws: &mut Draws<'_>, index: Value, count: usize, kind: Kind) -> u32 {
    let drawn = draws.real(index);
    let drawn = match kind {
        Kind::File => floor(drawn),
        Kind::LeafDir => floor(drawn * (count / 2) as f64),
    };
    u32::try_from(drawn % count.max(1) as u64).unwrap_or(0)
}
