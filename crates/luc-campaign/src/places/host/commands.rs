//! Runs the commands of an arm on this machine.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use luc_base::Stop;
use luc_host::plain;
use rustix::process::{Pid, Signal, kill_process_group};

use super::guard::Guard;

/// Search path for the system's tools.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Interval between two checks of a command.
const PAUSE: Duration = Duration::from_millis(10);
/// Time that a command has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Where and how long commands may run.
pub struct Runner<'a> {
    /// Private folder; its `bin` holds `luc`.
    pub folder: &'a Path,
    pub guard: &'a Guard,
    pub stop: &'a Stop,
    pub deadline: Instant,
    pub limit_s: u64,
}

/// Why a command gave no output.
pub enum Broken {
    /// A signal came.
    Stopped,
    /// The command failed: the reason in one line, and its error output.
    Failed { why: String, log: String },
}

impl Runner<'_> {
    /// Runs a command and returns its standard output if it succeeds.
    pub fn output(&self, words: &[String]) -> Result<String, Broken> {
        let shown = words.join(" ");
        let failed = |why: String, log: String| Broken::Failed { why, log };
        let cannot = |error: &std::io::Error| {
            failed(
                format!("cannot run {shown}: {}", plain(error)),
                String::new(),
            )
        };
        let Some((program, arguments)) = words.split_first() else {
            return Ok(String::new());
        };
        let (out, err) = (self.folder.join("stdout"), self.folder.join("stderr"));
        let file = |path: &Path| File::create(path).map_err(|error| cannot(&error));
        let path = format!("{}:{SYSTEM_PATH}", self.folder.join("bin").display());
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("PATH", path)
            .env("LC_ALL", "C")
            .env_remove("LUC_SYSROOT")
            .stdin(Stdio::null())
            .stdout(file(&out)?)
            .stderr(file(&err)?)
            // Ctrl-C reaches only this process, which then ends the command cleanly.
            .process_group(0);
        let parent = rustix::process::getpid();
        let with_parent = move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above took effect.
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only: it neither allocates
        // nor takes a lock.
        unsafe {
            command.pre_exec(with_parent);
        }
        let mut child = command.spawn().map_err(|error| cannot(&error))?;
        self.guard.child_runs(&child);
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let signal = |signal| {
            if let Some(group) = group {
                let _ = kill_process_group(group, signal);
            }
        };
        let mut asked: Option<Instant> = None;
        let mut late = false;
        let status = loop {
            let ended = self.guard.child_ended(&mut child);
            if let Some(status) = ended.map_err(|error| cannot(&error))? {
                break status;
            }
            match asked {
                None => {
                    late = Instant::now() >= self.deadline;
                    if late || self.stop.is_set() {
                        signal(Signal::TERM);
                        asked = Some(Instant::now());
                    }
                }
                Some(at) if at.elapsed() > GRACE => signal(Signal::KILL),
                Some(_) => {}
            }
            std::thread::sleep(PAUSE);
        };
        if self.stop.is_set() {
            return Err(Broken::Stopped);
        }
        let read = |path: &Path| {
            let bytes = fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let said = read(&err);
        if late {
            let why = format!(
                "{shown}: not finished within the {} s that a cell may take",
                self.limit_s
            );
            return Err(failed(why, said));
        }
        if status.success() {
            return Ok(read(&out));
        }
        Err(failed(format!("{shown}: {}", told(status, &said)), said))
    }
}

/// The last line that a command printed, or else how it ended.
fn told(status: ExitStatus, said: &str) -> String {
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or_else(|| status.to_string(), str::to_owned)
}
