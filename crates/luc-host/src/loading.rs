//! Tells whether the kernel would load our module, as far as that is known without trying.

use crate::check::{Check, Need};
use crate::kernel;
use crate::sysfs;
use crate::system::System;

const SECURITYFS: &str = "/sys/kernel/security";

/// The remedy for a module that the kernel refuses for its signature.
pub const SIGN: &str = "sign luc.ko (dkms does if openssl is installed) and enrol the key (`mokutil --import /var/lib/dkms/mok.pub`), or switch Secure Boot off";

/// How much the kernel restricts root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockdown {
    /// Not at all.
    Off,
    /// No changes to the kernel: no unsigned modules.
    Integrity,
    /// No reads of kernel memory, either: neither BPF nor kprobes.
    Confidentiality,
    /// It is not known.
    Unknown,
}

impl Lockdown {
    /// Reads the level that the kernel shows. If securityfs is not mounted, infers it from the
    /// configuration and the command line, if they leave no choice.
    pub fn read(system: &dyn System, configuration: Option<&str>) -> Self {
        let levels = system.read(&format!("{SECURITYFS}/lockdown"));
        let set = levels.map(|text| {
            let (_, rest) = text.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        });
        if let Ok(Some(level)) = set {
            return Self::named(&level);
        }
        let is_set = |option| configuration.map(|text| kernel::is_set(text, option));
        if is_set("CONFIG_SECURITY_LOCKDOWN_LSM") == Some(false) {
            return Self::Off;
        }
        if is_set("CONFIG_LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY") == Some(true) {
            return Self::Confidentiality;
        }
        // The command line may be stricter than the configuration.
        let asked = command_line(system)
            .iter()
            .filter_map(|word| word.strip_prefix("lockdown="))
            .map(Self::named)
            .next_back();
        match (asked, is_set("CONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY")) {
            (Some(Self::Confidentiality), _) => Self::Confidentiality,
            (Some(Self::Integrity), _) | (_, Some(true)) => Self::Integrity,
            _ => Self::Unknown,
        }
    }

    fn named(level: &str) -> Self {
        match level {
            "none" => Self::Off,
            "integrity" => Self::Integrity,
            "confidentiality" => Self::Confidentiality,
            _ => Self::Unknown,
        }
    }

    /// The level, if the kernel is locked down at all.
    pub fn level(self) -> Option<&'static str> {
        match self {
            Self::Integrity => Some("integrity"),
            Self::Confidentiality => Some("confidentiality"),
            Self::Off | Self::Unknown => None,
        }
    }
}

fn command_line(system: &dyn System) -> Vec<String> {
    let text = system.read("/proc/cmdline").unwrap_or_default();
    let ours = text.split(" -- ").next().unwrap_or_default();
    ours.split_whitespace().map(str::to_owned).collect()
}

/// Why no module can be loaded until the machine is booted differently, and the remedy; `None` if
/// one may be loaded.
pub fn barred(
    system: &dyn System,
    configuration: Option<&str>,
) -> Option<(&'static str, &'static str)> {
    let set = configuration.map(|text| kernel::is_set(text, "CONFIG_MODULES"));
    let built = set.unwrap_or_else(|| {
        let shown = ["/proc/modules", "/proc/sys/kernel/modules_disabled"];
        shown.iter().any(|file| system.exists(file))
    });
    if !built {
        return Some((
            "this kernel loads no modules: CONFIG_MODULES is not set",
            "boot a kernel that does: every Debian kernel does",
        ));
    }
    let disabled = system.read("/proc/sys/kernel/modules_disabled");
    if disabled.is_ok_and(|text| text.trim() == "1") {
        return Some(
            if command_line(system).iter().any(|word| word == "nomodule") {
                (
                    "the kernel was booted with nomodule",
                    "boot without nomodule",
                )
            } else {
                (
                    "kernel.modules_disabled is 1",
                    "remove the setting and reboot: a running kernel cannot unset it",
                )
            },
        );
    }
    None
}

/// The setting that demands signed modules; `None` if there is none, or if it is not known.
pub fn demand(system: &dyn System, configuration: Option<&str>) -> Option<String> {
    if let Some(level) = Lockdown::read(system, configuration).level() {
        return Some(format!("lockdown {level}"));
    }
    let enforced = system.read("/sys/module/module/parameters/sig_enforce");
    let enforced = enforced.is_ok_and(|text| text.trim() == "Y");
    enforced.then(|| "module.sig_enforce".to_owned())
}

