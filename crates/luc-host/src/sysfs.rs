//! The module's interface: `/sys/fs/luc`, where LUC is switched on and off, and where the knobs and
//! counters of file systems are.

use std::collections::BTreeMap;
use std::io;

use luc_control::{Counter, Dev, Knob, counters, knob, policy_text};
use rustix::fs::Access;
use rustix::io::Errno;

use crate::error::HostError;
use crate::mounts;
use crate::system::{System, plain};

/// Where the module shows itself.
pub const ROOT: &str = "/sys/fs/luc";

/// A file system that LUC is on for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The kernel's name of the block device.
    pub name: String,
    /// Number of the block device.
    pub device: Dev,
}

/// One line of `/sys/fs/luc/hooks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The kernel function.
    pub function: String,
    /// `attached`, `detached`, `busy`, `missing` or `stuck`.
    pub state: String,
}

/// True while the module is loaded.
pub fn loaded(system: &dyn System) -> bool {
    system.exists(ROOT)
}

/// Version of the loaded module.
pub fn version(system: &dyn System) -> Option<String> {
    let text = system.read(&format!("{ROOT}/version")).ok()?;
    Some(text.trim().to_owned())
}

/// Every file system that LUC is on for, in the order of their names. One that
/// is unmounted while we look disappears and is left out.
///
/// # Errors
/// The folder of the module cannot be read.
pub fn attached(system: &dyn System) -> io::Result<Vec<Attached>> {
    let names = match system.list(ROOT) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(names
        .into_iter()
        .filter_map(|name| {
            let device = system.read(&format!("{ROOT}/{name}/device")).ok()?;
            let device = device.trim().parse().ok()?;
            Some(Attached { name, device })
        })
        .collect())
}

/// The hooks and their states.
pub fn hooks(system: &dyn System) -> Vec<Hook> {
    let text = system.read(&format!("{ROOT}/hooks")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(Hook {
                function: words.next()?.to_owned(),
                state: words.next()?.to_owned(),
            })
        })
        .collect()
}

/// Why a function cannot be hooked.
pub(crate) const OWNED: &str = "owned by a BPF program";
/// A livepatch shares a function's entry, but redirects it to a function that LUC does not know.
pub(crate) const PATCHED: &str = "livepatched: LUC does without it until the livepatch is removed";
const LIVEPATCHES: &str = "/sys/kernel/livepatch";
const NOT_HERE: &str = "not a function of this kernel";
/// How to free an owned function.
pub(crate) const FREE_IT: &str = "detach that program first (`bpftool link` lists attached BPF \
                                  programs)";

