//! Failures: the line that a person reads, and the exit code that a script sees.
//! A refusal by the machine has its line in [`HostError`], and its code here.

use std::fmt::{Display, Write as _};

use luc_base::words::counted;
use luc_campaign::CampaignError;
use luc_host::HostError;
use luc_report::ReportError;
use luc_vm::LabError;

macro_rules! codes {
    ($($name:ident = $number:literal $meaning:literal,)+) => {
        /// Exit code of `luc`. A code that was published never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Code {
            $(#[doc = $meaning] $name = $number,)+
        }

        impl Code {
            /// Every code with its meaning, in the order of their numbers.
            pub const ALL: &[(Self, &'static str)] = &[$((Self::$name, $meaning),)+];
        }
    };
}

// `luc --help` and the man pages show these, too.
codes! {
    Ok = 0 "done",
    Unexpected = 1 "something unexpected failed",
    Usage = 2 "the command line is wrong",
    NotPermitted = 3 "not permitted: more privileges are needed",
    ModuleUnavailable = 4 "the kernel module is not loaded and cannot be",
    NotFound = 5 "no such path, or nothing is mounted from that device",
    NotJournaled = 6 "not an ext4 or ext3 file system with a journal",
    ReadOnly = 7 "the file system is mounted read-only",
    AlreadyOn = 8 "LUC is already on for this file system",
    NotOn = 9 "LUC is not on for this file system",
    KnobRefused = 10 "knob refused: unknown knob, invalid value, or out of bounds",
    Busy = 11 "a kernel function or the module is in use by another program",
    KernelUnsupported = 12 "this kernel lacks something that LUC needs",
    NotReady = 13 "luc probe: this machine cannot run LUC as it is",
    Workload = 14 "luc bench: the workload could not run",
    FiguresMissed = 15 "luc campaign: a figure was missed",
    WorkloadFile = 16 "luc bench: the workload file is refused",
    LabUnavailable = 19 "luc lab: QEMU, a package or a mirror is missing; luc campaign: something that a cell needs is missing",
    Lab = 20 "luc lab: the virtual machine could not be run",
    KernelLog = 21 "luc lab: the guest's kernel log holds a warning or worse",
    Command = 22 "a command that luc ran did not start or hit its limit (else: its own status)",
    ReplayMismatch = 23 "luc replay: a decision differs from the recorded one",
    Trace = 24 "a trace cannot be read or recorded",
    PromiseBroken = 25 "luc torture: something that a sync promised is missing, or something impossible was found",
    Advised = 26 "luc doctor: something costs time, and something can be done about it",
    Campaign = 27 "luc campaign: the file, a key or the folder of results is wrong, or taken",
    Changed = 28 "luc campaign diff: a figure changed",
    BackEnd = 29 "luc campaign: the back-end is unavailable or refuses",
    TrialEnded = 30 "luc try, luc guard: ended because LUC was changed by hand or switched off",
    NothingToTry = 31 "luc try: no pair of windows had enough load to compare",
    Configuration = 32 "luc service: the configuration is wrong or cannot be read",
    FtraceFailed = 33 "the kernel's ftrace has failed: until a reboot LUC's hooks stay, or cannot be installed",
    Interrupted = 130 "interrupted by Ctrl-C or SIGTERM",
}

impl Code {
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The table as text, for `--help`.
    pub fn table() -> String {
        let mut text = String::from("Exit codes:\n");
        for (code, meaning) in Self::ALL {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {:>3}  {meaning}", code.number());
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// A failure of the command line. Its text is the whole line after `luc: `:
/// what failed, on what, why, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The machine refuses or lacks something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// See [`Code::Command`]; `status` becomes luc's own exit status.
    #[error("command {command}: {how}")]
    #[allow(missing_docs)]
    Command {
        command: String,
        how: String,
        status: Option<u8>,
    },
    /// Any other failure with a code of its own, and its line.
    #[error("{1}")]
    Coded(Code, String),
    /// See [`Code::Unexpected`].
    #[error("{0:#}")]
    Unexpected(#[from] anyhow::Error),
}

impl Failure {
    /// The failure of a verb whose command line makes no sense.
    pub fn usage(verb: &str, why: impl Display) -> Self {
        Self::Coded(Code::Usage, format!("{why}; see `luc {verb} --help`"))
    }

    /// The failure to read or record a trace.
    pub fn trace(what: impl Display, why: impl Display) -> Self {
        Self::Coded(Code::Trace, format!("trace {what}: {why}"))
    }

    /// The failure to run a workload.
    pub fn workload(what: impl Display, why: impl Display) -> Self {
        Self::Coded(Code::Workload, format!("{what}: {why}"))
    }

    /// A failure of the lab, with one of its codes.
    pub fn lab(code: Code, why: impl Display) -> Self {
        Self::Coded(code, format!("lab: {why}"))
    }

    /// The failure for `count` broken promises of syncs.
    pub fn broken(place: impl Display, count: u64, first: impl Display) -> Self {
        let promises = counted(count, "promise", "promises");
        let line = format!("{place}: {promises} broken; first: {first}");
        Self::Coded(Code::PromiseBroken, line)
    }

    /// The failure for an interrupt before the end.
    pub fn interrupted(state: impl Display) -> Self {
        Self::Coded(Code::Interrupted, format!("interrupted: {state}"))
    }

    /// The code that belongs to this failure.
    pub fn code(&self) -> Code {
        match self {
            Failure::Host(error) => match error {
                HostError::NotPermitted { .. } => Code::NotPermitted,
                HostError::ModuleUnavailable { .. } => Code::ModuleUnavailable,
                HostError::NotFound { .. } => Code::NotFound,
                HostError::NotJournaled { .. } => Code::NotJournaled,
                HostError::ReadOnly { .. } => Code::ReadOnly,
                HostError::AlreadyOn { .. } => Code::AlreadyOn,
                HostError::NotOn { .. } => Code::NotOn,
                HostError::KnobRefused { .. } => Code::KnobRefused,
                HostError::Busy { .. } => Code::Busy,
                HostError::KernelUnsupported { .. } => Code::KernelUnsupported,
                HostError::FtraceFailed { .. } => Code::FtraceFailed,
                HostError::Unreadable { .. }
                | HostError::OtherVersion { .. }
                | HostError::Unexpected(_)
                | HostError::Io(_) => Code::Unexpected,
            },
            Failure::Command { .. } => Code::Command,
            Failure::Coded(code, _) => *code,
            Failure::Unexpected(_) => Code::Unexpected,
        }
    }

    /// The number handed to the shell: the code, or the command's own status.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Command {
                status: Some(status),
                ..
            } => *status,
            _ => self.code().number(),
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        if error.is_missing_prerequisite() {
            Failure::lab(Code::LabUnavailable, error)
        } else {
            Failure::lab(Code::Lab, error)
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        let code = match &error {
            ReportError::Lab { source, .. } if source.is_missing_prerequisite() => {
                Code::LabUnavailable
            }
            ReportError::Lab { .. } | ReportError::Failed { .. } => Code::Lab,
            // Its line tells the cause already.
            ReportError::Chart { .. } => {
                return Failure::Unexpected(anyhow::anyhow!(error.to_string()));
            }
        };
        Failure::lab(code, error)
    }
}

impl From<CampaignError> for Failure {
    fn from(error: CampaignError) -> Self {
        if let CampaignError::Host(error) = error {
            return Failure::Host(error);
        }
        let code = match &error {
            CampaignError::Unavailable { .. } => Code::LabUnavailable,
            CampaignError::Failed { .. } => Code::Lab,
            CampaignError::Backend { .. } => Code::BackEnd,
            CampaignError::Interrupted => {
                return Failure::Coded(Code::Interrupted, error.to_string());
            }
            CampaignError::File { .. } => {
                return Failure::Unexpected(anyhow::anyhow!("campaign: {error}"));
            }
            _ => Code::Campaign,
        };
        Failure::Coded(code, format!("campaign: {error}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Unexpected(error.into())
    }
}
