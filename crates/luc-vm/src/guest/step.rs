//! Runs one command with its outputs in files, so that no reader thread takes processor time from a
//! measurement.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, kill_process_group, pidfd_open, wait,
};

use super::report::Channel;
use crate::plan::{OUTPUT_BYTES_MAX, Status, Step};

/// Standard output of the step that ran last.
pub const STDOUT_PATH: &str = "/run/luc-lab-stdout";
/// Standard error of the step that ran last.
pub const STDERR_PATH: &str = "/run/luc-lab-stderr";

/// Virtual time between two looks at the output of a step.
const LOOK_S: u64 = 1;

/// Runs a step to its end or its limit. If there is a channel, tells the host every second what the
/// step puts out. The error says why it never ran.
pub fn run(
    step: &Step,
    env: &BTreeMap<String, String>,
    dir: &Path,
    mut told: Option<&mut Channel>,
) -> Result<Status, String> {
    let create = |path| File::create(path).map_err(|e| format!("cannot make {path}: {e}"));
    let (stdout, stderr) = (create(STDOUT_PATH)?, create(STDERR_PATH)?);
    if let Some(channel) = &mut told {
        channel.begin_output();
    }
    // The program is looked up in this process's PATH, not in the child's.
    let path = env.get("PATH").map_or("", String::as_str);
    let program = find_program(&step.argv[0], path, dir)?;
    let mut child = Command::new(program)
        .arg0(&step.argv[0])
        .args(&step.argv[1..])
        .env_clear()
        .envs(env)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()
        .map_err(|e| format!("cannot run {}: {e}", step.argv[0]))?;
    let timed_out = wait_until(&child, step.timeout_s, told)?;
    if timed_out {
        kill_group(&child);
    }
    let status = child
        .wait()
        .map_err(|e| format!("cannot wait for {}: {e}", step.argv[0]))?;
    Ok(match (timed_out, status.code(), status.signal()) {
        (true, _, _) => Status::TimedOut,
        (false, Some(code), _) => Status::Exited(code),
        (false, None, signal) => Status::Signaled(signal.unwrap_or(0)),
    })
}

fn find_program(name: &str, path: &str, dir: &Path) -> Result<std::path::PathBuf, String> {
    if name.contains('/') {
        return Ok(dir.join(name));
    }
    path.split(':')
        .map(|folder| Path::new(folder).join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("no program {name} in the guest: give it as a file of the run"))
}

/// Waits for the end of a child; true if the limit came first.
fn wait_until(
    child: &Child,
    limit_s: Option<u64>,
    mut told: Option<&mut Channel>,
) -> Result<bool, String> {
    if limit_s.is_none() && told.is_none() {
        return Ok(false);
    }
    let pidfd = pid_of(child)
        .ok_or_else(|| "child without a process id".to_owned())
        .and_then(|pid| {
            pidfd_open(pid, PidfdFlags::empty()).map_err(|e| format!("cannot watch a step: {e}"))
        })?;
    // Without a host that listens, this process sleeps until the end: it takes no processor time.
    let look_s = if told.is_some() { LOOK_S } else { u64::MAX };
    let mut waited_s = 0;
    while limit_s.is_none_or(|limit_s| waited_s < limit_s) {
        let time_s = limit_s.map_or(look_s, |limit_s| look_s.min(limit_s - waited_s));
        let time = Timespec {
            tv_sec: i64::try_from(time_s).unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&time)).map_err(|e| format!("cannot watch a step: {e}"))?;
        if ready > 0 {
            return Ok(false);
        }
        waited_s = waited_s.saturating_add(time_s);
        if let Some(channel) = &mut told {
            channel.tell_output([STDOUT_PATH, STDERR_PATH]);
        }
    }
    Ok(true)
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

fn kill_group(child: &Child) {
    if let Some(pid) = pid_of(child) {
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Whether the process at this place in /proc has more than one thread.
fn has_threads(process: &Path) -> bool {
    fs::read_dir(process.join("task")).is_ok_and(|threads| threads.count() > 1)
}

/// Kills and reaps all processes that steps left running, so that the next cell starts clean and
/// file systems can be unmounted.
pub fn kill_leftovers() {
    let own = rustix::process::getpid();
    loop {
        let mut alive = false;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
                .and_then(Pid::from_raw);
            // Kernel threads have an empty command line and cannot be killed. A process whose first
            // thread is dead also has an empty one, but its other threads may still be in an fsync.
            let has_words = fs::read(entry.path().join("cmdline")).is_ok_and(|c| !c.is_empty());
            let is_user = has_words || has_threads(&entry.path());
            if let Some(pid) = pid
                && pid != own
                && is_user
            {
                alive |= kill_process(pid, Signal::KILL).is_ok();
            }
        }
        // Reap all processes that have ended; block only while a killed one has not.
        let options = if alive {
            WaitOptions::empty()
        } else {
            WaitOptions::NOHANG
        };
        match wait(options) {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) if !alive => return,
            // Killed, but neither our child nor gone yet: let it run.
            Ok(None) | Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}

/// The first bytes of an output and how many were left out.
pub fn output(path: &str) -> (String, u64) {
    let Ok(file) = File::open(path) else {
        return (String::new(), 0);
    };
    let len = file.metadata().map_or(0, |m| m.len());
    let mut bytes = Vec::new();
    let _ = file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
    let kept = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let _ = fs::write(path, b"");
    (
        String::from_utf8_lossy(&bytes).into_owned(),
        len.saturating_sub(kept),
    )
}
