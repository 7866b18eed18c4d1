/* SPDX-License-Identifier: GPL-2.0-only */
/* fsync, fdatasync and sync. */
#ifndef LUC_BPF_SYNC_H
#define LUC_BPF_SYNC_H

#include "spans.h"

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
 * The transaction that a sync of this inode asks for. The sync of a directory
 * asks for the running transaction.
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

/* The file system on which a task syncs. */
static __always_inline struct fs_state *syncing_on(const struct task_state *state)
{
	return &filesystems[state->sync_slot & (LUC_COUNTS_SLOTS - 1)];
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
	state->synced = true;
	state->datasync = datasync;
	state->done_tid = fs->done_tid;
	state->sync_slot = fs - filesystems;
	if (settings.timeline) {
		struct inode *inode = file->f_inode;

		state->directory = (inode->i_mode & S_IFMT) == S_IFDIR;
		state->sync_inode = (__u64)inode;
		state->asked_ns = 0;
	}
	state->sync_ns = bpf_ktime_get_ns();
	state->ended = fs->ended;
	if (settings.timeline)
		introduce(state, state->sync_ns, false);
	return 0;
}

/*
 * Counts one sync. It waited for the commits that ended in the meantime; commits that
 * ended during its data flush count too, because only a timeline tells them apart.
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
	if (hand_in_at(state, now_ns))
		state->pending_ns = now_ns;
}

/* The end of a sync whose start was not seen. Not inlined, because it is seldom needed. */
static __noinline int earlier_ends(bool of_file, int ret)
{
	__u32 pid = (__u32)bpf_get_current_pid_tgid();
	struct luc_earlier_sync *sync = bpf_map_lookup_elem(&earlier_syncs, &pid);
	__u64 now_ns = bpf_ktime_get_ns();
	struct luc_span *span;
	struct luc_counts *c;
	struct fs_state *fs;

	if (!sync || (sync->kind != LUC_SPAN_SYNC) != of_file)
		return 0;
	fs = watched(sync->dev);
	c = fs ? counts_of(fs) : NULL;
	if (settings.timeline) {
		span = begin_span(sync->kind, sync->begin_ns, sync->dev);
		if (span) {
			span->object = sync->inode;
			span->result = ret;
			span->flags = LUC_SPAN_EARLIER;
			end_span(span, now_ns);
		}
	} else if (c && of_file) {
		c->syncs += 1;
		c->sync_ns += now_ns - sync->begin_ns;
		count_duration(c->sync_hist, now_ns - sync->begin_ns);
	}
	bpf_map_delete_elem(&earlier_syncs, &pid);
	return 0;
}

SEC("tp_btf/ext4_sync_file_exit")
int BPF_PROG(sync_exit, struct inode *inode, int ret)
{
	struct task_state *state = task_if_known();
	struct luc_span *span;
	struct fs_state *fs;
	bool directory;
	__u64 begin_ns, now_ns;
	__u32 tid;

	if (!inode)
		return 0;
	if (!state || !state->sync_ns)
		return earlier_ends(true, ret);
	begin_ns = state->sync_ns;
	state->sync_ns = 0;
	fs = syncing_on(state);
	now_ns = bpf_ktime_get_ns();
	if (!settings.timeline) {
		count_sync(fs, state, now_ns, now_ns - begin_ns);
		return 0;
	}
	directory = (inode->i_mode & S_IFMT) == S_IFDIR;
	/*
	 * A sync that never asked (its data could not be written) would have asked for
	 * this.
	 */
	tid = state->asked_ns ? state->sync_tid
			      : wanted_tid(fs, inode, state->datasync, directory);
	span = begin_span(state->datasync ? LUC_SPAN_FDATASYNC : LUC_SPAN_FSYNC, begin_ns,
			  settings.devs[state->sync_slot & (LUC_COUNTS_SLOTS - 1)]);
	if (!span)
		return 0;
	span->object = inode->i_ino;
	span->result = ret;
	span->tid = tid;
	span->done_tid = state->done_tid;
	/* The data flush lasts from the start of the sync until it asks for a commit. */
	span->marks_ns[0] = state->asked_ns ? begin_ns : 0;
	span->marks_ns[1] = state->asked_ns;
	if (directory)
		span->flags = LUC_SPAN_DIRECTORY;
	end_span(span, now_ns);
	return 0;
}

