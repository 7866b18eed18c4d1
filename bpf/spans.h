/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by all programs: watched file systems and tasks, histograms, the ring. */
#ifndef LUC_BPF_SPANS_H
#define LUC_BPF_SPANS_H

#include "maps.h"

/*
 * Reads a field through a pointer that the verifier trusts (fentry), or through a helper
 * (kprobes). `direct` is a constant.
 */
#define READ(direct, pointer, field) \
	((direct) ? (pointer)->field : BPF_CORE_READ(pointer, field))

/* A linear search: most hosts watch few file systems, and a map would cost more. */
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

/* Tells whether the current task is watched. */
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
 * An operation begins. If it had already begun, its end was missed: kretprobes can track
 * only a limited number of returns.
 */
static __always_inline void begun(__u64 *since_ns)
{
	if (*since_ns)
		count_lost();
	*since_ns = bpf_ktime_get_ns();
}

/* How often other processors may win the race for the head. */
#define RESERVE_TRIES 32

static __always_inline struct luc_span *reserve(void)
{
	volatile struct luc_ring *r = &ring;

#pragma clang loop unroll(disable)
	for (int i = 0; i < RESERVE_TRIES; i++) {
		__u64 head = r->head;
		__u32 place = head & (settings.ring_spans - 1);

		if (head - r->tail >= settings.ring_spans)
			return NULL;
		if (__sync_val_compare_and_swap(&ring.head, head, head + 1) == head)
			return bpf_map_lookup_elem(&spans, &place);
	}
	return NULL;
}

/* Starts a span in the ring that belongs to no task yet. Returns NULL if it is lost. */
static __always_inline struct luc_span *begin_foreign_span(__u16 kind, __u64 begin_ns, __u32 dev)
{
	struct luc_span *span = reserve();

	if (!span) {
		count_lost();
		return NULL;
	}
	__builtin_memset(span, 0, sizeof(*span));
	span->kind = kind;
	span->begin_ns = begin_ns;
	span->dev = dev;
	return span;
}

/* Starts a span of the current task in the ring. Returns NULL if it is lost. */
static __always_inline struct luc_span *begin_span(__u16 kind, __u64 begin_ns, __u32 dev)
{
	struct luc_span *span = begin_foreign_span(kind, begin_ns, dev);
	__u64 id;

	if (!span)
		return NULL;
	id = bpf_get_current_pid_tgid();
	span->pid = (__u32)id;
	span->tgid = id >> 32;
	return span;
}

/*
 * Completes the span: a barrier orders all other writes before this one. The reader
 * polls, so it need not be woken.
 */
static __always_inline void end_span(struct luc_span *span, __u64 end_ns)
{
	__sync_lock_test_and_set(&span->end_ns, end_ns);
}

static __always_inline struct task_struct *current(void)
{
	return (void *)bpf_get_current_task_btf();
}

static __always_inline struct task_state *place_of(const struct task_struct *task)
{
	return &places[task->pid & (TASK_PLACES - 1)];
}

/* Not inlined, because it is seldom needed. */
static __noinline struct task_state *stored(void)
{
	return bpf_task_storage_get(&tasks, (void *)current(), NULL, 0);
}

/*
 * The state of a task that does not own its slot. A task has only one state: look in
 * storage first.
 */
