/* SPDX-License-Identifier: GPL-2.0-only */
/* fsync, fdatasync and sync. */
#ifndef LUC_BPF_SYNC_H
#define LUC_BPF_SYNC_H

#include "spans.h"

/* Learns where the journal of this file system is. */
static __always_inline void learn_journal(struct fs_state *fs, struct super_block *sb)
{
	struct ext4_sb_info *info = BPF_CORE_READ(sb, s_fs_info);
	struct journal_s *journal = BPF_CORE_READ(info, s_journal);

	if (!journal)
		return;
	if (!fs->done_known) {
		fs->done_tid = BPF_CORE_READ(journal, j_commit_sequence);
		fs->done_known = true;
	}
	fs->journal = (__u64)journal;
	fs->queue = fs->journal + bpf_core_field_offset(struct journal_s, j_wait_transaction_locked);
}

/*
 * The transaction that a sync of this inode asks for. A directory's sync asks
 * for the one that runs, by which name it is known there.
 */
static __always_inline __u32 wanted_tid(const struct fs_state *fs, struct inode *inode,
					bool datasync, bool directory)
{
	const struct ext4_inode_info *info;

	if (directory) {
		struct journal_s *journal = (void *)fs->journal;
		struct transaction_s *running = BPF_CORE_READ(journal, j_running_transaction);

		if (running)
			return BPF_CORE_READ(running, t_tid);
	}
	info = (void *)inode - bpf_core_field_offset(struct ext4_inode_info, vfs_inode);
	return datasync ? BPF_CORE_READ(info, i_datasync_tid) : BPF_CORE_READ(info, i_sync_tid);
}

SEC("tp_btf/ext4_sync_file_enter")
int BPF_PROG(sync_enter, struct file *file, int datasync)
{
	struct task_state *state;
	struct super_block *sb;
	struct fs_state *fs;
	__u32 dev;

	if (!file)
		return 0;
	sb = file->f_inode->i_sb;
	dev = sb->s_dev;
	fs = watched(dev);
	if (!fs || !chosen())
		return 0;
	state = task();
	if (!state)
		return 0;
	if (!fs->journal)
		learn_journal(fs, sb);
	state->datasync = datasync;
	state->done_tid = fs->done_tid;
	if (settings.timeline) {
		struct inode *inode = file->f_inode;

		state->directory = (inode->i_mode & S_IFMT) == S_IFDIR;
		state->sync_inode = (__u64)inode;
		state->sync_dev = dev;
		state->flush_ns[0] = 0;
		state->flush_ns[1] = 0;
	}
	state->sync_ns = bpf_ktime_get_ns();
	state->ended = fs->ended;
	if (settings.timeline)
		introduce(state, state->sync_ns, false);
	return 0;
}

/*
 * Sums of one sync. It waited for the commits that ended meanwhile; those that
 * did during its data flush count too, which only a timeline can tell apart.
 */
static __always_inline void count_sync(struct fs_state *fs, struct task_state *state, __u64 now_ns,
				       __u64 ns)
{
	__u32 commits = fs->ended - state->ended;
	struct luc_counts *c = counts_of(fs);

	if (!c)
		return;
	if (commits > LUC_AHEAD_MAX)
		commits = LUC_AHEAD_MAX;
	c->syncs += 1;
	c->sync_ns += ns;
	c->syncs_by_commits[commits & 3] += 1;
	count_duration(c->sync_hist, ns);
	state->pending.syncs += 1;
	state->pending.sync_ns += ns;
	if (commits > 1)
		state->pending.syncs_late += 1;
	hand_in(state, now_ns);
}

