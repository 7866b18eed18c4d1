/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The tracer's settings, and its counts for permanent use: sums and histograms instead
 * of spans, for each watched file system and processor.
 *
 * Each power of two of nanoseconds is divided into LUC_HIST_STEPS buckets of equal
 * width: a value read from them is off by 1/32 at most. `luc guard` needs such narrow
 * buckets for the 99th percentile.
 */
#ifndef LUC_TRACER_H
#define LUC_TRACER_H

#include "luc_types.h"

/* Bounds of tables: chosen, not measured. */
#define LUC_COUNTS_SLOTS 64	/* file systems watched at once */
#define LUC_COUNTS_PROCESSES 8192	/* processes counted individually */
#define LUC_COUNTS_CGROUPS 4096	/* control groups counted individually */
#define LUC_COUNTS_OTHERS 0	/* id of all further control groups together */
#define LUC_CGROUPS_MAX 16	/* cgroups in one filter */
#define LUC_EARLIER_MAX 1024	/* syncs that are followed though their start was not seen */
#define LUC_TEXT_BYTES 512	/* bytes of the kernel's text read at once */

#define LUC_HIST_STEPS_LOG2 4	/* 16 steps: 1/32 of error, 640 buckets */
#define LUC_HIST_STEPS (1 << LUC_HIST_STEPS_LOG2)
#define LUC_HIST_OCTAVES 40	/* up to 18 minutes; longer times count as that */
#define LUC_HIST_BUCKETS (LUC_HIST_OCTAVES * LUC_HIST_STEPS)

#define LUC_WAITS 3	/* buffer, locked, space: LUC_SPAN_WAIT_* in order */
#define LUC_AHEAD_MAX 3	/* commits that a sync waits for; more count as this many */

/*
 * Constant once the programs are loaded; the verifier drops code that they make
 * unreachable.
 */
struct luc_tracer_settings {
	luc_u32 timeline;	/* spans instead of counts */
	luc_u32 only_processes;	/* 1: the processes of a list */
	luc_u32 only_cgroups;	/* number of cgroups in a list; 0: no filter */
	luc_u32 filesystems;	/* number of devs */
	luc_u32 ring_spans;	/* slots of the ring, a power of two */
	luc_u32 devs[LUC_COUNTS_SLOTS];	/* the watched file systems */
};

/*
 * Spans ever put into the ring, and ever taken out, on two cache lines: programs write
 * the head, the reader writes the tail.
 */
struct luc_ring {
	luc_u64 head;
	luc_u64 apart[7];
	luc_u64 tail;
};

/* The reader sees an array of luc_u64. */
struct luc_counts {
	luc_u64 syncs;	/* fsync, fdatasync */
	luc_u64 sync_ns;
	luc_u64 syncs_by_commits[LUC_AHEAD_MAX + 1];	/* by how many commits they waited for */
	luc_u64 commits;
	luc_u64 commit_ns;
	luc_u64 waits[LUC_WAITS];
	luc_u64 wait_ns[LUC_WAITS];
	luc_u64 sync_hist[LUC_HIST_BUCKETS];
	luc_u64 wait_hist[LUC_HIST_BUCKETS];	/* of waits for a buffer */
};

/* A sync that began before the tracer was attached, by its thread. */
struct luc_earlier_sync {
	luc_u64 begin_ns;	/* at the latest */
	luc_u64 inode;		/* 0 if unknown, and for SYNC */
	luc_u32 dev;
	luc_u32 tgid;
	luc_u32 kind;		/* LUC_SPAN_FSYNC, FDATASYNC or SYNC */
	luc_u32 unused;
};

/* The syncs of a file system that are going on. */
struct luc_syncs_going_on {
	luc_u64 syncs;
	luc_u64 oldest_begin_ns;	/* 0 if there is none */
};

/* Sums of a process, or of a control group. */
struct luc_task_counts {
	luc_u64 syncs;
	luc_u64 sync_ns;
	luc_u64 syncs_late;	/* that waited for two commits or more */
	luc_u64 wait_ns;	/* of all three kinds of waits */
};

#endif