static __noinline struct task_state *settle(void)
{
	struct task_struct *task = current();
	struct task_state *state = crowded ? stored() : NULL;

	if (state)
		return state;
	state = place_of(task);
	if (!__sync_val_compare_and_swap(&state->owner, 0, (__u64)task))
		return state;
	crowded = true;
	return bpf_task_storage_get(&tasks, (void *)task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline struct task_state *task_if_known(void)
{
	struct task_struct *task = current();
	struct task_state *state = place_of(task);

	if (state->owner == (__u64)task)
		return state;
	return crowded ? stored() : NULL;
}

static __always_inline struct task_state *task(void)
{
	struct task_struct *task = current();
	struct task_state *state = place_of(task);

	return state->owner == (__u64)task ? state : settle();
}

/* After this time a thread hands in its counts, where the reader sees them. */
#define PENDING_NS 100000000ULL

/* Where the map is full, adds to its others, if it has an entry for them. */
static __always_inline void add_counts(void *map, const void *key,
				       const struct luc_task_counts *more)
{
	struct luc_task_counts *counts = bpf_map_lookup_elem(map, key);
	__u64 others = LUC_COUNTS_OTHERS;

	if (!counts) {
		if (!bpf_map_update_elem(map, key, more, BPF_NOEXIST))
			return;
		/* Another processor was first, or the map is full. */
		counts = bpf_map_lookup_elem(map, key);
		if (!counts)
			counts = bpf_map_lookup_elem(map, &others);
		if (!counts)
			return;
	}
	__sync_fetch_and_add(&counts->syncs, more->syncs);
	__sync_fetch_and_add(&counts->sync_ns, more->sync_ns);
	__sync_fetch_and_add(&counts->syncs_late, more->syncs_late);
	__sync_fetch_and_add(&counts->wait_ns, more->wait_ns);
}

/* Adds the counts of the current task to its process and to its control group. */
static __always_inline void hand_in(struct task_state *state)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 cgroup = bpf_get_current_cgroup_id();

	add_counts(&processes, &tgid, &state->pending);
	add_counts(&cgroups, &cgroup, &state->pending);
	__builtin_memset(&state->pending, 0, sizeof(state->pending));
}

/* Does so only now and then, because a map costs more than counting. */
static __always_inline bool hand_in_at(struct task_state *state, __u64 now_ns)
{
	if (now_ns - state->pending_ns < PENDING_NS)
		return false;
	hand_in(state);
	return true;
}

static __always_inline bool has_pending(const struct task_state *state)
{
	return state->pending.syncs || state->pending.wait_ns;
}

/*
 * The task exits. The kernel frees it only after a grace period; the reader may ask for
 * the counts before that.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(task_exits, struct task_struct *task)
{
	struct task_state *state = task_if_known();

	if (state && has_pending(state))
		hand_in(state);
	return 0;
}

/*
 * The kernel frees the task: adds its last counts to its process, as its control group is
 * no longer known; clears its slot and gives it back.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(task_gone, struct task_struct *task)
{
	struct task_state *state = place_of(task);
	__u32 tgid = task->tgid;

	if (state->owner != (__u64)task)
		return 0;
	if (has_pending(state))
		add_counts(&processes, &tgid, &state->pending);
	__builtin_memset((void *)state + sizeof(state->owner), 0,
			 sizeof(*state) - sizeof(state->owner));
	/* With a barrier: the next owner finds the slot empty. */
	__sync_lock_test_and_set(&state->owner, 0);
	return 0;
}

/* The current task, if it and this file system are watched. */
static __always_inline struct task_state *task_on(__u32 dev)
{
	return watched(dev) && chosen() ? task() : NULL;
}

/*
 * The main thread's name is that of the process. The main thread itself may never be
 * seen, so each other thread reports it with its own name.
 */
static __noinline int introduce_leader(__u64 now_ns)
{
	const struct task_struct *leader = current()->group_leader;
	struct luc_span *span;

	if (leader->pid == (int)bpf_get_current_pid_tgid())
		return 0;
	span = begin_span(LUC_SPAN_TASK, now_ns, 0);
	if (!span)
		return 0;
	span->pid = span->tgid;
	span->marks_ns[0] = *(__u64 *)&leader->comm[0];
	span->marks_ns[1] = *(__u64 *)&leader->comm[8];
	span->object = bpf_get_current_cgroup_id();
	end_span(span, now_ns);
	return 0;
}

/* Reports the task's name if it is new; with `again` also if it has changed. */
static __always_inline void introduce(struct task_state *state, __u64 now_ns, bool again)
{
	const struct task_struct *me = current();
	__u64 name[LUC_SPAN_NAME_BYTES / 8];
	struct luc_span *span;

	if (state->name[0] && !again)
		return;
	/* Read directly: the helper for names takes ten times as long. */
	name[0] = *(__u64 *)&me->comm[0];
	name[1] = *(__u64 *)&me->comm[8];
	if (state->name[0] == name[0] && state->name[1] == name[1])
		return;
	span = begin_span(LUC_SPAN_TASK, now_ns, 0);
	if (!span)
		return;	/* try again next time */
	state->name[0] = name[0];
	state->name[1] = name[1];
	span->marks_ns[0] = name[0];
	span->marks_ns[1] = name[1];
	span->object = bpf_get_current_cgroup_id();
	end_span(span, now_ns);
	introduce_leader(now_ns);
}

/* The innermost operation that the task is in. */
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

/*
 * Position of the highest bit that is set; value must not be 0. The barrier keeps
 * the branches: six steps without a branch take three times as long.
 */
static __always_inline __u32 log2_floor(__u64 value)
{
	__u32 result = 0;

	for (int shift = 32; shift; shift >>= 1) {
		if (value >= 1ULL << shift) {
			value >>= shift;
			result += shift;
		}
		asm volatile("" : "+r"(value), "+r"(result));
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
