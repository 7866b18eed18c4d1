//! The manual pages of a program.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::command::program;
use crate::skip;

/// Writes the pages of the program `name` into a folder.
pub fn written(name: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("temporary folder");
    let mut command = program(name);
    command.args(["man", "--out"]).arg(dir.path());
    command.assert().success();
    dir
}

/// Has `man` render every page of a folder, which must not make it warn.
pub fn assert_they_render(dir: &Path) {
    if !Path::new("/usr/bin/man").exists() {
        return skip("manual pages", "man is not installed");
    }
    for entry in fs::read_dir(dir).expect("folder") {
        let file = entry.expect("entry").path();
        let output = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(&file)
            .output()
            .expect("man runs");
        assert!(output.status.success(), "{}", file.display());
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert_eq!(warnings, "", "{}", file.display());
    }
}
