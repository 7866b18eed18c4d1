//! Builds of the module that are broken on purpose, each by a few replacements in its sources.

use std::fs;
use std::path::Path;

use super::lab_support::root;

/// A build of the module.
pub struct Broken {
    /// Of the test.
    pub name: &'static str,
    /// What is wrong with it.
    pub what: &'static str,
    /// Whether it must be caught; one build is sound, lest everything counts as caught.
    pub must_fail: bool,
    /// Where it is to be caught.
    pub scenario: &'static str,
    /// File, text that stands there once, and what replaces it.
    replace: &'static [(&'static str, &'static str, &'static str)],
}

/// Copies are made at every commit, not only when writers are delayed: a fault in one shows.
const ALWAYS_COPY: (&str, &str, &str) = (
    "kmod/commit.c",
    "	if (luc_copies(&fs->params_now) && !luc_copyout_idle(&fs->state, &in)) {\n",
    "	luc_copyout_set(fs, true);\n	return;\n	if (luc_copies(&fs->params_now)) {\n",
);
const COPY: &str = "	memcpy(copy, bh->b_data, bh->b_size);\n";
const COPYOUT: &str = "kmod/copyout.c";
const SYNC: &str = "kmod/sync.c";
const COMMIT: &str = "kmod/commit.c";
const ON_COPYOUT: &str = "ordered copyout";
const ON_LUC: &str = "ordered luc";

/// All of them.
pub const BROKEN: [Broken; 11] = [
    Broken {
        name: "not_at_all",
        what: "copies at every commit, and right ones",
        must_fail: false,
        scenario: ON_COPYOUT,
        replace: &[ALWAYS_COPY],
    },
    Broken {
        name: "copy_of_nothing",
        what: "the copy that the journal gets is zeros",
        must_fail: true,
        scenario: ON_COPYOUT,
        replace: &[
            ALWAYS_COPY,
            (COPYOUT, COPY, "	memset(copy, 0, bh->b_size);\n"),
        ],
    },
    Broken {
        name: "copy_of_half",
        what: "the second half of the copy is not filled",
        must_fail: true,
        scenario: ON_COPYOUT,
        replace: &[
            ALWAYS_COPY,
            (
                COPYOUT,
                COPY,
                "	memcpy(copy, bh->b_data, bh->b_size / 2);\n",
            ),
        ],
    },
    Broken {
        name: "copy_of_another_buffer",
        what: "the copy is of the buffer before",
        must_fail: true,
        scenario: ON_COPYOUT,
        replace: &[
            ALWAYS_COPY,
            (
                COPYOUT,
                COPY,
                "	{\n		static char before[4096];\n\n		memcpy(copy, before, bh->b_size);\n		memcpy(before, bh->b_data, bh->b_size);\n	}\n",
            ),
        ],
    },
    Broken {
        name: "copy_is_stale",
        what: "a copy made once is used again for the same block",
        must_fail: true,
        scenario: ON_COPYOUT,
        replace: &[
            ALWAYS_COPY,
            (
                COPYOUT,
                COPY,
                "	{\n		static char kept[64][4096];\n		static sector_t of[64];\n		int i = bh->b_blocknr % 64;\n\n		if (of[i] != bh->b_blocknr) {\n			memcpy(kept[i], bh->b_data, bh->b_size);\n			of[i] = bh->b_blocknr;\n		}\n		memcpy(copy, kept[i], bh->b_size);\n	}\n",
            ),
        ],
    },
    Broken {
        name: "copy_freed_twice",
        what: "the copy is freed while jbd2 uses it, and again by jbd2",
        must_fail: true,
        scenario: ON_COPYOUT,
        replace: &[
            ALWAYS_COPY,
            (
                COPYOUT,
                "	if (used)\n		luc_count(fs, copies, 1);\n	else\n",
                "	if (used)\n		luc_count(fs, copies, 1);\n",
            ),
        ],
    },
    Broken {
        name: "copy_with_a_wrong_word",
        what: "one word of each copy is not the buffer's",
        must_fail: true,
        scenario: ON_COPYOUT,
        replace: &[
            ALWAYS_COPY,
            (
                COPYOUT,
                COPY,
                "	memcpy(copy, bh->b_data, bh->b_size);\n	*(u64 *)(copy + bh->b_size / 2) ^= 1;\n",
            ),
        ],
    },
    Broken {
        name: "sync_returns_early",
        what: "a sync returns while its commit is under way",
        must_fail: true,
        scenario: ON_LUC,
        replace: &[(
            SYNC,
            "		mark = luc_unmark(fs);\n",
            "		mark = luc_unmark(fs);\n		if (journal->j_committing_transaction &&\n		    journal->j_committing_transaction->t_tid == tid)\n			journal->j_commit_sequence = tid;\n",
        )],
    },
    Broken {
        name: "no_flush",
        what: "the journal forgets to flush the disk's cache",
        must_fail: true,
        scenario: ON_LUC,
        replace: &[(
            COMMIT,
            "	rcu_read_lock();\n	c.fs = luc_fs_find(journal);\n",
            "	journal->j_flags &= ~JBD2_BARRIER;\n	rcu_read_lock();\n	c.fs = luc_fs_find(journal);\n",
        )],
    },
    Broken {
        name: "sleeps_under_a_lock",
        what: "the hold sleeps with a spinlock held, one that nobody else takes",
        must_fail: true,
        scenario: ON_LUC,
        replace: &[(
            COMMIT,
            "		luc_hold_sleep(c->fs, out->wake_ns);\n",
            "		static DEFINE_SPINLOCK(held);\n\n		spin_lock(&held);\n		luc_hold_sleep(c->fs, out->wake_ns);\n		spin_unlock(&held);\n",
        )],
    },
    Broken {
        name: "sleeps_under_rcu",
        what: "the hold sleeps inside an RCU section",
        must_fail: true,
        scenario: ON_LUC,
        replace: &[(
            COMMIT,
            "	rcu_read_unlock();\n	reason = luc_hold_polling(c, out);\n	rcu_read_lock();\n",
            "	reason = luc_hold_polling(c, out);\n",
        )],
    },
];

impl Broken {
    /// Writes the sources of this build below `dir`.
    pub fn write(&self, dir: &Path) -> Result<(), String> {
        for folder in ["kmod", "control", "abi"] {
            let to = dir.join(folder);
            fs::create_dir(&to).map_err(|e| e.to_string())?;
            for entry in fs::read_dir(root().join(folder)).map_err(|e| e.to_string())? {
                let from = entry.map_err(|e| e.to_string())?.path();
                if let (true, Some(name)) = (from.is_file(), from.file_name()) {
                    fs::copy(&from, to.join(name)).map_err(|e| e.to_string())?;
                }
            }
        }
        for (file, find, replacement) in self.replace {
            let path = dir.join(file);
            let text = fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
            if text.matches(find).count() != 1 {
                return Err(format!("{}: {file} does not hold once: {find}", self.name));
            }
            fs::write(&path, text.replace(find, replacement)).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}
