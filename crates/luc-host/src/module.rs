//! Loading and removing `luc.ko`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use crate::error::HostError;
use crate::kernel::{Capability, capable, indexed, installed, release};
use crate::loading::SIGN;
use crate::preconditions;
use crate::sysfs;
use crate::system::{System, plain};

/// Name of the module.
pub const NAME: &str = "luc";

/// Loads the module unless it is loaded. Returns true if this call loaded it.
///
/// `file` is a module file to load instead of the installed one.
///
/// # Errors
/// More rights are needed, the kernel lacks something, or it refuses the module.
pub fn ensure_loaded(system: &dyn System, file: Option<&Path>) -> Result<bool, HostError> {
    if sysfs::loaded(system) {
        return Ok(false);
    }
    if !capable(system, Capability::SysModule) {
        return Err(sysfs::denied("load the kernel module luc"));
    }
    // Do not advise people to install a module where none can run.
    can_run(system)?;
    let release = release(system)?;
    let (outcome, tried) = match file {
        Some(file) => (system.load_file(file), file.to_owned()),
        None => load_installed(system, &release),
    };
    match outcome {
        Ok(()) => {}
        // Another process loaded it meanwhile.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::EXIST) => return Ok(false),
        Err(error) => return Err(load_failure(system, &error, &tried, &release)),
    }
    if !sysfs::loaded(system) {
        return Err(HostError::Unexpected(format!(
            "the kernel module luc was loaded, but {} is not there",
            sysfs::ROOT
        )));
    }
    Ok(true)
}

/// Checks that LUC can run on this machine as it is booted, whatever is installed.
///
/// # Errors
/// It cannot.
pub fn can_run(system: &dyn System) -> Result<(), HostError> {
    let why = preconditions::obstacle(system);
    why.map_or(Ok(()), |why| {
        Err(HostError::KernelUnsupported {
            what: "LUC cannot run on this machine".into(),
            why,
        })
    })
}

/// The module file that [`ensure_loaded`] would load; `None` if the module is loaded.
///
/// # Errors
/// LUC cannot run on this machine, or no module is installed for this kernel.
pub fn to_load(system: &dyn System, file: Option<&Path>) -> Result<Option<PathBuf>, HostError> {
    if sysfs::loaded(system) {
        return Ok(None);
    }
    can_run(system)?;
    let release = release(system)?;
    let found = file
        .map(Path::to_owned)
        .or_else(|| installed(system, &release).map(Into::into));
    let absent = || {
        load_failure(
            system,
            &io::ErrorKind::NotFound.into(),
            Path::new(""),
            &release,
        )
    };
    found.ok_or_else(absent).map(Some)
}

fn load_installed(system: &dyn System, release: &str) -> (io::Result<()>, PathBuf) {
    let file = installed(system, release);
    let shown = PathBuf::from(file.clone().unwrap_or_default());
    if file.is_none() {
        return (Err(io::ErrorKind::NotFound.into()), shown);
    }
    // modprobe honours the administrator's options and unpacks compressed
    // modules, but knows only what depmod saw. A machine as small as the lab's
    // guest has no index; there the file itself will do.
    let base = format!("/lib/modules/{release}");
    let known = indexed(system, &base).any(|one| shown.ends_with(&one));
    let probed = known.then(|| system.modprobe(NAME)).flatten();
    (probed.unwrap_or_else(|| system.load_file(&shown)), shown)
}

fn load_failure(system: &dyn System, error: &io::Error, file: &Path, release: &str) -> HostError {
    let shown = file.display();
    let unavailable = |why: String, fix: &str| HostError::ModuleUnavailable {
        why,
        fix: fix.into(),
    };
    let untrusted = || {
        let why = format!("{shown} is not signed by a key that this kernel trusts");
        unavailable(why, SIGN)
    };
    match Errno::from_io_error(error) {
        _ if error.kind() == io::ErrorKind::NotFound && file.as_os_str().is_empty() => unavailable(
            format!("not installed for kernel {release}"),
            concat!(
                "install it with `dkms install luc/",
                env!("CARGO_PKG_VERSION"),
                "`, or name a file with `--module FILE`"
            ),
        ),
        Some(Errno::NOENT) if system.exists(&shown.to_string()) => unavailable(
            format!("{shown} needs a symbol that this kernel does not have"),
            "load jbd2 first (`modprobe jbd2`), or rebuild luc.ko for this kernel",
        ),
        // Modversions also report differing checksums of types with this error.
        Some(Errno::INVAL) => unavailable(
            format!("{shown} does not fit kernel {release}"),
            "rebuild it against this kernel's headers; the kernel's log has the reason",
        ),
        Some(Errno::NOENT) => unavailable(
            format!("no file {shown}"),
            "give the path of the luc.ko built for this kernel",
        ),
        Some(Errno::NOEXEC) => unavailable(
            format!("{shown} was not built for kernel {release}"),
            "rebuild it against this kernel's headers",
        ),
        Some(Errno::OPNOTSUPP) => HostError::KernelUnsupported {
            what: format!("kernel {release}"),
            why: system.kernel_log("luc: ").map_or_else(
                || "the module refused the layout of its structures".into(),
                |line| format!("the module refused it ({line})"),
            ),
        },
        Some(Errno::KEYREJECTED | Errno::NOKEY) => untrusted(),
        // A kernel that is locked down returns these.
        Some(Errno::PERM | Errno::ACCESS) if preconditions::wants_signature(system, release) => {
            untrusted()
        }
        Some(Errno::PERM | Errno::ACCESS) => HostError::NotPermitted {
            what: "load the kernel module luc".into(),
            fix: if capable(system, Capability::SysModule) {
                "the kernel is locked down, or a container or security module forbids it; \
                 `luc probe` tells more"
            } else {
                "run it as root, outside of containers"
            }
            .into(),
        },
        _ => unavailable(
            format!("cannot load {shown}: {}", plain(error)),
            "`luc probe` checks this machine, and the kernel log may say more",
        ),
    }
}

/// Removes the module. It stays in use for moments after its last file system, so retry a refusal
/// for a while.
///
/// # Errors
/// More rights are needed, the module is still in use, or its hooks stay.
pub fn unload(system: &dyn System) -> Result<(), HostError> {
    const ATTEMPTS: u32 = 40;
    const PAUSE: Duration = Duration::from_millis(25);
    for attempt in 1.. {
        let Err(error) = system.unload(NAME) else {
            return Ok(());
        };
        match Errno::from_io_error(&error) {
            // It is not loaded.
            Some(Errno::NOENT) => return Ok(()),
            Some(Errno::AGAIN | Errno::BUSY) if sysfs::stuck(system) => {
                return Err(HostError::FtraceFailed {
                    what: "kernel module luc".into(),
                    why: "it cannot be removed, because its hooks cannot",
                });
            }
            Some(Errno::AGAIN | Errno::BUSY) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
            Some(Errno::AGAIN | Errno::BUSY) => {
                return Err(HostError::Busy {
                    what: "kernel module luc".into(),
                    why: "still in use".into(),
                    fix: "close the programs that read its tracepoints or files, then try again"
                        .into(),
                });
            }
            Some(Errno::PERM | Errno::ACCESS) => {
                return Err(sysfs::denied("remove the kernel module luc"));
            }
            _ => {
                return Err(HostError::Unexpected(format!(
                    "cannot remove the kernel module luc: {}",
                    plain(&error)
                )));
            }
        }
    }
    Ok(())
}
