/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations that are going on. The loader runs the program at the end of a watch, to
 * report them as spans, and at each reading of the counts, to report how long the oldest
 * sync has lasted.
 */
#ifndef LUC_BPF_UNFINISHED_H
#define LUC_BPF_UNFINISHED_H

#include "spans.h"
#include "sync.h"

static __always_inline struct luc_span *begin_unfinished(const struct task_state *state, __u16 kind,
							 __u64 begin_ns, __u32 dev)
{
	const struct task_struct *owner = (void *)state->owner;
	struct luc_span *span = begin_foreign_span(kind, begin_ns, dev);

	if (!span)
		return NULL;
	span->pid = BPF_CORE_READ(owner, pid);
	span->tgid = BPF_CORE_READ(owner, tgid);
	span->flags = LUC_SPAN_UNFINISHED;
	return span;
}

static __noinline int report_sync(const struct task_state *state, __u64 now_ns)
{
	const struct inode *inode = (void *)state->sync_inode;
	struct luc_span *span;

	span = begin_unfinished(state, state->datasync ? LUC_SPAN_FDATASYNC : LUC_SPAN_FSYNC,
				state->sync_ns,
				settings.devs[state->sync_slot & (LUC_COUNTS_SLOTS - 1)]);
	if (!span)
		return 0;
	span->object = BPF_CORE_READ(inode, i_ino);
	span->done_tid = state->done_tid;
	if (state->asked_ns) {
		span->tid = state->sync_tid;
		span->marks_ns[0] = state->sync_ns;
		span->marks_ns[1] = state->asked_ns;
	}
	if (state->directory)
		span->flags |= LUC_SPAN_DIRECTORY;
	end_span(span, now_ns);
	return 0;
}

static __noinline int report(const struct task_state *state, __u16 kind, __u64 begin_ns, __u32 dev)
{
	struct luc_span *span = begin_unfinished(state, kind, begin_ns, dev);

	if (!span)
		return 0;
	if (kind >= LUC_SPAN_WAIT_BUFFER)
		span->within = operation(state);
	if (kind == LUC_SPAN_WAIT_BUFFER)
		span->object = state->buffer_block;
	end_span(span, bpf_ktime_get_ns());
	return 0;
}

static __always_inline void count_going_on(__u32 slot, __u64 begin_ns)
{
	struct luc_syncs_going_on *c = bpf_map_lookup_elem(&syncs_going_on, &slot);

	if (!c)
		return;
	c->syncs += 1;
	if (!c->oldest_begin_ns || begin_ns < c->oldest_begin_ns)
		c->oldest_begin_ns = begin_ns;
}

static long of_place(__u32 index, void *unused)
{
	const struct task_state *state = &places[index & (TASK_PLACES - 1)];

	if (!state->owner)
		return 0;
	if (!settings.timeline) {
		if (state->sync_ns)
			count_going_on(state->sync_slot, state->sync_ns);
		return 0;
	}
	if (state->sync_ns)
		report_sync(state, bpf_ktime_get_ns());
	if (state->syncfs_ns)
		report(state, LUC_SPAN_SYNC, state->syncfs_ns, state->syncfs_dev);
	if (state->buffer_ns)
		report(state, LUC_SPAN_WAIT_BUFFER, state->buffer_ns, state->buffer_dev);
	if (state->locked_ns)
		report(state, LUC_SPAN_WAIT_LOCKED, state->locked_ns, state->locked_dev);
	if (state->space_ns)
		report(state, LUC_SPAN_WAIT_SPACE, state->space_ns, state->space_dev);
	return 0;
}

/* Whether a thread has begun a sync since it was found in one. */
static __always_inline bool syncs_again(__u32 pid)
{
	const struct task_state *state = &places[pid & (TASK_PLACES - 1)];
	const struct task_struct *owner = (void *)state->owner;

	return owner && state->synced && BPF_CORE_READ(owner, pid) == (int)pid;
}

static long of_earlier(void *map, const __u32 *pid, struct luc_earlier_sync *sync, void *unused)
{
	struct fs_state *fs = watched(sync->dev);
	struct luc_span *span;

	if (!fs || syncs_again(*pid))
		return 0;
	if (!settings.timeline) {
		if (sync->kind != LUC_SPAN_SYNC)
			count_going_on(fs - filesystems, sync->begin_ns);
		return 0;
	}
	span = begin_foreign_span(sync->kind, sync->begin_ns, sync->dev);
	if (!span)
		return 0;
	span->pid = *pid;
	span->tgid = sync->tgid;
	span->object = sync->inode;
	span->flags = LUC_SPAN_EARLIER | LUC_SPAN_UNFINISHED;
	end_span(span, bpf_ktime_get_ns());
	return 0;
}

static long of_slot(__u32 slot, void *unused)
{
	struct luc_syncs_going_on *c = bpf_map_lookup_elem(&syncs_going_on, &slot);
	struct fs_state *fs = &filesystems[slot & (LUC_COUNTS_SLOTS - 1)];
	struct luc_span *span;
	struct journal_s *journal;

	if (c)
		__builtin_memset(c, 0, sizeof(*c));
	if (!settings.timeline || !fs->begin_ns)
		return 0;
	span = begin_foreign_span(LUC_SPAN_COMMIT, fs->begin_ns, fs->dev);
	if (!span)
		return 0;
	journal = (void *)fs->journal;
	span->tid = BPF_CORE_READ(journal, j_committing_transaction, t_tid);
	span->marks_ns[0] = fs->marks_ns[0];
	span->marks_ns[1] = fs->marks_ns[1];
	span->marks_ns[2] = fs->marks_ns[2];
	span->flags = LUC_SPAN_UNFINISHED;
	end_span(span, bpf_ktime_get_ns());
	return 0;
}

/* All programs are attached. */
SEC("syscall")
int attached(void *unused)
{
	attached_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("syscall")
int unfinished(void *unused)
{
	closing = settings.timeline;
	bpf_loop(LUC_COUNTS_SLOTS, of_slot, NULL, 0);
	bpf_loop(TASK_PLACES, of_place, NULL, 0);
	bpf_for_each_map_elem(&earlier_syncs, of_earlier, NULL, 0);
	return 0;
}

#endif
