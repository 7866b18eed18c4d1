//! The worker's side of a run of several processes, and the messages of both sides.
//!
//! Each worker talks to the parent through one socket, a line of JSON at a time, and only at a
//! barrier or when it is done: no message is sent while a worker measures. Two flags cannot wait
//! for a barrier, and are bits of a word in shared memory: the run is to end, and a worker has
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

/// Bytes of the shared memory: one page, only one word of which is used.
pub const SHARED_BYTES: usize = 4096;

/// The user or an error ends the run.
const STOP: u32 = 1;
/// A worker has done all of its work.
const FINISHED: u32 = 2;

/// The word that all workers and the parent share.
#[derive(Clone, Copy)]
pub struct Flags(&'static AtomicU32);

impl Flags {
    /// Maps the shared memory behind `file`, which is [`SHARED_BYTES`] long. The mapping stays for
    /// the life of the process, at one page per run.
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

    /// Tells whether a worker has finished, or all are to stop.
    pub fn is_over(self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// A message from the parent.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Begin the next phase at this moment of the clock.
    Go(u64),
    /// Send the results.
    Collect,
}

/// A message from a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The worker waits at the barrier.
    Here,
    /// The times, one part per phase.
    Result(Vec<Part>),
    Failed {
        text: String,
        errno: Option<i32>,
    },
}

/// One worker's part of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Start and end, by the worker's own clock readings.
    pub begin_ns: u64,
    pub end_ns: u64,
    pub ops: u64,
    /// How long each call took, nanoseconds; one list per kind of call.
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
    pub parent: i32,
    pub bench: String,
    pub job: Value,
}

/// Does a job of the benchmark of this name.
pub type Work = fn(&str, Value, &mut Link) -> Result<Vec<Part>>;

/// Converts a job to the benchmark's own form.
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

    /// Waits for all other workers. True if the next phase begins now; false if there is none.
    pub fn barrier(&mut self) -> Result<bool> {
        let told = send(self.socket.get_mut(), &Reply::Here);
        let order = told.and_then(|()| receive(&mut self.socket));
        let lost = |e| WorkloadError::call("hear from", Path::new("the parent process"), e);
        match order.map_err(lost)? {
            Order::Go(start_ns) => {
                sleep_until(start_ns, &Stop::new());
                Ok(true)
            }
            Order::Collect => Ok(false),
        }
    }

    /// Does the job, sends the result, and waits until the parent has it.
    pub fn serve(mut self, work: impl FnOnce(&mut Self) -> Result<Vec<Part>>) {
        let reply = match work(&mut self) {
            Ok(parts) => Reply::Result(parts),
            Err(error) => {
                // The other workers need not go on, as the result is void.
                self.flags.stop();
                Reply::Failed {
                    text: error.to_string(),
                    errno: error.raw_os_error(),
                }
            }
        };
        // Without a parent there is nothing left to do.
        if send(self.socket.get_mut(), &reply).is_ok() {
            let _ = self.socket.read(&mut [0]);
        }
    }
}

pub fn send(socket: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

pub fn receive<T: for<'de> Deserialize<'de>>(socket: &mut BufReader<UnixStream>) -> io::Result<T> {
    let mut line = Vec::new();
    socket.read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Runs a worker process from start to end: standard input is the socket, standard output the
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
                "worker: only a workload can start this subcommand: {error}"
            );
            2
        }
    };
    // A worker's command line asks for nothing else.
    std::process::exit(code)
}

fn connect() -> io::Result<(Link, Assignment)> {
    // The kernel ends this process when the parent ends, however that happens.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut socket = BufReader::new(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    // Fails at once if standard input is a terminal.
    socket.get_ref().peer_addr()?;
    let assignment: Assignment = receive(&mut socket)?;
    if getppid().map(Pid::as_raw_pid) != Some(assignment.parent) {
        return Err(io::Error::other("the parent has already ended"));
    }
    let flags = Flags::map(io::stdout().as_fd())?;
    Ok((Link { socket, flags }, assignment))
}
