//! A directory, access to its files by relative names, and names that need no allocation.

use std::ffi::CStr;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, fsync, mkdirat, openat, statat,
    unlinkat, utimensat,
};
use rustix::io::{Errno, retry_on_intr};

use crate::{Result, WorkloadError};

/// A directory that files are made in.
pub struct Dir {
    path: PathBuf,
    fd: OwnedFd,
}

impl Dir {
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            fd: open_dir(path)?,
        })
    }

    /// Opens a directory, and makes it first if it is missing.
    pub fn make(path: &Path) -> Result<Self> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(WorkloadError::call("create directory", path, error))
            }
            _ => Self::open(path),
        }
    }

    /// Opens a directory of this name in it, and makes it first if it is missing.
    pub fn subdir(&self, name: &str) -> Result<Self> {
        Self::make(&self.path.join(name))
    }

    /// Creates a file that must not exist yet.
    pub fn create(&self, name: &CStr) -> Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        self.open_as("create", name, flags, 0o644)
    }

    /// Calls creat(2) with mode 0666, less the umask.
    pub fn creat(&self, name: &CStr) -> Result<OwnedFd> {
        self.open_file(name, OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC)
    }

    /// Opens, and with `O_CREAT` creates, a file with mode 0666, less the umask.
    pub fn open_file(&self, name: &CStr, flags: OFlags) -> Result<OwnedFd> {
        self.open_as("open", name, flags, 0o666)
    }

    /// Like [`Self::open_file`], with this mode, and this name for the call in an error.
    pub fn open_as(
        &self,
        call: &'static str,
        name: &CStr,
        flags: OFlags,
        mode: u32,
    ) -> Result<OwnedFd> {
        let mode = Mode::from_raw_mode(mode);
        retry_on_intr(|| openat(&self.fd, name, flags | OFlags::CLOEXEC, mode))
            .map_err(|e| self.error(call, name, e))
    }

    pub fn unlink(&self, name: &CStr) -> Result<()> {
        unlinkat(&self.fd, name, AtFlags::empty()).map_err(|e| self.error("unlink", name, e))
    }

    /// Appends `bytes`.
    pub fn write(&self, file: &impl AsFd, name: &CStr, bytes: &[u8]) -> Result<()> {
        let done = retry_on_intr(|| rustix::io::write(file, bytes));
        self.written(name, done, bytes.len())
    }

    /// Checks that a write stored all of the `wanted` bytes.
    pub fn written(
        &self,
        name: &CStr,
        done: rustix::io::Result<usize>,
        wanted: usize,
    ) -> Result<()> {
        match done {
            Ok(done) if done == wanted => Ok(()),
            Ok(done) => Err(WorkloadError::ShortWrite {
                path: self.join(name),
                done,
                wanted,
            }),
            Err(errno) => Err(self.error("write", name, errno)),
        }
    }

    pub fn fsync(&self, file: &impl AsFd, name: &CStr) -> Result<()> {
        retry_on_intr(|| fsync(file)).map_err(|e| self.error("fsync", name, e))
    }

    /// Fills `buffer` from this offset of the file.
    pub fn read_at(
        &self,
        file: &impl AsFd,
        name: &CStr,
        buffer: &mut [u8],
        offset_bytes: u64,
    ) -> Result<()> {
        match retry_on_intr(|| rustix::io::pread(file, &mut *buffer, offset_bytes)) {
            Ok(done) if done == buffer.len() => Ok(()),
            Ok(_) => Err(WorkloadError::call(
                "read",
                self.join(name),
                std::io::Error::from(std::io::ErrorKind::UnexpectedEof),
            )),
            Err(error) => Err(self.error("read", name, error)),
        }
    }

    pub fn stat(&self, name: &CStr) -> Result<()> {
        self.stat_as("stat", name)
    }

    /// Like [`Self::stat`], with this name for the call in an error.
    pub fn stat_as(&self, call: &'static str, name: &CStr) -> Result<()> {
        statat(&self.fd, name, AtFlags::empty())
            .map(drop)
            .map_err(|e| self.error(call, name, e))
    }

    /// Sets both times of the file to now, as utime(2) without times does.
    pub fn utime(&self, name: &CStr) -> Result<()> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        utimensat(&self.fd, name, &times, AtFlags::empty())
            .map_err(|e| self.error("set the times of", name, e))
    }

    pub fn mkdir(&self, name: &CStr, mode: u32) -> Result<()> {
        mkdirat(&self.fd, name, Mode::from_raw_mode(mode))
            .map_err(|e| self.error("create directory", name, e))
    }

    pub fn rmdir(&self, name: &CStr) -> Result<()> {
        unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
            .map_err(|e| self.error("remove directory", name, e))
    }

    /// Returns the error of `call` on the file `name` of this directory.
    pub fn error(&self, call: &'static str, name: &CStr, errno: Errno) -> WorkloadError {
        WorkloadError::call(call, self.join(name), errno)
    }

    fn join(&self, name: &CStr) -> PathBuf {
        self.path.join(name.to_string_lossy().as_ref())
    }
}

