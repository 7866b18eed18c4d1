//! What can go wrong, in one place: every failure of the command line, the
//! line a person reads about it, and the exit code a script sees. What the
//! machine refuses has its line in [`HostError`], and its code here.

use std::fmt::Write as _;

use luc_host::HostError;

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

// Those of `luc --help` and of the man pages, too.
codes! {
    Ok = 0 "done",
    Unexpected = 1 "something unexpected failed",
    Usage = 2 "the command line is wrong",
    NotPermitted = 3 "not permitted: more rights are needed",
    ModuleUnavailable = 4 "the kernel module is not loaded and cannot be",
    NotFound = 5 "no such path, or nothing is mounted from that device",
    NotJournaled = 6 "not an ext4 or ext3 file system with a journal",
    ReadOnly = 7 "the file system is mounted read-only",
    AlreadyOn = 8 "LUC is already on for this file system",
    NotOn = 9 "LUC is not on for this file system",
    KnobRefused = 10 "knob refused: unknown, not a value of it, or out of bounds",
    Busy = 11 "a kernel function or the module is in use by somebody else",
    KernelUnsupported = 12 "this kernel lacks something that LUC needs",
    NotReady = 13 "luc probe: this machine cannot run LUC as it is",
    Workload = 14 "luc bench: the workload could not run",
    FiguresMissed = 15 "luc bench matrix: a figure was missed",
    WorkloadFile = 16 "luc bench: the workload file is refused",
    LabUnavailable = 19 "luc lab: QEMU, a package or a mirror is missing",
    Lab = 20 "luc lab: the virtual machine could not be run",
    KernelLog = 21 "luc lab: the guest's kernel log holds a warning or worse",
    Command = 22 "a command that luc ran did not start or hit its limit (else: its own status)",
    ReplayMismatch = 23 "luc replay: a decision differs from the recorded one",
    Trace = 24 "a trace cannot be read or recorded",
    PromiseBroken = 25 "luc torture: what a sync promised is not there, or what cannot be is",
    Advised = 26 "luc doctor: something costs, and there is something to do about it",
    Interrupted = 130 "interrupted by Ctrl-C or SIGTERM",
}

impl Code {
    /// The number handed to the shell.
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
///
/// Fields have the same meaning in every variant: `what` or `path` is what it
/// is about, `why` the cause, `fix` what to do.
#[allow(missing_docs)] // the paragraph above, instead of forty times the same line
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What this machine refuses or lacks.
    #[error(transparent)]
    Host(#[from] HostError),
    /// See [`Code::NotReady`].
    #[error(
        "this machine cannot run LUC as it is: {missing} missing; each line above says how to get it"
    )]
    NotReady { missing: String },
    /// See [`Code::Workload`].
    #[error("{what}: {why}")]
    Workload { what: String, why: String },
    /// See [`Code::FiguresMissed`].
    #[error("{missed} of {all} figures missed; the table marks them")]
    FiguresMissed { missed: usize, all: usize },
    /// See [`Code::WorkloadFile`].
    #[error("workload {what}: refused, nothing was run: {why}")]
    WorkloadFile { what: String, why: String },
    /// See [`Code::LabUnavailable`].
    #[error("lab: {why}")]
    LabUnavailable { why: String },
    /// See [`Code::Lab`].
    #[error("lab: {why}")]
    Lab { why: String },
    /// See [`Code::KernelLog`].
    #[error(
        "lab: the guest's kernel log holds {count}: \"{first}\"; `--out DIR` keeps the whole log, `--allow-log REGEX` lets expected lines pass"
    )]
    KernelLog { count: String, first: String },
    /// See [`Code::Command`]; `status` is handed on as it is.
    #[error("command {command}: {how}")]
    Command {
        command: String,
        how: String,
        status: Option<u8>,
    },
    /// See [`Code::ReplayMismatch`].
    #[error(
        "replay of {file}: {why}; the controller of this build is not the one that recorded it, or it has a bug"
    )]
    ReplayMismatch { file: String, why: String },
    /// See [`Code::Trace`].
    #[error("trace {what}: {why}")]
    Trace { what: String, why: String },
    /// See [`Code::PromiseBroken`].
    #[error("{dir}: {broken} broken; first: {first}")]
    PromiseBroken {
        dir: String,
        broken: String,
        first: String,
    },
    /// See [`Code::Advised`].
    #[error("{}", advised(*sick, *all))]
    Advised { sick: usize, all: usize },
    /// See [`Code::Usage`].
    #[error("{why}; see `luc {verb} --help`")]
    Usage { verb: &'static str, why: String },
    /// See [`Code::Interrupted`].
    #[error("interrupted: {state}")]
    Interrupted { state: String },
    /// See [`Code::Unexpected`].
    #[error("{0:#}")]
    Unexpected(#[from] anyhow::Error),
}

impl Failure {
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
                HostError::Unreadable { .. }
                | HostError::OtherVersion { .. }
                | HostError::Unexpected(_)
                | HostError::Io(_) => Code::Unexpected,
            },
            Failure::NotReady { .. } => Code::NotReady,
            Failure::Workload { .. } => Code::Workload,
            Failure::FiguresMissed { .. } => Code::FiguresMissed,
            Failure::WorkloadFile { .. } => Code::WorkloadFile,
            Failure::LabUnavailable { .. } => Code::LabUnavailable,
            Failure::Lab { .. } => Code::Lab,
            Failure::KernelLog { .. } => Code::KernelLog,
            Failure::Command { .. } => Code::Command,
            Failure::ReplayMismatch { .. } => Code::ReplayMismatch,
            Failure::Trace { .. } => Code::Trace,
            Failure::PromiseBroken { .. } => Code::PromiseBroken,
            Failure::Advised { .. } => Code::Advised,
            Failure::Usage { .. } => Code::Usage,
            Failure::Interrupted { .. } => Code::Interrupted,
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

    /// True if the reader of our output went away (`luc status | head`), which
    /// is no failure.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Failure::Unexpected(error) => error.chain().any(|cause| {
                cause
                    .downcast_ref::<std::io::Error>()
                    .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
            }),
            _ => false,
        }
    }
}

/// One file system is not counted.
fn advised(sick: usize, all: usize) -> String {
    match (sick, all) {
        (_, 1) => "the file system loses time; above stands what to do about it".into(),
        (1, _) => {
            format!("1 of {all} file systems examined loses time; above stands what to do about it")
        }
        _ => format!(
            "{sick} of {all} file systems examined lose time; each says above what to do about it"
        ),
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Unexpected(error.into())
    }
}
