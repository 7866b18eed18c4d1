//! Errors of the lab, each with a remedy.

use std::path::PathBuf;

/// Errors of the lab. Each prints as one line (a console or compiler excerpt
/// may follow) that names the failure, its object, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The failed operation, a verb.
        action: &'static str,
        /// File or program.
        path: PathBuf,
        source: std::io::Error,
    },
    /// A helper program is not installed.
    #[error("{program} not found: install it with `apt install {package}`")]
    MissingTool {
        program: String,
        /// Debian package that holds the program.
        package: String,
    },
    /// A helper program failed.
    #[error("{program} failed ({status}): {detail}")]
    Tool {
        /// Program and its main arguments.
        program: String,
        /// Exit status in words.
        status: String,
        /// Last lines of its output.
        detail: String,
    },
    /// The list of kernels does not parse or is inconsistent.
    #[error("kernel list: {0}")]
    KernelList(String),
    /// No kernel has that name.
    #[error("no kernel named {name:?}; known kernels: {known}")]
    UnknownKernel {
        name: String,
        /// All names, comma separated.
        known: String,
    },
    /// A kernel that is built from sources is not built yet.
    #[error(
        "kernel {name} is not built here yet; build it once with `luc-lab debug-kernel {name}`"
    )]
    NotBuilt {
        /// Name in the list of kernels.
        name: String,
    },
    /// This machine's apt sources name no Debian mirror.
    #[error(
        "no Debian mirror for {archive} in this machine's apt sources; give one in {variable} (for instance the URI of a Debian mirror ending in {archive})"
    )]
    NoMirror {
        /// `debian` or `debian-security`.
        archive: &'static str,
        /// Environment variable that supplies one.
        variable: &'static str,
    },
    /// The archive has no such package.
    #[error(
        "package {package} not found in {suite}; check the mirror and the suite in kernels.toml"
    )]
    NoPackage { package: String, suite: String },
    /// A value given by the caller is not usable.
    #[error("{what}: {why}")]
    BadInput {
        /// The input.
        what: String,
        /// The fault, and the values that are allowed.
        why: String,
    },
    /// The kernel module did not compile.
    #[error("module build for kernel {kernel} failed; compiler output:\n{output}")]
    ModuleBuild {
        /// Kernel release.
        kernel: String,
        /// The errors, or the last lines if no error is recognised.
        output: String,
    },
    /// A kernel module the guest needs does not exist for this kernel.
    #[error("kernel {kernel} has {module} neither as a module nor built in")]
    NoModule {
        /// Kernel release.
        kernel: String,
        module: String,
    },
    /// QEMU is not installed, or too old to be trusted.
    #[error(
        "{fault}; install QEMU 8.2 or later: `apt install qemu-system-x86` (on Debian 12: `apt install -t bookworm-backports qemu-system-x86`)"
    )]
    UnfitQemu { fault: String },
    /// The run took more host time than allowed.
    #[error(
        "the guest did not finish within {limit_s} s of host time ({progress}); console ends:\n{tail}"
    )]
    HostTimeout {
        limit_s: u64,
        /// Current work of the guest.
        progress: String,
        /// Last lines of the console.
        tail: String,
    },
    /// The guest kernel panicked.
    #[error("the guest kernel panicked ({progress}); its console:\n{oops}")]
    GuestPanic {
        /// Current work of the guest.
        progress: String,
        /// The console from the first fault on, or its end.
        oops: String,
    },
    /// QEMU ended but the guest wrote no results.
    #[error(
        "the guest ended without results ({progress}); QEMU said: {qemu}; console ends:\n{tail}"
    )]
    NoResults {
        /// Current work of the guest.
        progress: String,
        /// QEMU's standard error and exit status.
        qemu: String,
        /// Last lines of the console.
        tail: String,
    },
    /// The guest wrote results that make no sense.
    #[error(
        "the guest's results are damaged: {0}; the binary in the guest and on the host must be the same build"
    )]
    BadResults(String),
}

