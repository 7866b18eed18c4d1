//! One shell command per line and cell, for xargs.

use std::fmt::Write as _;

use super::{Export, quoted, source_words};
use crate::error::{CampaignError, Result};

/// # Errors
/// A path or a key cannot be passed to a shell.
pub fn text(export: &Export<'_>) -> Result<String> {
    let program = quoted(&export.program)?;
    let (dir, source) = (quoted(&export.dir)?, source_words(&export.source)?);
    let mut text = String::new();
    for missing in &export.missing {
        let key = missing.cell.key();
        let key = shlex::try_quote(&key).map_err(|error| CampaignError::BadKey {
            why: format!("it cannot be passed to a shell: {error}"),
        })?;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{program} campaign cell {key} --out {dir}{source}");
    }
    Ok(text)
}
