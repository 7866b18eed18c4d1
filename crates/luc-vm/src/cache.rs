//! The cache folder: everything in it was downloaded or built and can be made
//! again. An entry is filled under a lock in a side folder and renamed into
//! place, so it is complete or absent.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};
use crate::tools::variable;

/// Environment variable that names the cache folder.
pub const CACHE_VARIABLE: &str = "LUC_CACHE";

/// A cache folder.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache of this user: `$LUC_CACHE`, else `$XDG_CACHE_HOME/luc`, else
    /// `~/.cache/luc`.
    ///
    /// # Errors
    /// None of the three variables is set, or the folder cannot be made.
    pub fn open() -> Result<Self> {
        let root = variable(CACHE_VARIABLE)
            .or_else(|| variable("XDG_CACHE_HOME").map(|dir| dir.join("luc")))
            .or_else(|| variable("HOME").map(|dir| dir.join(".cache/luc")));
        let unknown = || format!("no home folder is known; set {CACHE_VARIABLE}");
        Self::at(root.ok_or_else(|| LabError::bad_input("cache", unknown()))?)
    }

    /// The cache in a given folder, made if absent.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self> {
        let root =
            std::path::absolute(root.into()).map_err(LabError::io("find", "cache folder"))?;
        fs::create_dir_all(&root).map_err(LabError::io("create", &root))?;
        Ok(Self { root })
    }

    /// Path of an entry, present or not.
    pub fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// The entry `key` (a relative path), filled by `fill` if absent. `fill`
    /// gets an empty folder; concurrent callers wait for the first.
    ///
    /// # Errors
    /// Those of `fill`, after which the entry is still absent, and of the file
    /// system.
    pub fn entry(&self, key: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let path = self.path(key);
        if path.exists() {
            return Ok(path);
        }
        let _lock = self.lock(key)?;
        if path.exists() {
            return Ok(path);
        }
        // A fixed name: compilers write their folder into their output, and
        // an interrupted fill is cleaned up by the next one.
        let side = self.root.join("filling").join(key.replace('/', "--"));
        remove_tree(&side)?;
        fs::create_dir_all(&side).map_err(LabError::io("create", &side))?;
        if let Err(error) = fill(&side) {
            remove_tree(&side)?;
            return Err(error);
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
        }
        fs::rename(&side, &path).map_err(LabError::io("move into place", &path))?;
        Ok(path)
    }

    /// Holds the lock of `key` until the value is dropped.
    ///
    /// # Errors
    /// The lock file cannot be made.
    pub fn lock(&self, key: &str) -> Result<File> {
        let dir = self.root.join("locks");
        fs::create_dir_all(&dir).map_err(LabError::io("create", &dir))?;
        let path = dir.join(key.replace('/', "--"));
        let file = File::create(&path).map_err(LabError::io("create", &path))?;
        file.lock().map_err(LabError::io("lock", &path))?;
        Ok(file)
    }
}

/// Writes a file so that readers see the old or the new content, never a part.
///
/// # Errors
/// Those of the file system.
pub fn write_atomic(path: &Path, data: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(LabError::io("create", dir))?;
    luc_base::replace_file(path, data).map_err(LabError::io("write", path))
}

/// Removes a folder with all it holds, if it is there.
///
/// # Errors
/// Those of the file system, except for absence.
pub fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_whole_or_absent() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("c")).unwrap();
        let failed = cache.entry("a/b", |side| {
            fs::write(side.join("half"), "x").unwrap();
            Err(LabError::bad_input("test", "fails"))
        });
        assert!(failed.is_err());
        assert!(!cache.path("a/b").exists());
        let path = cache
            .entry("a/b", |side| {
                assert!(!side.join("half").exists());
                fs::write(side.join("whole"), "y").unwrap();
                Ok(())
            })
            .unwrap();
        assert_eq!(fs::read_to_string(path.join("whole")).unwrap(), "y");
        cache
            .entry("a/b", |_| unreachable!("the entry exists"))
            .unwrap();
    }

    #[test]
    fn one_of_many_fills() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let fills = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    cache
                        .entry("k", |_| {
                            fills.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            Ok(())
                        })
                        .unwrap();
                });
            }
        });
        assert_eq!(fills.into_inner(), 1);
    }

    #[test]
    fn atomic_write_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d/f");
        write_atomic(&path, b"1").unwrap();
        write_atomic(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
    }
}
