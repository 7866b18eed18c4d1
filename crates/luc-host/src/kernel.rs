//! The running kernel: its release, its configuration, the modules that are installed for it, and
//! what it lets this process do.

use std::io::{self, Read as _};

use crate::system::System;

/// Linux capabilities that matter here, by their number.
#[derive(Clone, Copy, Debug)]
pub enum Capability {
    /// Load and remove modules.
    SysModule = 16,
    /// Switch LUC on and off.
    SysAdmin = 21,
    /// Let BPF programs read the kernel's memory.
    Perfmon = 38,
    /// Load BPF programs.
    Bpf = 39,
}

/// Tells whether this process has the capability; true if unknown, as the attempt will show.
pub fn capable(system: &dyn System, capability: Capability) -> bool {
    let Ok(status) = system.read("/proc/self/status") else {
        return true;
    };
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_none_or(|mask| mask & (1 << capability as u32) != 0)
}

/// Identifies the present boot; `None` if it cannot be read.
pub fn boot_id(system: &dyn System) -> Option<String> {
    let id = system.read("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Release of the running kernel, as `uname -r` prints it.
///
/// # Errors
/// The kernel does not show it.
pub fn release(system: &dyn System) -> io::Result<String> {
    let text = system.read("/proc/sys/kernel/osrelease")?;
    Ok(text.trim().to_owned())
}

/// Whether a release is older than this version; `None` if it does not begin with one.
pub fn is_before(release: &str, (major, minor): (u32, u32)) -> Option<bool> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    let version: (u32, u32) = (number()?, number()?);
    Some(version < (major, minor))
}

/// Where `luc.ko` is installed for a kernel, if it is.
pub fn installed(system: &dyn System, release: &str) -> Option<String> {
    let base = format!("/lib/modules/{release}");
    let is_ours = |file: &str| {
        let name = file.rsplit('/').next().unwrap_or(file);
        ["luc.ko", "luc.ko.xz", "luc.ko.zst", "luc.ko.gz"].contains(&name)
    };
    let indexed = indexed(system, &base).find(|file| is_ours(file));
    // depmod may not have run since the file was put there.
    let found = indexed.or_else(|| {
        ["updates/dkms", "updates", "extra"].iter().find_map(|dir| {
            let names = system.list(&format!("{base}/{dir}")).ok()?;
            let name = names.into_iter().find(|name| is_ours(name))?;
            Some(format!("{dir}/{name}"))
        })
    })?;
    let file = format!("{base}/{found}");
    system.exists(&file).then_some(file)
}

/// Files that modprobe can find, below the folder `base`: what depmod saw when it last ran.
pub(crate) fn indexed(system: &dyn System, base: &str) -> impl Iterator<Item = String> {
    let index = system.read(&format!("{base}/modules.dep"));
    let index = index.unwrap_or_default();
    let files: Vec<String> = index
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(file, _)| file.to_owned())
        .collect();
    files.into_iter()
}

/// The configuration of the kernel with this release, and its file; `None` if there is none.
pub(crate) fn configuration(system: &dyn System, release: &str) -> Option<(String, String)> {
    for file in [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
    ] {
        if let Ok(text) = system.read(&file) {
            return Some((text, file));
        }
    }
    let file = "/proc/config.gz";
    let packed = system.read_bytes(file).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .ok()?;
    Some((text, file.into()))
}

/// Tells whether a kernel's configuration sets an option to `y`.
pub fn is_set(configuration: &str, option: &str) -> bool {
    let mut lines = configuration.lines();
    lines.any(|line| line.strip_prefix(option) == Some("=y"))
}
