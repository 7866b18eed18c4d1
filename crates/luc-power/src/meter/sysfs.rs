//! Files of the kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reads a file that holds one number.
pub fn number(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    let invalid = |e| io::Error::new(io::ErrorKind::InvalidData, e);
    text.trim().parse().map_err(invalid)
}

/// Returns the folders in `dir`, each with the line in its file `file`, in order.
pub fn named(dir: &Path, file: &str) -> Vec<(PathBuf, String)> {
    let text = |entry: PathBuf| {
        let text = fs::read_to_string(entry.join(file)).ok()?;
        Some((entry, text.trim().to_owned()))
    };
    entries(dir).into_iter().filter_map(text).collect()
}

/// Returns the entries of a folder, in order; none if it is not there.
pub fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}
