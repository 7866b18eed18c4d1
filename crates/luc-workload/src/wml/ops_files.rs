//! Flowops that open, create, close, remove and list.

use std::mem::MaybeUninit;
use std::sync::Arc;

use luc_wml::plan::{Fileset, FilesetId, OpenFlags, Slot as Fd, Target, Value};
use rustix::fs::{
    Advice, AtFlags, Mode, OFlags, RawDir, fadvise, fstat, fsync, mkdirat, openat, statat, unlinkat,
};
use rustix::io::retry_on_intr;

use super::aio::FileId;
use super::draw::Draws;
use super::engine::Step;
use super::fileset::{Kind, LiveFileset};
use super::random::floor;
use super::rotor::{Becomes, Pick, Want};
use super::worker::{Flow, Open, Worker};
use crate::{Result, WorkloadError};

/// What `listdir` counts for an entry besides its name: the C library's record less its last byte.
const DIRENT_BYTES: u64 = 279;

impl<'e, 'p> Worker<'e, 'p> {
    pub fn open(&mut self, step: &Step<'p>, target: &Target) -> Result<Flow> {
        let slot = self.slot_of(target);
        self.open_at(step, target, slot)
    }

    /// Opens the next existing file in `slot`; also what transfers do whose slot is empty.
    pub fn open_at(&mut self, step: &Step<'p>, target: &Target, slot: usize) -> Result<Flow> {
        let (id, live) = self.fileset(step, target)?;
        self.must_be_free(step, slot)?;
        let index = match self.pick(step, id, Kind::File, Want::Existing, target, target.rotate)? {
            Ok(index) => index,
            Err(flow) => return Ok(flow),
        };
        let flags = access(live.plan) | self.open_flags(target.flags);
        live.leaf_path(live.tree.files[index as usize], &mut self.path);
        let begin_ns = self.begin();
        let opened =
            retry_on_intr(|| openat(&self.engine.root, self.path.get(), flags, Mode::empty()));
        self.opened(
            step,
            target,
            slot,
            FileId { fileset: id, index },
            opened,
            begin_ns,
            "open",
        )
    }

