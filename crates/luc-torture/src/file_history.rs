//! Possible content of a file: for each sector and for the size, the promised state and all later
//! ones.
//!
//! A promise raises a *floor*: older states are forgotten, as they must not be found any more.

use std::collections::BTreeMap;

use crate::sector::SECTOR;

/// The latest mark of each thread when a sync began. A call that a thread began before that mark
/// had ended by then: the sync covers it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered(pub(crate) Vec<u64>);

impl Covered {
    pub(crate) fn has(&self, thread: u32, begun: u64) -> bool {
        self.0
            .get(thread as usize)
            .is_some_and(|latest| begun < *latest)
    }
}

/// One state of a sector: the first `keep` bytes of a version, then zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// 0: nothing but zeros.
    pub(crate) version: u64,
    pub(crate) keep: u32,
    begun: u64,
    thread: u32,
    /// The epoch whose truncation made it, and the bytes of the sector that the truncation left.
    truncated_by: Option<(usize, u32)>,
}

/// A sector's states, the first of them promised.
#[derive(Clone, Debug)]
pub(crate) struct SectorHistory {
    pub(crate) states: Vec<State>,
    pub(crate) ack: Option<u64>,
    pub(crate) newest_version: u64,
}

impl State {
    /// The state that a truncation leaves.
    fn cut(self, left: u32) -> Self {
        let keep = self.keep.min(left);
        Self {
            version: if keep == 0 { 0 } else { self.version },
            keep,
            ..self
        }
    }

    fn same_bytes(&self, other: &State) -> bool {
        self.version == other.version && (self.keep == other.keep || self.version == 0)
    }
}

impl SectorHistory {
    fn new() -> Self {
        Self {
            states: vec![State {
                version: 0,
                keep: 0,
                begun: 0,
                thread: 0,
                truncated_by: None,
            }],
            ack: None,
            newest_version: 0,
        }
    }

    fn latest(&self) -> State {
        self.states[self.states.len() - 1]
    }

    fn raise(&mut self, floor: usize, ack: u64) {
        if floor > 0 {
            self.states.drain(..floor);
            self.ack = Some(ack);
        }
    }

    /// The states that the page has had since the truncation of this epoch, which is on the disk:
    /// the state that it left, and later ones.
    pub(crate) fn in_page(&self, epoch: usize) -> &[State] {
        let by_then = |state: &State| state.truncated_by.is_some_and(|(by, _)| by <= epoch);
        let first = self.states.iter().rposition(by_then).unwrap_or(0);
        &self.states[first..]
    }

    /// The states that may be on the disk, if the truncation of this epoch is on the disk.
    ///
    /// A truncation cuts the state on the disk, which need not be the latest one: data that was
    /// never written back stays lost. After a truncation that is known to be done, no uncut state
    /// remains.
    pub(crate) fn allowed(&self, epoch: usize) -> Vec<State> {
        let mut allowed: Vec<State> = Vec::with_capacity(self.states.len());
        for (index, state) in self.states.iter().enumerate() {
            // The floor is promised: it is not cut.
            if let Some((by, left)) = state.truncated_by.filter(|_| index > 0) {
                let cut: Vec<State> = allowed.iter().map(|older| older.cut(left)).collect();
                if by <= epoch {
                    allowed.clear();
                }
                for state in cut {
                    if !allowed.iter().any(|known| known.same_bytes(&state)) {
                        allowed.push(state);
                    }
                }
            } else {
                allowed.push(*state);
            }
        }
        allowed
    }
}

/// The time from one truncation to the next, in which a file only grows.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    begun: u64,
    thread: u32,
    /// The size that the truncation set, or a promised larger one.
    pub(crate) floor_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) ack: Option<u64>,
    /// Ends of writes above the floor, each with its mark and thread.
    grown: Vec<(u64, u64, u32)>,
}

impl Epoch {
    fn new(bytes: u64, begun: u64, thread: u32) -> Self {
        Self {
            begun,
            thread,
            floor_bytes: bytes,
            max_bytes: bytes,
            ack: None,
            grown: Vec::new(),
        }
    }

    fn raise(&mut self, bytes: u64, ack: u64) {
        if bytes > self.floor_bytes || self.ack.is_none() {
            self.floor_bytes = self.floor_bytes.max(bytes);
            self.ack = Some(ack);
        }
        let floor = self.floor_bytes;
        self.grown.retain(|(end, ..)| *end > floor);
    }
}

/// A file's states.
#[derive(Clone, Debug)]
pub(crate) struct FileHistory {
    pub(crate) sectors: BTreeMap<u32, SectorHistory>,
    /// The first epoch is the promised one.
    pub(crate) epochs: Vec<Epoch>,
    /// Number of the first epoch.
    pub(crate) first_epoch: usize,
}

/// The range and version of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) sector: u32,
    pub(crate) sectors: u32,
    pub(crate) version: u64,
}