/// Opens an existing directory.
pub fn open_dir(path: &Path) -> Result<OwnedFd> {
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
    /// The number of different names.
    pub const COUNT: u64 = 10_000_000;

    pub fn new() -> Self {
        Self(*b"f0000000\0")
    }

    /// Returns the name of file `number`; names repeat after ten million.
    pub fn set(&mut self, number: u64) -> &CStr {
        set_digits(&mut self.0[1..8], number);
        CStr::from_bytes_with_nul(&self.0).expect("digits and one final NUL")
    }
}

/// Writes the last digits of a number, as many as there is room for.
pub fn set_digits(text: &mut [u8], mut number: u64) {
    for digit in text.iter_mut().rev() {
        // A remainder of ten fits any integer.
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// A name that is rewritten in the same memory: no allocation once that is large enough.
#[derive(Default)]
pub struct NameBuffer(Vec<u8>);

impl NameBuffer {
    /// Sets the name to the formatted text. A NUL inside it would end the name.
    pub fn set(&mut self, text: std::fmt::Arguments<'_>) -> &CStr {
        self.0.clear();
        // Writing to a Vec cannot fail.
        let _ = self.0.write_fmt(text);
        self.0.push(0);
        self.get()
    }

    /// Returns the name that was set last.
    pub fn get(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Dir, Name, NameBuffer};

    #[test]
    fn names_are_rewritten() {
        let mut name = NameBuffer::default();
        assert_eq!(name.set(format_args!("n{}f{}", 12, 345)), c"n12f345");
        assert_eq!(name.set(format_args!("x")), c"x");
    }

    #[test]
    fn calls_do_what_they_say_and_name_the_file() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let there = Dir::open(dir.path()).expect("opens");
        there.mkdir(c"d", 0o777).expect("made");
        let file = there.creat(c"d/f").expect("created");
        there.write(&file, c"d/f", b"abc").expect("written");
        there.fsync(&file, c"d/f").expect("synced");
        there.stat(c"d/f").expect("there");
        let path = dir.path().join("d/f");
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        std::fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|f| f.set_modified(old))
            .expect("set");
        there.utime(c"d/f").expect("touched");
        let meta = std::fs::metadata(&path).expect("there");
        assert!(meta.len() == 3 && meta.modified().expect("has one") > old);
        // creat truncates an existing file.
        there.creat(c"d/f").expect("created again");
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 0);
        there.unlink(c"d/f").expect("unlinked");
        let error = there.stat(c"d/f").expect_err("gone").to_string();
        assert!(
            error.starts_with("cannot stat /") && error.contains("/d/f: No such file"),
            "{error}"
        );
    }

    #[test]
    fn names_count() {
        let mut name = Name::new();
        assert_eq!(name.set(0), c"f0000000");
        assert_eq!(name.set(1_234_567), c"f1234567");
        assert_eq!(name.set(9_999_999), c"f9999999");
        assert_eq!(name.set(10_000_000), c"f0000000");
    }
}
