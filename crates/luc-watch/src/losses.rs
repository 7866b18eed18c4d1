//! Why events were lost, as far as that can be known, and what to do about it.
//!
//! The tracer has one counter for spans that find no room in its ring and for function returns that
//! kretprobes miss; only events that the kernel skips are counted apart. The causes can be told
//! apart all the same: a ring that was full is still full when its reader empties it next, and
//! where no kretprobe watches the end of a function, no kretprobe missed one.

use luc_bpf::{Attached, Means, Tracer};

/// Possible reasons why events were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCauses {
    /// The ring of spans was full at some time.
    pub ring: bool,
    /// Kretprobes watch the ends of functions; they wait for a limited number of tasks.
    pub returns: bool,
    /// The user asked for kprobes.
    pub chosen: bool,
}

impl LossCauses {
    /// A tracer's possible causes; `chosen` if the user asked for kprobes.
    pub fn from_tracer(tracer: &Tracer, chosen: bool) -> Self {
        Self {
            ring: tracer.ring_was_full(),
            returns: returns(tracer.attached()),
            chosen,
        }
    }

    /// Lists the reasons, and what to do about them. `larger` says how to get a larger ring.
    pub fn advice(self, larger: &str) -> String {
        let fewer = if self.chosen {
            "fentry has no such limit: leave out --means kprobe if the kernel has fentry"
        } else {
            "only fewer concurrent threads avoid this"
        };
        let returns = "kprobes cannot track the returns of that many concurrent tasks";
        match (self.ring, self.returns) {
            (true, false) => format!("the buffer was full; a larger one loses less: {larger}"),
            (true, true) => format!(
                "the buffer was full (a larger one loses less: {larger}), and perhaps {returns} \
                 ({fewer})"
            ),
            (false, true) => format!(
                "the buffer had room, so either {returns} ({fewer}), or the kernel skipped events \
                 because a BPF program was already running on that processor"
            ),
            (false, false) => {
                "the kernel skipped events because a BPF program was already running on that \
                 processor; a larger buffer does not help"
                    .into()
            }
        }
    }
}

/// Tells whether a kretprobe watches the end of any function.
fn returns(attached: &Attached) -> bool {
    let mut hooks = attached.hooks.iter();
    hooks.any(|(hook, means)| *means == Means::Kprobe && hook.end)
}

#[cfg(test)]
mod tests {
    use luc_bpf::{HOOKS, Hook};

    use super::*;

    fn hook(suffix: &str) -> Hook {
        let found = HOOKS.into_iter().find(|hook| hook.suffix == suffix);
        found.expect("a hook")
    }

    #[test]
    fn only_ends_by_kprobes_are_waited_for() {
        let of = |hooks: &[(&str, Means)]| {
            let hooks = hooks.iter().map(|(suffix, means)| (hook(suffix), *means));
            returns(&Attached {
                hooks: hooks.collect(),
                ..Attached::default()
            })
        };
        assert!(!of(&[("open", Means::Fentry), ("write", Means::Fentry)]));
        // This hook has no end to watch.
        assert!(!of(&[("open", Means::Fentry), ("waited", Means::Kprobe)]));
        assert!(of(&[("open", Means::Fentry), ("write", Means::Kprobe)]));
    }

    #[test]
    fn advice_is_for_what_was_lost() {
        for (ring, returns) in [(false, false), (false, true), (true, false), (true, true)] {
            let causes = LossCauses {
                ring,
                returns,
                chosen: true,
            };
            let text = causes.advice("--buffer-kib 64");
            assert_eq!(text.contains("--buffer-kib 64"), ring, "{text}");
            assert_eq!(text.contains("leave out --means kprobe"), returns, "{text}");
            assert_eq!(text.contains("track the returns"), returns, "{text}");
        }
        // A user who did not ask for kprobes cannot leave them out.
        let causes = LossCauses {
            returns: true,
            ..LossCauses::default()
        };
        let text = causes.advice("");
        assert!(text.contains("(only fewer concurrent threads avoid this)"));
    }
}