impl LabError {
    /// A function that makes a [`LabError::Io`], for `map_err`.
    pub fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// Whether this machine lacks something the lab needs (a program, a mirror,
    /// packages), as opposed to a run that went wrong.
    pub fn is_missing_prerequisite(&self) -> bool {
        matches!(
            self,
            Self::MissingTool { .. }
                | Self::UnfitQemu { .. }
                | Self::NoMirror { .. }
                | Self::NoPackage { .. }
                | Self::NotBuilt { .. }
                | Self::Tool { .. }
        )
    }

    /// Whether QEMU is at fault: an assertion of its own failed, or a processor executed a
    /// breakpoint that memory no longer holds. The kernel puts a breakpoint over code while it
    /// rewrites it, and QEMU may keep its translation (Red Hat's bug 2216496).
    pub fn is_qemus_own(&self) -> bool {
        match self {
            Self::NoResults { qemu, .. } => {
                qemu.contains("Assertion `") && qemu.contains("SIGABRT")
            }
            Self::GuestPanic { oops, .. } => is_stale_breakpoint(oops),
            _ => false,
        }
    }

    /// A [`LabError::MissingTool`].
    pub(crate) fn missing(program: &str, package: &str) -> Self {
        Self::MissingTool {
            program: program.to_owned(),
            package: package.to_owned(),
        }
    }

    /// A [`LabError::BadInput`].
    pub fn bad_input(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::BadInput {
            what: what.into(),
            why: why.into(),
        }
    }
}

/// Whether the first fault is a breakpoint in whose place memory has other code: the byte before
/// the next instruction, which the kernel reads from memory and prints as `<90>`.
fn is_stale_breakpoint(oops: &str) -> bool {
    let mut lines = oops.lines().skip_while(|line| !line.contains("[#1]"));
    let is_breakpoint = lines.next().is_some_and(|line| line.contains("int3: "));
    let code = lines.find_map(|line| line.split_once("Code: "));
    let before = code.and_then(|(_, code)| code.split_once(" <"));
    is_breakpoint && before.is_some_and(|(before, _)| !before.ends_with("cc"))
}

/// Result of the lab's operations.
pub type Result<T> = std::result::Result<T, LabError>;

#[cfg(test)]
mod tests {
    use super::LabError;

    #[test]
    fn only_an_assertion_of_qemu_is_its_own_fault() {
        let said = |qemu: &str| LabError::NoResults {
            progress: "before its first process".to_owned(),
            qemu: qemu.to_owned(),
            tail: String::new(),
        };
        let assertion = "qemu-system-x86_64: system/physmem.c:2678: iotlb_to_section: \
            Assertion `section_index < d->map.sections_nb' failed., signal: 6 (SIGABRT)";
        assert!(said(assertion).is_qemus_own());
        for qemu in [
            "qemu-system-x86_64: cannot set up guest memory, exit status: 1",
            "terminating on signal 15, exit status: 0",
            ", signal: 9 (SIGKILL)",
        ] {
            assert!(!said(qemu).is_qemus_own(), "{qemu}");
        }
        let panic = LabError::GuestPanic {
            progress: String::new(),
            oops: assertion.to_owned(),
        };
        assert!(!panic.is_qemus_own());
    }

    #[test]
    fn only_a_breakpoint_that_is_gone_is_qemus() {
        let panicked = |fault: &str, code: &str| LabError::GuestPanic {
            progress: String::new(),
            oops: format!(
                "[    3.09] {fault}: 0000 [#1] PREEMPT SMP NOPTI\n\
                 [    3.09] RIP: 0010:__mod_timer+0x1c3/0x370\n\
                 [    3.09] Code: 8b 4f 20 {code} 00 00 10 00\n\
                 [    3.10] Code: 00 00 00 66 <90> c3"
            ),
        };
        for fault in ["int3", "Oops: int3"] {
            assert!(panicked(fault, "66 <90>").is_qemus_own());
            assert!(!panicked(fault, "cc <90>").is_qemus_own());
        }
        assert!(!panicked("Oops", "66 <90>").is_qemus_own());
        assert!(!panicked("int3", "66 90").is_qemus_own());
    }
}
