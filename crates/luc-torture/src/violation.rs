//! Broken promises, each as one line.

use std::fmt;

use serde::Serialize;

/// Kind of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A promised name is missing.
    NameLost,
    /// A removed name is there.
    NameBack,
    /// A name leads to another file, or to neither a file nor a directory.
    NameWrong,
    /// No mark explains this name.
    Unexplained,
    /// No moment suits the names of all threads.
    Moments,
    /// Names of one file lead to two inodes, or the other way round, or a link count is wrong.
    Links,
    /// A size that the file never had, or had only before the promised one.
    Size,
    /// Data older than promised.
    RolledBack,
    /// Zeros instead of promised data.
    Zeroed,
    /// Data that was never written.
    Future,
    /// Data of another file or of another run.
    Foreign,
    /// Data of another place in the file.
    Misplaced,
    /// Data from before a truncation that is done.
    Stale,
    /// Bytes that no write explains.
    Garbage,
    /// The file system does not return the data.
    Unreadable,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.serialize(f)
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub kind: Kind,
    /// A name, with the sector if there is one.
    pub path: String,
    pub expected: String,
    pub found: String,
    /// The mark that acknowledged the promise; `None` if no acknowledgement is needed, as for data
    /// of other files.
    pub ack: Option<u64>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Violation {
            kind,
            path,
            expected,
            found,
            ack,
        } = self;
        write!(f, "{kind}: {path}: expected {expected}, found {found}")?;
        match ack {
            Some(ack) => write!(f, " (acknowledged by mark {ack})"),
            None => Ok(()),
        }
    }
}
