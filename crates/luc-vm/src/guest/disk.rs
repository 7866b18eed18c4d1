//! Disks of a cell: null block devices and the lab's own, whose times run on guest timers and whose
//! content is guest memory, so host time never affects them.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_disk::Spec;
use luc_disk::file_system::{JOURNAL_DISK_MIB_MIN, JOURNAL_MIB};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::disk::{DiskSpec, FsType, journal_disk};

/// Folders in which devices are made, one folder for each.
const CONFIG_ROOTS: [&str; 2] = [NULL_ROOT, DISK_ROOT];
const NULL_ROOT: &str = "/sys/kernel/config/nullb";
const DISK_ROOT: &str = "/sys/kernel/config/lucdisk";
const MOUNT_ROOT: &str = "/mnt";
/// The null block driver completes requests from a high-resolution timer.
const IRQMODE_TIMER: u64 = 2;
/// Fixed so that two runs make the same file system bit for bit.
const FS_UUID: &str = "4c554300-0000-4000-8000-0000000000";
const HASH_SEED: &str = "4c554300-0000-4000-8000-ffffffffffff";

/// The disks of one cell.
pub struct Disks {
    specs: Vec<DiskSpec>,
    work_dir: PathBuf,
}

impl Disks {
    /// Makes, formats and mounts the disks.
    pub fn make(specs: &[DiskSpec]) -> Result<Self, String> {
        let mut work_dir = PathBuf::from("/tmp");
        for (index, spec) in specs.iter().enumerate() {
            make_device(index, spec)?;
            if spec.fs_type == FsType::None {
                continue;
            }
            // Disks of journals come after the cell's own.
            let journal = make_journal(specs.len() + index, spec)?;
            format(index, spec, journal.as_deref())?;
            mount_disk(index, spec)?;
            if index == 0 {
                let _ = fs::remove_file(format!("{MOUNT_ROOT}/disk"));
                std::os::unix::fs::symlink(mount_point(0), format!("{MOUNT_ROOT}/disk"))
                    .map_err(|e| format!("cannot link {MOUNT_ROOT}/disk: {e}"))?;
                work_dir = mount_point(0).into();
            }
        }
        Ok(Self {
            specs: specs.to_vec(),
            work_dir,
        })
    }

    /// Folder in which steps start: the first disk if it has a file system, else /tmp.
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// The environment variables `LUC_DISK0`, `LUC_MNT0` and so on.
    pub fn env(&self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for (index, spec) in self.specs.iter().enumerate() {
            env.insert(format!("LUC_DISK{index}"), device(index, spec));
            if spec.fs_type != FsType::None {
                env.insert(format!("LUC_MNT{index}"), mount_point(index));
            }
        }
        env
    }
}

fn device(index: usize, spec: &DiskSpec) -> String {
    let driver = spec.device.as_ref().map_or("nullb", |_| "lucdisk");
    format!("/dev/{driver}{index}")
}

fn mount_point(index: usize) -> String {
    format!("{MOUNT_ROOT}/{index}")
}

fn make_device(index: usize, spec: &DiskSpec) -> Result<(), String> {
    match &spec.device {
        Some(device) => make_model(index, spec, device),
        None => make_null(index, spec),
    }
}

/// Makes the folder of a device and returns a function that sets its attributes.
fn configure(
    index: usize,
    dir: String,
) -> Result<impl Fn(&str, u64) -> Result<(), String>, String> {
    fs::create_dir(&dir).map_err(|e| format!("cannot make disk {index} in {dir}: {e}"))?;
    Ok(move |name: &str, value: u64| {
        fs::write(format!("{dir}/{name}"), value.to_string())
            .map_err(|e| format!("cannot set {name}={value} of disk {index}: {e}"))
    })
}

fn make_model(index: usize, spec: &DiskSpec, device: &Spec) -> Result<(), String> {
    let params = device
        .params()
        .map_err(|e| format!("disk {index} ({device}): {e}"))?;
    let set = configure(index, format!("{DISK_ROOT}/lucdisk{index}"))?;
    set("size_mib", spec.size_mib.into())?;
    for (knob, value) in params.iter() {
        set(knob.name, value.unsigned_abs())?;
    }
    set("power", 1)
}

