//! Measures one cell; every back-end uses this.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use luc_report::BatchProgress;
use sha2::{Digest as _, Sha256};

use crate::cell::{Cell, Versions};
use crate::error::{CampaignError, Result};
use crate::places::{self, Needs, Place, Setup};
use crate::store::Store;

/// Everything that decides the versions of a cell: its place, its machine and its workload file.
type Kind = (String, BTreeMap<String, String>, Option<PathBuf>);

/// The versions that cells have on this machine now, determined once for each kind of machine.
pub struct VersionsOf<'a> {
    setup: &'a Setup,
    known: Vec<(Kind, Versions)>,
}

impl<'a> VersionsOf<'a> {
    pub fn new(setup: &'a Setup) -> Self {
        Self {
            setup,
            known: Vec::new(),
        }
    }

    /// Whether a result of these versions counts: the cell would be measured with them, or any
    /// version counts. False if this program does not know the place.
    ///
    /// # Errors
    /// The place cannot determine them.
    pub fn count(&mut self, cell: &Cell, versions: &Versions) -> Result<bool> {
        let any = self.setup.any_version;
        Ok(self
            .for_cell(cell)?
            .is_some_and(|now| any || now == versions))
    }

    /// The versions that the cell would be measured with; `None` if this program does not know the
    /// place.
    ///
    /// # Errors
    /// The place cannot determine them.
    pub fn for_cell(&mut self, cell: &Cell) -> Result<Option<&Versions>> {
        let Some(place) = places::find(&cell.place) else {
            return Ok(None);
        };
        let kind = (
            cell.place.clone(),
            cell.machine.clone(),
            cell.workload_file(),
        );
        let same = |(known, _): &(Kind, Versions)| *known == kind;
        let at = if let Some(at) = self.known.iter().position(same) {
            at
        } else {
            let now = versions(place, cell, self.setup)?;
            self.known.push((kind, now));
            self.known.len() - 1
        };
        Ok(self.known.get(at).map(|(_, versions)| versions))
    }
}

/// The versions of the place, and a digest of the workload file.
fn versions(place: &dyn Place, cell: &Cell, setup: &Setup) -> Result<Versions> {
    let mut versions = place.versions(cell, setup)?;
    if let Some(file) = cell.workload_file() {
        let text = fs::read(&file).map_err(CampaignError::file("read", &file))?;
        versions.insert(
            "workload".to_owned(),
            format!("{:.16x}", Sha256::digest(text)),
        );
    }
    Ok(versions)
}

/// A cell without a result, to be measured by another process.
#[derive(Clone, Debug)]
pub struct Missing<'a> {
    pub cell: &'a Cell,
    pub versions: Versions,
    pub needs: Needs,
}

impl<'a> Missing<'a> {
    /// # Errors
    /// A place cannot determine its versions.
    pub fn find(cells: &'a [Cell], setup: &Setup) -> Result<Vec<Self>> {
        let mut versions = VersionsOf::new(setup);
        let of = |cell| {
            Ok(Self {
                cell,
                needs: place_of(cell)?.needs(cell),
                versions: versions.for_cell(cell)?.cloned().unwrap_or_default(),
            })
        };
        cells.iter().map(of).collect()
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
    progress: &mut dyn luc_vm::Progress,
) -> Result<bool> {
    let place = place_of(cell)?;
    let versions = versions(place, cell, setup)?;
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
            progress.note(&format!("{} failed: {why}", places::shown(cell)));
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

/// The place of a cell.
///
/// # Errors
/// No place has that name.
pub fn place_of(cell: &Cell) -> Result<&'static dyn Place> {
    places::find(&cell.place).ok_or_else(|| CampaignError::BadKey {
        why: format!("no place {}", cell.place),
    })
}

/// Counts cells for the progress display.
pub struct Board<'a> {
    progress: &'a dyn BatchProgress,
    done: usize,
    total: usize,
}

impl<'a> Board<'a> {
    pub fn new(progress: &'a dyn BatchProgress, done: usize, total: usize) -> Self {
        Self {
            progress,
            done,
            total,
        }
    }

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
