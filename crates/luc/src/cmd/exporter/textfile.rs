//! A file that is replaced atomically.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use luc_host::{HostError, plain};

use luc_cli::exit::Failure;

/// Replaces the file's content with `text`.
///
/// Does not sync: after a crash an old page, or none, is as good, and a tool
/// that measures journal commits should not cause any.
pub fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let written = beside(file).and_then(|new| {
        let outcome = write(&new, text).and_then(|()| fs::rename(&new, file));
        if outcome.is_err() {
            let _ = fs::remove_file(&new);
        }
        outcome
    });
    Ok(written.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => HostError::NotPermitted {
            what: format!("write {}", file.display()),
            fix: "run it as a user who is allowed to, or name another file".into(),
        },
        _ => HostError::NotFound {
            path: file.display().to_string(),
            why: format!("cannot be written: {}", plain(&error)),
            fix: "name a file in an existing folder with free space".into(),
        },
    })?)
}

/// Returns where to write the next page: in the same folder, under a name that
/// no collector reads.
fn beside(file: &Path) -> io::Result<PathBuf> {
    let name = file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(format!(".{}", std::process::id()));
    Ok(file.with_file_name(new))
}

fn write(new: &Path, text: &str) -> io::Result<()> {
    // An earlier process with the same process ID may have left this file.
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(new)?;
    file.write_all(text.as_bytes())
}

/// Removes the file, unless others already have.
pub fn remove(file: &Path) {
    let _ = fs::remove_file(file);
}
