//! The directory that a workload works in and removes at its end.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{fstatvfs, syncfs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::dir::{Dir, open_dir};
use crate::{Result, WorkloadError};

/// Descriptors that belong to no thread: standard streams, the root directory, `/proc`.
const SPARE_FILES: u64 = 32;

/// A new directory that is removed with all files in it, unless it is to be kept.
pub struct Scratch {
    path: PathBuf,
    root: OwnedFd,
    keep: bool,
    settles: bool,
}

impl Scratch {
    pub fn new(parent: &Path, keep: bool) -> Result<Self> {
        let path = parent.join(format!("luc-bench.{}", std::process::id()));
        fs::create_dir(&path).map_err(|e| WorkloadError::call("create directory", &path, e))?;
        let root = match open_dir(&path) {
            Ok(root) => root,
            Err(error) => {
                // The first error is the one to report; an empty directory may stay behind.
                let _ = fs::remove_dir(&path);
                return Err(error);
            }
        };
        Ok(Self {
            path,
            root,
            keep,
            settles: true,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory of this name in it, and makes it first if it is missing.
    pub fn subdir(&self, name: &str) -> Result<Dir> {
        Dir::make(&self.path.join(name))
    }

    /// Returns how many more files the file system has inodes for; `u64::MAX` if it has no such
    /// limit.
    pub fn free_inodes(&self) -> Result<u64> {
        let error =
            |e| WorkloadError::call("read the free inodes of the file system of", &self.path, e);
        let there = fstatvfs(&self.root).map_err(error)?;
        Ok(if there.f_files == 0 {
            u64::MAX
        } else {
            there.f_favail
        })
    }

    /// Makes [`Scratch::settle`] do nothing.
    pub fn leave_unsettled(&mut self) {
        self.settles = false;
    }

    /// Syncs the file system, so that nothing from before is left to commit.
    pub fn settle(&self) -> Result<()> {
        if self.settles { self.sync() } else { Ok(()) }
    }

    /// Syncs the whole file system.
    pub fn sync(&self) -> Result<()> {
        syncfs(&self.root)
            .map_err(|e| WorkloadError::call("sync the file system of", &self.path, e))
    }

    /// Removes the directory now; returns an error if that fails.
    pub fn remove(mut self) -> Result<()> {
        if self.keep {
            return Ok(());
        }
        self.keep = true;
        fs::remove_dir_all(&self.path).map_err(|e| WorkloadError::call("remove", &self.path, e))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            // Reached only after an error, which is the one to report.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Raises the soft limit of open files so that each thread can hold a directory and a file.
pub fn allow_open_files(threads: usize) -> Result<()> {
    allow_descriptors(threads, 2 * threads as u64)
}

/// Raises the soft limit of open files to what all threads together need.
pub fn allow_descriptors(threads: usize, descriptors: u64) -> Result<()> {
    let needed = descriptors.saturating_add(SPARE_FILES);
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let enough = now.maximum.is_none_or(|maximum| maximum >= needed);
    let wanted = Rlimit {
        current: Some(needed),
        // Root may raise the hard limit as well.
        maximum: if enough { now.maximum } else { Some(needed) },
    };
    match (setrlimit(Resource::Nofile, wanted), now.maximum) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(limit)) if !enough => Err(WorkloadError::OpenFiles {
            threads,
            needed,
            limit,
        }),
        (Err(errno), _) => Err(WorkloadError::call(
            "raise the limit of open files for",
            "this process",
            errno,
        )),
    }
}
