//! Builds of the module that are broken on purpose, each by a few replacements in its sources.

use std::path::Path;

use luc_systest::{Replacement, broken_sources};

/// A build of the module.
pub struct Broken {
    /// Name of the test.
    pub name: &'static str,
    /// The fault.
    pub what: &'static str,
    /// The scenario that must catch it.
    pub scenario: &'static str,
    /// Changes of the sources; none if the build is sound.
    replace: &'static [Replacement],
}

const ON_COPYOUT: &str = "ordered copyout";
const ON_ORPHANS: &str = "orphan-file luc";
const ON_LUC: &str = "ordered luc";

/// Makes copies at every commit, not only when writers are delayed, so that their faults show.
const ALWAYS_COPY: Replacement = (
    COMMIT,
    "	if (!fs->copyout_rests || READ_ONCE(fs->copyout_news))\n",
    "	fs->copies_left = S64_MAX;\n	luc_copyout_set(fs, LUC_COPY_ALL);\n	if (false)\n",
);
const COPY: &str = "	memcpy(copy, bh->b_data, bh->b_size);\n";
const COPYOUT: &str = "kmod/copyout.c";
const SYNC: &str = "kmod/sync.c";
const COMMIT: &str = "kmod/commit.c";

const fn broken(
    name: &'static str,
    what: &'static str,
    scenario: &'static str,
    replace: &'static [Replacement],
) -> Broken {
    Broken {
        name,
        what,
        scenario,
        replace,
    }
}

