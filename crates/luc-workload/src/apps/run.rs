//! Runs the script of a program, and leaves no process behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    waitpid,
};

use super::{App, Line};
use crate::clock::now_ns;
use crate::observer::{Observed, Observer, Reading};
use crate::{Result, Stop, WorkloadError};

/// Longest wait before a look at the stop flag.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a script has to end by itself after an interrupt.
const GRACE: Duration = Duration::from_secs(10);
/// Pause between two looks for processes that have been killed.
const REAP: Duration = Duration::from_millis(5);

/// Changes the root: its arguments are the root, the folder to test, and the script. The mounts
/// vanish with the namespace. The shell has a path, because busybox prefers its own.
const ENTER: &str = r#"
mkdir -p "$1/proc" "$1/dev" "$1/mnt" "$1/tmp" &&
mount -t proc proc "$1/proc" && mount -o rbind /dev "$1/dev" && mount -o bind "$2" "$1/mnt" &&
if [ -d /sys/fs/cgroup ]; then
	mkdir -p "$1/sys/fs/cgroup" && mount -o bind /sys/fs/cgroup "$1/sys/fs/cgroup"
fi &&
exec chroot "$1" /bin/sh -c "$3" luc-app"#;
/// Where the folder to test appears in another root.
const INSIDE: &str = "/mnt";

/// A script to run, and its surroundings.
pub struct Request<'a> {
    /// For messages.
    pub name: &'a str,
    pub app: &'a App,
    pub script: &'a str,
    /// Folder on the file system to test.
    pub dir: &'a Path,
    /// Root with the programs; `None` for this machine's.
    pub root: Option<&'a Path>,
    /// The script's variables, beside those that this module knows.
    pub variables: Vec<(&'static str, String)>,
}

/// Results of a script.
pub struct Ran {
    pub measures: BTreeMap<String, f64>,
    pub elapsed_ns: u64,
    pub observed: Observed,
    pub interrupted: bool,
}

impl Request<'_> {
    fn error(&self, why: impl std::fmt::Display) -> WorkloadError {
        WorkloadError::App {
            why: format!("{}: {why}", self.name),
        }
    }

    fn command(&self, scratch: &Path) -> Command {
        let (mut command, dir, tmp) = match self.root {
            None => {
                let mut command = Command::new("sh");
                command.args(["-c", self.script, "luc-app"]);
                (command, self.dir, scratch)
            }
            Some(root) => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", ENTER, "sh"]);
                command.arg(root).arg(self.dir).arg(self.script);
                let inside = scratch.strip_prefix(root).unwrap_or(scratch);
                (command, Path::new(INSIDE), inside)
            }
        };
        command
            .env("DIR", dir)
            .env("TMP", Path::new("/").join(tmp))
            .env("APP", self.name)
            .env("NEEDS", self.app.needs())
            .env("LC_ALL", "C")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .envs(self.app.settings());
        command
    }
}

/// Runs a script to its end, or until `stop` is raised.
///
/// # Errors
/// A program is missing, the script fails, or it does not print what the table promises.
pub fn run(request: &Request, observer: &Observer, stop: &Stop) -> Result<Ran> {
    let parent = match request.root {
        Some(root) => root.join("tmp"),
        None => std::env::temp_dir(),
    };
    let scratch = tempfile::Builder::new()
        .prefix("luc-app.")
        .tempdir_in(&parent);
    let scratch = scratch.map_err(|e| WorkloadError::call("make a folder in", &parent, e))?;
    let errors = scratch.path().join("errors");
    let file = File::create(&errors).map_err(|e| WorkloadError::call("create", &errors, e))?;
    let strangers = children();
    // Daemons become children of this process, which can then end them.
    set_child_subreaper(Some(getpid()))
        .map_err(|e| WorkloadError::call("adopt the processes of", request.name, e))?;
    let mut command = request.command(scratch.path());
    let spawned = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        .process_group(0)
        .spawn();
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = spawned.map_err(|e| WorkloadError::call("run", &program, e))?;
    let lines = child.stdout.take().map(listen);
    let mut heard = Heard::default();
    let waited = wait(&mut child, lines.as_ref(), &mut heard, observer, stop);
    end_all(&strangers);
    let status = waited.map_err(|e| WorkloadError::call("wait for", &program, e))?;
    // All that could still write is dead: the lines end.
    for line in lines.iter().flatten() {
        heard.take(&line, observer);
    }
    let said = fs::read_to_string(&errors).unwrap_or_default();
    heard.judge(request, status, &said, stop.is_set())
}

