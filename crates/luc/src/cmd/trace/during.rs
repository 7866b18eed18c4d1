//! For how long: a time, a command, or until an interrupt.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;

use super::failed;
use crate::Context;
use crate::exit::Failure;
use crate::progress::Bar;

/// How often the end of a command is looked for that cannot be waited for.
const LOOK: Duration = Duration::from_millis(20);

/// How long a command may take to end by itself after a process sent a signal to luc. The sender may
/// have sent it to the whole group, as timeout(1) and service managers do, and many programs take a
/// second signal for an order to end at once.
const GRACE: Duration = Duration::from_secs(1);

/// Does `each` again and again, `pause` apart, until the time is over, the command has ended,
/// or an interrupt comes. Gives the command's status unless it was ended because time was over.
pub fn during(
    command: &[String],
    limit: Option<Duration>,
    pause: Duration,
    context: &Context,
    mut each: impl FnMut() -> io::Result<()>,
) -> Result<Option<ExitStatus>, Failure> {
    let begin = Instant::now();
    if context.stopped() && !command.is_empty() {
        return Err(Failure::interrupted("the command was not started"));
    }
    // A command has the terminal for itself.
    let bar = command.is_empty().then(|| match limit {
        Some(limit) => Bar::wait("tracing", limit),
        None => Bar::wait_or_work("tracing until Ctrl-C", None),
    });
    let mut child = start(command)?;
    context.stop.command_runs(child.is_some());
    let result = watch(child.as_mut(), begin, limit, pause, context, &mut each);
    context.stop.command_runs(false);
    drop(bar);
    result
}

/// The same with the command, if there is one, under way.
fn watch(
    mut child: Option<&mut Child>,
    begin: Instant,
    limit: Option<Duration>,
    pause: Duration,
    context: &Context,
    each: &mut impl FnMut() -> io::Result<()>,
) -> Result<Option<ExitStatus>, Failure> {
    let end = child.as_deref().and_then(end_of);
    let mut ending = false;
    let mut passing = None;
    loop {
        if let Err(error) = each() {
            // The disk is full, say: what the command does is no longer seen.
            if let Some(child) = &mut child {
                let _ = child.kill();
                let _ = child.wait();
            }
            return Err(failed("recording", &error));
        }
        let late = limit.is_some_and(|limit| begin.elapsed() >= limit);
        let left = limit.map_or(pause, |limit| limit.saturating_sub(begin.elapsed()));
        let Some(running) = &mut child else {
            if late || context.stopped() {
                return Ok(None);
            }
            rest(None, pause.min(left));
            continue;
        };
        if let Some(status) = running.try_wait()? {
            // A command that was ended as asked has not failed.
            return Ok((!late).then_some(status));
        }
        if late && !ending {
            // Politely, so that it can clean up; what it still does is seen.
            send(running, Signal::TERM);
            ending = true;
        }
        pass_on(running, &mut passing, context);
        // Where its end cannot be waited for it is looked for, often.
        let pause = if end.is_some() {
            pause
        } else {
            pause.min(LOOK)
        };
        rest(end.as_ref(), if late { pause } else { pause.min(left) });
    }
}

/// Sends the command a signal that a process sent to luc, once the command had its time to end.
/// A terminal's signals reach the command without us: one more would be a second one.
fn pass_on(command: &Child, passing: &mut Option<(Signal, Instant)>, context: &Context) {
    if let Some(signal) = context.stop.take_sent().and_then(Signal::from_named_raw) {
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

/// A file that can be read once the command has ended.
fn end_of(child: &Child) -> Option<OwnedFd> {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()).ok()
}

/// Waits for so long, or until the command ends or a signal comes, so that a verb
/// that only watches is woken seldom.
fn rest(end: Option<&OwnedFd>, pause: Duration) {
    let mut ends: Vec<_> = end
        .map(|end| PollFd::new(end, PollFlags::IN))
        .into_iter()
        .collect();
    let pause = Timespec::try_from(pause).ok();
    // The caller looks what it was.
    let _ = rustix::event::poll(&mut ends, pause.as_ref());
}

fn start(command: &[String]) -> Result<Option<Child>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    child.map(Some).map_err(|error| Failure::Command {
        command: program.clone(),
        how: format!("cannot be started: {}", luc_host::plain(&error)),
        status: None,
    })
}

/// Makes the command's status that of the verb.
pub fn hand_on(command: &[String], status: Option<ExitStatus>) -> Result<(), Failure> {
    let Some(status) = status.filter(|status| !status.success()) else {
        return Ok(());
    };
    Err(Failure::Command {
        command: command.first().cloned().unwrap_or_default(),
        how: status.to_string(),
        // As a shell reports it: 128 and the number of the signal.
        status: status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))
            .and_then(|code| u8::try_from(code).ok()),
    })
}

#[cfg(test)]
mod tests;
