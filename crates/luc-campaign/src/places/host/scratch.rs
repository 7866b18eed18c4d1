//! The device on which cells make their file systems. Everything on it is lost, so it is thoroughly
//! checked first.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use luc_control::Dev;
use luc_host::settings::value;
use luc_host::{Located, Machine, System, mounts, plain};
use luc_vm::FsType;

use crate::places::{Erase, Scratch};

/// Label of the file systems that cells make: a device that carries it may be overwritten again.
const LABEL: &str = "luc-scratch";
/// Bytes to erase at each end of a device, where signatures lie.
const EDGE: usize = 1 << 20;

/// A device that may be overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub node: PathBuf,
    /// Kind and size, for the versions of a result.
    pub identity: String,
}

/// The content of a device: `TYPE` or `PTTYPE` of blkid, and its label.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    kind: String,
    label: String,
}

/// Word for content of several kinds, none of which blkid names.
const SEVERAL: &str = "several";

/// Reads the content of a device; `None` if it is blank.
///
/// # Errors
/// blkid is missing, or cannot read the device.
fn content(node: &Path) -> Result<Option<Content>, String> {
    let mut command = Command::new("blkid");
    command.args(["--probe", "--output", "export"]).arg(node);
    let output = output(&mut command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = |key: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    let of = |kind: &str| {
        Some(Content {
            kind: kind.to_owned(),
            label: value("LABEL").unwrap_or_default().replace('\\', ""),
        })
    };
    match output.status.code() {
        Some(0) => Ok(of(value("TYPE")
            .or_else(|| value("PTTYPE"))
            .unwrap_or(SEVERAL))),
        Some(2) if output.stderr.is_empty() => Ok(None),
        Some(8) => Ok(of(SEVERAL)),
        _ => Err(told("blkid", &output)),
    }
}

/// The device's name in sysfs.
fn name_of(system: &dyn System, dev: Dev) -> Option<String> {
    let target = system.link(&format!("/sys/dev/block/{dev}")).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

/// Names of the device and its partitions.
fn family(system: &dyn System, name: &str) -> Vec<String> {
    let dir = format!("/sys/class/block/{name}");
    let below = system.list(&dir).unwrap_or_default();
    let is_partition = |child: &String| system.exists(&format!("{dir}/{child}/partition"));
    let mut all = vec![name.to_owned()];
    all.extend(below.into_iter().filter(is_partition));
    all
}

fn located(system: &dyn System, path: &str) -> Option<Dev> {
    match system.locate(Path::new(path)) {
        Ok(Located::BlockDevice(dev)) => Some(dev),
        _ => None,
    }
}

/// Kind and size of a device: its model, or else its name without the number.
fn identity(system: &dyn System, name: &str) -> String {
    let dir = format!("/sys/class/block/{name}");
    let model = value(system, &format!("{dir}/device/model"));
    let model = if model.is_empty() {
        name.trim_end_matches(|c: char| c.is_ascii_digit())
            .to_owned()
    } else {
        model
    };
    let sectors: u64 = value(system, &format!("{dir}/size")).parse().unwrap_or(0);
    format!("{model}, {} MiB", sectors / 2048)
}

/// [`Device::identity`] of a device; `None` if it does not exist.
pub fn identity_of(system: &dyn System, path: &Path) -> Option<String> {
    let dev = located(system, &path.to_string_lossy())?;
    Some(identity(system, &name_of(system, dev)?))
}

/// The device, if it may be overwritten.
///
/// # Errors
/// The reason why it may not, and what would have to change.
pub fn checked(machine: &Machine, scratch: &Scratch) -> Result<Device, String> {
    let shown = scratch.device.display();
    let refuse = |why: &str| Err(format!("{shown}: {why}"));
    let dev = match machine.locate(&scratch.device) {
        Ok(Located::BlockDevice(dev)) => dev,
        Ok(Located::Inside { .. }) => return refuse("not a block device"),
        Err(error) => return refuse(&plain(&error)),
    };
    let Some(name) = name_of(machine, dev) else {
        return refuse("the kernel does not show this device in /sys/dev/block");
    };
    if scratch.erase == Erase::No {
        return refuse("everything on it would be lost; allow that with `--erase`");
    }
    let family = family(machine, &name);
    let number = |name: &String| value(machine, &format!("/sys/class/block/{name}/dev"));
    let numbers: Vec<Dev> = family
        .iter()
        .filter_map(|name| number(name).parse().ok())
        .chain([dev])
        .collect();
    let table = mounts::mounts(machine).map_err(|error| format!("{shown}: {}", plain(&error)))?;
    for mount in &table {
        // Some file systems report a device number of their own, so the source counts as well.
        let source = || located(machine, &mount.source);
        let is_source =
            mount.source.starts_with('/') && source().is_some_and(|dev| numbers.contains(&dev));
        if numbers.contains(&mount.device) || is_source {
            return refuse(&format!("mounted at {}", mount.point.display()));
        }
    }
    for name in &family {
        let holders = machine.list(&format!("/sys/class/block/{name}/holders"));
        if let Some(holder) = holders.unwrap_or_default().first() {
            return refuse(&format!("{name} is part of {holder}"));
        }
    }
    let swaps = machine.read("/proc/swaps").unwrap_or_default();
    for line in swaps.lines().skip(1) {
        let path = line.split_whitespace().next().unwrap_or_default();
        if located(machine, path).is_some_and(|dev| numbers.contains(&dev)) {
            return refuse("in use as swap");
        }
    }
    if value(machine, &format!("/sys/class/block/{name}/ro")) == "1" {
        return refuse("read-only");
    }
    let node = machine.path(&scratch.device.to_string_lossy());
    // Ask the kernel whether anything else has claimed the device.
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL;
    if let Err(error) = rustix::fs::open(&node, flags, rustix::fs::Mode::empty()) {
        return match error {
            rustix::io::Errno::BUSY => refuse("in use by something else"),
            error => refuse(&plain(&error.into())),
        };
    }
    let content = content(&node).map_err(|why| format!("{shown}: {why}"))?;
    if let Some(Content { kind, label }) = content.filter(|content| content.label != LABEL)
        && !matches!(&scratch.erase, Erase::Known(word) if *word == kind)
    {
        let called = if label.is_empty() {
            label
        } else {
            format!(" called {label}")
        };
        return refuse(&format!(
            "holds {kind}{called}; allow its loss with `--erase={kind}`"
        ));
    }
    Ok(Device {
        identity: identity(machine, &name),
        node,
    })
}

/// Erases the signatures of older content and makes a file system.
///
/// # Errors
/// The tool cannot be run, or it fails.
pub fn format(node: &Path, kind: FsType, arguments: &[String]) -> Result<(), String> {
    wipe(node).map_err(|error| format!("cannot erase {}: {}", node.display(), plain(&error)))?;
    let Some((maker, package)) = kind.maker() else {
        return Ok(());
    };
    let mut command = Command::new(maker);
    command.args(kind.maker_arguments());
    if maker == "mke2fs" {
        // The mount options keep the kernel from writing inode tables later.
        command.args(["-E", "lazy_itable_init=1"]);
    }
    let label = if kind == FsType::F2fs { "-l" } else { "-L" };
    command.args(arguments).args([label, LABEL]).arg(node);
    run(&mut command).map_err(|why| format!("{why}; {maker} is in the package {package}"))
}

fn wipe(node: &Path) -> std::io::Result<()> {
    let mut file = fs::File::options().write(true).open(node)?;
    let size = file.seek(SeekFrom::End(0))?;
    let length = EDGE.min(usize::try_from(size).unwrap_or(EDGE));
    for at in [0, size - length as u64] {
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&vec![0; length])?;
    }
    file.sync_all()
}

/// Options of a mount: those of the arm or the cell, and those that keep the kernel from writing in
/// the background.
pub fn options(kind: FsType, chosen: &str, commit_s: Option<u32>) -> String {
    let mut all: Vec<String> = Vec::new();
    all.extend(
        chosen
            .split(',')
            .filter(|one| !one.is_empty())
            .map(String::from),
    );
    all.extend(kind.quiet_option().map(String::from));
    let has_commit = all.iter().any(|one| one.starts_with("commit="));
    if let Some(seconds) = commit_s.filter(|_| kind.has_journal() && !has_commit) {
        all.push(format!("commit={seconds}"));
    }
    all.join(",")
}

/// Mounts a device, or an image file.
///
/// # Errors
/// The kernel refuses.
pub fn mount(node: &Path, at: &Path, kind: FsType, options: &str) -> Result<(), String> {
    let mut command = Command::new("mount");
    command.args(["-t", kind.driver()]);
    if !options.is_empty() {
        command.args(["-o", options]);
    }
    run(command.arg(node).arg(at))
}

/// Runs a system tool, which the user's PATH may lack.
fn run(command: &mut Command) -> Result<(), String> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(());
    }
    let tool = command.get_program().to_string_lossy();
    Err(told(&tool, &output))
}

fn output(command: &mut Command) -> Result<Output, String> {
    let tool = command.get_program().to_string_lossy().into_owned();
    command
        .env("PATH", super::commands::SYSTEM_PATH)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {tool}: {}", plain(&error)))
}

/// The error output of a tool, in one line.
fn told(tool: &str, output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{tool}: {words}")
}
