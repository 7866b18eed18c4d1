//! Flowops that open, create, close and remove.

use luc_wml::plan::{FilesetId, Slot as Fd, Target};
use luc_workload::wml::parts::{Becomes, Kind, Pick, SLOTS, Step, Want, place};

use super::{Flow, Halt, Thread, refused};
use luc_sim::program::Op;

impl Thread<'_> {
    pub(super) async fn open(&mut self, step: &Step<'_>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.open_at(step, target, slot).await
    }

    /// Opens the next existing file in a slot, as a transfer with an empty slot does.
    pub(super) async fn open_at(&mut self, step: &Step<'_>, target: &Target, slot: usize) -> Flow {
        let set = fileset(step, target)?;
        self.must_be_free(step, slot)?;
        let index = self
            .pick(step, set, Want::Existing, target, target.rotate)
            .await?;
        self.use_file(set, index).await;
        let begin_ns = self.now_ns();
        self.call(Op::Open).await;
        self.opened(target, slot, (set, index), Becomes::Same).await;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub(super) async fn create(&mut self, step: &Step<'_>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.must_be_free(step, slot)?;
        let set = fileset(step, target)?;
        let index = self.pick(step, set, Want::Missing, target, false).await?;
        self.use_file(set, index).await;
        let begin_ns = self.now_ns();
        // Each create first looks up the parent.
        self.call(Op::Stat).await;
        let of = &self.shared.sets[set];
        let dir = of.first_dir + of.tree.files[index as usize].parent;
        self.call(Op::Create { dir }).await;
        self.shared.state().bytes[set][index as usize] = 0;
        self.opened(target, slot, (set, index), Becomes::Existing)
            .await;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    async fn opened(&mut self, target: &Target, slot: usize, file: (usize, u32), becomes: Becomes) {
        self.release(file, becomes, 1).await;
        let place = &mut self.slots[slot];
        place.is_open = true;
        place.file = Some(file);
        place.is_dsync = target.flags.dsync && !self.shared.no_fsync;
        place.at = 0;
    }

    pub(super) async fn close(&mut self, step: &Step<'_>, fd: Fd, rotate: bool) -> Flow {
        let slot = self.slot(fd, rotate);
        self.must_be_open(step, slot)?;
        self.slots[slot].is_open = false;
        let file = self.slots[slot].file;
        self.own(file).await?;
        let begin_ns = self.now_ns();
        self.call(Op::Close).await;
        self.end(step, begin_ns, 0);
        if let Some(file) = file {
            self.release(file, Becomes::Same, -1).await;
        }
        Ok(())
    }

    pub(super) async fn delete(&mut self, step: &Step<'_>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        // The last file of this slot, open or not.
        let named = self.slots[slot].file.take_if(|_| slot > 0);
        let (set, index) = if let Some(file) = named {
            self.own(named).await?;
            file
        } else {
            let set = fileset(step, target)?;
            (
                set,
                self.pick(step, set, Want::Existing, target, false).await?,
            )
        };
        let entries = &self.shared.sets[set].files;
        let mine = u32::from(named.is_some());
        if entries.opens(index) > mine || !entries.exists(index) {
            // Another thread has it open, or it is gone already: it is left alone and not counted.
            self.release((set, index), Becomes::Same, 0).await;
            return Ok(());
        }
        self.use_file(set, index).await;
        let begin_ns = self.now_ns();
        self.call(Op::Unlink).await;
        self.end(step, begin_ns, 0);
        self.release((set, index), Becomes::Missing, 0).await;
        Ok(())
    }

    pub(super) async fn stat(&mut self, step: &Step<'_>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        let begin_ns = self.now_ns();
        if slot > 0 && self.slots[slot].is_open {
            self.call(Op::Compute(self.shared.costs.seek)).await;
            self.end(step, begin_ns, 0);
            return Ok(());
        }
        let set = fileset(step, target)?;
        let index = self.pick(step, set, Want::Existing, target, false).await?;
        let begin_ns = self.now_ns();
        self.call(Op::Stat).await;
        self.end(step, begin_ns, 0);
        self.release((set, index), Becomes::Same, 0).await;
        Ok(())
    }

    pub(super) async fn fsync(&mut self, step: &Step<'_>, target: &Target) -> Flow {
        let slot = self.slot_of(target);
        self.must_be_open(step, slot)?;
        self.fsync_slot(step, slot).await;
        Ok(())
    }

    pub(super) async fn fsync_set(&mut self, step: &Step<'_>, fileset: FilesetId) -> Flow {
        for slot in 0..SLOTS - 1 {
            let place = &self.slots[slot];
            if place.is_open && place.file.is_some_and(|(set, _)| set == fileset.0) {
                self.fsync_slot(step, slot).await;
            }
        }
        Ok(())
    }

    async fn fsync_slot(&mut self, step: &Step<'_>, slot: usize) {
        let Some((set, index)) = self.slots[slot].file else {
            return;
        };
        self.use_file(set, index).await;
        let begin_ns = self.now_ns();
        if !self.shared.no_fsync {
            self.call(Op::Fsync).await;
        }
        if let Some(ns) = self.end(step, begin_ns, 0)
            && !self.shared.no_fsync
        {
            self.shared.state().fsync.record(ns);
        }
    }

    /// Makes this entry's file the task's file.
    pub(super) async fn use_file(&self, set: usize, index: u32) {
        let file = self.shared.sets[set].first_file + index;
        self.call(Op::Use(file)).await;
    }

    /// Takes an entry of a fileset; waits if all suitable ones are busy.
    async fn pick(
        &mut self,
        step: &Step<'_>,
        set: usize,
        want: Want,
        target: &Target,
        own_rotor: bool,
    ) -> Flow<u32> {
        let entries = &self.shared.sets[set].files;
        let name = &self.shared.sets[set].name;
        if entries.count() == 0 {
            return refused(step.flowop, &format!("fileset {name} has no files"));
        }
        let at = target
            .index
            .map(|index| place(&mut self.draws, index, entries.count(), Kind::File));
        loop {
            let pick = match at {
                Some(at) => entries.pick_at(want, at),
                None if own_rotor => entries.pick_next(want, &self.rotors[set]),
                None => entries.pick_next(want, entries.rotor(want)),
            };
            match pick {
                Pick::Taken(index) => return Ok(index),
                Pick::Busy => self.wait_for_entry(set).await?,
                Pick::None => {
                    let (flowop, count) = (&step.flowop.name, entries.count());
                    let why = match want {
                        Want::Existing => {
                            format!("none of the {count} files of fileset {name} exists")
                        }
                        Want::Missing => format!("all {count} files of fileset {name} exist"),
                    };
                    return Err(Halt::Lacking(format!("flowop {flowop}: {why}")));
                }
            }
        }
    }

    /// Makes the entry of an open or remembered file busy.
    async fn own(&self, file: Option<(usize, u32)>) -> Flow {
        let Some((set, index)) = file else {
            return Ok(());
        };
        while !self.shared.sets[set].files.take(index) {
            self.wait_for_entry(set).await?;
        }
        Ok(())
    }

    async fn wait_for_entry(&self, set: usize) -> Flow {
        self.shared.state().for_entry[set].push(self.number);
        self.call(Op::Park).await;
        self.unless_over()
    }

    async fn release(&self, (set, index): (usize, u32), becomes: Becomes, opened: i32) {
        self.shared.sets[set].files.release(index, becomes, opened);
        let waiting = std::mem::take(&mut self.shared.state().for_entry[set]);
        self.wake_all(waiting).await;
    }

    fn must_be_free(&self, step: &Step<'_>, slot: usize) -> Flow {
        if !self.slots[slot].is_open {
            return Ok(());
        }
        let why = format!("fd {slot} already holds an open file; close it first");
        refused(step.flowop, &why)
    }

    fn must_be_open(&self, step: &Step<'_>, slot: usize) -> Flow {
        if self.slots[slot].is_open {
            return Ok(());
        }
        let why = format!("no file is open in fd {slot}; open or create one first");
        refused(step.flowop, &why)
    }
}

/// Returns the fileset that a target names.
fn fileset(step: &Step<'_>, target: &Target) -> Flow<usize> {
    target.fileset.map_or_else(
        || {
            refused(
                step.flowop,
                "no file is open in its fd, and it names no fileset",
            )
        },
        |id| Ok(id.0),
    )
}
