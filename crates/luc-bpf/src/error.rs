//! What can go wrong, in one line each.

use thiserror::Error;

const EACCES: i32 = 13;
const ENOSYS: i32 = 38;

/// Why there is no tracing.
#[derive(Debug, Error)]
pub enum TracerError {
    /// The kernel's types are not there.
    #[error(
        "this kernel tells nothing of its types (/sys/kernel/btf/vmlinux is missing); it needs CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf,
    /// The system call is not there.
    #[error("this kernel has no BPF (bpf() is not implemented); it needs CONFIG_BPF_SYSCALL")]
    NoBpf,
    /// A tree of files stands for the machine.
    #[error("only the machine itself can be traced, not a tree of files that looks like one")]
    Elsewhere,
    /// BPF is refused.
    #[error(
        "BPF is refused ({why}); be root, or have CAP_BPF and CAP_PERFMON, and no kernel lockdown (confidentiality)"
    )]
    Denied {
        /// What the kernel said.
        why: String,
    },
    /// A program cannot be loaded or attached.
    #[error("the tracer's programs do not fit this kernel: {what}: {why}")]
    Unfit {
        /// What was tried.
        what: String,
        /// What the kernel said.
        why: String,
    },
    /// More was asked for than fits.
    #[error("at most {most} {what} can be watched at once; name fewer")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// A control group that is none.
    #[error("{path} is no control group: {why}")]
    NoCgroup {
        /// What was named.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Reading what was traced.
    #[error("reading the tracer's {what}: {why}")]
    Read {
        /// What was read.
        what: &'static str,
        /// What went wrong.
        why: String,
    },
}

/// The system's words without its error number: the number adds nothing for a person.
fn plain(text: &str) -> String {
    let Some((words, rest)) = text.split_once(" (os error ") else {
        return text.to_owned();
    };
    let behind = rest.split_once(')').map_or("", |(_, behind)| behind);
    format!("{words}{behind}")
}

impl TracerError {
    /// Why alone, for a list of reasons.
    pub(crate) fn reason(&self) -> String {
        let why = match self {
            Self::Denied { why } | Self::Unfit { why, .. } => why.clone(),
            other => other.to_string(),
        };
        plain(&why)
    }

    /// Tells a refusal from a misfit. The verifier, which refuses programs, says
    /// EACCES; EPERM is for who may not load any.
    pub(crate) fn of(what: &str, error: &libbpf_rs::Error) -> Self {
        // Programs are refused one helper then, which looks like a misfit.
        if crate::host::locked_down() {
            return Self::Denied {
                why: "the kernel is locked down for confidentiality".to_owned(),
            };
        }
        let why = format!("{error}{}", crate::said::last());
        if why.contains(&format!("(os error {ENOSYS})")) {
            return Self::NoBpf;
        }
        let denied = error.kind() == libbpf_rs::ErrorKind::PermissionDenied;
        if denied && !why.contains(&format!("(os error {EACCES})")) {
            return Self::Denied {
                why: plain(&error.to_string()),
            };
        }
        Self::Unfit {
            what: what.to_owned(),
            why,
        }
    }
}
