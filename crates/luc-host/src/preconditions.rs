//! Checks what LUC needs from a machine, one check per need.
//!
//! The checks only look. A need that cannot be judged from here is `Unknown`, never guessed: the
//! module checks again, and knows more, when it is loaded.

use luc_control::hooked_functions;
use rustix::io::Errno;

use crate::check::{Check, Need, State};
use crate::journal::Journal;
use crate::kernel::{self, Capability, configuration, is_set};
use crate::loading;
use crate::sysfs;
use crate::system::System;

/// Kernel options without which nothing works.
const OPTIONS: [&str; 2] = ["CONFIG_MODULES", "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"];

/// Every check, in the order in which a person would proceed.
pub fn check_all(system: &dyn System, journals: &[Journal]) -> Vec<Check> {
    let release = kernel::release(system).unwrap_or_else(|_| "of unknown release".into());
    let installed = kernel::installed(system, &release);
    let configuration = configuration(system, &release).map(|(text, _)| text);
    let barred = loading::barred(system, configuration.as_deref()).is_some();
    let module = module(system, &release, installed.as_deref(), barred);
    // A module that cannot be loaded need not be built.
    let needs_headers = module.state != State::Ok && !barred;
    let mut checks = vec![
        privilege(system),
        architecture(system),
        kernel_options(system, &release),
        ftrace(system),
        functions(system),
        hooks_free(system),
        loading::check(system, configuration.as_deref(), installed.as_deref()),
        module,
    ];
    checks.extend(headers(system, &release, needs_headers));
    checks.push(journal(journals));
    checks
}

/// Why LUC cannot run on this machine as it is booted, whatever is installed; `None` if it may run.
pub fn obstacle(system: &dyn System) -> Option<String> {
    if sysfs::loaded(system) {
        return None;
    }
    let release = kernel::release(system).unwrap_or_default();
    let text = configuration(system, &release).map(|(text, _)| text);
    if let Some((why, _)) = loading::barred(system, text.as_deref()) {
        return Some(why.into());
    }
    let checks = [architecture(system), kernel_options(system, &release)];
    let missing = checks.into_iter().find(|it| it.state == State::Missing)?;
    Some(format!("{}: {}", missing.need.title(), missing.found))
}

/// Whether the kernel is known to want signed modules.
pub fn wants_signature(system: &dyn System, release: &str) -> bool {
    let text = configuration(system, release).map(|(text, _)| text);
    loading::demand(system, text.as_deref()).is_some()
}

fn privilege(system: &dyn System) -> Check {
    let lacking: Vec<_> = [
        (Capability::SysAdmin, "CAP_SYS_ADMIN"),
        (Capability::SysModule, "CAP_SYS_MODULE"),
    ]
    .into_iter()
    .filter(|(capability, _)| !kernel::capable(system, *capability))
    .map(|(_, name)| name)
    .collect();
    if lacking.is_empty() {
        return Check::ok(Need::Privilege, "CAP_SYS_ADMIN and CAP_SYS_MODULE");
    }
    Check::missing(
        Need::Privilege,
        format!("no {}", lacking.join(", no ")),
        "run luc as root, outside of containers",
    )
}

fn architecture(system: &dyn System) -> Check {
    let found = system.read("/proc/sys/kernel/arch").map_or_else(
        |_| std::env::consts::ARCH.to_owned(),
        |text| text.trim().to_owned(),
    );
    if found == "x86_64" {
        return Check::ok(Need::Architecture, found);
    }
    Check::missing(
        Need::Architecture,
        found,
        "LUC cannot run on this machine; `luc-lab` emulates an x86-64 one",
    )
}

fn kernel_options(system: &dyn System, release: &str) -> Check {
    let need = Need::KernelOptions;
    let Some((text, file)) = configuration(system, release) else {
        return Check::unknown(
            need,
            format!("the configuration of kernel {release} cannot be read"),
            "the module checks when it is loaded",
        );
    };
    let lacking: Vec<_> = OPTIONS
        .into_iter()
        .filter(|option| !is_set(&text, option))
        .collect();
    if lacking.is_empty() {
        return Check::ok(need, format!("{release}, {}", OPTIONS.join(", ")));
    }
    Check::missing(
        need,
        format!("{} is not set in {file}", lacking.join(", ")),
        "boot a kernel that sets it: every Debian kernel from 6.1 on does",
    )
}

fn ftrace(system: &dyn System) -> Check {
    let need = Need::Ftrace;
    match system.read("/proc/sys/kernel/ftrace_enabled").as_deref() {
        Ok(text) if text.trim() == "0" => Check::missing(
            need,
            "kernel.ftrace_enabled is 0",
            "sysctl kernel.ftrace_enabled=1",
        ),
        Ok(_) => Check::ok(need, "kernel.ftrace_enabled is 1"),
        Err(error) if Errno::from_io_error(error) == Some(Errno::NODEV) => Check::missing(
            need,
            "it has failed: existing hooks stay, and none can be added",
            "restart the machine (details are in the kernel log)",
        ),
        Err(_) => Check::missing(
            need,
            "no kernel.ftrace_enabled",
            "boot a kernel with CONFIG_FUNCTION_TRACER",
        ),
    }
}

/// Reads a file of tracefs, which is mounted in one of two places.
fn tracefs(system: &dyn System, name: &str) -> Option<String> {
    ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .iter()
        .find_map(|root| system.read(&format!("{root}/{name}")).ok())
}