fn make_null(index: usize, spec: &DiskSpec) -> Result<(), String> {
    let set = configure(index, format!("{NULL_ROOT}/nullb{index}"))?;
    set("size", spec.size_mib.into())?;
    set("memory_backed", 1)?;
    set("submit_queues", 1)?;
    set("hw_queue_depth", spec.depth.into())?;
    // A timer of 0 would never be armed: complete in the submitter instead.
    let timed = spec.latency_ns > 0;
    set("irqmode", if timed { IRQMODE_TIMER } else { 0 })?;
    set("completion_nsec", spec.latency_ns)?;
    set("power", 1)
}

fn journal_is_chosen(spec: &DiskSpec) -> bool {
    let names_one = |arg: &String| arg.starts_with("-J") || arg.contains("has_journal");
    spec.size_mib < JOURNAL_DISK_MIB_MIN
        || !spec.fs_type.has_journal()
        || spec.mkfs_args.iter().any(names_one)
}

/// Makes the disk that holds the journal, if it is another one, and returns its device.
fn make_journal(index: usize, spec: &DiskSpec) -> Result<Option<String>, String> {
    let Some(disk) = spec.journal_disk().map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    make_device(index, &disk)?;
    // A file system's blocks must be as large as its journal's.
    let mut words = spec.mkfs_args.iter().skip_while(|word| *word != "-b");
    let block = words.nth(1).map_or("4096", String::as_str);
    let device = device(index, &disk);
    let uuid = format!("{FS_UUID}{index:02x}");
    let arguments = [
        "-q",
        "-F",
        "-b",
        block,
        "-O",
        "journal_dev",
        "-U",
        &uuid,
        &device,
    ];
    run_maker(index, "mke2fs", &arguments.map(str::to_owned))?;
    Ok(Some(device))
}

fn format(index: usize, spec: &DiskSpec, journal: Option<&str>) -> Result<(), String> {
    let Some((maker, _)) = spec.fs_type.maker() else {
        return Ok(());
    };
    let uuid = format!("{FS_UUID}{index:02x}");
    // The fresh device reads as zeros: there is nothing to discard.
    let fixed: Vec<String> = match spec.fs_type {
        FsType::Xfs => vec!["-K".into(), "-m".into(), format!("uuid={uuid}")],
        FsType::Btrfs => vec!["-K".into(), "-U".into(), uuid],
        // It would draw the seed of its checkpoints.
        FsType::F2fs => ["-t", "0", "-r", "-T", "0", "-U", &uuid]
            .map(String::from)
            .to_vec(),
        _ => ext_arguments(spec, &uuid),
    };
    let quiet = spec.fs_type.maker_arguments();
    let mut arguments: Vec<_> = quiet.iter().map(ToString::to_string).chain(fixed).collect();
    let own = spec
        .mkfs_args
        .iter()
        .map(|argument| match (journal_disk(argument), journal) {
            (Some(disk), Some(device)) => argument.replace(disk, device),
            _ => argument.clone(),
        });
    arguments.extend(own);
    arguments.push(device(index, spec));
    run_maker(index, maker, &arguments)
}

/// Runs a program that makes a file system on a disk.
fn run_maker(index: usize, maker: &str, arguments: &[String]) -> Result<(), String> {
    let output = Command::new(format!("/usr/sbin/{maker}"))
        .args(arguments)
        .env_clear()
        .env("PATH", super::PATH)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {maker}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(format!(
        "{maker} failed on disk {index} ({}): {words}",
        output.status
    ))
}

fn ext_arguments(spec: &DiskSpec, uuid: &str) -> Vec<String> {
    // The fresh device reads as zeros: writing more of them would cost memory
    // and time. `mount_disk` keeps the kernel from doing it later.
    let extended =
        format!("hash_seed={HASH_SEED},lazy_itable_init=1,lazy_journal_init=1,nodiscard");
    let journal = format!("size={JOURNAL_MIB}");
    let journal: &[&str] = if journal_is_chosen(spec) {
        &[]
    } else {
        &["-J", &journal]
    };
    ["-U", uuid, "-E", &extended]
        .iter()
        .chain(journal)
        .map(|&argument| argument.to_owned())
        .collect()
}

