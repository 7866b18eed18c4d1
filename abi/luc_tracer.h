/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the tracer is told, and what it counts where it is left on: sums and
 * histograms instead of spans, for each watched file system and processor.
 *
 * A histogram's bucket holds durations of one power of two of nanoseconds,
 * divided in LUC_HIST_STEPS equal parts: an answer read from it is off by an
 * eighth at most.
 */
#ifndef LUC_TRACER_H
#define LUC_TRACER_H

#include "luc_types.h"

#define LUC_COUNTS_SLOTS 64	/* file systems watched at once */
#define LUC_COUNTS_PROCESSES 8192
#define LUC_CGROUPS_MAX 16
#define LUC_TEXT_BYTES 512	/* read at once of the kernel's text */

#define LUC_HIST_STEPS_LOG2 2
#define LUC_HIST_STEPS (1 << LUC_HIST_STEPS_LOG2)
#define LUC_HIST_OCTAVES 40	/* up to 18 minutes; longer counts as that */
#define LUC_HIST_BUCKETS (LUC_HIST_OCTAVES * LUC_HIST_STEPS)

#define LUC_WAITS 3	/* buffer, locked, space: LUC_SPAN_WAIT_* in order */
#define LUC_AHEAD_MAX 3	/* commits that a sync waits for; more count as that */

/* Constant once the programs are loaded; what is ruled out is left out. */
struct luc_tracer_settings {
	luc_u32 timeline;	/* spans instead of counts */
	luc_u32 only_processes;	/* those of a list */
	luc_u32 only_cgroups;	/* this many, those of a list */
	luc_u32 filesystems;	/* how many are watched */
	luc_u32 ring_spans;	/* places of the ring, a power of two */
	luc_u32 devs[LUC_COUNTS_SLOTS];	/* which */
};

/* Spans ever put into the ring, and taken out; who writes one does not disturb the other. */
struct luc_ring {
	luc_u64 head;
	luc_u64 apart[7];
	luc_u64 tail;
};

/* An array of luc_u64; the reader goes by their order. */
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

struct luc_process_counts {
	luc_u64 syncs;
	luc_u64 sync_ns;
	luc_u64 syncs_late;	/* that waited for two commits or more */
	luc_u64 wait_ns;	/* of all three kinds of waits */
};

#endif
