//! What the judge says: each broken promise in a line.

use std::fmt;

use serde::Serialize;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A name is not there that must be.
    NameLost,
    /// A name is there that must not be.
    NameBack,
    /// A name is of another file, or of something else than a file or a directory.
    NameWrong,
    /// No mark explains this name.
    Unexplained,
    /// Names of different threads are of different moments.
    Moments,
    /// Names that must be of one file are of two, or the other way round, or the count of names is
    /// wrong.
    Links,
    /// A size the file never had, or had before what was promised.
    Size,
    /// Data older than what was promised.
    RolledBack,
    /// Nothing but zeros in place of what was promised.
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
    /// The file system does not give it out.
    Unreadable,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Kind::NameLost => "name-lost",
            Kind::NameBack => "name-back",
            Kind::NameWrong => "name-wrong",
            Kind::Unexplained => "unexplained",
            Kind::Moments => "moments",
            Kind::Links => "links",
            Kind::Size => "size",
            Kind::RolledBack => "rolled-back",
            Kind::Zeroed => "zeroed",
            Kind::Future => "future",
            Kind::Foreign => "foreign",
            Kind::Misplaced => "misplaced",
            Kind::Stale => "stale",
            Kind::Garbage => "garbage",
            Kind::Unreadable => "unreadable",
        })
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What is wrong.
    pub kind: Kind,
    /// Where: a name, and the sector where there is one.
    pub path: String,
    /// What should be there.
    pub expected: String,
    /// What is.
    pub found: String,
    /// The mark that acknowledged it; none where nothing needs to be acknowledged, as for data of
    /// other files.
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
