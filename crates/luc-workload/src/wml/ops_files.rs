//! Flowops that open, create, close, remove and list.

use luc_wml::plan::{FilesetId, OpenFlags, Slot as Fd, Target, Value};

use super::draw::Draws;
use super::engine::Step;
use super::fileset::Kind;
use super::halt::{Flow, Halt};
use super::random::floor;
use super::rotor::{Becomes, Pick, Want};
use super::system::{ByName, EntryId, System};
use super::thread::{Thread, in_slot};
use crate::WorkloadError;

impl<'e, S: System> Thread<'e, S> {
    pub async fn open(&mut self, step: &Step<'e>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.open_at(step, target, slot).await
    }

    /// Opens the next existing file in `slot`, as a transfer with an empty slot does.
    pub async fn open_at(&mut self, step: &Step<'e>, target: &Target, slot: usize) -> Flow {
        let id = fileset(step, target)?;
        self.must_be_free(step, slot)?;
        let picked = self.pick(step, id, Kind::File, Want::Existing, target, target.rotate);
        let file = picked.await?;
        let flags = self.open_flags(target);
        self.system.aim(Kind::File, file).await;
        let begin_ns = self.system.now_ns();
        let open = self.system.open(file, flags).await?;
        self.opened(slot, open, flags, (file, Becomes::Same)).await;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub async fn create(&mut self, step: &Step<'e>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.must_be_free(step, slot)?;
        let id = fileset(step, target)?;
        let picked = self.pick(step, id, Kind::File, Want::Missing, target, false);
        let file = picked.await?;
        let flags = self.open_flags(target);
        self.system.aim(Kind::File, file).await;
        let begin_ns = self.system.now_ns();
        let open = self.system.create(file, flags).await?;
        let becomes = (file, Becomes::Existing);
        self.opened(slot, open, flags, becomes).await;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    fn opened(
        &mut self,
        slot: usize,
        open: S::File,
        flags: OpenFlags,
        (file, becomes): (EntryId, Becomes),
    ) -> impl Future<Output = ()> {
        let place = &mut self.slots[slot];
        place.open = Some(open);
        place.file = Some(file);
        place.dsync = flags.dsync;
        self.release(Kind::File, file, becomes, 1)
    }

    pub async fn close(&mut self, step: &Step<'e>, fd: Fd, rotate: bool) -> Flow {
        let slot = self.slot(fd, rotate);
        in_slot(step, &mut self.slots, slot)?;
        let file = self.slots[slot].file;
        if let Some(file) = file {
            self.own(file).await?;
        }
        let begin_ns = self.system.now_ns();
        if let Some(open) = self.slots[slot].open.take() {
            self.system.close(open).await;
        }
        self.end(step, begin_ns, 0);
        if let Some(file) = file {
            self.release(Kind::File, file, Becomes::Same, -1).await;
        }
        Ok(())
    }

    pub async fn delete(&mut self, step: &Step<'e>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        // The last file of this slot, open or not.
        let named = self.slots[slot].file.take_if(|_| slot > 0);
        let file = if let Some(file) = named {
            self.own(file).await?;
            file
        } else {
            let id = fileset(step, target)?;
            let picked = self.pick(step, id, Kind::File, Want::Existing, target, false);
            picked.await?
        };
        let entries = &self.engine.filesets[file.fileset].files;
        let mine = u32::from(slot > 0 && self.slots[slot].open.is_some());
        if entries.opens(file.index) > mine || !entries.exists(file.index) {
            // Another thread has the file open, or it is already gone: leave it alone and do not
            // count it.
            self.release(Kind::File, file, Becomes::Same, 0).await;
            self.system.now_ns();
            return Ok(());
        }
        self.named(step, Kind::File, file, ByName::Unlink).await?;
        self.release(Kind::File, file, Becomes::Missing, 0).await;
        Ok(())
    }

    pub async fn stat(&mut self, step: &Step<'e>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        if slot > 0
            && let Some(open) = &self.slots[slot].open
        {
            let begin_ns = self.system.now_ns();
            self.system.stat_open(open).await?;
            self.end(step, begin_ns, 0);
            return Ok(());
        }
        let id = fileset(step, target)?;
        let picked = self.pick(step, id, Kind::File, Want::Existing, target, false);
        let file = picked.await?;
        self.named(step, Kind::File, file, ByName::Stat).await?;
        self.release(Kind::File, file, Becomes::Same, 0).await;
        Ok(())
    }

    pub async fn fsync(&mut self, step: &Step<'e>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.fsync_slot(step, slot).await
    }

    pub async fn fsync_set(&mut self, step: &Step<'e>, fileset: FilesetId) -> Flow {
        for slot in 0..self.slots.len() - 1 {
            let place = &self.slots[slot];
            if place.open.is_some() && place.file.is_some_and(|file| file.fileset == fileset.0) {
                self.fsync_slot(step, slot).await?;
            }
        }
        self.system.now_ns();
        Ok(())
    }

    async fn fsync_slot(&mut self, step: &Step<'e>, slot: usize) -> Flow {
        let file = in_slot(step, &mut self.slots, slot)?;
        let begin_ns = self.system.now_ns();
        if !self.engine.no_fsync {
            self.system.fsync(file).await?;
        }
        if let Some(ns) = self.end(step, begin_ns, 0)
            && !self.engine.no_fsync
        {
            self.system.count(|counted| counted.fsync.record(ns));
        }
        Ok(())
    }

    pub async fn make_dir(&mut self, step: &Step<'e>, fileset: FilesetId) -> Flow {
        let (from, to) = (Want::Missing, Becomes::Existing);
        self.change_dir(step, fileset, ByName::MakeDir, from, to)
            .await
    }

    pub async fn remove_dir(&mut self, step: &Step<'e>, fileset: FilesetId) -> Flow {
        let (from, to) = (Want::Existing, Becomes::Missing);
        self.change_dir(step, fileset, ByName::RemoveDir, from, to)
            .await
    }

    /// Takes a leaf directory that is in one state, and gives it another.
    async fn change_dir(
        &mut self,
        step: &Step<'e>,
        FilesetId(id): FilesetId,
        call: ByName,
        from: Want,
        to: Becomes,
    ) -> Flow {
        let any = Target::default();
        let picked = self.pick(step, id, Kind::LeafDir, from, &any, false);
        let dir = picked.await?;
        self.named(step, Kind::LeafDir, dir, call).await?;
        self.release(Kind::LeafDir, dir, to, 0).await;
        Ok(())
    }

    /// Makes and counts a call by name.
    async fn named(&mut self, step: &Step<'e>, kind: Kind, entry: EntryId, call: ByName) -> Flow {
        self.system.aim(kind, entry).await;
        let begin_ns = self.system.now_ns();
        self.system.by_name(call).await?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub async fn list_dir(&mut self, step: &Step<'e>, fileset: FilesetId) -> Flow {
        let dirs = &self.engine.filesets[fileset.0].dirs;
        let rotor = dirs.rotor(Want::Existing);
        let attempt = || match dirs.pick_next(Want::Existing, rotor) {
            Pick::Taken(index) => Some(index),
            // A fileset has at least its root.
            Pick::Busy | Pick::None => None,
        };
        let dir = self.system.until(&dirs.idle, attempt).await?;
        let begin_ns = self.system.now_ns();
        let bytes = self.system.list_dir(fileset.0, dir).await?;
        self.end(step, begin_ns, bytes);
        dirs.release(dir, Becomes::Same, 0);
        self.system.wake(&dirs.idle).await;
        Ok(())
    }

    /// Takes an entry of a fileset. If all in the wanted state are busy, it waits for one;
    /// Filebench waits only while every entry is busy, and otherwise ends the run, depending on
    /// chance.
    async fn pick(
        &mut self,
        step: &Step<'e>,
        fileset: usize,
        kind: Kind,
        want: Want,
        target: &Target,
        own_rotor: bool,
    ) -> Flow<EntryId> {
        let live = &self.engine.filesets[fileset];
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
        let attempt = || {
            let pick = match at {
                Some(at) => entries.pick_at(want, at),
                None if own_rotor => entries.pick_next(want, &self.rotors[fileset]),
                None => entries.pick_next(want, entries.rotor(want)),
            };
            match pick {
                Pick::Taken(index) => Some(Some(index)),
                Pick::Busy => None,
                Pick::None => Some(None),
            }
        };
        let found = self.system.until(&entries.idle, attempt).await?;
        let found = found.map(|index| EntryId { fileset, index });
        found.ok_or_else(|| {
            let (name, what) = (&step.flowop.name, live.lacking(kind, want));
            let what = format!("flowop {name}: {what}");
            Halt::Lacking(Box::new(WorkloadError::NoEntry { what }))
        })
    }

    /// Takes the entry of an open or remembered file, so that it is busy.
    fn own(&self, file: EntryId) -> impl Future<Output = Flow> {
        let entries = &self.engine.filesets[file.fileset].files;
        let attempt = move || entries.take(file.index).then_some(());
        self.system.until(&entries.idle, attempt)
    }

    /// Ends the busy state of an entry; adds `opened` to the number of times it is open.
    fn release(
        &self,
        kind: Kind,
        entry: EntryId,
        becomes: Becomes,
        opened: i32,
    ) -> impl Future<Output = ()> {
        let entries = self.engine.filesets[entry.fileset].entries(kind);
        entries.release(entry.index, becomes, opened);
        self.system.wake(&entries.idle)
    }

    /// Returns the flags of an open, without those that the user has switched off.
    fn open_flags(&self, target: &Target) -> OpenFlags {
        OpenFlags {
            dsync: target.flags.dsync && !self.engine.no_fsync,
            ..target.flags
        }
    }

    fn must_be_free(&self, step: &Step<'e>, slot: usize) -> Flow {
        if self.slots[slot].open.is_none() {
            return Ok(());
        }
        step.refused(format!(
            "fd {slot} already holds an open file; close it first"
        ))
    }
}

/// Returns the fileset that a target names.
fn fileset(step: &Step<'_>, target: &Target) -> Flow<usize> {
    target.fileset.map_or_else(
        || step.refused("no file is open in its fd, and it names no fileset to take one from"),
        |id| Ok(id.0),
    )
}

/// Returns the entry that an `indexed` operation means.
fn place(draws: &mut Draws, index: Value, count: usize, kind: Kind) -> u32 {
    let drawn = draws.real(index);
    let drawn = match kind {
        Kind::File => floor(drawn),
        Kind::LeafDir => floor(drawn * (count / 2) as f64),
    };
    u32::try_from(drawn % count.max(1) as u64).unwrap_or(0)
}
