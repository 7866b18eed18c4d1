//! Programs and files of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::error::{LabError, Result};

/// Whether a program is installed.
pub(crate) fn in_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// An environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Runs a program and returns its standard output.
///
/// # Errors
/// [`LabError::MissingTool`] or [`LabError::Tool`] with its last error lines.
pub(crate) fn capture(command: &mut Command, package: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => LabError::missing(&program, package),
            _ => LabError::io("run", &program)(error),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = tail(&String::from_utf8_lossy(&output.stderr), 3);
    Err(LabError::Tool {
        program,
        status: output.status.to_string(),
        detail: words.replace('\n', "; "),
    })
}

/// The last `count` lines, for error messages.
pub fn tail(text: &str, count: usize) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return "(nothing)".to_owned();
    }
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The first fault on a panicked kernel's console, for error messages: later ones follow from it.
/// Without a fault, as when the kernel panics by itself, the console's end.
pub fn oops(console: &str) -> String {
    const SHOWN: usize = 60;
    let lines: Vec<_> = console.lines().collect();
    let Some(first) = lines.iter().position(|line| line.contains("[#1]")) else {
        return tail(console, SHOWN);
    };
    // The lines before say which address could not be accessed, or which check failed.
    let begin = first.saturating_sub(5);
    lines[begin..lines.len().min(begin + SHOWN)].join("\n")
}

/// Drops the options and the job server of an outer make.
pub(crate) fn without_outer_make(command: &mut Command) -> &mut Command {
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
        command.env_remove(name);
    }
    command
}

/// Make's option for the number of jobs at the same time.
pub(crate) fn jobs() -> String {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    format!("-j{jobs}")
}

/// Regular files below a folder, sorted; links are not followed.
pub(crate) fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).map_err(LabError::io("list", &dir))? {
            let entry = entry.map_err(LabError::io("list", &dir))?;
            let kind = entry
                .file_type()
                .map_err(LabError::io("read", entry.path()))?;
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Digest of a list of texts, 16 hexadecimal digits.
pub(crate) fn digest<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        let text = text.as_ref();
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let bytes = hash.finalize();
    let first = bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes));
    format!("{first:016x}")
}

#[cfg(test)]
mod tests {
    use super::{oops, tail};

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\n\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("\n", 2), "(nothing)");
    }

    #[test]
    fn oops_begins_before_the_first_fault() {
        let line = |n: i32| format!("[ {n}.0] line");
        let lines = |of: std::ops::Range<i32>| of.map(line).collect::<Vec<_>>().join("\n");
        let (before, after) = (lines(0..100), lines(100..300));
        let console = format!("{before}\nint3: 0000 [#1] SMP\n{after}\nKernel panic");
        let shown = format!(
            "{}\nint3: 0000 [#1] SMP\n{}",
            lines(95..100),
            lines(100..154)
        );
        assert_eq!(oops(&console), shown);
        assert_eq!(oops("a\nKernel panic\n"), "a\nKernel panic");
    }
}