fn functions(system: &dyn System) -> Check {
    let need = Need::Functions;
    // Lines of tracefs are `name [module]`, those of kallsyms `address type name [module]`.
    let hookable = tracefs(system, "available_filter_functions");
    let by_name_only = hookable.is_none();
    let (text, column) = match hookable {
        Some(text) => (text, 0),
        None => (system.read("/proc/kallsyms").unwrap_or_default(), 2),
    };
    if text.is_empty() {
        return Check::unknown(
            need,
            "the kernel shows no list of its functions",
            "mount -t tracefs tracefs /sys/kernel/tracing, as root",
        );
    }
    let mut present = vec![false; hooked_functions().len()];
    for line in text.lines() {
        let Some(name) = line.split_whitespace().nth(column) else {
            continue;
        };
        if let Some(at) = hooked_functions().iter().position(|it| it.name == name) {
            present[at] = true;
        }
    }
    let absent = |needed: bool| -> Vec<&str> {
        let rows = hooked_functions().iter().zip(&present);
        rows.filter(|(hook, there)| !**there && hook.needed == needed)
            .map(|(hook, _)| hook.name)
            .collect()
    };
    let needed = absent(true);
    if needed.is_empty() && by_name_only {
        return Check::unknown(
            need,
            "all present by name; the kernel does not show whether they can be hooked",
            "mount -t tracefs tracefs /sys/kernel/tracing, as root",
        );
    }
    if needed.is_empty() {
        let found = match absent(false) {
            all if all.is_empty() => "all present".to_owned(),
            some => format!(
                "all required ones present; optional ones missing: {}",
                some.join(", ")
            ),
        };
        return Check::ok(need, found);
    }
    // If ext4 is a module, its functions appear with the first mount.
    if !system.exists("/sys/fs/ext4") {
        return Check::unknown(
            need,
            "ext4 and jbd2 are not loaded",
            "mount an ext4 file system, then probe again",
        );
    }
    Check::missing(
        need,
        needed.join(", "),
        "boot a kernel whose ext4 and jbd2 have them: every Debian kernel from 6.1 on does",
    )
}

/// `name (1) R   D M   tramp: ...`: D is a direct call.
fn hooks_free(system: &dyn System) -> Check {
    let need = Need::HooksFree;
    let ours = sysfs::hooks(system);
    let is_ours = |name: &str| {
        ours.iter()
            .any(|hook| hook.function == name && ["attached", "stuck"].contains(&&*hook.state))
    };
    let Some(text) = tracefs(system, "enabled_functions") else {
        return Check::unknown(
            need,
            "tracefs does not list hooked functions",
            "mount -t tracefs tracefs /sys/kernel/tracing, as root",
        );
    };
    let mut taken = Vec::new();
    let mut needed = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let row = hooked_functions().iter().find(|hook| hook.name == name);
        let Some(hook) = row.filter(|_| !is_ours(name)) else {
            continue;
        };
        // The number of users, then flags of one letter each.
        let mut flags = words.skip(1).take_while(|word| word.len() == 1);
        if flags.any(|flag| flag == "D") {
            taken.push(hook.name);
            needed |= hook.needed;
        }
    }
    let mut patched = sysfs::livepatched(system);
    patched.retain(|name| hooked_functions().iter().any(|hook| hook.name == name));
    if taken.is_empty() && !patched.is_empty() {
        return Check::not(
            need,
            State::Note,
            format!("{} {}", patched.join(", "), sysfs::PATCHED),
            "nothing to do: LUC works with the others",
        );
    }
    if taken.is_empty() {
        return Check::ok(need, "no BPF program or livepatch on them");
    }
    Check::not(
        need,
        if needed { State::Missing } else { State::Note },
        format!("{} {}", taken.join(", "), sysfs::OWNED),
        sysfs::FREE_IT,
    )
}

fn module(system: &dyn System, release: &str, installed: Option<&str>, barred: bool) -> Check {
    let need = Need::Module;
    if sysfs::loaded(system) {
        let version = sysfs::version(system).unwrap_or_else(|| "of unknown version".into());
        return Check::ok(need, format!("loaded, version {version}"));
    }
    match installed {
        Some(file) => Check::ok(need, file),
        None if barred => Check::missing(
            need,
            format!("not installed for kernel {release}"),
            "first boot a kernel that loads modules",
        ),
        None => Check::missing(
            need,
            format!("not installed for kernel {release}"),
            format!(
                "dkms install luc/{}, or build kmod/ and use `luc on --module FILE`",
                env!("CARGO_PKG_VERSION")
            ),
        ),
    }
}

/// Headers matter only to a machine that still has to build the module.
fn headers(system: &dyn System, release: &str, needed: bool) -> Option<Check> {
    let need = Need::Headers;
    let build = format!("/lib/modules/{release}/build");
    if system.exists(&format!("{build}/Makefile")) {
        return Some(Check::ok(need, build));
    }
    if !needed {
        return None;
    }
    Some(Check::not(
        need,
        State::Note,
        format!("no {build}"),
        format!("install linux-headers-{release}, or build the module elsewhere"),
    ))
}

fn journal(journals: &[Journal]) -> Check {
    let usable = journals
        .iter()
        .filter(|journal| journal.obstacle().is_none())
        .count();
    if usable > 0 {
        return Check::ok(Need::Journal, format!("{usable} to steer"));
    }
    Check::not(
        Need::Journal,
        State::Note,
        "no writable ext4 or ext3 file system with a journal is mounted",
        "mount one, then switch LUC on for it",
    )
}
