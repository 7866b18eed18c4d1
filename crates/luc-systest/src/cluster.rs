//! A Slurm cluster of two nodes on this machine: munged, slurmctld and two slurmd from the
//! distribution's packages, without systemd, in a temporary folder and on ports of their own.
//! Everything that runs there ends with the cluster.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Trouble, fail, failed};

/// The nodes.
pub const NODES: [&str; 2] = ["luc1", "luc2"];
/// `MaxArraySize`: arrays have fewer tasks than this, so that a campaign needs several.
pub const ARRAY_SIZE_MAX: u32 = 4;
/// A node that is silent for this long counts as lost, and its jobs run again.
const LOST_S: u32 = 10;

/// Tells what to install if a program is missing.
const NEEDED: &str = "needs munge, slurmctld, slurmd and slurm-client; `make deps` installs them";

/// The cluster.
pub struct Cluster {
    dir: TempDir,
    path: String,
    munged: Option<Child>,
    controller: Option<Child>,
    nodes: Vec<(&'static str, Option<Child>)>,
}

impl Cluster {
    /// Starts it and waits until its nodes are idle.
    pub fn start() -> Result<Self, Trouble> {
        // Daemons lie in folders that a user's PATH does not have.
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let is_there = |name: &str| {
            path.split(':')
                .any(|dir| Path::new(dir).join(name).is_file())
        };
        for name in ["munged", "slurmctld", "slurmd", "sbatch", "setpriv"] {
            if !is_there(name) {
                return Err(Trouble::Skip(format!("no {name}: {NEEDED}")));
            }
        }
        let mut cluster = Self {
            dir: tempfile::Builder::new()
                .prefix("luc-slurm-")
                .tempdir()
                .map_err(failed)?,
            path,
            munged: None,
            controller: None,
            nodes: Vec::new(),
        };
        cluster.configure()?;
        let dir = cluster.dir().to_owned();
        let of = |name: &str, file: &str| format!("--{name}={}", dir.join(file).display());
        cluster.munged = Some(cluster.daemon(
            "munged",
            &[
                "--foreground".to_owned(),
                // munged refuses a temporary folder, which everybody may write to.
                "--force".to_owned(),
                of("key-file", "key"),
                of("socket", "munge.socket"),
                of("pid-file", "munged.pid"),
                of("seed-file", "munged.seed"),
                "--num-threads=2".to_owned(),
            ],
        )?);
        wait("munged", Duration::from_secs(10), || {
            dir.join("munge.socket").exists()
        })?;
        cluster.start_controller()?;
        for node in NODES {
            cluster.nodes.push((node, None));
            cluster.start_node(node)?;
        }
        let idle = || {
            let states = cluster.tell("sinfo", &["--noheader", "--Node", "--format=%T"]);
            states.is_ok_and(|states| states.lines().filter(|line| *line == "idle").count() == 2)
        };
        wait("idle nodes", Duration::from_secs(60), idle)
            .map_err(|trouble| cluster.why(trouble))?;
        Ok(cluster)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn configure(&self) -> Result<(), Trouble> {
        let dir = self.dir();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        let mut key = vec![0; 1024];
        let mut random = File::open("/dev/urandom").map_err(failed)?;
        std::io::Read::read_exact(&mut random, &mut key).map_err(failed)?;
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(dir.join("key"))
            .map_err(failed)?;
        std::io::Write::write_all(&mut file, &key).map_err(failed)?;
        for folder in ["state", NODES[0], NODES[1]] {
            fs::create_dir(dir.join(folder)).map_err(failed)?;
        }
        // Held until all ports are known, so that they differ.
        let listeners: Result<Vec<_>, _> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
        let listeners = listeners.map_err(failed)?;
        let ports: Result<Vec<u16>, _> = listeners
            .iter()
            .map(|listener| listener.local_addr().map(|address| address.port()))
            .collect();
        let ports = ports.map_err(failed)?;
        let user = self.tell("id", &["-un"])?;
        let host = self.tell("hostname", &["-s"])?;
        let text = format!(
            "ClusterName=luctest\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmUser={user}\nSlurmdUser={user}\n\
             SlurmctldPort={}\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={dir}/munge.socket\n\
             StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/%n\n\
             SlurmctldPidFile={dir}/slurmctld.pid\nSlurmdPidFile={dir}/%n.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\nMpiDefault=none\nMailProg=/bin/true\n\
             ReturnToService=2\nSlurmdTimeout={LOST_S}\nKillWait=2\nMaxArraySize={ARRAY_SIZE_MAX}\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             NodeName={} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=1 RealMemory=4096\n\
             NodeName={} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=1 RealMemory=4096\n\
             PartitionName=test Nodes={} Default=YES MaxTime=INFINITE State=UP\n",
            ports[0],
            NODES[0],
            ports[1],
            NODES[1],
            ports[2],
            NODES.join(","),
            dir = dir.display(),
        );
        fs::write(dir.join("slurm.conf"), text).map_err(failed)?;
        if self.has_cgroups()? {
            fs::write(dir.join("cgroup.conf"), "CgroupPlugin=disabled\n").map_err(failed)?;
        }
        Ok(())
    }

    /// Tells whether slurmd asks for cgroups unless told not to: it does from 23.11 on, and does
    /// not know the setting before.
    fn has_cgroups(&self) -> Result<bool, Trouble> {
        let told = self.tell("slurmd", &["-V"])?;
        let version = told.rsplit(' ').next().unwrap_or_default();
        let mut numbers = version
            .split('.')
            .map_while(|part| part.parse::<u32>().ok());
        let version = (numbers.next(), numbers.next());
        Ok(version >= (Some(23), Some(11)))
    }

    /// A command that finds this cluster.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("SLURM_CONF", self.dir().join("slurm.conf"))
            .env("PATH", &self.path)
            .stdin(Stdio::null());
        command
    }