/// Splits mount options into flags of the mount call and text for the file system.
fn mount_flags(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut rest = Vec::new();
    for option in options.split(',').filter(|o| !o.is_empty()) {
        match option {
            "defaults" | "rw" => {}
            "ro" => flags |= MountFlags::RDONLY,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "nodev" => flags |= MountFlags::NODEV,
            "noexec" => flags |= MountFlags::NOEXEC,
            "nosuid" => flags |= MountFlags::NOSUID,
            other => rest.push(other),
        }
    }
    (flags, rest.join(","))
}

fn mount_disk(index: usize, spec: &DiskSpec) -> Result<(), String> {
    let at = mount_point(index);
    fs::create_dir_all(&at).map_err(|e| format!("cannot make {at}: {e}"))?;
    let (flags, mut data) = mount_flags(&spec.mount_opts);
    if let Some(option) = spec.fs_type.quiet_option() {
        data = match data.as_str() {
            "" => option.to_owned(),
            data => format!("{data},{option}"),
        };
    }
    let data = CString::new(data).map_err(|_| "mount options contain a NUL byte".to_owned())?;
    let (device, driver) = (device(index, spec), spec.fs_type.driver());
    mount(device, &at, driver, flags, Some(data.as_c_str())).map_err(|e| {
        let (fs_type, options) = (spec.fs_type.as_str(), &spec.mount_opts);
        format!("cannot mount disk {index} ({fs_type}, options {options:?}): {e}")
    })
}

/// Unmounts every device and destroys all disks, whatever state the steps left them in.
///
/// # Errors
/// Names the first mount or disk that could not be removed; the others are removed anyway.
pub fn remove_all() -> Result<(), String> {
    let mut problem = None;
    let mut busy = Vec::new();
    for (device, at) in mounts_of_devices() {
        if let Err(error) = unmount(&at, UnmountFlags::empty()) {
            problem.get_or_insert(format!("cannot unmount {at}: {error}"));
            let _ = unmount(&at, UnmountFlags::DETACH);
            busy.push(device);
        }
        // A loop device in a file keeps the file system of that file busy.
        detach_loops();
    }
    let _ = fs::remove_file(format!("{MOUNT_ROOT}/disk"));
    let mut devices = Vec::new();
    for root in CONFIG_ROOTS {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        devices.extend(paths.filter(|path| path.is_dir()));
    }
    // A file system that loses its device aborts its journal, which would look like a fault.
    let is_busy = |path: &PathBuf| {
        busy.iter()
            .any(|device| Path::new(device).ends_with(name(path)))
    };
    devices.retain(|path| !is_busy(path));
    // A device may depend on another while both are on.
    let off: Vec<_> = devices
        .iter()
        .map(|device| fs::write(device.join("power"), "0"))
        .collect();
    for (device, off) in devices.iter().zip(off) {
        if let Err(error) = off.and_then(|()| fs::remove_dir(device)) {
            problem.get_or_insert(format!("cannot remove disk {}: {error}", device.display()));
        }
    }
    problem.map_or(Ok(()), Err)
}

fn name(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

/// Devices with their mount points, the latest first: it may lie on an earlier one.
fn mounts_of_devices() -> Vec<(String, String)> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut found: Vec<_> = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            Some((words.next()?, words.next()?))
        })
        .filter(|(device, at)| device.starts_with("/dev/") || at.starts_with("/mnt/"))
        .collect();
    found.reverse();
    found
}

/// Detaches every loop device from its file.
fn detach_loops() {
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        if entry.path().join("loop/backing_file").exists() {
            let device = Path::new("/dev").join(entry.file_name());
            let _ = Command::new("/usr/bin/busybox")
                .args(["losetup", "-d"])
                .arg(device)
                .stderr(Stdio::null())
                .status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_leave_the_options_text() {
        let (flags, rest) = mount_flags("noatime,data=journal,ro,,commit=30,defaults");
        assert_eq!(flags, MountFlags::NOATIME | MountFlags::RDONLY);
        assert_eq!(rest, "data=journal,commit=30");
    }
}