impl Range {
    pub(crate) fn end_bytes(&self) -> u64 {
        (u64::from(self.sector) + u64::from(self.sectors)) * SECTOR
    }
}

impl FileHistory {
    pub(crate) fn new(begun: u64, thread: u32) -> Self {
        Self {
            sectors: BTreeMap::new(),
            epochs: vec![Epoch::new(0, begun, thread)],
            first_epoch: 0,
        }
    }

    fn last_epoch(&mut self) -> &mut Epoch {
        let last = self.epochs.len() - 1;
        &mut self.epochs[last]
    }

    pub(crate) fn write(&mut self, range: Range, begun: u64, thread: u32) {
        for sector in range.sector..range.sector.saturating_add(range.sectors) {
            let history = self.sectors.entry(sector);
            let history = history.or_insert_with(SectorHistory::new);
            history.states.push(State {
                version: range.version,
                keep: u32::try_from(SECTOR).unwrap_or(u32::MAX),
                begun,
                thread,
                truncated_by: None,
            });
            history.newest_version = history.newest_version.max(range.version);
        }
        let end = range.end_bytes();
        let epoch = self.last_epoch();
        epoch.max_bytes = epoch.max_bytes.max(end);
        if end > epoch.floor_bytes {
            epoch.grown.push((end, begun, thread));
        }
    }

    pub(crate) fn truncate(&mut self, bytes: u64, begun: u64, thread: u32) {
        let number = self.first_epoch + self.epochs.len();
        let first = u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX);
        for (sector, history) in self.sectors.range_mut(first..) {
            let latest = history.latest();
            let left = bytes.saturating_sub(u64::from(*sector) * SECTOR);
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            if latest.version == 0 || left >= latest.keep {
                continue;
            }
            history.states.push(State {
                begun,
                thread,
                truncated_by: Some((number, left)),
                ..latest.cut(left)
            });
        }
        self.epochs.push(Epoch::new(bytes, begun, thread));
    }

    /// Records that a sync of the whole file was acknowledged.
    pub(crate) fn synced(&mut self, covered: &Covered, ack: u64) {
        for history in self.sectors.values_mut() {
            let done = |state: &State| covered.has(state.thread, state.begun);
            let floor = history.states.iter().rposition(done).unwrap_or(0);
            history.raise(floor, ack);
        }
        self.raise_epoch(covered);
        let epoch = &mut self.epochs[0];
        let done = |(_, begun, thread): &&(u64, u64, u32)| covered.has(*thread, *begun);
        let ends = epoch.grown.iter().filter(done).map(|(end, ..)| *end);
        let end = ends.max().unwrap_or(0);
        epoch.raise(end, ack);
    }

    /// Records that a write with `O_SYNC` or `O_DSYNC` was acknowledged: it promises its range, and
    /// every truncation before it, since the size is a single value.
    ///
    /// With delayed allocation, ext4 breaks a part of this promise, without LUC too. While a write
    /// further on has no blocks yet, a synced write in a block of the file's old end leaves the old
    /// size on the disk (`ext4_da_do_write_end` raises the size on the disk only with that in
    /// memory). So the size is promised only if no such write is known. The script `osync.sh` of
    /// the system tests shows the fault.
    pub(crate) fn synced_range(&mut self, range: Range, covered: &Covered, ack: u64) {
        for sector in range.sector..range.sector.saturating_add(range.sectors) {
            let Some(history) = self.sectors.get_mut(&sector) else {
                continue;
            };
            let written = |state: &State| state.version == range.version;
            let floor = history.states.iter().position(written).unwrap_or(0);
            history.raise(floor, ack);
        }
        self.raise_epoch(covered);
        let (epoch, end) = (&mut self.epochs[0], range.end_bytes());
        if epoch.grown.iter().all(|(grown, ..)| *grown <= end) {
            epoch.raise(end, ack);
        }
    }

    /// Makes the last covered truncation the promised one.
    fn raise_epoch(&mut self, covered: &Covered) {
        let done = |epoch: &Epoch| covered.has(epoch.thread, epoch.begun);
        let last = self.epochs.iter().rposition(done).unwrap_or(0);
        self.epochs.drain(..last);
        self.first_epoch += last;
    }

    /// True if a sync would promise nothing more.
    pub(crate) fn is_settled(&self) -> bool {
        let one_state = |sector: &SectorHistory| sector.states.len() == 1;
        self.epochs.len() == 1
            && self.epochs[0].grown.is_empty()
            && self.sectors.values().all(one_state)
    }

    /// True if the sector's block may not have been written since it became the file's.
    pub(crate) fn may_be_fresh(&self, sector: u32) -> bool {
        let fresh = self.sectors.get(&sector).is_none_or(|history| {
            history
                .states
                .iter()
                .any(|state| state.version == 0 || state.truncated_by.is_some())
        });
        fresh && !self.is_settled()
    }
}