/*
 * An operation other than a sync of a file waits for a commit. Its end is not hooked.
 *
 * The doctor needs the number, and it always has a timeline. Counting for permanent use
 * does without: a program at the end of every handle would cost each change of the
 * file system about 80 instructions, whether anything is synchronous or not.
 */
static __always_inline int untimed(__u32 dev)
{
	struct task_state *state;
	struct luc_span *span;
	__u64 now_ns;

	if (!settings.timeline || closing)
		return 0;
	state = task_on(dev);
	if (!state)
		return 0;
	now_ns = bpf_ktime_get_ns();
	introduce(state, now_ns, false);
	span = begin_span(LUC_SPAN_SYNC, now_ns, dev);
	if (!span)
		return 0;
	span->flags = LUC_SPAN_UNTIMED;
	end_span(span, now_ns);
	return 0;
}

/* A handle of a synchronous file or directory ends, and waits for its commit. */
SEC("tp_btf/jbd2_handle_stats")
int BPF_PROG(handle_ends, __u32 dev, __u32 tid, __u32 type, __u32 line, int interval, int sync)
{
	return sync ? untimed(dev) : 0;
}

/* Most syncs whose start was not seen are over after this time. */
#define SETTLE_NS 1000000000ULL

/*
 * The task is in no known sync: either another caller, such as NFS for an inode, wants a
 * commit, or the start of the sync was not seen.
 */
static __noinline int asked_otherwise(struct journal_s *journal)
{
	__u32 pid = (__u32)bpf_get_current_pid_tgid();

	if (!attached_ns || bpf_ktime_get_ns() - attached_ns < SETTLE_NS)
		return 0;
	if (bpf_map_lookup_elem(&earlier_syncs, &pid))
		return 0;
	return untimed(BPF_CORE_READ(journal, j_fs_dev, bd_dev));
}

/*
 * A sync has written its data and asks for a transaction: by number or, for directories
 * and journaled data, for the running one.
 */
static __always_inline int asked(struct journal_s *journal, bool forced, __u32 tid)
{
	struct task_state *state = task_if_known();
	struct fs_state *fs;

	if (!state || !state->sync_ns)
		return asked_otherwise(journal);
	fs = syncing_on(state);
	state->sync_tid = forced ? wanted_tid(fs, (void *)state->sync_inode, state->datasync,
					      state->directory)
				 : tid;
	state->done_tid = fs->done_tid;
	state->asked_ns = bpf_ktime_get_ns();
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
	state->synced = true;
	state->syncfs_dev = dev;
	introduce(state, state->syncfs_ns, false);
	return 0;
}

static __always_inline int syncfs_end(int ret)
{
	struct task_state *state = task_if_known();
	struct luc_span *span;
	__u64 now_ns;

	if (!state || !state->syncfs_ns)
		return earlier_ends(false, ret);
	now_ns = bpf_ktime_get_ns();
	span = begin_span(LUC_SPAN_SYNC, state->syncfs_ns, state->syncfs_dev);
	state->syncfs_ns = 0;
	if (!span)
		return 0;
	span->result = ret;
	end_span(span, now_ns);
	return 0;
}

SEC("fentry/ext4_fc_commit")
int BPF_PROG(fentry_asked, struct journal_s *journal, __u32 tid)
{
	return asked(journal, false, tid);
}
SEC("kprobe/ext4_fc_commit")
int BPF_KPROBE(kprobe_asked, struct journal_s *journal, __u32 tid)
{
	return asked(journal, false, tid);
}

SEC("fentry/jbd2_journal_force_commit")
int BPF_PROG(fentry_forced, struct journal_s *journal) { return asked(journal, true, 0); }
SEC("kprobe/jbd2_journal_force_commit")
int BPF_KPROBE(kprobe_forced, struct journal_s *journal) { return asked(journal, true, 0); }

SEC("fentry/ext4_sync_fs")
int BPF_PROG(fentry_syncfs, struct super_block *sb, int wait) { return syncfs_begin(sb, wait); }
SEC("fexit/ext4_sync_fs")
int BPF_PROG(fexit_syncfs, struct super_block *sb, int wait, int ret) { return syncfs_end(ret); }
SEC("kprobe/ext4_sync_fs")
int BPF_KPROBE(kprobe_syncfs, struct super_block *sb, int wait) { return syncfs_begin(sb, wait); }
SEC("kretprobe/ext4_sync_fs")
int BPF_KRETPROBE(kretprobe_syncfs, int ret) { return syncfs_end(ret); }

#endif
