/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings, file systems, tasks, counts, and the ring of spans. */
#ifndef LUC_BPF_MAPS_H
#define LUC_BPF_MAPS_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../abi/luc_span.h"
#include "../abi/luc_tracer.h"

const volatile struct luc_tracer_settings settings;

/* A watched file system; its index is that of its device in the settings. */
struct fs_state {
	__u64 journal;	/* address of struct journal_s; 0 until it is known */
	__u64 queue;	/* where tasks wait for a locked transaction */
	__u64 begin_ns;	/* start of the running commit; 0: none runs */
	__u64 marks_ns[LUC_SPAN_MARKS];
	__u32 done_tid;	/* last transaction committed */
	__u32 ended;	/* number of commits that have ended */
	bool done_known;
	__u32 dev;	/* of the running commit */
};

struct fs_state filesystems[LUC_COUNTS_SLOTS];

/* When all programs were attached, and whether they are about to be detached. */
__u64 attached_ns;
bool closing;

/* Roughly how many tasks wait for a locked transaction; if 0, no wait can end. */
__u64 waiting;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LUC_COUNTS_SLOTS);
	__type(key, __u32);	/* slot */
	__type(value, struct luc_counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LUC_COUNTS_PROCESSES);
	__type(key, __u32);	/* process */
	__type(value, struct luc_task_counts);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LUC_COUNTS_CGROUPS);
	__type(key, __u64);	/* control group */
	__type(value, struct luc_task_counts);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);	/* process */
	__type(value, __u8);
} chosen_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, LUC_CGROUPS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} chosen_cgroups SEC(".maps");

/*
 * The operations that a task is in; a start time of 0 means that it is not in
 * that one.
 */
struct task_state {
	__u64 owner;	/* the task that owns this slot; 0: none */
	__u64 sync_ns;
	__u32 sync_slot, ended;	/* file system; commits that had ended at its start */
	__u32 sync_tid, done_tid;
	bool datasync, directory;
	bool synced;	/* the start of a sync was seen */
	/* Not yet added to the counts of the process and of the control group. */
	struct luc_task_counts pending;
	__u64 pending_ns;	/* when counts were last added */
	__u64 buffer_ns, buffer_block, locked_ns, space_ns;
	__u32 buffer_dev, locked_dev, space_dev;
	__u32 open_flags;
	__u64 open_ns;
	__u64 write_ns, write_inode;
	__u64 close_ns, close_inode;
	__u64 sync_inode, asked_ns;
	__u64 syncfs_ns;
	__u64 name[LUC_SPAN_NAME_BYTES / 8];
	__u32 write_dev, close_dev, syncfs_dev;
} __attribute__((aligned(256)));

/*
 * The task's number is its index here. Numbers are consecutive, so tasks seldom
 * collide, and finding the slot takes an addition; a look-up in task storage
 * takes 120 instructions. On a collision, fall back to task storage. A task
 * keeps its slot until the kernel frees it: before that no other task can have
 * its address.
 *
 * (A thread that replaces its process by execve() gets another number. Its old
 * slot stays taken, with no operation in it.)
 */
#define TASK_PLACES 4096

struct task_state places[TASK_PLACES];

/* The state of at least one task is in task storage. */
bool crowded;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LUC_EARLIER_MAX);
	__type(key, __u32);	/* thread */
	__type(value, struct luc_earlier_sync);
} earlier_syncs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LUC_COUNTS_SLOTS);
	__type(key, __u32);	/* slot */
	__type(value, struct luc_syncs_going_on);
} syncs_going_on SEC(".maps");

/*
 * The ring of spans, an array that the reader maps. A program takes the slot at
 * `head`. It writes the end time last: a span is complete once its end is not 0.
 * The reader sets the end to 0 before it frees the slot by moving `tail`. (The
 * kernel's own ring takes a spin lock and five times as long.)
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);	/* the loader sets it */
	__type(key, __u32);
	__type(value, struct luc_span);
} spans SEC(".maps");

struct luc_ring ring SEC(".data.ring");

/* Spans for which the ring had no room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

#endif
