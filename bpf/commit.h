/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The journal's commits. Only one runs at a time, so the state of the file system
 * holds its marks.
 *
 * The verifier requires NULL checks of a module's tracepoint arguments.
 */
#ifndef LUC_BPF_COMMIT_H
#define LUC_BPF_COMMIT_H

#include "spans.h"

/*
 * A commit begins when it locks its transaction: since jbd2_start_commit it has
 * only taken a lock.
 */
SEC("tp_btf/jbd2_commit_locking")
int BPF_PROG(commit_locking, struct journal_s *journal)
{
	struct fs_state *fs;
	__u64 now_ns;
	__u32 dev;

	if (!journal)
		return 0;
	dev = journal->j_fs_dev->bd_dev;
	fs = watched(dev);
	if (!fs)
		return 0;
	now_ns = bpf_ktime_get_ns();
	fs->journal = (__u64)journal;
	fs->queue = fs->journal + bpf_core_field_offset(struct journal_s, j_wait_transaction_locked);
	fs->begin_ns = now_ns;
	if (settings.timeline) {
		fs->dev = dev;
		fs->marks_ns[0] = now_ns;
		fs->marks_ns[1] = 0;
		fs->marks_ns[2] = 0;
	}
	return 0;
}

/*
 * The file system whose commit runs on this journal, if its start was seen. The
 * start saved the journal's address, so the journal need not be read: if another
 * journal has that address by now, none of its commits runs.
 */
static __always_inline struct fs_state *committing(const struct journal_s *journal)
{
	for (__u32 i = 0; i < LUC_COUNTS_SLOTS && i < settings.filesystems; i++) {
		if (filesystems[i].journal == (__u64)journal && filesystems[i].begin_ns)
			return &filesystems[i];
	}
	return NULL;
}

/* The marks: flushing the data of ordered files, writing the log. */
static __always_inline int mark(struct journal_s *journal, __u32 number)
{
	struct fs_state *fs = committing(journal);

	if (fs)
		fs->marks_ns[number] = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/jbd2_commit_flushing")
int BPF_PROG(commit_flushing, struct journal_s *journal) { return mark(journal, 1); }
SEC("tp_btf/jbd2_commit_logging")
int BPF_PROG(commit_logging, struct journal_s *journal) { return mark(journal, 2); }

SEC("tp_btf/jbd2_end_commit")
int BPF_PROG(commit_end, struct journal_s *journal, struct transaction_s *transaction)
{
	struct luc_span *span;
	struct luc_counts *c;
	struct fs_state *fs;
	__u64 begin_ns, now_ns;

	if (!journal || !transaction)
		return 0;
	fs = committing(journal);
	if (!fs)
		fs = watched(journal->j_fs_dev->bd_dev);
	if (!fs)
		return 0;
	fs->done_tid = transaction->t_tid;
	fs->done_known = true;
	fs->ended += 1;
	begin_ns = fs->begin_ns;
	fs->begin_ns = 0;
	/* The commit began before the tracer was attached. */
	if (!begin_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (!settings.timeline) {
		c = counts_of(fs);
		if (c) {
			c->commits += 1;
			c->commit_ns += now_ns - begin_ns;
		}
		return 0;
	}
	span = begin_span(LUC_SPAN_COMMIT, begin_ns, fs->dev);
	if (!span)
		return 0;
	span->tid = transaction->t_tid;
	span->marks_ns[0] = fs->marks_ns[0];
	span->marks_ns[1] = fs->marks_ns[1];
	span->marks_ns[2] = fs->marks_ns[2];
	end_span(span, now_ns);
	return 0;
}

#endif