/// The check of module loading for `luc probe`.
pub fn check(system: &dyn System, configuration: Option<&str>, installed: Option<&str>) -> Check {
    let need = Need::ModuleLoading;
    if sysfs::loaded(system) {
        return Check::ok(need, "luc is loaded");
    }
    if let Some((why, fix)) = barred(system, configuration) {
        return Check::missing(need, why, fix);
    }
    let Some(demand) = demand(system, configuration) else {
        if Lockdown::read(system, configuration) == Lockdown::Unknown {
            return Check::unknown(
                need,
                "the kernel does not show whether it is locked down",
                format!("mount -t securityfs securityfs {SECURITYFS}, as root"),
            );
        }
        return Check::ok(need, "unsigned modules are accepted");
    };
    let demand = if secure_boot(system) {
        format!("Secure Boot with {demand}")
    } else {
        demand
    };
    if installed.is_some_and(|file| is_signed(system, file)) {
        let found = format!(
            "{demand}, and luc.ko is signed; loading it will show whether the kernel trusts the key"
        );
        return Check::ok(need, found);
    }
    Check::missing(need, format!("{demand} requires signed modules"), SIGN)
}

fn secure_boot(system: &dyn System) -> bool {
    let variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    let bytes = system.read_bytes(variable).unwrap_or_default();
    bytes.last() == Some(&1)
}

/// Tells whether a module is signed. Only the kernel can tell whether it trusts the key.
fn is_signed(system: &dyn System, file: &str) -> bool {
    const MARK: &[u8] = b"~Module signature appended~\n";
    let bytes = system.read_bytes(file).unwrap_or_default();
    // A compressed file hides the mark: count it as signed, and let the kernel judge.
    let packed = !bytes.starts_with(b"\x7fELF");
    bytes.ends_with(MARK) || packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree as machine;

    const LSM: &str = "CONFIG_SECURITY_LOCKDOWN_LSM=y\n";

    #[test]
    fn lockdown_is_known_or_unknown_and_never_guessed() {
        let shown = "sys/kernel/security/lockdown";
        let of = |files: &[(&str, &str)], configuration: Option<&str>| {
            Lockdown::read(&machine(files).1, configuration)
        };
        let said = |text| of(&[(shown, text)], None);
        assert_eq!(said("[none] integrity confidentiality\n"), Lockdown::Off);
        let strict = said("none integrity [confidentiality]\n");
        assert_eq!(strict, Lockdown::Confidentiality);
        // securityfs is not mounted.
        assert_eq!(of(&[], None), Lockdown::Unknown);
        assert_eq!(of(&[], Some(LSM)), Lockdown::Unknown);
        assert_eq!(of(&[], Some("CONFIG_MODULES=y\n")), Lockdown::Off);
        let forced = format!("{LSM}CONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY=y\n");
        assert_eq!(of(&[], Some(&forced)), Lockdown::Integrity);
        let asked = [("proc/cmdline", "quiet lockdown=confidentiality\n")];
        assert_eq!(of(&asked, Some(&forced)), Lockdown::Confidentiality);
        let of_init = [("proc/cmdline", "quiet -- lockdown=integrity\n")];
        assert_eq!(of(&of_init, Some(LSM)), Lockdown::Unknown);
    }

    #[test]
    fn a_kernel_that_takes_no_modules() {
        let why = |files: &[(&str, &str)], configuration: Option<&str>| {
            barred(&machine(files).1, configuration).map(|(why, _)| why)
        };
        let none = Some("this kernel loads no modules: CONFIG_MODULES is not set");
        assert_eq!(why(&[], None), none);
        assert_eq!(why(&[("proc/modules", "")], Some("# none\n")), none);
        let disabled = ("proc/sys/kernel/modules_disabled", "1\n");
        let set = Some("CONFIG_MODULES=y\n");
        assert_eq!(why(&[disabled], set), Some("kernel.modules_disabled is 1"));
        let booted = why(&[disabled, ("proc/cmdline", "nomodule quiet\n")], set);
        assert_eq!(booted, Some("the kernel was booted with nomodule"));
        assert_eq!(why(&[("proc/modules", "")], None), None);
    }
}
