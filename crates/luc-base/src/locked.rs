//! Files that one process at a time uses.

use std::fs::{File, OpenOptions, TryLockError};
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// A file with its lock.
///
/// Dropping it ends the lock, also while a child that another thread has just started still holds
/// a copy of the descriptor. Closing the file alone would keep the lock until that child runs its
/// program.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Opens or creates a file to read and write, and locks it.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] while another process, or another part of this one, has the
    /// lock; those of the file system.
    pub fn open(path: &Path) -> Result<Self, TryLockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(TryLockError::Error)?;
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Where this fails, closing the file ends the lock.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_ends_though_a_copy_of_the_descriptor_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let locked = Locked::open(&path).unwrap();
        let copy = locked.try_clone().unwrap();
        assert!(matches!(Locked::open(&path), Err(TryLockError::WouldBlock)));
        drop(locked);
        assert!(Locked::open(&path).is_ok());
        drop(copy);
    }
}