/// The broken builds, and a sound one.
pub const BROKEN: [Broken; 14] = [
    broken(
        "not_at_all",
        "copies at every commit, and right ones",
        ON_COPYOUT,
        &[],
    ),
    broken(
        "copy_of_nothing",
        "the copy that the journal gets is zeros",
        ON_COPYOUT,
        &[(COPYOUT, COPY, "	memset(copy, 0, bh->b_size);\n")],
    ),
    broken(
        "copy_of_half",
        "the second half of the copy is not filled",
        ON_COPYOUT,
        &[(
            COPYOUT,
            COPY,
            "	memcpy(copy, bh->b_data, bh->b_size / 2);\n",
        )],
    ),
    broken(
        "copy_of_another_buffer",
        "the copy is of the buffer before",
        ON_COPYOUT,
        &[(
            COPYOUT,
            COPY,
            "	{\n		static char before[4096];\n\n		memcpy(copy, before, bh->b_size);\n		memcpy(before, bh->b_data, bh->b_size);\n	}\n",
        )],
    ),
    broken(
        "copy_is_stale",
        "a copy made once is used again for the same block",
        ON_COPYOUT,
        &[(
            COPYOUT,
            COPY,
            "	{\n		static char kept[64][4096];\n		static sector_t of[64];\n		int i = bh->b_blocknr % 64;\n\n		if (of[i] != bh->b_blocknr) {\n			memcpy(kept[i], bh->b_data, bh->b_size);\n			of[i] = bh->b_blocknr;\n		}\n		memcpy(copy, kept[i], bh->b_size);\n	}\n",
        )],
    ),
    broken(
        "copy_freed_twice",
        "the copy is freed while jbd2 uses it, and again by jbd2",
        ON_COPYOUT,
        &[(
            COPYOUT,
            "	if (used)\n		luc_count(fs, copies, 1);\n	else\n",
            "	if (used)\n		luc_count(fs, copies, 1);\n",
        )],
    ),
    broken(
        "copy_with_a_wrong_word",
        "one word of each copy is not the buffer's",
        ON_COPYOUT,
        &[(
            COPYOUT,
            COPY,
            "	memcpy(copy, bh->b_data, bh->b_size);\n	*(u64 *)(copy + bh->b_size / 2) ^= 1;\n",
        )],
    ),
    broken(
        "trigger_is_skipped",
        "the checksums that ext4 adds at a commit are not in the copy",
        ON_ORPHANS,
        &[(
            COPYOUT,
            "	if (triggers && triggers->t_frozen)\n",
            "	if (0)\n",
        )],
    ),
    broken(
        "copy_taken_too_late",
        "a copy is taken when its buffer may be the next transaction's already",
        ON_COPYOUT,
        &[
            (
                COPYOUT,
                "#include <linux/gfp.h>\n",
                "#include <linux/delay.h>\n#include <linux/gfp.h>\n",
            ),
            (
                COPYOUT,
                "	spin_unlock(&jh->b_state_lock);\n",
                "	spin_unlock(&jh->b_state_lock);\n	if (used) {\n		fsleep(500);\n		memcpy(copy, jh2bh(jh)->b_data, size);\n	}\n",
            ),
        ],
    ),
    broken(
        "sync_returns_early",
        "a sync returns while its commit is under way",
        ON_LUC,
        &[(
            SYNC,
            "		wake = luc_arrive(fs, tid, now);\n		spin_unlock(&fs->lock);\n",
            "		wake = luc_arrive(fs, tid, now);\n		spin_unlock(&fs->lock);\n		if (journal->j_committing_transaction &&\n		    journal->j_committing_transaction->t_tid == tid)\n			journal->j_commit_sequence = tid;\n",
        )],
    ),
    broken(
        "no_flush",
        "the journal forgets to flush the disk's cache",
        ON_LUC,
        &[(
            COMMIT,
            "	rcu_read_lock_sched();\n	fs = luc_fs_find(dev);\n",
            "	journal->j_flags &= ~JBD2_BARRIER;\n	rcu_read_lock_sched();\n	fs = luc_fs_find(dev);\n",
        )],
    ),
    broken(
        "sleeps_under_a_lock",
        "the hold sleeps with a spinlock held, one that nobody else takes",
        ON_LUC,
        &[(
            COMMIT,
            "		luc_hold_sleep(fs, out->wake_ns);\n",
            "		static DEFINE_SPINLOCK(held);\n\n		spin_lock(&held);\n		luc_hold_sleep(fs, out->wake_ns);\n		spin_unlock(&held);\n",
        )],
    ),
    broken(
        "sleeps_under_rcu",
        "the hold sleeps inside an RCU section",
        ON_LUC,
        &[(
            COMMIT,
            "	rcu_read_unlock_sched();\n	*reason = luc_hold_polling(fs, journal, t);\n	rcu_read_lock_sched();\n",
            "	*reason = luc_hold_polling(fs, journal, t);\n",
        )],
    ),
    broken(
        "forgets_to_wake",
        "a held commit sleeps until somebody wakes it, and nobody does",
        ON_LUC,
        &[
            (
                COMMIT,
                "		schedule_hrtimeout_range(&until, 0, HRTIMER_MODE_ABS);\n",
                "		schedule();\n",
            ),
            (
                SYNC,
                "	return luc_completes_batch(fs, tid);\n",
                "	luc_completes_batch(fs, tid);\n	return false;\n",
            ),
        ],
    ),
];

impl Broken {
    /// Tells whether the build must be caught.
    pub const fn must_fail(&self) -> bool {
        !self.replace.is_empty()
    }

    /// Tells whether the build copies at every commit: a fault of copies shows only then. The sound
    /// build does as well.
    fn always_copies(&self) -> bool {
        let mut files = self.replace.iter().map(|(file, ..)| *file);
        !self.must_fail() || files.any(|file| file == COPYOUT)
    }

    /// Writes the sources of this build below `dir`.
    pub fn write(&self, dir: &Path) -> Result<(), String> {
        let copies = self.always_copies().then_some(&ALWAYS_COPY);
        let changes: Vec<_> = copies.into_iter().chain(self.replace).copied().collect();
        broken_sources(dir, &changes).map_err(|why| format!("{}: {why}", self.name))
    }
}
