//! Runs a campaign to its end: wave by wave, on a back-end.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::backends::Backend;
use crate::cell::Cell;
use crate::error::{CampaignError, Result};
use crate::file::Campaign;
use crate::places::{self, Place, Setup};
use crate::store::{CellResult, Results, Store};
use crate::wave::{self, Wave};

/// Shows how far a campaign is. Called from several threads.
pub trait Progress: Sync {
    /// `done` of `total` cells that are known to be needed.
    fn step(&self, _done: usize, _total: usize, _now: &str) {}
    /// Something that the user should know but that stops nothing; one line.
    fn note(&self, _text: &str) {}
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {}

/// How a campaign ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub wave: Wave,
    /// Cells measured by this run.
    pub measured: usize,
}

/// Runs what is missing. A cell that fails is kept with its log and stops no other; it is tried
/// again only if `again`.
///
/// # Errors
/// The folder is taken or cannot be written, the place or the back-end cannot work at all, or a
/// signal came. What was measured is kept.
pub fn run(
    campaign: &Campaign,
    store: &Store,
    backend: &dyn Backend,
    setup: &Setup,
    again: bool,
    progress: &dyn Progress,
) -> Result<Ended> {
    let _lock = store.lock()?;
    let mut measured = 0;
    // Failures of former runs count if they are not to be tried again, those of this run always.
    let mut tried: BTreeSet<Cell> = BTreeSet::new();
    let mut results = read(store, progress)?;
    loop {
        let state = state(campaign, &results, setup, |cell| {
            !again || tried.contains(cell)
        })?;
        if state.cells.is_empty() {
            return Ok(Ended {
                wave: state,
                measured,
            });
        }
        if let Some(lost) = state.cells.iter().find(|cell| tried.contains(cell)) {
            return Err(CampaignError::Backend {
                backend: backend.name(),
                why: format!(
                    "{} came back without a result and without a failure",
                    lost.shown()
                ),
            });
        }
        let total = state.done + state.cells.len();
        let mut board = Board {
            progress,
            done: state.done,
            total,
        };
        tried.extend(state.cells.iter().cloned());
        backend.measure(&state.cells, store, setup, &mut board)?;
        results = store.read()?;
        let fresh = wave_done(&state.cells, &results, setup)?;
        measured += fresh;
        if setup.stop.is_set() {
            return Err(CampaignError::Interrupted);
        }
    }
}

fn read(store: &Store, progress: &dyn Progress) -> Result<Results> {
    let results = store.read()?;
    for path in &results.damaged {
        progress.note(&format!(
            "{} is damaged; its cell is measured again",
            path.display()
        ));
    }
    Ok(results)
}

/// How far the campaign is; `gave_up` says of a cell that failed whether it is left at that.
///
/// # Errors
/// The versions of a place cannot be told.
pub fn state(
    campaign: &Campaign,
    results: &Results,
    setup: &Setup,
    gave_up: impl Fn(&Cell) -> bool,
) -> Result<Wave> {
    let mut versions = VersionsOf::new(setup);
    let mut current: Vec<&CellResult> = Vec::new();
    for result in &results.results {
        if versions.are(&result.cell, &result.versions)? {
            current.push(result);
        }
    }
    let by_cell = current
        .into_iter()
        .map(|result| (&result.cell, result))
        .collect();
    let mut failed = BTreeSet::new();
    for failure in &results.failed {
        if versions.are(&failure.cell, &failure.versions)? && gave_up(&failure.cell) {
            failed.insert(&failure.cell);
        }
    }
    Ok(wave::next(campaign, &by_cell, &failed))
}

fn wave_done(cells: &[Cell], results: &Results, setup: &Setup) -> Result<usize> {
    let mut versions = VersionsOf::new(setup);
    let wanted: BTreeSet<&Cell> = cells.iter().collect();
    let mut done = 0;
    for result in &results.results {
        if wanted.contains(&result.cell) && versions.are(&result.cell, &result.versions)? {
            done += 1;
        }
    }
    Ok(done)
}

/// The versions that a cell has on this machine now; asked once for each kind of machine.
pub struct VersionsOf<'a> {
    setup: &'a Setup,
    known: Vec<(
        String,
        std::collections::BTreeMap<String, String>,
        crate::cell::Versions,
    )>,
}

impl<'a> VersionsOf<'a> {
    pub fn new(setup: &'a Setup) -> Self {
        Self {
            setup,
            known: Vec::new(),
        }
    }

    /// Whether these are the versions that the cell would be measured with; false where the place
    /// is none that this version knows.
    ///
    /// # Errors
    /// The place cannot tell them.
    pub fn are(&mut self, cell: &Cell, versions: &crate::cell::Versions) -> Result<bool> {
        Ok(self.of(cell)?.is_some_and(|now| now == versions))
    }

    /// The versions that the cell would be measured with; `None` where the place is none that this
    /// version knows.
    ///
    /// # Errors
    /// The place cannot tell them.
    pub fn of(&mut self, cell: &Cell) -> Result<Option<&crate::cell::Versions>> {
        let Some(place) = places::find(&cell.place) else {
            return Ok(None);
        };
        let same =
            |(name, machine, _): &(String, _, _)| *name == cell.place && *machine == cell.machine;
        let at = if let Some(at) = self.known.iter().position(same) {
            at
        } else {
            let now = place.versions(cell, self.setup)?;
            let kind = (cell.place.clone(), cell.machine.clone(), now);
            self.known.push(kind);
            self.known.len() - 1
        };
        Ok(self.known.get(at).map(|(_, _, versions)| versions))
    }
}

/// Measures one cell and keeps its result, or why there is none. True if it has a result.
///
/// # Errors
/// The place cannot measure at all, the result cannot be kept, or a signal came.
pub fn measure_cell(
    cell: &Cell,
    store: &Store,
    setup: &Setup,
    progress: &mut dyn luc_lab::Progress,
) -> Result<bool> {
    let place = place_of(cell)?;
    let versions = place.versions(cell, setup)?;
    if store.has(cell, &versions) {
        return Ok(true);
    }
    let begun = Instant::now();
    let measured = place.measure(cell, setup, progress);
    if setup.stop.is_set() {
        return Err(CampaignError::Interrupted);
    }
    match measured {
        Ok(measured) => {
            store.keep(cell, &versions, measured, begun.elapsed().as_secs_f64())?;
            Ok(true)
        }
        Err(CampaignError::Failed { why, log }) => {
            store.keep_failure(cell, &versions, &why, log.as_deref())?;
            progress.note(&format!("{} failed: {why}", cell.shown()));
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

/// The place of a cell.
///
/// # Errors
/// There is none of that name.
pub fn place_of(cell: &Cell) -> Result<&'static dyn Place> {
    places::find(&cell.place).ok_or_else(|| CampaignError::BadKey {
        why: format!("no place {}", cell.place),
    })
}

/// Counts cells for the progress.
pub struct Board<'a> {
    progress: &'a dyn Progress,
    done: usize,
    total: usize,
}

impl Board<'_> {
    pub fn done(&mut self, cells: usize, now: &str) {
        self.done += cells;
        self.say(now);
    }

    pub fn say(&self, now: &str) {
        self.progress.step(self.done, self.total, now);
    }

    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }
}
