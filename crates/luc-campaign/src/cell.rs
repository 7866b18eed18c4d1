//! A cell: one measurement, on a machine and file systems of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::arms::Arm;

/// Everything that determines a cell's result, except the versions of programs. Written as one line
/// of JSON, it is the cell's key: `luc-lab campaign cell KEY` needs nothing else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of a row of [`crate::places::ALL`].
    pub place: String,
    /// Values of all the place's factors.
    pub machine: BTreeMap<String, String>,
    /// Arguments of `luc-lab bench`; `{dir}` stands for the folder.
    pub bench: String,
    /// Arms that are measured in one boot, each on a new file system.
    pub arms: Vec<NamedArm>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Seed of the machine, of the arms' order and of when each starts, so that no two repeats are
    /// the same run.
    pub seed: u64,
}

/// An arm with its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedArm {
    pub name: String,
    #[serde(flatten)]
    pub arm: Arm,
}

/// Versions of everything that affects a result: name and version, or digest of the sources.
pub type Versions = BTreeMap<String, String>;

impl Cell {
    /// The key, one line.
    pub fn key(&self) -> String {
        // Maps of text and numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The workload file of this machine that the benchmark runs, if it runs one.
    pub(crate) fn workload_file(&self) -> Option<PathBuf> {
        let words = shlex::split(&self.bench)?;
        let [bench, file, ..] = &words[..] else {
            return None;
        };
        let file = PathBuf::from(file);
        (bench == "run" && file.is_file()).then_some(file)
    }

    /// Name of the result's file: a digest of the key and of the versions.
    pub fn hash(&self, versions: &Versions) -> String {
        let mut hash = Sha256::new();
        hash.update(self.key());
        for (name, version) in versions {
            hash.update([0]);
            hash.update(name);
            hash.update([0]);
            hash.update(version);
        }
        format!("{:.32x}", hash.finalize())
    }

    /// Draws a number below `bound` from the seed, one for each purpose.
    pub fn drawn(&self, purpose: &str, bound: u64) -> u64 {
        draw(self.seed, &[purpose, &self.key()]) % bound.max(1)
    }
}

/// Draws a number that a seed and the texts determine.
pub(crate) fn draw(seed: u64, texts: &[&str]) -> u64 {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    for text in texts {
        hash.update([0]);
        hash.update(text);
    }
    let bytes = hash.finalize();
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
