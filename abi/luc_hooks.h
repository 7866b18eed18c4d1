/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The hook table: one row for each kernel function whose entry the module hooks, the
 * most frequently called first.
 *
 *   LUC_HOOK(function, needed)
 *
 * Without a needed hook the attach fails; without any other LUC sees or does a little
 * less, as the comment above its row says. kmod/hooks.c has the function
 * luc_at_FUNCTION() for each row.
 */
#ifndef LUC_HOOKS_H
#define LUC_HOOKS_H

#define LUC_HOOKS(LUC_HOOK) \
	LUC_HOOK(jbd2_complete_transaction, true) \
	LUC_HOOK(jbd2_log_wait_commit, true) \
	/* fsync of directories counts as urgent: ext4 forces a commit (1077b2d53ef5, 6.4), */ \
	/* and did so before, as if their data were journaled (ext4_should_journal_data()) */ \
	LUC_HOOK(ext4_sync_file, false) \
	LUC_HOOK(jbd2_journal_commit_transaction, true) \
	LUC_HOOK(jbd2_journal_write_metadata_buffer, true) \
	/* contended buffers are copied 16 times for each sleep: needed copies are not seen */ \
	LUC_HOOK(jbd2_journal_file_buffer, false) \
	/* delayed writes are not seen: copy-out never starts */ \
	LUC_HOOK(out_of_line_wait_on_bit, false) \
	/* a task that waits for a new transaction waits up to 1 ms more */ \
	LUC_HOOK(wait_transaction_locked, false) \
	/* fast commits are not counted */ \
	LUC_HOOK(jbd2_fc_end_commit, false) \
	LUC_HOOK(jbd2_journal_destroy, true)

#endif
