//! The folder of a campaign's results.
//!
//! ```text
//! DIR/campaign.toml       what is measured
//! DIR/cells/HASH.json     a cell's result, complete or absent
//! DIR/failed/HASH.json    why a cell has no result; the log is beside it
//! DIR/lock                held while a campaign runs
//! DIR/report.html ...     made from the others
//! ```

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use luc_base::Locked;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Versions};
use crate::error::{CampaignError, Result};
use crate::result::{ArmResult, Measured};

/// Name and version of a result's format.
const SCHEMA: &str = "luc-cell/1";
/// The campaign that the folder was last run or reported with.
pub const CAMPAIGN_FILE: &str = "campaign.toml";

/// A cell's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    pub schema: String,
    pub cell: Cell,
    pub versions: Versions,
    /// `uname -r` where it was measured.
    pub kernel_release: String,
    pub arms: Vec<ArmResult>,
    /// When it was done, seconds since 1970 by the machine's clock.
    pub at_s: u64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// The machine that did it.
    pub host: String,
}

/// Why a cell has no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    pub schema: String,
    pub cell: Cell,
    pub versions: Versions,
    pub why: String,
    pub at_s: u64,
    pub host: String,
}

/// The folder of the results.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
}

/// Everything in a folder.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub results: Vec<CellResult>,
    pub failed: Vec<Failed>,
    /// Files that are not valid results; their cells count as not measured.
    pub damaged: Vec<PathBuf>,
}

impl Store {
    /// Opens the results below `dir`, which is made if absent.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(dir: &Path) -> Result<Self> {
        for part in ["cells", "failed"] {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(CampaignError::file("make folder", &path))?;
        }
        Ok(Self {
            dir: dir.to_owned(),
        })
    }

    /// Opens existing results below `dir`.
    ///
    /// # Errors
    /// There are none.
    pub fn existing(dir: &Path) -> Result<Self> {
        if !dir.join("cells").is_dir() {
            let why = "it holds no results of a campaign; `luc-lab campaign run` makes them";
            return Err(CampaignError::BadFolder {
                path: dir.to_owned(),
                why: why.to_owned(),
            });
        }
        Ok(Self {
            dir: dir.to_owned(),
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Locks the folder for one run, until the returned file is dropped.
    ///
    /// # Errors
    /// [`CampaignError::Busy`] while another run holds it.
    pub fn lock(&self) -> Result<Locked> {
        let path = self.dir.join("lock");
        Locked::open(&path).map_err(|error| match error {
            TryLockError::WouldBlock => CampaignError::Busy {
                path: self.dir.clone(),
            },
            TryLockError::Error(error) => CampaignError::file("lock", &path)(error),
        })
    }

    fn cell_path(&self, hash: &str) -> PathBuf {
        self.dir.join("cells").join(format!("{hash}.json"))
    }

    fn failed_path(&self, hash: &str) -> PathBuf {
        self.dir.join("failed").join(format!("{hash}.json"))
    }

    /// Whether the cell has a sound result of these versions.
    pub fn has(&self, cell: &Cell, versions: &Versions) -> bool {
        let path = self.cell_path(&cell.hash(versions));
        read::<CellResult>(&path).is_some_and(|result| result.cell == *cell)
    }

    /// Why the cell has no result of these versions, if that was kept.
    pub fn failure(&self, cell: &Cell, versions: &Versions) -> Option<Failed> {
        read(&self.failed_path(&cell.hash(versions)))
    }

    /// Keeps a result, and removes the record of an earlier failure.
    ///
    /// # Errors
    /// The result cannot be written, or the failure's record cannot be removed.
    pub fn keep(
        &self,
        cell: &Cell,
        versions: &Versions,
        measured: Measured,
        took_s: f64,
    ) -> Result<()> {
        let hash = cell.hash(versions);
        let result = CellResult {
            schema: SCHEMA.to_owned(),
            cell: cell.clone(),
            versions: versions.clone(),
            kernel_release: measured.kernel_release,
            arms: measured.arms,
            at_s: now_s(),
            took_s,
            host: host(),
        };
        write(&self.cell_path(&hash), &json(&result))?;
        let failed = self.failed_path(&hash);
        remove(&failed)?;
        remove(&failed.with_extension("log"))
    }

    /// Records why a cell has no result, with a log if there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_failure(
        &self,
        cell: &Cell,
        versions: &Versions,
        why: &str,
        log: Option<&str>,
    ) -> Result<()> {
        let path = self.failed_path(&cell.hash(versions));
        if let Some(log) = log {
            write(&path.with_extension("log"), log.as_bytes())?;
        }
        let failed = Failed {
            schema: SCHEMA.to_owned(),
            cell: cell.clone(),
            versions: versions.clone(),
            why: why.to_owned(),
            at_s: now_s(),
            host: host(),
        };
        write(&path, &json(&failed))
    }

    /// Reads everything in the folder.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn read(&self) -> Result<Results> {
        let mut all = Results::default();
        for path in files(&self.dir.join("cells"))? {
            match read::<CellResult>(&path) {
                Some(result) if result.schema == SCHEMA => all.results.push(result),
                _ => all.damaged.push(path),
            }
        }
        for path in files(&self.dir.join("failed"))? {
            match read::<Failed>(&path) {
                Some(failed) if failed.schema == SCHEMA => all.failed.push(failed),
                _ => all.damaged.push(path),
            }
        }
        Ok(all)
    }

    /// Writes a file in the folder, completely or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(CampaignError::file("make folder", parent))?;
        }
        write(&path, bytes)?;
        Ok(path)
    }
}

impl Results {
    /// Each cell's last measured result.
    pub fn last(&self) -> BTreeMap<&Cell, &CellResult> {
        let mut last: BTreeMap<&Cell, &CellResult> = BTreeMap::new();
        for result in &self.results {
            let best = last.entry(&result.cell).or_insert(result);
            if result.at_s > best.at_s {
                *best = result;
            }
        }
        last
    }
}

pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    // Maps of text and numbers always have a JSON form.
    let mut json = serde_json::to_vec(value).unwrap_or_default();
    json.push(b'\n');
    json
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Lists the JSON files in a folder. It may be absent: copied results may lack the folder of
/// failures.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries.map_err(CampaignError::file("list", dir))?,
    };
    for entry in entries {
        let path = entry.map_err(CampaignError::file("list", dir))?.path();
        if path.extension().is_some_and(|kind| kind == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Replaces a file, durably: a reader never sees half a file, and a full disk leaves none.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    luc_base::replace_file_durably(path, bytes).map_err(CampaignError::file("write", path))
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CampaignError::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}