/// Hooks that LUC does without, each with the reason; `None` if it has them all.
/// They were looked for when LUC was switched on for the first file system.
pub fn lacking(system: &dyn System) -> Option<String> {
    let patched = livepatched(system);
    let all: Vec<_> = hooks(system)
        .into_iter()
        .filter_map(|hook| {
            let why = match hook.state.as_str() {
                "busy" => OWNED,
                "missing" => NOT_HERE,
                "attached" if patched.contains(&hook.function) => PATCHED,
                _ => return None,
            };
            Some(format!("{} ({why})", hook.function))
        })
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Functions that livepatches have replaced.
pub fn livepatched(system: &dyn System) -> Vec<String> {
    // Patches, objects and functions are folders; listing a file yields nothing.
    let below = |dir: &str| -> Vec<String> {
        let names = system.list(dir).unwrap_or_default().into_iter();
        names.map(|name| format!("{dir}/{name}")).collect()
    };
    let patches = below(LIVEPATCHES).into_iter();
    let objects = patches.flat_map(|patch| below(&patch));
    let functions = objects.flat_map(|object| system.list(&object).unwrap_or_default());
    // `name,position`: the position tells functions of one name apart. Objects have files, too.
    functions
        .filter_map(|name| Some(name.split_once(',')?.0.to_owned()))
        .collect()
}

/// True if ftrace has failed with hooks in place: they stay, and the module with them.
pub(crate) fn stuck(system: &dyn System) -> bool {
    hooks(system).iter().any(|hook| hook.state == "stuck")
}

fn hooks_that_are(system: &dyn System, state: &str) -> String {
    let names: Vec<_> = hooks(system)
        .into_iter()
        .filter(|hook| hook.state == state)
        .map(|hook| hook.function)
        .collect();
    if names.is_empty() {
        return "a function that LUC hooks".into();
    }
    names.join(", ")
}

/// Switches LUC on for a device, by one write: it happens as a whole or not at all.
///
/// `settings` are knobs with their values, applied before anything is steered.
///
/// # Errors
/// The module refuses, or its files do not show what was asked for.
pub fn attach(
    system: &dyn System,
    path: &str,
    device: Dev,
    settings: &[(&Knob, i64)],
) -> Result<Attached, HostError> {
    let device_word = std::iter::once(device.to_string());
    let words = settings
        .iter()
        .map(|(knob, value)| format!("{}={}", knob.name, knob.format(*value)));
    let line = device_word.chain(words).collect::<Vec<_>>().join(" ");
    system
        .write(&format!("{ROOT}/attach"), &line)
        .map_err(|error| attach_failure(system, path, &error))?;
    // Check that the kernel did what it accepted.
    let found = attached(system)?
        .into_iter()
        .find(|attached| attached.device == device);
    let Some(found) = found else {
        return Err(HostError::Unexpected(format!(
            "{path}: the module accepted the request, but {device} is not in {ROOT}"
        )));
    };
    for (knob, value) in settings {
        check_set(system, path, &found, knob, *value)?;
    }
    Ok(found)
}

/// Checks that a knob has this value.
fn check_set(
    system: &dyn System,
    path: &str,
    attached: &Attached,
    knob: &Knob,
    value: i64,
) -> Result<(), HostError> {
    let now = knob_value(system, attached, knob)?;
    if now == value {
        return Ok(());
    }
    Err(HostError::Unexpected(format!(
        "{path}: {} should be {} but is {}: another process set it",
        knob.name,
        knob.format(value),
        knob.format(now)
    )))
}

fn attach_failure(system: &dyn System, path: &str, error: &io::Error) -> HostError {
    let path = path.to_owned();
    match Errno::from_io_error(error) {
        Some(Errno::NODEV) => HostError::NotFound {
            path,
            why: "the kernel finds no mounted file system on this device".into(),
            fix: "mount it first".into(),
        },
        Some(Errno::OPNOTSUPP) => HostError::NotJournaled {
            path,
            why: "the file system is neither ext4 nor ext3".into(),
        },
        Some(Errno::NOLINK) => HostError::NotJournaled {
            path,
            why: "the file system has no journal".into(),
        },
        Some(Errno::ROFS) if mounts::is_read_only_at(system, ROOT) => {
            locked(&format!("switch LUC on for {path}"))
        }
        Some(Errno::ROFS) => HostError::ReadOnly { path },
        Some(Errno::EXIST) => HostError::AlreadyOn { path },
        Some(Errno::BUSY) => HostError::Busy {
            what: hooks_that_are(system, "busy"),
            why: OWNED.into(),
            fix: FREE_IT.into(),
        },
        Some(Errno::AGAIN) => HostError::Busy {
            what: "kernel.ftrace_enabled".into(),
            why: "it is 0, so no hook is ever called".into(),
            fix: "set it to 1 with `sysctl kernel.ftrace_enabled=1`".into(),
        },
        Some(Errno::NOTRECOVERABLE) => HostError::FtraceFailed {
            what: path,
            why: "cannot switch LUC on",
        },
        Some(Errno::NOENT) => HostError::KernelUnsupported {
            what: hooks_that_are(system, "missing"),
            why: NOT_HERE.into(),
        },
        Some(Errno::INVAL | Errno::RANGE) => HostError::KnobRefused {
            why: format!("{path}: the module refused a knob ({})", plain(error)),
            kept: "nothing was switched on",
        },
        Some(Errno::PERM | Errno::ACCESS) => denied(&format!("switch LUC on for {path}")),
        _ => HostError::Unexpected(format!("{path}: cannot switch LUC on: {}", plain(error))),
    }
}

/// The failure of a caller without root's rights.
pub fn denied(what: &str) -> HostError {
    HostError::NotPermitted {
        what: what.into(),
        fix: "run it as root".into(),
    }
}

/// A refusal because /sys cannot be written here.
fn locked(what: &str) -> HostError {
    HostError::NotPermitted {
        what: what.into(),
        fix: "/sys is mounted read-only here, as in a container; run it on the host".into(),
    }
}

/// Refuses to `what` where LUC's mode cannot be written, before anything is begun.
///
/// # Errors
/// `/sys` is mounted read-only.
pub fn may_switch(system: &dyn System, attached: &Attached, what: &str) -> Result<(), HostError> {
    let mode = system.path(&knob_file(attached, "mode"));
    match rustix::fs::access(mode, Access::WRITE_OK) {
        Err(Errno::ROFS) => Err(locked(what)),
        // Another failure is reported when it is written.
        _ => Ok(()),
    }
}

/// Switches LUC off for a device.
///
/// # Errors
/// LUC is not on for it, more rights are needed, or hooks stay because ftrace has failed.
pub fn detach(system: &dyn System, path: &str, device: Dev) -> Result<(), HostError> {
    let written = system.write(&format!("{ROOT}/detach"), &device.to_string());
    let Err(error) = written else {
        return Ok(());
    };
    Err(match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => HostError::NotOn { path: path.into() },
        Some(Errno::NOTRECOVERABLE) => HostError::FtraceFailed {
            what: path.into(),
            why: "LUC is off, but its hooks stay",
        },
        Some(Errno::PERM | Errno::ACCESS) => denied(&format!("switch LUC off for {path}")),
        Some(Errno::ROFS) => locked(&format!("switch LUC off for {path}")),
        _ => HostError::Unexpected(format!("{path}: cannot switch LUC off: {}", plain(&error))),
    })
}

