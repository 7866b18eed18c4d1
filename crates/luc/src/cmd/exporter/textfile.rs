//! A file that is replaced atomically.

use std::fs;
use std::io;
use std::path::Path;

use luc_host::{HostError, plain};

use luc_cli::Failure;

/// Replaces the file's content with `text`.
pub fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let written = luc_base::replace_file(file, text.as_bytes());
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

/// Removes the file, unless others already have.
pub fn remove(file: &Path) {
    let _ = fs::remove_file(file);
}
