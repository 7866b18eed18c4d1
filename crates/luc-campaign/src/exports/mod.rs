//! Exports the next wave in other programs' formats. Each is a file with a
//! function `text`.
//!
//! Such a program runs `luc-lab campaign cell` for each cell. The results are the same files as
//! those of `luc-lab campaign run`, so either continues where the other stopped.

pub mod lines;
pub mod parallel;
pub mod snakemake;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::cell::Cell;
use crate::error::{CampaignError, Result};
use crate::file::Campaign;
use crate::measure::Missing;
use crate::places::Setup;

/// The next wave, and how its cells are measured.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    title: &'a str,
    pub missing: Vec<Missing<'a>>,
    /// The program that measures a cell.
    pub program: PathBuf,
    /// Folder of the results.
    pub dir: PathBuf,
    /// Sources of the module; empty if no cell needs them.
    pub source: PathBuf,
}

impl<'a> Export<'a> {
    /// # Errors
    /// A place cannot determine its versions.
    pub fn new(
        campaign: &'a Campaign,
        cells: &'a [Cell],
        setup: &Setup,
        program: &Path,
        dir: &Path,
    ) -> Result<Self> {
        Ok(Self {
            title: &campaign.title,
            missing: Missing::find(cells, setup)?,
            program: program.to_owned(),
            dir: dir.to_owned(),
            source: setup.source.clone(),
        })
    }

    /// The campaign's title, on one line.
    fn title(&self) -> String {
        self.title.replace(['\n', '\r'], " ")
    }
}

/// The argument that names the module's sources; empty if there are none.
pub(crate) fn source_words(source: &Path) -> Result<String> {
    if source.as_os_str().is_empty() {
        return Ok(String::new());
    }
    Ok(format!(" --source {}", quoted(source)?))
}

/// Quotes a path as a word of the shell.
pub(crate) fn quoted(path: &Path) -> Result<String> {
    let bad = |why: &dyn Display| CampaignError::BadFolder {
        path: path.to_owned(),
        why: format!("a script cannot refer to it: {why}"),
    };
    let text = path.to_str().ok_or_else(|| bad(&"it is not UTF-8"))?;
    let quoted = shlex::try_quote(text).map_err(|error| bad(&error))?;
    if quoted.contains('\n') {
        return Err(bad(&"it holds a line break"));
    }
    Ok(quoted.into_owned())
}
