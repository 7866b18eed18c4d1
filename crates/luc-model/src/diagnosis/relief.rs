//! The remedy for the time that a file system loses.

use serde::Serialize;

use super::advice::{device, luc_is_offered};
use super::facts::{Facts, Luc};
use super::{Diagnosis, VerdictKind};

/// The best remedy, ordered from the least to the most that LUC or its user can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relief {
    /// Nothing costs time, or nothing is known to help.
    #[default]
    None,
    /// Only a faster device.
    Device,
    /// Something other than LUC: another load, journal or mount option.
    Other,
    /// LUC would help, or may.
    Luc,
}

impl Relief {
    /// Judges a diagnosis whose advice is complete.
    pub(super) fn new(diagnosis: &Diagnosis, facts: &Facts) -> Self {
        if luc_is_offered(diagnosis) {
            return Self::Luc;
        }
        let device = device(diagnosis, facts);
        if diagnosis.advice.is_empty() {
            Self::None
        } else if diagnosis.advice.iter().all(|it| device.contains(it)) {
            Self::Device
        } else {
            Self::Other
        }
    }

    /// Judges what the module tells.
    pub(super) fn of_kinds(kinds: &[VerdictKind], luc: Luc) -> Self {
        if kinds.iter().any(|kind| kind.row().of_luc) && luc != Luc::Steering {
            Self::Luc
        } else if kinds.contains(&VerdictKind::Processor) {
            Self::Other
        } else if kinds.contains(&VerdictKind::Device) {
            Self::Device
        } else {
            Self::None
        }
    }
}
