//! The hooks of the tracer, and by what means each is attached.
//!
//! Tracepoints are there on every kernel that has ext4. Hosts differ in whether a function can be
//! hooked by fentry, by kprobes, or not at all. A function that the module hooks is never among
//! them, as an entry has one owner.

use luc_trace::Sight;
use std::fmt;

/// Programs of tracepoints; without one of them there is no tracing.
pub(crate) const TRACEPOINTS: [&str; 6] = [
    "task_exits",
    "task_gone",
    "sync_enter",
    "sync_exit",
    "commit_locking",
    "commit_end",
];

/// More of them, only attached where spans are wanted.
pub(crate) const TIMELINE_TRACEPOINTS: [&str; 2] = ["commit_flushing", "commit_logging"];

/// A hooked function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The function, by the names that it has had, the usual one first.
    pub functions: &'static [&'static str],
    /// Its programs are this behind `fentry_`, `fexit_`, `kprobe_` and `kretprobe_`.
    pub suffix: &'static str,
    /// Whether its end is hooked too.
    pub end: bool,
    /// Only attached where spans are wanted.
    pub timeline_only: bool,
    /// The kind of events that is not seen without it.
    pub sight: Sight,
    /// Not needed where the calls that begin and end these waits are found.
    pub stands_in: Option<Wait>,
}

/// A kind of waits that is seen at calls, or else at the functions called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For metadata that a commit writes.
    Buffer,
    /// For a locked transaction.
    Locked,
}

/// All functions.
pub const HOOKS: [Hook; 11] = [
    operation(&["do_filp_open", "do_file_open"], "open", Sight::Opens),
    operation(&["ext4_file_write_iter"], "write", Sight::Writes),
    operation(&["ext4_release_file"], "close", Sight::Closes),
    asks(&["ext4_fc_commit"], "asked"),
    asks(&["jbd2_journal_force_commit"], "forced"),
    operation(&["ext4_sync_fs"], "syncfs", Sight::SyncFs),
    Hook {
        stands_in: Some(Wait::Buffer),
        ..wait(&["bit_wait_io"], "bit_wait", Sight::WaitBuffer)
    },
    locked(&["prepare_to_wait"], "wait"),
    locked(&["prepare_to_wait_exclusive"], "wait_exclusive"),
    locked(&["finish_wait"], "waited"),
    wait(&["__jbd2_log_wait_for_space"], "space", Sight::WaitSpace),
];

type Names = &'static [&'static str];

const fn operation(functions: Names, suffix: &'static str, sight: Sight) -> Hook {
    Hook {
        timeline_only: true,
        ..wait(functions, suffix, sight)
    }
}

/// A function by which a sync asks for its transaction.
const fn asks(functions: Names, suffix: &'static str) -> Hook {
    Hook {
        end: false,
        ..operation(functions, suffix, Sight::Flushes)
    }
}

const fn wait(functions: Names, suffix: &'static str, sight: Sight) -> Hook {
    Hook {
        functions,
        suffix,
        end: true,
        timeline_only: false,
        sight,
        stands_in: None,
    }
}

const fn locked(functions: Names, suffix: &'static str) -> Hook {
    Hook {
        end: false,
        stands_in: Some(Wait::Locked),
        ..wait(functions, suffix, Sight::WaitLocked)
    }
}

/// How a function is hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Means {
    /// A trampoline at its entry and exit: cheapest.
    Fentry,
    /// A breakpoint or ftrace callback: works beside owners of the entry.
    Kprobe,
}

impl Means {
    /// The program for begins.
    pub fn begin(self, hook: &Hook) -> String {
        match self {
            Self::Fentry => format!("fentry_{}", hook.suffix),
            Self::Kprobe => format!("kprobe_{}", hook.suffix),
        }
    }

    /// The program for ends, if there is one.
    pub fn end(self, hook: &Hook) -> Option<String> {
        let prefix = match self {
            Self::Fentry => "fexit",
            Self::Kprobe => "kretprobe",
        };
        hook.end.then(|| format!("{prefix}_{}", hook.suffix))
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fentry => "fentry",
            Self::Kprobe => "kprobe",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `kmod/hooks.c` lists them.
    const OF_THE_MODULE: &str = include_str!("../../../kmod/hooks.c");

    #[test]
    fn no_function_is_hooked_twice() {
        for function in HOOKS.iter().flat_map(|hook| hook.functions) {
            let quoted = format!("\"{function}\"");
            assert!(!OF_THE_MODULE.contains(&quoted), "{function}");
        }
        assert!(OF_THE_MODULE.contains("\"out_of_line_wait_on_bit\""));
    }

    #[test]
    fn programs_are_called_after_their_means() {
        let open = &HOOKS[0];
        assert_eq!(Means::Fentry.begin(open), "fentry_open");
        assert_eq!(Means::Kprobe.end(open).unwrap(), "kretprobe_open");
        let wait = &HOOKS[7];
        assert_eq!(Means::Fentry.end(wait), None);
    }
}