    /// The output of a command; an error if the command fails.
    fn tell(&self, program: &str, arguments: &[&str]) -> Result<String, Trouble> {
        let output = self.command(program).args(arguments).output();
        let output = output.map_err(failed)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return fail(format!("{program} {arguments:?}: {}", said.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The tasks in the queue, one per line.
    pub fn queue(&self) -> Result<Vec<String>, Trouble> {
        let told = self.tell("squeue", &["--noheader", "--array", "--format=%j %K %T %N"])?;
        Ok(told.lines().map(str::to_owned).collect())
    }

    fn daemon(&self, program: &str, arguments: &[String]) -> Result<Child, Trouble> {
        let name = arguments.last().map_or(program, |last| {
            NODES.iter().find(|node| *node == last).unwrap_or(&program)
        });
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.dir().join(format!("{name}.out")))
            .map_err(failed)?;
        // If this program is killed, the daemons die, too.
        let mut command = self.command("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", program])
            .args(arguments)
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log);
        command.spawn().map_err(failed)
    }

    pub fn start_controller(&mut self) -> Result<(), Trouble> {
        self.controller = Some(self.daemon("slurmctld", &["-D".to_owned()])?);
        Ok(())
    }

    /// Kills the controller, as a crash would.
    pub fn kill_controller(&mut self) {
        end(self.controller.take());
    }

    pub fn start_node(&mut self, node: &str) -> Result<(), Trouble> {
        let words = ["-D", "-N", node].map(str::to_owned);
        let child = self.daemon("slurmd", &words)?;
        if let Some((_, place)) = self.nodes.iter_mut().find(|(name, _)| *name == node) {
            *place = Some(child);
        }
        Ok(())
    }

    /// Kills a node and all that runs there, as a power cut would.
    pub fn kill_node(&mut self, node: &str) {
        if let Some((_, child)) = self.nodes.iter_mut().find(|(name, _)| *name == node) {
            end(child.take());
        }
        kill_all(|pid| {
            let spool = self.dir().join(node);
            uses(pid, &spool) || environ(pid).contains(&format!("SLURMD_NODENAME={node}\0"))
        });
    }

    /// Adds the last lines of the daemons' output.
    fn why(&self, trouble: Trouble) -> Trouble {
        let (Trouble::Fail(why) | Trouble::Skip(why) | Trouble::Optional(why)) = trouble;
        let mut text = why;
        for name in ["munged", "slurmctld", NODES[0], NODES[1]] {
            let log = fs::read_to_string(self.dir().join(format!("{name}.out")));
            let log = log.unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            for line in last.iter().rev() {
                text = format!("{text}\n  {name}: {line}");
            }
        }
        Trouble::Fail(text)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (_, child) in &mut self.nodes {
            end(child.take());
        }
        end(self.controller.take());
        // Kill the jobs, and the daemons that wait for them.
        let dir = self.dir().to_owned();
        let text = dir.display().to_string();
        kill_all(|pid| uses(pid, &dir) || environ(pid).contains(&text));
        end(self.munged.take());
    }
}

/// Ends a daemon at once.
fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Kills the processes for which `belongs` is true, except this one.
fn kill_all(belongs: impl Fn(u32) -> bool) {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if pid == std::process::id() || !belongs(pid) {
            continue;
        }
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // It may have ended by itself.
        let _ = raw.map(|pid| kill_process(pid, Signal::KILL));
    }
}

fn environ(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Tells whether a process works in the folder, or has a file of it open.
fn uses(pid: u32, dir: &Path) -> bool {
    let points = |link: PathBuf| fs::read_link(link).is_ok_and(|target| target.starts_with(dir));
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    points(PathBuf::from(format!("/proc/{pid}/cwd")))
        || files
            .into_iter()
            .flatten()
            .flatten()
            .any(|file| points(file.path()))
}

/// Waits until `holds` is true.
pub fn wait(what: &str, limit: Duration, holds: impl Fn() -> bool) -> Result<(), Trouble> {
    let begin = Instant::now();
    while !holds() {
        if begin.elapsed() > limit {
            return fail(format!("{what}: not within {} s", limit.as_secs()));
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
