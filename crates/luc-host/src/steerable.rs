//! The file systems that LUC can steer.

use std::path::Path;

use crate::error::HostError;
use crate::fault::Fault;
use crate::health::HealthCheck;
use crate::journal::{self, Journal};
use crate::system::System;

/// The journal to which a path or block device refers, checked to be one that LUC can steer.
///
/// # Errors
/// No such path, not ext4 or ext3, no journal, read-only, or it takes no writes.
pub fn at(system: &dyn System, path: &Path) -> Result<Journal, HostError> {
    let journal = journal::at(system, path)?;
    let shown = path.display().to_string();
    if journal.has_journal == Some(false) {
        return Err(HostError::NotJournaled {
            path: shown,
            why: format!("the {} file system has no journal", journal.kind),
        });
    }
    sound(system, &journal, &shown)?;
    if journal.read_only {
        return Err(HostError::ReadOnly { path: shown });
    }
    Ok(journal)
}

/// Checks that a file system takes writes, as far as that can be seen.
///
/// # Errors
/// It does not.
pub fn sound(system: &dyn System, journal: &Journal, path: &str) -> Result<(), HostError> {
    let fault = HealthCheck::new(system).fault(system, journal);
    fault.map_or(Ok(()), |fault| {
        Err(HostError::Unsound {
            path: path.to_owned(),
            fault,
        })
    })
}

/// A journal whose file system takes no writes, and why.
pub type Unsound = (Journal, Fault);

/// Every journal that LUC could steer, and those whose file systems take no writes.
///
/// # Errors
/// If there is neither.
pub fn all(system: &dyn System) -> Result<(Vec<Journal>, Vec<Unsound>), HostError> {
    let all = journal::journals(system)?;
    let healths = HealthCheck::new(system).look(system, &all);
    let (mut steerable, mut unsound) = (Vec::new(), Vec::new());
    for (journal, health) in all.into_iter().zip(healths) {
        match health.fault().cloned() {
            // An error makes a file system read-only, too.
            Some(fault) => unsound.push((journal, fault)),
            None if journal.obstacle().is_none() => steerable.push(journal),
            None => {}
        }
    }
    if steerable.is_empty() && unsound.is_empty() {
        return Err(HostError::NotJournaled {
            path: "anything".into(),
            why: "no ext4 file system with a journal is mounted read-write".into(),
        });
    }
    Ok((steerable, unsound))
}
