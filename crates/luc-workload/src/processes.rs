//! Real processes (or threads) that begin every phase together, as MPI programs do.
//!
//! A worker process runs this program again with a hidden subcommand, because a program that may
//! have threads must not fork. [`crate::worker`] has the protocol. Workers never outlive the
//! parent: the kernel kills them when it ends, and the parent ends and reaps them on every path.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use rustix::time::Timespec;

use serde::Serialize;
use serde_json::Value;

use crate::benchmark::{Benchmark, Measured};
use crate::clock::{gathering_ns, now_ns, sleep_until};
use crate::observer::{Observed, Observer};
use crate::scratch::{Scratch, allow_descriptors};
use crate::worker::{Assignment, Flags, Link, Order, Part, Reply, SHARED_BYTES};
use crate::{Common, Result, Stop, WorkloadError, worker};

/// Most operations of one run: the time of every call, 8 bytes, is kept until the end.
pub const OPS_MAX: u64 = 1 << 24;

/// The hidden subcommand that runs this program as a worker.
pub const WORKER: &str = "worker";

/// Stack of a worker that is a thread.
const STACK_BYTES: usize = 256 * 1024;

/// Longest wait of the parent before a look at the stop flag.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Processes that run this program.
    Processes,
    Threads,
}

/// The work of all workers between two barriers.
#[derive(Debug)]
pub struct Phase {
    /// When all workers began, ns.
    pub start_ns: u64,
    /// When all had passed the barrier after the phase, ns.
    pub passed_ns: u64,
    /// Each worker's part, in the order of the jobs.
    pub parts: Vec<Part>,
}

impl Phase {
    /// A phase from the start of the first part to the end of the last.
    pub fn spanning(parts: Vec<Part>) -> Self {
        let begins = parts.iter().map(|part| part.begin_ns);
        let ends = parts.iter().map(|part| part.end_ns);
        Self {
            start_ns: begins.min().unwrap_or(0),
            passed_ns: ends.max().unwrap_or(0),
            parts,
        }
    }

    pub fn ops(&self) -> u64 {
        self.parts.iter().map(|part| part.ops).sum()
    }

    /// Length including the barrier after the phase, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.passed_ns.saturating_sub(self.start_ns)
    }

    /// Returns every worker's times of the calls of this kind, in one list.
    pub fn calls(&self, kind: usize) -> Vec<u64> {
        let lists = self.parts.iter().filter_map(|part| part.calls.get(kind));
        lists.flatten().copied().collect()
    }
}

/// Runs the jobs, each by a worker of its own, through `phases` phases, in a new directory that is
/// removed at the end.
///
/// If `stop` is raised, fewer phases come back, and the last of them may be cut short. The counters
/// observed are summed over the phases. The first error of any worker ends all workers.
pub fn run_in<B: Benchmark, J: Serialize>(
    common: &Common,
    kind: Kind,
    phases: usize,
    jobs: impl FnOnce(&Scratch) -> Result<Vec<J>>,
    stop: &Stop,
) -> Result<Measured<Vec<Phase>>> {
    let meter = common.energy.start(stop)?;
    let scratch = Scratch::new(&common.dir, common.keep)?;
    let jobs = jobs(&scratch)?;
    let observer = Observer::new(&scratch, meter);
    let (done, observed) = run::<B>(kind, &jobs, phases, &scratch, &observer, stop)?;
    scratch.remove()?;
    Ok(Measured {
        elapsed_ns: done.iter().map(Phase::length_ns).sum(),
        found: done,
        interrupted: stop.is_set(),
        observed,
    })
}