SEC("tp_btf/ext4_sync_file_exit")
int BPF_PROG(sync_exit, struct inode *inode, int ret)
{
	struct task_state *state = task_if_known();
	struct luc_span *span;
	struct fs_state *fs;
	bool directory;
	__u64 begin_ns, now_ns;
	__u32 dev, tid;

	if (!inode || !state || !state->sync_ns)
		return 0;
	begin_ns = state->sync_ns;
	state->sync_ns = 0;
	dev = inode->i_sb->s_dev;
	fs = watched(dev);
	if (!fs)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (!settings.timeline) {
		count_sync(fs, state, now_ns, now_ns - begin_ns);
		return 0;
	}
	directory = (inode->i_mode & S_IFMT) == S_IFDIR;
	/* Where data was written first, the transaction was read behind that. */
	tid = state->flush_ns[1] ? state->sync_tid
				 : wanted_tid(fs, inode, state->datasync, directory);
	span = begin_span(state->datasync ? LUC_SPAN_FDATASYNC : LUC_SPAN_FSYNC, begin_ns, now_ns,
			  dev);
	if (!span)
		return 0;
	span->object = inode->i_ino;
	span->result = ret;
	span->tid = tid;
	span->done_tid = state->done_tid;
	span->marks_ns[0] = state->flush_ns[0];
	span->marks_ns[1] = state->flush_ns[1];
	if (directory)
		span->flags = LUC_SPAN_DIRECTORY;
	end_span(span);
	return 0;
}

/* The data flush: only inside of a sync. */
static __always_inline int flush_begin(void)
{
	struct task_state *state = task_if_known();

	if (state && state->sync_ns)
		state->flush_ns[0] = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int flush_end(void)
{
	struct task_state *state = task_if_known();
	struct fs_state *fs;

	if (!state || !state->sync_ns || !state->flush_ns[0])
		return 0;
	fs = watched(state->sync_dev);
	if (!fs)
		return 0;
	/* What ext4 does next is to read the inode's transaction. */
	state->sync_tid = wanted_tid(fs, (void *)state->sync_inode, state->datasync,
				     state->directory);
	state->done_tid = fs->done_tid;
	state->flush_ns[1] = bpf_ktime_get_ns();
	return 0;
}

/* sync and syncfs. */
static __always_inline int syncfs_begin(struct super_block *sb, int wait)
{
	__u32 dev = BPF_CORE_READ(sb, s_dev);
	struct task_state *state = wait ? task_on(dev) : NULL;

	if (!state)
		return 0;
	begun(&state->syncfs_ns);
	state->syncfs_dev = dev;
	introduce(state, state->syncfs_ns, false);
	return 0;
}

static __always_inline int syncfs_end(int ret)
{
	struct task_state *state = task_if_known();
	struct luc_span *span;

	if (!state || !state->syncfs_ns)
		return 0;
	span = begin_span(LUC_SPAN_SYNC, state->syncfs_ns, bpf_ktime_get_ns(), state->syncfs_dev);
	state->syncfs_ns = 0;
	if (!span)
		return 0;
	span->result = ret;
	end_span(span);
	return 0;
}

SEC("fentry/file_write_and_wait_range")
int BPF_PROG(fentry_flush) { return flush_begin(); }
SEC("fexit/file_write_and_wait_range")
int BPF_PROG(fexit_flush) { return flush_end(); }
SEC("kprobe/file_write_and_wait_range")
int BPF_KPROBE(kprobe_flush) { return flush_begin(); }
SEC("kretprobe/file_write_and_wait_range")
int BPF_KRETPROBE(kretprobe_flush) { return flush_end(); }

SEC("fentry/ext4_sync_fs")
int BPF_PROG(fentry_syncfs, struct super_block *sb, int wait) { return syncfs_begin(sb, wait); }
SEC("fexit/ext4_sync_fs")
int BPF_PROG(fexit_syncfs, struct super_block *sb, int wait, int ret) { return syncfs_end(ret); }
SEC("kprobe/ext4_sync_fs")
int BPF_KPROBE(kprobe_syncfs, struct super_block *sb, int wait) { return syncfs_begin(sb, wait); }
SEC("kretprobe/ext4_sync_fs")
int BPF_KRETPROBE(kretprobe_syncfs, int ret) { return syncfs_end(ret); }

#endif
