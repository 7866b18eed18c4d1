//! Errors, each shown as one line.

use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, CampaignError>;

/// Why a campaign, or one of its cells, could not be done.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The campaign's file is wrong; `why` says where.
    #[error("{source_name}: {why}")]
    BadFile { source_name: String, why: String },
    /// The key of a cell is wrong.
    #[error("cell: {why}")]
    BadKey { why: String },
    /// A file or folder of the results cannot be used.
    #[error("cannot {action} {}: {}", path.display(), luc_host::plain(source))]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The folder holds results of another campaign, or none.
    #[error("{}: {why}", path.display())]
    BadFolder { path: PathBuf, why: String },
    /// Another run uses the folder.
    #[error("{}: another campaign run is using this folder; wait until it ends, or choose another \
             --out", path.display())]
    Busy { path: PathBuf },
    /// The place cannot measure at all: what it lacks, and how to get that.
    #[error("{place}: {why}")]
    Unavailable { place: String, why: String },
    /// The measurement of a cell gave no result.
    #[error("{why}")]
    Failed { why: String, log: Option<String> },
    /// A back-end refused.
    #[error("{backend}: {why}")]
    Backend { backend: &'static str, why: String },
    /// A signal came.
    #[error("interrupted; results so far are kept, and the same command resumes")]
    Interrupted,
    /// The host refused an operation.
    #[error(transparent)]
    Host(#[from] luc_host::HostError),
    #[error(transparent)]
    Report(#[from] luc_report::ReportError),
}

impl CampaignError {
    /// A function that makes a [`CampaignError::File`], for `map_err`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}

/// `; did you mean NAME?` for the nearest known name; empty if none is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    luc_base::nearest_name(name, known)
        .map_or_else(String::new, |near| format!("; did you mean {near}?"))
}
