/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which tasks are likely to come: the estimator behind the automatic set point.
 *
 * A commit that ends releases the tasks that wait for it. In workloads that suffer
 * from journal commits each does its next piece of work and comes back with its next
 * sync. So the tasks that the last two commits released and that are not back yet are
 * worth waiting for. Two, because an unbatched journal splits its tasks into two
 * convoys that take turns, and each commit sees one of them.
 *
 * Some tasks are on their way: a sync call writes the file's data first and asks for
 * the commit only then. A task inside such a call is no longer out but syncing, however
 * long it was away; when it comes depends on the disk. A call may find that it needs no
 * commit. That shows when its task begins another call. The share of such calls is
 * learned, and calls under way count for the rest. A call is forgotten after DEPTH
 * commits.
 *
 * A fixed table remembers for each task the transaction that it last waited for. A task
 * alone, with no calls of others between its own, is counted in no cohort: its slot
 * tells all, and a lone stream must cost next to nothing.
 *
 * Two tasks that hash alike overwrite each other. The estimate is then off by one,
 * which costs one bounded wait at most. Memory is the caller's.
 */
#ifndef LUC_RETURNS_H
#define LUC_RETURNS_H

#include "../abi/luc_types.h"

#define LUC_RETURNS_SLOTS 1024u		/* power of two: chosen, 16 KiB a file system */
#define LUC_RETURNS_COHORTS 8u		/* power of two, more than DEPTH */
#define LUC_RETURNS_DEPTH 2u		/* commits whose tasks are expected: two convoys */

struct luc_returns_slot {
	luc_u32 task;			/* caller's number for a task, not 0 */
	luc_u32 tid;			/* transaction it last waited for */
	luc_u32 entered;		/* newest transaction at its last sync call ... */
	luc_u32 syncing;		/* ... which has not waited for one yet */
};

struct luc_returns_cohort {
	luc_u64 key;			/* of its transaction, 0 if none */
	luc_u32 out;			/* tasks that waited for it, not come back since */
	luc_u32 syncing;		/* sync calls that began when it was newest */
};

struct luc_returns {
	luc_u32 needless;		/* share of sync calls without a wait, of 65536 */
	luc_u32 away;			/* out and syncing of all cohorts together */
	luc_u32 lone;			/* a task that no cohort counts, 0 if none */
	struct luc_returns_cohort cohort[LUC_RETURNS_COHORTS];
	struct luc_returns_slot slot[LUC_RETURNS_SLOTS];
};

/* Task begins a sync call; tid is the newest transaction that any task waited for. */
void luc_returns_enter(struct luc_returns *r, luc_u32 task, luc_u32 tid);

/* The share of sync calls without a wait, once all calls are such: see LEARN_SHIFT. */
#define LUC_RETURNS_ALL_NEEDLESS 65521u

/* Cheap: without this, no call repeats another one. */
static inline int luc_returns_all_needless(const struct luc_returns *r)
{
	return r->needless >= LUC_RETURNS_ALL_NEEDLESS;
}

/*
 * Whether luc_returns_enter() of the same would change nothing: the task's last call
 * began with the same newest transaction and needed no commit, as all calls but a few
 * in a thousand. Such calls must not write memory that processors share. Only reads.
 */
int luc_returns_repeats(const struct luc_returns *r, luc_u32 task, luc_u32 tid);

/*
 * Task begins to wait for transaction tid. Returns 1 if it is a new member of
 * that transaction's cohort, 0 if it was counted already. All-zero memory is a
 * valid empty estimator. Numbers may wrap; task 0 is read as task 1.
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
 * tasks that the transactions before it released and that are out, and tasks inside a
 * sync call, by the share of calls that wait. *syncing gets the second number alone.
 */
luc_s64 luc_returns_expected(const struct luc_returns *r, luc_u32 tid,
			     luc_s64 *syncing);

#endif
