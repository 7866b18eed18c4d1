//! Reasons for which a thread of a run stops within its loop.

use crate::WorkloadError;

/// The reason why a thread does not go on to its next step.
#[derive(Debug)]
pub enum Halt {
    /// The run is over.
    Over,
    /// This flowop's limit is reached.
    Limit,
    /// No entry is in the state that this flowop needs.
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
