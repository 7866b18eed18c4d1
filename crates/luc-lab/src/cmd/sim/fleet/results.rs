//! The file of a fleet's records: the run's arguments in the first line, then one line per record.

use std::fs::TryLockError;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use luc_base::Locked;
use luc_sim_loads::fleet::record::{Record, records};
use serde_json::Value;

use luc_cli::Failure;

pub struct Results {
    file: Locked,
    path: PathBuf,
}

impl Results {
    /// Opens or creates a file, and returns its records. Cuts off a damaged last line.
    ///
    /// # Errors
    /// If the file is not one of this run, or cannot be written.
    pub fn open(path: &Path, header: &Value) -> Result<(Self, Vec<Record>), Failure> {
        let refused =
            |why: String| Failure::usage("sim fleet", format!("{}: {why}", path.display()));
        let failed = |error: io::Error| refused(luc_host::plain(&error));
        let mut file = Locked::open(path).map_err(|error| match error {
            TryLockError::WouldBlock => refused("another run is writing to it".to_owned()),
            TryLockError::Error(error) => failed(error),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        // Bytes that are not text belong to a damaged last line, or the file is of another kind.
        let whole = String::from_utf8(bytes).unwrap_or_else(|error| {
            let valid = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned()
        });
        let first = format!("{header}\n");
        let mut results = Self {
            file,
            path: path.to_owned(),
        };
        // Empty, or a run ended within the first line.
        if whole.len() < first.len() && first.starts_with(&whole) {
            results.cut(0).map_err(failed)?;
            results.write(&first)?;
            return Ok((results, Vec::new()));
        }
        let (line, rest) = whole.split_once('\n').unwrap_or_default();
        differs(line, header).map_or(Ok(()), |why| Err(refused(why)))?;
        let (found, good_bytes) = records(rest).map_err(|number| {
            refused(format!("line {} is damaged; use another file", number + 1))
        })?;
        results.cut(first.len() + good_bytes).map_err(failed)?;
        Ok((results, found))
    }

    pub fn append(&mut self, records: &[Record]) -> Result<(), Failure> {
        let lines: String = records.iter().map(|record| record.line() + "\n").collect();
        self.write(&lines)
    }

    fn cut(&mut self, bytes: usize) -> io::Result<()> {
        self.file.set_len(bytes as u64)?;
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| {
            let why = luc_host::plain(&error);
            Failure::Unexpected(anyhow::anyhow!("{}: {why}", self.path.display()))
        })
    }
}

/// Tells why a file does not belong to a run with this first line; `None` if it does.
fn differs(line: &str, header: &Value) -> Option<String> {
    let found: Option<Value> = serde_json::from_str(line).ok();
    let Some(found) = found.filter(|found| found["schema"] == header["schema"]) else {
        return Some("not a file of fleet records; use another file".to_owned());
    };
    let asked = header.as_object()?;
    let (name, _) = asked
        .iter()
        .find(|(name, value)| found.get(name) != Some(value))?;
    Some(match (name.as_str(), &found[name]) {
        ("sources", _) => {
            "written by another version of the simulator; use another file".to_owned()
        }
        (_, Value::Object(_) | Value::Array(_)) => {
            format!("from a run that differs in {name}; use another file, or the same {name}")
        }
        (_, was) => format!("from a run with {name} {was}; use another file, or the same {name}"),
    })
}