/// Reads the lines of a script in a thread of its own.
fn listen(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout)
            .split(b'\n')
            .map_while(std::result::Result::ok)
        {
            let text = String::from_utf8_lossy(&line).into_owned();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    lines
}

fn wait(
    child: &mut Child,
    lines: Option<&Receiver<String>>,
    heard: &mut Heard,
    observer: &Observer,
    stop: &Stop,
) -> std::io::Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        match lines.map(|lines| lines.recv_timeout(LOOK)) {
            Some(Ok(line)) => heard.take(&line, observer),
            Some(Err(RecvTimeoutError::Timeout)) => {}
            Some(Err(RecvTimeoutError::Disconnected)) | None => thread::sleep(REAP),
        }
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if !stop.is_set() {
            continue;
        }
        let first = asked.is_none();
        let since = asked.get_or_insert_with(Instant::now);
        if let Some(group) = pid_of(child.id()).filter(|_| first || since.elapsed() > GRACE) {
            let signal = if first { Signal::TERM } else { Signal::KILL };
            let _ = kill_process_group(group, signal);
        }
    }
}

fn pid_of(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

/// Processes whose parent is this one.
fn children() -> BTreeSet<i32> {
    let own = getpid().as_raw_nonzero().get().to_string();
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may hold blanks.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(own.as_str())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

/// Kills and reaps every child that is not among the strangers, until none is left.
fn end_all(strangers: &BTreeSet<i32>) {
    loop {
        let ours = children();
        let mut ours = ours.difference(strangers).peekable();
        if ours.peek().is_none() {
            return;
        }
        for pid in ours.filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        thread::sleep(REAP);
    }
}

/// The lines of a script so far.
#[derive(Default)]
struct Heard {
    begin: Option<(u64, Reading)>,
    window: Option<(u64, Observed)>,
    measures: BTreeMap<String, f64>,
    missing: Option<(String, String)>,
    /// The first fault.
    fault: Option<String>,
}

impl Heard {
    fn take(&mut self, line: &str, observer: &Observer) {
        let fault = match line.parse() {
            Ok(Line::Begin) => {
                self.begin = Some((now_ns(), observer.read()));
                None
            }
            Ok(Line::End) => {
                let window = self.begin.take().map(|(begin_ns, before)| {
                    let elapsed_ns = now_ns().saturating_sub(begin_ns);
                    (elapsed_ns, before.until(&observer.read()))
                });
                let early = window.is_none();
                self.window = self.window.take().or(window);
                early.then(|| "its script printed `end` without `begin`".to_owned())
            }
            Ok(Line::Missing { program, package }) => {
                self.missing.get_or_insert((program, package));
                None
            }
            Ok(Line::Failed(why)) => Some(why),
            Ok(Line::Measure { name, value }) => {
                let again = self.measures.insert(name.clone(), value).is_some();
                again.then(|| format!("its script printed {name} twice"))
            }
            Err(why) => Some(format!("its script printed nonsense: {why}")),
        };
        self.fault = self.fault.take().or(fault);
    }

    fn judge(
        mut self,
        request: &Request,
        status: ExitStatus,
        errors: &str,
        interrupted: bool,
    ) -> Result<Ran> {
        if let Some((program, package)) = self.missing {
            return Err(WorkloadError::Missing {
                app: request.name.to_owned(),
                program,
                package,
            });
        }
        let promised = request.app.measures();
        if !interrupted {
            if let Some(why) = self.fault {
                return Err(request.error(why));
            }
            if !status.success() {
                let last = errors.lines().rfind(|line| !line.trim().is_empty());
                let last = last.unwrap_or("it said nothing");
                return Err(request.error(format!("its script ended with {status}: {last}")));
            }
            let lacks = promised
                .iter()
                .find(|measure| !self.measures.contains_key(&measure.name));
            if let Some(measure) = lacks {
                let why = format!("its script printed no {}", measure.name);
                return Err(request.error(why));
            }
            if self.window.is_none() {
                return Err(request.error("its script printed no `begin` and `end`"));
            }
        }
        let is_promised = |name: &String| promised.iter().any(|measure| measure.name == *name);
        if let Some(name) = self.measures.keys().find(|name| !is_promised(name)) {
            let why = format!("its script printed {name}, which is not in the table");
            return Err(request.error(why));
        }
        let (elapsed_ns, observed) = self.window.take().unwrap_or_default();
        Ok(Ran {
            measures: self.measures,
            elapsed_ns,
            observed,
            interrupted,
        })
    }
}
