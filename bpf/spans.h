/* SPDX-License-Identifier: GPL-2.0-only */
/* What all programs share: whom to watch, tasks, histograms, the ring. */
#ifndef LUC_BPF_SPANS_H
#define LUC_BPF_SPANS_H

#include "maps.h"

/*
 * A field of a structure behind a pointer that the verifier trusts (fentry), or
 * through a helper (kprobes). `direct` is a constant.
 */
#define READ(direct, pointer, field) \
	((direct) ? (pointer)->field : BPF_CORE_READ(pointer, field))

/* A search in line: most hosts watch few, and a map would cost more. */
static __always_inline struct fs_state *watched(__u32 dev)
{
	for (__u32 i = 0; i < LUC_COUNTS_SLOTS && i < settings.filesystems; i++) {
		if (settings.devs[i] == dev)
			return &filesystems[i];
	}
	return NULL;
}

static __always_inline struct luc_counts *counts_of(const struct fs_state *fs)
{
	__u32 slot = fs - filesystems;

	return bpf_map_lookup_elem(&counts, &slot);
}

/* Whether the task that runs is one of those asked for. */
static __always_inline bool chosen(void)
{
	if (settings.only_processes) {
		__u32 tgid = bpf_get_current_pid_tgid() >> 32;

		if (!bpf_map_lookup_elem(&chosen_processes, &tgid))
			return false;
	}
	if (settings.only_cgroups) {
		for (__u32 i = 0; i < LUC_CGROUPS_MAX && i < settings.only_cgroups; i++) {
			if (bpf_current_task_under_cgroup(&chosen_cgroups, i) == 1)
				return true;
		}
		return false;
	}
	return true;
}

static __always_inline void count_lost(void)
{
	__u32 zero = 0;
	__u64 *nr = bpf_map_lookup_elem(&lost, &zero);

	if (nr)
		*nr += 1;
}

/*
 * Something begins. Where it had begun already its end was not seen: there are only so
 * many returns that kretprobes can wait for.
 */
static __always_inline void begun(__u64 *since_ns)
{
	if (*since_ns)
		count_lost();
	*since_ns = bpf_ktime_get_ns();
}

/* A place in the ring with what all spans of this task have; NULL: lost. */
static __always_inline struct luc_span *begin_span(__u16 kind, __u64 begin_ns,
						   __u64 end_ns, __u32 dev)
{
	struct luc_span *span = bpf_ringbuf_reserve(&spans, sizeof(*span), 0);
	__u64 id = bpf_get_current_pid_tgid();

	if (!span) {
		count_lost();
		return NULL;
	}
	__builtin_memset(span, 0, sizeof(*span));
	span->kind = kind;
	span->begin_ns = begin_ns;
	span->end_ns = end_ns;
	span->dev = dev;
	span->pid = (__u32)id;
	span->tgid = id >> 32;
	return span;
}

/* Nobody is woken: the reader comes by itself, often enough. */
static __always_inline void end_span(struct luc_span *span)
{
	bpf_ringbuf_submit(span, BPF_RB_NO_WAKEUP);
}

static __always_inline struct task_state *task_if_known(void)
{
	return bpf_task_storage_get(&tasks, (void *)bpf_get_current_task_btf(), NULL, 0);
}

static __always_inline struct task_state *task(void)
{
	return bpf_task_storage_get(&tasks, (void *)bpf_get_current_task_btf(), NULL,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The task that runs, if what it does on this file system is to be seen. */
static __always_inline struct task_state *task_on(__u32 dev)
{
	return watched(dev) && chosen() ? task() : NULL;
}

/* Tells the task's name if it is new; `again` looks whether it has changed. */
static __always_inline void introduce(struct task_state *state, __u64 now_ns, bool again)
{
	__u64 name[LUC_SPAN_NAME_BYTES / 8] = {};
	struct luc_span *span;

	if (state->name[0] && !again)
		return;
	bpf_get_current_comm(name, sizeof(name));
	if (state->name[0] == name[0] && state->name[1] == name[1])
		return;
	span = begin_span(LUC_SPAN_TASK, now_ns, now_ns, 0);
	if (!span)
		return;	/* next time, then */
	state->name[0] = name[0];
	state->name[1] = name[1];
	span->marks_ns[0] = name[0];
	span->marks_ns[1] = name[1];
	span->object = bpf_get_current_cgroup_id();
	end_span(span);
}

/* The innermost operation that the task is in the middle of. */
static __always_inline __u16 operation(const struct task_state *state)
{
	if (state->sync_ns)
		return state->datasync ? LUC_SPAN_FDATASYNC : LUC_SPAN_FSYNC;
	if (state->write_ns)
		return LUC_SPAN_WRITE;
	if (state->close_ns)
		return LUC_SPAN_CLOSE;
	if (state->open_ns)
		return LUC_SPAN_OPEN;
	return LUC_SPAN_TASK;
}

/* How long what a thread did stays with it, where a reader does not see it. */
#define PENDING_NS 100000000ULL

/* Adds what the thread did to its process now and then: a map costs more than it. */
static __always_inline void hand_in(struct task_state *state, __u64 now_ns)
{
	struct luc_process_counts *p;
	__u32 tgid;

	if (now_ns - state->pending_ns < PENDING_NS)
		return;
	state->pending_ns = now_ns;
	tgid = bpf_get_current_pid_tgid() >> 32;
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!p) {
		bpf_map_update_elem(&processes, &tgid, &state->pending, BPF_NOEXIST);
	} else {
		__sync_fetch_and_add(&p->syncs, state->pending.syncs);
		__sync_fetch_and_add(&p->sync_ns, state->pending.sync_ns);
		__sync_fetch_and_add(&p->syncs_late, state->pending.syncs_late);
		__sync_fetch_and_add(&p->wait_ns, state->pending.wait_ns);
	}
	__builtin_memset(&state->pending, 0, sizeof(state->pending));
}

/* Position of the highest bit that is set; value must not be 0. */
static __always_inline __u32 log2_floor(__u64 value)
{
	__u32 result = 0;

	for (int shift = 32; shift; shift >>= 1) {
		if (value >> shift) {
			value >>= shift;
			result += shift;
		}
	}
	return result;
}

static __always_inline void count_duration(luc_u64 *hist, __u64 ns)
{
	__u32 octave, bucket;

	if (ns < LUC_HIST_STEPS) {
		bucket = ns;
	} else {
		octave = log2_floor(ns);
		bucket = octave * LUC_HIST_STEPS +
			 ((ns >> (octave - LUC_HIST_STEPS_LOG2)) & (LUC_HIST_STEPS - 1));
	}
	if (bucket >= LUC_HIST_BUCKETS)
		bucket = LUC_HIST_BUCKETS - 1;
	hist[bucket] += 1;
}

#endif
