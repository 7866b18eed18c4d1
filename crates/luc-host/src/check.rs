//! The vocabulary of checks: what LUC needs from a machine, and whether the need is met.

use serde::Serialize;

/// Something that LUC needs from a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Root's capabilities.
    Privilege,
    /// x86-64: the hooks are written for its calling convention.
    Architecture,
    /// Kernel options that hooks and modules depend on.
    KernelOptions,
    /// Function tracing is not switched off.
    Ftrace,
    /// The functions to hook exist and can be hooked.
    Functions,
    /// No other program owns them.
    HooksFree,
    /// The kernel accepts a module like ours.
    ModuleLoading,
    /// There is a module for this kernel.
    Module,
    /// Headers to build it against.
    Headers,
    /// A file system to steer.
    Journal,
    /// For watching: the right to trace.
    TraceRights,
    /// For watching: the kernel's types.
    Types,
    /// For watching: BPF programs in the kernel.
    Bpf,
    /// For watching: functions at which events are seen.
    Sights,
}

impl Need {
    /// Short name, as printed.
    pub fn title(self) -> &'static str {
        match self {
            Need::Privilege => "privilege",
            Need::Architecture => "architecture",
            Need::KernelOptions => "kernel options",
            Need::Ftrace => "ftrace",
            Need::Functions | Need::Sights => "functions",
            Need::HooksFree => "hooks",
            Need::ModuleLoading => "module loading",
            Need::Module => "module",
            Need::Headers => "headers",
            Need::Journal => "journal",
            Need::TraceRights => "rights",
            Need::Types => "types",
            Need::Bpf => "BPF",
        }
    }

    /// Why LUC needs it.
    pub fn why(self) -> &'static str {
        match self {
            Need::Privilege => "only root may load modules and steer file systems",
            Need::Architecture => "the hooks are written for x86-64",
            Need::KernelOptions => "the hooks are ftrace direct calls from a module",
            Need::Ftrace => "the hooks are called by ftrace",
            Need::Functions => "LUC hooks these functions",
            Need::HooksFree => "LUC is called at the entry of these functions",
            Need::ModuleLoading => "LUC is a kernel module",
            Need::Module => "LUC runs in this module",
            Need::Headers => "the module is built against them",
            Need::Journal => "LUC steers ext4 and ext3 journals",
            Need::TraceRights => "tracing needs these capabilities",
            Need::Types => "the tracer needs them to adapt to this kernel",
            Need::Bpf => "LUC watches with BPF programs",
            Need::Sights => "LUC sees operations and waits there",
        }
    }
}

/// Whether a need is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is met.
    Ok,
    /// It is not met, and LUC cannot run without it.
    Missing,
    /// It is not met, but LUC can run without it for now.
    Note,
    /// Whether it is met cannot be told from here.
    Unknown,
}

/// The outcome of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The need that was checked.
    pub need: Need,
    /// Whether it is met.
    pub state: State,
    /// The thing found.
    pub found: String,
    /// How to meet the need, if it is not met.
    pub fix: Option<String>,
}

impl Check {
    /// The need is met; `found` tells how.
    pub fn ok(need: Need, found: impl Into<String>) -> Self {
        Check {
            need,
            state: State::Ok,
            found: found.into(),
            fix: None,
        }
    }

    /// The need is not met, and LUC or the tracer cannot run without it.
    pub fn missing(need: Need, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::not(need, State::Missing, found, fix)
    }

    /// Whether the need is met cannot be judged from here.
    pub fn unknown(need: Need, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::not(need, State::Unknown, found, fix)
    }

    /// The need is not met, or may not be; `fix` says how to meet it.
    pub fn not(need: Need, state: State, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Check {
            need,
            state,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }
}
