//! Scans a kernel log for lines that a healthy run does not print.

use serde::Serialize;

/// A line of the kernel log that should not be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogProblem {
    /// Line in the log, from 1.
    pub line_number: usize,
    pub line: String,
}

/// Lines that a run expects, such as the file system errors of a fault test. A line is allowed if
/// it contains one of the texts and none of the exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    texts: Vec<String>,
    except: Vec<String>,
}

impl AllowList {
    /// Allows lines that contain one of `texts`; empty texts are dropped, because they would allow
    /// everything.
    pub fn new<I, S>(texts: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        let texts = texts.into_iter().map(Into::into);
        Self {
            texts: texts.filter(|text: &String| !text.is_empty()).collect(),
            except: Vec::new(),
        }
    }

    /// Makes a line with this text a problem even if it is otherwise allowed.
    #[must_use]
    pub fn except(mut self, text: impl Into<String>) -> Self {
        self.except.push(text.into());
        self
    }

    fn allows(&self, line: &str) -> bool {
        let holds = |texts: &[String]| texts.iter().any(|text| line.contains(text));
        holds(&self.texts) && !holds(&self.except)
    }
}

/// A line is a problem if it contains every text of one of these rows.
const PROBLEMS: &[&[&str]] = &[
    &["WARNING:"],
    &["BUG:"],
    &["kernel BUG at"],
    &["Oops:"],
    &["Call Trace:"],
    &["Kernel panic"],
    // Newer kernels say what a task is blocked in.
    &["INFO: task", "blocked", "for more than"],
    &["possible", "deadlock"],
    &["possible", "locking"],
    &["inconsistent lock state"],
    &["suspicious RCU"],
    &["lockup"],
    &["rcu", "stall"],
    &["KASAN"],
    &["KCSAN"],
    &["UBSAN"],
    &["ODEBUG:"],
    &["kmemleak:", "leaks"],
    &["non-static key"],
    // Once lockdep gives up, it finds nothing more.
    &["turning off the locking correctness validator"],
    // SLUB: BUG kmalloc-64 (Tainted: G): Poison overwritten
    &["BUG ", "ainted"],
    &["pagealloc:"],
    &["general protection"],
    &["unable to handle"],
    &["refcount_t:"],
    &["corruption"],
    &["segfault at"],
    &["Out of memory"],
    &["scheduling while atomic"],
    &["I/O error"],
    &["EXT4-fs error"],
    &["EXT4-fs", "rror"],
    &["JBD2", "rror"],
    &["JBD2", "abort"],
    &["Aborting journal"],
];

/// Lines of every healthy boot that look like problems: the kernel says which
/// of its checks are on.
const HARMLESS: &[&str] = &[
    "Command line:",
    "Kernel command line:",
    "Lockup detector",
    "lockup_detector",
    "RCU CPU stall",
    "errors=",
];

/// All problems in `log` that `allow` does not cover, in order.
pub fn problems(log: &str, allow: &AllowList) -> Vec<LogProblem> {
    log.lines()
        .enumerate()
        .filter(|(_, line)| is_problem(line) && !allow.allows(line))
        .map(|(index, line)| LogProblem {
            line_number: index + 1,
            line: line.to_owned(),
        })
        .collect()
}

fn is_problem(line: &str) -> bool {
    PROBLEMS
        .iter()
        .any(|words| words.iter().all(|word| line.contains(word)))
        && !HARMLESS.iter().any(|text| line.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "\
[    0.000000] Command line: console=ttyS0 panic=-1 nmi_watchdog=panic
[    0.100000] rcu: Hierarchical RCU implementation.
[    3.000000] EXT4-fs (nullb0): mounted filesystem with ordered data mode. errors=remount-ro
[    0.200000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    0.200000] kasan: KernelAddressSanitizer initialized
[    0.200000] kcsan: enabled early
[    0.200000] kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)
[    0.200000] rcu: \tRCU lockdep checking is enabled.
[    0.200000] rcu: \tRCU callback double-/use-after-free debug is enabled.
[    3.100000] luc: loading out-of-tree module taints kernel.
";

    #[test]
    fn a_clean_log_is_clean() {
        assert_eq!(problems(CLEAN, &AllowList::default()), []);
    }

    #[test]
    fn every_kind_is_found() {
        for line in [
            "WARNING: CPU: 0 PID: 1 at fs/jbd2/commit.c:400",
            "BUG: kernel NULL pointer dereference, address: 0",
            "Oops: 0000 [#1] PREEMPT SMP",
            "Call Trace:",
            "INFO: task jbd2/nullb0-8:77 blocked for more than 120 seconds.",
            "INFO: task jbd2/nullb0-8:77 blocked in I/O wait for more than 120 seconds.",
            "WARNING: possible circular locking dependency detected",
            "possible recursive locking detected",
            "*** DEADLOCK *** possible deadlock",
            "inconsistent lock state",
            "suspicious RCU usage",
            "watchdog: soft lockup - CPU#0 stuck for 26s!",
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "KASAN: use-after-free in x",
            "UBSAN: array-index-out-of-bounds",
            "UBSAN: shift-out-of-bounds in kmod/sync.c:40:9",
            "BUG: KASAN: slab-use-after-free in luc_on_commit+0x5f/0x90 [luc]",
            "BUG: KCSAN: data-race in luc_on_commit [luc] / luc_on_wait_locked [luc]",
            "BUG: sleeping function called from invalid context at kmod/copyout.c:70",
            "WARNING: possible recursive locking detected",
            "WARNING: inconsistent lock state",
            "WARNING: bad unlock balance detected!",
            "WARNING: held lock freed!",
            "WARNING: suspicious RCU usage",
            "[ BUG: Invalid wait context ]",
            "INFO: trying to register non-static key.",
            "turning off the locking correctness validator.",
            "BUG: MAX_LOCKDEP_CHAINS too low!",
            "ODEBUG: free active (active state 0) object: 00000000a2 object type: work_struct",
            "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
            "BUG kmalloc-64 (Tainted: G           O      ): Poison overwritten",
            "BUG: workqueue lockup - pool cpus=1 node=0 flags=0x0 nice=0 stuck for 33s!",
            "list_del corruption. prev->next should be ffff8, but was dead000000000122.",
            "pagealloc: memory corruption",
            "refcount_t: underflow; use-after-free.",
            "general protection fault, probably for non-canonical address",
            "EXT4-fs error (device nullb0): ext4_journal_check_start:83",
            "EXT4-fs (nullb0): I/O error while writing superblock",
            "JBD2: Detected IO errors while flushing file data on nullb0-8",
            "Aborting journal on device nullb0-8.",
            "Kernel panic - not syncing: x",
        ] {
            let log = format!("{CLEAN}[    4.000000] {line}\n");
            let found = problems(&log, &AllowList::default());
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!(found[0].line_number, CLEAN.lines().count() + 1);
        }
    }

    #[test]
    fn expected_lines_are_allowed_and_only_they() {
        let log = "EXT4-fs error (device nullb0): x\nWARNING: y\n";
        let found = problems(log, &AllowList::new(["EXT4-fs error", ""]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, "WARNING: y");
    }

    #[test]
    fn what_is_excepted_is_never_allowed() {
        let log = "BUG: KCSAN: data-race in a / b\nBUG: KCSAN: data-race in a / b [luc]\n";
        let found = problems(log, &AllowList::new(["KCSAN"]).except("[luc]"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line_number, 2);
    }
}
