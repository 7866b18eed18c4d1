//! Files of keys, one per line: cells that a back-end or an engine measures elsewhere.

use std::fs;
use std::path::Path;

use crate::cell::Cell;
use crate::check::cell_of_key;
use crate::error::{CampaignError, Result};

/// The text of such a file.
pub fn text<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> String {
    let lines = cells.into_iter().map(|cell| cell.key() + "\n");
    lines.collect()
}

/// Reads the cell on a line, counted from 1.
///
/// # Errors
/// The file cannot be read, has no such line, or the line is not a key.
pub fn nth(path: &Path, number: u32) -> Result<Cell> {
    let text = fs::read_to_string(path).map_err(CampaignError::file("read", path))?;
    let line = usize::try_from(number).unwrap_or(usize::MAX);
    let Some(key) = text.lines().nth(line.saturating_sub(1)) else {
        let why = match text.lines().count() {
            0 => "it is empty".to_owned(),
            last => format!("its last line is number {last}; there is no line {number}"),
        };
        return Err(CampaignError::BadKey {
            why: format!("{}: {why}", path.display()),
        });
    };
    cell_of_key(key).map_err(|error| match error {
        CampaignError::BadKey { why } => CampaignError::BadKey {
            why: format!("{}:{number}: {why}", path.display()),
        },
        other => other,
    })
}
