//! `luc trace`

mod count;
mod during;
mod export;
mod model;
pub(crate) mod module_events;
mod rank;
mod record;
mod slow;
mod spans;
mod summary;
pub mod tape;
mod watch;

use luc_host::{plain, sysfs};
use luc_trace::printable;

use luc_cli::exit::Failure;
use luc_cli::verb::verbs;

verbs! {
    /// Record what file systems, their journals and LUC do
    Verbs:
    Record(record::Args),
    Count(count::Args),
    Summary(summary::Args),
    Model(model::Args),
    Rank(rank::Args),
    Export(export::Args),
}

/// Names a file system for people.
fn place(mount_point: Option<&str>, device: &str) -> String {
    match mount_point {
        Some(point) => format!("{} ({device})", printable(point)),
        None => device.to_owned(),
    }
}

/// The failure of a system call while a trace was made.
fn failed(what: impl std::fmt::Display, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return sysfs::denied("record a trace").into();
    }
    Failure::trace(what, plain(error))
}
