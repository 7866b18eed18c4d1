//! Replaces a file's content in one step.

use std::fs::{File, Permissions};
use std::io::{Result, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Replaces a file's content: readers see the old or the new one, never a part, and a full disk
/// leaves the old one.
///
/// Does not sync: after a crash the old content, or none, is as good, and a tool that measures
/// journal commits should not cause any.
///
/// # Errors
/// Those of the file system.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content, |_| Ok(()))
}

/// As [`replace_file`], and syncs the new content before readers see it.
pub fn replace_file_durably(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content, File::sync_all)
}

fn replace(path: &Path, content: &[u8], sync: fn(&File) -> Result<()>) -> Result<()> {
    // Temporary files are private by default; these are ordinary ones.
    let mut beside = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(path.parent().unwrap_or(Path::new("/")))?;
    beside.write_all(content)?;
    sync(beside.as_file())?;
    beside.persist(path)?;
    Ok(())
}
