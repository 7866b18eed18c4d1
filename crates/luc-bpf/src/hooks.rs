//! The hooks of the tracer, and the means by which each is attached.
//!
//! Every kernel with ext4 has the tracepoints. Hosts differ in whether a function can be hooked by
//! fentry, by kprobes, or not at all. The tracer hooks no function that the module hooks, as a
//! function's entry has one owner.

use luc_trace::Sight;
use std::fmt;

/// Programs for tracepoints; tracing needs all of them.
pub(crate) const TRACEPOINTS: [&str; 6] = [
    "task_exits",
    "task_gone",
    "sync_enter",
    "sync_exit",
    "commit_locking",
    "commit_end",
];

/// More programs for tracepoints, only attached if spans are wanted.
pub(crate) const TIMELINE_TRACEPOINTS: [&str; 3] =
    ["commit_flushing", "commit_logging", "handle_ends"];

/// A hooked function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The function, by the names that it has had, the usual one first.
    pub functions: &'static [&'static str],
    /// Its programs are named `fentry_`, `fexit_`, `kprobe_` or `kretprobe_` and this.
    pub suffix: &'static str,
    /// Whether its return is hooked too.
    pub end: bool,
    /// Whether it is only attached if spans are wanted.
    pub timeline_only: bool,
    /// The kind of events that is not seen without it.
    pub sight: Sight,
    /// The waits that it stands in for; not needed if the calls that begin and end them are found.
    pub stands_in: Option<Wait>,
}

/// A kind of wait that is seen at calls or, failing that, in the functions called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A wait for metadata that a commit writes.
    Buffer,
    /// A wait for a locked transaction.
    Locked,
}

/// All hooked functions.
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
    /// A breakpoint or ftrace callback: works next to other owners of the entry.
    Kprobe,
}

impl Means {
    /// The name of the program that runs when a call begins.
    pub fn begin(self, hook: &Hook) -> String {
        match self {
            Self::Fentry => format!("fentry_{}", hook.suffix),
            Self::Kprobe => format!("kprobe_{}", hook.suffix),
        }
    }

    /// The name of the program that runs when a call ends, if there is one.
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

    /// Lists the functions that the module hooks.
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
