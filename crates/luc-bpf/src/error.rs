//! Why tracing is not possible, in one line each.

use thiserror::Error;

const EACCES: i32 = 13;
const ENOSYS: i32 = 38;

#[derive(Debug, Error)]
pub enum TracerError {
    #[error(
        "this kernel has no type information (/sys/kernel/btf/vmlinux is missing); it needs \
         CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf,
    #[error("this kernel has no BPF (bpf() is not implemented); it needs CONFIG_BPF_SYSCALL")]
    NoBpf,
    /// A tree of files stands in for the machine.
    #[error("only the machine itself can be traced, not a tree of files")]
    Elsewhere,
    #[error(
        "BPF is refused ({why}); run as root, or with CAP_BPF and CAP_PERFMON, on a kernel that is \
         not locked down for confidentiality"
    )]
    Denied { why: String },
    #[error("the tracer's programs do not fit this kernel: {what}: {why}")]
    Unfit { what: String, why: String },
    #[error("at most {most} {what} can be watched at once; name fewer")]
    TooMany { what: &'static str, most: usize },
    #[error("{path} is not a control group: {why}")]
    NoCgroup { path: String, why: String },
    #[error("reading the tracer's {what}: {why}")]
    Read { what: &'static str, why: String },
}

/// Strips the system's error number from a message.
fn plain(text: &str) -> String {
    let Some((words, rest)) = text.split_once(" (os error ") else {
        return text.to_owned();
    };
    let behind = rest.split_once(')').map_or("", |(_, behind)| behind);
    format!("{words}{behind}")
}

impl TracerError {
    /// The reason alone, for a list of reasons.
    pub(crate) fn reason(&self) -> String {
        let why = match self {
            Self::Denied { why } | Self::Unfit { why, .. } => why.clone(),
            other => other.to_string(),
        };
        plain(&why)
    }

    /// Tells a refusal from a misfit. The verifier refuses programs with EACCES; EPERM means that
    /// this task may not load any.
    pub(crate) fn from_libbpf(what: &str, error: &libbpf_rs::Error) -> Self {
        // A kernel in lockdown denies programs a helper, which looks like a misfit.
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
