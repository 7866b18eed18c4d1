//! Failures: the line that a person reads, and the exit code that a script sees.
//! A refusal by the machine has its line in [`HostError`], and its code here.

use std::fmt::{Display, Write as _};

use luc_host::HostError;

macro_rules! codes {
    ($($name:ident = $number:literal $verbs:tt $meaning:literal,)+) => {
        /// Exit code of the programs. A code that was published never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Code {
            $(#[doc = $meaning] $name = $number,)+
        }

        impl Code {
            /// Every code with the verbs that can end with it and its meaning, in the order of
            /// their numbers. Without a verb it is any verb's.
            const ALL: &[(Self, &[&str], &'static str)] =
                &[$((Self::$name, &codes!(@verbs $verbs), $meaning),)+];
        }
    };
    (@verbs any) => { [] as [&str; 0] };
    (@verbs machine) => { codes!(@verbs (machine)) };
    (@verbs (machine $($verb:literal)*)) => {
        ["probe", "doctor", "on", "off", "status", "set", "try", "power", "guard", "top",
         "exporter", "service", "trace", "bench", "campaign", "recommend", $($verb),*]
    };
    (@verbs [$($verb:literal)+]) => { [$($verb),+] };
}

// `--help` and the man pages show these, too.
codes! {
    Ok = 0 any "done",
    Unexpected = 1 any "unexpected failure",
    Usage = 2 any "the command line is wrong",
    NotPermitted = 3 machine "not permitted: more privileges are needed",
    ModuleUnavailable = 4 machine "the kernel module is not loaded and cannot be loaded",
    NotFound = 5 (machine "promises") "no such path, or nothing is mounted from that device",
    NotJournaled = 6 machine "not an ext4 or ext3 file system with a journal",
    ReadOnly = 7 machine "the file system is mounted read-only",
    AlreadyOn = 8 ["on"] "LUC is already on for this file system",
    NotOn = 9 ["off" "set" "status" "power"] "LUC is not on for this file system",
    KnobRefused = 10 ["on" "set" "try"]
        "knob refused: unknown knob, invalid value, or out of bounds",
    Busy = 11 ["on" "off" "try" "power" "guard"]
        "another program uses a kernel function or setting that LUC needs, or the module",
    KernelUnsupported = 12 machine "this kernel lacks a feature that LUC needs",
    NotReady = 13 ["probe"] "this machine cannot run LUC as it is",
    Workload = 14 ["bench" "promises"] "the workload could not run",
    FiguresMissed = 15 ["campaign"] "a figure missed its bound",
    WorkloadFile = 16 ["bench" "sim"] "the workload file is invalid or cannot be read",
    LabUnavailable = 19
        ["demo" "bench" "run" "torture" "campaign" "recommend" "reproduce" "fetch" "build"
         "debug-kernel"]
        "QEMU, a package, a mirror or another requirement is missing",
    Lab = 20
        ["demo" "run" "torture" "campaign" "recommend" "reproduce" "fetch" "build" "debug-kernel"
         "disks"]
        "the virtual machine could not be run",
    KernelLog = 21 ["run"] "the guest's kernel log contains a warning or an error",
    Command = 22 ["run" "trace"]
        "the command did not start or hit its time limit (otherwise: its own status)",
    ReplayMismatch = 23 ["replay"] "a decision differs from the recorded one",
    Trace = 24 ["trace" "replay" "doctor" "power" "top" "exporter" "sim" "promises"]
        "a trace cannot be read or recorded",
    PromiseBroken = 25 ["torture" "promises"]
        "the files lack something that a sync acknowledged, or hold something impossible",
    LucHelps = 26 ["doctor"] "something costs time, and LUC would or might help",
    Campaign = 27 ["campaign" "demo" "recommend" "reproduce" "sim"]
        "the file, a key or the directory of results is invalid, or in use",
    Changed = 28 ["campaign"] "a figure changed",
    BackEnd = 29 ["campaign"] "the back-end is unavailable or rejected a job",
    TrialEnded = 30 ["try" "power" "guard"]
        "ended because LUC or the clock was changed by hand, or LUC switched off",
    NothingToTry = 31 ["try" "power"] "no pair of windows had enough load to compare",
    Configuration = 32 ["service"] "the configuration is invalid or cannot be read",
    FtraceFailed = 33 ["on" "off"]
        "the kernel's ftrace has failed: only a reboot removes LUC's hooks, or allows new ones",
    OtherHelps = 34 ["doctor"] "something costs time, and something other than LUC would help",
    DeviceBound = 35 ["doctor"] "something costs time, and only a faster device would help",
    Unsound = 36 ["doctor" "on" "status" "try" "power" "guard"]
        "the file system takes no writes: its journal is aborted, it is shut down or frozen, or a \
         device below it keeps requests waiting",
    Interrupted = 130 any "interrupted by Ctrl-C or SIGTERM",
}

impl Code {
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether a verb's help lists this code.
    pub(crate) fn ends(self, verb: &str) -> bool {
        let mut listed = Self::for_verbs(&[verb]).into_iter();
        listed.any(|(code, _)| code == self)
    }

    /// The codes that a verb can end with, or those of all `verbs`, with their meanings. Among
    /// several verbs a meaning names its own, if they are few.
    pub fn for_verbs(verbs: &[&str]) -> Vec<(Self, String)> {
        let mut found = Vec::new();
        for (code, ends, meaning) in Self::ALL {
            let own = ends.iter().copied().filter(|verb| verbs.contains(verb));
            let own: Vec<&str> = own.collect();
            let meaning = match own.len() {
                0 if !ends.is_empty() => continue,
                1 | 2 if verbs.len() > 1 => format!("{}: {meaning}", own.join(", ")),
                _ => (*meaning).to_owned(),
            };
            found.push((*code, meaning));
        }
        found
    }

    /// The codes of these verbs as text, for `--help`.
    pub fn table(verbs: &[&str]) -> String {
        let mut text = String::from("Exit codes:\n");
        for (code, meaning) in Self::for_verbs(verbs) {
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
        let program = crate::name();
        Self::Coded(Code::Usage, format!("{why}; see `{program} {verb} --help`"))
    }

    /// The failure to read or record a trace.
    pub fn trace(what: impl Display, why: impl Display) -> Self {
        Self::Coded(Code::Trace, format!("trace {what}: {why}"))
    }

    /// The failure with a code of its own, and its line.
    pub fn coded(code: Code, line: impl Display) -> Self {
        Self::Coded(code, line.to_string())
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
                HostError::Unsound { .. } => Code::Unsound,
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

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Unexpected(error.into())
    }
}
