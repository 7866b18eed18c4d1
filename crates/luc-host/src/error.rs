//! Errors: what a machine refuses or lacks.

use std::io;

use luc_control::KnobError;

use crate::fault::Fault;

/// A failure on this machine. Its text is one line: what failed, on
/// what, why, and what to do about it.
///
/// Fields have the same meaning in every variant: `what` or `path` names the subject, `why` the
/// cause, `fix` the remedy.
#[allow(missing_docs)] // the paragraph above says it once
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel asks for more rights than the caller has.
    #[error("cannot {what}: not permitted; {fix}")]
    NotPermitted { what: String, fix: String },
    /// `luc.ko` is not loaded and cannot be.
    #[error("kernel module luc: {why}; {fix}")]
    ModuleUnavailable { why: String, fix: String },
    /// No such path, or nothing is mounted from that device.
    #[error("{path}: {why}; {fix}")]
    NotFound {
        path: String,
        why: String,
        fix: String,
    },
    /// There is a file system, but no ext4 or ext3 journal in it.
    #[error("{path}: {why}; LUC steers ext4 and ext3 journals only")]
    NotJournaled { path: String, why: String },
    /// The file system is mounted read-only.
    #[error("{path}: mounted read-only, so its journal never commits; remount it read-write first")]
    ReadOnly { path: String },
    /// The file system takes no writes: an error, a forced shutdown, a freeze, or a device that
    /// keeps them waiting.
    #[error("{path}: {fault}")]
    Unsound { path: String, fault: Fault },
    /// LUC is on already.
    #[error("{path}: LUC is already on; change it with `luc set {path}`, or switch it off first")]
    AlreadyOn { path: String },
    /// LUC is not on.
    #[error(
        "{path}: LUC is not on for this file system; `luc on {path}` switches it on; \
         `luc status` lists those with LUC on"
    )]
    NotOn { path: String },
    /// An unknown knob, or a value that is invalid or out of bounds.
    #[error("{why}; {kept}")]
    KnobRefused { why: String, kept: &'static str },
    /// Another program uses a function or the module.
    #[error("{what}: {why}; {fix}")]
    Busy {
        what: String,
        why: String,
        fix: String,
    },
    /// The kernel lacks functions that LUC hooks, or has a layout that LUC does not know.
    #[error("{what}: {why}; see `luc probe`")]
    KernelUnsupported { what: String, why: String },
    /// ftrace has shut down after an internal fault: hooks stay as they are until a restart.
    #[error(
        "{what}: {why}: the kernel's ftrace has failed; restart the machine (details are in the \
         kernel log)"
    )]
    FtraceFailed { what: String, why: &'static str },
    /// A file of the module cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable { file: String, source: io::Error },
    /// A file of the module holds a value that no knob of this build takes.
    #[error("{file}: {source}; is the module a different version?")]
    OtherVersion { file: String, source: KnobError },
    /// The kernel did not do what it reported, or returned an error that has no variant here.
    #[error("{0}")]
    Unexpected(String),
    /// A file of the machine cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}
