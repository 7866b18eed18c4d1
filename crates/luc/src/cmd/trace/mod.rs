//! `luc trace`

mod count;
mod export;
mod model;
mod rank;
mod record;
mod slow;
mod summary;
mod watch;

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use luc_trace::printable;

use luc_cli::progress::Bar;
use luc_cli::{Context, Failure, verbs};
use luc_watch::{WatchError, during};

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
pub(super) fn place(mount_point: Option<&str>, device: &str) -> String {
    match mount_point {
        Some(point) => format!("{} ({device})", printable(point)),
        None => device.to_owned(),
    }
}

/// The failure of a system call on a file of this name.
fn failed(what: impl std::fmt::Display, error: &io::Error) -> Failure {
    super::failed("trace")(WatchError::recording(what, error))
}

/// Calls `each` until the end, as [`during::during`] does, and shows how much time is left.
fn during(
    command: &[String],
    seconds: Option<u64>,
    pause: Duration,
    context: &Context,
    each: impl FnMut() -> io::Result<()>,
) -> Result<Option<ExitStatus>, Failure> {
    let limit = seconds.map(Duration::from_secs);
    // A command has the terminal for itself.
    let bar = command.is_empty().then(|| match limit {
        Some(limit) => Bar::wait("tracing", limit),
        None => Bar::wait_or_work("tracing until Ctrl-C", None),
    });
    let status = during::during(command, limit, pause, &context.stop, each);
    drop(bar);
    status.map_err(super::failed("trace"))
}

/// Makes the command's status that of the verb.
fn hand_on(command: &[String], status: Option<ExitStatus>) -> Result<(), Failure> {
    let Some(status) = status.filter(|status| !status.success()) else {
        return Ok(());
    };
    Err(Failure::Command {
        command: command.first().cloned().unwrap_or_default(),
        how: status.to_string(),
        // As a shell reports it: 128 plus the number of the signal.
        status: status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))
            .and_then(|code| u8::try_from(code).ok()),
    })
}
