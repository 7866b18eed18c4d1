//! A worker's side of a run of several processes, and the words both sides exchange.
//!
//! Each worker talks to the parent through one socket, a line of JSON at a time, and only when it
//! is asked or at a barrier: nothing is said while anybody measures, but that one is done. One
//! word of memory that all share carries what cannot wait: the wish to end, and that the first has
//! finished.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::sleep_until;
use crate::{Result, Stop, WorkloadError};

/// Bytes of the shared memory: one page, of which one word is used.
pub const SHARED_BYTES: usize = 4096;

/// The user, or an error, wants the end.
const STOP: u32 = 1;
/// Somebody has done all of its work.
const FINISHED: u32 = 2;

/// The word that all workers and the parent share.
#[derive(Clone, Copy)]
pub struct Flags(&'static AtomicU32);

impl Flags {
    /// Maps the shared memory behind `file`, which is [`SHARED_BYTES`] long. The mapping stays for
    /// the life of the process, as one page of each run.
    pub fn map(file: BorrowedFd<'_>) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice, so it replaces none.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                SHARED_BYTES,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        // SAFETY: the mapping begins at a page, is never unmapped, and every process that maps the
        // file uses its first word as an atomic only.
        let word = unsafe { &*address.cast::<AtomicU32>() };
        Ok(Self(word))
    }

    pub fn stop(self) {
        self.0.fetch_or(STOP, Ordering::Relaxed);
    }

    pub fn is_stopped(self) -> bool {
        self.0.load(Ordering::Relaxed) & STOP != 0
    }

    pub fn finish(self) {
        self.0.fetch_or(FINISHED, Ordering::Relaxed);
    }

    /// Whether somebody has finished, or everybody is to stop.
    pub fn is_over(self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// What the parent says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Begin the next phase at this moment of the clock.
    Go(u64),
    /// Send the results.
    Collect,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It waits at the barrier.
    Here,
    /// What it measured, a part for each phase.
    Result(Vec<Part>),
    /// It cannot go on.
    Failed { text: String, errno: Option<i32> },
}

/// One worker's part of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// When it began and ended, by its own clock readings.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Operations done.
    pub ops: u64,
    /// How long each call took, nanoseconds; one list for each kind of call.
    pub calls: Vec<Vec<u64>>,
}

impl Part {
    pub fn took_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// The first line a worker process gets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The process that started it.
    pub parent: i32,
    /// Name of the benchmark.
    pub bench: String,
    /// What it is to do, as the benchmark put it.
    pub job: Value,
}

/// Does what a job of the benchmark of this name says.
pub type Work = fn(&str, Value, &mut Link) -> Result<Vec<Part>>;

/// A job as the benchmark put it.
///
/// # Errors
/// It is not one of that benchmark.
pub fn job<J: for<'de> Deserialize<'de>>(job: Value) -> Result<J> {
    serde_json::from_value(job).map_err(|error| WorkloadError::Arguments(error.to_string()))
}

/// A worker's connection to the parent.
pub struct Link {
    socket: BufReader<UnixStream>,
    flags: Flags,
}

impl Link {
    pub fn new(socket: UnixStream, flags: Flags) -> Self {
        Self {
            socket: BufReader::new(socket),
            flags,
        }
    }

    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// Waits for all others. True when the next phase begins, which is now; false when there is
    /// none.
    pub fn barrier(&mut self) -> Result<bool> {
        let order = self.say(&Reply::Here).and_then(|()| self.hear::<Order>());
        match order.map_err(lost)? {
            Order::Go(start_ns) => {
                sleep_until(start_ns, &Stop::new());
                Ok(true)
            }
            Order::Collect => Ok(false),
        }
    }

    fn say(&mut self, reply: &Reply) -> io::Result<()> {
        send(self.socket.get_mut(), reply)
    }

    fn hear<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<T> {
        receive(&mut self.socket)
    }

    /// Does the job, sends what came of it, and waits until the parent has it.
    pub fn serve(mut self, work: impl FnOnce(&mut Self) -> Result<Vec<Part>>) {
        let result = work(&mut self);
        let reply = match result {
            Ok(parts) => Reply::Result(parts),
            Err(error) => {
                // The others need not do work whose result is void.
                self.flags.stop();
                Reply::Failed {
                    text: error.to_string(),
                    errno: error.raw_os_error(),
                }
            }
        };
        // Without a parent there is nobody to tell, and nothing left to do.
        if self.say(&reply).is_ok() {
            let _ = self.socket.read(&mut [0]);
        }
    }
}

/// Sends one message.
pub fn send(socket: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Waits for one message.
pub fn receive<T: for<'de> Deserialize<'de>>(socket: &mut BufReader<UnixStream>) -> io::Result<T> {
    let mut line = Vec::new();
    socket.read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

fn lost(source: io::Error) -> WorkloadError {
    WorkloadError::call("hear from", Path::new("the parent process"), source)
}

/// A worker process, from its start to its end: standard input is the socket, standard output the
/// shared memory.
pub fn process(work: Work) -> ! {
    let code = match connect() {
        Ok((link, Assignment { bench, job, .. })) => {
            link.serve(|link| work(&bench, job, link));
            0
        }
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "worker: not started by a workload, which alone can use it: {error}"
            );
            2
        }
    };
    // There is nothing to come back to: the command line asked for this alone.
    std::process::exit(code)
}

fn connect() -> io::Result<(Link, Assignment)> {
    // The kernel ends this process when the parent ends, however that happens.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut socket = BufReader::new(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    // A terminal would be waited for otherwise.
    socket.get_ref().peer_addr()?;
    let assignment: Assignment = receive(&mut socket)?;
    if getppid().map(Pid::as_raw_pid) != Some(assignment.parent) {
        return Err(io::Error::other("the parent has ended already"));
    }
    let flags = Flags::map(io::stdout().as_fd())?;
    Ok((Link { socket, flags }, assignment))
}
