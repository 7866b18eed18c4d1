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
    Lacking(Box<WorkloadError>),
    /// A box, so that every step returns its outcome in two registers.
    Failed(Box<WorkloadError>),
}

/// The outcome of a step.
pub type Flow<T = ()> = std::result::Result<T, Halt>;

impl From<WorkloadError> for Halt {
    fn from(error: WorkloadError) -> Self {
        Self::Failed(Box::new(error))
    }
}
