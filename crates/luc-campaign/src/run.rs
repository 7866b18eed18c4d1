//! Runs a campaign to its end: wave by wave, on a back-end.

use std::collections::{BTreeMap, BTreeSet};

use luc_report::BatchProgress;

use crate::backends::Backend;
use crate::cell::Cell;
use crate::error::{CampaignError, Result};
use crate::file::Campaign;
use crate::measure::{Board, VersionsOf};
use crate::places::{self, Setup};
use crate::store::{CAMPAIGN_FILE, CellResult, Results, Store};
use crate::wave::{self, Wave};

/// How a campaign ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub wave: Wave,
    /// Cells measured by this run.
    pub measured: usize,
}

/// Measures the missing cells. A failure is kept with its log and does not stop the other cells;
/// failures of earlier runs are tried again only if `again`.
///
/// # Errors
/// The folder is in use or cannot be written, the place or the back-end cannot work at all, or a
/// signal came. Results so far are kept.
pub fn run(
    campaign: &Campaign,
    store: &Store,
    backend: &dyn Backend,
    setup: &Setup,
    again: bool,
    progress: &dyn BatchProgress,
) -> Result<Ended> {
    let _lock = store.lock()?;
    store.write(CAMPAIGN_FILE, campaign.text.as_bytes())?;
    let mut done_before = None;
    // Failures of this run always count; those of earlier runs do unless they are tried again.
    let mut tried: BTreeSet<Cell> = BTreeSet::new();
    let mut results = read(store, progress)?;
    loop {
        let state = state(campaign, &results, setup, |cell| {
            !again || tried.contains(cell)
        })?;
        let done_before = *done_before.get_or_insert(state.done);
        if state.cells.is_empty() {
            return Ok(Ended {
                measured: state.done.saturating_sub(done_before),
                wave: state,
            });
        }
        if let Some(lost) = state.cells.iter().find(|cell| tried.contains(cell)) {
            let shown = places::shown(lost);
            let measured = results.results.iter().any(|result| result.cell == *lost);
            let why = if measured {
                format!(
                    "{shown} has a result of other versions: sources changed while it was \
                     measured; run the campaign again"
                )
            } else {
                format!("{shown} has neither a result nor a failure after it was measured")
            };
            let backend = backend.name();
            return Err(CampaignError::Backend { backend, why });
        }
        let total = state.done + state.cells.len();
        let mut board = Board::new(progress, state.done, total);
        tried.extend(state.cells.iter().cloned());
        backend.measure(&state.cells, store, setup, &mut board)?;
        results = store.read()?;
        if setup.stop.is_set() {
            return Err(CampaignError::Interrupted);
        }
    }
}

fn read(store: &Store, progress: &dyn BatchProgress) -> Result<Results> {
    let results = store.read()?;
    for path in &results.damaged {
        progress.note(&format!(
            "{} is damaged; measuring its cell again",
            path.display()
        ));
    }
    Ok(results)
}

/// How far the campaign has come; `gave_up` tells whether to leave out a failed cell.
///
/// # Errors
/// A place cannot determine its versions.
pub fn state(
    campaign: &Campaign,
    results: &Results,
    setup: &Setup,
    gave_up: impl Fn(&Cell) -> bool,
) -> Result<Wave> {
    let mut versions = VersionsOf::new(setup);
    let mut current: Vec<&CellResult> = Vec::new();
    for result in &results.results {
        if versions.count(&result.cell, &result.versions)? {
            current.push(result);
        }
    }
    let by_cell: BTreeMap<&Cell, &CellResult> = current
        .into_iter()
        .map(|result| (&result.cell, result))
        .collect();
    let mut failed = BTreeSet::new();
    for failure in &results.failed {
        let cell = &failure.cell;
        // An older failure may remain beside a newer result.
        if !by_cell.contains_key(cell) && versions.count(cell, &failure.versions)? && gave_up(cell)
        {
            failed.insert(cell);
        }
    }
    Ok(wave::next(campaign, &by_cell, &failed))
}
