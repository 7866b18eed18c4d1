//! The guest's process 1: mounts, loads modules, runs the plan, answers, powers off.
//!
//! If all goes well it writes nothing to the console, and it looks at nothing that depends on host
//! time, so runs repeat exactly.

mod disk;
mod report;
mod step;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use rustix::system::RebootCommand;
use rustix::time::{ClockId, clock_gettime};

use crate::machine::channel::State;
use crate::plan::{Cell, CellResult, GuestReport, PLAN_PATH, Plan, Status, Step, StepResult};
use report::Channel;

/// Steps leave files for the host below this folder, by cell.
const OUT_ROOT: &str = "/out";
/// Search path of the steps.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whether this process is the init process of a lab guest.
pub fn is_guest_init() -> bool {
    rustix::process::getpid().is_init() && Path::new(PLAN_PATH).exists()
}

/// Runs the guest and powers it off. Call only when [`is_guest_init`] says so.
pub fn init_main() -> ! {
    if let Err(error) = guest_main() {
        // Process 1 has no other way to report: the console goes to a host file.
        eprintln!("luc-lab guest: {error}");
    }
    rustix::fs::sync();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    // Without power-off the kernel panics when process 1 returns, which ends
    // QEMU as well and leaves evidence.
    std::process::exit(1)
}

/// Virtual nanoseconds since boot.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn guest_main() -> Result<(), String> {
    mount_system();
    let mut channel = Channel::open()?;
    let plan = fs::read(PLAN_PATH).map_err(|e| format!("cannot read {PLAN_PATH}: {e}"))?;
    let plan: Plan = serde_json::from_slice(&plan).map_err(|e| format!("bad plan: {e}"))?;
    channel.show(State::Running, 0, plan.cells.len(), "starting");
    let mut answer = GuestReport {
        kernel_release: read_line("/proc/sys/kernel/osrelease"),
        clocksource: String::new(),
        ready_ns: 0,
        error: None,
        cells: Vec::new(),
        files_dropped: Vec::new(),
    };
    match prepare(&plan) {
        Ok(()) => {
            // Idle virtual time costs no host time.
            std::thread::sleep(Duration::from_nanos(plan.settle_ns));
            answer.clocksource =
                read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
            answer.ready_ns = now_ns();
            for (done, cell) in plan.cells.iter().enumerate() {
                let mut host = Host {
                    channel: &mut channel,
                    cell: &cell.name,
                    done,
                    total: plan.cells.len(),
                    hears_output: plan.tells_output,
                };
                answer.cells.push(run_cell(cell, &mut host));
            }
        }
        Err(error) => answer.error = Some(error),
    }
    report::send(&mut channel, answer, plan.cells.len())
}

/// Mounts the file systems of a normal system. One that this kernel lacks is left out: a step that
/// needs it fails.
fn mount_system() {
    for (kind, at, options) in [
        ("proc", "/proc", ""),
        ("sysfs", "/sys", ""),
        ("devtmpfs", "/dev", ""),
        ("debugfs", "/sys/kernel/debug", ""),
        ("tracefs", "/sys/kernel/tracing", ""),
        ("bpf", "/sys/fs/bpf", ""),
        ("cgroup2", "/sys/fs/cgroup", ""),
        ("securityfs", "/sys/kernel/security", ""),
        ("tmpfs", "/dev/shm", "mode=1777"),
        ("tmpfs", "/run", "mode=755"),
        ("tmpfs", "/tmp", "mode=1777"),
        ("tmpfs", OUT_ROOT, "mode=755"),
    ] {
        mount_one(kind, at, options);
    }
    // Programs of a distribution expect these.
    for (link, target) in [("/dev/fd", "/proc/self/fd"), ("/etc/mtab", "/proc/mounts")] {
        let _ = std::os::unix::fs::symlink(target, link);
    }
    let _ = rustix::system::sethostname(b"luc-lab");
}

fn mount_one(kind: &str, at: &str, options: &str) {
    if !Path::new(at).exists() {
        let _ = fs::create_dir_all(at);
    }
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let options = Some(options.as_c_str());
    let _ = mount(kind, at, kind, MountFlags::empty(), options);
}

fn prepare(plan: &Plan) -> Result<(), String> {
    for module in &plan.modules {
        let file = fs::File::open(&module.path)
            .map_err(|e| format!("cannot open module {}: {e}", module.path))?;
        let params = std::ffi::CString::new(module.params.as_str())
            .map_err(|_| format!("parameters of module {} contain a NUL byte", module.path))?;
        match rustix::system::finit_module(&file, &params, 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(format!("cannot load module {}: {error}", module.path)),
        }
    }
    mount_one("configfs", "/sys/kernel/config", "");
    // Programs talk to each other over the loopback interface. A kernel without networks has none.
    let _ = Command::new("/usr/bin/busybox")
        .args(["ifconfig", "lo", "127.0.0.1", "up"])
        .stderr(Stdio::null())
        .status();
    Ok(())
}

/// The host that looks on while a cell runs.
struct Host<'a> {
    channel: &'a mut Channel,
    cell: &'a str,
    done: usize,
    total: usize,
    hears_output: bool,
}

impl Host<'_> {
    fn show(&mut self, what: &str) {
        let text = format!("{}: {what}", self.cell);
        self.channel
            .show(State::Running, self.done, self.total, &text);
    }
}

fn run_cell(cell: &Cell, host: &mut Host<'_>) -> CellResult {
    let out = format!("{OUT_ROOT}/{}", cell.name);
    let mut result = CellResult {
        name: cell.name.clone(),
        error: None,
        steps: Vec::new(),
    };
    host.show("making disks");
    let made = fs::create_dir_all(&out)
        .map_err(|e| format!("cannot make {out}: {e}"))
        .and_then(|()| disk::Disks::make(&cell.disks));
    let disks = match made {
        Ok(disks) => disks,
        Err(error) => {
            result.error = Some(error);
            // The first error is the one to report.
            let _ = disk::remove_all();
            return result;
        }
    };
    let mut env = disks.env();
    env.insert("LUC_OUT".into(), out);
    env.insert("PATH".into(), PATH.into());
    env.insert("HOME".into(), "/root".into());
    env.insert("TERM".into(), "dumb".into());
    env.extend(cell.env.clone());
    for step in &cell.steps {
        host.show(&step.argv.join(" "));
        let told = host.hears_output.then_some(&mut *host.channel);
        let step = run_step(step, &env, disks.work_dir(), told);
        let go_on = step.success() || step.allow_failure;
        result.steps.push(step);
        if !go_on {
            break;
        }
    }
    host.show("removing disks");
    step::kill_leftovers();
    result.error = disk::remove_all().err();
    result
}

fn run_step(
    step: &Step,
    env: &BTreeMap<String, String>,
    dir: &Path,
    told: Option<&mut Channel>,
) -> StepResult {
    let begin_ns = now_ns();
    let ended = step::run(step, env, dir, told);
    let end_ns = now_ns();
    let (stdout, stdout_dropped) = step::output(step::STDOUT_PATH);
    let (stderr, stderr_dropped) = step::output(step::STDERR_PATH);
    StepResult {
        argv: step.argv.clone(),
        status: ended.unwrap_or_else(Status::NotStarted),
        begin_ns,
        end_ns,
        stdout,
        stderr,
        dropped_bytes: stdout_dropped + stderr_dropped,
        allow_failure: step.allow_failure,
    }
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}
