//! Why a thread of a run stops before the end of its loop.

use crate::WorkloadError;

/// Why a thread does not go on to its next step.
#[derive(Debug)]
pub enum Halt {
    /// The run is over.
    Over,
    /// This flowop's limit is reached.
    Limit,
    /// There is no entry as this flowop needs one.
    Lacking(String),
    Failed(WorkloadError),
}

/// The outcome of a step.
pub type Flow<T = ()> = std::result::Result<T, Halt>;

impl From<WorkloadError> for Halt {
    fn from(error: WorkloadError) -> Self {
        Self::Failed(error)
    }
}
