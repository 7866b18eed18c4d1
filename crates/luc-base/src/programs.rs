//! Where the two programs of LUC are.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The two programs; they lie in one folder, as they are built and installed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// The program for servers.
    pub luc: PathBuf,
    /// The program for measurements.
    pub luc_lab: PathBuf,
}

impl Programs {
    /// Finds both, where `luc_lab` is; `None` stands for this process's own program.
    ///
    /// # Errors
    /// There is no `luc` beside it.
    pub fn beside(luc_lab: Option<&Path>) -> Result<Self> {
        let luc_lab = match luc_lab {
            Some(path) => path.to_owned(),
            None => std::env::current_exe()?,
        };
        let luc = luc_lab.with_file_name("luc");
        if luc.exists() {
            return Ok(Self { luc, luc_lab });
        }
        let why = format!(
            "there is no program luc beside {}; build or install both",
            luc_lab.display()
        );
        Err(Error::new(ErrorKind::NotFound, why))
    }
}

#[cfg(test)]
mod tests {
    use super::Programs;

    #[test]
    fn one_program_is_not_enough() {
        let dir = std::env::temp_dir().join(format!("luc-programs-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("temporary folder");
        let lab = dir.join("luc-lab");
        let error = Programs::beside(Some(&lab)).expect_err("there is no luc");
        assert!(
            error.to_string().ends_with("; build or install both"),
            "{error}"
        );
        std::fs::write(dir.join("luc"), "").expect("temporary file");
        let both = Programs::beside(Some(&lab)).expect("there are both");
        assert_eq!((both.luc, both.luc_lab), (dir.join("luc"), lab));
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
