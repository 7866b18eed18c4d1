//! Programs of this machine.

use std::process::{Command, Stdio};

use crate::error::{LabError, Result};

/// Whether a program is installed.
pub(crate) fn in_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Runs a program and gives its standard output.
///
/// # Errors
/// [`LabError::MissingTool`] or [`LabError::Tool`] with its last error lines.
pub(crate) fn capture(command: &mut Command, package: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            LabError::MissingTool {
                program: program.clone(),
                package: package.to_owned(),
            }
        } else {
            LabError::io("run", &program)(error)
        }
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = crate::log::tail(&String::from_utf8_lossy(&output.stderr), 3);
    Err(LabError::Tool {
        program,
        status: output.status.to_string(),
        detail: words.replace('\n', "; "),
    })
}