fn run<B: Benchmark>(
    kind: Kind,
    jobs: &[impl Serialize],
    phases: usize,
    scratch: &Scratch,
    observer: &Observer,
    stop: &Stop,
) -> Result<(Vec<Phase>, Observed)> {
    let mut company = Company::start::<B>(kind, jobs)?;
    company.at_barrier(stop)?;
    if !stop.is_set() {
        scratch.settle()?;
    }
    let mut done = Vec::with_capacity(phases);
    let mut observed = Vec::with_capacity(phases);
    while done.len() < phases && !stop.is_set() {
        let workers = company.members.len() as u64;
        let start_ns = now_ns() + gathering_ns(workers);
        company.order(&Order::Go(start_ns))?;
        sleep_until(start_ns, stop);
        let before = observer.read();
        company.at_barrier(stop)?;
        let passed_ns = now_ns();
        observed.push(before.until(&observer.read()));
        done.push(Phase {
            start_ns,
            passed_ns,
            parts: Vec::with_capacity(company.members.len()),
        });
    }
    company.order(&Order::Collect)?;
    for parts in company.results(stop)? {
        for (phase, part) in done.iter_mut().zip(parts) {
            phase.parts.push(part);
        }
    }
    Ok((done, Observed::sum(observed)))
}

/// Refuses more operations than can be kept.
pub fn bound(workers: u32, each: u64) -> Result<()> {
    let all = u64::from(workers).saturating_mul(each);
    if all <= OPS_MAX {
        return Ok(());
    }
    Err(WorkloadError::Arguments(format!(
        "{workers} times {each} is {all} operations, but at most {OPS_MAX} can be measured; ask \
         for fewer"
    )))
}

struct Member {
    socket: BufReader<UnixStream>,
    child: Option<Child>,
    thread: Option<JoinHandle<()>>,
}

/// All workers of a run; dropping it ends them.
struct Company {
    members: Vec<Member>,
    epoll: OwnedFd,
    flags: Flags,
}

impl Company {
    fn start<B: Benchmark>(kind: Kind, jobs: &[impl Serialize]) -> Result<Self> {
        let wanted = jobs.len();
        // A thread holds both ends of its socket, its directory and its file.
        let each = if kind == Kind::Threads { 4 } else { 1 };
        allow_descriptors(wanted, each * wanted as u64)?;
        let shared = shared_memory().map_err(|e| setup("make memory to share with", e))?;
        let mut company = Self {
            members: Vec::with_capacity(wanted),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| setup("wait for", e))?,
            flags: Flags::map(shared.as_fd()).map_err(|e| setup("share memory with", e))?,
        };
        let words = match kind {
            Kind::Processes => words_before(B::NAME),
            Kind::Threads => Vec::new(),
        };
        for job in jobs {
            let job = serde_json::to_value(job).map_err(|e| setup("tell", e))?;
            let (member, told) = match kind {
                Kind::Processes => {
                    let parent = Pid::as_raw_pid(getpid());
                    let bench = B::NAME.to_owned();
                    let assignment = Assignment { parent, bench, job };
                    (process(&words, &shared), Some(assignment))
                }
                Kind::Threads => (work_in_thread::<B>(job, company.flags), None),
            };
            let number = company.members.len() + 1;
            let mut member = member.map_err(|source| WorkloadError::Start {
                what: if kind == Kind::Threads {
                    "thread"
                } else {
                    "process"
                },
                number,
                wanted,
                source,
            })?;
            let data = epoll::EventData::new_u64(company.members.len() as u64);
            let socket = member.socket.get_ref();
            let added = epoll::add(&company.epoll, socket, data, epoll::EventFlags::IN);
            let told = added.map_err(io::Error::from).and_then(|()| match told {
                Some(assignment) => worker::send(member.socket.get_mut(), &assignment),
                None => Ok(()),
            });
            company.members.push(member);
            if let Err(error) = told {
                return Err(company.ended(number - 1, &error));
            }
        }
        Ok(company)
    }

    fn order(&mut self, order: &Order) -> Result<()> {
        for index in 0..self.members.len() {
            if let Err(error) = worker::send(self.members[index].socket.get_mut(), order) {
                return Err(self.ended(index, &error));
            }
        }
        Ok(())
    }

    /// Waits until all workers are at the barrier.
    fn at_barrier(&mut self, stop: &Stop) -> Result<()> {
        self.replies(stop, |number, reply| match reply {
            Reply::Here => Ok(()),
            reply => Err(failure(number, reply)),
        })
    }

    /// Waits for all results, in the order of the jobs.
    fn results(&mut self, stop: &Stop) -> Result<Vec<Vec<Part>>> {
        let mut results = vec![Vec::new(); self.members.len()];
        self.replies(stop, |number, reply| match reply {
            Reply::Result(parts) => {
                results[number - 1] = parts;
                Ok(())
            }
            reply => Err(failure(number, reply)),
        })?;
        Ok(results)
    }

    /// Waits for one reply of each worker and hands it to `take` with the worker's number, from 1.
    fn replies(
        &mut self,
        stop: &Stop,
        mut take: impl FnMut(usize, Reply) -> Result<()>,
    ) -> Result<()> {
        let mut missing = self.members.len();
        let mut events = Vec::with_capacity(64);
        while missing > 0 {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&LOOK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(setup("wait for", error)),
            }
            if stop.is_set() {
                self.flags.stop();
            }
            for event in events.drain(..) {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                match worker::receive(&mut self.members[index].socket) {
                    Ok(reply) => take(index + 1, reply)?,
                    Err(error) => return Err(self.ended(index, &error)),
                }
                missing -= 1;
            }
        }
        Ok(())
    }

    /// Returns the error of a worker that ended without a reply.
    fn ended(&mut self, index: usize, error: &io::Error) -> WorkloadError {
        let how = match self.members[index].child.as_mut().map(Child::wait) {
            Some(Ok(status)) => status.to_string(),
            Some(Err(error)) => error.to_string(),
            None => error.to_string(),
        };
        WorkloadError::WorkerEnded {
            number: index + 1,
            how,
        }
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        self.flags.stop();
        for member in &mut self.members {
            // Tells a worker that waits for an order that none will come.
            let _ = member.socket.get_ref().shutdown(std::net::Shutdown::Both);
            if let Some(child) = &mut member.child {
                // It fails only if the process has already been reaped.
                let _ = child.kill();
            }
        }
        for member in &mut self.members {
            if let Some(child) = &mut member.child {
                let _ = child.wait();
            }
            if let Some(thread) = member.thread.take() {
                // A panic was printed where it happened and reported as the worker's end.
                let _ = thread.join();
            }
        }
    }
}

