//! Where the verbs that run virtual machines find the sources of the module.

use std::path::{Path, PathBuf};

use luc_cli::{Code, Failure};

/// Directories to search for the module's sources; the first that has them counts.
const SOURCES: [&str; 2] = [".", concat!("/usr/src/luc-", env!("CARGO_PKG_VERSION"))];

/// A directory that holds the module's sources.
pub(super) fn source(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let candidates = match given {
        Some(dir) => vec![dir],
        None => SOURCES.map(Path::new).to_vec(),
    };
    let is_source = |dir: &&Path| dir.join("kmod/Kbuild").exists();
    candidates
        .iter()
        .copied()
        .find(is_source)
        .map(Path::to_path_buf)
        .ok_or_else(|| {
            let looked: Vec<_> = candidates
                .iter()
                .map(|dir| dir.display().to_string())
                .collect();
            Failure::coded(
                Code::Lab,
                format!(
                    "no module sources (kmod/Kbuild) in {}; name them with `--source DIR`",
                    looked.join(" or ")
                ),
            )
        })
}
