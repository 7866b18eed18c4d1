//! What the tracer attaches to, and by what means.
//!
//! Tracepoints are there on every kernel that has ext4. Functions can be
//! had through fentry, or through kprobes, or not at all: hosts differ. A
//! function that the module hooks is never among them, for its entry has one
//! owner.

use luc_trace::Sight;
use std::fmt;

/// A tracepoint and the program for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Name of the program.
    pub program: &'static str,
    /// Not needed where only counts are wanted.
    pub timeline_only: bool,
}

/// All tracepoints; without one of them there is no tracing.
pub const TRACEPOINTS: [Tracepoint; 8] = [
    tracepoint("task_exits", false),
    tracepoint("task_gone", false),
    tracepoint("sync_enter", false),
    tracepoint("sync_exit", false),
    tracepoint("commit_locking", false),
    tracepoint("commit_end", false),
    tracepoint("commit_flushing", true),
    tracepoint("commit_logging", true),
];

const fn tracepoint(program: &'static str, timeline_only: bool) -> Tracepoint {
    Tracepoint {
        program,
        timeline_only,
    }
}

/// A function of the kernel whose begin, and mostly end, is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The function, by the names that it has had, the usual one first.
    pub functions: &'static [&'static str],
    /// Its programs are this behind `fentry_`, `fexit_`, `kprobe_` and `kretprobe_`.
    pub suffix: &'static str,
    /// Whether its end is looked at too.
    pub end: bool,
    /// Not needed where only counts are wanted.
    pub timeline_only: bool,
    /// The kind of events that is not seen without it.
    pub sight: Sight,
    /// Not needed where the calls that begin and end these waits can be had.
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
    hook(
        &["do_filp_open", "do_file_open"],
        "open",
        true,
        true,
        Sight::Opens,
    ),
    hook(
        &["ext4_file_write_iter"],
        "write",
        true,
        true,
        Sight::Writes,
    ),
    hook(&["ext4_release_file"], "close", true, true, Sight::Closes),
    hook(&["ext4_fc_commit"], "asked", false, true, Sight::Flushes),
    hook(
        &["jbd2_journal_force_commit"],
        "forced",
        false,
        true,
        Sight::Flushes,
    ),
    hook(&["ext4_sync_fs"], "syncfs", true, true, Sight::SyncFs),
    Hook {
        stands_in: Some(Wait::Buffer),
        ..hook(&["bit_wait_io"], "bit_wait", true, false, Sight::WaitBuffer)
    },
    locked(&["prepare_to_wait"], "wait"),
    locked(&["prepare_to_wait_exclusive"], "wait_exclusive"),
    locked(&["finish_wait"], "waited"),
    hook(
        &["__jbd2_log_wait_for_space"],
        "space",
        true,
        false,
        Sight::WaitSpace,
    ),
];

const fn hook(
    functions: &'static [&'static str],
    suffix: &'static str,
    end: bool,
    timeline_only: bool,
    sight: Sight,
) -> Hook {
    Hook {
        functions,
        suffix,
        end,
        timeline_only,
        sight,
        stands_in: None,
    }
}

const fn locked(functions: &'static [&'static str], suffix: &'static str) -> Hook {
    Hook {
        stands_in: Some(Wait::Locked),
        ..hook(functions, suffix, false, false, Sight::WaitLocked)
    }
}

/// How a function is looked at.
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