fn failure(number: usize, reply: Reply) -> WorkloadError {
    match reply {
        Reply::Failed { text, errno } => WorkloadError::Worker { text, errno },
        reply => WorkloadError::WorkerEnded {
            number,
            how: format!("it sent {reply:?} out of turn"),
        },
    }
}

fn setup(call: &'static str, source: impl Into<io::Error>) -> WorkloadError {
    WorkloadError::call(call, "the workers", source)
}

fn shared_memory() -> io::Result<OwnedFd> {
    let file = memfd_create(c"luc-bench", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, SHARED_BYTES as u64)?;
    Ok(file)
}

/// Returns the words of this process's command line before the workload's name: they lead a worker
/// to the same subcommand of the same program.
fn words_before(workload: &str) -> Vec<OsString> {
    std::env::args_os()
        .take_while(|word| word != workload)
        .collect()
}

fn process(words: &[OsString], shared: &OwnedFd) -> io::Result<Member> {
    let (ours, theirs) = UnixStream::pair()?;
    // Not by its name, which may by now mean a newer program.
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = words.first() {
        command.arg0(name);
    }
    let child = command
        .args(words.iter().skip(1))
        .arg(WORKER)
        .stdin(OwnedFd::from(theirs))
        .stdout(shared.try_clone()?)
        .stderr(Stdio::inherit())
        // Only the parent gets Ctrl-C; it tells the workers.
        .process_group(0)
        .spawn()?;
    Ok(Member {
        socket: BufReader::new(ours),
        child: Some(child),
        thread: None,
    })
}

fn work_in_thread<B: Benchmark>(job: Value, flags: Flags) -> io::Result<Member> {
    let (ours, theirs) = UnixStream::pair()?;
    let thread = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || Link::new(theirs, flags).serve(|link| B::work(job, link)))?;
    Ok(Member {
        socket: BufReader::new(ours),
        child: None,
        thread: Some(thread),
    })
}