/// Where the module shows a knob.
pub fn knob_file(attached: &Attached, knob: &str) -> String {
    format!("{ROOT}/{}/knobs/{knob}", attached.name)
}

/// The value of a knob.
///
/// # Errors
/// Its file cannot be read, or holds no value that this build knows.
pub fn knob_value(system: &dyn System, attached: &Attached, knob: &Knob) -> Result<i64, HostError> {
    let file = knob_file(attached, knob.name);
    let text = match system.read(&file) {
        Ok(text) => text,
        Err(source) => return Err(HostError::Unreadable { file, source }),
    };
    // A word or a bound that this build does not know means that module and
    // program are of different versions; say so instead of guessing.
    knob.parse(&text)
        .map_err(|source| HostError::OtherVersion { file, source })
}

/// The value of a knob as its file shows it; `None` if unreadable, or of a newer module.
pub fn knob_word(system: &dyn System, attached: &Attached, name: &str) -> Option<String> {
    let knob = knob(name).ok()?;
    Some(knob.format(knob_value(system, attached, knob).ok()?))
}

/// LUC's mode on a file system, empty if it cannot be read; `None` if LUC is off.
pub fn mode(system: &dyn System, device: Dev) -> Option<String> {
    let attached = attached(system).unwrap_or_default();
    let attached = attached.iter().find(|one| one.device == device)?;
    Some(knob_word(system, attached, "mode").unwrap_or_default())
}

/// The name of the policy that a file system's knobs amount to.
pub fn policy(system: &dyn System, attached: &Attached) -> &'static str {
    policy_text(|knob| knob_value(system, attached, knob).ok())
}

/// Sets a knob and reads it back; the kernel keeps the old value if it refuses the new one.
///
/// # Errors
/// The module refuses the value, LUC is off by now, or more rights are needed.
pub fn set_knob(
    system: &dyn System,
    path: &str,
    attached: &Attached,
    knob: &Knob,
    value: i64,
) -> Result<(), HostError> {
    let file = knob_file(attached, knob.name);
    let written = system.write(&file, &knob.format(value));
    let Err(error) = written else {
        return check_set(system, path, attached, knob, value);
    };
    Err(match Errno::from_io_error(&error) {
        Some(Errno::INVAL | Errno::RANGE) => HostError::KnobRefused {
            why: format!(
                "{path}: the module refused {} for {}",
                knob.format(value),
                knob.name
            ),
            kept: "the old value is kept",
        },
        Some(Errno::PERM | Errno::ACCESS) => denied(&format!("set {} of {path}", knob.name)),
        Some(Errno::ROFS) => locked(&format!("set {} of {path}", knob.name)),
        Some(Errno::NOENT) => HostError::NotOn { path: path.into() },
        _ => HostError::Unexpected(format!(
            "{path}: cannot set {}: {}",
            knob.name,
            plain(&error)
        )),
    })
}

/// The counters that the loaded module has, by their names.
pub fn counter_values(system: &dyn System, attached: &Attached) -> BTreeMap<&'static str, i64> {
    let read = |counter: &Counter| {
        let value = counter_value(system, attached, counter)?;
        Some((counter.name, value))
    };
    counters().iter().filter_map(read).collect()
}

/// The value of a counter; `None` if the loaded module does not have it.
pub fn counter_value(system: &dyn System, attached: &Attached, counter: &Counter) -> Option<i64> {
    let file = format!("{ROOT}/{}/counters/{}", attached.name, counter.name);
    system.read(&file).ok()?.trim().parse().ok()
}
