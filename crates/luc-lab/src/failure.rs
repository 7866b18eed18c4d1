//! Failures of the lab, of reports and of campaigns, as the command line tells them.

use std::fmt::Display;

use luc_base::words::counted;
use luc_campaign::CampaignError;
use luc_cli::{Code, Failure};
use luc_report::ReportError;
use luc_vm::LabError;

/// The failure to run a workload.
pub fn workload(what: impl Display, why: impl Display) -> Failure {
    Failure::coded(Code::Workload, format_args!("{what}: {why}"))
}

/// The failure for `count` broken promises of syncs.
pub fn broken(place: impl Display, count: u64, first: impl Display) -> Failure {
    let promises = counted(count, "promise", "promises");
    let line = format_args!("{place}: {promises} broken; first: {first}");
    Failure::coded(Code::PromiseBroken, line)
}

/// A result whose error has a line and an exit code.
pub trait OrFailure<T> {
    fn or_failure(self) -> Result<T, Failure>;
}

impl<T> OrFailure<T> for Result<T, LabError> {
    fn or_failure(self) -> Result<T, Failure> {
        self.map_err(|error| {
            let code = if error.is_missing_prerequisite() {
                Code::LabUnavailable
            } else {
                Code::Lab
            };
            Failure::coded(code, error)
        })
    }
}

impl<T> OrFailure<T> for Result<T, ReportError> {
    fn or_failure(self) -> Result<T, Failure> {
        self.map_err(|error| match &error {
            ReportError::Lab { source, .. } if source.is_missing_prerequisite() => {
                Failure::coded(Code::LabUnavailable, error)
            }
            _ => Failure::coded(Code::Lab, error),
        })
    }
}

impl<T> OrFailure<T> for Result<T, CampaignError> {
    fn or_failure(self) -> Result<T, Failure> {
        self.map_err(|error| {
            let code = match error {
                CampaignError::Host(error) => return Failure::Host(error),
                CampaignError::Unavailable { .. } => Code::LabUnavailable,
                CampaignError::Failed { .. } => Code::Lab,
                CampaignError::Backend { .. } => Code::BackEnd,
                CampaignError::Interrupted => Code::Interrupted,
                CampaignError::File { .. } => Code::Unexpected,
                _ => Code::Campaign,
            };
            Failure::coded(code, error)
        })
    }
}
