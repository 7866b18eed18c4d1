/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Estimates which tasks are likely to come, for the automatic set point.
 *
 * A commit that ends releases the tasks that wait for it. In workloads that suffer from
 * journal commits, each task does its next piece of work and comes back with its next
 * sync. So it is worth waiting for the tasks that the last two commits released and
 * that are not back yet. Two, because an unbatched journal splits its tasks into two
 * convoys that take turns, and each commit serves one of them.
 *
 * Some tasks are on their way: a sync call writes the file's data first and only then
 * asks for the commit. A task inside such a call no longer counts as out but as
 * syncing, however long it was away; when it arrives depends on the disk. A call may
 * find that it needs no commit, which shows only when its task begins another call. The
 * share of such calls is learned, and calls under way are weighted with the rest. A
 * call is forgotten after DEPTH commits.
 *
 * A fixed table remembers for each task the transaction that it last waited for. A lone
 * task, with no other task's calls between its own, is counted in no cohort: its slot
 * has all that is needed, and a lone stream must cost next to nothing.
 *
 * Two tasks that hash alike overwrite each other. The estimate is then off by one,
 * which costs at most one bounded wait. The caller provides the memory.
 */
#ifndef LUC_RETURNS_H
#define LUC_RETURNS_H

#include "../abi/luc_types.h"

#define LUC_RETURNS_SLOTS 1024u		/* power of two: chosen, 16 KiB per file system */
#define LUC_RETURNS_COHORTS 8u		/* power of two, more than DEPTH */
#define LUC_RETURNS_DEPTH 2u		/* commits whose tasks are expected: two convoys */

struct luc_returns_slot {
	luc_u32 task;			/* caller's number for a task, not 0 */
	luc_u32 tid;			/* transaction it last waited for */
	luc_u32 entered;		/* newest transaction at its last sync call ... */
	luc_u32 syncing;		/* ... which has not waited for one yet */
};

struct luc_returns_cohort {
	luc_u64 key;			/* its transaction, 0 if none */
	luc_u32 out;			/* tasks that waited for it and are not back */
	luc_u32 syncing;		/* sync calls that began when it was newest */
};

struct luc_returns {
	luc_u32 needless;		/* share of sync calls without a wait, in 65536ths */
	luc_u32 away;			/* out and syncing of all cohorts together */
	luc_u32 lone;			/* a task that no cohort counts, 0 if none */
	struct luc_returns_cohort cohort[LUC_RETURNS_COHORTS];
	struct luc_returns_slot slot[LUC_RETURNS_SLOTS];
};

/* The task begins a sync call; tid is the newest transaction that any task waited for. */
void luc_returns_enter(struct luc_returns *r, luc_u32 task, luc_u32 tid);

/*
 * The share of sync calls without a wait once all calls are like that: see LEARN_SHIFT.
 */
#define LUC_RETURNS_ALL_NEEDLESS 65521u

/* A cheap test: if it fails, no call repeats another one. */
static inline int luc_returns_all_needless(const struct luc_returns *r)
{
	return r->needless >= LUC_RETURNS_ALL_NEEDLESS;
}

/*
 * Whether luc_returns_enter() with the same arguments would change nothing: the task's
 * last call began with the same newest transaction and needed no commit, like all calls
 * but a few in a thousand. Such calls must not write memory that processors share. Only
 * reads.
 */
int luc_returns_repeats(const struct luc_returns *r, luc_u32 task, luc_u32 tid);

/*
 * The task begins to wait for transaction tid. Returns 1 if it is a new member of that
 * transaction's cohort, 0 if it was counted already. All-zero memory is a valid empty
 * estimator. Numbers may wrap; task 0 is read as task 1.
 */
int luc_returns_arrive(struct luc_returns *r, luc_u32 task, luc_u32 tid);

enum luc_returns_seen {
	LUC_RETURNS_UNSEEN,
	LUC_RETURNS_SYNCING,		/* inside a sync call, has not waited yet */
	LUC_RETURNS_ARRIVED,		/* arrived for tid, its newest transaction */
};

/* The state of a task that is about to wait for tid. */
enum luc_returns_seen luc_returns_seen(const struct luc_returns *r, luc_u32 task,
				       luc_u32 tid);

/*
 * How many tasks may still come before tid, the transaction about to commit, is closed:
 * tasks that earlier transactions released and that are out, and tasks inside a sync
 * call, weighted by the share of calls that wait. *syncing receives the second number
 * alone.
 */
luc_s64 luc_returns_expected(const struct luc_returns *r, luc_u32 tid,
			     luc_s64 *syncing);

#endif
