//! How long to watch: for a time, during a command, or until an interrupt.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;

use luc_base::Stop;

use crate::WatchError;

/// How often to check whether a command has ended if its end cannot be waited for.
const LOOK: Duration = Duration::from_millis(20);

/// How long a command may take to end by itself after a process sent a signal to luc. The sender
/// may have sent it to the whole group, as timeout(1) and service managers do, and many programs
/// take a second signal for an order to end at once.
const GRACE: Duration = Duration::from_secs(1);

/// Calls `each` every `pause` until the time is over, the command has ended, or an interrupt
/// comes. Returns the command's status unless luc ended the command because the time was over.
pub fn during(
    command: &[String],
    limit: Option<Duration>,
    pause: Duration,
    stop: &Stop,
    mut each: impl FnMut() -> io::Result<()>,
) -> Result<Option<ExitStatus>, WatchError> {
    let begin = Instant::now();
    if stop.is_set() && !command.is_empty() {
        return Err(WatchError::Interrupted);
    }
    let mut child = start(command)?;
    stop.command_runs(child.is_some());
    let result = watch(child.as_mut(), begin, limit, pause, stop, &mut each);
    stop.command_runs(false);
    result
}

/// Like [`during`], with the command, if any, already started.
fn watch(
    mut child: Option<&mut Child>,
    begin: Instant,
    limit: Option<Duration>,
    pause: Duration,
    stop: &Stop,
    each: &mut impl FnMut() -> io::Result<()>,
) -> Result<Option<ExitStatus>, WatchError> {
    let end = child.as_deref().and_then(end_of);
    let mut ending = false;
    let mut passing = None;
    loop {
        if let Err(error) = each() {
            // The disk may be full: what the command does is no longer recorded.
            if let Some(child) = &mut child {
                let _ = child.kill();
                let _ = child.wait();
            }
            return Err(WatchError::recording("recording", &error));
        }
        let late = limit.is_some_and(|limit| begin.elapsed() >= limit);
        let left = limit.map_or(pause, |limit| limit.saturating_sub(begin.elapsed()));
        let Some(running) = &mut child else {
            if late || stop.is_set() {
                return Ok(None);
            }
            rest(None, pause.min(left));
            continue;
        };
        if let Some(status) = running.try_wait()? {
            // A command that luc ended at its time limit has not failed.
            return Ok((!late).then_some(status));
        }
        if late && !ending {
            // SIGTERM lets the command clean up; what it still does is traced.
            send(running, Signal::TERM);
            ending = true;
        }
        pass_on(running, &mut passing, stop);
        // Without a file to wait on, check often whether the command has ended.
        let pause = if end.is_some() {
            pause
        } else {
            pause.min(LOOK)
        };
        rest(end.as_ref(), if late { pause } else { pause.min(left) });
    }
}

/// Passes a signal that a process sent to luc on to the command, after [`GRACE`]. A terminal sends
/// its signals to the command itself, so luc must not send a second one.
fn pass_on(command: &Child, passing: &mut Option<(Signal, Instant)>, stop: &Stop) {
    if let Some(signal) = stop.take_sent().and_then(Signal::from_named_raw) {
        *passing = Some((signal, Instant::now()));
    }
    if let Some((signal, _)) = passing.take_if(|(_, since)| since.elapsed() >= GRACE) {
        send(command, signal);
    }
}

fn send(command: &Child, signal: Signal) {
    let id = rustix::process::Pid::from_child(command);
    // It fails only if the command has just ended.
    let _ = rustix::process::kill_process(id, signal);
}

/// A file that becomes readable when the command ends.
fn end_of(child: &Child) -> Option<OwnedFd> {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()).ok()
}

/// Waits for `pause`, or until the command ends or a signal comes, so that a verb
/// that only watches wakes rarely.
fn rest(end: Option<&OwnedFd>, pause: Duration) {
    let mut ends: Vec<_> = end
        .map(|end| PollFd::new(end, PollFlags::IN))
        .into_iter()
        .collect();
    let pause = Timespec::try_from(pause).ok();
    // The caller finds out which it was.
    let _ = rustix::event::poll(&mut ends, pause.as_ref());
}

fn start(command: &[String]) -> Result<Option<Child>, WatchError> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    child.map(Some).map_err(|error| WatchError::Command {
        command: program.clone(),
        why: format!("cannot be started: {}", luc_host::plain(&error)),
    })
}

#[cfg(test)]
mod tests;
