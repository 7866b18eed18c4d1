//! The directory a workload works in, and the system calls it makes there.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fsync, openat, syncfs, unlinkat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Result, WorkloadError};

/// Descriptors that are not one of a thread's: standard streams, the root directory, `/proc`.
const SPARE_FILES: u64 = 32;

/// A new directory that goes away with everything in it, unless it is to be kept.
pub struct Scratch {
    path: PathBuf,
    root: OwnedFd,
    keep: bool,
    settles: bool,
}

impl Scratch {
    /// Makes the directory inside `parent`.
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

    /// Makes (or opens again) a directory of this name in it.
    pub fn subdir(&self, name: &str) -> Result<Dir> {
        make_dir(self.path.join(name))
    }

    /// Makes [`Scratch::settle`] do nothing.
    pub fn leave_unsettled(&mut self) {
        self.settles = false;
    }

    /// Writes all of the file system out, so that nothing from before is left to commit.
    pub fn settle(&self) -> Result<()> {
        if !self.settles {
            return Ok(());
        }
        syncfs(&self.root)
            .map_err(|e| WorkloadError::call("sync the file system of", &self.path, e))
    }

    /// Removes it now, reporting what cannot be removed.
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
            // Reached only after an error, which is what gets reported.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A directory that files are made in.
pub struct Dir {
    path: PathBuf,
    fd: OwnedFd,
}

impl Dir {
    /// Makes (or opens again) a directory of this name in it.
    pub fn subdir(&self, name: &str) -> Result<Self> {
        make_dir(self.path.join(name))
    }

    /// Creates a file that must not exist yet.
    pub fn create(&self, name: &CStr) -> Result<OwnedFd> {
        openat(
            &self.fd,
            name,
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o644),
        )
        .map_err(|e| self.error("create", name, e))
    }

    pub fn unlink(&self, name: &CStr) -> Result<()> {
        unlinkat(&self.fd, name, AtFlags::empty()).map_err(|e| self.error("unlink", name, e))
    }

    /// Appends `bytes`.
    pub fn write(&self, file: &impl AsFd, name: &CStr, bytes: &[u8]) -> Result<()> {
        match rustix::io::retry_on_intr(|| rustix::io::write(file, bytes)) {
            Ok(done) if done == bytes.len() => Ok(()),
            Ok(done) => Err(WorkloadError::ShortWrite {
                path: self.join(name),
                done,
                wanted: bytes.len(),
            }),
            Err(error) => Err(self.error("write", name, error)),
        }
    }

    pub fn fsync(&self, file: &impl AsFd, name: &CStr) -> Result<()> {
        rustix::io::retry_on_intr(|| fsync(file)).map_err(|e| self.error("fsync", name, e))
    }

    /// The error of `call` on the file `name` of this directory.
    pub fn error(&self, call: &'static str, name: &CStr, errno: Errno) -> WorkloadError {
        WorkloadError::call(call, self.join(name), errno)
    }

    fn join(&self, name: &CStr) -> PathBuf {
        self.path.join(name.to_string_lossy().as_ref())
    }
}

fn make_dir(path: PathBuf) -> Result<Dir> {
    match fs::create_dir(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(WorkloadError::call("create directory", path, error));
        }
        _ => {}
    }
    let fd = open_dir(&path)?;
    Ok(Dir { path, fd })
}

fn open_dir(path: &Path) -> Result<OwnedFd> {
    openat(
        CWD,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|e| WorkloadError::call("open directory", path, e))
}

/// A file name that is rewritten in place: no allocation in a measured loop.
pub struct Name([u8; 9]);

impl Name {
    /// How many names there are.
    pub const COUNT: u64 = 10_000_000;

    pub fn new() -> Self {
        Self(*b"f0000000\0")
    }

    /// The name of file `number`; names repeat after ten million.
    pub fn set(&mut self, mut number: u64) -> &CStr {
        for digit in self.0[1..8].iter_mut().rev() {
            // A remainder of ten fits any integer.
            *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
        CStr::from_bytes_with_nul(&self.0).expect("digits and one final NUL")
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
        // Whoever may (root) raises the hard limit as well.
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

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_count() {
        let mut name = Name::new();
        assert_eq!(name.set(0), c"f0000000");
        assert_eq!(name.set(1_234_567), c"f1234567");
        assert_eq!(name.set(9_999_999), c"f9999999");
        assert_eq!(name.set(10_000_000), c"f0000000");
    }
}
