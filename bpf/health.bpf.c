// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists the state of every journal of ext4, even where the file system is mounted
 * only in other namespaces. A journal is found by its thread, whose argument it is.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../abi/luc_health.h"

char LICENSE[] SEC("license") = "GPL";

static bool is_journal_thread(struct task_struct *task)
{
	char name[5] = {};

	if (!(BPF_CORE_READ(task, flags) & PF_KTHREAD))
		return false;
	BPF_CORE_READ_INTO(&name, task, comm);
	return name[0] == 'j' && name[1] == 'b' && name[2] == 'd' && name[3] == '2' &&
	       name[4] == '/';
}

SEC("iter/task")
int list_journals(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct luc_health health = {};
	struct super_block *sb;
	struct journal_s *journal;
	struct ext4_sb_info *ext4;
	struct kthread *thread;

	if (!task || !is_journal_thread(task))
		return 0;
	thread = BPF_CORE_READ(task, worker_private);
	journal = BPF_CORE_READ(thread, data);
	sb = BPF_CORE_READ(journal, j_private);
	/* Other file systems have journals, too: only ext4's leads back to itself. */
	ext4 = BPF_CORE_READ(sb, s_fs_info);
	if (BPF_CORE_READ(sb, s_magic) != EXT4_SUPER_MAGIC ||
	    BPF_CORE_READ(ext4, s_journal) != journal)
		return 0;
	health.dev = BPF_CORE_READ(sb, s_dev);
	/* Its width changed in Linux 6.6 (commit 880b9577855e). */
	health.frozen = BPF_CORE_READ_BITFIELD_PROBED(sb, s_writers.frozen);
	health.ext4_flags = BPF_CORE_READ(ext4, s_ext4_flags);
	health.journal_flags = BPF_CORE_READ(journal, j_flags);
	health.journal_errno = -BPF_CORE_READ(journal, j_errno);
	bpf_seq_write(ctx->meta->seq, &health, sizeof(health));
	return 0;
}