    pub fn create(&mut self, step: &Step<'p>, target: &Target) -> Result<Flow> {
        let slot = self.slot_of(target);
        self.must_be_free(step, slot)?;
        let (id, live) = self.fileset(step, target)?;
        let index = match self.pick(step, id, Kind::File, Want::Missing, target, false)? {
            Ok(index) => index,
            Err(flow) => return Ok(flow),
        };
        let leaf = live.tree.files[index as usize];
        let flags = access(live.plan) | OFlags::CREATE | self.open_flags(target.flags);
        let begin_ns = self.begin();
        // The parent is looked at before each create, within the time of the operation.
        let parent = live.dir(leaf.parent);
        if let Err(errno) = statat(&self.engine.root, parent, AtFlags::empty()) {
            live.dir_path(leaf.parent, &mut self.path);
            return Err(self.path_error("find the directory of a new file,", errno));
        }
        live.leaf_path(leaf, &mut self.path);
        let created = retry_on_intr(|| {
            openat(
                &self.engine.root,
                self.path.get(),
                flags,
                Mode::from_raw_mode(0o666),
            )
        });
        self.opened(
            step,
            target,
            slot,
            FileId { fileset: id, index },
            created,
            begin_ns,
            "create",
        )
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the second half of two functions above"
    )]
    fn opened(
        &mut self,
        step: &Step<'p>,
        target: &Target,
        slot: usize,
        file: FileId,
        opened: rustix::io::Result<std::os::fd::OwnedFd>,
        begin_ns: u64,
        call: &'static str,
    ) -> Result<Flow> {
        let entries = &self.engine.filesets[file.fileset].files;
        let fd = opened.map_err(|errno| self.path_error(call, errno))?;
        if target.flags.no_read_ahead {
            fadvise(&fd, 0, None, Advice::Random)
                .map_err(|errno| self.path_error("switch off read-ahead of", errno))?;
        }
        let becomes = if call == "create" {
            Becomes::Existing
        } else {
            Becomes::Same
        };
        entries.release(file.index, becomes, 1);
        let place = &mut self.slots[slot];
        place.fd = Some(match self.pool {
            None => Open::Own(fd),
            Some(_) => Open::Shared(Arc::new(fd)),
        });
        place.file = Some(file);
        place.dsync = target.flags.dsync && !self.engine.no_fsync;
        self.end(step, begin_ns, 0);
        Ok(Flow::On)
    }

    pub fn close(&mut self, step: &Step<'p>, fd: Fd, rotate: bool) -> Result<Flow> {
        let slot = self.slot(fd, rotate);
        let place = &mut self.slots[slot];
        let Some(open) = place.fd.take() else {
            return Err(Self::not_open(step, slot));
        };
        let file = place.file;
        if !self.own(file) {
            return Ok(Flow::Over);
        }
        let begin_ns = self.begin();
        drop(open);
        self.end(step, begin_ns, 0);
        if let Some(file) = file {
            let entries = &self.engine.filesets[file.fileset].files;
            entries.release(file.index, Becomes::Same, -1);
        }
        Ok(Flow::On)
    }

    pub fn delete(&mut self, step: &Step<'p>, target: &Target) -> Result<Flow> {
        let slot = self.slot_of(target);
        let named = if slot > 0 {
            self.slots[slot].file.take()
        } else {
            None
        };
        let (id, index) = if let Some(file) = named {
            // The file that this slot had last, open or not.
            if !self.own(Some(file)) {
                return Ok(Flow::Over);
            }
            (file.fileset, file.index)
        } else {
            let (id, _) = self.fileset(step, target)?;
            match self.pick(step, id, Kind::File, Want::Existing, target, false)? {
                Ok(index) => (id, index),
                Err(flow) => return Ok(flow),
            }
        };
        let live = &self.engine.filesets[id];
        let entries = &live.files;
        let mine = u32::from(named.is_some());
        if entries.opens(index) > mine || !entries.exists(index) {
            // Somebody has it open, or it is gone already: left alone, and not counted.
            entries.release(index, Becomes::Same, 0);
            self.look();
            return Ok(Flow::On);
        }
        live.leaf_path(live.tree.files[index as usize], &mut self.path);
        let begin_ns = self.begin();
        unlinkat(&self.engine.root, self.path.get(), AtFlags::empty())
            .map_err(|errno| self.path_error("unlink", errno))?;
        self.end(step, begin_ns, 0);
        entries.release(index, Becomes::Missing, 0);
        Ok(Flow::On)
    }

    pub fn stat(&mut self, step: &Step<'p>, target: &Target) -> Result<Flow> {
        let slot = self.slot_of(target);
        if slot > 0
            && let Some(open) = &self.slots[slot].fd
        {
            let begin_ns = self.begin();
            let looked = fstat(open);
            looked.map_err(|errno| self.file_error("stat", slot, errno))?;
            self.end(step, begin_ns, 0);
            return Ok(Flow::On);
        }
        let (id, live) = self.fileset(step, target)?;
        let index = match self.pick(step, id, Kind::File, Want::Existing, target, false)? {
            Ok(index) => index,
            Err(flow) => return Ok(flow),
        };
        live.leaf_path(live.tree.files[index as usize], &mut self.path);
        let begin_ns = self.begin();
        statat(&self.engine.root, self.path.get(), AtFlags::empty())
            .map_err(|errno| self.path_error("stat", errno))?;
        self.end(step, begin_ns, 0);
        live.files.release(index, Becomes::Same, 0);
        Ok(Flow::On)
    }

    pub fn fsync(&mut self, step: &Step<'p>, target: &Target) -> Result<Flow> {
        let slot = self.slot_of(target);
        if self.slots[slot].fd.is_none() {
            return Err(Self::not_open(step, slot));
        }
        self.fsync_slot(step, slot)?;
        Ok(Flow::On)
    }

    pub fn fsync_set(&mut self, step: &Step<'p>, fileset: FilesetId) -> Result<Flow> {
        for slot in 0..self.slots.len() - 1 {
            let place = &self.slots[slot];
            if place.fd.is_some() && place.file.is_some_and(|file| file.fileset == fileset.0) {
                self.fsync_slot(step, slot)?;
            }
        }
        self.look();
        Ok(Flow::On)
    }

    fn fsync_slot(&mut self, step: &Step<'p>, slot: usize) -> Result<()> {
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

    pub fn make_dir(&mut self, step: &Step<'p>, fileset: FilesetId) -> Result<Flow> {
        let (live, index) = match self.pick_leaf_dir(step, fileset, Want::Missing)? {
            Ok(found) => found,
            Err(flow) => return Ok(flow),
        };
        live.leaf_path(live.tree.leaf_dirs[index as usize], &mut self.path);
        let begin_ns = self.begin();
        mkdirat(
            &self.engine.root,
            self.path.get(),
            Mode::from_raw_mode(0o755),
        )
        .map_err(|errno| self.path_error("create directory", errno))?;
        self.end(step, begin_ns, 0);
        live.leaf_dirs.release(index, Becomes::Existing, 0);
        Ok(Flow::On)
    }

    pub fn remove_dir(&mut self, step: &Step<'p>, fileset: FilesetId) -> Result<Flow> {
        let (live, index) = match self.pick_leaf_dir(step, fileset, Want::Existing)? {
            Ok(found) => found,
            Err(flow) => return Ok(flow),
        };
        live.leaf_path(live.tree.leaf_dirs[index as usize], &mut self.path);
        let begin_ns = self.begin();
        unlinkat(&self.engine.root, self.path.get(), AtFlags::REMOVEDIR)
            .map_err(|errno| self.path_error("remove directory", errno))?;
        self.end(step, begin_ns, 0);
        live.leaf_dirs.release(index, Becomes::Missing, 0);
        Ok(Flow::On)
    }

    pub fn list_dir(&mut self, step: &Step<'p>, fileset: FilesetId) -> Result<Flow> {
        let live = &self.engine.filesets[fileset.0];
        let rotor = live.dirs.rotor(Want::Existing);
        let attempt = || match live.dirs.pick_next(Want::Existing, rotor) {
            Pick::Taken(index) => Some(index),
            // A fileset has at least its root.
            Pick::Busy | Pick::None => None,
        };
        let Some(dir) = attempt().or_else(|| live.dirs.idle.until(attempt, self.give_up())) else {
            return Ok(Flow::Over);
        };
        live.dir_path(dir, &mut self.path);
        let begin_ns = self.begin();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = openat(&self.engine.root, self.path.get(), flags, Mode::empty())
            .map_err(|errno| self.path_error("open directory", errno))?;
        let mut records = [const { MaybeUninit::<u8>::uninit() }; 8192];
        let mut entries = RawDir::new(&open, &mut records);
        let mut bytes = 0;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|errno| self.path_error("list directory", errno))?;
            bytes += entry.file_name().count_bytes() as u64 + DIRENT_BYTES;
        }
        drop(open);
        self.end(step, begin_ns, bytes);
        live.dirs.release(dir, Becomes::Same, 0);
        Ok(Flow::On)
    }

    /// The fileset that a target names.
    fn fileset(&self, step: &Step<'p>, target: &Target) -> Result<(usize, &'e LiveFileset<'p>)> {
        match target.fileset {
            Some(id) => Ok((id.0, &self.engine.filesets[id.0])),
            None => Err(WorkloadError::flowop(
                step.flowop,
                "no file is open in its fd, and it names no fileset to take one from",
            )),
        }
    }

    /// Takes an entry of a fileset. If all are busy, waits for one: Filebench does so only while
    /// every entry is, and otherwise ends the run, by chance.
    fn pick(
        &mut self,
        step: &Step<'p>,
        id: usize,
        kind: Kind,
        want: Want,
        target: &Target,
        own_rotor: bool,
    ) -> Result<std::result::Result<u32, Flow>> {
        let live = &self.engine.filesets[id];
        let entries = live.entries(kind);
        if entries.len() == 0 {
            return Err(WorkloadError::flowop(
                step.flowop,
                format!(
                    "fileset {} has no entries of the kind it needs",
                    live.plan.name
                ),
            ));
        }
        let at = target
            .index
            .map(|index| place(&mut self.draws, index, entries.len(), kind));
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
        Ok(match found {
            Some(Some(index)) => Ok(index),
            Some(None) => {
                let what = live.lacking(kind, want);
                Err(Flow::Lacking(format!(
                    "flowop {}: {what}",
                    step.flowop.name
                )))
            }
            None => Err(Flow::Over),
        })
    }

    /// Takes a leaf directory.
    fn pick_leaf_dir(
        &mut self,
        step: &Step<'p>,
        fileset: FilesetId,
        want: Want,
    ) -> Result<std::result::Result<(&'e LiveFileset<'p>, u32), Flow>> {
        let target = Target {
            fileset: Some(fileset),
            index: None,
            fd: 0,
            rotate: false,
            flags: OpenFlags::default(),
        };
        let picked = self.pick(step, fileset.0, Kind::LeafDir, want, &target, false)?;
        Ok(picked.map(|index| (&self.engine.filesets[fileset.0], index)))
    }

    /// Makes the entry of an open or remembered file busy; false if the run ended before.
    fn own(&self, file: Option<FileId>) -> bool {
        let Some(file) = file else {
            return true;
        };
        let entries = &self.engine.filesets[file.fileset].files;
        let attempt = || entries.take(file.index).then_some(());
        attempt().is_some() || entries.idle.until(attempt, self.give_up()).is_some()
    }

    fn open_flags(&self, flags: OpenFlags) -> OFlags {
        let mut all = OFlags::CLOEXEC;
        if flags.dsync && !self.engine.no_fsync {
            all |= OFlags::SYNC;
        }
        if flags.direct_io {
            all |= OFlags::DIRECT;
        }
        all
    }

    fn must_be_free(&self, step: &Step<'p>, slot: usize) -> Result<()> {
        if self.slots[slot].fd.is_none() {
            return Ok(());
        }
        Err(WorkloadError::flowop(
            step.flowop,
            format!("fd {slot} holds an open file already; close it first"),
        ))
    }

    fn not_open(step: &Step<'p>, slot: usize) -> WorkloadError {
        WorkloadError::flowop(
            step.flowop,
            format!("no file is open in fd {slot}; open or create one first"),
        )
    }
}

/// How a fileset's files are opened.
fn access(fileset: &Fileset) -> OFlags {
    if fileset.read_only {
        OFlags::RDONLY
    } else if fileset.write_only {
        OFlags::WRONLY
    } else {
        OFlags::RDWR
    }
}

/// The entry that an `indexed` operation means.
fn place(draws: &mut Draws<'_>, index: Value, count: usize, kind: Kind) -> u32 {
    let drawn = draws.real(index);
    let drawn = match kind {
        Kind::File => floor(drawn),
        Kind::LeafDir => floor(drawn * (count / 2) as f64),
    };
    u32::try_from(drawn % count.max(1) as u64).unwrap_or(0)
}
