/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Who is likely to come: the estimator behind the automatic set point.
 *
 * A thread that waits for a commit is released when it ends, does its next
 * piece of work and, in the workloads that suffer from journal commits, comes
 * back with its next sync. The threads that the last two commits released and
 * that have not come back are therefore the ones worth waiting for: two,
 * because an unbatched journal splits its threads into two convoys that take
 * turns, and each commit sees only one of them.
 *
 * Some of those who come are already on their way: a sync call writes the
 * file's data first and asks for the commit only then. A task inside such a
 * call is no longer out but syncing, whoever it is and however long it was
 * away; when it comes depends on the disk. A call may find that it needs no
 * commit. That shows when its task begins another one, so the share of such
 * calls is learned, and those inside count for what is left of them. A call
 * is forgotten after DEPTH commits.
 *
 * A fixed table remembers for each task the transaction that it last waited
 * for. A task that nobody else's calls come between is not counted in any cohort,
 * as its slot tells all there is to know: a lone stream must cost next to nothing.
 *
 * Two tasks that hash alike overwrite each other; the estimate is then
 * off by one, which costs at most one bounded wait. Memory is the caller's.
 */
#ifndef LUC_RETURNS_H
#define LUC_RETURNS_H

#include "../abi/luc_types.h"

#define LUC_RETURNS_SLOTS 1024u		/* power of two */
#define LUC_RETURNS_COHORTS 8u		/* power of two, more than DEPTH */
#define LUC_RETURNS_DEPTH 2u		/* commits whose tasks are expected */

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

/*
 * Task begins a sync call; tid is the newest transaction that anybody has
 * waited for.
 */
void luc_returns_enter(struct luc_returns *r, luc_u32 task, luc_u32 tid);

/* The share of sync calls without a wait, once nothing but such calls was seen. */
#define LUC_RETURNS_ALL_NEEDLESS 65521u

/* Cheap: without this, no call repeats another one. */
static inline int luc_returns_all_needless(const struct luc_returns *r)
{
	return r->needless >= LUC_RETURNS_ALL_NEEDLESS;
}

/*
 * Whether luc_returns_enter() of the same would change nothing: the task's last call
 * began with the same newest transaction and needed no commit, and neither do, but
 * for a few in a thousand, the calls of anybody. On many processors such calls are
 * worth no line that all of them write. Only reads.
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
	LUC_RETURNS_SYNCING,		/* inside a sync call that has waited for nothing */
	LUC_RETURNS_ARRIVED,		/* arrived for tid, and for nothing later */
};

/* What is known of a task that is about to wait for tid. */
enum luc_returns_seen luc_returns_seen(const struct luc_returns *r, luc_u32 task,
				       luc_u32 tid);

/*
 * How many tasks may still come before tid, the transaction about to commit,
 * is closed: those of the transactions before it that are still out, and those
 * inside a sync call, weighed. *syncing gets the latter alone.
 */
luc_s64 luc_returns_expected(const struct luc_returns *r, luc_u32 tid,
			     luc_s64 *syncing);

#endif
