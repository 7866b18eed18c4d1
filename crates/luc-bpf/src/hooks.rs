//! What the tracer attaches to, and by what means.
//!
//! Tracepoints are there on every kernel that has ext4. Functions can be
//! had through fentry, or through kprobes, or not at all: hosts differ. A
//! function that the module hooks is never among them, for its entry has one
//! owner.

use crate::host::Extent;
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

/// What a host offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The kernel's types are there (`/sys/kernel/btf/vmlinux`).
    pub btf: bool,
    /// kprobes can be made.
    pub kprobes: bool,
    /// Hooks at the entries of functions are called (`kernel.ftrace_enabled`). Without, the
    /// kernel takes them and never calls them.
    pub entries: bool,
    /// Functions that types are known of.
    pub typed: Vec<String>,
    /// Functions that are symbols; None: the kernel does not tell, but may know them.
    pub symbols: Option<Vec<String>>,
    /// Where functions lie that calls are looked for in, or that are called there.
    pub extents: Vec<(String, Extent)>,
}

impl Offer {
    /// Where a function lies.
    pub fn extent(&self, function: &str) -> Option<Extent> {
        let mut named = self.extents.iter().filter(|(name, _)| name == function);
        let found = named.next().map(|(_, extent)| *extent);
        // Of two with one name nobody knows which.
        found.filter(|_| named.next().is_none())
    }

    /// The name of a function here, if it can be tried by these means; `allowed` leaves
    /// out what is not wanted.
    ///
    /// # Errors
    /// Why it need not be tried, a clause.
    pub fn function(
        &self,
        hook: &Hook,
        means: Means,
        allowed: &[Means],
    ) -> Result<&'static str, &'static str> {
        let known = |list: &[String]| {
            let in_list = |name: &&&str| list.iter().any(|other| other == *name);
            hook.functions.iter().find(in_list).copied()
        };
        if !allowed.contains(&means) {
            return Err(match means {
                Means::Fentry => "fentry was not asked for",
                Means::Kprobe => "kprobes were not asked for",
            });
        }
        if means == Means::Kprobe && !self.kprobes {
            return Err("there are no kprobes");
        }
        if !self.entries {
            return Err("kernel.ftrace_enabled is 0");
        }
        match (means, &self.symbols) {
            (Means::Fentry, _) if !self.btf => Err("the kernel tells nothing of its types"),
            (Means::Fentry, _) => known(&self.typed).ok_or("its types are not known"),
            // The kernel resolves the usual name itself, or says that it cannot.
            (Means::Kprobe, None) => Ok(hook.functions[0]),
            (Means::Kprobe, Some(symbols)) => {
                known(symbols).ok_or("the kernel has no such function")
            }
        }
    }

    /// The means to try for a function with its name here, best first.
    pub fn means(&self, hook: &Hook, allowed: &[Means]) -> Vec<(Means, &'static str)> {
        let named = |means| Some((means, self.function(hook, means, allowed).ok()?));
        [Means::Fentry, Means::Kprobe]
            .into_iter()
            .filter_map(named)
            .collect()
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
    fn fentry_first_then_kprobes_then_nothing() {
        let hook = &HOOKS[0];
        let [usual, other] = hook.functions else {
            panic!("{hook:?}");
        };
        let both = [Means::Fentry, Means::Kprobe];
        let mut offer = Offer {
            btf: true,
            kprobes: true,
            entries: true,
            typed: vec![(*usual).to_owned()],
            symbols: Some(vec![(*other).to_owned(), (*usual).to_owned()]),
            extents: Vec::new(),
        };
        let (fentry, kprobe) = ((Means::Fentry, *usual), (Means::Kprobe, *usual));
        assert_eq!(offer.means(hook, &both), [fentry, kprobe]);
        assert_eq!(offer.means(hook, &[Means::Kprobe]), [kprobe]);
        offer.typed.clear();
        assert_eq!(offer.means(hook, &both), [kprobe]);
        // As newer kernels call it.
        offer.symbols = Some(vec![(*other).to_owned()]);
        assert_eq!(offer.means(hook, &both), [(Means::Kprobe, *other)]);
        offer.kprobes = false;
        assert_eq!(offer.means(hook, &both), []);
        offer.typed.push((*usual).to_owned());
        offer.btf = false;
        assert_eq!(offer.means(hook, &both), []);
        // Without a list of symbols the kernel is asked by the usual name.
        offer.kprobes = true;
        offer.symbols = None;
        assert_eq!(offer.means(hook, &both), [kprobe]);
        // Taken, and never called.
        offer.btf = true;
        offer.entries = false;
        assert_eq!(offer.means(hook, &both), []);
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
